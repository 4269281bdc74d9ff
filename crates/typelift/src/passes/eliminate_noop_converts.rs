use std::collections::HashMap;

use petgraph::stable_graph::NodeIndex;
use petgraph::visit::EdgeRef;
use typelift_promote::ElementType;

use super::{Action, Changes};
use crate::graph::{Graph, Output, OutputPort};

pub(super) fn rewrite(graph: &mut Graph, changes: &mut Changes) {
    let Ok(order) = graph.topological_order() else { return };
    // What stands for the output of each Convert that goes, and in whose place it went, first ones first.
    let mut replaced = HashMap::<Output, Output>::new();
    let mut gone = Vec::new();
    for node in order {
        let Some(layer) = graph.weight(node) else { continue };
        if !layer.ty.eq_ignore_ascii_case("Convert") {
            continue;
        }
        let feed = graph.feeds(node).first().copied().flatten();
        let (Some((source, port)), Some(output)) = (feed, layer.outputs.first()) else { continue };
        let Some(producer) = graph.weight(source) else { continue };
        let Some(input) = producer.outputs.get(port) else { continue };
        let same = input.element_type == output.element_type && output.element_type != ElementType::Dynamic;
        if !same || names_a_result(graph, node, source) {
            continue;
        }
        let direct = Output { layer: producer.id, port };
        let source = replaced.get(&direct).copied().unwrap_or(direct);
        replaced.insert(Output { layer: layer.id, port: 0 }, source);
        gone.push((layer.id, source));
        let reason = format!("`{}` already is {}", producer.name, output.element_type);
        changes.add(Action::Removed, layer, [output.element_type; 2], reason);
    }
    if gone.is_empty() {
        return;
    }
    graph.rewire(|from, to| {
        if replaced.contains_key(&Output { layer: to.layer, port: 0 }) {
            return None;
        }
        Some((replaced.get(&from).copied().unwrap_or(from), to))
    });
    for (id, source) in gone {
        let Ok(layer) = graph.remove(id) else { continue };
        let names: Vec<String> = layer.outputs.iter().flat_map(OutputPort::names).collect();
        if !names.is_empty() {
            let mut all = graph.output(source).map(OutputPort::names).unwrap_or_default();
            all.extend(names);
            // The producer is there: it fed the Convert.
            let _ = graph.set_names(source, all);
        }
    }
}

/// Whether a Result would lose its name with this Convert of an output of `source`.
fn names_a_result(graph: &Graph, convert: NodeIndex, source: NodeIndex) -> bool {
    let is = |node, ty: &str| graph.weight(node).is_some_and(|layer| layer.ty.eq_ignore_ascii_case(ty));
    let feeds_result = graph.petgraph().edges(convert).any(|edge| is(edge.target(), "Result"));
    feeds_result && (is(source, "Parameter") || graph.petgraph().edges(source).nth(1).is_some())
}
