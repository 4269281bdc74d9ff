//! Renaming of tensors so that names are unique in a graph.

use super::Changes;
use crate::base::hash::HashSet;
use crate::edit::Edit;
use crate::model::graph::{EditError, Layer, split_names};

pub(super) fn rewrite(graph: &mut Edit<'_>, _changes: &mut Changes) -> Result<(), EditError> {
    // Operations with bodies keep their names, and so do the model outputs that they feed.
    let results = graph.layers().filter(|layer| layer.output_names().is_some()).filter(|layer| {
        let mut producers = graph.producers(layer.id()).into_iter().flatten();
        producers.any(|output| graph.layer(output.layer).is_some_and(|layer| !layer.bodies().is_empty()))
    });
    let mut taken = results.filter_map(|layer| layer.output_names()).flat_map(split_names).collect();
    rename(graph, &mut taken)
}

fn rename(graph: &mut Edit<'_>, taken: &mut HashSet<String>) -> Result<(), EditError> {
    let ids: Vec<_> = graph.layers().map(Layer::id).collect();
    for id in ids {
        let Some(layer) = graph.layer(id) else { continue };
        let bodies = layer.bodies().len();
        if bodies > 0 {
            (0..bodies).try_for_each(|at| rename(&mut graph.body(id, at)?, taken))?;
            continue;
        }
        let renamed = layer.outputs().iter().enumerate().filter_map(|(port, output)| {
            let names = output.names();
            let unique: Vec<String> = names.iter().map(|name| claim(name, taken)).collect();
            (unique != names).then_some((id.output(port), unique))
        });
        for (output, names) in renamed.collect::<Vec<_>>() {
            graph.set_names(output, names)?;
        }
    }
    Ok(())
}

fn claim(name: &str, taken: &mut HashSet<String>) -> String {
    if taken.insert(name.to_owned()) {
        return name.to_owned();
    }
    let mut candidates = (1_u64..).map(|number| format!("{name}_{number}"));
    candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or_default()
}
