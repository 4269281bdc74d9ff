//! Values of tensors that depend only on constants and fixed dimensions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::values;
use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{Graph, Layer, LayerId, Output};
use crate::model::weights::Weights;
use crate::ops::evaluate::{Bounds, Evaluate, Evaluation};
use crate::ops::values::array::{Array, MAX_ELEMENTS};
use crate::ops::{self, Attributes, LayerKind};

/// Maximum number of input and output elements of all computations in a graph.
const BUDGET: u64 = 1 << 22;

/// Computes the values of tensors in one graph as a device does. Unlike in inference, the largest number of a type is
/// an ordinary number, and random numbers are never known.
///
/// A shape with open dimensions has different lower and upper bounds. An operation that takes only its fixed dimensions,
/// such as a Gather, has an exact result again.
pub(super) struct Exact<'a> {
    graph: &'a Graph,
    weights: &'a Weights,
    /// Layers that depend only on constants and shapes of known rank.
    possible: HashSet<LayerId>,
    known: HashMap<Output, Option<Arc<Bounds>>>,
    budget: u64,
}

impl<'a> Exact<'a> {
    /// `order` are the layers of the graph, producers first.
    pub(super) fn new(graph: &'a Graph, weights: &'a Weights, order: &[LayerId]) -> Self {
        let mut possible = HashSet::default();
        for layer in order.iter().filter_map(|&id| graph.layer(id)) {
            if is_possible(graph, layer, &possible) {
                possible.insert(layer.id());
            }
        }
        Self { graph, weights, possible, known: HashMap::default(), budget: BUDGET }
    }

    /// `None` if they are unknown.
    pub(super) fn values(&mut self, tensor: Output) -> Option<Array> {
        let mut pending = vec![tensor];
        while let Some(&next) = pending.last() {
            if self.known.contains_key(&next) {
                pending.pop();
                continue;
            }
            let feeds = self.feeds(next);
            let waiting = pending.len();
            let open = feeds.iter().flatten().filter(|&feed| !self.known.contains_key(feed));
            pending.extend(open);
            if pending.len() == waiting {
                let found = feeds.and_then(|feeds| self.evaluate(next, &feeds)).map(Arc::new);
                self.known.insert(next, found);
            }
        }
        self.known.get(&tensor)?.as_ref()?.exact().cloned()
    }

    /// `None` if it cannot be known.
    fn feeds(&self, tensor: Output) -> Option<SmallVec<[Output; 4]>> {
        let layer = self.graph.layer(tensor.layer).filter(|layer| self.possible.contains(&layer.id()))?;
        if matches!(layer.operation()?.evaluator(), Evaluate::Source(_)) {
            return Some(SmallVec::new());
        }
        self.graph.producers(layer.id()).into_iter().collect()
    }

    fn evaluate(&mut self, tensor: Output, feeds: &[Output]) -> Option<Bounds> {
        let layer = self.graph.layer(tensor.layer)?;
        let operation = layer.operation()?;
        let inputs = feeds.iter().map(|feed| self.known.get(feed)?.clone()).collect::<Option<Vec<_>>>()?;
        let count = layer.outputs().get(tensor.port)?.shape().element_count().unwrap_or(0);
        self.budget =
            self.budget.checked_sub(inputs.iter().map(|input| input.lower.len() as u64).sum::<u64>() + count)?;
        let evaluation = Evaluation::new(Attributes::new(layer, operation), self.graph, tensor.port, self.weights);
        let inputs: Vec<_> = inputs.iter().map(|input| &**input).collect();
        operation.evaluator().exact_bounds(&evaluation, &inputs)
    }
}

fn is_possible(graph: &Graph, layer: &Layer, possible: &HashSet<LayerId>) -> bool {
    let is_small = |count: u64| count <= MAX_ELEMENTS as u64;
    if !layer.outputs().iter().all(|port| port.shape().element_count().is_none_or(is_small)) {
        return false;
    }
    let feeds = graph.feeds(layer.id());
    match layer.operation().map(ops::Operation::evaluator) {
        None | Some(Evaluate::Never) => false,
        Some(Evaluate::Source(_)) if ops::kind(layer) == LayerKind::Constant => true,
        Some(Evaluate::Source(_)) => feeds
            .first()
            .copied()
            .flatten()
            .is_some_and(|(from, port)| from.outputs().get(port).is_some_and(|port| port.shape().rank().is_some())),
        Some(_) => {
            values::computes(layer)
                && feeds.iter().all(|feed| feed.is_some_and(|(from, _)| possible.contains(&from.id())))
        }
    }
}
