use compact_str::format_compact;
use petgraph::stable_graph::NodeIndex;
use petgraph::visit::{EdgeRef, NodeIndexable};
use rustc_hash::FxHashMap as HashMap;
use typelift_promote::ElementType;

use super::eliminate_converts::{hand_over_names, names_a_result};
use super::{Action, Changes, remove_unused};
use crate::graph::{Graph, Input, Layer, LayerId, Output};
use crate::ops::{LayerKind, kind};

/// Two Converts for each ConvertPromoteTypes.
pub(super) fn in_full(graph: &mut Graph, changes: &mut Changes) {
    rewrite(graph, changes, true);
}

/// The Converts that do something.
pub(super) fn without_noops(graph: &mut Graph, changes: &mut Changes) {
    rewrite(graph, changes, false);
}

/// A ConvertPromoteTypes that goes.
struct Promotion {
    id: LayerId,
    /// For each output that something uses, the tensor that is promoted.
    operands: [Option<Output>; 2],
    /// Whether that tensor takes the place of the output.
    passes: [bool; 2],
}

/// What stands for an output of a ConvertPromoteTypes.
#[derive(Clone, Copy)]
enum StandIn {
    Convert(LayerId),
    Operand(Output),
}

impl StandIn {
    fn tensor(self) -> Output {
        match self {
            Self::Convert(layer) => Output { layer, port: 0 },
            Self::Operand(tensor) => tensor,
        }
    }
}

/// By output; `None` for one that nothing uses.
type StandIns = [Option<StandIn>; 2];

fn rewrite(graph: &mut Graph, changes: &mut Changes, with_noops: bool) {
    let promotions = promotions(graph, with_noops);
    if promotions.is_empty() {
        return;
    }
    let shared = if with_noops { HashMap::default() } else { added_converts(graph) };
    let wires = graph.unwire();
    let mut lowered = HashMap::<LayerId, StandIns>::default();
    for promotion in promotions {
        // It goes before its Converts come, so that they find its place in the storage.
        if let Ok(layer) = graph.remove(promotion.id) {
            let stand_ins = lower(graph, layer, &promotion, (&lowered, &shared), changes);
            lowered.insert(promotion.id, stand_ins);
        }
    }
    let mut unused = Vec::new();
    let stand_in = |layer, port| lowered.get(&layer).map(|stand_ins| stand_ins.get(port).copied().flatten());
    graph.wire(wires, |from, to| {
        let to = match stand_in(to.layer, to.port) {
            None => to,
            Some(Some(StandIn::Convert(layer))) => Input { layer, port: 0 },
            Some(Some(StandIn::Operand(_))) => return None,
            Some(None) => {
                unused.push(from.layer);
                return None;
            }
        };
        match stand_in(from.layer, from.port) {
            None => Some((from, to)),
            Some(stand_in) => Some((stand_in?.tensor(), to)),
        }
    });
    changes.reveals = true;
    remove_unused(graph, unused, changes);
}

/// Converts that are there already, by the tensor and the type that they convert it to.
type Shared = HashMap<(Output, ElementType), Output>;

/// Puts something in the place of each output of `layer`, which is out of the graph.
fn lower(
    graph: &mut Graph,
    layer: Layer,
    promotion: &Promotion,
    (lowered, shared): (&HashMap<LayerId, StandIns>, &Shared),
    changes: &mut Changes,
) -> StandIns {
    let Layer { id, name, outputs, rt_info, .. } = layer;
    let mut stand_ins = [None; 2];
    for (port, output) in outputs.into_iter().enumerate().take(2) {
        let Some(operand) = promotion.operands[port] else { continue };
        let source = match lowered.get(&operand.layer) {
            Some(earlier) => earlier.get(operand.port).copied().flatten().map(StandIn::tensor),
            None => Some(operand),
        };
        let Some(source) = source else { continue };
        if promotion.passes[port] {
            hand_over_names(graph, &output, source);
            stand_ins[port] = Some(StandIn::Operand(source));
            continue;
        }
        if let Some(&made) = shared.get(&(source, output.element_type)) {
            hand_over_names(graph, &output, made);
            stand_ins[port] = Some(StandIn::Operand(made));
            continue;
        }
        let Some((producer, input)) = graph.layer(source.layer).zip(graph.output(source)) else { continue };
        let types = [input.element_type, output.element_type];
        let mut convert =
            Layer::new("Convert", "opset1", "").with_attribute("destination_type", output.element_type.name());
        convert.name = format_compact!("{}/{name}.{port}", producer.name);
        convert.outputs.push(output);
        convert.rt_info = rt_info;
        let convert = graph.add_unwired(convert, 1);
        if let Some(convert) = graph.layer(convert) {
            let reason = format!("output {port} of ConvertPromoteTypes {id} `{name}`");
            changes.add(Action::Inserted, convert, types, reason);
        }
        stand_ins[port] = Some(StandIn::Convert(convert));
    }
    stand_ins
}

/// What the Converts make that alignment put in, by the tensor and the type: one of a tensor to a type is enough.
fn added_converts(graph: &Graph) -> HashMap<(Output, ElementType), Output> {
    let added =
        graph.petgraph().node_weights().filter(|layer| layer.span.is_none() && kind(layer) == LayerKind::Convert);
    let made = added.filter_map(|layer| {
        let source = graph.producers(layer.id).first().copied().flatten()?;
        Some(((source, layer.outputs.first()?.element_type), Output { layer: layer.id, port: 0 }))
    });
    made.collect()
}

/// Every ConvertPromoteTypes whose type is known, producers first.
fn promotions(graph: &Graph, with_noops: bool) -> Vec<Promotion> {
    if !graph.petgraph().node_weights().any(is_decided) {
        return Vec::new();
    }
    let Ok(mut nodes) = graph.topological_order() else { return Vec::new() };
    let is_fed = |node| matches!(graph.feeds(node)[..], [Some(_), Some(_), ..]);
    nodes.retain(|&node| graph.weight(node).is_some_and(is_decided) && is_fed(node));
    let used = used_outputs(graph, &nodes);
    // Where the tensor comes from that takes the place of an output.
    let mut passed = vec![[None; 2]; used.len()];
    let mut promotions = Vec::with_capacity(nodes.len());
    for node in nodes {
        let (Some(layer), Some(used)) = (graph.weight(node), used[node.index()]) else { continue };
        let mut promotion = Promotion { id: layer.id, operands: [None; 2], passes: [false; 2] };
        for (port, feed) in graph.feeds(node).into_iter().enumerate().take(2) {
            let (Some((source, from_port)), true) = (feed, used[port]) else { continue };
            let Some(producer) = graph.weight(source) else { continue };
            promotion.operands[port] = Some(Output { layer: producer.id, port: from_port });
            let element_type = |layer: &Layer, port: usize| layer.outputs.get(port).map(|port| port.element_type);
            if !with_noops && element_type(layer, port) == element_type(producer, from_port) {
                let origin = passed[source.index()].get(from_port).copied().flatten().unwrap_or(source);
                if !names_a_result(graph, node, port, origin) {
                    promotion.passes[port] = true;
                    passed[node.index()][port] = Some(origin);
                }
            }
        }
        promotions.push(promotion);
    }
    promotions
}

/// Whether it is a ConvertPromoteTypes whose type is known.
fn is_decided(layer: &Layer) -> bool {
    kind(layer) == LayerKind::ConvertPromoteTypes
        && !layer.outputs.iter().any(|port| port.element_type == ElementType::Dynamic)
}

/// By node, for each of `promotes`, given producers first, whether something uses its outputs besides one of them whose
/// output is not used.
fn used_outputs(graph: &Graph, promotes: &[NodeIndex]) -> Vec<Option<[bool; 2]>> {
    let mut used = vec![None; graph.petgraph().node_bound()];
    for node in promotes {
        used[node.index()] = Some([false; 2]);
    }
    for node in promotes.iter().rev() {
        for edge in graph.petgraph().edges(*node) {
            let (from_port, to_port) = (edge.weight().from_port as usize, edge.weight().to_port as usize);
            let counts = used[edge.target().index()].is_none_or(|ports| ports.get(to_port) == Some(&true));
            if let Some(port) = used[node.index()].as_mut().and_then(|ports| ports.get_mut(from_port)) {
                *port |= counts;
            }
        }
    }
    used
}
