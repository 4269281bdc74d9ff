//! Eighteen jobs on models with attention, caches, norms and convolutions, each in a few lines of text.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use typelift::Model;

/// A decoder with caches: hidden size 8, two heads.
fn decoder(layers: usize) -> String {
    let mut text = "ids = Parameter : i64[?,?] \"input_ids\"\n".to_owned();
    for layer in 0..layers {
        for kind in ["key", "value"] {
            let _ = writeln!(text, "past.{layer}.{kind} = Parameter : f32[?,2,?,4] \"past.{layer}.{kind}\"");
        }
    }
    text += "zero = Const(0) : i64[]\nwords = Const(0.5) : f32[16,8]\nh = Gather-8(words, ids, zero)\n";
    text +=
        "split = Const([0, 0, 2, 4]) : i64[4]\njoin = Const([0, 0, 8]) : i64[3]\nturn = Const([0, 2, 1, 3]) : i64[4]\n";
    let mut hidden = "h".to_owned();
    for at in 0..layers {
        let name = format!("layers.{at}");
        for part in ["q", "k", "v", "o", "gate", "up", "down"] {
            let _ = writeln!(text, "{name}.{part}.w = Const(0.{}) : f32[8,8]", at + 1);
        }
        for part in ["q", "k", "v"] {
            let _ = writeln!(text, "{name}.{part} = MatMul({hidden}, {name}.{part}.w) {{transpose_b=true}}");
            let _ = writeln!(text, "{name}.{part}.s = Reshape({name}.{part}, split) {{special_zero=true}}");
            let _ = writeln!(text, "{name}.{part}.t = Transpose({name}.{part}.s, turn)");
        }
        let _ = writeln!(
            text,
            "{name}.keys = Concat(past.{at}.key, {name}.k.t) {{axis=2}}
{name}.values = Concat(past.{at}.value, {name}.v.t) {{axis=2}}
present.{at}.key = Result({name}.keys)
present.{at}.value = Result({name}.values)
{name}.att = ScaledDotProductAttention-13({name}.q.t, {name}.keys, {name}.values) {{causal=false}}
{name}.att.t = Transpose({name}.att, turn)
{name}.att.s = Reshape({name}.att.t, join) {{special_zero=true}}
{name}.o = MatMul({name}.att.s, {name}.o.w) {{transpose_b=true}}
{name}.mid = Add({hidden}, {name}.o)
{name}.gate = MatMul({name}.mid, {name}.gate.w) {{transpose_b=true}}
{name}.up = MatMul({name}.mid, {name}.up.w) {{transpose_b=true}}
{name}.act = Swish-4({name}.gate)
{name}.mul = Multiply({name}.act, {name}.up)
{name}.down = MatMul({name}.mul, {name}.down.w) {{transpose_b=true}}
{name}.out = Add({name}.mid, {name}.down)"
        );
        hidden = format!("{name}.out");
    }
    text + &format!("logits = MatMul({hidden}, words) {{transpose_b=true}}\nout = Result(logits)\n")
}

const NORMS: &str = "
    x = Parameter : f32[2,8]
    a = Const([-1]) : i64[1]
    two = Const(2) : f32[]
    e = Const(1e-5) : f32[]
    layer.0.m = ReduceMean(x, a) {keep_dims=true}
    layer.0.d = Subtract(x, layer.0.m)
    layer.0.s = Power(layer.0.d, two)
    layer.0.v = ReduceMean(layer.0.s, a) {keep_dims=true}
    layer.0.b = Add(layer.0.v, e)
    layer.0.q = Sqrt(layer.0.b)
    layer.0.ln = Divide(layer.0.d, layer.0.q)
    layer.0.act = Gelu-7(layer.0.ln) {approximation_mode=ERF}
    layer.7.act = Gelu-7(layer.0.act) {approximation_mode=ERF}
    y = HSwish-4(layer.7.act)
    out = Result(y)
";
const IMAGES: &str = "
    x = Parameter : f32[1,3,8,8]
    m = Const([[[[0.5]], [[0.25]], [[0.125]]]]) : f32[1,3,1,1]
    a = Subtract(x, m)
    s = Const([[[[2]], [[4]], [[8]]]]) : f32[1,3,1,1]
    b = Divide(a, s)
    w = Const(1) : f32[4,3,1,1]
    c = Convolution(b, w) {strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0]}
    out = Result(c)
";
const SHAPED: &str = "
    x = Parameter : f32[?,4] \"x\"
    n = ShapeOf-3(x) {output_type=i64}
    p = Const([0]) : i64[1]
    k = Const(0) : i64[]
    b = Gather-8(n, p, k)
    r = Const([2, 2]) : i64[2]
    t = Concat(b, r) {axis=0}
    y = Reshape(x, t) {special_zero=false}
    out = Result(y)
";
const QKV: &str = "
    x = Parameter : f32[2,8]
    w = Const(1) : f32[24,8]
    qkv = MatMul(x, w) {transpose_b=true}
    one = Const(1) : i64[]
    parts = Split(qkv, one) {num_splits=3}
    y = Concat(parts.0, parts.1, parts.2) {axis=0}
    out = Result(y)
";
const STORED: &str = "
    x = Parameter : f32[2,8]
    w = Const(3) : f16[8,8]
    wide = Convert(w) {destination_type=f32}
    y = MatMul(x, wide) {transpose_b=true}
    s = Const(0.5) : f32[]
    z = Multiply(y, s)
    out = Result(z)
";
const ATTENTION: &str = "
    q = Parameter : f32[1,2,3,4]
    k = Parameter : f32[1,2,5,4]
    v = Parameter : f32[1,2,5,4]
    mask = Parameter : f32[1,1,3,5]
    s = Const(0.5) : f32[]
    a = MatMul(q, k) {transpose_b=true}
    b = Multiply(a, s)
    m = Add(b, mask)
    d = Softmax-8(m) {axis=-1}
    y = MatMul(d, v)
    out = Result(y)
";

/// The rules that put a Transpose before the first Convolution instead of after the input.
const NHWC: &str = "
    input  x : f32[1,8,8,3]
    before x : Transpose(_, [0, 3, 1, 2])
    (Add|Subtract|Multiply|Divide)(Transpose(x, p: const), c: const) =>
        Transpose((Add|Subtract|Multiply|Divide)(x, transpose(c, [0, 2, 3, 1])), p) if rank(c) == 4
    layout x = [N,H,W,C]
";

/// A job: its name, a model, the arguments of the program, and texts in the listing of the result. A text after `!` is
/// absent.
type Job = (&'static str, String, Vec<&'static str>, Vec<&'static str>);

fn jobs() -> Vec<Job> {
    let of = |text: &str| text.to_owned();
    vec![
        (
            "1 gate and up as one MatMul",
            decoder(2),
            vec![
                "-e",
                "mlp: Swish(MatMul(x, a: const) {transpose_b=true}) * MatMul(x, b: const) {transpose_b=true} => Swish(s) * t
                   where both = MatMul(x, concat(a, b, axis=0)) {transpose_b=true} as \"{root}/gate_up\"
                         (s, t) = Split(both, -1) {num_splits=2}",
                "-e",
                "expect mlp 2",
            ],
            vec!["layers.1.mul/gate_up = MatMul(", "f32[16,8]", "!layers.0.gate ="],
        ),
        (
            "2 q, k and v as one MatMul",
            decoder(2),
            vec![
                "-e",
                "q = MatMul(x, a: const) {transpose_b=true}, k = MatMul(x, b: const) {transpose_b=true}, v = MatMul(x, c: const) {transpose_b=true}
                   => (q, k, v) = VariadicSplit(MatMul(x, concat(a, b, c, axis=0)) {transpose_b=true}, -1, concat(dim(q, -1), dim(k, -1), dim(v, -1)))
                   if name(q) like \"layers.{i}.q\" && name(k) like \"layers.{i}.k\" && name(v) like \"layers.{i}.v\"",
            ],
            vec!["f32[24,8]", "!layers.1.v ="],
        ),
        (
            "2 one MatMul as q, k and v",
            of(QKV),
            vec![
                "-e",
                "(q, k, v) = Split(MatMul(x, w: const) {transpose_b=true}, 1) {num_splits=3}
                   => (MatMul(x, w[0:8]) {transpose_b=true}, MatMul(x, w[8:16]) {transpose_b=true}, MatMul(x, w[16:]) {transpose_b=true})",
            ],
            vec!["f32[8,8]", "!Split("],
        ),
        ("3 attention as one operation", of(ATTENTION), vec!["--use", "fuse-sdpa"], vec!["y = ScaledDotProductAttention"]),
        (
            "4 caches as state",
            decoder(3),
            vec!["-e", "stateful past.*.* -> present.*.* reorder beam_idx"],
            vec!["variable_id=past.2.valuepresent.2.value", "beam_idx = Parameter : i32[?]", "!Result(layers.0.keys"],
        ),
        (
            "4 state as caches",
            decoder(3),
            vec!["-e", "stateful past.*.* -> present.*.*", "-e", "stateless"],
            vec!["past.2.value = Parameter", "!ReadValue"],
        ),
        (
            "5 weights in 8 bits",
            decoder(1),
            vec![
                "-e",
                "once MatMul(x, w: const) {transpose_b=true} => MatMul(x, Convert(q) {destination_type=f32} * s) {transpose_b=true}
                   where s = fold(ReduceMax(Abs(w), 1) {keep_dims=true} / 127)
                         q = fold(Convert(Round(w / s) {mode=half_to_even}) {destination_type=i8})
                   if name(root) like \"layers.*.[qkvo]\"",
            ],
            vec!["Const(127) : i8[8,8]", "f32[8,1]"],
        ),
        (
            "5 ranges of quantization",
            decoder(1),
            vec![
                "-e",
                "once MatMul(x, w: const) => MatMul(FakeQuantize(x, -4, 4, -4, 4) {levels=256}, w) if name(root) like \"*.down\"",
            ],
            vec!["FakeQuantize("],
        ),
        ("6 norms as one operation", of(NORMS), vec!["--use", "norms"], vec!["layer.0.ln = MVN-6("]),
        ("7 a fixed batch", of(SHAPED), vec!["-e", "input x : f32[4,4]", "--use", "constant-folding"], vec!["!ShapeOf", "f32[4,2,2]"]),
        ("8 channels last", of(IMAGES), vec!["-e", NHWC], vec!["x = Parameter : f32[1,8,8,3]", "b = Transpose("]),
        ("9 the first piece", decoder(2), vec!["-e", "cut [input_ids, past.0.*] .. [layers.0.out, present.0.*]"], vec!["!layers.1."]),
        (
            "9 two pieces as one",
            of("layers.0.out = Parameter : f32[?,?,8] \"layers.0.out\"\ny = Relu(layers.0.out)\nout = Result(y)"),
            vec!["-e", "add input mask : f32[?,?,8]", "-e", "join half.xml as b/ : out -> layers.0.out, mask -> mask"],
            vec!["b/z = Multiply("],
        ),
        (
            "10 another Gelu in some layers",
            of(NORMS),
            vec!["-e", "Gelu-7(x) {approximation_mode=ERF} => Gelu-7(x) {approximation_mode=TANH} if name(root) like \"layer.{0..5}.*\""],
            vec!["layer.0.act = Gelu-7(10) {approximation_mode=TANH}", "layer.7.act = Gelu-7(11) {approximation_mode=ERF}"],
        ),
        (
            "11 inputs of an adapter",
            decoder(4),
            vec![
                "-e",
                "once lora: MatMul(x, w: const) {transpose_b=true} => MatMul(x, w) {transpose_b=true} + MatMul(MatMul(x, a) {transpose_b=true}, b) {transpose_b=true}
                   where a = Parameter() {element_type=f32, shape=[?, 8]} as \"{root}.lora_a\"
                         b = Parameter() {element_type=f32, shape=[8, ?]} as \"{root}.lora_b\"
                   if name(root) like \"layers.{i}.[qkv]\"",
                "-e",
                "expect lora 12",
            ],
            vec!["layers.3.v.lora_b = Parameter : f32[8,?]"],
        ),
        (
            "11 an adapter merged into weights",
            decoder(1),
            vec!["-e", "set layers.0.q.w = _ + matmul(npy(\"b.npy\"), npy(\"a.npy\")) * 0.5"],
            vec!["Const(1.1) : f32[8,8]"],
        ),
        ("12 an output at each norm", of(NORMS), vec!["-e", "tap layer.*.ln"], vec!["layer.0.ln/sink_port_0 = Result("]),
        ("13 fewer words", decoder(1), vec!["-e", "set words = gather(_, npy(\"keep.npy\"))"], vec!["words = Const(0.5) : f32[3,8]"]),
        (
            "14 layers removed",
            decoder(24),
            vec!["-e", "redirect layers.20.out -> layers.9.out", "-e", "remove output present.{10..20}.*"],
            vec!["!layers.10.", "!layers.20.", "!past.15.key", "layers.21.q = MatMul("],
        ),
        ("15 HSwish written out", of(NORMS), vec!["--use", "split-hswish"], vec!["!HSwish", "y = Multiply("]),
        (
            "16 a factor into stored weights",
            of(STORED),
            vec!["-e", "MatMul(x, w: const) * s: const => MatMul(x, w * s) if size(s) == 1"],
            vec!["Const(1.5) : f16[8,8]", "z = MatMul("],
        ),
    ]
}

fn save_array(path: &Path, descr: &str, shape: &str, bytes: &[u8]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    fs::write(path, [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), bytes].concat()).unwrap();
}

/// Writes the model, runs the program, and returns what it wrote as a listing.
fn done(folder: &Path, listing: &str, arguments: &[&str]) -> Result<Model, String> {
    let mut model = Model::from_text(listing).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(typelift::infer(&mut model), []);
    model.save(folder.join("model.xml")).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let (verb, rest) = arguments.split_first().unwrap();
    let done =
        program.current_dir(folder).args([verb, "model.xml"]).args(rest).args(["-o", "out.xml"]).output().unwrap();
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let mut out = Model::open(folder.join("out.xml")).unwrap();
    assert_eq!(typelift::infer(&mut out), []);
    Ok(out)
}

#[test]
fn each_job_takes_a_few_lines_of_text() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    save_array(&folder.join("b.npy"), "<f4", "(8, 1)", &[1_f32.to_le_bytes(); 8].concat());
    save_array(&folder.join("a.npy"), "<f4", "(1, 8)", &[2_f32.to_le_bytes(); 8].concat());
    save_array(&folder.join("keep.npy"), "<i8", "(3,)", &[0_i64, 5, 7].map(i64::to_le_bytes).concat());
    let half = "layers.0.out = Parameter : f32[?,?,8] \"layers.0.out\"\nmask = Parameter : f32[?,?,8] \"mask\"
z = Multiply(layers.0.out, mask)\nlast = Result(z)";
    Model::from_text(half).unwrap().save(folder.join("half.xml")).unwrap();
    for (name, listing, arguments, expected) in jobs() {
        let arguments: Vec<_> = std::iter::once("rewrite").chain(arguments).collect();
        let out = done(folder, &listing, &arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(name, &out.to_string(), &expected);
    }
}

/// What people asked in public threads, each done by one or two statements.
fn threads() -> Vec<Job> {
    let of = |text: &str| text.to_owned();
    vec![
        (
            "a mask for the mean of an embedding",
            of("input_ids = Parameter : i64[?,?]\nw = Const(1) : f32[32,8]\naxis = Const(0) : i64[]
embedding = Gather-8(w, input_ids, axis)\nall = Const([1]) : i64[1]\npooled = ReduceMean(embedding, all)\nr = Result(pooled)"),
            vec![
                "-e",
                "add input attention_mask : f32[?,?]",
                "-e",
                "redirect pooled -> ReduceSum(Multiply(embedding, Unsqueeze(attention_mask, 2)), [1]) / ReduceSum(attention_mask, [1]) {keep_dims=true}",
            ],
            vec!["attention_mask = Parameter : f32[?,?]", "!pooled = ReduceMean", "= Divide("],
        ),
        (
            "boxes without those that overlap",
            of("boxes = Parameter : f32[1,64,4]\nx = Parameter : f32[1,3,64]\nscores = Sigmoid(x)\na = Result(boxes)\nb = Result(scores)"),
            vec!["-e", "add output kept = NonMaxSuppression-9(boxes, scores, 100, 0.5, 0.3) {box_encoding=corner, sort_result_descending=true, output_type=i64}"],
            vec!["NonMaxSuppression-9(", "kept/sink_port_0 = Result("],
        ),
        (
            "three outputs as one",
            of("data = Parameter : f32[1,8]\nr = Exp(data)\np = Abs(data)\ny = Sin(data)\na = Result(r)\nb = Result(p)\nc = Result(y)"),
            vec!["-e", "add output angles = Concat(r, p, y) {axis=1}", "-e", "remove output r, p, y"],
            vec!["f32[1,24]", "angles/sink_port_0 = Result(", "!b = Result"],
        ),
        (
            "another order of inputs",
            of("block_indices = Parameter : i64[?]\nhidden = Parameter : f32[?,4]\naxis = Const(0) : i64[]
y = Gather-8(hidden, block_indices, axis)\nr = Result(y)"),
            vec!["-e", "order inputs hidden, block_indices"],
            vec!["Gather-8(1, "],
        ),
        (
            "an adapter merged into half precision",
            of("x = Parameter : f32[?,8]\nw = Const(1) : f16[8,8]\nd = Convert(w) {destination_type=f32}
q_proj = MatMul(x, d) {transpose_b=true}\nr = Result(q_proj)"),
            vec!["-e", "set d = _ + matmul(npy(\"b.npy\"), npy(\"a.npy\")) * 0.5"],
            vec!["w = Const(2) : f16[8,8]"],
        ),
        (
            "the piece between two tensors",
            of("x = Parameter : f32[2,4]\nwa = Exp(x)\nA = Abs(wa)\nB = Sin(A)\nC = Cos(B)\ny = Result(C)"),
            vec!["-e", "cut [wa] .. [B]"],
            vec!["wa = Parameter : f32[2,4]", "!Cos(", "!Exp("],
        ),
        (
            "six images where two shapes say one",
            of("features = Parameter : f32[1,4,2,2]\nflat/shape = Const([1, 4, 4]) : i64[3]\nflat = Reshape(features, flat/shape) {special_zero=false}
axis = Const([1]) : i64[1]\nmap = ReduceMax(flat, axis)\nout/shape = Const([1, 1, 2, 2]) : i64[4]
anomaly = Reshape(map, out/shape) {special_zero=false}\nr = Result(anomaly)"),
            vec!["-e", "set */shape = concat([-1], _[1:], axis=0)", "-e", "input features : f32[6,4,2,2]"],
            vec!["features = Parameter : f32[6,4,2,2]", "anomaly = Reshape(", "f32[6,1,2,2]"],
        ),
        (
            "a second tensor of the graph in an expression",
            of("x = Parameter : f32[2,4]\nh = Abs(x)\ny = Exp(h)\nz = Tanh(y)\nr = Result(z)"),
            vec!["-e", "after y : Add(_, h)"],
            vec!["= Add(", "z = Tanh("],
        ),
        (
            "users of one tensor use another",
            of("x = Parameter : f32[2,4]\nh = Abs(x)\na = Exp(h)\nb = Add(a, h)\nz = Tanh(b)\nr = Result(z)"),
            vec!["-e", "redirect b -> h"],
            vec!["z = Tanh(1)", "!Add(", "!Exp("],
        ),
        (
            "an inner tensor as a further output",
            of("x = Parameter : f32[2,4]\na = Exp(x)\nb = Abs(a)\ny = Result(b)"),
            vec!["-e", "tap a as hidden"],
            vec!["hidden/sink_port_0 = Result(", "y = Result("],
        ),
    ]
}

#[test]
fn what_threads_asked_for_takes_one_or_two_statements() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    save_array(&folder.join("b.npy"), "<f4", "(8, 1)", &[1_f32.to_le_bytes(); 8].concat());
    save_array(&folder.join("a.npy"), "<f4", "(1, 8)", &[2_f32.to_le_bytes(); 8].concat());
    for (name, listing, arguments, expected) in threads() {
        assert!(arguments.len() <= 4, "{name}");
        let arguments: Vec<_> = std::iter::once("rewrite").chain(arguments).collect();
        let out = done(folder, &listing, &arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(name, &out.to_string(), &expected);
    }
}

/// Checks which texts a listing has.
fn check(name: &str, listing: &str, expected: &[&str]) {
    for text in expected {
        match text.strip_prefix('!') {
            Some(text) => assert!(!listing.contains(text), "{name} has {text}:\n{listing}"),
            None => assert!(listing.contains(text), "{name} has no {text}:\n{listing}"),
        }
    }
}

#[test]
fn statistics_tell_bytes_and_operations_of_each_block_and_the_largest_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = Model::from_text(&decoder(4)).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    model.save(folder.path().join("model.xml")).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let done = program.current_dir(folder.path()).args(["stats", "--format", "json", "model.xml"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let blocks: Vec<_> = answer["blocks"].as_array().unwrap().iter().filter(|block| block["number"].is_u64()).collect();
    assert_eq!(blocks.len(), 4);
    for (at, block) in blocks.iter().enumerate() {
        assert_eq!(block["name"], format!("layers.{at}"));
        assert!(block["macs"].as_u64().unwrap() > 0 && block["parameters"].as_u64().unwrap() > 0, "{block}");
        assert_eq!(block["weights"], blocks[0]["weights"]);
    }
    let sum: u64 = answer["blocks"].as_array().unwrap().iter().map(|block| block["macs"].as_u64().unwrap()).sum();
    assert_eq!(answer["macs"], sum);
    let largest = answer["largest_constants"].as_array().unwrap();
    assert!(
        largest.len() == 10 && largest.windows(2).all(|pair| pair[0]["bytes"].as_u64() >= pair[1]["bytes"].as_u64())
    );
}

#[test]
fn a_statement_reports_the_layers_inputs_and_outputs_that_it_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = Model::from_text(&decoder(24)).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    model.save(folder.path().join("model.xml")).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let statements = ["-e", "redirect layers.20.out -> layers.9.out", "-e", "remove output present.{10..20}.*"];
    let arguments = ["rewrite", "model.xml", "-o", "out.xml", "--report", "report.json"];
    let done = program.current_dir(folder.path()).args(arguments).args(statements).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("; outputs `present.10.key`, `present.10.value`, `present.11.key` and 19 more"), "{said}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    let removed = &report["statements"][1];
    assert_eq!(removed["inputs"].as_array().unwrap().len(), 22);
    assert!(removed["removed"].as_array().unwrap().len() > 100, "{removed}");
}

#[test]
fn integers_become_narrower_but_for_inputs_and_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let listing = decoder(1);
    let out = done(folder.path(), &listing, &["convert", "--types", "i64=i32", "--keep-io"]).unwrap().to_string();
    assert!(out.contains("ids = Parameter : i64[?,?]") && !out.contains("Const([0, 2, 1, 3]) : i64"), "{out}");
}

#[test]
fn an_adapter_is_merged_into_integer_weights_as_layers() {
    let folder = tempfile::tempdir().unwrap();
    let listing = "x = Parameter : f32[2,8]\nw = Const(5) : u4[6,2,4]\na = Convert(w) {destination_type=f16}
z = Const(8) : u4[6,2,1]\nb = Convert(z) {destination_type=f16}\nc = Subtract(a, b)\ns = Const(0.5) : f16[6,2,1]
d = Multiply(c, s)\nn = Const([6, 8]) : i64[2]\ne = Reshape(d, n) {special_zero=false}
f = Convert(e) {destination_type=f32}\nq_proj = MatMul(x, f) {transpose_b=true}\nr = Result(q_proj)";
    save_array(&folder.path().join("b.npy"), "<f4", "(6, 1)", &[1_f32.to_le_bytes(); 6].concat());
    save_array(&folder.path().join("a.npy"), "<f4", "(1, 8)", &[2_f32.to_le_bytes(); 8].concat());
    // The stored weights do not change. The adapter is added to their values.
    let out = done(
        folder.path(),
        listing,
        &["rewrite", "-e", "redirect f -> Add(f, matmul(npy(\"b.npy\"), npy(\"a.npy\")))"],
    );
    let out = out.unwrap().to_string();
    assert!(out.contains("u4[6,2,4]") && out.contains("Const(2) : f32[6,8]") && out.contains("Add("), "{out}");
}
