//! Outline of a model that is too large to draw: its blocks as closed boxes, and the names of all layers. A model without
//! blocks is shown as runs of layers in the order of the data.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use typelift::explain::blocks::{Block, Blocks};
use typelift::graph::LayerMap;
use typelift::ops::{self, LayerKind};
use typelift::shape::Formulas;
use typelift::{Graph, LayerId, Model, Shapes};

use crate::folded::Strings;
use crate::graphs::{Drawn, Edge, Facts, Group, Node, brief, path};

/// Limit on the data of a page, in bytes.
pub(crate) const MOST_BYTES: usize = 4_800_000;
/// The number of runs of layers that an outline shows.
const RUNS: usize = 120;
/// The number of operations that the details of a box name.
const SHOWN: usize = 12;
/// The number of characters of a layer's name in the name of a run.
const NAME: usize = 24;
/// Limit on the layers whose names are on the page.
const MOST_NAMES: usize = 200_000;

/// A layer that is not drawn: its path, operation and types, and the number of its box.
#[derive(Serialize)]
pub(crate) struct Name<'a>(Cow<'a, str>, &'a str, String, usize);

/// A box of an outline.
struct Part<'a> {
    layers: Vec<LayerId>,
    block: Option<&'a Block>,
}

/// Divides a graph into its blocks; without blocks into runs.
fn divided<'a>(graph: &Graph, blocks: &'a Blocks) -> Vec<Part<'a>> {
    let own: Vec<&Block> = blocks.list.iter().filter(|block| block.place.is_model()).collect();
    if own.iter().any(|block| block.number.is_some()) {
        return own.into_iter().map(|block| Part { layers: block.layers.clone(), block: Some(block) }).collect();
    }
    // Layers in a cycle are shown in the order of the file.
    let order = graph.topological_order().unwrap_or_else(|_| graph.layers().map(|layer| layer.id()).collect());
    let length = order.len().div_ceil(RUNS).max(1);
    order.chunks(length).map(|run| Part { layers: run.to_vec(), block: None }).collect()
}

/// The message of a page that is too large to draw all layers.
pub(crate) fn message(model: &Model, blocks: &Blocks) -> String {
    let boxes = divided(model.graph(), blocks).len();
    format!(
        "The page would be too large with every layer on it: its {boxes} boxes are closed. The search finds every layer. \
         `typelift show --around NAME` prints what is around one, and `typelift check` all findings."
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
            pending.extend(layer.bodies().iter().map(|body| &body.graph));
            if bytes > most_bytes {
                return bytes;
            }
        }
    }
    bytes
}

pub(crate) fn drawn<'a>(
    model: &'a Model,
    shapes: Option<&Shapes>,
    blocks: &'a Blocks,
    strings: &mut Strings,
) -> Drawn<'a> {
    let graph = model.graph();
    let mut formulas = shapes.map(|shapes| Formulas::new(model, shapes));
    let parts = divided(graph, blocks);
    let part_of = part_of(graph, &parts);
    let mut groups = Vec::new();
    let mut nodes = Vec::new();
    for part in &parts {
        let formula = formulas.as_mut().and_then(|formulas| formulas.macs_of_layers(graph, &part.layers));
        let formula = formula.map(|formula| formula.text.to_owned());
        let group = part.block.map(|block| Group { formula, ..Group::of(block, None) });
        nodes.push(Node { group: group.as_ref().map(|_| groups.len()), ..node(graph, nodes.len(), part, strings) });
        groups.extend(group);
    }
    let mut seen = HashSet::new();
    let edges = graph.wires().filter_map(|(from, to)| {
        let (start, end) = (*part_of.get(from.layer)?, *part_of.get(to.layer)?);
        let port = graph.output(from).filter(|_| start != end && seen.insert((start, end)))?;
        Some(Edge { from: start, to: end, text: strings.text(port.element_type().name()), only: None })
    });
    Drawn { nodes, edges: edges.collect(), groups, ..Drawn::default() }
}

pub(crate) fn names<'a>(model: &'a Model, shapes: Option<&Shapes>, blocks: &Blocks) -> Vec<Name<'a>> {
    let part_of = part_of(model.graph(), &divided(model.graph(), blocks));
    let mut names = Vec::new();
    for (place, graph) in model.walk() {
        let outer = place.steps().first().map(|&(holder, _)| holder);
        for layer in graph.layers().take(MOST_NAMES - names.len()) {
            let Some(&part) = part_of.get(outer.unwrap_or(layer.id())) else { continue };
            // An output of the model has the type of what it returns.
            let returned = graph.producers(layer.id()).into_iter().flatten().filter(|_| layer.outputs().is_empty());
            let own = (0..layer.outputs().len()).map(|port| layer.id().output(port));
            let named =
                shapes.filter(|_| place.is_model() && (layer.inputs().is_empty() || layer.outputs().is_empty()));
            let types = own.chain(returned).filter_map(|tensor| {
                let port = graph.output(tensor)?;
                Some(named.map_or_else(
                    || port.to_string(),
                    |shapes| format!("{}{}", port.element_type(), shapes.text(tensor, port)),
                ))
            });
            let types: Vec<_> = types.collect();
            names.push(Name(Cow::Owned(path(&place, layer).into_owned()), layer.ty(), types.join(", "), part));
        }
    }
    names
}

fn part_of(graph: &Graph, parts: &[Part<'_>]) -> LayerMap<usize> {
    let mut part_of = LayerMap::new(graph);
    for (at, part) in parts.iter().enumerate() {
        part_of.extend(part.layers.iter().map(|&id| (id, at)));
    }
    part_of
}

fn node(graph: &Graph, at: usize, part: &Part<'_>, strings: &mut Strings) -> Node {
    let (mut operations, mut types) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    for layer in part.layers.iter().filter_map(|&id| graph.layer(id)) {
        *operations.entry(layer.ty()).or_default() += 1;
        layer.outputs().iter().for_each(|port| *types.entry(port.element_type().name()).or_default() += 1);
    }
    let attributes = by_count(operations).into_iter().take(SHOWN);
    let ends = [part.layers.first(), part.layers.last()].into_iter().flatten().filter_map(|&id| graph.layer(id));
    let ends: Vec<String> = ends.map(|layer| layer.name().chars().take(NAME).collect()).collect();
    let name = part.block.map_or_else(|| ends.join(" … "), |block| block.name.clone());
    Node {
        outputs: by_count(types).into_iter().map(|(ty, _)| strings.text(ty)).collect(),
        attributes: attributes
            .map(|(operation, count)| (strings.text(&brief(operation)), strings.text(&count.to_string())))
            .collect(),
        op: strings.text("layers"),
        path: strings.text(&format!("box {at}")),
        more: Facts { name: Some(strings.text(&name)), layers: Some(part.layers.len()), ..Facts::default() },
        ..Node::default()
    }
}

/// Sorts by count, the most frequent first.
fn by_count(counts: BTreeMap<&str, usize>) -> Vec<(&str, usize)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts
}
