//! Lint: layers of one graph with the same name.

use crate::check::{GraphCheck, PLACES, repeated};
use crate::findings::{Code, message};
use crate::model::graph::Graph;

pub(super) fn find(check: &mut GraphCheck<'_>, graph: &Graph) {
    for layers in repeated(graph.layers().map(|layer| (layer.name(), layer))) {
        let Some((last, earlier)) = layers.split_last() else { continue };
        let message = message!("{} layers have the name `{}`"; layers.len(), last.name());
        let mut lint = check.lint(Code::DuplicateLayerName, last, message);
        lint = lint.at(check.locate(last, "layer", "name"), "the last of these layers");
        for layer in earlier.iter().take(PLACES) {
            lint = lint.at(check.locate(layer, "layer", "name"), message!("layer {} has the same name"; layer.id()));
        }
        check
            .diagnostics
            .push(lint.help("give each layer a different name: inputs and outputs are found by their names"));
    }
}
