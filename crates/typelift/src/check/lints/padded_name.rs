//! Layer names with spaces around them.
//!
//! OpenVINO keeps the spaces, so that a program does not find the layer by the name that people see. The fix removes
//! them. It is safe if no other layer of the graph has the name without spaces.

use crate::base::hash::HashSet;
use crate::check::{Check, PLACES};
use crate::findings::{Code, Fix, Proof, TextEdit};
use crate::model::graph::{Graph, Layer};

pub(super) fn find(check: &mut Check<'_>, graph: &Graph) {
    let is_padded = |layer: &&Layer| layer.name().trim() != layer.name() && !layer.name().trim().is_empty();
    let padded: Vec<_> = graph.layers().filter(is_padded).take(PLACES).collect();
    if padded.is_empty() {
        return;
    }
    let names: HashSet<_> = graph.unordered().map(Layer::name).collect();
    for layer in padded {
        let (name, span) = (layer.name().trim(), check.locate(layer, "layer", "name"));
        let message = format!("the name `{}` has spaces around it", layer.name());
        let lint = check.lint(Code::PaddedName, layer, message).at(span, "OpenVINO keeps the spaces");
        // Written with entities, the spaces are meant.
        let is_plain = span.text(check.source) == layer.name();
        // Programs find inputs and outputs by their names.
        let is_inside = layer.start().is_none();
        let proof = (is_plain && is_inside && !names.contains(name))
            .then(|| Proof::new("only the spaces around the name are removed"));
        let written = span.text(check.source).trim();
        check.diagnostics.push(lint.help(Fix::edit(
            check.source,
            layer.span(),
            vec![TextEdit::new(span, written)],
            proof,
        )));
    }
}
