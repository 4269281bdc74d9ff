//! Lint: inputs of a model without tensor names, if other tensors of it have names.
//!
//! OpenVINO finds such an input only by its index. Programs that find inputs by name refuse the model.

use crate::check::GraphCheck;
use crate::findings::{Code, Fix, FixAction, message};
use crate::model::graph::{Direction, IrVersion, Layer, Model};
use crate::text::xml;

pub(in crate::check) fn find(check: &mut GraphCheck<'_>, model: &Model) {
    let is_named = |layer: &Layer| layer.outputs().iter().any(|port| !port.names().is_empty());
    // The reader names the inputs of version 10. In a model without any names, programs use indices.
    if model.version() == IrVersion::V10 || !model.graph().unordered().any(is_named) {
        return;
    }
    let nameless: Vec<_> = model.inputs().filter(|layer| !is_named(layer)).collect();
    let Some(first) = nameless.first() else { return };
    let message = match nameless.len() {
        1 => message!("the tensor of the input `{}` has no name"; first.name()),
        count => message!("the tensors of {} inputs have no names, the first is that of `{}`"; count, first.name()),
    };
    let port = xml::locate_port(check.source, first.span().unwrap_or_default(), Direction::Output, 0);
    let lint = check.lint(Code::NamelessInput, first, message);
    let lint =
        lint.at(port, "OpenVINO finds it only by its index; Model Server, Model API and optimum-intel refuse it");
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c));
    let is_unique = |layer: &Layer| model.graph().unordered().filter(|other| other.name() == layer.name()).count() == 1;
    check.diagnostics.push(match nameless.iter().all(|layer| is_plain(layer.name()) && is_unique(layer)) {
        true => {
            let renames = nameless.iter().map(|layer| format!("rename {0} {0}", layer.name())).collect();
            lint.help(Fix::possible(FixAction::Statements(renames)))
        }
        false => lint.help("add `names` to the output port of the input"),
    });
}
