//! What programs that load a model require: names, types, state, metadata and files; and adapters.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use typelift::Model;

use crate::cli::{Run, run};

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
        let command = fix.replacen("typelift", env!("CARGO_BIN_EXE_typelift"), 1);
        let done = Command::new("sh").args(["-c", &command]).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{fix}: {}", String::from_utf8_lossy(&done.stderr));
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
    assert!(dotted.status == 2 && dotted.stderr.contains("info model_info/model_type"), "{}", dotted.stderr);
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
