use petgraph::stable_graph::NodeIndex;
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashMap as HashMap;
use typelift_promote::ElementType;

use super::conversions::Conversions;
use super::{Action, Changes, remove_unused};
use crate::graph::{Graph, Output, OutputPort};
use crate::ops::{LayerKind, kind};

/// Takes out the Converts to the type that their input already has.
pub(super) fn noops(graph: &mut Graph, changes: &mut Changes) {
    while rewrite(graph, changes, false) {}
}

/// Takes out every Convert whose output another tensor can stand for, and lets each of the others start as early as it
/// can.
pub(super) fn all(graph: &mut Graph, changes: &mut Changes) {
    while rewrite(graph, changes, true) {}
}

/// Tells whether anything changed: then a Convert that gives a Result its name may go, whose tensor has no other uses any more.
/// That happens a few times at most: what goes later was moved in the first round, and leaves its tensor as many uses as
/// before.
fn rewrite(graph: &mut Graph, changes: &mut Changes, chains: bool) -> bool {
    let Ok(order) = graph.topological_order() else { return false };
    let mut conversions = Conversions::default();
    // What stands for the output of each Convert that goes, and in whose place it went, first ones first.
    let mut replaced = HashMap::<Output, Output>::default();
    let mut moved = HashMap::<Output, Output>::default();
    let mut gone = Vec::new();
    for node in order {
        let Some(layer) = graph.weight(node).filter(|layer| kind(layer) == LayerKind::Convert) else { continue };
        let feed = graph.feeds(node).first().copied().flatten();
        let (Some((source, port)), Some(output)) = (feed, layer.outputs.first()) else { continue };
        let Some(producer) = graph.weight(source) else { continue };
        let Some(input) = producer.outputs.get(port) else { continue };
        let (from, to) = (input.element_type, output.element_type);
        let made = Output { layer: layer.id, port: 0 };
        let direct = Output { layer: producer.id, port };
        let direct = replaced.get(&direct).copied().unwrap_or(direct);
        let stand_in = match chains {
            true => conversions.find(graph, direct, to),
            false => (from == to).then_some(direct),
        };
        let needed =
            |stand_in: Output| graph.node(stand_in.layer).is_none_or(|origin| names_a_result(graph, node, 0, origin));
        match stand_in.filter(|&stand_in| to != ElementType::Dynamic && !needed(stand_in)) {
            Some(stand_in) => {
                replaced.insert(made, stand_in);
                gone.push((layer.id, stand_in));
                let holder = graph.layer(stand_in.layer).map(|layer| layer.name()).unwrap_or_default();
                let reason = match from == to {
                    true => format!("`{holder}` already is {to}"),
                    false => format!("`{holder}` holds the same values as {to}"),
                };
                changes.add(Action::Removed, layer, [from, to], reason);
            }
            None if chains => {
                let origin = conversions.origin(graph, direct, to);
                if origin != direct {
                    moved.insert(made, origin);
                }
                conversions.add(graph, direct, to, made);
            }
            None => {}
        }
    }
    if gone.is_empty() && moved.is_empty() {
        return false;
    }
    let mut unused = Vec::new();
    graph.rewire(|from, to| {
        let made = Output { layer: to.layer, port: 0 };
        if replaced.contains_key(&made) {
            unused.push(from.layer);
            return None;
        }
        let source = moved.get(&made).or_else(|| replaced.get(&from)).copied().unwrap_or(from);
        if source != from {
            unused.push(from.layer);
        }
        Some((source, to))
    });
    for (id, source) in gone {
        let Ok(layer) = graph.remove(id) else { continue };
        if let Some(output) = layer.outputs.first() {
            hand_over_names(graph, output, source);
        }
    }
    if chains {
        remove_unused(graph, unused, changes);
    }
    true
}

/// Gives a tensor the names of another one, in whose place it is.
pub(super) fn hand_over_names(graph: &mut Graph, output: &OutputPort, to: Output) {
    let names = output.names();
    if !names.is_empty() {
        let mut all = graph.output(to).map(OutputPort::names).unwrap_or_default();
        all.extend(names);
        // Whoever has a place for it is there.
        let _ = graph.set_names(to, all);
    }
}

/// Whether a Result that this output feeds would lose its name, were it fed by `origin`.
pub(super) fn names_a_result(graph: &Graph, node: NodeIndex, port: usize, origin: NodeIndex) -> bool {
    let is = |node, wanted| graph.weight(node).is_some_and(|layer| kind(layer) == wanted);
    let mut uses = graph.petgraph().edges(node).filter(|edge| edge.weight().from_port as usize == port);
    let has_other_uses = || graph.petgraph().edges(origin).any(|edge| edge.target() != node);
    uses.any(|edge| is(edge.target(), LayerKind::Result)) && (is(origin, LayerKind::Parameter) || has_other_uses())
}
