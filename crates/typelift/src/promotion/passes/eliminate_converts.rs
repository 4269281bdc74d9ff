//! Removal of Converts whose result another tensor already has.

use typelift_promote::ElementType;

use super::conversions::Conversions;
use super::{Action, Changes, OneGraph, remove_unused};
use crate::base::hash::{HashMap, HashSet};
use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::model::graph::{EditError, Graph, Layer, LayerId, Output, OutputPort};
use crate::ops::{LayerKind, kind};

/// Pass that removes Converts whose output another tensor can replace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Elimination {
    /// Removes Converts to the type that their input already has.
    Noops,
    /// Does the same, except after layers with several outputs. If a Convert feeds an output of the model, its producer
    /// gets its name.
    NoopsOfSingles,
    /// Removes all Converts whose result another tensor has. Connects the others to their earliest possible source.
    Chains,
}

impl OneGraph for Elimination {
    fn concerns(&self, graph: &Graph, layer: &Layer) -> bool {
        let is_single = || graph.sources(layer.id()).filter_map(|id| graph.layer(id)).all(|it| it.outputs().len() == 1);
        kind(layer) == LayerKind::Convert
            && match self {
                Self::Noops => is_noop(graph, layer),
                Self::NoopsOfSingles => is_noop(graph, layer) && is_single(),
                Self::Chains => true,
            }
    }

    fn rewrite(
        &mut self,
        graph: &mut Edit<'_>,
        mut found: Vec<LayerId>,
        changes: &mut Changes,
    ) -> Result<(), EditError> {
        while rewrite(graph, found, changes, *self)? {
            let concerned = graph.unordered().filter(|layer| self.concerns(graph, layer));
            found = concerned.map(Layer::id).collect();
        }
        Ok(())
    }
}

fn is_noop(graph: &Graph, layer: &Layer) -> bool {
    let input = graph.producer(layer.id().input(0)).and_then(|input| graph.output(input));
    input.map(OutputPort::element_type) == layer.outputs().first().map(OutputPort::element_type)
}

/// Planned changes of Converts.
#[derive(Default)]
struct Savings {
    /// For the output of a removed Convert, its replacement.
    replaced: HashMap<Output, Output>,
    /// For the output of a Convert, its new source.
    moved: HashMap<Output, Output>,
    /// Outputs of Converts to remove, producers first.
    gone: Vec<Output>,
}

/// Rewrites the graph. Returns true if it changed, because the removal of a Convert can make another one removable. A
/// few rounds are enough.
fn rewrite(
    graph: &mut Edit<'_>,
    converts: Vec<LayerId>,
    changes: &mut Changes,
    selection: Elimination,
) -> Result<bool, EditError> {
    let chains = selection == Elimination::Chains;
    let Savings { replaced, moved, gone } = savings(graph, converts, changes, chains);
    if gone.is_empty() && moved.is_empty() {
        return Ok(false);
    }
    let mut unused = Vec::new();
    let mut wires = Vec::new();
    let results: HashSet<_> = gone
        .iter()
        .copied()
        .filter(|made| selection == Elimination::NoopsOfSingles && feeds_a_result(graph, *made))
        .collect();
    for (from, to) in graph.wires() {
        let made = to.layer.output(0);
        if replaced.contains_key(&made) {
            unused.push(from.layer);
            continue;
        }
        let source = moved.get(&made).or_else(|| replaced.get(&from)).copied().unwrap_or(from);
        if source != from {
            unused.push(from.layer);
            wires.push((source, to));
        }
    }
    graph.connect_all(wires)?;
    for made in &gone {
        let stand_in = replaced[made];
        graph.move_names(*made, stand_in)?;
        if results.contains(made) {
            let name = graph.layer(made.layer).map(|layer| layer.name().to_owned()).unwrap_or_default();
            graph.set_name(stand_in.layer, &name)?;
        }
        if is_convert(graph, stand_in.layer) {
            graph.merge_marks(made.layer, stand_in.layer)?;
        }
    }
    let gone: HashSet<_> = gone.into_iter().map(|made| made.layer).collect();
    unused.retain(|layer| !gone.contains(layer));
    changes.remove(graph, &gone.into_iter().collect::<Vec<_>>())?;
    if chains {
        remove_unused(graph, unused, changes)?;
    }
    Ok(true)
}

fn savings(graph: &Edit<'_>, converts: Vec<LayerId>, changes: &mut Changes, chains: bool) -> Savings {
    let (mut savings, version) = (Savings::default(), graph.version());
    let mut conversions = Conversions::default();
    for id in graph.producers_first(converts) {
        let Some((layer, direct)) = graph.layer(id).zip(graph.producer(id.input(0))) else { continue };
        let Some(output) = layer.outputs().first() else { continue };
        let Some(input) = graph.output(direct) else { continue };
        let (from, to) = (input.element_type(), output.element_type());
        let made = id.output(0);
        let direct = savings.replaced.get(&direct).copied().unwrap_or(direct);
        let stand_in = if chains { conversions.find(graph, direct, to) } else { (from == to).then_some(direct) };
        let marks = |id: LayerId| graph.layer(id).map(|layer| Marks::of(layer, version)).unwrap_or_default();
        let differs =
            |stand_in: Output| is_convert(graph, stand_in.layer) && marks(id).union(&marks(stand_in.layer)).is_none();
        let needed = |stand_in: Output| names_a_result(graph, made, stand_in.layer) || differs(stand_in);
        match stand_in.filter(|&stand_in| to != ElementType::Dynamic && !needed(stand_in)) {
            Some(stand_in) => {
                savings.replaced.insert(made, stand_in);
                savings.gone.push(made);
                let holder = graph.layer(stand_in.layer).map(|layer| layer.name()).unwrap_or_default();
                let reason = if from == to {
                    format!("`{holder}` already has type {to}")
                } else {
                    format!("`{holder}` already has the same values in type {to}")
                };
                changes.add(Action::Removed, layer, [from, to], reason);
            }
            None if chains => {
                let origin = conversions.origin(graph, direct, to);
                if origin != direct {
                    savings.moved.insert(made, origin);
                }
                conversions.add(graph, direct, to, made);
            }
            None => {}
        }
    }
    savings
}

pub(super) fn is_convert(graph: &Graph, id: LayerId) -> bool {
    graph.layer(id).is_some_and(|layer| kind(layer) == LayerKind::Convert)
}

pub(super) fn names_a_result(graph: &Graph, output: Output, origin: LayerId) -> bool {
    let is_parameter = || graph.layer(origin).is_some_and(|layer| kind(layer) == LayerKind::Parameter);
    feeds_a_result(graph, output) && (is_parameter() || graph.users(origin).any(|user| user != output.layer))
}

pub(super) fn feeds_a_result(graph: &Graph, output: Output) -> bool {
    let mut users = graph.consumers(output).filter_map(|input| graph.layer(input.layer));
    users.any(|layer| kind(layer) == LayerKind::Result)
}
