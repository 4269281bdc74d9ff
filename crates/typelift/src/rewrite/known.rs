//! Layers whose values are known: constants take their place.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::apply::{Found, OnRefusal, Placed, is_own, swap};
use super::build::Added;
use super::matching::{Bindings, Bound};
use super::values;
use crate::array::Array;
use crate::edit::Edit;
use crate::graph::{EditError, Graph, Layer, LayerId, Model, Output};
use crate::infer::Probe;
use crate::ops::{self, LayerKind, Surroundings};

/// Values of more elements are not written into a model.
const MOST_WRITTEN: u64 = 4096;

/// The layers of which all values are known, those nearest to the outputs first.
pub(super) fn layers(
    model: &Model,
    graph: &Graph,
    rule: usize,
    taken: &mut FxHashSet<LayerId>,
    is_settled: impl Fn(LayerId) -> bool,
) -> Vec<Found> {
    let Ok(order) = graph.topological_order() else { return Vec::new() };
    let mut probe = Probe::new(model.weights());
    let mut folded = FxHashSet::default();
    let mut found = Vec::new();
    for layer in order.iter().rev().filter_map(|&id| graph.layer(id)) {
        let id = layer.id();
        if taken.contains(&id) || !can_be_known(layer) || is_settled(id) {
            continue;
        }
        // What only feeds such layers goes with them.
        if graph.users(id).all(|user| folded.contains(&user)) {
            folded.insert(id);
            continue;
        }
        let used = (0..layer.outputs().len()).map(|port| id.output(port));
        let values = used.map(|output| values_of(&mut probe, graph, output).map(Bound::Values).map(Some));
        if let Some(names) = values.collect::<Option<_>>() {
            taken.insert(id);
            folded.insert(id);
            let bound = Bindings { names, layers: [(id, 0)].into_iter().collect(), ..Bindings::default() };
            found.push(Found { rule, bound, same: None });
        }
    }
    found
}

/// The Ifs whose conditions are known, each with the number of the branch that runs.
pub(super) fn choices(
    model: &Model,
    graph: &Graph,
    rule: usize,
    taken: &mut FxHashSet<LayerId>,
    is_settled: impl Fn(LayerId) -> bool,
) -> Vec<Found> {
    let mut probe = Probe::new(model.weights());
    let mut found = Vec::new();
    for layer in graph.layers().filter(|layer| layer.bodies().len() == 2) {
        let id = layer.id();
        if taken.contains(&id) || is_settled(id) {
            continue;
        }
        if let Some(branch) = branch(&mut probe, graph, layer) {
            taken.insert(id);
            let names = [Some(Bound::Number(branch as f64))].into_iter().collect();
            let bound = Bindings { names, layers: [(id, 0)].into_iter().collect(), ..Bindings::default() };
            found.push(Found { rule, bound, same: None });
        }
    }
    found
}

/// The branch of an If that runs, where its condition is known.
pub(super) fn branch(probe: &mut Probe, graph: &Graph, layer: &Layer) -> Option<usize> {
    let bounds = probe.bounds(graph, graph.producer(layer.id().input(0))?)?;
    let truths = bounds.exact()?.truths();
    truths.first().map(|&holds| usize::from(!holds))
}

/// Puts the branch that runs in the place of an If.
pub(super) fn choose(edit: &mut Edit<'_>, bound: &Bindings, root: LayerId) -> Result<Placed, EditError> {
    let branch = match bound.names.first() {
        Some(Some(Bound::Number(branch))) => *branch as usize,
        _ => 0,
    };
    let added = edit.inline_body(root, branch)?;
    Ok(Placed { added, root_stays: false, edited: false, non_finite: 0 })
}

fn can_be_known(layer: &Layer) -> bool {
    let is_small = layer.outputs().iter().all(|port| port.shape().element_count().is_some_and(|it| it <= MOST_WRITTEN));
    is_small && ops::kind(layer) != LayerKind::Constant && !is_own(layer) && values::computes(layer)
}

fn values_of(probe: &mut Probe, graph: &Graph, output: Output) -> Option<Arc<Array>> {
    let bounds = probe.bounds(graph, output)?;
    let port = graph.output(output)?;
    let values = bounds.exact().filter(|values| values.element_type == port.element_type())?;
    values.encode().map(|_| Arc::new(values.clone()))
}

/// Puts constants in the place of a layer.
pub(super) fn replace(
    edit: &mut Edit<'_>,
    bound: &Bindings,
    root: LayerId,
    constants: &mut Added,
    refusal: OnRefusal,
) -> Result<Placed, EditError> {
    let mut added = Vec::new();
    for (port, values) in bound.names.iter().enumerate() {
        let Some(Bound::Values(array)) = values else { continue };
        if edit.consumers(root.output(port)).next().is_none() {
            continue;
        }
        let constant = super::build::constant(edit, constants, array, true)?;
        added.push(constant.layer);
        swap(edit, root.output(port), constant, refusal)?;
    }
    Ok(Placed { added, root_stays: false, edited: false, non_finite: 0 })
}
