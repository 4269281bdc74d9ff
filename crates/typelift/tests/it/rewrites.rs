//! Ten rewrites that use public edits only. Their results are in `testdata/oracle/rewrites`, where `rewrites.py`
//! records that OpenVINO computes the same before and after.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use similar::{ChangeTag, TextDiff};
use typelift::edit::Edit;
use typelift::graph::{EditError, NewLayer};
use typelift::promote::ElementType;
use typelift::{LayerId, Model, Output, infer};

type Edited = Result<(), EditError>;

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/rewrites").join(file)
}

fn answers() -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path("answers.json")).unwrap()).unwrap()
}

/// Rewrites a case, compares the result with the recorded model, and returns the changed lines.
fn rewrite(case: &str, edits: impl FnOnce(&mut Edit) -> Edited) -> Vec<String> {
    let mut model = Model::open(path(&format!("{case}.xml"))).unwrap();
    assert_eq!(infer(&mut model), []);
    model.edit(edits).unwrap();
    assert_eq!(infer(&mut model), []);
    assert_eq!(model.graph().verify(), Ok(()));
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("model.xml");
    model.save(&saved).unwrap();
    let mut sums = Vec::new();
    for extension in ["xml", "bin"] {
        let kept = path(&format!("{case}.after.{extension}"));
        let bytes = fs::read(saved.with_extension(extension)).unwrap();
        if std::env::var_os("UPDATE_REWRITES").is_some() {
            fs::write(&kept, &bytes).unwrap();
        }
        assert_eq!(bytes, fs::read(&kept).unwrap(), "{case}.after.{extension} is not what is written");
        let mut sum = flate2::Crc::new();
        sum.update(&bytes);
        sums.push(sum.sum());
    }
    if std::env::var_os("UPDATE_REWRITES").is_none() {
        let answer = &answers()[case];
        assert_eq!(answer["crc32"], serde_json::json!(sums), "run rewrites.py again");
        assert!(answer["largest_difference"].as_f64().unwrap() <= 1e-6, "{answer}");
    }
    let (before, after) =
        (fs::read_to_string(path(&format!("{case}.xml"))).unwrap(), fs::read_to_string(saved).unwrap());
    let diff = TextDiff::from_lines(&before, &after);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    changed.map(|change| format!("{}{}", change.tag(), change.value().trim())).collect()
}

/// Returns the layers of an operation, producers first.
fn of_type(graph: &Edit, ty: &str) -> Vec<LayerId> {
    graph.layers().filter(|layer| layer.ty() == ty).map(|layer| layer.id()).collect()
}

/// Returns the source of an input, if it has this operation.
fn fed_by(graph: &Edit, layer: LayerId, port: usize, ty: &str) -> Option<Output> {
    let source = graph.producers(layer).get(port).copied().flatten()?;
    graph.layer(source.layer).filter(|layer| layer.ty() == ty).map(|_| source)
}

#[test]
fn fuse() {
    let changed = rewrite("fuse", |graph| {
        for product in of_type(graph, "Multiply") {
            let Some(sigmoid) = fed_by(graph, product, 1, "Sigmoid") else { continue };
            let x = graph.producers(sigmoid.layer)[0].unwrap();
            if graph.producers(product)[0] == Some(x) {
                graph.replace_in_place(product, NewLayer::new("Swish", "opset4"), &[x])?;
                graph.remove_unused([sigmoid.layer])?;
            }
        }
        Ok(())
    });
    insta::assert_snapshot!(changed.join("\n"));
}

#[test]
fn replace_a_constant() {
    rewrite("constant", |graph| {
        for quotient in of_type(graph, "Divide") {
            let [Some(x), Some(divisor)] = graph.producers(quotient)[..] else { continue };
            let Some(values) = graph.numbers(divisor) else { continue };
            let inverse: Vec<f32> = values.iter().map(|value| 1.0 / *value as f32).collect();
            let inverse = graph.constant_of(&[inverse.len() as i64], &inverse)?;
            graph.replace_in_place(quotient, NewLayer::new("Multiply", "opset1"), &[x, inverse])?;
            graph.remove_unused([divisor.layer])?;
        }
        Ok(())
    });
}

#[test]
fn drop_noops() {
    rewrite("noops", |graph| {
        for ty in ["Convert", "Transpose", "Reshape"] {
            for layer in of_type(graph, ty) {
                let x = graph.producers(layer)[0].unwrap();
                let order = graph.producers(layer).get(1).and_then(|order| graph.numbers((*order)?));
                let same = graph.output(x).unwrap().to_string() == graph.output(layer.output(0)).unwrap().to_string();
                if same && (ty != "Transpose" || order.is_some_and(|order| order.is_sorted())) {
                    // A Result that would lose its name keeps its layer.
                    if graph.replace_uses(layer.output(0), x).is_ok() {
                        graph.remove_unused([layer])?;
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn push_converts_down() {
    let changed = rewrite("converts", |graph| {
        for layer in of_type(graph, "Transpose").into_iter().chain(of_type(graph, "Reshape")) {
            let Some(convert) = fed_by(graph, layer, 0, "Convert") else { continue };
            let to = graph.output(convert).unwrap().element_type();
            let x = graph.producers(convert.layer)[0].unwrap();
            graph.insert_after(layer.output(0), NewLayer::convert(to), &[])?;
            graph.connect(x, layer.input(0))?;
            graph.remove_unused([convert.layer])?;
        }
        Ok(())
    });
    insta::assert_snapshot!(changed.join("\n"));
}

#[test]
fn rename() {
    let changed = rewrite("rename", |graph| {
        graph.rename("input0", "images")?;
        graph.rename("output0", "scores")
    });
    insta::assert_snapshot!(changed.join("\n"));
    let answer = answers();
    assert_eq!(answer["rename"]["inputs"], serde_json::json!([["images"]]));
    assert_eq!(answer["rename"]["outputs"], serde_json::json!([["scores"]]));
}

#[test]
fn cut() {
    rewrite("cut", |graph| graph.cut(graph.tensor("feature")?).map(|_| ()));
    assert_eq!(answers()["cut"]["outputs"], serde_json::json!([["feature"]]));
}

#[test]
fn preprocess() {
    rewrite("preprocess", |graph| {
        let images = graph.tensor("images")?;
        let mean = graph.constant_of(&[3], &[123.675_f32, 116.28, 103.53])?;
        let scale = graph.constant_of(&[3], &[58.395_f32, 57.12, 57.375])?;
        let order = graph.constant_of(&[4], &[0_i64, 3, 1, 2])?;
        graph.set_attribute(images.layer, "element_type", "u8")?;
        graph.set_attribute(images.layer, "shape", "1,2,2,3")?;
        let transpose = graph.insert_after(images, NewLayer::new("Transpose", "opset1"), &[order])?;
        graph.insert_before(transpose.input(0), NewLayer::convert(ElementType::F32), &[])?;
        graph.insert_before(transpose.input(0), NewLayer::new("Subtract", "opset1"), &[mean])?;
        graph.insert_before(transpose.input(0), NewLayer::new("Divide", "opset1"), &[scale])?;
        Ok(())
    });
}

#[test]
fn hswish() {
    rewrite("hswish", |graph| {
        for quotient in of_type(graph, "Divide") {
            let inner = || {
                let product = fed_by(graph, quotient, 0, "Multiply")?;
                let clamp = fed_by(graph, product.layer, 1, "Clamp")?;
                let sum = fed_by(graph, clamp.layer, 0, "Add")?;
                let [x, three] = graph.producers(sum.layer)[..] else { return None };
                let bounds = ["min", "max"].map(|name| graph.layer(clamp.layer)?.attribute(name)?.parse().ok());
                let holds = graph.numbers(three?)? == [3.0]
                    && graph.numbers(graph.producers(quotient)[1]?)? == [6.0]
                    && bounds == [Some(0.0), Some(6.0)]
                    && graph.producers(product.layer)[0] == x;
                holds.then_some((x?, graph.producers(quotient)))
            };
            let Some((x, old)) = inner() else { continue };
            graph.replace_in_place(quotient, NewLayer::new("HSwish", "opset4"), &[x])?;
            graph.remove_unused(old.into_iter().flatten().map(|old| old.layer))?;
        }
        Ok(())
    });
}

#[test]
fn bodies() {
    let changed = rewrite("bodies", |graph| {
        let owners: Vec<_> = graph.layers().map(|layer| (layer.id(), layer.bodies().len())).collect();
        for (owner, at) in owners.into_iter().flat_map(|(owner, bodies)| (0..bodies).map(move |at| (owner, at))) {
            let mut body = graph.body(owner, at)?;
            for product in of_type(&body, "Multiply") {
                let [Some(x), Some(y)] = body.producers(product)[..] else { continue };
                if x == y {
                    let two = body.constant_of(&[], &[2_f32])?;
                    body.replace_in_place(product, NewLayer::new("Power", "opset1"), &[x, two])?;
                }
            }
        }
        Ok(())
    });
    insta::assert_snapshot!(changed.join("\n"));
}

#[test]
fn cse() {
    rewrite("cse", |graph| {
        let mut known = BTreeMap::new();
        for layer in graph.layers().map(|layer| layer.id()).collect::<Vec<_>>() {
            let it = graph.layer(layer).unwrap();
            if it.outputs().len() != 1 || it.inputs().is_empty() {
                continue;
            }
            let key = format!("{} {:?} {:?}", it.ty(), it.attributes(), graph.producers(layer));
            match known.get(&key) {
                Some(&first) if graph.replace_uses(layer.output(0), first).is_ok() => graph.remove(layer)?,
                _ => drop(known.insert(key, layer.output(0))),
            }
        }
        Ok(())
    });
}
