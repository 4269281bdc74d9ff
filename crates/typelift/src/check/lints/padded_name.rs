//! Lint: layer names with spaces around them.
//!
//! OpenVINO keeps the spaces, so that a program does not find the layer by the name that people see. The fix removes
//! them. It is safe if it is the only such name of the graph, and no input, output or other layer is concerned.

use crate::check::{GraphCheck, PLACES};
use crate::findings::{Code, Fix, Proof, TextEdit, message};
use crate::model::graph::{Graph, Layer};

pub(super) fn find(check: &mut GraphCheck<'_>, graph: &Graph) {
    let is_padded = |layer: &&Layer| layer.name().trim() != layer.name() && !layer.name().trim().is_empty();
    let is_slip = graph.unordered().filter(is_padded).nth(1).is_none();
    for layer in graph.layers().filter(is_padded).take(PLACES) {
        let span = check.locate(layer, "layer", "name");
        let message = message!("the name `{}` has spaces around it"; layer.name());
        let lint = check.lint(Code::PaddedName, layer, message).at(span, "OpenVINO keeps the spaces");
        let written = span.text(check.source).trim();
        // Written with entities, the spaces are meant. Programs find inputs and outputs by their names.
        let is_plain = span.text(check.source) == layer.name() && layer.start().is_none();
        let proof = (is_slip && is_plain && graph.unordered().all(|other| other.name() != layer.name().trim()))
            .then(|| Proof::new("text: spaces around the only such name"));
        check.diagnostics.push(lint.help(Fix::edit(
            check.source,
            layer.span(),
            vec![TextEdit::new(span, written)],
            proof,
        )));
    }
}
