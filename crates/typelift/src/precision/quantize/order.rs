//! Order in which nncf visits layers. It determines the last layer, and the choice between equal scores.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{Graph, Layer, LayerId};
use crate::ops::{self, LayerKind};

/// Layers in nncf's order, and those that depend on an input or a variable.
pub(super) struct Order {
    /// All layers, each after its producers.
    pub(super) layers: Vec<LayerId>,
    /// The layers that depend on a Parameter or a ReadValue.
    pub(super) reachable: HashSet<LayerId>,
}

impl Order {
    pub(super) fn of(graph: &Graph) -> Self {
        let all = from_the_end(graph);
        let mut numbers = numbered_from_inputs(graph, &all);
        let reachable = numbers.keys().copied().collect();
        for &layer in &all {
            let next = numbers.len();
            numbers.entry(layer).or_insert(next);
        }
        for layer in graph.layers() {
            let next = numbers.len();
            numbers.entry(layer.id()).or_insert(next);
        }
        Self { layers: topological(graph, &numbers), reachable }
    }
}

/// Maximum number of zeros that make a name unique. nncf has no limit, but the names of many layers would take the square
/// of their number.
const MOST_ZEROS: usize = 32;

/// New names for layers that share a name with an earlier one, in nncf's order. The names of inserted layers derive
/// from that of the constant, so it must be unique. Numbers follow after [`MOST_ZEROS`].
pub(super) fn renamed(graph: &Graph) -> Vec<(LayerId, String)> {
    let mut names = HashSet::default();
    if graph.unordered().all(|layer| names.insert(layer.name())) {
        return Vec::new();
    }
    let (mut known, mut renamed) = (HashSet::default(), Vec::new());
    // Number of names that were tried for each name of the file.
    let mut tried = HashMap::<&str, usize>::default();
    let all = from_the_end(graph);
    let connected: HashSet<_> = all.iter().copied().collect();
    let others = graph.layers().map(Layer::id).filter(|id| !connected.contains(id));
    for layer in all.iter().copied().chain(others).filter_map(|id| graph.layer(id)) {
        let tries = tried.entry(layer.name()).or_default();
        let mut name = layer.name().to_owned();
        while !known.insert(name.clone()) {
            *tries += 1;
            name = match *tries {
                zeros @ ..=MOST_ZEROS => layer.name().to_owned() + &"0".repeat(zeros),
                number => format!("{}_{number}", layer.name()),
            };
        }
        if name != layer.name() {
            renamed.push((layer.id(), name));
        }
    }
    renamed
}

fn of_kind(graph: &Graph, kind: LayerKind) -> impl Iterator<Item = LayerId> {
    graph.layers().filter(move |layer| ops::kind(layer) == kind).map(Layer::id)
}

fn from_the_end(graph: &Graph) -> Vec<LayerId> {
    let kinds = [LayerKind::Result, LayerKind::Assign, LayerKind::Parameter];
    let mut stack: Vec<_> = kinds.into_iter().flat_map(|kind| of_kind(graph, kind)).collect();
    let (mut seen, mut order) = (HashSet::default(), Vec::new());
    while let Some(layer) = stack.pop() {
        if seen.insert(layer) {
            order.push(layer);
            stack.extend(graph.producers(layer).into_iter().flatten().map(|output| output.layer));
        }
    }
    order
}

/// Numbers the layers breadth first from the Parameters, and then from the ReadValues. The consumers of an output follow by
/// name.
fn numbered_from_inputs(graph: &Graph, all: &[LayerId]) -> HashMap<LayerId, usize> {
    let reads =
        all.iter().copied().filter(|id| graph.layer(*id).is_some_and(|layer| ops::kind(layer) == LayerKind::ReadValue));
    let mut queue: VecDeque<_> = of_kind(graph, LayerKind::Parameter).chain(reads).collect();
    let mut numbers = HashMap::default();
    while let Some(id) = queue.pop_front() {
        let next = numbers.len();
        if graph.layer(id).is_none() || numbers.contains_key(&id) {
            continue;
        }
        numbers.insert(id, next);
        let mut uses: Vec<_> =
            graph.uses(id).filter_map(|(port, input)| Some((port, graph.layer(input.layer)?))).collect();
        uses.sort_by_key(|(port, user)| (*port, user.name()));
        queue.extend(uses.into_iter().map(|(_, user)| user.id()));
    }
    numbers
}

/// The layers in topological order. If several can be next, the one with the smallest number is chosen.
fn topological(graph: &Graph, numbers: &HashMap<LayerId, usize>) -> Vec<LayerId> {
    let mut waiting: HashMap<LayerId, usize> = HashMap::default();
    let mut ready = BinaryHeap::new();
    for layer in graph.layers() {
        let sources: HashSet<_> = graph.sources(layer.id()).collect();
        waiting.insert(layer.id(), sources.len());
        if sources.is_empty() {
            ready.push(Reverse((numbers.get(&layer.id()).copied(), layer.id())));
        }
    }
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(Reverse((_, id))) = ready.pop() {
        order.push(id);
        for user in graph.users(id).collect::<HashSet<_>>() {
            if let Some(left) = waiting.get_mut(&user) {
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse((numbers.get(&user).copied(), user)));
                }
            }
        }
    }
    order
}
