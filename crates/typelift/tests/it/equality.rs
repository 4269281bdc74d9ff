//! Equality of models in `diff`: what OpenVINO saves equally is equal, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::{BufRead, BufReader};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use typelift::{Model, Weights, diff, infer};

fn model(text: &str, weights: &Value) -> Option<Model> {
    let mut model = Model::from_xml(text.to_owned()).ok()?;
    model.set_weights(Weights::from_bytes(BASE64_STANDARD.decode(weights.as_str().unwrap()).unwrap()));
    let errors = infer(&mut model).iter().filter(|found| found.is_error()).count();
    (errors == 0).then_some(model)
}

#[test]
fn models_are_equal_if_openvino_saves_them_equally() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/diff/equal.jsonl.gz");
    let (mut compared, mut wrong) = (0, Vec::new());
    for line in BufReader::new(GzDecoder::new(File::open(file).unwrap())).lines() {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |key: &str| row[key].as_str().unwrap();
        let given = [(text("xml"), &row["bin"]), (text("saved"), &row["saved_bin"]), (text("other"), &row["bin"])];
        let [Some(first), Some(saved), Some(other)] = given.map(|(xml, bin)| model(xml, bin)) else { continue };
        for (kind, second, same) in [("saved", saved, true), ("other", other, row["same"].as_bool().unwrap())] {
            compared += 1;
            let found = diff(&first, &second);
            if found.is_same() != same {
                wrong.push(format!("{}-{} {} {kind}", text("op"), row["rev"], text("attribute")));
            }
        }
    }
    wrong.dedup();
    let known = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/diff/unequal.txt"))
        .unwrap();
    assert_eq!(wrong.join("\n"), known.trim(), "{} of {compared}", wrong.len());
    assert!(compared > 3_000, "{compared}");
}
