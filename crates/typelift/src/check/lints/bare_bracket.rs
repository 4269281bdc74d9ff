//! Lint: names that contain a `<` without escape.

use crate::check::{GraphCheck, PLACES};
use crate::findings::Code;
use crate::model::graph::Graph;

pub(super) fn find(check: &mut GraphCheck<'_>, graph: &Graph) {
    let with = graph.unordered().filter(|layer| layer.name().contains('<'));
    let all: Vec<_> = with.map(|layer| (layer, check.locate(layer, "layer", "name"))).collect();
    for (layer, span) in all.into_iter().filter(|(_, span)| span.text(check.source).contains('<')).take(PLACES) {
        let lint = check.lint(Code::BareAmpersand, layer, "a bare `<` is not XML: OpenVINO keeps it as text");
        check
            .diagnostics
            .push(lint.at(span, "other programs cannot read the file because of it").help("write `&lt;` for each"));
    }
}
