//! Lint: layer names with spaces around them.
//!
//! OpenVINO keeps the spaces, so that a program does not find the layer by the name that people see. The fix removes
//! them. It is never safe, because nothing in the file contradicts the name.

use crate::check::{Check, PLACES};
use crate::findings::{Code, Fix, TextEdit, message};
use crate::model::graph::{Graph, Layer};

pub(super) fn find(check: &mut Check<'_>, graph: &Graph) {
    let is_padded = |layer: &&Layer| layer.name().trim() != layer.name() && !layer.name().trim().is_empty();
    for layer in graph.layers().filter(is_padded).take(PLACES) {
        let span = check.locate(layer, "layer", "name");
        let message = message!("the name `{}` has spaces around it"; layer.name());
        let lint = check.lint(Code::PaddedName, layer, message).at(span, "OpenVINO keeps the spaces");
        let written = span.text(check.source).trim();
        check.diagnostics.push(lint.help(Fix::edit(
            check.source,
            layer.span(),
            vec![TextEdit::new(span, written)],
            None,
        )));
    }
}
