//! Explanations of element types.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::Net;
use typelift::explain::Rule;
use typelift::graph::FindError;
use typelift::{infer, why};

/// Returns the rules from a tensor back to its sources, each with its layer.
fn rules(net: &Net, name: &str) -> Vec<String> {
    let mut model = net.model();
    let _ = infer(&mut model);
    let steps = why(&model, name).unwrap().steps;
    steps.into_iter().map(|step| format!("{}: {}", step.layer.name, step.rule)).collect()
}

#[test]
fn what_decides_is_found_by_asking_the_rule() {
    let net = Net::new()
        .parameter("x", "f16[2,3]")
        .parameter("k", "i32[]")
        .parameter("mask", "boolean[2,3]")
        .converted("wide", "x", "f32")
        .layer("like", "ConvertLike", "opset1", &["wide", "x"])
        .layer("top", "TopK", "opset11", &["like", "k"])
        .data("axis", "1")
        .data("mode", "max")
        .data("sort", "value")
        .data("index_element_type", "i64")
        .layer("chosen", "Select", "opset1", &["mask", "x", "like"])
        .layer("shape", "ShapeOf", "opset3", &["chosen"])
        .data("output_type", "i64")
        .layer("finite", "IsFinite", "opset10", &["chosen"])
        .layer("state", "ReadValue", "opset6", &["x"])
        .data("variable_id", "v")
        .data("variable_type", "f16")
        .data("variable_shape", "2,3")
        .layer("kept", "Assign", "opset6", &["state"])
        .data("variable_id", "v");
    assert_eq!(rules(&net, "like")[0], "like: the type of input 1");
    assert_eq!(rules(&net, "top")[0], "top: the type of input 0");
    assert_eq!(
        rules(&net, "chosen"),
        ["chosen: the common type of inputs 1 and 2", "x: attribute element_type=\"f16\"", "like: the type of input 1"]
    );
    assert_eq!(rules(&net, "shape"), ["shape: attribute output_type=\"i64\""]);
    assert_eq!(rules(&net, "finite"), ["finite: the operation always gives this type"]);
    assert_eq!(rules(&net, "kept")[0], "kept: the type of input 0");
    // A constant that is refused keeps the type that its attribute says.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/fixtures/diagnostics/rank_kept_after_error.xml");
    let mut model = typelift::Model::open(file).unwrap();
    assert!(!infer(&mut model).is_empty());
    assert_eq!(why(&model, "c").unwrap().steps[0].rule.to_string(), "attribute element_type=\"f32\"");
}

#[test]
fn a_tensor_that_many_come_from_is_one_step() {
    let mut net = Net::new().parameter("x", "f32[2]");
    let mut last = "x".to_owned();
    for at in 0..2000 {
        let name = format!("sum{at}");
        net = net.layer(&name, "Add", "opset1", &[&last, &last]);
        last = name;
    }
    let mut model = net.model();
    let _ = infer(&mut model);
    let derivation = why(&model, &last).unwrap();
    assert_eq!(derivation.steps.len(), 2001);
    assert_eq!(derivation.sources().map(|step| step.layer.name.as_str()).collect::<Vec<_>>(), ["x"]);
    for (at, step) in derivation.steps.iter().enumerate() {
        assert!(step.from.iter().all(|source| source.step > at && source.step < derivation.steps.len()));
    }
}

#[test]
fn unknown_names_and_operations_are_told() {
    let net = Net::new().parameter("x", "f32[2]").layer("own", "Mine", "extension", &["x"]);
    let mut model = net.model();
    let _ = infer(&mut model);
    assert_eq!(why(&model, "own").unwrap().steps[0].rule, Rule::Declared);
    assert_eq!(why(&model, "other").unwrap_err().to_string(), "no layer and no tensor is called `other`");
}

#[test]
fn what_is_ambiguous_is_listed_and_each_can_be_asked_for() {
    let fixtures = format!("{}/../../testdata/fixtures/why", env!("CARGO_MANIFEST_DIR"));
    let mut model = typelift::Model::open(format!("{fixtures}/body_path.xml")).unwrap();
    let _ = infer(&mut model);
    let FindError::Ambiguous { addresses, .. } = why(&model, "bx").unwrap_err() else {
        panic!("`bx` is in two bodies")
    };
    assert_eq!(addresses, ["If_36/then_body/id:1", "If_36/else_body/id:1"]);
    let asked = addresses.iter().map(|name| why(&model, name).unwrap().steps[0].operation.clone());
    assert_eq!(asked.collect::<Vec<_>>(), ["Abs", "ReLU"]);
    let error = why(&model, "If_36.1").unwrap_err();
    assert_eq!(error.to_string(), "`If_36.1` does not exist: outputs are counted from 0, and layer 36 has 1");
}

#[test]
fn every_tensor_of_real_models_has_a_derivation_that_ends() {
    for name in ["fasterrcnn_tv.promote", "onnx_if_deep", "tf_while", "script_loop", "topk_nms_detection"] {
        let path = format!("{}/../../testdata/models/{name}.xml", env!("CARGO_MANIFEST_DIR"));
        let mut model = typelift::Model::open(path).unwrap();
        let _ = infer(&mut model);
        for layer in model.graph().layers().filter(|layer| !layer.outputs().is_empty()) {
            // A name can be the id of another layer.
            let derivation = why(&model, &format!("id:{}.0", layer.id())).unwrap();
            assert!(derivation.sources().next().is_some(), "{name}: {}", layer.name());
            for step in &derivation.steps {
                assert!(!matches!(step.rule, Rule::Refused { .. }), "{name}: {} {:?}", step.layer.name, step.rule);
                assert!(step.from.iter().all(|source| source.step < derivation.steps.len()));
            }
        }
    }
}
