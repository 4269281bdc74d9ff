//! Caches that become state, and inputs and outputs again. The written models are in `testdata/oracle/statements`, where `state.py` records
//! that OpenVINO computes the same over four steps, in which beams change places.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use typelift::rewrite::Script;
use typelift::{Model, infer};

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/statements").join(file)
}

/// Applies a statement to a model, and compares the result with the model that OpenVINO ran.
fn compare(from: &str, statement: &str, form: &str) {
    let mut model = Model::open(path(&format!("{from}.xml"))).unwrap();
    assert_eq!(infer(&mut model), []);
    let (model, _) = statement.parse::<Script>().unwrap().run(model).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("model.xml");
    model.save(&saved).unwrap();
    let updates = std::env::var_os("UPDATE_STATE").is_some();
    let mut sums = Vec::new();
    for extension in ["xml", "bin"] {
        let kept = path(&format!("decoder.{form}.{extension}"));
        let bytes = fs::read(saved.with_extension(extension)).unwrap();
        if updates {
            fs::write(&kept, &bytes).unwrap();
        }
        assert!(bytes == fs::read(&kept).unwrap(), "decoder.{form}.{extension} is not what is written");
        let mut sum = flate2::Crc::new();
        sum.update(&bytes);
        sums.push(sum.sum());
    }
    if !updates {
        let answers: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path("answers.json")).unwrap()).unwrap();
        assert_eq!(answers[form]["crc32"], serde_json::json!(sums), "run state.py again");
        assert!(answers[form]["largest_difference"].as_f64().unwrap() <= 1e-5, "{answers}");
    }
}

#[test]
fn openvino_computes_the_same_with_caches_as_state_and_back() {
    let statement = "stateful past_key_values.*.* -> present.*.* reorder beam_idx";
    compare("decoder", statement, "stateful");
    compare("decoder.stateful", "stateless", "stateless");
    let text = fs::read_to_string(path("decoder.stateful.xml")).unwrap();
    assert!(
        text.contains("variable_id=\"past_key_values.1.valuepresent.1.value\""),
        "as OpenVINO's own transformation"
    );
}

#[test]
fn a_cache_that_beams_already_reorder_is_not_reordered_twice() {
    let mut model = Model::open(path("decoder.stateless.xml")).unwrap();
    assert_eq!(infer(&mut model), []);
    let run = |statement: &str| statement.parse::<Script>().unwrap().run(model.clone());
    let error = run("stateful past_key_values.*.* -> present.*.* reorder beam_idx").unwrap_err().to_string();
    assert!(error.contains("is already reordered by `beam_idx`; leave out `reorder beam_idx`"), "{error}");
    run("stateful past_key_values.*.* -> present.*.*").unwrap();
}
