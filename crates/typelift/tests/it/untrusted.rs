//! Arguments of callers that no file can hold are refused.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

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
