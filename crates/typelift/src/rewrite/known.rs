//! Layers with known values, which are replaced by constants.

use std::sync::Arc;

use typelift_promote::ElementType;

use super::bound::{Bindings, Bound};
use super::build::Added;
use super::swap::{Found, Placed, Scan, is_random};
use super::values;
use crate::base::hash::HashSet;
use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::infer::{Evaluator, Values};
use crate::model::graph::{EditError, Graph, Layer, LayerId, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::Array;
use crate::ops::{self, LayerKind};

/// Maximum number of elements of a constant that replaces a layer.
const MOST_WRITTEN: u64 = 4096;

/// The layers whose outputs are all known, those nearest to the outputs of the graph first.
pub(super) fn layers(scan: &mut Scan<'_>) -> Vec<Found> {
    let graph = scan.graph;
    let Ok(order) = graph.topological_order() else { return Vec::new() };
    let quantized = quantized(graph, &order);
    let mut exact = Exact::new(graph, scan.model.weights());
    let mut folded = HashSet::default();
    let mut found = Vec::new();
    for layer in order.iter().rev().filter_map(|&id| graph.layer(id)) {
        let id = layer.id();
        if !can_be_known(layer) || !scan.is_open(id) {
            continue;
        }
        if quantized.contains(&id) || Marks::of(layer, scan.model.version()).is_decompression() {
            continue;
        }
        // A layer that only feeds replaced layers is removed with them.
        if graph.users(id).all(|user| folded.contains(&user)) {
            folded.insert(id);
            continue;
        }
        let used = (0..layer.outputs().len()).map(|port| id.output(port));
        let values = used.map(|output| values_of(&mut exact, graph, output).map(Bound::Values));
        if let Some(names) = values.collect::<Option<Vec<_>>>() {
            folded.insert(id);
            found.push(scan.take([id], names));
        }
    }
    found
}

/// The If layers whose conditions are known, each with the number of the executed branch.
pub(super) fn choices(scan: &mut Scan<'_>) -> Vec<Found> {
    let mut exact = Exact::new(scan.graph, scan.model.weights());
    let mut found = Vec::new();
    for layer in scan.graph.layers().filter(|layer| layer.bodies().len() == 2) {
        let branch = if scan.is_open(layer.id()) { exact.branch(layer) } else { None };
        found.extend(branch.map(|branch| scan.take([layer.id()], vec![Bound::Number(branch as f64)])));
    }
    found
}

/// Values of tensors in one graph that every device computes.
///
/// A shape with open dimensions has different lower and upper bounds. An operation that takes only its fixed dimensions,
/// such as a Gather, has an exact result again.
pub(super) struct Exact<'a> {
    graph: &'a Graph,
    evaluator: Evaluator,
    known: Values,
}

impl<'a> Exact<'a> {
    pub(super) fn new(graph: &'a Graph, weights: &Weights) -> Self {
        Self { graph, evaluator: Evaluator::exact(weights), known: Values::default() }
    }

    /// `None` if they are unknown.
    fn values(&mut self, tensor: Output) -> Option<Array> {
        self.evaluator.bounds(self.graph, &mut self.known, None, tensor)?.exact().cloned()
    }

    /// The executed branch of an If, if its condition is known.
    pub(super) fn branch(&mut self, layer: &Layer) -> Option<usize> {
        let truths = self.values(self.graph.producer(layer.id().input(0))?)?.truths();
        truths.first().map(|&holds| usize::from(!holds))
    }
}

/// Replaces an If by the branch that runs.
pub(super) fn choose(edit: &mut Edit<'_>, bound: &Bindings, root: LayerId) -> Result<Placed, EditError> {
    let branch = match bound.names.first() {
        Some(Some(Bound::Number(branch))) => *branch as usize,
        _ => 0,
    };
    Ok(Placed { added: edit.inline_body(root, branch)?, ..Placed::default() })
}

/// Plugins use the stored values directly, so OpenVINO keeps these layers too.
fn quantized(graph: &Graph, order: &[LayerId]) -> HashSet<LayerId> {
    let mut found = HashSet::default();
    let mut others = HashSet::default();
    for layer in order.iter().filter_map(|&id| graph.layer(id)) {
        let feeds = graph.feeds(layer.id());
        let is_made = |feed: &Option<(&Layer, usize)>| {
            feed.is_some_and(|(from, _)| found.contains(&from.id()) || others.contains(&from.id()))
        };
        let is_constant = ops::kind(layer) == LayerKind::Constant;
        if !is_constant && (!values::computes(layer) || feeds.is_empty() || !feeds.iter().all(is_made)) {
            continue;
        }
        let of_quantized = feeds.iter().flatten().any(|(from, _)| found.contains(&from.id()));
        if of_quantized || quantizes(graph, layer) {
            found.insert(layer.id())
        } else {
            others.insert(layer.id())
        };
    }
    found
}

fn quantizes(graph: &Graph, layer: &Layer) -> bool {
    let name = layer.operation().map_or("", |row| row.name);
    let is_narrow = |tensor: Output| graph.output(tensor).is_some_and(|port| is_quantized(port.element_type()));
    let is_scaled = |user: LayerId| {
        let name = graph.layer(user).and_then(Layer::operation).map_or("", |row| row.name);
        ["Multiply", "Subtract"].contains(&name)
    };
    let id = layer.id();
    name == "FakeQuantize"
        || name == "Convert" && graph.producer(id.input(0)).is_some_and(is_narrow) && graph.users(id).any(is_scaled)
}

fn is_quantized(ty: ElementType) -> bool {
    ty.bits() <= 8 && ty != ElementType::Boolean
}

fn can_be_known(layer: &Layer) -> bool {
    // OpenVINO cannot read an empty constant.
    let is_written = |count: u64| (1..=MOST_WRITTEN).contains(&count);
    let is_small = layer.outputs().iter().all(|port| port.shape().element_count().is_some_and(is_written));
    is_small && ops::kind(layer) != LayerKind::Constant && !ops::is_own(layer) && values::computes(layer)
}

/// The values of an output, if they are known and can be stored.
fn values_of(exact: &mut Exact, graph: &Graph, output: Output) -> Option<Arc<Array>> {
    let values = exact.values(output)?;
    let port = graph.output(output)?;
    let fits = values.element_type == port.element_type() && port.shape().is_compatible(&values.shape());
    values.encode().filter(|_| fits).map(|_| Arc::new(values))
}

pub(super) fn replace(
    edit: &mut Edit<'_>,
    bound: &Bindings,
    root: LayerId,
    constants: &mut Added,
) -> Result<Placed, EditError> {
    let mut placed = Placed::default();
    for (port, values) in bound.names.iter().enumerate() {
        let Some(Bound::Values(array)) = values else { continue };
        if edit.consumers(root.output(port)).next().is_none() {
            continue;
        }
        // OpenVINO generates the same random numbers for two layers with the same inputs, so such inputs get separate
        // constants.
        let share = !edit.users(root).any(|user| edit.layer(user).is_some_and(is_random));
        let constant = super::build::constant(edit, constants, array, share, None)?;
        placed.added.push(constant.layer);
        placed.swaps.push((root.output(port), constant));
    }
    Ok(placed)
}
