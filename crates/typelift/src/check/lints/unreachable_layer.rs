//! Lint: layers on which no Result or Assign depends.

use crate::check::{GraphCheck, is_kept};
use crate::findings::{Code, message};
use crate::model::graph::{Graph, Layer, LayerMap};

/// Reports layers that OpenVINO drops. Of a chain of such layers only the last one is reported.
pub(super) fn find(check: &mut GraphCheck<'_>, graph: &Graph) {
    // An invalid edge may have been the missing connection.
    if graph.unordered().any(|layer| layer.broken) {
        return;
    }
    let mut reached = LayerMap::new(graph);
    let kept = graph.unordered().filter(|layer| is_kept(layer)).map(Layer::id);
    graph.mark_upstream(kept, &mut reached);
    let unreached: Vec<_> = graph.unordered().filter(|layer| reached.get(layer.id()).is_none()).collect();
    for layer in unreached {
        if graph.users(layer.id()).next().is_some() {
            continue;
        }
        let more = graph.mark_upstream([layer.id()], &mut reached) - 1;
        let message = message!("no Result depends on `{}`: OpenVINO drops it"; layer.name());
        let mut lint = check.lint(Code::UnreachableLayer, layer, message);
        lint = lint.at(check.locate(layer, "layer", "name"), "no layer uses its outputs");
        if more > 0 {
            let layers = if more == 1 { "more layer that feeds" } else { "more layers that feed" };
            lint = lint.note(message!("{} {} no other layer are dropped too"; more, layers));
        }
        check.diagnostics.push(lint.help("add a Result for its output, or remove it"));
    }
}
