use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use petgraph::stable_graph::NodeIndex;
use petgraph::visit::EdgeRef;
use typelift_promote::ElementType;

use super::{Action, Changes, remove_unused};
use crate::graph::{Graph, Input, Layer, LayerId, Output};

/// The Converts that stand for one ConvertPromoteTypes, by output; `None` for an output that nothing uses.
type Converts = [Option<LayerId>; 2];

pub(super) fn rewrite(graph: &mut Graph, changes: &mut Changes) {
    let Ok(order) = graph.topological_order() else { return };
    let promotes: Vec<_> = order.into_iter().filter(|&node| graph.weight(node).is_some_and(is_decided)).collect();
    let used = used_outputs(graph, &promotes);
    let mut lowered = HashMap::<LayerId, Converts>::default();
    for &node in &promotes {
        let Some(layer) = graph.weight(node) else { continue };
        let producers = graph.producers(layer.id);
        let new = (0..2).filter(|&port| used.contains(&(node, port))).filter_map(|port| {
            let producer = producers.get(port).copied().flatten()?;
            Some((port, convert(graph, layer, port, producer, &lowered)?))
        });
        let new: Vec<_> = new.collect();
        let (id, name) = (layer.id, layer.name.clone());
        let mut converts = [None; 2];
        for (port, (convert, types)) in new {
            let added = graph.add_unwired(convert, 1);
            converts[port] = Some(added);
            if let Some(convert) = graph.layer(added) {
                let reason = format!("output {port} of ConvertPromoteTypes {id} `{name}`");
                changes.add(Action::Inserted, convert, types, reason);
            }
        }
        lowered.insert(id, converts);
    }
    if lowered.is_empty() {
        return;
    }
    let mut unused = Vec::new();
    graph.rewire(|mut from, mut to| {
        if let Some(converts) = lowered.get(&to.layer) {
            match converts.get(to.port).copied().flatten() {
                Some(layer) => to = Input { layer, port: 0 },
                None => {
                    unused.push(from.layer);
                    return None;
                }
            }
        }
        if let Some(converts) = lowered.get(&from.layer) {
            from = (*converts.get(from.port)?).map(|layer| Output { layer, port: 0 })?;
        }
        Some((from, to))
    });
    for id in lowered.into_keys() {
        // Nothing uses it any more, so nothing can refuse.
        let _ = graph.remove(id);
    }
    remove_unused(graph, unused, changes);
}

/// Whether it is a ConvertPromoteTypes whose type is known.
fn is_decided(layer: &Layer) -> bool {
    layer.ty.eq_ignore_ascii_case("ConvertPromoteTypes")
        && !layer.outputs.iter().any(|port| port.element_type == ElementType::Dynamic)
}

/// The outputs of `promotes`, given producers first, that something uses besides one of them whose output is not used.
fn used_outputs(graph: &Graph, promotes: &[NodeIndex]) -> HashSet<(NodeIndex, usize)> {
    let all: HashSet<NodeIndex> = promotes.iter().copied().collect();
    let mut used = HashSet::default();
    for &node in promotes.iter().rev() {
        for edge in graph.petgraph().edges(node) {
            let to = (edge.target(), edge.weight().to_port as usize);
            if !all.contains(&to.0) || used.contains(&to) {
                used.insert((node, edge.weight().from_port as usize));
            }
        }
    }
    used
}

/// The Convert for one output of `layer`, and the types it converts from and to.
fn convert(
    graph: &Graph,
    layer: &Layer,
    port: usize,
    producer: Output,
    lowered: &HashMap<LayerId, Converts>,
) -> Option<(Layer, [ElementType; 2])> {
    let source = match lowered.get(&producer.layer) {
        Some(converts) => graph.layer((*converts.get(producer.port)?)?)?,
        None => graph.layer(producer.layer)?,
    };
    let from = graph.output(producer)?.element_type;
    let output = layer.outputs.get(port)?;
    let name = format!("{}/{}.{port}", source.name, layer.name);
    let mut convert =
        Layer::new("Convert", "opset1", &name).with_attribute("destination_type", output.element_type.name());
    convert.outputs = vec![output.clone()];
    convert.rt_info = layer.rt_info;
    Some((convert, [from, output.element_type]))
}
