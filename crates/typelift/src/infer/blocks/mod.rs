//! The one definition of a block: the part of a graph to which each layer belongs.
//!
//! A layer belongs to the block that its name says, `model.layers.17.mlp/Add` to `model.layers.17`. Position decides for
//! layers without such a name, and structure where no names tell blocks. Constants belong to the block that uses them.
//! [`parts`] divides a graph; [`BlockNumbers`] answers for single layers.

mod facts;
mod membership;
mod names;
mod parts;
mod repeats;
pub(crate) mod roles;
mod weights;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{Graph, Layer, LayerId, Model, Output, Place, numbered_prefix};
use crate::ops::{self, LayerKind};

pub(crate) use names::{Names, SEPARATORS, module_of, number_of, plain};

pub(crate) use facts::GraphFacts;
pub(crate) use parts::{NAMELESS, parts};
pub(crate) use roles::{Role, gives_values, in_order, roles};
pub(crate) use weights::{FEW_VALUES, values};

/// Numbers of the blocks to which the layers of a graph belong: 17 for a layer of `model.layers.17`. A layer outside of
/// blocks has the number of its own name, because a model of few layers has no blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockNumbers(HashMap<LayerId, u64>);

impl BlockNumbers {
    /// Divides a graph, in time that grows linearly with its size.
    pub(crate) fn new(graph: &Graph) -> Self {
        let named = graph.layers().filter_map(|layer| Some((layer.id(), number_of(numbered_prefix(layer.name())?)?)));
        let mut numbers: HashMap<LayerId, u64> = named.collect();
        for part in parts(&GraphFacts::new(graph)).parts {
            if let Some(number) = part.number {
                numbers.extend(part.layers.into_iter().map(|id| (id, number)));
            }
        }
        Self(numbers)
    }

    /// `None` for a layer outside of blocks.
    pub(crate) fn of(&self, layer: LayerId) -> Option<u64> {
        self.0.get(&layer).copied()
    }
}

pub(crate) fn layers_of_blocks(model: &Model, numbers: &RangeInclusive<u64>) -> Vec<(Place, LayerId)> {
    let mut chosen = Vec::new();
    for (place, graph) in model.walk() {
        let known = BlockNumbers::new(graph);
        let ids = graph.layers().map(Layer::id);
        let inside = ids.filter(|&id| known.of(id).is_some_and(|number| numbers.contains(&number)));
        chosen.extend(inside.map(|id| (place.clone(), id)));
    }
    chosen
}

pub(crate) fn numbers_of_blocks(model: &Model) -> Option<RangeInclusive<u64>> {
    let graphs = model.walk().map(|(_, graph)| BlockNumbers::new(graph));
    let numbers: BTreeSet<u64> = graphs.flat_map(|known| known.0.into_values()).collect();
    Some(*numbers.first()?..=*numbers.last()?)
}

/// Describes which numbers the blocks of a model have, for a selection that names others.
pub(crate) fn no_blocks(model: &Model, asked: &RangeInclusive<u64>) -> String {
    let asked = match (asked.start(), asked.end()) {
        (first, last) if first == last => format!("no block has the number {first}"),
        (first, last) => format!("not all blocks from {first} to {last} are there"),
    };
    match numbers_of_blocks(model) {
        Some(known) => format!("{asked}; the model has the blocks {} to {}", known.start(), known.end()),
        None => format!("{asked}; the model has no repeated blocks"),
    }
}

/// Constants, shape computations and inputs of the model do not enter: they stay with the layers.
pub(crate) fn border(graph: &Graph, inside: &HashSet<LayerId>) -> (Vec<Output>, Vec<Output>) {
    let roles = roles(graph);
    let (mut enter, mut leave) = (Vec::new(), Vec::new());
    for layer in in_order(graph) {
        let to_inside = inside.contains(&layer.id()) && ops::kind(layer) != LayerKind::Result;
        for (producer, port) in graph.feeds(layer.id()).into_iter().flatten() {
            let list = match (inside.contains(&producer.id()), to_inside) {
                _ if roles.get(producer.id()) != Some(&Role::Data) => continue,
                _ if ops::kind(producer) == LayerKind::Parameter => continue,
                (false, true) => &mut enter,
                (true, false) => &mut leave,
                _ => continue,
            };
            let tensor = producer.id().output(port);
            if !list.contains(&tensor) {
                list.push(tensor);
            }
        }
    }
    (enter, leave)
}
