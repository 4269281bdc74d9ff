//! Models with OpenVINO's answers, as the scripts in `testdata/oracle` record them.

use std::fs::File;
use std::io::{BufRead, BufReader};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use typelift::findings::Diagnostic;
use typelift::{Graph, Model, Weights, check, infer, xml};

/// A model and OpenVINO's answer.
pub(crate) struct Case(Value);

/// Returns the cases in the file at `path`.
pub(crate) fn cases(path: &str) -> impl Iterator<Item = Case> {
    let lines = BufReader::new(MultiGzDecoder::new(File::open(path).unwrap())).lines();
    lines.map(|line| Case(serde_json::from_str(&line.unwrap()).unwrap()))
}

impl Case {
    pub(crate) fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.0["error"].is_null()
    }

    /// Returns the first difference from OpenVINO: in the verdict, or in the type or shape of a layer in the graph or
    /// in a body.
    pub(crate) fn difference(&self) -> Option<String> {
        let weights = self.0["bin"].as_str().map(|bytes| STANDARD.decode(bytes).unwrap());
        let (model, mut diagnostics) = infer_text(self.0["xml"].as_str().unwrap(), weights);
        diagnostics.extend(model.iter().flat_map(check));
        let error = diagnostics.iter().find(|diagnostic| diagnostic.is_error());
        match (self.0["error"].as_str(), error) {
            (Some(_), Some(_)) => None,
            (Some(theirs), None) => Some(format!("accepted, OpenVINO: {theirs}")),
            (None, Some(ours)) => Some(format!("refused: {ours}")),
            (None, None) => difference(model.unwrap().graph(), &self.0["layers"], ""),
        }
    }
}

/// Reads and infers a model.
pub(crate) fn infer_text(xml: &str, weights: Option<Vec<u8>>) -> (Option<Model>, Vec<Diagnostic>) {
    let reading = xml::parse(xml.to_owned().into());
    let (mut model, mut diagnostics) = (reading.model, reading.diagnostics);
    if let Some(model) = &mut model {
        if let Some(bytes) = weights {
            model.set_weights(Weights::from_bytes(bytes));
        }
        diagnostics.extend(infer(model));
    }
    (model, diagnostics)
}

/// Returns the first layer, in the graph or in a body, whose type or shape differs from OpenVINO's.
fn difference(graph: &Graph, expected: &Value, path: &str) -> Option<String> {
    expected.as_array().unwrap().iter().find_map(|layer| {
        let [name, outputs, bodies] = layer.as_array().unwrap().as_slice() else { panic!("not a layer: {layer}") };
        let name = name.as_str().unwrap();
        let Some(found) = graph.layers().find(|layer| layer.name() == name) else {
            // OpenVINO adds inputs that the file omits.
            let is_added = name.starts_with("Constant_");
            return (!is_added).then(|| format!("{path}{name} is missing"));
        };
        for (port, want) in found.outputs().iter().zip(outputs.as_array().unwrap()) {
            let (element_type, shape) = (want[0].as_str().unwrap(), want[1].as_str().unwrap());
            if port.element_type().to_string() != element_type || port.shape().to_string() != shape {
                let ours = format!("{}{}", port.element_type(), port.shape());
                return Some(format!("{path}{name}: ours {ours}, OpenVINO's {element_type}{shape}"));
            }
        }
        let bodies = bodies.as_object().unwrap();
        found.bodies().iter().find_map(|body| {
            difference(&body.graph, bodies.get(body.name())?, &format!("{path}{name}/{}/", body.name()))
        })
    })
}
