//! Values of sampled models, as OpenVINO's reference kernels computed them once: before and after shipped rules, and of
//! folded layers. `testdata/oracle/rules/sample.py` and `fold.py` take the samples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use typelift::Model;
use typelift::edit::Edit;
use typelift::graph::OutputPort;
use typelift::promote::ElementType;
use typelift::rewrite::{Rule, library};

use crate::recorded::infer_text;

/// An array as the scripts write it.
#[derive(Deserialize)]
struct Packed {
    r#type: String,
    shape: Vec<i64>,
    bytes: String,
}

impl Packed {
    fn element_type(&self) -> ElementType {
        ElementType::from_name(&self.r#type).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        STANDARD.decode(&self.bytes).unwrap()
    }
}

/// A model with inputs and outputs.
#[derive(Deserialize)]
struct Sample {
    name: String,
    xml: String,
    bin: String,
    #[serde(default)]
    inputs: BTreeMap<String, Packed>,
    #[serde(default)]
    outputs: Vec<Packed>,
    /// Values of the folded layer, as f64.
    #[serde(default)]
    values: String,
}

impl Sample {
    fn model(&self) -> Model {
        let (model, found) = infer_text(&self.xml, Some(STANDARD.decode(&self.bin).unwrap()));
        assert!(found.iter().all(|it| !it.is_error()), "{}: {found:?}", self.name);
        model.unwrap()
    }

    /// Makes the inputs of a model constants, and computes what rules compute. Returns the values of its outputs that
    /// are known then.
    fn compute(&self, mut model: Model) -> Vec<Option<Vec<f64>>> {
        let freeze = |edit: &mut Edit| {
            for (name, value) in &self.inputs {
                if let Ok(input) = edit.find(name) {
                    edit.set_constant(input, value.element_type(), &value.shape, &value.bytes())?;
                }
            }
            Ok(())
        };
        model.edit(freeze).unwrap();
        let _types = typelift::infer(&mut model);
        let evaluating = ["constant-folding", "constant-ifs"].map(|set| library::get(set).unwrap().rules().unwrap());
        model.rewrite(&evaluating.concat()).unwrap();
        let outputs = model.outputs().map(|end| model.graph().producer(end.id().input(0)).unwrap());
        outputs.map(|tensor| model.graph().layer(tensor.layer)?.numbers(model.weights())).collect()
    }
}

fn samples(name: &str) -> Vec<Sample> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/rules").join(name);
    let lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// Returns the tolerated relative error of arithmetic in a type.
fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F64 => 1e-5,
        ElementType::F32 => 2e-4,
        ElementType::F16 => 2e-2,
        ElementType::Bf16 => 1e-1,
        _ => 0.0,
    }
}

fn is_near(expected: &[f64], found: &[f64], ty: ElementType) -> bool {
    let finite = expected.iter().filter(|value| value.is_finite()).map(|value| value.abs());
    let scale = finite.fold(0.0, f64::max).min(1e3);
    let near = |(a, b): (&f64, &f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance(ty) * (a.abs() + scale + 1e-3)
    };
    expected.len() == found.len() && expected.iter().zip(found).all(near)
}

/// Returns the numbers of an answer.
fn answer(packed: &Packed) -> Vec<f64> {
    let dims: Vec<_> = packed.shape.iter().map(ToString::to_string).collect();
    let text = format!("c = Const(0) : {}[{}]\nr = Result(c)", packed.r#type, dims.join(","));
    let mut model = Model::from_text(&text).unwrap();
    let id = model.find("c").unwrap().1;
    model.edit(|edit| edit.set_constant(id, packed.element_type(), &packed.shape, &packed.bytes())).unwrap();
    model.graph().layer(id).unwrap().numbers(model.weights()).unwrap()
}

#[test]
fn shipped_rules_keep_the_values_that_openvino_computed() {
    let rules: Vec<Rule> = library::all().flat_map(|set| set.rules().unwrap()).collect();
    let (mut compared, mut known, mut names) = (0, 0, BTreeSet::new());
    for sample in samples("sample.jsonl.gz") {
        let mut model = sample.model();
        let types = |model: &Model| -> Vec<_> {
            let ends = model.outputs().map(|end| model.graph().producer(end.id().input(0)).unwrap());
            ends.map(|tensor| model.graph().output(tensor).map(OutputPort::element_type)).collect()
        };
        let before = types(&model);
        model.rewrite(&rules).unwrap();
        assert_eq!(types(&model), before, "{}", sample.name);
        assert_eq!(model.clone().rewrite(&rules).unwrap().applied, [], "a second run changes {}", sample.name);
        for (values, expected) in sample.compute(model).into_iter().zip(&sample.outputs) {
            compared += 1;
            let Some(values) = values else { continue };
            known += 1;
            let answer = answer(expected);
            assert!(is_near(&answer, &values, expected.element_type()), "{}: {answer:?} and {values:?}", sample.name);
        }
        names.insert(sample.name.split(' ').next().unwrap_or_default().to_owned());
    }
    assert!(names.len() >= 110, "{} rules", names.len());
    // The values of convolutions and of some activations are not computed here.
    assert!(known * 10 >= compared * 7, "{known} of {compared}");
}

#[test]
fn folded_values_are_those_of_openvino() {
    let rules = library::get("constant-folding").unwrap().rules().unwrap();
    let (mut operations, mut folded) = (BTreeSet::new(), 0);
    for sample in samples("fold.jsonl.gz") {
        let mut model = sample.model();
        model.rewrite(&rules).unwrap();
        let bytes = STANDARD.decode(&sample.values).unwrap();
        let expected: Vec<_> = bytes.chunks_exact(8).map(|it| f64::from_le_bytes(it.try_into().unwrap())).collect();
        let constant = model.graph().layers().filter(|layer| layer.ty() == "Const").find_map(|layer| {
            let numbers = layer.numbers(model.weights())?;
            (numbers.len() + 1 == expected.len()).then_some((layer.outputs()[0].element_type(), numbers))
        });
        let Some((ty, numbers)) = constant else { panic!("{} is not folded", sample.name) };
        // The last value is that of the input.
        assert!(is_near(&expected[..numbers.len()], &numbers, ty), "{}: {expected:?} and {numbers:?}", sample.name);
        operations.insert(sample.name.split(' ').next().unwrap_or_default().to_owned());
        folded += 1;
    }
    assert!(operations.len() >= 70 && folded >= 1500, "{} operations, {folded} cases", operations.len());
}
