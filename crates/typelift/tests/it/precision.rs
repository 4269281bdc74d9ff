//! Compares the compression of a model with OpenVINO's, recorded in `testdata/oracle/precision`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use typelift::convert::Conversion;
use typelift::edit::precision_marks::Marks;
use typelift::precision::{Compression, Like, Plan, Storage};
use typelift::promote::ElementType::F16;
use typelift::{Model, infer};

/// Path, element type, shape, CRC-32 of the bytes, and whether a marked Convert uses it.
type Constant = (String, String, String, u32, bool);

#[derive(Debug, Default, Deserialize, PartialEq)]
struct Facts {
    constants: Vec<Constant>,
    marks: Vec<String>,
    decompressions: usize,
    bin: u64,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/precision")
}

fn answers() -> BTreeMap<String, Facts> {
    serde_json::from_str(&std::fs::read_to_string(folder().join("answers.json")).unwrap()).unwrap()
}

fn read(path: &Path) -> Model {
    let mut model = Model::open(path).unwrap();
    assert_eq!(infer(&mut model), [], "{}", path.display());
    model
}

fn open(case: &str) -> Model {
    read(&folder().join(format!("{case}.xml")))
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Returns the facts that `take.py` records about a model.
fn facts(model: &Model) -> Facts {
    let mut facts = Facts { bin: model.weights().len().unwrap_or(0), ..Facts::default() };
    for (place, graph) in model.walk() {
        for layer in graph.layers() {
            let marks = Marks::of(layer, model.version());
            let is_decompression = |id| Marks::of(graph.layer(id).unwrap(), model.version()).is_decompression();
            let name = [place.path(), layer.name()].join(if place.is_model() { "" } else { "/" });
            facts.decompressions += usize::from(marks.is_decompression());
            if layer.ty() == "Const" {
                let number = |name: &str| layer.attribute(name).unwrap().parse::<u64>().unwrap();
                let bytes = model.weights().read(number("offset"), number("size") as usize).unwrap();
                let text = |name: &str| layer.attribute(name).unwrap().to_owned();
                let behind = graph.users(layer.id()).any(is_decompression);
                facts.constants.push((name.clone(), text("element_type"), text("shape"), crc(&bytes), behind));
            }
            if !marks.is_empty() && !marks.is_decompression() {
                facts.marks.push(name);
            }
        }
    }
    facts.constants.sort();
    facts.marks.sort();
    facts
}

/// Returns the model after a plan, saved and read again.
fn saved(mut model: Model, plan: &Plan) -> Model {
    plan.apply(&mut model).unwrap();
    reread(&model)
}

/// Returns the model, saved and read again.
fn reread(model: &Model) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.xml");
    model.save(&path).unwrap();
    read(&path)
}

#[test]
fn compressed_models_are_those_of_openvino() {
    are_those_of_openvino(|model| {
        let plan = Plan::compress(&model, &Compression::to(F16));
        saved(model, &plan)
    });
}

#[test]
fn a_conversion_that_compresses_leaves_promotions_as_openvino_does() {
    are_those_of_openvino(|mut model| {
        let storage = Some(Storage::Compress { to: F16, like: Like::default() });
        let mut conversion = Conversion::default();
        conversion.storage = storage;
        let converted = conversion.run(&mut model).unwrap();
        assert_eq!([converted.promotions_replaced, converted.promotions_left], [0, 0]);
        reread(&model)
    });
}

/// Compresses each model, and compares it with OpenVINO's result.
fn are_those_of_openvino(compress: impl Fn(Model) -> Model) {
    let mut differences = Vec::new();
    for (case, expected) in answers() {
        let found = facts(&compress(open(&case)));
        let largest = expected.bin;
        let found = Facts { bin: found.bin.max(largest), ..found };
        if found != expected {
            differences.push(format!("{case}\n  {expected:?}\n  {found:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn compressing_and_back_gives_the_layers_of_the_source() {
    for case in answers().into_keys() {
        let model = open(&case);
        let plan = Plan::compress(&model, &Compression::to(F16));
        if facts(&model).decompressions > 0 {
            continue;
        }
        let layers = |model: &Model| {
            model
                .graph()
                .layers()
                .map(|layer| {
                    format!(
                        "{} {} {}",
                        layer.ty(),
                        layer.name(),
                        layer.outputs().iter().map(ToString::to_string).collect::<String>()
                    )
                })
                .collect::<Vec<_>>()
        };
        let source = layers(&model);
        let compressed = saved(model, &plan);
        let plan = Plan::decompress(&compressed, &[F16]);
        assert_eq!(layers(&saved(compressed, &plan)), source, "{case}");
    }
}

#[test]
fn a_model_and_its_compressed_one_differ_by_precision_alone() {
    let model = open("edge_rounding_ties");
    let plan = Plan::compress(&model, &Compression::to(F16));
    let worst = plan.totals().max_rel;
    let compressed = saved(model.clone(), &plan);
    let diff = typelift::diff(&model, &compressed);
    let errors: Vec<_> = diff.changes.iter().map(|change| change.error.unwrap().max_relative).collect();
    assert_eq!(errors.len(), plan.changed().count(), "{diff:?}");
    assert!((errors.iter().copied().fold(0.0, f64::max) - worst).abs() <= worst * 1e-6);
    assert!(typelift::diff(&compressed, &compressed).is_same());
}
