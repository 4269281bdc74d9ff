//! Lint: output tensors of one graph with the same name.

use std::borrow::Cow;

use crate::base::hash::HashMap;
use crate::check::{GraphCheck, PLACES, repeated};
use crate::findings::{Code, message};
use crate::model::graph::{Direction, Graph, Layer, parts_of_names};
use crate::text::xml;

pub(super) fn find(check: &mut GraphCheck<'_>, graph: &Graph) {
    let mut names = Vec::new();
    let mut given = HashMap::<_, Vec<Cow<'_, str>>>::default();
    for layer in graph.layers() {
        let Some(names) = &layer.output_names else { continue };
        let producer = graph.producers(layer.id()).into_iter().next().flatten();
        given.entry(producer.map(|output| (output.layer, output.port))).or_default().extend(parts_of_names(names));
    }
    for layer in graph.layers() {
        for (at, port) in layer.outputs().iter().enumerate() {
            let first = names.len();
            let given = given.remove(&Some((layer.id(), at))).unwrap_or_default();
            names.extend(port.each_name().chain(given).map(|name| (name, (layer, at))));
            names[first..].sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        }
    }
    names.dedup_by(|(one, (layer, at)), (other, (before, port))| {
        at == port && one == other && layer.id() == before.id()
    });
    for tensors in repeated(names.iter().map(|(name, tensor)| (&**name, (name, *tensor)))) {
        let Some(((name, (layer, port)), earlier)) = tensors.split_last() else { continue };
        let message = message!("{} tensors have the name `{}`"; tensors.len(), name);
        let place = |layer: &Layer, port| {
            xml::locate_port(check.source, layer.span().unwrap_or_default(), Direction::Output, port)
        };
        let mut lint = check.lint(Code::DuplicateTensorName, layer, message);
        lint = lint.at(place(layer, *port), "the last of these tensors: OpenVINO adds a number to its name");
        for (_, (layer, port)) in earlier.iter().take(PLACES) {
            lint = lint.at(place(layer, *port), message!("layer {} has a tensor with the same name"; layer.id()));
        }
        check.diagnostics.push(lint.help("remove it from the `names` of the other tensors"));
    }
}
