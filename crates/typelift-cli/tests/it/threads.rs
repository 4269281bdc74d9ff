//! Questions of public threads, each answered by one command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use typelift::Model;

use crate::cli::{Run, run};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// Writes a model in the folder of a test.
fn save(folder: &Path, name: &str, listing: &str) {
    let mut model = Model::from_text(listing).unwrap_or_else(|error| panic!("{listing}\n{error}"));
    drop(typelift::infer(&mut model));
    model.save(folder.join(name)).unwrap();
}

/// Runs a command on a listing, and returns everything that it prints.
fn answer(listing: &str, arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "model.xml", listing);
    let Run { status, stdout, stderr } = run(folder.path(), arguments);
    (status, stdout + &stderr)
}

/// Checks the status and some texts of an answer.
fn check(listing: &str, arguments: &[&str], status: i32, expected: &[&str]) {
    let (found, text) = answer(listing, arguments);
    assert_eq!(found, status, "{arguments:?}: {text}");
    for part in expected {
        assert!(text.contains(part), "{arguments:?} should print `{part}`:\n{text}");
    }
}

/// A MatMul with weights of few bits. `WEIGHTS` computes `w` from `q`.
const FEW_BITS: &str = "x = Parameter : f32[?,64]\nc = Const(3) : TYPE[8,64]\nq = Convert(c) {destination_type=f32}
s = Const(0.5) : f32[8,1]\nWEIGHTS\ny = MatMul(x, w) {transpose_b=true}\nr = Result(y)";

fn few_bits(ty: &str, weights: &str) -> String {
    FEW_BITS.replace("TYPE", ty).replace("WEIGHTS", weights)
}

/// "Which weights did int8 damage?"
#[test]
fn a_comparison_says_what_int8_did_to_the_weights() {
    let folder = tempfile::tempdir().unwrap();
    let floats = "x = Parameter : f32[?,4]\nfc = Const([[0.1, -0.7, 0.3, 2], [1, 0.9, 0.2, 0.1]]) : f32[2,4]
y = MatMul(x, fc) {transpose_b=true}\nr = Result(y)";
    save(folder.path(), "model.xml", floats);
    let quantized = run(folder.path(), &["convert", "--quantize", "int8_sym", "model.xml", "-o", "int8.xml"]);
    assert_eq!(quantized.status, 0, "{}", quantized.stderr);
    let compared = run(folder.path(), &["diff", "model.xml", "int8.xml"]);
    let expected = "1 constant is int8 symmetric, per channel instead of f32, worst error 0.3";
    assert!(compared.stdout.contains(expected), "{}", compared.stdout);
    let counted = run(folder.path(), &["stats", "int8.xml"]);
    assert!(counted.stdout.contains("int8 symmetric, per channel"), "{}", counted.stdout);
}

/// "Why does the memory not shrink with int8 weights?" The form of the layers decides, and a rule changes it.
#[test]
fn check_says_which_weights_a_cpu_unfolds_and_the_fix_works() {
    let kept = few_bits("u8", "w = Multiply(q, s)");
    check(&kept, &["check", "--for", "cpu", "model.xml"], 0, &["no errors, no warnings"]);
    let scale = "p = Divide(q, s)\nw = Multiply(p, s)";
    let forms = [
        ("w = Divide(q, s)", "it is divided by the scale"),
        ("z = Const([[-8]]) : f32[1,1]\na = Add(q, z)\nw = Multiply(a, s)", "the zero point is added"),
        ("z = Const([[8]]) : f32[1,1]\na = Multiply(q, s)\nw = Subtract(a, z)", "taken away after the scale"),
        ("z = Const([[8]]) : f32[1,1]\nw = Subtract(q, z)", "it has no scale"),
        (scale, "it is divided by the scale"),
    ];
    for (weights, reason) in forms {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), "model.xml", &few_bits("u8", weights));
        let before = run(folder.path(), &["check", "--for", "cpu", "model.xml"]);
        assert!(before.stdout.contains(reason), "{weights}: {}", before.stdout);
        assert!(before.stdout.contains("--use keep-compressed"), "{weights}: {}", before.stdout);
        let fixed = run(folder.path(), &["rewrite", "--use", "keep-compressed", "model.xml", "-o", "fixed.xml"]);
        assert_eq!(fixed.status, 0, "{}", fixed.stderr);
        let after = run(folder.path(), &["check", "--for", "cpu", "--deny", "weights-unfold", "fixed.xml"]);
        assert_eq!(after.status, 0, "{weights}: {}", after.stdout);
    }
}

/// Forms of weights that OpenVINO 2026.4.1 was measured to unfold, and those that it keeps.
#[test]
fn measured_forms_of_weights_are_reported() {
    let of = |weights: &str| answer(&few_bits("u8", weights), &["check", "--for", "cpu", "model.xml"]).1;
    let unfolded = [
        (
            "b = Convert(c) {destination_type=bf16}\nt = Const(0.5) : bf16[8,1]\nm = Multiply(b, t)\nw = Convert(m) {destination_type=f32}",
            "to bf16",
        ),
        ("a = Const([0]) : i64[1]\nm = Multiply(q, s)\nw = Unsqueeze(m, a)", "rank"),
        ("o = Const([0, 1]) : i64[2]\nm = Transpose(q, o)\nw = Multiply(m, s)", "Transpose"),
        ("f = Convert(c) {destination_type=f16}\nw = Convert(f) {destination_type=f32}", "no scale"),
    ];
    for (weights, reason) in unfolded {
        let text = of(weights);
        assert!(text.contains("weights-unfold") && text.contains(reason), "{weights}: {text}");
    }
    assert!(of("w = Multiply(s, q)").contains("no errors, no warnings"), "{}", of("w = Multiply(s, q)"));
}

/// "Quantized weights of an Einsum": no plugin keeps them.
#[test]
fn weights_of_an_einsum_are_unfolded() {
    let listing = "x = Parameter : f32[?,2,4]\nc = Const(3) : i8[2,4,6]\nq = Convert(c) {destination_type=f32}
s = Const(0.01) : f32[]\nw = Multiply(q, s)\ny = Einsum-7(x, w) {equation=\"bhd,hde->bhe\"}\nr = Result(y)";
    let expected = ["warning[weights-unfold]", "Einsum needs weights in floats"];
    check(listing, &["check", "--for", "cpu", "model.xml"], 0, &expected);
    for (operation, result) in [("Multiply", "f32[48]"), ("Maximum", "f32[48]")] {
        let listing = format!(
            "x = Parameter : f32[48]\nc = Const(3) : u8[48]\nq = Convert(c) {{destination_type=f32}}
s = Const(0.5) : f32[1]\nw = Multiply(q, s)\ny = {operation}(x, w) : {result}\nr = Result(y)"
        );
        let expected = format!("{operation} needs floats");
        check(&listing, &["check", "--for", "cpu", "model.xml"], 0, &[&expected]);
    }
}

/// A scale for each value of the summed axis ends the process, whichever way the weights lie.
#[test]
fn scales_along_the_summed_axis_are_errors() {
    let columns = few_bits("u4", "t = Const(0.5) : f32[1,64]\nw = Multiply(q, t)");
    check(&columns, &["check", "--for", "cpu", "model.xml"], 1, &["error[scale-along-columns]", "64 columns"]);
    let rows = "x = Parameter : f32[?,64]\nc = Const(3) : u4[64,8]\nq = Convert(c) {destination_type=f32}
s = Const(0.5) : f32[64,1]\nw = Multiply(q, s)\ny = MatMul(x, w)\nr = Result(y)";
    check(rows, &["check", "--for", "cpu", "model.xml"], 1, &["error[scale-along-columns]", "64 rows"]);
    let turned = rows
        .replace("w = M", "o = Const([1, 0]) : i64[2]\nm = M")
        .replace("y = MatMul(x, w)", "w = Transpose(m, o)\ny = MatMul(x, w) {transpose_b=true}");
    check(&turned, &["check", "--for", "cpu", "model.xml"], 1, &["64 rows"]);
    let sound = turned.replace("f32[64,1]", "f32[1,8]");
    check(&sound, &["check", "--for", "cpu", "model.xml"], 0, &["no errors, no warnings"]);
}

/// "Is my FakeQuantize model computed in 8 bits?"
#[test]
fn check_says_which_fake_quantize_does_not_give_8_bits() {
    let listing = "x = Parameter : f32[?,4]\nl = Const(-1) : f32[]\nh = Const(1) : f32[]
d = FakeQuantize(x, l, h, l, h) {levels=256}\nc = Const(0.3) : f32[8,4]\nw = FakeQuantize(c, l, h, l, h) {levels=16}
y = MatMul(d, w) {transpose_b=true}\nr = Result(y)";
    let expected = ["warning[not-quantized]", "its weights are quantized to 16 levels"];
    let larger = listing.replace("[8,4]", "[8,64]").replace("[?,4]", "[?,64]");
    check(&larger, &["check", "--for", "cpu", "model.xml"], 0, &expected);
    check(
        &larger,
        &["stats", "model.xml"],
        0,
        &["FakeQuantize to 16 levels, per tensor", "1 activation with an 8-bit FakeQuantize"],
    );
}

/// No length from 128 on fits a table of 64 positions, so that none was named.
#[test]
fn lengths_that_do_not_fit_get_shorter_ones_that_do() {
    let model = testdata("models/bert.promote.xml");
    let lengths = ["--set-length", "*batch=4", "--set-length", "*seq=128"];
    for verb in [&["infer"][..], &["convert", "--dry-run"]] {
        let printed = run(Path::new("."), &[verb, &lengths, &[model.to_str().unwrap()]].concat()).stderr;
        assert!(printed.contains("--set-shape 'input_ids=[4,64]'") && printed.contains("it loads"), "{printed}");
    }
}

/// 48 of 50 weights were passed over without a word.
#[test]
fn weights_that_are_not_quantized_have_a_reason() {
    let model = testdata("models/gpt2_kv.promote.xml");
    let arguments = ["convert", "--dry-run", "--quantize", "int8_sym", model.to_str().unwrap()];
    let printed = run(Path::new("."), &arguments).stdout;
    assert!(printed.contains("; 48 weights of a ConvertPromoteTypes left alone: run `convert`"), "{printed}");
}

/// "FakeQuantize on weights as integers": only where it is asked for.
#[test]
fn fake_quantize_on_weights_becomes_integers() {
    let listing = "x = Parameter : f32[?,4]\nl = Const(-1) : f32[]\nh = Const(1) : f32[]\nc = Const(0.3) : f32[8,4]
w = FakeQuantize(c, l, h, l, h) {levels=255}\ny = MatMul(x, w) {transpose_b=true}\nr = Result(y)";
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "model.xml", listing);
    let done = run(folder.path(), &["rewrite", "--use", "fake-quantize-weights", "model.xml", "-o", "out.xml"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let counted = run(folder.path(), &["stats", "out.xml"]).stdout;
    assert!(counted.contains("int8 symmetric, per tensor, f32 scales"), "{counted}");
    let all = run(folder.path(), &["rewrite", "--use", "all", "--dry-run", "model.xml"]);
    assert!(!all.stdout.contains("Subtract") && !all.stdout.contains("integers"), "{}", all.stdout);
}

/// "Symmetric int4 for an NPU": codes of u4 around 8 become i4 by a rule, with the same values.
#[test]
fn u4_codes_become_i4_by_the_rule_that_the_finding_names() {
    let listing = "x = Parameter : f32[?,64]\nc = Const(3) : u4[8,64]\nq = Convert(c) {destination_type=f16}
e = Const([8]) : u4[1]\nz = Convert(e) {destination_type=f16} : f16[1]\nd = Subtract(q, z)\ns = Const(0.5) : f16[8,1]
m = Multiply(d, s)\nw = Convert(m) {destination_type=f32}\ny = MatMul(x, w) {transpose_b=true}\nr = Result(y)";
    let rule = "Subtract(c: const f16, 8) => Convert(convert(c - 8, i4)) {destination_type=f16}";
    check(listing, &["check", "--for", "npu", "model.xml"], 1, &["warning[asymmetric-int4]", "stored as u4", rule]);
    check(listing, &["rewrite", "-e", rule, "model.xml", "-o", "out.xml"], 0, &["1 rule applied"]);
    check(listing, &["stats", "model.xml"], 0, &["int4 symmetric as unsigned, per channel"]);
}

/// "What does the device compute in?"
#[test]
fn stats_says_what_a_device_computed_in() {
    let folder = testdata("oracle/execution");
    let text = run(&folder, &["stats", "weights_ways.xml", "--ran", "weights_ways.exec.xml"]).stdout;
    for expected in ["f32       bf16            8", "u8      f32              4                 8,192 → 32,768"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let why = run(&folder, &["why", "weights_ways.xml", "u8_divided", "--ran", "weights_ways.exec.xml"]).stdout;
    assert!(why.contains("u8 unfolded to f32, 2,048 → 8,192 bytes"), "{why}");
    let alone = run(&folder, &["stats", "weights_ways.exec.xml"]);
    assert!((alone.stdout + &alone.stderr).contains("error[execution-graph]"));
}

/// "i64 on a CPU": no option makes it compute in 64 bits, so none is offered.
#[test]
fn no_option_is_offered_for_integers_that_a_cpu_cannot_compute() {
    let listing = "x = Parameter : i64[3]\nb = Const(8589934592) : i64[]\ny = Add(x, b)\nr = Result(y)";
    let (_, text) = answer(listing, &["check", "--for", "cpu", "model.xml"]);
    assert!(text.contains("beyond-i32") && !text.contains("--keep"), "{text}");
    check(listing, &["check", "--for", "i32", "model.xml"], 0, &["whatever type the file declares"]);
}

/// "Batch 6": every target shape that has to adapt is named in one run, and the statements work.
#[test]
fn hard_coded_shapes_are_named_with_statements_that_work() {
    let listing = "x = Parameter : f32[1,64,10]\na = Const([1, 640]) : i64[2]\nflat = Reshape(x, a) {special_zero=false} : f32[1,640]
b = Const([1, 10, 64]) : i64[3]\ny = Reshape(flat, b) {special_zero=false} : f32[1,10,64]\nr = Result(y)";
    let statements = ["set a = [-1, 640]", "set b = [-1, 10, 64]", "input x : f32[6,64,10]"];
    check(listing, &["convert", "--set-shape", "x=[6,64,10]", "model.xml", "-o", "-"], 1, &statements);
    let open = ["convert", "--set-shape", "x=[?,64,10]", "model.xml", "-o", "out.xml"];
    check(listing, &open, 0, &statements[..2]);
    let rewrite =
        ["rewrite", "-e", statements[0], "-e", statements[1], "-e", statements[2], "model.xml", "-o", "out.xml"];
    check(listing, &rewrite, 0, &["3 statements applied"]);
}

/// "Which lengths fit a Reshape with -1?"
#[test]
fn the_lengths_that_fit_a_reshape_are_named() {
    let listing = "x = Parameter : f32[1,256,?]\na = Const([-1, 2, 256]) : i64[3]\ny = Reshape(x, a) {special_zero=false}\nr = Result(y)";
    let expected = ["`x[2]` is 5, but the lengths that fit are multiples of 2", "--set-shape 'x=[1,256,2]'"];
    check(listing, &["convert", "--set-shape", "x=[1,256,5]", "model.xml", "-o", "-"], 1, &expected);
}

/// A number is the name of a layer before it is the id of another one, and a note says so.
#[test]
fn a_number_is_a_name_before_it_is_an_id() {
    let listing = "0 x = Parameter : f32[2]\n1 2 = Abs(0)\n2 y = Sin(1)\n3 r = Result(2)";
    let note = "note: `2` is a name; `id:2` is the layer `y`";
    check(listing, &["why", "model.xml", "2"], 0, &["`2` (Abs 1", note]);
    check(listing, &["why", "model.xml", "id:2"], 0, &["`y` (Sin 2"]);
}

/// "These layers stay in f32": a file with their names.
#[test]
fn names_of_kept_layers_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let listing = "x = Parameter : f32[?,4]\na = Const(0.3) : f32[4,4]\nb = Const(0.7) : f32[4,4]
h = MatMul(x, a)\ny = MatMul(h, b)\nr = Result(y)";
    save(folder.path(), "model.xml", listing);
    fs::write(folder.path().join("kept.txt"), "# sensitive\nb\n\n").unwrap();
    let arguments = ["convert", "--compress", "f16", "--keep", "@kept.txt", "model.xml", "-o", "out.xml"];
    let done = run(folder.path(), &arguments);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let stored = run(folder.path(), &["show", "out.xml", "--only", "Const"]).stdout;
    assert!(stored.contains("a_compressed = Const") && stored.contains("b = Const(0.7) : f32[4,4]"), "{stored}");
    let quantize = ["convert", "--quantize", "int8_sym", "--keep", "@kept.txt", "model.xml", "-o", "int8.xml"];
    assert_eq!(run(folder.path(), &quantize).status, 0);
    let stored = run(folder.path(), &["show", "int8.xml"]).stdout;
    assert!(stored.contains("a = Const") && stored.contains("b = Const(0.7) : f32[4,4]"), "{stored}");
    fs::write(folder.path().join("kept.txt"), "nosuch\n").unwrap();
    let refused = run(folder.path(), &arguments);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("`nosuch` matches no layer"), "{}", refused.stderr);
}

/// A listing without any values has no weights, and one with some fills the others with zeros.
#[test]
fn constants_without_values_are_zeros_if_others_have_values() {
    let listing = "x = Parameter : f32[2]\nw = Const : f32[2]\ny = Add(x, w)\nr = Result(y)";
    assert!(Model::from_text(listing).unwrap().weights().len().is_none());
    let model =
        Model::from_text(&listing.replace("y = Add(x, w)", "v = Const(1) : f32[2]\nu = Add(x, v)\ny = Add(u, w)"))
            .unwrap();
    let constant = model.graph().layer(model.graph().find("w").unwrap()).unwrap();
    assert_eq!(constant.numbers(model.weights()), Some(vec![0.0, 0.0]));
}

/// A constant that is an output is compressed without giving a tensor name to two layers.
#[test]
fn a_compressed_constant_that_is_an_output_keeps_its_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "model.xml", "c = Const([0.3, 0.7]) : f32[2]\nr = Result(c)");
    let named = fs::read_to_string(folder.path().join("model.xml"))
        .unwrap()
        .replace("precision=\"FP32\">", "precision=\"FP32\" names=\"c,r\">");
    fs::write(folder.path().join("model.xml"), named).unwrap();
    assert_eq!(run(folder.path(), &["convert", "--compress", "f16", "model.xml", "-o", "out.xml"]).status, 0);
    let checked = run(folder.path(), &["check", "out.xml", "--deny", "warnings"]);
    assert_eq!(checked.status, 0, "{}", checked.stdout);
}

/// "int64 with float32 in Paddle": the help names a type of the question, not a complex one.
#[test]
fn paddle_is_told_to_convert_integers_to_the_float() {
    let folder = tempfile::tempdir().unwrap();
    let refused = run(folder.path(), &["promote", "--rules", "paddle", "i64[2]", "f32[2]"]);
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("= help: convert operand 1 to f32"), "{}", refused.stderr);
}

/// A new Parameter gets the tensor name by which OpenVINO finds an input.
#[test]
fn an_input_that_is_added_has_a_tensor_name() {
    let listing = "x = Parameter : f32[2]\ny = Abs(x)\nr = Result(y)";
    let statement = "add input mask : f32[2]";
    let arguments = ["rewrite", "-e", statement, "-e", "redirect y -> y * mask", "model.xml", "-o", "-"];
    check(listing, &arguments, 0, &["names=\"mask\""]);
}

/// Types that a CPU refuses, by operation, as measured.
#[test]
fn operations_without_code_for_a_type_are_errors() {
    let of = |ty: &str, operation: &str| {
        let listing = format!("x = Parameter : {ty}[2,4]\na = Const([1]) : i64[1]\ny = {operation}\nr = Result(y)");
        answer(&listing, &["check", "--for", "cpu", "model.xml"]).0
    };
    let norm = "NormalizeL2(x, a) {eps=1e-6, eps_mode=add}";
    assert_eq!((of("i32", norm), of("i8", norm), of("nf4", norm)), (1, 0, 1));
    assert_eq!((of("u8", "Negative(x)"), of("i8", "Negative(x)")), (1, 0));
    assert_eq!((of("u2", "Softmax(x) {axis=1}"), of("nf4", "Abs(x)")), (1, 1));
    let indices = |ty: &str| {
        let listing = format!(
            "x = Parameter : {ty}[3]\nd = Const(4) : i64[]\non = Const(1) : f32[]\noff = Const(0) : f32[]
y = OneHot(x, d, on, off) {{axis=1}}\nr = Result(y)"
        );
        answer(&listing, &["check", "--for", "cpu", "model.xml"]).0
    };
    assert_eq!((indices("i8"), indices("i32")), (1, 0));
}

/// "The link is broken": the message names what is missing, not the link.
#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("gone.xml", folder.path().join("link.xml")).unwrap();
    let refused = run(folder.path(), &["check", "link.xml"]);
    assert!(refused.stderr.contains("it is a link to `gone.xml`, which does not exist"), "{}", refused.stderr);
}

/// "Is it NHWC now?" The summary counts the Transposes of new layouts.
#[test]
fn a_conversion_counts_the_transposes_of_new_layouts() {
    let listing = "x = Parameter : f32[1,3,8,8]\ny = Relu(x) : f32[1,3,8,8]\nr = Result(y)";
    let options = ["--input-layout", "x=NCHW:NHWC", "--output-layout", "y=NCHW:NHWC"];
    let (status, text) = answer(listing, &[&["convert", "model.xml", "-o", "out.xml"], &options[..]].concat());
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("2 Transposes inserted"), "{text}");
}

/// "A list of means": it must not be aligned with the width of an image.
#[test]
fn a_list_before_an_input_that_would_change_its_shape_is_refused() {
    let listing = "x = Parameter : f32[?,3,?,?]\ny = Relu(x) : f32[?,3,?,?]\nr = Result(y)";
    let wrong = ["rewrite", "model.xml", "-e", "before x : Subtract(_, [1.5, 2, 3])", "-o", "out.xml"];
    let (status, text) = answer(listing, &wrong);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("reshape([1, 2, 3], [1, 3, 1, 1])"), "{text}");
    let right =
        ["rewrite", "model.xml", "-e", "before x : Subtract(_, reshape([1.5, 2, 3], [1, 3, 1, 1]))", "-o", "o.xml"];
    assert_eq!(answer(listing, &right).0, 0);
}
