//! Outline of a model that is too large to draw: runs of layers in the order of the data, one box each.

use std::collections::{BTreeMap, HashSet};

use typelift::graph::LayerMap;
use typelift::ops::{self, LayerKind};
use typelift::{Graph, LayerId, Model};

use crate::graphs::{Drawn, Edge, Node, brief};

/// Limit on the data of a page, in bytes.
pub(crate) const MOST_BYTES: usize = 4_800_000;
/// The number of runs of layers that an outline shows.
const RUNS: usize = 120;
/// The number of operations that the details of a run name.
const SHOWN: usize = 12;
/// The number of characters of a layer's name in the name of a run.
const NAME: usize = 24;

/// Returns the message of a page that is too large to draw all layers.
pub(crate) fn message(model: &Model) -> String {
    let run = model.graph().len().div_ceil(RUNS);
    format!(
        "The page would be too large with every layer on it. Each box stands for {run} layers, in the order of the data. \
         `typelift show --around NAME` prints what is around a layer, and `typelift check` all findings."
    )
}

/// Estimates the data in bytes of a page that draws every layer. Counting stops a little above the limit.
pub(crate) fn size(model: &Model, most_bytes: usize) -> usize {
    let mut bytes = 0;
    let mut pending = vec![model.graph()];
    while let Some(graph) = pending.pop() {
        for layer in graph.layers() {
            let is_constant = ops::kind(layer) == LayerKind::Constant;
            // A constant is one line of its consumer. A name is stored once.
            bytes += layer.name().len() + if is_constant { 45 } else { 135 };
            let attributes = layer.attributes().iter().filter(|_| !is_constant);
            bytes += attributes.map(|a| a.name().len() + brief(a.value()).len() + 6).sum::<usize>();
            bytes += layer.inputs().len() * 80;
            // Each output has an explanation of its type.
            bytes += layer.outputs().len() * 120;
            pending.extend(layer.bodies().iter().map(|body| body.graph()));
            if bytes > most_bytes {
                return bytes;
            }
        }
    }
    bytes
}

/// Returns the graph of a model as runs of layers.
pub(crate) fn drawn(model: &Model) -> Drawn<'_> {
    let graph = model.graph();
    // Layers in a cycle are shown in the order of the file.
    let order = graph.topological_order().unwrap_or_else(|_| graph.layers().map(|layer| layer.id()).collect());
    let length = order.len().div_ceil(RUNS).max(1);
    let mut run_of = LayerMap::new(graph);
    for (at, &id) in order.iter().enumerate() {
        run_of.insert(id, at / length);
    }
    let nodes = order.chunks(length).enumerate().map(|(at, run)| node(graph, at * length, run)).collect();
    let mut seen = HashSet::new();
    let edges = graph.wires().filter_map(|(from, to)| {
        let (start, end) = (*run_of.get(from.layer)?, *run_of.get(to.layer)?);
        let port = graph.output(from).filter(|_| start != end && seen.insert((start, end)))?;
        Some(Edge { from: start, to: end, element_type: port.element_type().name(), shape: String::new(), only: None })
    });
    Drawn { path: String::new(), holder: None, nodes, edges: edges.collect(), groups: Vec::new(), hidden: Vec::new() }
}

/// Returns the box of a run of layers; `start` is the position of its first layer in the order.
fn node<'a>(graph: &'a Graph, start: usize, run: &[LayerId]) -> Node<'a> {
    let (mut operations, mut types) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    for layer in run.iter().filter_map(|&id| graph.layer(id)) {
        *operations.entry(layer.ty()).or_default() += 1;
        layer.outputs().iter().for_each(|port| *types.entry(port.element_type().name()).or_default() += 1);
    }
    let most_first =
        |counts: BTreeMap<&'static str, usize>| by_count(counts).into_iter().map(|(ty, _)| (ty, String::new()));
    let attributes = by_count(operations).into_iter().take(SHOWN);
    let name = |id: Option<&LayerId>| -> String {
        let name = id.and_then(|&id| graph.layer(id)).map_or("", |layer| layer.name());
        name.chars().take(NAME).collect()
    };
    Node {
        outputs: most_first(types).collect(),
        attributes: attributes.map(|(operation, count)| (brief(operation), count.to_string().into())).collect(),
        op: "layers".into(),
        name: format!("{} … {}", name(run.first()), name(run.last())).into(),
        path: format!("layers {start} to {}", start + run.len() - 1).into(),
        layers: Some(run.len()),
        ..Node::default()
    }
}

/// Sorts by count, the most frequent first.
fn by_count(counts: BTreeMap<&str, usize>) -> Vec<(&str, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts
}
