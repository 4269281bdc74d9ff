//! The operation zoo: models of one operation each, and shape computations, with OpenVINO's answers.
#![allow(dead_code, reason = "no test uses all of it")]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use typelift::findings::Diagnostic;
use typelift::graph::OutputPort;
use typelift::xml::{self, Reading};
use typelift::{Model, Weights, infer};

/// The element type and the shape of each output of a layer.
type Outputs = Vec<(String, String)>;

/// A model and OpenVINO's answer.
pub(crate) struct Case(Value);

/// Returns every case of the file at `path`, or of the one in `testdata`.
pub(crate) fn cases(path: Option<String>) -> impl Iterator<Item = Case> {
    let taken = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/opzoo/cases.jsonl.gz");
    let file = File::open(path.as_deref().unwrap_or(taken)).unwrap();
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
    lines.map(|line| Case(serde_json::from_str(&line.unwrap()).unwrap()))
}

impl Case {
    /// Returns the tested operation; `shapeflow` for a shape computation of several operations.
    pub(crate) fn operation(&self) -> &str {
        if self.0["family"] == "shapeflow" { "shapeflow" } else { self.0["op"].as_str().unwrap() }
    }

    /// Returns the operation set that its layer names.
    pub(crate) fn version(&self) -> &str {
        self.0["version"].as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self) -> u64 {
        self.0["case"].as_u64().unwrap()
    }

    pub(crate) fn xml(&self) -> &str {
        self.0["xml"].as_str().unwrap()
    }

    /// Returns the difference from OpenVINO's answer, or `None`.
    pub(crate) fn difference(&self) -> Option<String> {
        match (self.ours(), self.0["accept"].as_bool().unwrap()) {
            (Ok(_), false) => Some(format!("accepted, OpenVINO: {}", self.0["error"].as_str().unwrap_or_default())),
            (Err(error), true) => Some(format!("refused: {error}")),
            (Err(_), false) => None,
            (Ok(ours), true) => {
                let others = self.0["all"].as_object().into_iter().flatten();
                let mut expected: Vec<_> = others.map(|(name, value)| (name.as_str(), outputs(value))).collect();
                expected.push(("op", outputs(&self.0["outputs"])));
                let wrong = expected.into_iter().find(|(name, want)| {
                    // A Result has no output port of its own, and a file need not list every port of an operation.
                    let ours = ours.get(*name).map(Vec::as_slice).unwrap_or_default();
                    !ours.is_empty() && !want.starts_with(ours)
                });
                wrong.map(|(name, want)| format!("{name}: ours {:?}, OpenVINO's {want:?}", ours.get(name)))
            }
        }
    }

    /// True if OpenVINO reads the model.
    pub(crate) fn is_accepted(&self) -> bool {
        self.0["accept"].as_bool().unwrap()
    }

    /// Returns the model, with the errors of its text.
    pub(crate) fn model(&self) -> (Option<Model>, Vec<Diagnostic>) {
        let Reading { mut model, diagnostics } = xml::parse(self.xml().to_owned().into());
        if let Some(model) = &mut model {
            let bytes = STANDARD.decode(self.0["bin"].as_str().unwrap_or_default()).unwrap();
            model.set_weights(Weights::from_bytes(bytes));
        }
        (model, diagnostics)
    }

    /// Returns the inferred outputs by layer, or the first error.
    fn ours(&self) -> Result<HashMap<String, Outputs>, String> {
        let (mut model, mut diagnostics) = self.model();
        diagnostics.extend(model.iter_mut().flat_map(infer));
        if let Some(error) = diagnostics.into_iter().find(Diagnostic::is_error) {
            return Err(error.to_string());
        }
        let port = |port: &OutputPort| (port.element_type().to_string(), port.shape().to_string());
        let model = model.unwrap();
        Ok(model
            .graph()
            .layers()
            .map(|layer| (layer.name().to_owned(), layer.outputs().iter().map(port).collect()))
            .collect())
    }
}

fn outputs(value: &Value) -> Outputs {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    value.as_array().into_iter().flatten().map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}
