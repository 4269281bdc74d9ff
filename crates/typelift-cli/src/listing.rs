//! Types as text, and graphs as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use typelift::findings::{FileName, LayerRef};
use typelift::graph::OutputPort;
use typelift::{Graph, Layer, LayerId, Model};

use crate::gate::Clean;
use crate::selection::Selection;

/// The number of lines that text output shows without `--all`: a screen.
pub(crate) const MOST_LINES: usize = 24;

/// Formats the types and shapes of a layer's outputs: `f32[1,?], i64[]`.
fn outputs(layer: &Layer) -> String {
    let outputs = layer.outputs().iter().map(|port| format!("{}{}", port.element_type(), port.shape()));
    outputs.collect::<Vec<_>>().join(", ")
}

pub(crate) fn types_text(graph: &Graph) -> String {
    let mut out = String::new();
    list(graph, "", &mut out);
    out
}

fn list(graph: &Graph, path: &str, out: &mut String) {
    for layer in graph.layers() {
        if !layer.outputs().is_empty() {
            let _ = writeln!(out, "{path}{}: {}", Clean(layer.name()), outputs(layer));
        }
        for body in layer.bodies() {
            list(&body.graph, &format!("{path}{}/{}/", Clean(layer.name()), body.name()), out);
        }
    }
}

/// Types and shapes in a model as JSON, with members in the order of their names.
#[derive(Serialize)]
pub(crate) struct Types<'a> {
    file: FileName<'a>,
    layers: Vec<Typed<'a>>,
}

#[derive(Serialize)]
struct Typed<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bodies: BTreeMap<&'a str, Vec<Self>>,
    id: LayerId,
    name: &'a str,
    outputs: Vec<Tensor<'a>>,
    #[serde(rename = "type")]
    ty: &'a str,
}

#[derive(Serialize)]
pub(crate) struct Entry<'a> {
    id: LayerId,
    name: &'a str,
    #[serde(rename = "type")]
    ty: &'a str,
    version: &'a str,
    attributes: Map<'a, &'a str>,
    inputs: Vec<Option<Feed>>,
    outputs: Vec<Tensor<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    bodies: Map<'a, Vec<Entry<'a>>>,
}

#[derive(Serialize)]
struct Feed {
    id: LayerId,
    port: usize,
}

/// An object whose members keep their order.
struct Map<'a, T>(Vec<(&'a str, T)>);

impl<T> Map<'_, T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Map<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Serialize)]
struct Tensor<'a> {
    element_type: &'static str,
    shape: &'a typelift::shape::Shape,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    file: FileName<'a>,
    name: &'a str,
    version: u8,
    layers: Vec<Entry<'a>>,
}

pub(crate) fn model<'a>(file: &'a str, model: &'a Model, selection: &'a Selection<'a>) -> Document<'a> {
    let layers = entries(selection.graph, selection);
    Document { file: FileName(file), name: model.name(), version: model.version().number(), layers }
}

pub(crate) fn types<'a>(file: &'a str, graph: &'a Graph) -> Types<'a> {
    Types { file: FileName(file), layers: typed(graph) }
}

fn typed(graph: &Graph) -> Vec<Typed<'_>> {
    graph.layers().map(Typed::new).collect()
}

impl<'a> Typed<'a> {
    fn new(layer: &'a Layer) -> Self {
        Self {
            bodies: layer.bodies().iter().map(|body| (body.name(), typed(&body.graph))).collect(),
            id: layer.id(),
            name: layer.name(),
            outputs: layer.outputs().iter().map(|port| tensor(port, Vec::new())).collect(),
            ty: layer.ty(),
        }
    }
}

fn tensor(port: &OutputPort, names: Vec<String>) -> Tensor<'_> {
    Tensor { element_type: port.element_type().name(), shape: port.shape(), names }
}

fn entries<'a>(graph: &'a Graph, selection: &'a Selection<'a>) -> Vec<Entry<'a>> {
    selection.layers(graph).map(|layer| entry(graph, layer, selection)).collect()
}

fn entry<'a>(graph: &'a Graph, layer: &'a Layer, selection: &'a Selection<'a>) -> Entry<'a> {
    let bodies = layer.bodies().iter().filter(|body| selection.opens(body));
    Entry {
        id: layer.id(),
        name: layer.name(),
        ty: layer.ty(),
        version: layer.version(),
        attributes: Map(layer.attributes().iter().map(|attribute| (attribute.name(), attribute.value())).collect()),
        inputs: graph
            .producers(layer.id())
            .into_iter()
            .map(|output| output.map(|it| Feed { id: it.layer, port: it.port }))
            .collect(),
        outputs: layer.outputs().iter().map(|port| tensor(port, port.names())).collect(),
        bodies: Map(bodies.map(|body| (body.name(), entries(&body.graph, selection))).collect()),
    }
}

/// Formats the output of a layer with its position: `` `sum` (Add 3, line 12) ``.
pub(crate) fn at(layer: &LayerRef, operation: &str, output: usize, line: Option<usize>) -> String {
    let mut text = format!("`{}`", Clean(&layer.name));
    if output > 0 {
        let _ = write!(text, " output {output}");
    }
    let _ = write!(text, " ({} {}", Clean(operation), layer.id);
    if !layer.place.is_model() {
        let _ = write!(text, " in {}", Clean(layer.path()));
    }
    if let Some(line) = line {
        let _ = write!(text, ", line {line}");
    }
    text + ")"
}
