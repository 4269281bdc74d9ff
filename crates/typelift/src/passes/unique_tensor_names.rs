use std::collections::HashSet;

use super::Changes;
use crate::graph::{Graph, Layer, Output, split_names};

pub(super) fn rewrite(graph: &mut Graph, _changes: &mut Changes) {
    // Operations with bodies keep their names, and so do the model's outputs that they feed.
    let fed_by_bodies = |layer: &&Layer| {
        let mut producers = graph.producers(layer.id).into_iter().flatten();
        producers.any(|output| graph.layer(output.layer).is_some_and(|layer| !layer.bodies.is_empty()))
    };
    let results = graph.layers().filter(|layer| layer.output_names.is_some()).filter(fed_by_bodies);
    let mut taken = results.filter_map(|layer| layer.output_names()).flat_map(split_names).collect();
    rename(graph, &mut taken);
}

fn rename(graph: &mut Graph, taken: &mut HashSet<String>) {
    let mut renamed = Vec::new();
    for node in graph.written_order() {
        let Some(layer) = graph.weight_mut(node) else { continue };
        for body in &mut layer.bodies {
            rename(&mut body.graph, taken);
        }
        if !layer.bodies.is_empty() {
            continue;
        }
        for (port, output) in layer.outputs.iter().enumerate() {
            let names = output.names();
            let unique: Vec<String> = names.iter().map(|name| claim(name, taken)).collect();
            if unique != names {
                renamed.push((Output { layer: layer.id, port }, unique));
            }
        }
    }
    for (output, names) in renamed {
        // The output is there: its names were just read.
        let _ = graph.set_names(output, names);
    }
}

/// The name, or with the first number behind it that makes it one that nothing has.
fn claim(name: &str, taken: &mut HashSet<String>) -> String {
    if taken.insert(name.to_owned()) {
        return name.to_owned();
    }
    let mut candidates = (1_u64..).map(|number| format!("{name}_{number}"));
    candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or_default()
}
