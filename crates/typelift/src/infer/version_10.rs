//! Changes that `Core.read_model` makes to a file of version 10.

use std::collections::HashMap;

use crate::findings::{Code, Diagnostic, LayerRef, message};
use crate::model::graph::{Graph, Layer, Output, split_names};
use crate::model::graph::{Place, Start};
use crate::text::xml;

/// Reports inputs and outputs with the name of another tensor. In a version 10 model OpenVINO finds them by layer and
/// tensor names, and does not accept ambiguous ones.
pub(super) fn name_collisions(graph: &Graph, source: &str) -> Vec<Diagnostic> {
    let layers = |kind| graph.layers().filter(move |&layer| layer.start() == Some(kind));
    let inputs: Vec<_> = layers(Start::Parameter).map(|layer| Output { layer: layer.id(), port: 0 }).collect();
    let outputs: Vec<_> = layers(Start::Result).filter_map(|layer| graph.producer(layer.id().input(0))).collect();
    // The tensor of each name. If several tensors have one, the reader renames all but the first.
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
    let message = message!(
        "the name `{}` is ambiguous: it is the layer of an input or output, and also a tensor of `{}`";
        name, other.name()
    );
    let [place, other_place] =
        [layer, other].map(|layer| xml::locate(source, layer.span().unwrap_or_default(), "layer", "name"));
    let reference = LayerRef::of(&Place::default(), layer);
    Diagnostic { layer: Some(reference), ..Diagnostic::new(Code::NameCollision, message) }
        .at(place, "the layer with this name")
        .at(other_place, "a tensor of this layer has the same name")
        .help("rename the layer or the tensor: in version 10 OpenVINO finds inputs and outputs by both names")
}
