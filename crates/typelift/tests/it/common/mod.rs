//! Small graphs for tests, written as files.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fmt::Write as _;

use proptest::prelude::*;
use typelift::findings::Diagnostic;
use typelift::ops::Release;
use typelift::promote::ElementType;
use typelift::{Graph, Model, Weights};

/// Builder of a graph. Inputs name layers; among layers with one name the later is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Net {
    layers: Vec<Spec>,
    weights: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Spec {
    name: String,
    ty: &'static str,
    version: &'static str,
    data: Vec<(&'static str, String)>,
    inputs: Vec<usize>,
}

impl Net {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a Parameter: `parameter("x", "f16[2,?]")`.
    pub(crate) fn parameter(self, name: &str, tensor: &str) -> Self {
        let (ty, shape) = split(tensor);
        self.layer(name, "Parameter", "opset1", &[]).data("shape", shape).data("element_type", ty)
    }

    /// Adds a constant of zeros.
    pub(crate) fn constant(self, name: &str, tensor: &str) -> Self {
        let (ty, shape) = split(tensor);
        let count: u32 =
            shape.split(',').filter(|dim| !dim.is_empty()).map(|dim| dim.parse::<u32>().unwrap()).product();
        let bits = ElementType::from_name(ty).unwrap().bits() * count;
        self.bytes(name, tensor, &vec![0; bits.div_ceil(8) as usize])
    }

    /// Adds a constant with these bytes.
    pub(crate) fn bytes(mut self, name: &str, tensor: &str, bytes: &[u8]) -> Self {
        let (ty, shape) = split(tensor);
        let offset = self.weights.len().next_multiple_of(8);
        self.weights.resize(offset, 0);
        self.weights.extend_from_slice(bytes);
        self.layer(name, "Const", "opset1", &[])
            .data("element_type", ty)
            .data("shape", &shape.replace(',', ", "))
            .data("offset", &offset.to_string())
            .data("size", &bytes.len().to_string())
    }

    pub(crate) fn converted(self, name: &str, from: &str, ty: &str) -> Self {
        self.layer(name, "Convert", "opset1", &[from]).data("destination_type", ty)
    }

    pub(crate) fn layer(mut self, name: &str, ty: &'static str, version: &'static str, inputs: &[&str]) -> Self {
        let find = |name: &&str| self.layers.iter().rposition(|layer| layer.name == *name).expect("an earlier layer");
        let inputs = inputs.iter().map(find).collect();
        self.layers.push(Spec { name: name.to_owned(), ty, version, data: Vec::new(), inputs });
        self
    }

    /// Adds an attribute to the last layer.
    pub(crate) fn data(mut self, name: &'static str, value: &str) -> Self {
        self.layers.last_mut().unwrap().data.push((name, value.to_owned()));
        self
    }

    /// Returns the file. Unused tensors get a Result.
    pub(crate) fn xml(&self) -> String {
        let unused = (0..self.layers.len())
            .filter(|at| self.layers[*at].ty != "Result" && !self.layers.iter().any(|layer| layer.inputs.contains(at)));
        let results = unused.map(|at| Spec {
            name: format!("{}/result", self.layers[at].name),
            ty: "Result",
            version: "opset1",
            data: Vec::new(),
            inputs: vec![at],
        });
        let layers: Vec<Spec> = self.layers.iter().cloned().chain(results).collect();
        let (mut text, mut edges) =
            (String::from("<?xml version=\"1.0\"?>\n<net name=\"test\" version=\"11\">\n<layers>\n"), String::new());
        for (id, Spec { name, ty, version, data, inputs }) in layers.iter().enumerate() {
            write!(text, r#"<layer id="{id}" name="{name}" type="{ty}" version="{version}">"#).unwrap();
            if !data.is_empty() {
                let data: Vec<String> = data.iter().map(|(name, value)| format!(r#"{name}="{value}""#)).collect();
                write!(text, "<data {}/>", data.join(" ")).unwrap();
            }
            if !inputs.is_empty() {
                let ports: String = (0..inputs.len()).map(|port| format!(r#"<port id="{port}"/>"#)).collect();
                write!(text, "<input>{ports}</input>").unwrap();
            }
            let outputs = match *ty {
                "Result" => 0,
                "ConvertPromoteTypes" => 2,
                _ => 1,
            };
            let ports =
                (inputs.len()..).take(outputs).map(|id| format!(r#"<port id="{id}" precision="UNSPECIFIED"/>"#));
            if outputs > 0 {
                write!(text, "<output>{}</output>", ports.collect::<String>()).unwrap();
            }
            text.push_str("</layer>\n");
            for (port, &source) in inputs.iter().enumerate() {
                let from = layers[source].inputs.len();
                writeln!(edges, r#"<edge from-layer="{source}" from-port="{from}" to-layer="{id}" to-port="{port}"/>"#)
                    .unwrap();
            }
        }
        text + "</layers>\n<edges>\n" + &edges + "</edges>\n</net>\n"
    }

    pub(crate) fn model(&self) -> Model {
        let mut model = Model::from_xml(self.xml()).unwrap();
        model.set_weights(Weights::from_bytes(self.weights.as_slice()));
        model
    }
}

/// Generates any small graph: given tensors, constants (marked with `const`), Converts to these types, and operations
/// on two earlier tensors.
pub(crate) fn nets(
    given: &'static [&'static str],
    types: &'static [&'static str],
    operations: &'static [&'static str],
) -> impl Strategy<Value = Net> {
    let any = any::<prop::sample::Index>;
    let sources = prop::collection::vec(prop::sample::select(given), 1..4);
    let converts = prop::collection::vec((any(), prop::sample::select(types)), 0..4);
    let pairs = prop::collection::vec((any(), any(), prop::sample::select(operations)), 1..4);
    (sources, converts, pairs).prop_map(|(sources, converts, pairs)| {
        let (mut net, mut names) = (Net::new(), Vec::<String>::new());
        for tensor in sources {
            let name = format!("p{}", names.len());
            net = match tensor.strip_prefix("const ") {
                Some(tensor) => net.constant(&name, tensor),
                None => net.parameter(&name, tensor),
            };
            names.push(name);
        }
        for (from, ty) in converts {
            let name = format!("c{}", names.len());
            net = net.converted(&name, from.get(names.as_slice()).as_str(), ty);
            names.push(name);
        }
        for (left, right, operation) in pairs {
            let name = format!("o{}", names.len());
            let (ty, version) = operation.split_once('-').expect("an operation and its set");
            net = net.layer(&name, ty, version, &[left, right].map(|index| index.get(names.as_slice()).as_str()));
            names.push(name);
        }
        net
    })
}

fn split(tensor: &str) -> (&str, &str) {
    tensor.strip_suffix(']').and_then(|tensor| tensor.split_once('[')).expect("a type with a shape, such as f16[2,3]")
}

/// Returns a line per layer, without Parameters and Results: `sum = Add(a, b/sum.1) : f32[2]`.
pub(crate) fn listing(graph: &Graph) -> String {
    let lines = graph.layers().filter(|layer| !["Parameter", "Const", "Result"].contains(&layer.ty())).map(|layer| {
        let producers = graph.producers(layer.id());
        let name = |output: &Option<typelift::Output>| graph.layer(output.unwrap().layer).unwrap().name().to_owned();
        let inputs: Vec<String> = producers.iter().map(name).collect();
        let outputs: Vec<String> =
            layer.outputs().iter().map(|port| format!("{}{}", port.element_type(), port.shape())).collect();
        format!("{} = {}({}) : {}", layer.name(), layer.ty(), inputs.join(", "), outputs.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the findings that say which parts of an inferred model a release does not read.
pub(crate) fn newer_than(model: &Model, release: Release) -> Vec<Diagnostic> {
    let checking = typelift::Checking { target: Some(release), ..typelift::Checking::default() };
    let mut found = checking.check_inferred(model, None, Vec::new(), false);
    found.retain(|it| it.code == typelift::findings::Code::NewerThanTarget);
    found
}
