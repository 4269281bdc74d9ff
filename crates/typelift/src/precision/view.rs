//! View of one graph of an inferred model, with the values of its constants.

use std::borrow::Cow;
use std::cell::OnceCell;

use typelift_promote::ElementType;

use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{Graph, IrVersion, Layer, LayerId, Model};
use crate::model::weights::Weights;
use crate::ops::values::conversion::Stored;
use crate::ops::{self, LayerKind, Spread};
use crate::promotion::passes;

/// Maximum number of values of a constant that may be an epsilon or an exponent.
const MOST_VALUES: u64 = 1 << 16;

/// The model after promotions were replaced, as plugins see it. Layers keep their ids.
pub(super) fn lowered(model: &Model) -> Cow<'_, Model> {
    if !model.walk().any(|(_, graph)| graph.unordered().any(ops::is_promotion)) {
        return Cow::Borrowed(model);
    }
    let mut copy = model.clone();
    match passes::run_with(&mut copy, passes::LOWER_WITHOUT_NOOPS, false) {
        Ok(_) => Cow::Owned(copy),
        Err(_) => Cow::Borrowed(model),
    }
}

/// Graph with the values of its constants.
pub(super) struct GraphView<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    pub(super) version: IrVersion,
    /// All layers, each after its producers.
    pub(super) order: Vec<LayerId>,
    positions: OnceCell<HashMap<LayerId, usize>>,
}

impl<'a> GraphView<'a> {
    pub(super) fn new(model: &'a Model, graph: &'a Graph) -> Self {
        let order = graph.topological_order().unwrap_or_default();
        Self { graph, weights: model.weights(), version: model.version(), order, positions: OnceCell::new() }
    }

    pub(super) fn ordered(&self, layers: impl IntoIterator<Item = LayerId>) -> Vec<LayerId> {
        let positions =
            self.positions.get_or_init(|| self.order.iter().enumerate().map(|(at, &layer)| (layer, at)).collect());
        let mut found: Vec<_> = layers.into_iter().filter(|layer| positions.contains_key(layer)).collect();
        found.sort_unstable_by_key(|layer| positions.get(layer));
        found
    }

    pub(super) fn layer(&self, id: LayerId) -> Option<&'a Layer> {
        self.graph.layer(id)
    }

    pub(super) fn spreads(&self, id: LayerId, what: Spread) -> bool {
        self.layer(id).and_then(Layer::operation).is_some_and(|operation| operation.spreads(what))
    }

    pub(super) fn is_of(&self, id: LayerId, names: &[&str]) -> bool {
        self.layer(id).and_then(Layer::operation).is_some_and(|operation| names.contains(&operation.name))
    }

    pub(super) fn float_sources(&self, id: LayerId) -> impl Iterator<Item = LayerId> {
        let feeds = self.graph.feeds(id).into_iter().flatten();
        feeds.filter(|(layer, port)| is_float(layer, *port)).map(|(layer, _)| layer.id())
    }

    pub(super) fn feeds_floats_to(&self, id: LayerId, set: &HashSet<LayerId>) -> bool {
        let Some(layer) = self.layer(id) else { return false };
        self.graph.uses(id).any(|(port, input)| set.contains(&input.layer) && is_float(layer, port))
    }

    pub(super) fn source(&self, id: LayerId, input: usize) -> Option<LayerId> {
        self.graph.producer(id.input(input)).map(|output| output.layer)
    }

    /// The values of a constant or of a Convert of one; `None` for other layers, and for too many values.
    pub(super) fn constant(&self, id: LayerId) -> Option<Vec<f64>> {
        let constant = self.values_of(id)?;
        let count = constant.outputs().first()?.shape().element_count()?;
        if count <= MOST_VALUES { constant.numbers(self.weights) } else { None }
    }

    /// The first value of a constant, or of a Convert of one, that satisfies `is`.
    pub(super) fn value(&self, id: LayerId, is: impl Fn(f64) -> bool) -> Option<f64> {
        let constant = self.values_of(id).filter(|layer| ops::is_constant(layer))?;
        Stored::of(constant)?.find(self.weights, is)
    }

    /// The first integer of a constant, or of a Convert of one, that satisfies `is`.
    pub(super) fn integer(&self, id: LayerId, is: impl Fn(i128) -> bool) -> Option<i128> {
        let constant = self.values_of(id).filter(|layer| ops::is_constant(layer))?;
        Stored::of(constant)?.find_integer(self.weights, is)
    }

    fn values_of(&self, id: LayerId) -> Option<&'a Layer> {
        let layer = self.layer(id)?;
        if ops::kind(layer) == LayerKind::Convert { self.layer(self.source(id, 0)?) } else { Some(layer) }
    }
}

pub(super) fn is_float(layer: &Layer, port: usize) -> bool {
    layer
        .outputs()
        .get(port)
        .is_some_and(|port| port.element_type().is_float() && port.element_type() != ElementType::Nf4)
}
