//! Arguments of callers that no file can hold are refused.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use typelift::graph::NewLayer;
use typelift::promote::ElementType;
use typelift::{Model, infer};

fn model() -> Model {
    Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml")).unwrap()
}

/// XML has no attribute of such a name, so the saved file could not be read.
#[test]
fn attributes_have_names_that_xml_can_hold() {
    let mut model = model();
    let x = model.graph().find("x").unwrap();
    for name in ["", "a b", "1a", "a=\"1\"", "<a", "a/", "-a", "a\n", "a>"] {
        let refused = model.edit(|graph| graph.set_attribute(x, name, 1)).unwrap_err().to_string();
        assert!(refused.contains("is not a name that an attribute can have"), "{name:?} {refused}");
        let elu = NewLayer::new("Elu", "opset1").with_attribute("alpha", 1).with_attribute(name, 1);
        let y = model.graph().find("relu").unwrap();
        let source = model.graph().tensor("scaled").unwrap();
        assert!(model.edit(|graph| graph.add(elu.clone(), &[source])).is_err(), "{name:?}");
        assert!(model.edit(|graph| graph.replace_in_place(y, elu, &[source])).is_err(), "{name:?}");
    }
    for name in ["a", "_a-1.b", "ns:a", "größe"] {
        model.edit(|graph| graph.set_attribute(x, name, 1)).unwrap();
    }
}

/// A constant without elements has no bytes, which are at the start of the weights.
#[test]
fn a_constant_can_be_empty() {
    let mut model = model();
    let scale = model.graph().find("scale").unwrap();
    model.edit(|graph| graph.constant(ElementType::I64, &[0], &[]).map(drop)).unwrap();
    model.edit(|graph| graph.set_constant(scale, ElementType::F32, &[1, 1], &2_f32.to_le_bytes())).unwrap();
    assert!(infer(&mut model).iter().all(|found| !found.is_error()));
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path().join("m.xml")).unwrap();
    let mut again = Model::open(folder.path().join("m.xml")).unwrap();
    assert!(infer(&mut again).iter().all(|found| !found.is_error()));
}

/// OpenVINO reads nested groups of metadata recursively.
#[test]
fn metadata_nests_as_deep_as_it_can_be_read() {
    let mut model = model();
    model.set_rt_info(&"a/".repeat(64), "1").unwrap();
    let refused = model.set_rt_info(&"b/".repeat(100_000), "1").unwrap_err().to_string();
    assert!(refused.contains("at most 64 deep, and this path has 100000 names"), "{refused}");
}

/// All renames of a batch take place at the same time, and names of tensors stay unique.
#[test]
fn names_are_exchanged_at_once() {
    let mut model = Model::from_text("a = Parameter : f32[2]\nb = Abs(a)\nc = Exp(b)\nr = Result(c)\n").unwrap();
    model.edit(|graph| graph.rename_all([("a", "b"), ("b", "c"), ("c", "a")])).unwrap();
    let kept = model.clone();
    assert_eq!(
        model.to_string(),
        "0 b = Parameter : f32[2]\n1 c = Abs(0) : f32[2]\n2 a = Exp(1) : f32[2]\n3 r = Result(2)\n"
    );
    assert!(model.edit(|graph| graph.rename_all([("a", "z"), ("none", "y")])).is_err());
    assert!(model.edit(|graph| graph.rename_all([("a", "z"), ("b", "")])).is_err());
    assert_eq!(model.to_string(), kept.to_string());
}
