//! Layers of one graph that share a name.

use crate::check::{Check, PLACES, repeated};
use crate::findings::Code;
use crate::model::graph::Graph;

pub(super) fn find(check: &mut Check<'_>, graph: &Graph) {
    for layers in repeated(graph.layers().map(|layer| (layer.name(), layer))) {
        let Some((last, earlier)) = layers.split_last() else { continue };
        let message = format!("{} layers have the name `{}`", layers.len(), last.name());
        let mut lint = check.lint(Code::DuplicateLayerName, last, message);
        lint = lint.at(check.locate(last, "layer", "name"), "the last of them");
        for layer in earlier.iter().take(PLACES) {
            lint = lint.at(check.locate(layer, "layer", "name"), format!("layer {} has it too", layer.id()));
        }
        check.diagnostics.push(lint.help("give each a name of its own: inputs and outputs are found by their names"));
    }
}
