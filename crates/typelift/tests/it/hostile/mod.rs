//! Malformed and unusual files, and all findings about a file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use typelift::findings::Diagnostic;
use typelift::{Weights, check, infer, xml};

/// A file, and whether OpenVINO accepts it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) source: Arc<String>,
    pub(crate) accepted: bool,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Returns every file with its findings.
pub(crate) fn cases() -> Vec<Case> {
    let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/hostile/cases.jsonl.gz")).unwrap();
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
    let cases = lines.map(|line| {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let source = Arc::new(case["xml"].as_str().unwrap().to_owned());
        let weights = case["bin"].as_str().map(|bytes| STANDARD.decode(bytes).unwrap());
        Case {
            name: case["name"].as_str().unwrap().to_owned(),
            accepted: case["accepts"].as_bool().unwrap(),
            diagnostics: diagnose(source.clone(), weights),
            source,
        }
    });
    cases.collect()
}

/// Reads, infers and checks a file, and returns all findings.
pub(crate) fn diagnose(source: Arc<String>, weights: Option<Vec<u8>>) -> Vec<Diagnostic> {
    let reading = xml::parse(source);
    let mut diagnostics = reading.diagnostics;
    if let Some(mut model) = reading.model {
        model.set_weights(weights.map_or(Weights::none(), Weights::from_bytes));
        diagnostics.extend(infer(&mut model));
        diagnostics.extend(check(&model));
    }
    diagnostics
}
