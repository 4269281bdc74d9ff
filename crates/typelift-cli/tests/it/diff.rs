//! `typelift diff` reports each difference once, and nothing else.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::{folder, model, run};
use crate::schemas::assert_form;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// Returns the changes that `diff` reports, and its exit status.
fn changes(before: &Path, after: &Path) -> (i32, Vec<Value>) {
    let arguments = ["diff", "--format", "json", before.to_str().unwrap(), after.to_str().unwrap()];
    let run = run(Path::new("."), &arguments);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_form("diff", &document);
    let changes = document["changes"].as_array().unwrap().clone();
    assert_eq!(document["same"], changes.is_empty());
    (run.status, changes)
}

#[test]
fn openvinos_own_rewrite_shows_nothing_but_names() {
    let mut compared = 0;
    for entry in fs::read_dir(testdata("oracle/diff/rewritten")).unwrap() {
        let rewritten = entry.unwrap().path();
        if rewritten.extension().is_some_and(|extension| extension == "xml") {
            let original = testdata("models").join(rewritten.file_name().unwrap());
            let (status, changes) = changes(&original, &rewritten);
            assert!(changes.iter().all(|change| change["kind"] == "names"), "{}: {changes:?}", rewritten.display());
            assert_eq!(status, i32::from(!changes.is_empty()));
            compared += 1;
        }
    }
    assert_eq!(compared, 5);
}

#[test]
fn marks_that_keep_a_precision_count_and_their_spelling_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let [marked, respelled] = ["for_2024.6", "for_2026.3"].map(|name| testdata(&format!("fixtures/marks/{name}.xml")));
    let plain = folder.path().join("plain.xml");
    let text = fs::read_to_string(&respelled).unwrap();
    fs::write(&plain, text.replace(r#"<rt_info><attribute name="precise" version="0"/></rt_info>"#, "")).unwrap();
    fs::copy(marked.with_extension("bin"), plain.with_extension("bin")).unwrap();

    assert_eq!(changes(&marked, &respelled).1.len(), 0);
    let (status, changes) = changes(&plain, &marked);
    assert_eq!((status, changes.len()), (1, 4));
    assert_eq!((&changes[0]["kind"], &changes[0]["before"]), (&"mark".into(), &Value::Null));
    assert_eq!(changes[0]["after"], "DisablePrecisionConversion=dynamic:f16");
}

#[test]
fn a_side_without_weights_changes_no_shape() {
    let folder = tempfile::tempdir().unwrap();
    let original = testdata("models/crnn_ctc.xml");
    let alone = folder.path().join("alone.xml");
    fs::copy(&original, &alone).unwrap();
    assert_eq!(changes(&alone, &original), (0, Vec::new()));
    assert_eq!(changes(&original, &alone), (0, Vec::new()));
}

#[test]
fn openvinos_own_lowering_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let lowered = folder.path().join("lowered.xml");
    for name in ["bert", "gpt2_kv", "index_arith", "loop_py", "lstm_ti", "mixed_dtypes_torch"] {
        let original = testdata(&format!("models/{name}.promote.xml"));
        // OpenVINO's file uses the weights of the original.
        let reference = folder.path().join("reference.xml");
        fs::copy(testdata(&format!("models/{name}.promote.ref.xml")), &reference).unwrap();
        fs::copy(original.with_extension("bin"), reference.with_extension("bin")).unwrap();
        let arguments = [original.to_str().unwrap(), "--keep-noop-converts", "-o", lowered.to_str().unwrap()];
        assert_eq!(run(folder.path(), &[&["convert"], &arguments[..]].concat()).status, 0);
        let (_, changes) = changes(&reference, &lowered);
        assert!(changes.iter().all(|change| change["kind"] == "names"), "{name}: {changes:?}");
    }
}

/// `loop_py` of the test models with one replaced text, and the resulting change.
const ONE_CHANGE: &[(&str, &str, &str, &str)] = &[
    (r#"name="Multiply_7" type="Multiply""#, r#"name="Multiply_7" type="Add""#, "operation", "Loop_23/body/Multiply_7"),
    (r#"name="Multiply_7""#, r#"name="renamed""#, "names", "Loop_23/body/renamed"),
    (r#"keep_dims="false""#, r#"keep_dims="true""#, "attribute", "Loop_23/body/ReduceMax_11"),
];

#[test]
fn one_change_of_the_text_is_one_change() {
    let original = testdata("models/loop_py.xml");
    let text = fs::read_to_string(&original).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let changed = folder.path().join("changed.xml");
    fs::copy(original.with_extension("bin"), changed.with_extension("bin")).unwrap();
    for (from, to, kind, path) in ONE_CHANGE {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        fs::write(&changed, text.replace(from, to)).unwrap();
        let (status, changes) = changes(&original, &changed);
        assert_eq!(status, 1);
        let found: Vec<_> = changes.iter().map(|change| (&change["kind"], &change["path"])).collect();
        assert_eq!(found, [(&Value::from(*kind), &Value::from(*path))], "{to}: {changes:?}");
    }
}

#[test]
fn text_is_for_people() {
    let folder = folder();
    let path = folder.path();
    let after = model("f64", 1).replace("type=\"Add\"", "type=\"Multiply\"");
    fs::write(path.join("after.xml"), after).unwrap();
    fs::write(path.join("after.bin"), 1.25_f32.to_le_bytes()).unwrap();
    let run = run(path, &["diff", "model.xml", "after.xml"]);
    assert_eq!(run.status, 1);
    insta::assert_snapshot!(run.stdout);
    assert_eq!(crate::cli::run(path, &["diff", "model.xml", "model.xml"]).stdout, "");
}

#[test]
fn changes_that_are_alike_are_one_line_with_their_blocks() {
    let [before, after] = ["bert.promote.xml", "bert.promote.ref.xml"].map(|name| testdata("models").join(name));
    let printed = |more: &[&str]| {
        let files = [before.to_str().unwrap(), after.to_str().unwrap()];
        run(Path::new("."), &[&["diff"], &files[..], more].concat()).stdout
    };
    let (brief, all) = (printed(&[]), printed(&["--all"]));
    let lines: Vec<&str> = brief.lines().collect();
    assert_eq!(lines[2], "90 changes: 60 added, 30 removed");
    assert!(lines.len() <= 24, "{brief}");
    assert!(lines.iter().any(|line| line.starts_with("+ in layer.0–11: 48 × Convert {destination_type=f32} : f32")));
    let signed = |text: &str| text.lines().skip(3).filter(|line| line.starts_with(['+', '-'])).count();
    assert_eq!(signed(&all), 90, "every change is in the long list");
}

#[test]
fn a_lowered_model_shows_its_converts() {
    let folder = folder();
    let path = folder.path();
    run(path, &["convert", "model.xml", "-o", "lowered.xml"]);
    insta::assert_snapshot!(run(path, &["diff", "--all", "model.xml", "lowered.xml"]).stdout);
}

#[test]
fn layers_without_their_names_are_matched_by_what_they_compute() {
    let original = testdata("models/bert.promote.xml");
    let mut text = fs::read_to_string(&original).unwrap();
    let anonymous = tempfile::tempdir().unwrap();
    let path = anonymous.path().join("anonymous.xml");
    fs::copy(original.with_extension("bin"), path.with_extension("bin")).unwrap();
    let (mut at, mut number) = (0, 0);
    while let Some(found) = text[at..].find("\" name=\"").filter(|_| number < 10_000) {
        let start = at + found + "\" name=\"".len();
        let end = start + text[start..].find('"').unwrap();
        let new = format!("n{number}");
        text.replace_range(start..end, &new);
        (at, number) = (start + new.len(), number + 1);
    }
    fs::write(&path, text).unwrap();
    let (status, changes) = changes(&original, &path);
    assert_eq!(status, 1);
    assert!(changes.len() > 100);
    assert!(changes.iter().all(|change| change["kind"] == "names"), "{changes:?}");
}

#[test]
fn constants_are_compared_by_their_bytes() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("after.xml"), model("f16", 1)).unwrap();
    fs::write(path.join("after.bin"), 1.25_f32.to_le_bytes()).unwrap();
    let (_, found) = changes(&path.join("model.xml"), &path.join("after.xml"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["kind"], "constant");
    assert_eq!((&found[0]["before"], &found[0]["after"]), (&"f32[] = [1.5]".into(), &"f32[] = [1.25]".into()));
    assert_eq!(
        found[0]["values"],
        serde_json::json!({"changed": 1, "of": 1, "largest": 0.25, "worst": ["1.5 → 1.25"]})
    );
    fs::remove_file(path.join("after.bin")).unwrap();
    assert_eq!(changes(&path.join("model.xml"), &path.join("after.xml")), (0, Vec::new()));
}

#[test]
fn constants_in_another_type_are_one_line_with_the_largest_error() {
    let folder = tempfile::tempdir().unwrap();
    let before = testdata("oracle/precision/edge_rounding_ties.xml");
    for (change, what) in [(["--compress", "f16"], "3 constants"), (["--types", "f32=f16"], "3 constants")] {
        let after = folder.path().join("after.xml");
        let [old, new] = [&before, &after].map(|path| path.to_str().unwrap());
        let done = run(Path::new("."), &["convert", old, change[0], change[1], "-o", new]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        let told = run(Path::new("."), &["diff", old, new]).stdout;
        assert!(told.contains(&format!("~ {what} are f16 instead of f32, worst relative 1 in z\n")), "{told}");
    }
}

/// The relative error of a small value says little. Of quantized constants the part of a row's range is shown.
#[test]
fn the_worst_of_quantized_constants_is_the_one_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let original = testdata("models/crnn_ctc.xml").display().to_string();
    assert_eq!(run(path, &["convert", &original, "--quantize", "int8_sym", "-o", "q.xml"]).status, 0);
    let changed = "set \"self.c.0.weight/scale\" = _ * 1.3";
    assert_eq!(run(path, &["rewrite", "q.xml", "-e", changed, "-o", "changed.xml"]).status, 0);
    let differs = run(path, &["diff", &original, "changed.xml"]).stdout;
    assert!(differs.contains("worst error 19.7 % of a row's range in self.c.0.weight"), "{differs}");
}

#[test]
fn standard_input_can_be_one_model() {
    let folder = folder();
    let input = fs::read(folder.path().join("model.xml")).unwrap();
    let run = |arguments: &[&str]| crate::cli::run_with(folder.path(), arguments, &input);
    assert_eq!(run(&["diff", "-", "-"]).status, 2);
    assert_eq!(run(&["diff", "model.xml", "-"]).status, 0);
}

#[test]
fn an_input_that_gets_another_tensor_is_shown_where_a_layer_was_removed_too() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        typelift::Model::from_text(text).unwrap().save(&path).unwrap();
        path
    };
    let ends = "a = Parameter : f16[2]\nb = Parameter : f32[2]\n";
    let before = write(
        "before.xml",
        &format!("{ends}c = Convert(a) {{destination_type=f32}}\ns = Subtract(c, b)\nr = Result(s)"),
    );
    let rewired = write("rewired.xml", &format!("{ends}s = Subtract(b, b)\nr = Result(s)"));
    let (_, found) = changes(&before, &rewired);
    assert!(
        found.iter().any(|it| it["kind"] == "input" && it["subject"] == "input 0" && it["after"] == "b"),
        "{found:?}"
    );
    // A removed layer whose input is used instead explains it.
    let both = "a = Parameter : f32[2]\nb = Parameter : f32[2]\n";
    let before = write("long.xml", &format!("{both}c = Relu(a)\nd = Abs(c)\ns = Subtract(d, b)\nr = Result(s)"));
    let shorter = write("short.xml", &format!("{both}s = Subtract(a, b)\nr = Result(s)"));
    let (_, found) = changes(&before, &shorter);
    assert!(found.iter().all(|it| it["kind"] == "removed"), "{found:?}");
}

/// The story of a rewriting said which layers went and which came, in separate lines.
#[test]
fn what_a_rewriting_made_of_layers_is_one_line_of_the_story() {
    let story = |block: &dyn Fn(usize, bool) -> String| -> Vec<String> {
        let models = [false, true].map(|after| {
            let blocks: String = (0..4).map(|at| block(at, after)).collect();
            let text = format!("x = Parameter : f32[2,2]\no = Const([1, 0]) : i64[2]\nk = Const([0, 1]) : i64[2]\nh0 = Exp(x)\n{blocks}z = Transpose(h4, k)\nw = Transpose(z, o)\ny = Result(w)\n");
            let mut model = typelift::Model::from_text(&text).unwrap();
            assert_eq!(typelift::infer(&mut model), []);
            model
        });
        typelift::diff(&models[0], &models[1]).story()
    };
    let fused = |at: usize, after: bool| {
        let (name, next) = (format!("m.layers.{at}"), at + 1);
        let transposes = match after {
            false => format!("{name}.t = Transpose(h{at}, o)\n{name}.u = Transpose({name}.t, o)\n"),
            true => format!("{name}.u = Transpose(h{at}, k)\n"),
        };
        format!(
            "{transposes}{name}.a = ReLU({name}.u)\n{name}.b = Abs({name}.a)\n{name}.c = Sin({name}.b)\nh{next} = Exp({name}.c)\n"
        )
    };
    assert_eq!(story(&fused), ["fused: Transpose : f32 into Transpose, in each of layers.0–3"]);
    let replaced = |at: usize, after: bool| {
        let (name, next) = (format!("m.layers.{at}"), at + 1);
        let act = if after {
            format!("{name}.new = Tanh(h{at})\n")
        } else {
            format!("{name}.p = ReLU(h{at})\n{name}.q = ReLU({name}.p)\n")
        };
        let last = if after { "new" } else { "q" };
        format!(
            "{act}{name}.a = Abs({name}.{last})\n{name}.b = Sin({name}.a)\n{name}.c = Cos({name}.b)\n{name}.d = Sinh({name}.c)\nh{next} = Exp({name}.d)\n"
        )
    };
    assert_eq!(story(&replaced), ["replaced: 2 ReLU : f32 by 1 Tanh : f32, in each of layers.0–3"]);
    // A layer that comes where another one does not go replaces nothing.
    let moved = |at: usize, after: bool| {
        let (name, next) = (format!("m.layers.{at}"), at + 1);
        let (first, last) = if after {
            (format!("h{at}"), format!("{name}.new"))
        } else {
            (format!("{name}.old"), format!("{name}.c"))
        };
        let old = if after { String::new() } else { format!("{name}.old = ReLU(h{at})\n") };
        let new = if after { format!("{name}.new = Tanh({name}.c)\n") } else { String::new() };
        format!(
            "{old}{name}.a = Abs({first})\n{name}.b = Sin({name}.a)\n{name}.c = Cos({name}.b)\n{new}h{next} = Exp({last})\n"
        )
    };
    assert_eq!(
        story(&moved),
        ["removed: ReLU : f32, in each of layers.0–3", "added: Tanh : f32, in each of layers.0–3"]
    );
    // A number for all blocks replaces one in each: its users read equal values.
    let merged = |at: usize, after: bool| {
        let (name, next) = (format!("m.layers.{at}"), at + 1);
        let number = match (after, at) {
            (false, _) => format!("{name}.two = Const([2]) : f32[1,1]\n"),
            (true, 0) => "two = Const([2]) : f32[]\n".to_owned(),
            (true, _) => String::new(),
        };
        let two = if after { "two".to_owned() } else { format!("{name}.two") };
        format!(
            "{number}{name}.a = Power(h{at}, {two})\n{name}.b = Sin({name}.a)\n{name}.c = Cos({name}.b)\nh{next} = Exp({name}.c)\n"
        )
    };
    assert_eq!(story(&merged)[0], "merged: constants of equal values, in each of layers.0–2");
}

/// The worst difference did not say which value changed, a summary led to the first constant, and no line named a constant
/// that kept its type.
#[test]
fn the_values_that_differ_most_have_their_indices_and_both_numbers() {
    let model = |value: &str| {
        let text = format!(
            "x = Parameter : f32[3]\nw = Const([1,2,3,4,5,6,7,8,{value}]) : f32[3,3]\ny = Add(x, w)\nz = Result(y)"
        );
        typelift::Model::from_text(&text).unwrap()
    };
    let (before, after) = (model("0.1"), model("0.7"));
    let diff = typelift::diff(&before, &after);
    assert_eq!(diff.changes[0].values.as_ref().unwrap().worst, ["[2,2]: 0.1 → 0.7"]);
    assert_eq!(diff.story(), ["changed: values of Const f32 in w, 1 of 9 values, at most 0.6"]);
    let stored = |a: &str, b: &str, after: &str| {
        let text = format!(
            "x = Parameter : f32[2]\na = Const([1.0001,1]) : {a}[2]\nb = Const([{b}]) : {a}[2]\nc = Const([3,4]) : f32[2]\n{after}\nz = Result(y)"
        );
        let mut model = typelift::Model::from_text(&text).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        model
    };
    let before = stored("f32", "70000,90000", "s = Add(x, a)\nt = Add(s, b)\ny = Add(t, c)");
    let after = stored(
        "f16",
        "65504,65504",
        "a.f32 = Convert(a) {destination_type=f32}\nb.f32 = Convert(b) {destination_type=f32}\ns = Add(x, a.f32)\nt = Add(s, b.f32)\ny = Add(t, c)",
    );
    let diff = typelift::diff(&before, &after);
    let lines = diff.story_lines();
    assert_eq!(diff.story()[..2], ["f32 to f16: 2 constants, worst relative error 2.7e-1", "still f32: 1 constant, c"]);
    assert_eq!((lines[0].changes[0].path.as_str(), lines[1].kept), ("b.f32", &["c".to_owned()][..]));
    // A constant that got a Convert is no renamed one, and the Convert is no added layer.
    assert_eq!(diff.changes.len(), 2);
    let values = lines[0].changes[0].values.as_ref().unwrap();
    assert_eq!(values.worst, ["[1]: 90000 → 65504", "[0]: 70000 → 65504"]);
    assert_eq!(values.to_string(), "2 of 2 values, at most 24500, 2 out of range");
}

/// Each of these rules of the story was right in one model and had no test.
#[test]
fn a_story_names_blocks_families_and_tensors() {
    let model = |text: &str| {
        let mut model = typelift::Model::from_text(text).unwrap();
        assert_eq!(typelift::infer(&mut model), [], "{text}");
        model
    };
    let convolution = |auto_pad: &str| {
        format!(
            "x = Parameter : f32[1,1,4,4]\nw = Const([1,1,1,1,1,1,1,1,1]) : f32[1,1,3,3]\ny = Convolution(x, w) {{strides=[1,1], \
             dilations=[1,1], pads_begin=[1,1], pads_end=[1,1], auto_pad={auto_pad}}}\nz = Result(y)\n"
        )
    };
    // Four blocks; one of them reads the block of this number.
    let chain = |family: &str, first: &str, odd: Option<(usize, usize)>, act: &str| {
        let block = |at: usize| {
            let before = odd.filter(|&(reader, _)| reader == at).map_or(at, |(_, read)| read + 1);
            let input = before.checked_sub(1).map_or(first.to_owned(), |before| format!("{family}.{before}.out"));
            let name = format!("{family}.{at}");
            format!(
                "{name}.a = {act}({input})\n{name}.b = Abs({name}.a)\n{name}.c = Sin({name}.b)\n{name}.out = Exp({name}.c)\n"
            )
        };
        (0..4).map(block).collect::<String>()
    };
    let one =
        |odd| format!("x = Parameter : f32[2]\n{}y = Result(m.layers.3.out)\n", chain("m.layers", "x", odd, "ReLU"));
    let two = |act: &str| {
        let (encoder, decoder) =
            (chain("m.encoder.layers", "x", None, act), chain("m.decoder.layers", "m.encoder.layers.3.out", None, act));
        format!("x = Parameter : f32[2]\n{encoder}{decoder}y = Result(m.decoder.layers.3.out)\n")
    };
    let [long, short] = ["a = ReLU(x)\nb = Abs(a)\nc = Sin(b)\ny = Exp(c)", "y = Exp(x)"]
        .map(|it| format!("x = Parameter : f32[2]\n{it}\nz = Result(y)\n"));
    let families = ["encoder", "decoder"]
        .map(|family| format!("changed: operation of Tanh Relu → Tanh, in each of {family}.layers.0–3"));
    let families = families.each_ref().map(String::as_str);
    // The constants of a block that was removed belong to it, whether they have a Convert or not.
    let block = |(at, input): (usize, &str)| {
        let name = format!("m.layers.{at}");
        format!(
            "{name}.w = Const([{at},1]) : f16[2]\n{name}.c = Convert({name}.w) {{destination_type=f32}}\n{name}.a = Add({input}, {name}.c)\n\
             {name}.b = ReLU({name}.a)\n{name}.d = Sin({name}.b)\n{name}.out = Abs({name}.d)\n"
        )
    };
    let end = "y = Result(m.layers.2.out)\n";
    let [first, second] = [(0, "x"), (1, "m.layers.0.out")].map(block);
    let whole = format!("x = Parameter : f32[2]\n{first}{second}{}{end}", block((2, "m.layers.1.out")));
    let cut = format!("x = Parameter : f32[2]\n{first}{}{end}", block((2, "m.layers.0.out")));
    let story = typelift::diff(&model(&whole), &model(&cut)).story();
    assert!(story[0].starts_with("removed: layers.1, 6 layers"), "{story:?}");
    // The new name has no number, and its place is near the block before.
    let diff = typelift::diff(&model(&one(None)), &model(&one(None).replace("m.layers.2.", "m.two.")));
    let places: Vec<String> = typelift::alike(&diff.changes).iter().map(|it| it.places()).collect();
    assert_eq!(places, ["4 in layers.2"]);
    let rows: [(String, String, &[&str]); 4] = [
        (
            convolution("explicit"),
            convolution("same_upper"),
            &["changed: auto_pad of Convolution explicit → same_upper"],
        ),
        (long, short, &["removed: ReLU : f32", "removed: Abs : f32", "removed: Sin : f32"]),
        (one(None), one(Some((2, 0))), &["bypassed: m.layers.1"]),
        (two("ReLU"), two("Tanh"), &families),
    ];
    for (before, after, story) in rows {
        assert_eq!(typelift::diff(&model(&before), &model(&after)).story(), story);
    }
}

/// Each pair of models differs in one thing that was told as two, as another one, or not at all.
#[test]
fn one_difference_is_one_change_with_its_reason() {
    let model = |text: &str| {
        let mut model = typelift::Model::from_text(&format!(
            "x = Parameter : f32[3]\np = Parameter : f32[3]\n{text}\nz = Result(y)"
        ))
        .unwrap();
        assert_eq!(typelift::infer(&mut model), [], "{text}");
        model
    };
    let table = [
        (
            "y = Add(x, p)",
            "y = Add(p, x)",
            "changed: inputs 0 and 1 of Add in y: x, p → swapped, which computes the same",
        ),
        ("y = Subtract(x, p)", "y = Subtract(p, x)", "changed: inputs 0 and 1 of Subtract in y: x, p → swapped"),
        (
            "c = Const([2]) : f32[]\ny = Divide(x, c)",
            "c = Const([0.5]) : f32[]\ny = Multiply(x, c)",
            "changed: operation of Multiply Divide by 2 → Multiply by 0.5, the same",
        ),
        (
            "c = Const([3]) : f32[]\ny = Divide(x, c)",
            "c = Const([0.33333334]) : f32[]\ny = Multiply(x, c)",
            "changed: operation of Multiply Divide by 3 → Multiply by 0.33333334, the same but for rounding",
        ),
        (
            "c = Const([1,0,3]) : f32[3]\ny = Add(x, c)",
            "c = Const([4,0,12]) : f32[3]\ny = Add(x, c)",
            "changed: values of Const f32 times 4 in c",
        ),
        (
            "c = Const([1,2,3]) : f32[3]\ny = Add(x, c)",
            "c = Const([-1,-2,-3]) : f32[3]\ny = Add(x, c)",
            "changed: values of Const f32 times -1 in c",
        ),
        (
            "c = Const([1,2,3]) : f32[3]\ny = Add(x, c)",
            "c = Const([4,8,13]) : f32[3]\ny = Add(x, c)",
            "changed: values of Const f32 in c, 3 of 3 values, at most 10",
        ),
        (
            "c = Const([0.1,2,3]) : f32[3]\ny = Add(x, c)",
            "s = Const([0.1,2,3]) : f16[3]\nc = Convert(s) {destination_type=f32}\ny = Add(x, c)",
            "f32 to f16: 1 constant, worst relative error 2.4e-4",
        ),
    ];
    for (before, after, story) in table {
        let diff = typelift::diff(&model(before), &model(after));
        assert_eq!(diff.story(), [story]);
        assert_eq!(diff.changes.len(), 1);
    }
}

/// Layers of a removed output were said to be fused into the output that was added.
#[test]
fn nothing_is_fused_into_an_output() {
    let model = |end: &str| {
        let mut model =
            typelift::Model::from_text(&format!("x = Parameter : f32[4]\na = ReLU(x)\nb = Tanh(a)\n{end}")).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        model
    };
    let before = model("c = Exp(b)\nd = Abs(c)\nq = Result(b)\nr = Result(d)");
    let story = typelift::diff(&before, &model("q = Result(b)\ns = Result(a)")).story();
    assert!(!story.iter().any(|line| line.contains("fused")), "{story:?}");
}

/// The order of a Transpose was said to be the bias that replaced another constant, and weights into which a Multiply was
/// folded were said to be changed.
#[test]
fn constants_of_other_kinds_do_not_match_and_folded_layers_are_told() {
    let model = |text: &str| {
        let mut model =
            typelift::Model::from_text(&format!("x = Parameter : f32[1,1,4,4]\nw = Const([{text}\nz = Result(y)"))
                .unwrap();
        assert_eq!(typelift::infer(&mut model), [], "{text}");
        model
    };
    let convolution = "]) : f32[1,1,1,1]\nv = Convolution(x, w) {strides=[1,1], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], auto_pad=explicit}\n";
    let before = model(&format!("2{convolution}c = Const([3]) : f32[1,1,1,1]\nm = Multiply(v, c)\ny = ReLU(m)"));
    let after = model(&format!("6{convolution}y = ReLU(v)"));
    let diff = typelift::diff(&before, &after);
    assert_eq!(diff.story(), ["fused: Multiply : f32 into Const, 1"]);
    let before = model(&format!("2{convolution}o = Const([0,2,3,1]) : i64[4]\nt = Transpose(v, o)\ny = ReLU(t)"));
    let after = model(&format!("2{convolution}b = Const([1]) : f32[1,1,1,1]\nt = Add(v, b)\ny = ReLU(t)"));
    assert!(
        typelift::diff(&before, &after).changes.iter().all(|change| change.kind != typelift::explain::ChangeKind::Type)
    );
}
