//! The built-in rules: each finds its case, and OpenVINO computed the same before and after.
//!
//! `LIBRARY_MODELS=DIR cargo test -p typelift --test it library` writes the models into a directory.
//! `testdata/oracle/library/library.py DIR` runs them and records the largest difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use typelift::rewrite::library::{self, SETS};
use typelift::{Model, infer};

use crate::mutations::fixtures;

fn fusion(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/fusion").join(file)
}

/// A case for each kind of rule: the set, and a graph that matches. The opposite set is applied to the result.
const CASES: &[(&str, &str, &str)] = &[
    (
        "no-ops",
        "zero",
        "x = Parameter : f32[2,3]\na = Relu(x)\nc = Const(0) : f32[]\nb = Add(c, a)\nd = Tanh(b)\nr = Result(d)",
    ),
    (
        "no-ops",
        "order",
        "x = Parameter : f32[2,3]\na = Relu(x)\nc = Const([0, 1]) : i64[2]\nb = Transpose(a, c)\nd = Tanh(b)\nr = Result(d)",
    ),
    (
        "converts-below-movement",
        "transpose",
        "x = Parameter : f16[2,3]\na = Convert(x) {destination_type=f32}\nc = Const([1, 0]) : i64[2]\nb = Transpose(a, c)\nr = Result(b)",
    ),
    (
        "converts-below-movement",
        "chain",
        "x = Parameter : u8[2,3]\na = Convert(x) {destination_type=f32}\ns = Const([3, -1]) : i64[2]\nb = Reshape(a, s) {special_zero=true}\ni = Const([1, 0]) : i32[2]\nz = Const(0) : i64[]\nd = Gather-8(b, i, z)\nr = Result(d)",
    ),
    (
        "common-subexpressions",
        "twice",
        "x = Parameter : f32[2,3]\na = Tanh(x)\nb = Tanh(x)\nd = Add(a, b)\nr = Result(d)",
    ),
    (
        "slices",
        "three",
        "x = Parameter : f32[2,6]\nz = Const([0]) : i64[1]\np = Const([1]) : i64[1]\nq = Const([4]) : i64[1]\ne = Const([9]) : i64[1]\no = Const([1]) : i64[1]\na = Slice-8(x, q, e, o, o)\nb = Slice-8(x, z, p, o, o)\nc = Slice-8(x, p, q, o, o)\nd = Concat(a, c, b) {axis=1}\nr = Result(d)",
    ),
    (
        "constant-ifs",
        "true",
        "x = Parameter : f32[2]\nc = Const(true) : boolean[]\ny = If-8(c, x)\n    then_body (in 1 -> 0, out 2 -> 0):\n        a = Parameter : f32[2]\n        b = Abs(a)\n        r = Result(b)\n    else_body (in 1 -> 0, out 1 -> 0):\n        a = Parameter : f32[2]\n        r = Result(a)\nz = Exp(y)\nr = Result(z)",
    ),
    (
        "reciprocals",
        "vector",
        "x = Parameter : f32[2,3]\nc = Const([3, 7, 0.1]) : f32[3]\na = Divide(x, c)\nr = Result(a)",
    ),
    (
        "fuse-hswish",
        "divide",
        "x = Parameter : f32[2,3]\nt = Const(3) : f32[]\ns = Const(6) : f32[1]\na = Add(x, t)\nb = Clamp(a) {min=0, max=6}\nc = Multiply(x, b)\nd = Divide(c, s)\nr = Result(d)",
    ),
    ("fuse-hswish", "sigmoid", "x = Parameter : f32[2,3]\na = HSigmoid(x)\nb = Multiply(a, x)\nr = Result(b)"),
    ("split-hswish", "hswish", "x = Parameter : f32[2,3]\na = HSwish-4(x)\nr = Result(a)"),
    (
        "fuse-gelu",
        "erf",
        "x = Parameter : f32[2,3]\nq = Const(1.4142135) : f32[]\nh = Const(0.5) : f32[]\no = Const(1) : f32[]\na = Divide(x, q)\nb = Erf(a)\nc = Add(b, o)\nd = Multiply(x, c)\ne = Multiply(d, h)\nr = Result(e)",
    ),
    (
        "fuse-gelu",
        "tanh",
        "x = Parameter : f32[2,3]\nq = Const(0.7978846) : f32[]\nk = Const(0.044715) : f32[]\nn = Const(3) : f32[]\nh = Const(0.5) : f32[]\no = Const(1) : f32[]\na = Power(x, n)\nb = Multiply(a, k)\nc = Add(x, b)\nd = Multiply(c, q)\ne = Tanh(d)\nf = Add(e, o)\ng = Multiply(x, h)\ni = Multiply(g, f)\nr = Result(i)",
    ),
    ("split-gelu", "gelu", "x = Parameter : f32[2,3]\na = Gelu-7(x)\nr = Result(a)"),
    ("split-gelu", "gelu2", "x = Parameter : f32[2,3]\na = Gelu-2(x)\nr = Result(a)"),
    (
        "fuse-rms",
        "divide",
        "x = Parameter : f32[2,4]\na = Multiply(x, x)\nx1 = Const([-1]) : i64[1]\nm = ReduceMean(a, x1) {keep_dims=true}\ne = Const(1e-6) : f32[1,1]\nv = Add(m, e)\ns = Sqrt(v)\nd = Divide(x, s)\ng = Const([1, 2, 3, 4]) : f32[4]\ny = Multiply(d, g)\nr = Result(y)",
    ),
    (
        "split-rms",
        "reciprocal",
        "x = Parameter : f32[2,4]\nt = Const(2) : f32[]\na = Power(x, t)\nx1 = Const([-1]) : i64[1]\nm = ReduceMean(a, x1) {keep_dims=true}\ne = Const(1e-6) : f32[1,1]\nv = Add(m, e)\ns = Sqrt(v)\no = Const(1) : f32[1,1]\np = Divide(o, s)\nd = Multiply(x, p)\nr = Result(d)",
    ),
    (
        "fuse-sdpa",
        "mask",
        "q = Parameter : f32[1,2,3,4]\nk = Parameter : f32[1,2,5,4]\nv = Parameter : f32[1,2,5,4]\nm = Parameter : f32[3,5]\ns = Const(0.5) : f32[]\na = MatMul(q, k) {transpose_b=true}\nb = Multiply(a, s)\nc = Add(b, m)\nd = Softmax-8(c) {axis=-1}\ne = MatMul(d, v)\nr = Result(e)",
    ),
    (
        "fuse-sdpa",
        "scale",
        "q = Parameter : f32[1,2,3,4]\nk = Parameter : f32[1,2,5,4]\nv = Parameter : f32[1,2,5,4]\ns = Const(2) : f32[]\na = MatMul(q, k) {transpose_b=true}\nb = Divide(a, s)\nd = Softmax-8(b) {axis=-1}\ne = MatMul(d, v)\nr = Result(e)",
    ),
    (
        "split-sdpa",
        "plain",
        "q = Parameter : f32[1,2,3,4]\nk = Parameter : f32[1,2,5,4]\nv = Parameter : f32[1,2,5,4]\ne = ScaledDotProductAttention-13(q, k, v) {causal=false}\nr = Result(e)",
    ),
    (
        "split-sdpa",
        "mask",
        "q = Parameter : f32[1,2,3,4]\nk = Parameter : f32[1,2,5,4]\nv = Parameter : f32[1,2,5,4]\nm = Parameter : f32[3,5]\ne = ScaledDotProductAttention-13(q, k, v, m) {causal=false}\nr = Result(e)",
    ),
    (
        "split-sdpa",
        "boolean",
        "q = Parameter : f32[1,2,3,4]\nk = Parameter : f32[1,2,5,4]\nv = Parameter : f32[1,2,5,4]\nm = Parameter : boolean[3,5]\ns = Const(0.3) : f32[]\ne = ScaledDotProductAttention-13(q, k, v, m, s) {causal=false}\nr = Result(e)",
    ),
    (
        "constant-folding",
        "shape",
        "x = Parameter : f32[2,3]\ns = ShapeOf-3(x) {output_type=i64}\ni = Const([1, 0]) : i64[2]\nz = Const(0) : i64[]\ng = Gather-8(s, i, z)\ny = Reshape(x, g) {special_zero=true}\nr = Result(y)",
    ),
    (
        "activations",
        "swish",
        "x = Parameter : f32[2,3]\nb = Const(1.5) : f32[]\no = Const(1) : f32[]\na = Multiply(x, b)\nn = Negative(a)\ne = Exp(n)\nd = Add(e, o)\ny = Divide(x, d)\nr = Result(y)",
    ),
    (
        "activations",
        "prelu",
        "x = Parameter : f32[2,3]\ns = Const(0.1) : f32[]\nn = Negative(x)\na = Relu(x)\nb = Relu(n)\nc = Multiply(b, s)\ny = Subtract(a, c)\nr = Result(y)",
    ),
    (
        "norms",
        "mvn",
        "x = Parameter : f32[2,4]\na1 = Const([-1]) : i64[1]\na2 = Const([-1]) : i64[1]\nm = ReduceMean(x, a1) {keep_dims=true}\nd = Subtract(x, m)\nq = SquaredDifference(x, m)\nv = ReduceMean(q, a2) {keep_dims=true}\ne = Const(1e-5) : f32[1,1]\nw = Add(e, v)\np = Const(-0.5) : f32[]\nu = Power(w, p)\ny = Multiply(u, d)\nr = Result(y)",
    ),
    (
        "affine",
        "convolution",
        "x = Parameter : f32[1,2,4,4]\nw = Const([[[[1]], [[2]]], [[[3]], [[4]]], [[[5]], [[6]]]]) : f32[3,2,1,1]\nb = Const([[[[1]], [[2]], [[3]]]]) : f32[1,3,1,1]\ns = Const([[[2]], [[4]], [[8]]]) : f32[3,1,1]\nc = Convolution(x, w) {strides=\"1,1\", pads_begin=\"0,0\", pads_end=\"0,0\", dilations=\"1,1\"}\nd = Subtract(c, b)\ny = Divide(d, s)\nr = Result(y)",
    ),
    (
        "keep-compressed",
        "three",
        "x = Parameter : f32[2,3]\nc = Const([[0, 7, 250], [1, 2, 3]]) : u8[2,3]\nq = Convert(c) {destination_type=f32}\ns = Const([[0.3], [4]]) : f32[2,1]\nz = Const([[-3]]) : f32[1,1]\nd = Divide(q, s)\na = Add(q, z)\nb = Multiply(a, s)\ne = Multiply(q, s)\nf = Subtract(e, z)\nu = MatMul(x, d) {transpose_a=false, transpose_b=true}\nv = MatMul(x, b) {transpose_a=false, transpose_b=true}\nw = MatMul(x, f) {transpose_a=false, transpose_b=true}\ny = MatMul(x, q) {transpose_a=false, transpose_b=true}\nr = Result(u)\nr1 = Result(v)\nr2 = Result(w)\nr3 = Result(y)",
    ),
    (
        "fake-quantize-weights",
        "rows",
        "x = Parameter : f32[1,4]\nw = Const([[-2, -0.9, 0.3, 1], [-0.5, 0, 0.26, 9]]) : f32[2,4]\nl = Const([[-1], [-0.4]]) : f32[2,1]\nh = Const([[1.2], [0.5]]) : f32[2,1]\no = Const([[-3]]) : f32[1,1]\nq = FakeQuantize(w, l, h, o, h) {levels=200}\ny = MatMul(x, q) {transpose_a=false, transpose_b=true}\nr = Result(y)",
    ),
    (
        "movement",
        "matmul",
        "x = Parameter : f32[2,3,4]\ny = Parameter : f32[2,5,4]\np = Const([0, 2, 1]) : i64[3]\nt = Transpose(y, p)\nm = MatMul(x, t)\nr = Result(m)",
    ),
];

/// The limit on rounding differences, relative to the largest value.
const CLOSE: f64 = 1e-6;

fn answers() -> serde_json::Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/library/answers.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap_or_else(|_| "{}".to_owned())).unwrap()
}

/// Returns the checksum of a model's listing, and saves the model if models were requested.
fn checksum(model: &Model, name: &str) -> u32 {
    let listing = model.to_text();
    if let Some(folder) = std::env::var_os("LIBRARY_MODELS").map(PathBuf::from) {
        model.save(folder.join(format!("{name}.xml"))).unwrap();
        fs::write(folder.join(format!("{name}.txt")), &listing).unwrap();
    }
    let mut sum = flate2::Crc::new();
    sum.update(listing.as_bytes());
    sum.sum()
}

#[test]
fn openvino_computes_the_same_after_each_set_and_its_inverse() {
    let answers = answers();
    let mut faults = String::new();
    for &(name, case, listing) in CASES {
        let set = library::get(name).unwrap();
        let mut model = Model::from_text(listing).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(infer(&mut model), [], "{name} {case}");
        let mut sums = vec![checksum(&model, &format!("{name}.{case}"))];
        for (suffix, set) in [("after", Some(set)), ("back", set.inverse.and_then(library::get))] {
            let Some(set) = set else { continue };
            let report = model.rewrite(&set.rules().unwrap()).unwrap_or_else(|error| panic!("{name} {case}: {error}"));
            assert_ne!(report.applied, [], "{} finds nothing in {case}", set.name);
            assert_eq!(infer(&mut model), [], "{name} {case}");
            sums.push(checksum(&model, &format!("{name}.{case}.{suffix}")));
        }
        let answer = &answers[format!("{name}.{case}")];
        if answer["sums"] != serde_json::json!(sums) || answer["difference"].as_f64().is_none_or(|most| most > CLOSE) {
            faults += &format!("{name} {case}: {answer}\n");
        }
    }
    assert_eq!(faults, "", "take the answers anew with testdata/oracle/library/library.py");
    for set in SETS {
        assert!(CASES.iter().any(|(name, ..)| *name == set.name), "{} has no case", set.name);
    }
}

#[test]
fn a_layer_that_goes_with_what_another_rule_removes_takes_no_place() {
    let text =
        "x = Parameter : f32[3]\na = Exp(x)\nb = Exp(x)\ny = Multiply(x, a)\nz = Abs(b)\nd = Add(y, z)\nr = Result(d)";
    let mut model = Model::from_text(text).unwrap();
    let mut rules = library::get("common-subexpressions").unwrap().rules().unwrap();
    rules.push("Multiply(x, y) => x".parse().unwrap());
    let report = model.rewrite(&rules).unwrap();
    assert_eq!(report.applied.len(), 1);
    assert!(model.find("b").is_ok() && model.find("a").is_err());
}

/// The models of `testdata/oracle/fusion` say how many layers of an operation are added or removed.
#[test]
fn spellings_are_fused_and_near_misses_are_not() {
    let cases: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&fs::read_to_string(fusion("cases.json")).unwrap()).unwrap();
    assert!(cases.len() > 50);
    let mut faults = String::new();
    for (name, case) in cases {
        let [rules, operation] = ["rules", "operation"].map(|key| case[key].as_str().unwrap());
        let mut model = Model::open(fusion(&format!("{name}.xml"))).unwrap();
        let count = |model: &Model| model.graph().layers().filter(|layer| layer.ty() == operation).count() as i64;
        let before = count(&model);
        let rules: Vec<_> = rules.split(' ').flat_map(|name| library::get(name).unwrap().rules().unwrap()).collect();
        let report = model.rewrite(&rules).unwrap();
        let change = count(&model) - before;
        if case["change"] != change || (change == 0) != report.applied.is_empty() {
            faults += &format!("{name}: {change} {operation}, not {}\n", case["change"]);
        }
    }
    assert_eq!(faults, "");
}

#[test]
fn a_set_finds_nothing_in_what_it_wrote() {
    let spellings = fs::read_dir(fusion("")).unwrap().map(|entry| entry.unwrap().path());
    let spellings = spellings.filter(|path| path.extension().is_some_and(|ending| ending == "xml"));
    let listings = CASES.iter().map(|(_, case, listing)| (case.to_string(), Model::from_text(listing).unwrap()));
    let files = fixtures().into_iter().chain(spellings);
    let files = files.filter_map(|path| Some((path.display().to_string(), Model::open(&path).ok()?)));
    let models: Vec<_> = files.chain(listings).collect();
    let mut applied = 0;
    let mut faults = String::new();
    for set in SETS {
        let rules = set.rules().unwrap();
        for (name, model) in &models {
            let mut model = model.clone();
            // Models of some fixtures are refused.
            if model.rewrite(&rules).is_ok_and(|report| !report.applied.is_empty()) {
                applied += 1;
                let text = model.to_text();
                let again = model.rewrite(&rules).unwrap().applied;
                if !again.is_empty() || model.to_text() != text {
                    faults += &format!("{name}: {} {again:?}\n", set.name);
                }
            }
        }
    }
    assert_eq!(faults, "");
    assert!(applied > 100, "{applied}");
}

/// OpenVINO's CPU plugin rounds a table in half precision that it computes, if a Gather reads it, and does not behind a
/// Convert. The other operations of the set compute the same both ways.
#[test]
fn a_convert_stays_between_a_table_of_products_and_its_gather() {
    let moved = |stored: &str, operation: &str| {
        let text = format!(
            "
            i = Parameter : i64[2]
            w = Const([[1, 2], [3, 4]]) : {stored}[2,2]
            f = Convert(w) {{destination_type=f16}}
            c = Const([[0.3], [0.7]]) : f16[2,1]
            s = Multiply(f, c)
            t = Convert(s) {{destination_type=f32}}
            zero = Const(0) : i64[]
            two = Const([2, 2]) : i64[2]
            order = Const([1, 0]) : i64[2]
            y = {operation}
            z = Convert(i) {{destination_type=f32}}
            a = Add(y, z)
            r = Result(a)"
        );
        let mut model = Model::from_text(&text).unwrap();
        let rules = library::get("converts-below-movement").unwrap().rules().unwrap();
        model.rewrite(&rules).unwrap().applied.len()
    };
    for stored in ["u8", "i8", "f8e4m3", "f8e5m2", "u4", "nf4"] {
        assert_eq!(moved(stored, "Gather-8(t, i, zero)"), 0, "{stored}");
        assert_eq!(moved(stored, "Transpose(t, order)"), 1, "{stored}");
        assert_eq!(moved(stored, "Reshape(t, two) {special_zero=false}"), 1, "{stored}");
    }
}

/// OpenVINO's constant folding keeps both: a plugin's computation with quantized weights depends on them.
#[test]
fn quantized_weights_are_not_folded() {
    let dequantized = "
        x = Parameter : f32[2,2]
        w = Const([[1, 2], [3, 4]]) : u8[2,2]
        f = Convert(w) {destination_type=f16}
        z = Const([2]) : u8[1]
        g = Convert(z) {destination_type=f16}
        d = Subtract(f, g)
        c = Const([0.5]) : f16[1]
        s = Multiply(d, c)
        t = Convert(s) {destination_type=f32}
        y = MatMul(x, t)
        r = Result(y)";
    let fake = "
        x = Parameter : f32[2,2]
        w = Const([[1, 2], [3, 4]]) : f32[2,2]
        l = Const(0) : f32[]
        h = Const(4) : f32[]
        q = FakeQuantize(w, l, h, l, h) {levels=16}
        y = MatMul(x, q)
        r = Result(y)";
    for text in [dequantized, fake] {
        let mut model = Model::from_text(text).unwrap();
        let report = model.rewrite(&library::get("constant-folding").unwrap().rules().unwrap()).unwrap();
        assert_eq!(report.applied, [], "{text}");
    }
    let plain = "
        x = Parameter : f32[2]
        w = Const([1, 2]) : u8[2]
        f = Convert(w) {destination_type=f32}
        y = Add(x, f)
        r = Result(y)";
    let mut model = Model::from_text(plain).unwrap();
    let report = model.rewrite(&library::get("constant-folding").unwrap().rules().unwrap()).unwrap();
    assert_eq!(report.applied.len(), 1);
}

/// OpenVINO folds the same: a fixed dimension is known even if others are open.
#[test]
fn a_fixed_dimension_of_an_open_shape_is_folded() {
    let text = "
        x = Parameter : f32[?,16,?]
        s = ShapeOf-3(x) {output_type=i64}
        two = Const(2) : i64[]
        axis = Const(0) : i64[]
        pair = Const([1, 0]) : i64[2]
        both = Gather-8(s, pair, axis)
        first = Const(0) : i64[]
        width = Gather-8(both, first, axis)
        half = Divide(width, two)
        whole = Floor(half)
        r = Result(whole)
        open = Gather-8(s, axis, axis)
        q = Result(open)";
    let mut model = Model::from_text(text).unwrap();
    model.rewrite(&library::get("constant-folding").unwrap().rules().unwrap()).unwrap();
    insta::assert_snapshot!(model.to_string(), @"
    0 x = Parameter : f32[?,16,?]
    1 s = ShapeOf-3(0) {output_type=i64} : i64[3]
    3 axis = Const(0) : i64[]
    13 Const_13 = Const(8) : i64[]
    10 r = Result(13)
    11 open = Gather-8(1, 3, 3) : i64[]
    12 q = Result(11)
    ");
}
