//! What programs that load a model require: names, types, state, metadata and files; and adapters.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use typelift::Model;

use crate::cli::{Run, run, words};

/// Writes a model, and returns the findings of `check --for` that concern the program.
fn findings(folder: &Path, listing: &str, file: &str, purpose: &str) -> Vec<Value> {
    let mut model = Model::from_text(listing).unwrap_or_else(|error| panic!("{listing}\n{error}"));
    drop(typelift::infer(&mut model));
    model.save(folder.join(file)).unwrap();
    checked(folder, file, purpose)
}

fn checked(folder: &Path, file: &str, purpose: &str) -> Vec<Value> {
    let Run { stdout, stderr, .. } = run(folder, &["check", file, "--for", purpose, "--format", "json"]);
    let document: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    let all = document["diagnostics"].as_array().unwrap().iter();
    all.filter(|it| it["code"].as_str().unwrap().starts_with("program-")).cloned().collect()
}

const ENCODER: &str = "IDS = Parameter : i64[?,?] \"IDS\"\nMASK = Parameter : i64[?,?] \"MASK\"\nall = Add(IDS, MASK)\nf = Convert(all) {destination_type=f32}
OUT = Unsqueeze(f, axis) : f32[?,?,1] \"OUT\"\naxis = Const(2) : i64[]\nr = Result(OUT)";

fn encoder(ids: &str, mask: &str, out: &str) -> String {
    ENCODER.replace("IDS", ids).replace("MASK", mask).replace("OUT", out)
}

#[test]
fn a_model_that_fits_has_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("openvino_tokenizer.xml"), "<net name=\"t\" version=\"11\"><layers/><edges/></net>")
        .unwrap();
    let listing = encoder("input_ids", "attention_mask", "last_hidden_state");
    let found = findings(folder.path(), &listing, "openvino_model.xml", "genai");
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_finding_names_its_subject_and_a_command_that_repairs_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("genai:embedding", encoder("tokens", "attention_mask", "last_hidden_state"), "program-input", "error", "input_ids"),
        ("genai:embedding", encoder("input_ids", "attention_mask", "hidden"), "program-output", "error", "last_hidden_state"),
        ("optimum", encoder("input_ids", "attention_mask", "hidden"), "program-output", "error", "last_hidden_state"),
        (
            "genai:embedding",
            encoder("input_ids", "attention_mask", "last_hidden_state").replace("input_ids = Parameter : i64", "input_ids = Parameter : i32").replace("all = Add(input_ids", "wide = Convert(input_ids) {destination_type=i64}\nall = Add(wide"),
            "program-input",
            "error",
            "input_ids",
        ),
        ("genai:embedding", encoder("input_ids", "attention_mask", "last_hidden_state") + "\nmore = Result(f)", "program-output", "error", "more"),
        ("model-api", "image = Parameter : f32[1,4,8,3]\nm = ReduceMean(image, axes) {keep_dims=false}\naxes = Const([1,2]) : i64[2]\nr = Result(m)".to_owned(), "program-key", "error", "model_info/model_type"),
    ];
    for (purpose, listing, code, severity, subject) in cases {
        let found = findings(folder.path(), &listing, "openvino_model.xml", purpose);
        let it = found.iter().find(|it| it["subject"]["name"] == subject);
        let it = it.unwrap_or_else(|| panic!("{purpose}: no finding about {subject}: {found:?}\n{listing}"));
        assert_eq!((it["code"].as_str(), it["severity"].as_str()), (Some(code), Some(severity)), "{it}");
        let fix = it["fix"].as_str().unwrap_or_else(|| panic!("{purpose}: no command: {it}"));
        let words = words(&fix.replace("<# PowerShell 7.3 #> ", "")).unwrap();
        let done = run(folder.path(), &words[1..].iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(done.status, 0, "{fix}: {}", done.stderr);
        let left = checked(folder.path(), "fixed.xml", purpose);
        assert!(!left.iter().any(|it| it["subject"]["name"] == subject), "{fix}: {left:?}");
    }
}

#[test]
fn an_input_without_a_tensor_name_gets_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let listing = "data = Parameter : f32[1,4]\ny = Abs(data)\nr = Result(y)";
    let mut model = Model::from_text(listing).unwrap();
    let data = model.graph().find("data").unwrap();
    model.edit(|edit| edit.set_names(data.output(0), Vec::new())).unwrap();
    model.save(folder.path().join("model.xml")).unwrap();
    let found = checked(folder.path(), "model.xml", "ovms");
    assert!(found.iter().any(|it| it["fix"].as_str().is_some_and(|fix| fix.contains("rename data data"))), "{found:?}");
    let done = run(folder.path(), &["rewrite", "model.xml", "-e", "rename data data", "-o", "named.xml"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(fs::read_to_string(folder.path().join("named.xml")).unwrap().contains("names=\"data\""));
}

#[test]
fn metadata_is_compared_shown_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut model = Model::from_text("x = Parameter : f32[2]\ny = Abs(x)\nr = Result(y)").unwrap();
    model.set_rt_info("model_info/labels", "cat dog").unwrap();
    model.set_rt_info("Runtime_version", "2026.4.1").unwrap();
    model.save(folder.join("a.xml")).unwrap();
    model.set_rt_info("model_info/labels", "cat bird").unwrap();
    model.set_rt_info("Runtime_version", "2026.3.0").unwrap();
    model.save(folder.join("b.xml")).unwrap();
    let Run { status, stdout, .. } = run(folder, &["diff", "a.xml", "b.xml"]);
    assert!(status == 1 && stdout.contains("model_info/labels: \"cat dog\" -> \"cat bird\""), "{stdout}");
    assert!(stdout.contains("Runtime_version"), "{stdout}");
    assert_eq!(run(folder, &["diff", "a.xml", "b.xml", "--ignore", "info"]).status, 0);
    let document: Value =
        serde_json::from_str(&run(folder, &["diff", "a.xml", "b.xml", "--format", "json"]).stdout).unwrap();
    assert_eq!(document["changes"][0]["kind"], "info");
    assert_eq!(document["changes"][0]["path"], "model_info/labels");
    let shown = run(folder, &["show", "--info", "a.xml"]).stdout;
    assert!(shown.contains("info : model_info/labels = \"cat dog\""), "{shown}");
    let dotted = run(folder, &["rewrite", "a.xml", "-e", "info model_info.model_type = ssd", "-o", "c.xml"]);
    assert!(dotted.status == 2 && dotted.stderr.contains("model_info/model_type = ssd"), "{}", dotted.stderr);
    let slash = run(
        folder,
        &[
            "rewrite",
            "a.xml",
            "-e",
            "info : \"a/b\"/c = 1",
            "-e",
            "info : runtime_options/KV_CACHE_PRECISION = nonsense",
            "-o",
            "c.xml",
        ],
    );
    assert_eq!(slash.status, 0, "{}", slash.stderr);
    let shown = run(folder, &["show", "--info", "c.xml"]).stdout;
    assert!(shown.contains("info : \"a/b\"/c = \"1\""), "{shown}");
    let refused = run(folder, &["check", "c.xml"]);
    assert!(refused.status == 1 && refused.stdout.contains("KV_CACHE_PRECISION"), "{}", refused.stdout);
}

/// Writes a `.safetensors` file with f32 tensors.
fn safetensors(file: &Path, tensors: &[(&str, &[usize], &[f32])]) {
    let (mut header, mut bytes) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in tensors {
        let start = bytes.len();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        header.insert(
            (*name).to_owned(),
            serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, bytes.len()]}),
        );
    }
    let header = serde_json::to_vec(&header).unwrap();
    fs::write(file, [(header.len() as u64).to_le_bytes().to_vec(), header, bytes].concat()).unwrap();
}

const LINEAR: &str = "x = Parameter : f32[?,2]\nself.model.q.weight = Const([[1, 2], [3, 4]]) : TYPE[2,2]\nw = Convert(self.model.q.weight) {destination_type=f32}
__module.model.q/aten::linear/MatMul = MatMul(x, w) {transpose_b=true}\nr = Result(__module.model.q/aten::linear/MatMul)";

fn adapted(folder: &Path, ty: &str, statement: &str) -> Run {
    let mut model = Model::from_text(&LINEAR.replace("TYPE", ty)).unwrap();
    drop(typelift::infer(&mut model));
    model.save(folder.join("model.xml")).unwrap();
    run(folder, &["rewrite", "model.xml", "-e", statement, "-o", "out.xml"])
}

#[test]
fn an_adapter_is_added_to_float_weights_and_put_beside_codes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let name = |half: &str| format!("base_model.model.model.q.lora_{half}.weight");
    let (a, b) = (name("A"), name("B"));
    safetensors(
        &folder.join("a.safetensors"),
        &[
            (&a, &[1, 2], &[1.0, 10.0]),
            (&b, &[2, 1], &[1.0, 2.0]),
            ("base_model.model.other.lora_A.weight", &[1, 2], &[1.0, 1.0]),
            ("base_model.model.other.lora_B.weight", &[2, 1], &[1.0, 1.0]),
        ],
    );
    fs::write(folder.join("adapter_config.json"), r#"{"lora_alpha": 2, "r": 1}"#).unwrap();
    for (ty, scale, weights) in [("f32", "", "[[3, 22], [7, 44]]"), ("f16", " 0.5", "[[2, 12], [5, 24]]")] {
        let done = adapted(folder, ty, &format!("lora a.safetensors{scale}"));
        assert_eq!(done.status, 0, "{}", done.stderr);
        assert!(done.stderr.contains("base_model.model.other"), "{}", done.stderr);
        let shown = run(folder, &["show", "out.xml"]).stdout;
        assert!(shown.contains(&format!("Const({weights})")), "{shown}");
    }
    let done = adapted(folder, "i8", "lora a.safetensors");
    assert_eq!(done.status, 0, "{}", done.stderr);
    let shown = run(folder, &["show", "out.xml"]).stdout;
    assert!(shown.contains("Const([[1, 2], [3, 4]])") && shown.matches("MatMul(").count() == 3, "{shown}");
    safetensors(&folder.join("d.safetensors"), &[(&a, &[1, 3], &[1.0, 1.0, 1.0]), (&b, &[2, 1], &[1.0, 2.0])]);
    let wrong = adapted(folder, "f32", "lora d.safetensors");
    assert!(wrong.status == 1 && wrong.stderr.contains("do not fit"), "{}", wrong.stderr);
    safetensors(&folder.join("e.safetensors"), &[(&a, &[1, 2], &[1.0, 1.0])]);
    let half = adapted(folder, "f32", "lora e.safetensors");
    assert!(half.status == 1 && half.stderr.contains("without"), "{}", half.stderr);
}

/// Removes the indentation of a listing.
fn flat(listing: &str) -> String {
    listing.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Saves a model of a listing as `model.xml`.
fn saved(folder: &Path, listing: &str) {
    let mut model = Model::from_text(&flat(listing)).unwrap();
    drop(typelift::infer(&mut model));
    model.save(folder.join("model.xml")).unwrap();
}

fn rewritten(folder: &Path, statements: &[&str]) -> Run {
    let statements = statements.iter().flat_map(|statement| ["-e", statement]);
    let arguments: Vec<_> = ["rewrite", "model.xml"].into_iter().chain(statements).chain(["-o", "out.xml"]).collect();
    run(folder, &arguments)
}

#[test]
fn names_in_files_of_arrays_repeat_what_a_pattern_matched() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    safetensors(
        &folder.join("a.safetensors"),
        &[("base.0.q.lora", &[2], &[10.0, 20.0]), ("base.1.q.lora", &[2], &[30.0, 40.0])],
    );
    saved(
        folder,
        "x = Parameter : f32[2]\nlayers.0.w = Const([1, 2]) : f32[2]\nlayers.1.w = Const([3, 4]) : f32[2]
        y = Add(x, layers.0.w)\nz = Multiply(y, layers.1.w)\nr = Result(z)",
    );
    let done = rewritten(folder, &["set \"layers.*.w\" = _ + safetensors(\"a.safetensors\", \"base.*.q.lora\")"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let shown = run(folder, &["show", "out.xml"]).stdout;
    assert!(shown.contains("Const([11, 22])") && shown.contains("Const([33, 44])"), "{shown}");
    // What is written out is read back: each layer gets the file with its number.
    for (layer, file) in [("layers.1.w", "w.0.npy"), ("layers.0.w", "w.1.npy")] {
        let written = run(folder, &["show", "model.xml", layer, "--npy", file]);
        assert_eq!((written.status, &*written.stdout), (0, ""), "{}", written.stderr);
    }
    let done = rewritten(folder, &["set \"layers.*.w\" = npy(\"w.*.npy\")"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let shown = run(folder, &["show", "out.xml"]).stdout;
    assert!(shown.contains("layers.0.w = Const([3, 4])") && shown.contains("layers.1.w = Const([1, 2])"), "{shown}");
}

#[test]
fn weights_are_written_for_other_programs_in_the_types_that_these_have() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    saved(
        folder,
        "x = Parameter : f32[1,2]\na.weight = Const([[1, 2], [3, 4]]) : f32[2,2]\nb.weight = Const([[0.5, 1], [1.5, 2]]) : bf16[2,2]
        b = Convert(b.weight) {destination_type=f32}\ny = MatMul(x, a.weight)\nz = MatMul(y, b)\nr = Result(z)",
    );
    let done = run(folder, &["convert", "model.xml", "--save-weights", "w.safetensors", "-o", "out.xml"]);
    assert!(done.status == 0 && done.stderr.contains("wrote w.safetensors"), "{}", done.stderr);
    let file = fs::read(folder.join("w.safetensors")).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    assert_eq!(length % 8, 0);
    let header: Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    let expected = serde_json::json!({
        "a.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b.weight": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [16, 24]},
    });
    assert_eq!(header, expected);
    let floats: Vec<u8> = [1_f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(file[8 + length..][..16], floats);
    let set = "set b.weight = safetensors(\"w.safetensors\", \"b.weight\") * 2";
    assert_eq!(rewritten(folder, &[set]).status, 0);
    assert!(run(folder, &["show", "out.xml"]).stdout.contains("Const([[1, 2], [3, 4]]) : bf16[2,2]"));

    let refused = run(folder, &["show", "model.xml", "b.weight", "--npy", "b.npy"]);
    assert!(refused.status == 2 && refused.stderr.contains("a .safetensors file can"), "{}", refused.stderr);
    let converted = run(folder, &["show", "model.xml", "b", "--npy", "b.npy"]);
    assert_eq!(converted.status, 0, "{}", converted.stderr);
    let file = fs::read(folder.join("b.npy")).unwrap();
    assert!(file[..128].ends_with(b"\n") && file.len() == 128 + 16);
    assert!(String::from_utf8_lossy(&file).contains("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2,), }"));
    let unknown = run(folder, &["show", "model.xml", "y", "--npy", "y.npy"]);
    assert!(unknown.status == 2 && unknown.stderr.contains("not a constant"), "{}", unknown.stderr);

    let convert = ["convert", "model.xml", "--quantize", "int4_sym", "--all-layers", "--group-size", "2"];
    let arguments = [&convert[..], &["--save-weights", "q.safetensors", "-o", "q.xml"]].concat();
    let refused = run(folder, &arguments);
    assert!(refused.status == 2 && refused.stderr.contains("only the .bin of a model can"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--dequantize") && !folder.join("q.xml").exists(), "{}", refused.stderr);
}

#[test]
fn an_input_for_beams_without_a_cache_is_said_to_be_useless() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    saved(folder, "x = Parameter : f32[?,2]\ny = Abs(x)\nr = Result(y)");
    let done = rewritten(folder, &["add input beam_idx : i32[?]"]);
    assert!(done.status == 0 && done.stderr.contains("no cache that `beam_idx` could reorder"), "{}", done.stderr);
    let done = rewritten(folder, &["add input attention_mask : i64[?,?]"]);
    assert!(done.stderr.contains("note: model.xml: no layer uses the added input `attention_mask`"), "{}", done.stderr);
    let done = rewritten(
        folder,
        &["add input beam_idx : i32[?]", "let b = beam_idx", "once Abs(x) => Gather-8(Abs(x), b, 0)"],
    );
    assert!(done.status == 0 && !done.stderr.contains("beam_idx"), "{}", done.stderr);
}

const ATTENTION: &str = "
    beam_idx = Parameter : i64[?] \"beam_idx\"
    q = Parameter : f32[?,2,?,8] \"q\"
    zero = Const(0) : f32[]
    batch = ShapeOf(beam_idx)
    rest = Const([2, 0, 8]) : i64[3]
    shape = Concat(batch, rest) {axis=0}
    none = Broadcast-3(zero, shape)
    past = ReadValue-6(none) {variable_id=past.0present.0, variable_type=f32, variable_shape=\"?,2,?,8\"}
    axis = Const(0) : i64[]
    reordered = Gather-8(past, beam_idx, axis)
    all = Concat(reordered, q) {axis=2}
    written = Assign-6(all) {variable_id=past.0present.0}
    y = ScaledDotProductAttention-13(q, all, all) {causal=false}
    r = Result(y)";

#[test]
fn caches_of_attention_keep_the_form_that_plugins_find() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    saved(folder, ATTENTION);
    let refused = rewritten(folder, &["state * : f16"]);
    assert!(refused.status == 1 && refused.stderr.contains("runtime_options/KV_CACHE_PRECISION"), "{}", refused.stderr);
    let renamed = rewritten(folder, &["rename past.0present.0 cache.0"]);
    assert_eq!(renamed.status, 0, "{}", renamed.stderr);
    let shown = run(folder, &["show", "out.xml"]).stdout;
    assert_eq!(shown.matches("variable_id=cache.0").count(), 2, "{shown}");
    // An index that every consumer accepts in the new type needs no Convert.
    let done = run(folder, &["convert", "model.xml", "--input-type", "beam_idx=i32", "-o", "out.xml"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let shown = run(folder, &["show", "out.xml"]).stdout;
    assert!(shown.contains("beam_idx = Parameter : i32[?]") && !shown.contains("Convert"), "{shown}");
}

/// The CPU runs a constant length of 0 only in the cache of an attention; programs read the axis of such a cache from it.
#[test]
fn the_first_value_of_a_cache_is_open_unless_it_goes_into_attention() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cache = "x = Parameter : f32[?,2,?,8] \"x\"\npast = Parameter : f32[?,2,?,8] \"past\"\nall = Concat(past, x) {axis=2}\nUSE
        present = Result(all)\nout = Result(y)";
    let stateful = ["add input beam_idx : i32[?]", "stateful past -> present reorder beam_idx"];
    for (use_, is_constant) in [
        ("y = ReduceSum(all, axis) {keep_dims=true}\naxis = Const(2) : i64[]", false),
        ("y = ScaledDotProductAttention-13(x, all, all) {causal=false}", true),
    ] {
        saved(folder, &cache.replace("USE", use_));
        let done = rewritten(folder, &stateful);
        assert_eq!(done.status, 0, "{}", done.stderr);
        let shown = run(folder, &["show", "out.xml"]).stdout;
        assert_eq!(shown.contains("Const([2, 0, 8])"), is_constant, "{shown}");
        assert_eq!(shown.contains("Subtract("), !is_constant, "{shown}");
    }
}

#[test]
fn metadata_is_in_the_overview_in_stats_and_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut model = Model::from_text("x = Parameter : f32[2]\ny = Abs(x)\nr = Result(y)").unwrap();
    for (path, value) in [
        ("optimum/optimum_intel_version", "2.2.0"),
        ("optimum/transformers_version", "5.5.4"),
        ("nncf/version", "3.4.0"),
        ("nncf/weight_compression/mode", "int4_sym"),
        ("nncf/weight_compression/group_size", "16"),
        ("runtime_options/KV_CACHE_PRECISION", "f16"),
    ] {
        model.set_rt_info(path, value).unwrap();
    }
    model.save(folder.join("a.xml")).unwrap();
    model.remove_rt_info("runtime_options");
    model.save(folder.join("b.xml")).unwrap();
    let made_by = "optimum-intel 2.2.0 (transformers 5.5.4), nncf 3.4.0 int4_sym, groups of 16";
    let overview = run(folder, &["a.xml"]).stdout;
    assert!(overview.contains(made_by) && overview.contains("KV_CACHE_PRECISION"), "{overview}");
    let stats = run(folder, &["stats", "a.xml"]).stdout;
    assert!(stats.contains(&format!("made by  {made_by}")), "{stats}");
    let all = run(folder, &["stats", "--all", "a.xml"]).stdout;
    assert!(all.contains("runtime_options/KV_CACHE_PRECISION  f16"), "{all}");
    let document: Value = serde_json::from_str(&run(folder, &["stats", "a.xml", "--format", "json"]).stdout).unwrap();
    assert_eq!((&document["made_by"], &document["metadata"]["nncf/version"]), (&made_by.into(), &"3.4.0".into()));
    // Values that came or went together are one line, unless all are asked for.
    for key in ["all_layers", "gptq", "lora_correction", "ratio"] {
        model.set_rt_info(&format!("nncf/weight_compression/{key}"), "False").unwrap();
    }
    model.save(folder.join("c.xml")).unwrap();
    let differs = run(folder, &["diff", "b.xml", "c.xml"]).stdout;
    assert!(differs.ends_with("~ metadata nncf/weight_compression: 4 values added\n"), "{differs}");
    assert_eq!(run(folder, &["diff", "--all", "b.xml", "c.xml"]).stdout.matches("none -> \"False\"").count(), 4);
    for arguments in [&["view", "a.xml", "-o", "a.html"][..], &["view", "a.xml", "b.xml", "-o", "a.html"]] {
        assert_eq!(run(folder, arguments).status, 0);
        let page = fs::read_to_string(folder.join("a.html")).unwrap();
        let data = page.split("application/json\">").nth(1).unwrap().split("</script>").next().unwrap();
        assert!(data.contains("\"metadata\":[[") && data.contains("runtime_options/KV_CACHE_PRECISION"), "{data}");
    }
}

/// Repairs that people know, as rows: the program, the broken model, the subject of the finding, and the command.
#[test]
fn known_repairs_repair() {
    let fitting = encoder("input_ids", "attention_mask", "last_hidden_state");
    let image = "data = Parameter : f32[1,3,8,8] \"data\"\nm = ReduceMean(data, axes) {keep_dims=false} : f32[1,3] \"logits\"\naxes = Const([2,3]) : i64[2]\nr = Result(m)";
    let half = fitting
        .replace("f = Convert(all) {destination_type=f32}", "f = Convert(all) {destination_type=f16}")
        .replace(": f32[?,?,1]", ": f16[?,?,1]");
    let without_mask = "input_ids = Parameter : i64[?,?] \"input_ids\"\nf = Convert(input_ids) {destination_type=f32}
        h = Unsqueeze(f, axis) : f32[?,?,1] \"last_hidden_state\"\naxis = Const(2) : i64[]\nr = Result(h)";
    let pooled = "input_ids = Parameter : i64[?,?] \"input_ids\"\nattention_mask = Parameter : i64[?,?] \"attention_mask\"\nall = Add(input_ids, attention_mask)
        f = Convert(all) {destination_type=f32} : f32[?,?] \"last_hidden_state\"\nr = Result(f)";
    let rows: [(&str, &str, &str, &[&str]); 8] = [
        ("genai:embedding", &half, "last_hidden_state", &["convert", "--output-type", "last_hidden_state=f32"]),
        ("genai:embedding", without_mask, "attention_mask", &["rewrite", "-e", "add input attention_mask : i64[?,?]"]),
        (
            "genai:embedding",
            pooled,
            "last_hidden_state",
            &["rewrite", "-e", "after last_hidden_state : Unsqueeze(_, [1])"],
        ),
        ("genai:embedding", &format!("{fitting}\nmore = Result(f)"), "more", &["rewrite", "-e", "remove output more"]),
        (
            "genai:embedding",
            &fitting.replace("input_ids", "tokens"),
            "input_ids",
            &["rewrite", "-e", "rename tokens input_ids"],
        ),
        (
            "optimum",
            &fitting.replace("last_hidden_state", "hidden"),
            "last_hidden_state",
            &["rewrite", "-e", "rename hidden last_hidden_state"],
        ),
        (
            "model-api",
            image,
            "model_info/model_type",
            &["rewrite", "-e", "info : model_info/model_type = \"Classification\""],
        ),
        (
            "genai:embedding",
            &fitting.replace("i64[?,?] \"attention_mask\"", "i32[?,?] \"attention_mask\"").replace(
                "all = Add(input_ids, attention_mask)",
                "m = Convert(attention_mask) {destination_type=i64}\nall = Add(input_ids, m)",
            ),
            "attention_mask",
            &["convert", "--input-type", "attention_mask=i64"],
        ),
    ];
    for (purpose, listing, subject, command) in rows {
        assert_repairs(purpose, listing, &[], subject, command);
    }
}

/// Checks that a model with this metadata has a finding about the subject, and none after the command.
fn assert_repairs(purpose: &str, listing: &str, info: &[(&str, &str)], subject: &str, command: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut model = Model::from_text(&flat(listing)).unwrap_or_else(|error| panic!("{listing}\n{error}"));
    drop(typelift::infer(&mut model));
    info.iter().for_each(|(path, value)| model.set_rt_info(path, value).unwrap());
    model.save(folder.join("openvino_model.xml")).unwrap();
    let is_it = |found: &[Value]| found.iter().any(|it| it["subject"]["name"] == subject);
    let found = checked(folder, "openvino_model.xml", purpose);
    assert!(is_it(&found), "{purpose}: nothing about {subject}: {found:?}\n{listing}");
    let arguments = [command, &["openvino_model.xml", "-o", "fixed.xml"]].concat();
    let done = run(folder, &arguments);
    assert_eq!(done.status, 0, "{command:?}: {}", done.stderr);
    let left = checked(folder, "fixed.xml", purpose);
    assert!(!is_it(&left), "{command:?}: {left:?}");
}

/// Repairs of metadata, layouts and ranks, as rows: the broken model and its metadata, the subject and the statement.
#[test]
fn known_repairs_for_model_api_repair() {
    let map = "data = Parameter : f32[1,3,8,8] \"data\"\nm = Abs(data) : f32[1,3,8,8] \"logits\"\nr = Result(m)";
    let channels_last =
        "data = Parameter : f32[1,4,9,3] \"data\"\nt = Transpose(data, order)\norder = Const([0,3,1,2]) : i64[4]
        m = ReduceMean(t, axes) {keep_dims=false} : f32[1,3] \"logits\"\naxes = Const([2,3]) : i64[2]\nr = Result(m)";
    let classifier = |out: &str, rest: &str| {
        format!(
            "data = Parameter : f32[1,3,8,8] \"data\"\nm = ReduceMean(data, axes) {{keep_dims=false}} : {out}\naxes = Const([2,3]) : i64[2]\n{rest}"
        )
    };
    let fitting = classifier("f32[1,3] \"logits\"", "r = Result(m)");
    let of_rank_3 = classifier(
        "f32[1,3]",
        "first = Const(0) : i64[]\nu = Unsqueeze(m, first) : f32[1,1,3] \"logits\"\nr = Result(u)",
    );
    let classification = ("model_type", "Classification");
    let rows: [(&str, (&str, &str), &str, &str); 7] = [
        (
            &fitting,
            ("confidence_threshold", "half"),
            "model_info/confidence_threshold",
            "info : model_info/confidence_threshold = 0.5",
        ),
        (&fitting, ("labels", "cat dog"), "model_info/labels", "info : model_info/labels = \"cat dog bird\""),
        (&fitting, ("labels", "cat,dog,bird"), "model_info/labels", "info : model_info/labels = \"cat dog bird\""),
        (
            &fitting,
            ("mean_values", "123.6, 116.2, 103.5"),
            "model_info/mean_values",
            "info : model_info/mean_values = \"123.6 116.2 103.5\"",
        ),
        (&of_rank_3, classification, "logits", "after logits : Squeeze(_, [0])"),
        (map, classification, "logits", "after logits : ReduceMean(_, [2,3]) {keep_dims=false}"),
        (channels_last, classification, "data", "layout data = [N,H,W,C]"),
    ];
    for (listing, (key, value), subject, statement) in rows {
        let key = format!("model_info/{key}");
        let info = [("model_info/model_type", "Classification"), (&key, value)];
        assert_repairs("model-api", listing, &info, subject, &["rewrite", "-e", statement]);
    }
}
