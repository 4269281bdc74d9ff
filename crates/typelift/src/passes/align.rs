//! The Converts that give inputs which must agree one element type.

use std::fmt;

use petgraph::stable_graph::NodeIndex;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::conversions::Conversions;
use super::{Action, Changes, is_known, remove_unused};
use crate::graph::{Graph, Input, Layer, Output};

/// Which inputs of the layers of one graph are to have which type.
pub(crate) type Plan = HashMap<NodeIndex, Alignment>;

/// The inputs of one layer that get another type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alignment {
    /// Positions with the types that they get.
    pub(crate) inputs: SmallVec<[(usize, ElementType); 2]>,
    /// Why, as a clause.
    pub(crate) reason: String,
    /// Whether OpenVINO reads the layer without it, too.
    pub(crate) optional: bool,
}

impl Alignment {
    /// Adds a reason.
    pub(crate) fn because(&mut self, reason: fmt::Arguments) {
        let separator = if self.reason.is_empty() { "" } else { "; " };
        self.reason += &format!("{separator}{reason}");
    }
}

/// Gives the inputs of a typed graph the types that `plan` wants, with as few new Converts as that takes: none where a
/// tensor is there that holds the values in that type, one for all inputs that want one tensor in one type.
pub(super) fn apply(graph: &mut Graph, plan: &Plan, changes: &mut Changes) {
    if plan.is_empty() {
        return;
    }
    let Ok(order) = graph.topological_order() else { return };
    let mut conversions = Conversions::of(graph);
    let mut names: HashSet<String> = graph.petgraph().node_weights().map(|layer| layer.name.to_string()).collect();
    let mut new_sources = HashMap::<Input, Output>::default();
    let mut made = Vec::new();
    let mut used = HashSet::default();
    for (node, alignment) in order.into_iter().filter_map(|node| Some((node, plan.get(&node)?))) {
        let Some((id, name)) = graph.weight(node).map(|layer| (layer.id, layer.name.clone())) else { continue };
        let producers = graph.producers(id);
        for &(port, to) in &alignment.inputs {
            let Some(&Some(tensor)) = producers.get(port) else { continue };
            let source = match conversions.find(graph, tensor, to) {
                Some(source) => {
                    let from = graph.output(tensor).map(|output| output.element_type);
                    if let (Some(layer), Some(from)) = (graph.layer(source.layer).filter(|l| l.span.is_some()), from)
                        && used.insert((tensor, to))
                    {
                        changes.add(Action::Used, layer, [from, to], &alignment.reason);
                    }
                    source
                }
                None => {
                    let tensor = conversions.origin(graph, tensor, to);
                    let Some((producer, output)) = graph.layer(tensor.layer).zip(graph.output(tensor)) else {
                        continue;
                    };
                    let name = unique(format!("{}/{name}.{port}", producer.name), &mut names);
                    let convert = Layer::new("Convert", "opset1", &name)
                        .with_attribute("destination_type", to.name())
                        .with_output(to, output.shape.clone());
                    let types = [output.element_type, to];
                    let convert = graph.add_unwired(convert, 1);
                    let source = Output { layer: convert, port: 0 };
                    conversions.add(graph, tensor, to, source);
                    if let Some(convert) = graph.layer(convert) {
                        changes.add(Action::Inserted, convert, types, &alignment.reason);
                    }
                    made.push((tensor, Input { layer: convert, port: 0 }));
                    source
                }
            };
            new_sources.insert(Input { layer: id, port }, source);
        }
    }
    let mut left = Vec::new();
    graph.rewire(|from, to| match new_sources.get(&to) {
        Some(&source) => {
            left.push(from.layer);
            Some((source, to))
        }
        None => Some((from, to)),
    });
    for (tensor, convert) in made {
        graph.feed(tensor, convert);
    }
    // A Convert whose input has taken its place may have lost its last use.
    left.retain(|&id| graph.layer(id).is_some_and(|layer| is_known(layer, "Convert")));
    remove_unused(graph, left, changes);
}

/// The name, or with a number behind it the first one that no layer has.
fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}
