//! Changes that `Core.read_model` makes to a file of version 10.

use std::collections::HashMap;

use crate::findings::{Code, Diagnostic, LayerRef};
use crate::model::graph::{Graph, Layer, Output, split_names};
use crate::model::graph::{Place, Start};
use crate::text::xml;

/// Reports layers whose name is also that of another tensor. In a version 10 model OpenVINO finds inputs and outputs by
/// both names, and refuses ambiguous ones.
pub(super) fn name_collisions(graph: &Graph, source: &str) -> Vec<Diagnostic> {
    let layers = |kind| graph.layers().filter(move |&layer| layer.start() == Some(kind));
    let inputs: Vec<_> = layers(Start::Parameter).map(|layer| Output { layer: layer.id(), port: 0 }).collect();
    let outputs: Vec<_> = layers(Start::Result).filter_map(|layer| graph.producer(layer.id().input(0))).collect();
    // The tensor of each name. Among tensors with one name the reader renames all but the first.
    let mut tensors: HashMap<String, Output> = HashMap::new();
    for &output in inputs.iter().chain(&outputs) {
        let names = graph.output(output).and_then(|port| port.names.as_deref()).map(split_names).unwrap_or_default();
        for name in names {
            tensors.entry(name).or_insert(output);
        }
    }
    let mut found = Vec::new();
    for output in outputs.into_iter().chain(inputs) {
        let Some(layer) = graph.layer(output.layer) else { continue };
        let Some(name) = graph.version_10_name(output) else { continue };
        if let Some(other) =
            tensors.get(&name).filter(|&&other| other != output).and_then(|other| graph.layer(other.layer))
        {
            found.push(collision(layer, &name, other, source));
        }
        tensors.entry(name).or_insert(output);
    }
    found
}

fn collision(layer: &Layer, name: &str, other: &Layer, source: &str) -> Diagnostic {
    let message =
        format!("`{name}` is an input or output by its layer, and a tensor of `{}` has that name", other.name());
    let place = |layer: &Layer| xml::locate(source, layer.span().unwrap_or_default(), "layer", "name");
    let reference = LayerRef::of(&Place::default(), layer);
    Diagnostic { layer: Some(reference), ..Diagnostic::new(Code::NameCollision, message) }
        .at(place(layer), "the layer of that name")
        .at(place(other), "a tensor of this one has it")
        .help("rename the layer or the tensor: in version 10 OpenVINO finds inputs and outputs by both names")
}
