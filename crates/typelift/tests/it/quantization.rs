//! Weight-only quantization, compared with what nncf makes of the same models: `testdata/oracle/quantization`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use typelift::convert::Conversion;
use typelift::precision::quantize::{Backup, Choice, Fallback, Group, Mode, Quantization, QuantizationPlan, Request};
use typelift::precision::{KeepPattern, Kept, Plan, Storage, schemes};
use typelift::rewrite::library;
use typelift::{Model, infer};

/// Name, element type, shape, and CRC-32 of the bytes.
type Constant = (String, String, String, u32);

#[derive(Debug, Deserialize)]
struct Job {
    options: Options,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    constants: Vec<Constant>,
    #[serde(default)]
    layers: BTreeMap<String, usize>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Options {
    mode: String,
    group_size: Option<i64>,
    ratio: Option<f64>,
    #[serde(default)]
    all_layers: bool,
    backup: Option<String>,
    fallback: Option<String>,
}

impl Options {
    fn settings(&self) -> Quantization {
        let mut settings = Quantization::to(self.mode.parse().unwrap());
        settings.group = self.group_size.map(|size| size.to_string().parse::<Group>().unwrap());
        settings.ratio = self.ratio;
        settings.all_layers = self.all_layers;
        settings.backup = self.backup.as_ref().map(|backup| backup.parse::<Backup>().unwrap());
        settings.fallback = match self.fallback.as_deref() {
            None => Fallback::Refuse,
            Some("ignore") => Fallback::Ignore,
            Some(_) => Fallback::Adjust,
        };
        settings
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/quantization")
}

fn open(case: &str) -> Model {
    let mut model = Model::open(folder().join(format!("{case}.xml"))).unwrap();
    assert_eq!(infer(&mut model), [], "{case}");
    model
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// True for a name that OpenVINO or this library made for a layer without one: `Constant_12`.
fn is_invented(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap();
    last.split_once('_').is_some_and(|(ty, number)| {
        ty.starts_with(|c: char| c.is_ascii_uppercase())
            && ty.chars().all(char::is_alphabetic)
            && number.parse::<u64>().is_ok()
    })
}

/// The constants and the number of layers of each type, as `take.py` notes them.
fn facts(model: &Model) -> (Vec<Constant>, BTreeMap<String, usize>) {
    let (mut constants, mut layers) = (Vec::new(), BTreeMap::new());
    for (_, graph) in model.walk() {
        for layer in graph.layers() {
            *layers.entry(layer.ty().to_owned()).or_default() += 1;
            if layer.ty() == "Const" {
                let text = |name: &str| layer.attribute(name).unwrap_or_default().replace(' ', "");
                let number = |name: &str| text(name).parse::<u64>().unwrap();
                let bytes = model.weights().read(number("offset"), number("size") as usize).unwrap();
                let name = if is_invented(layer.name()) { "~" } else { layer.name() };
                constants.push((name.to_owned(), text("element_type"), text("shape"), crc(&bytes)));
            }
        }
    }
    constants.sort();
    (constants, layers)
}

/// Every mode, group, backup, fallback and ratio gives the constants, names, bytes, layers and settings of nncf, and what nncf
/// refuses is refused. A model in which nothing is quantized gets no settings.
#[test]
fn models_are_quantized_as_by_nncf() {
    let answers = std::fs::read_to_string(folder().join("answers.json")).unwrap();
    let answers: BTreeMap<String, Vec<Job>> = serde_json::from_str(&answers).unwrap();
    let (mut jobs, mut refused) = (0, 0);
    for (name, answers) in &answers {
        for job in answers {
            let what = format!("{name}: {:?}", job.options);
            let mut model = open(name);
            let plan = QuantizationPlan::of(&model, &job.options.settings(), &Kept::default());
            if job.refused {
                assert!(plan.unwrap_err().iter().all(|it| !it.fixes.is_empty()), "{what}");
                refused += 1;
                continue;
            }
            let plan = plan.unwrap_or_else(|errors| panic!("{what}: {errors:?}"));
            plan.apply(&mut model).unwrap();
            assert_eq!(infer(&mut model), [], "{what}");
            assert_eq!(facts(&model), (job.constants.clone(), job.layers.clone()), "{what}");
            for (key, value) in job.settings.iter().filter(|_| plan.changed().next().is_some()) {
                let found = model.rt_info(&format!("nncf/weight_compression/{key}"));
                assert_eq!(found.as_ref(), Some(value), "{what}: {key}");
            }
            jobs += 1;
        }
    }
    assert!(jobs > 80 && refused > 20, "{jobs} and {refused}");
}

/// Programs recognize the result as they recognize nncf's, and it does not say that nncf was there. The way back leaves the
/// metadata as it was.
#[test]
fn metadata_says_who_quantized_and_is_removed_on_the_way_back() {
    for (keep, ignored) in [(None, ("ignored_scope", "[]")), (Some("y"), ("ignored_scope/names", "['y']"))] {
        let mut model = Model::from_text(
            "x = Parameter : f32[1,32]\nv = Const(0.5) : f32[32,32]\nw = Const(0.5) : f32[32,32]\n\
             y = MatMul(x, v) {transpose_b=true}\nz = MatMul(y, w) {transpose_b=true}\nr = Result(z)",
        )
        .unwrap();
        assert_eq!(infer(&mut model), []);
        model.set_rt_info("runtime_options/KV_CACHE_PRECISION", "f16").unwrap();
        let before = model.rt_info_entries();
        let mut conversion = Conversion::default();
        conversion.quantize = Some(Request::Settings(Quantization::to(Mode::Int8Sym)));
        conversion.keep.extend(keep.map(KeepPattern::from));
        let done = conversion.run(&mut model).unwrap();
        let expected = [
            ("nncf/weight_compression/mode", "int8_sym"),
            ("nncf/weight_compression/group_size", "-1"),
            (&format!("nncf/weight_compression/{}", ignored.0), ignored.1),
            ("nncf/friendly_names_were_updated", "True"),
            ("typelift/version", env!("CARGO_PKG_VERSION")),
        ];
        for (path, value) in expected {
            assert_eq!(model.rt_info(path).as_deref(), Some(value), "{path}");
        }
        assert_eq!(model.rt_info("nncf/version"), None);
        let removed = done.metadata.iter().find(|it| it.path == "runtime_options/KV_CACHE_PRECISION").unwrap();
        assert_eq!(removed.to_string(), "the metadata runtime_options/KV_CACHE_PRECISION=f16 is removed");
        assert!(model.made_by().unwrap().starts_with("typelift "));
        conversion = Conversion::default();
        conversion.storage = Some(Storage::Dequantize(None));
        conversion.run(&mut model).unwrap();
        assert_eq!(model.rt_info_entries(), before);
    }
}

/// A plan that is written as text and read again quantizes every constant the same way.
#[test]
fn a_plan_file_repeats_a_plan() {
    let model = open("groups_not_dividing");
    let mut settings = Quantization::to(Mode::Int4Sym);
    settings.group = Some(Group::Of(64));
    settings.fallback = Fallback::Adjust;
    let plan = QuantizationPlan::of(&model, &settings, &Kept::default()).unwrap();
    let choices = Choice::parse(&plan.to_text()).unwrap();
    let again = Request::Plan(choices).plan(&model, &Kept::default()).unwrap();
    let results = [plan, again].map(|plan| {
        let mut model = model.clone();
        plan.apply(&mut model).unwrap();
        facts(&model)
    });
    assert_eq!(results[0], results[1]);
}

/// A plan with a name that no constant has, or a group that does not divide its channels, is refused.
#[test]
fn a_plan_file_that_does_not_fit_is_refused() {
    let model = open("groups_not_dividing");
    let reason = |text: &str| {
        let request = Request::Plan(Choice::parse(text).unwrap());
        request.plan(&model, &Kept::default()).unwrap_err()[0].message.to_string()
    };
    let first = QuantizationPlan::of(&model, &Quantization::to(Mode::Int8Sym), &Kept::default()).unwrap();
    let name = &first.constants[0].name;
    assert!(reason(&format!("int8_sym -1 {name}x")).contains(&format!("did you mean `{name}`?")));
    assert!(reason(&format!("int4_sym 7 {name}")).contains("is not a multiple of the group size 7"));
}

/// Infinite values are found before anything is changed, and the constant is named.
#[test]
fn infinite_weights_are_refused() {
    let model = open("mm_left");
    let mut bytes = model.weights().to_bytes().unwrap();
    bytes[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let mut model = model;
    model.set_weights(typelift::Weights::from_bytes(bytes));
    let errors = QuantizationPlan::of(&model, &Quantization::to(Mode::Int8Asym), &Kept::default()).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.to_string().contains("infinite"), "{}", errors[0].message);
}

/// The loss that the audit states is that of the values which the codes stand for.
#[test]
fn the_audit_states_the_error_of_each_row() {
    let model = open("mm_left");
    let mut plan = QuantizationPlan::of(&model, &Quantization::to(Mode::Int8Sym), &Kept::default()).unwrap();
    plan.audit(&model);
    let loss = plan.constants[0].loss.unwrap();
    assert!(loss.largest < 0.5 / 128.0 * 1.01 && loss.rms < loss.largest && loss.rms > 0.0, "{loss:?}");
    assert_eq!((loss.zero_rows, loss.at_limit), (0, 0));
    let largest = plan.changed().filter_map(|constant| constant.loss).map(|loss| loss.largest).fold(0.0, f64::max);
    assert!(!plan.beyond(&model, largest * 0.9).is_empty());
    assert!(plan.beyond(&model, largest * 1.1).is_empty());
}

/// Returns a model, quantized with these settings.
fn quantized(case: &str, settings: &Quantization) -> Model {
    let mut model = open(case);
    let plan = QuantizationPlan::of(&model, settings, &Kept::default()).unwrap();
    plan.apply(&mut model).unwrap();
    assert_eq!(infer(&mut model), [], "{case}");
    model
}

/// The values of the constant that a layer holds.
fn numbers(model: &Model, name: &str) -> Vec<f64> {
    let layer = model.graph().layer(model.graph().find(name).unwrap()).unwrap();
    layer.numbers(model.weights()).unwrap()
}

/// A comparison states the errors of the values with which the model computes, not of codes.
#[test]
fn a_comparison_is_of_values() {
    let before = open("mm_ranks");
    let after = quantized("mm_ranks", &Quantization::to(Mode::Int8Asym));
    let diff = typelift::diff(&before, &after);
    let found = schemes::find(after.graph(), after.weights());
    assert_eq!(diff.changes.len(), found.len());
    for constant in found {
        let name = constant.name(after.graph());
        let values = constant.values(after.graph(), after.weights()).unwrap();
        let pairs: Vec<_> = numbers(&before, name).into_iter().zip(values.into_iter().map(f64::from)).collect();
        let largest = pairs.iter().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let relative = pairs.iter().filter(|(a, _)| *a != 0.0).map(|(a, b)| ((a - b) / a).abs()).fold(0.0, f64::max);
        let change = diff.changes.iter().find(|change| change.path == name).unwrap();
        let error = change.error.unwrap();
        assert_eq!((error.max_absolute, error.max_relative), (largest, relative), "{name}");
        assert!(error.max_of_range.is_some_and(|part| part > 0.0 && part < 0.01), "{name}: {error:?}");
    }
}

/// Plain constants in place of quantized ones hold the values with which the model computed.
#[test]
fn plain_constants_hold_the_values_of_codes() {
    for mode in [Mode::Int8Asym, Mode::Int4Sym, Mode::Nf4] {
        let mut settings = Quantization::to(mode);
        settings.group = (mode != Mode::Int8Asym).then_some(Group::Channel);
        let mut model = quantized("mm_ranks", &settings);
        let found = schemes::find(model.graph(), model.weights());
        let values: Vec<_> = found
            .iter()
            .map(|it| (it.name(model.graph()).to_owned(), it.values(model.graph(), model.weights()).unwrap()))
            .collect();
        assert!(!values.is_empty(), "{mode}");
        Plan::dequantize(&model, None, &Kept::default()).apply(&mut model).unwrap();
        assert_eq!(infer(&mut model), []);
        assert!(schemes::find(model.graph(), model.weights()).is_empty());
        for (name, values) in values {
            let expected: Vec<_> = values.into_iter().map(f64::from).collect();
            assert_eq!(numbers(&model, &name), expected, "{mode}: {name}");
        }
    }
}

/// A product of a code and a scale in f16 has more bits than f16 holds, so it is rounded, and the rounding is counted.
#[test]
fn values_that_the_stored_type_rounds_are_counted() {
    for (scale, most) in [("0.5", 0.0), ("0.3", f64::exp2(-11.0))] {
        let text = format!(
            "x = Parameter : f16[1,3]
c = Const([[3, 7, 113]]) : u8[1,3]
q = Convert(c) {{destination_type=f16}}
s = Const({scale}) : f16[]
w = Multiply(q, s)
y = MatMul(x, w) {{transpose_a=false, transpose_b=true}}
r = Result(y)"
        );
        let mut model = Model::from_text(&text).unwrap();
        assert_eq!(infer(&mut model), []);
        let lost = Plan::dequantize(&model, None, &Kept::default()).totals().max_rel;
        assert!(lost <= most && (lost > 0.0) == (most > 0.0), "{scale}: {lost}");
    }
}

/// A constant that needs more memory than permitted is named, and dequantization leaves it unchanged.
#[test]
fn scales_and_reordered_values_keep_to_the_memory_limit() {
    let mut model = open("mm_ranks");
    model.set_weights(model.weights().clone().with_memory(10));
    let refused = QuantizationPlan::of(&model, &Quantization::to(Mode::Int8Sym), &Kept::default()).unwrap_err();
    assert!(refused[0].message.to_string().contains("cannot be quantized: it needs "), "{refused:?}");

    let row = format!("[{}]", vec!["1"; 300].join(", "));
    let mut model = Model::from_text(&format!(
        "
         x = Parameter : f32[4,300]
         c = Const([{row}, {row}]) : u8[2,300]
         q = Convert(c) {{destination_type=f32}}
         s = Const(0.5) : f32[]
         v = Multiply(q, s)
         o = Const([1, 0]) : i64[2]
         w = Transpose(v, o)
         y = MatMul(x, w) {{transpose_a=false, transpose_b=false}}
         r = Result(y)
         "
    ))
    .unwrap();
    assert_eq!(infer(&mut model), []);
    assert_eq!(Plan::dequantize(&model, None, &Kept::default()).changed().count(), 1);
    model.set_weights(model.weights().clone().with_memory(3000));
    let plan = Plan::dequantize(&model, None, &Kept::default());
    let warnings = plan.warnings(&model);
    assert_eq!((plan.changed().count(), warnings.len()), (0, 1));
    assert!(
        warnings[0].message.to_string().starts_with("the values of `c` cannot be computed: it needs 4.7 KiB"),
        "{warnings:?}"
    );
}

/// Weights in a form that the CPU plugin unfolds get the one that it keeps, with the same values.
#[test]
fn weights_get_the_form_that_is_kept() {
    let with = |weights: &str| {
        let text = format!(
            "x = Parameter : f32[2,3]
             c = Const([[0, 7, 250], [1, 2, 3]]) : u8[2,3]
             q = Convert(c) {{destination_type=f32}}
             s = Const([[0.5], [4]]) : f32[2,1]
             z = Const([[-3]]) : f32[1,1]
             {weights}
             y = MatMul(x, w) {{transpose_a=false, transpose_b=true}}
             r = Result(y)"
        );
        text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
    };
    let spellings = [
        ("w = Divide(q, s)", [0.0, 14.0, 500.0, 0.25, 0.5, 0.75]),
        ("a = Add(q, z)\nw = Multiply(a, s)", [-1.5, 2.0, 123.5, -8.0, -4.0, 0.0]),
        ("a = Multiply(q, s)\nw = Subtract(a, z)", [3.0, 6.5, 128.0, 7.0, 11.0, 15.0]),
        ("n = Const([[0]]) : f32[1,1]\nw = Subtract(q, n)", [0.0, 7.0, 250.0, 1.0, 2.0, 3.0]),
    ];
    let rules = library::get("keep-compressed").unwrap().rules().unwrap();
    for (weights, values) in spellings {
        let mut model = Model::from_text(&with(weights)).unwrap();
        assert_eq!(infer(&mut model), [], "{weights}");
        assert_eq!(model.rewrite(&rules).unwrap().applied.len(), 1, "{weights}");
        assert_eq!(infer(&mut model), [], "{weights}");
        let found = schemes::find(model.graph(), model.weights());
        assert_eq!(found.len(), 1, "{weights}");
        assert_eq!(found[0].values(model.graph(), model.weights()).unwrap(), values, "{weights}");
        assert_eq!(model.rewrite(&rules).unwrap().applied, [], "{weights}: a second run changes nothing");
    }
}

/// Weights behind FakeQuantize become integers with the values that FakeQuantize gives.
#[test]
fn fake_quantize_becomes_integers() {
    let text = "
        x = Parameter : f32[1,4]
        w = Const([[-2, -0.9, 0.3, 1], [-0.5, 0, 0.26, 9]]) : f32[2,4]
        l = Const([[-1], [-0.5]]) : f32[2,1]
        h = Const([[1], [0.5]]) : f32[2,1]
        q = FakeQuantize(w, l, h, l, h) {levels=5}
        y = MatMul(x, q) {transpose_a=false, transpose_b=true}
        r = Result(y)";
    let mut model = Model::from_text(&text.replace("\n        ", "\n")).unwrap();
    assert_eq!(infer(&mut model), []);
    let rules = library::get("fake-quantize-weights").unwrap().rules().unwrap();
    assert_eq!(model.rewrite(&rules).unwrap().applied.len(), 1);
    assert_eq!(infer(&mut model), []);
    let found = schemes::find(model.graph(), model.weights());
    assert_eq!(found[0].scheme.to_string(), "int4 symmetric, per channel, f32 scales");
    let values = found[0].values(model.graph(), model.weights()).unwrap();
    assert_eq!(values, [-1.0, -1.0, 0.5, 1.0, -0.5, 0.0, 0.25, 0.5]);
    let codes = model.graph().layer(found[0].codes).unwrap().numbers(model.weights()).unwrap();
    assert_eq!(codes, [-2.0, -2.0, 1.0, 2.0, -2.0, 0.0, 1.0, 2.0]);
    // No integer represents NaN, which FakeQuantize keeps.
    let mut model = Model::from_text(&text.replace("\n        ", "\n").replace("0.26, 9", "0.26, nan")).unwrap();
    assert_eq!(model.rewrite(&rules).unwrap().applied, []);
}
