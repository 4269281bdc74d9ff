//! The lints of `check`, each on the smallest model that has it, and no lints on models that OpenVINO wrote.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use std::collections::BTreeMap;
use std::path::Path;

use crate::small::{X, layer, result, source};
use typelift::findings::{Code, Diagnostic, FixAction, Severity};
use typelift::{Model, Weights, check, infer};

fn model(layers: &str, edges: &[&str]) -> Model {
    Model::from_xml(source(layers, edges)).unwrap()
}

fn constant(id: u64, offset: u64, size: u64) -> String {
    format!(
        "<layer id=\"{id}\" name=\"k{id}\" type=\"Const\" version=\"opset1\"><data element_type=\"f32\" shape=\"{}\" offset=\"{offset}\" size=\"{size}\"/>
<output><port id=\"0\" precision=\"FP32\"><dim>{}</dim></port></output></layer>
<layer id=\"{}\" name=\"out{id}\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/></input></layer>\n",
        size / 4,
        size / 4,
        id + 100
    )
}

/// Returns a model of constants at these offsets and of these sizes, each with a Result, and weights of `length` bytes.
fn constants(places: &[(u64, u64)], length: usize) -> Model {
    let ids = 0..places.len() as u64;
    let layers: String = ids.clone().zip(places).map(|(id, &(offset, size))| constant(id, offset, size)).collect();
    let edges: Vec<_> = ids.map(|id| format!("{id}:0 {}:0", id + 100)).collect();
    let mut model = model(&layers, &edges.iter().map(String::as_str).collect::<Vec<_>>());
    model.set_weights(Weights::from_bytes(vec![0; length]));
    model
}

/// Returns the findings of `check` as text. If `notes` is false, the note on the oldest release is left out.
fn said(model: &mut Model, notes: bool) -> String {
    let strangers = [Code::WrongOpset, Code::MisnamedOperation];
    let (mut found, errors): (Vec<_>, Vec<_>) =
        infer(model).into_iter().filter(Diagnostic::is_error).partition(|found| strangers.contains(&found.code));
    assert!(errors.is_empty(), "{errors:#?}");
    let mut text = String::new();
    found.extend(check(model));
    for diagnostic in found.iter().filter(|diagnostic| notes || diagnostic.severity > Severity::Note) {
        let layer = diagnostic.layer.as_ref().map(|layer| format!(" ({} {} {})", layer.id, layer.name, layer.path()));
        text += &format!("{diagnostic}{}\n", layer.unwrap_or_default());
        for label in &diagnostic.labels {
            let (line, column) = label.span.line_column(model.source());
            text += &format!("  {line}:{column} {}: {}\n", label.span.text(model.source()), label.message);
        }
        let related = diagnostic.related.iter().map(ToString::to_string);
        let help = diagnostic
            .fixes
            .iter()
            .filter(|fix| matches!(fix.action, FixAction::Advise(_) | FixAction::Add { .. }))
            .map(ToString::to_string);
        for line in related.chain(diagnostic.notes.iter().map(ToString::to_string)).chain(help) {
            text += &format!("  = {line}\n");
        }
    }
    text
}

#[test]
fn a_sound_model_is_passed_over_in_silence() {
    let layers = format!("{X}{}{}", layer(1, "y", "ReLU", "opset1", ""), result(2));
    assert_eq!(said(&mut model(&layers, &["0:0 1:0", "1:1 2:0"]), false), "");
    assert_eq!(said(&mut constants(&[(0, 8), (8, 4), (0, 8)], 12), false), "");
    // An odd offset after another constant, and padding to eight bytes, are allowed.
    assert_eq!(said(&mut constants(&[(0, 4), (4, 8), (16, 8)], 24), false), "");
}

#[test]
fn names_that_repeat() {
    let named = layer(1, "y", "ReLU", "opset1", "").replace("id=\"1\" precision", "id=\"1\" names=\"t,u,t\" precision");
    let again = named.replace("layer id=\"1\"", "layer id=\"2\"");
    let layers = format!("{X}{named}{again}{}", result(3));
    insta::assert_snapshot!(said(&mut model(&layers, &["0:0 1:0", "1:1 2:0", "2:1 3:0"]), false));
}

#[test]
fn layers_that_lead_to_no_result() {
    let relu = |id, name| layer(id, name, "ReLU", "opset1", "");
    let layers =
        format!("{X}{}{}{}{}{}", relu(1, "kept"), relu(2, "first"), relu(3, "second"), relu(4, "alone"), result(5));
    insta::assert_snapshot!(said(&mut model(&layers, &["0:0 1:0", "1:1 5:0", "1:1 2:0", "2:1 3:0", "0:0 4:0"]), false));
}

#[test]
fn operations_that_are_not_known() {
    let chain = [
        ("Rellu", "opset1"),
        ("Gelu", "opset1"),
        ("ReLU", "opset99"),
        ("RegexSplit", "extension"),
        ("RegexSplit", "extension"),
        ("Xor", "opset2"),
    ];
    let layers: String =
        (1..).zip(chain).map(|(id, (ty, version))| layer(id, &format!("y{id}"), ty, version, "")).collect();
    let edges = ["0:0 1:0", "1:1 2:0", "2:1 3:0", "3:1 4:0", "4:1 5:0", "5:1 6:0", "6:1 7:0"];
    insta::assert_snapshot!(said(&mut model(&format!("{X}{layers}{}", result(7)), &edges), false));
}

#[test]
fn attributes_that_the_operation_does_not_have() {
    let data = "<data min=\"0\" maximum=\"1\" PrimitivesPriority=\"cpu:ref\"/>";
    let layers = format!("{X}{}{}", layer(1, "y", "Clamp", "opset1", data), result(2));
    insta::assert_snapshot!(said(&mut model(&layers, &["0:0 1:0", "1:1 2:0"]), false));
}

#[test]
fn ports_that_are_not_as_declared() {
    let relu = |id, name| layer(id, name, "ReLU", "opset1", "");
    // Only the input of `b` is reported, and `c` with its consequences.
    let wrong_input = relu(2, "b").replacen("FP32\"><dim>2", "I64\"><dim>3", 1);
    let convert = layer(3, "c", "Convert", "opset1", "<data destination_type=\"f16\"/>");
    let layers = format!("{X}{}{wrong_input}{convert}{}{}{}", relu(1, "a"), relu(4, "d"), result(5), result(6));
    let edges = ["0:0 1:0", "1:1 2:0", "0:0 3:0", "3:1 4:0", "2:1 5:0", "4:1 6:0"];
    insta::assert_snapshot!(said(&mut model(&layers, &edges), false));
}

#[test]
fn what_inference_could_not_find_is_not_called_stale() {
    // The target shape of a Reshape is in the missing weights.
    let reshape = "<layer id=\"2\" name=\"r\" type=\"Reshape\" version=\"opset1\"><data special_zero=\"false\"/>
<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\" precision=\"FP32\"><dim>1</dim><dim>2</dim></port></output></layer>
";
    let shape = constant(1, 0, 16)
        .replace("\"f32\" shape=\"4\"", "\"i64\" shape=\"2\"")
        .replace("FP32\"><dim>4", "I64\"><dim>2");
    let layers = format!("{X}{shape}{reshape}{}", result(3).replace("<dim>2</dim>", "<dim>1</dim><dim>2</dim>"));
    let mut model = model(&layers, &["0:0 2:0", "1:0 2:1", "1:0 101:0", "2:2 3:0"]);
    let codes = |model: &Model| check(model).iter().map(|d| d.code).collect::<Vec<_>>();
    let _ = infer(&mut model);
    assert_eq!(codes(&model), [Code::RequiredRelease, Code::MissingWeights]);
    model.set_weights(Weights::from_bytes([1, 2].map(i64::to_le_bytes).concat()));
    let _ = infer(&mut model);
    assert_eq!(codes(&model), [Code::RequiredRelease]);
}

#[test]
fn constants_and_weights_that_do_not_go_together() {
    let mut text = said(&mut constants(&[(0, 8), (4, 8), (0, 4), (32, 8)], 64), false);
    text += &said(&mut constants(&[(9, 4)], 13), false);
    let mut none = constants(&[(0, 8), (8, 8)], 0);
    none.set_weights(Weights::none());
    text += &said(&mut none, false);
    insta::assert_snapshot!(text);
}

#[test]
fn the_oldest_release_and_what_demands_it() {
    let of = |version| {
        let layers =
            format!("{X}{}{}{}", layer(1, "y", "ReLU", version, ""), layer(2, "z", "ReLU", "opset9", ""), result(3));
        said(&mut model(&layers, &["0:0 1:0", "1:1 2:0", "2:1 3:0"]), true)
    };
    let mut text = of("opset1") + &of("opset16");
    text += &said(&mut model(X, &[]), true);
    let twins = [1, 2].map(|id| layer(id, "y", "ReLU", "opset1", "")).concat();
    text += &said(&mut model(&format!("{X}{twins}{}", result(3)), &["0:0 1:0", "1:1 2:0", "2:1 3:0"]), true);
    insta::assert_snapshot!(text);
}

#[test]
fn the_oldest_release_reads_all_of_a_model() {
    let models = crate::models::models(|_| true);
    let mut noted = 0;
    for path in &models {
        let mut model = Model::open(path).unwrap();
        let _ = infer(&mut model);
        let note = check(&model).into_iter().find(|lint| lint.code == Code::RequiredRelease);
        let Some(message) = note.map(|note| note.message) else { continue };
        let release = message.arguments().find_map(|it| it.text.parse().ok()).unwrap();
        assert_eq!(crate::common::newer_than(&model, release), [], "{}: {message}", path.display());
        noted += 1;
    }
    assert!(noted * 10 > models.len() * 9, "{noted} of {}", models.len());
}

#[test]
fn bodies_are_looked_into() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/onnx_loop.xml");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("<then_body>").unwrap();
    let broken = format!("{}{}", &text[..at], text[at..].replacen("type=\"Result\"", "type=\"Rezult\"", 1));
    let mut model = Model::from_xml(broken).unwrap();
    model.set_weights(Weights::beside(&path).unwrap());
    let found = infer(&mut model);
    let stranger = found.iter().find(|diagnostic| diagnostic.code == Code::MisnamedOperation).unwrap();
    assert!(stranger.layer.as_ref().unwrap().path().ends_with("/then_body"), "{stranger:#?}");
}

#[test]
fn nothing_is_odd_about_what_openvino_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    paths.sort();
    assert!(paths.len() > 50);
    let mut odd = String::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut model = Model::open(&path).unwrap();
        let _ = infer(&mut model);
        let mut counts = BTreeMap::<Code, usize>::new();
        for diagnostic in check(&model).iter().filter(|diagnostic| diagnostic.severity > Severity::Note) {
            *counts.entry(diagnostic.code).or_default() += 1;
        }
        // The weights of the lowered references are those of the graphs from which they were made.
        if name.ends_with(".ref.xml") {
            counts.remove(&Code::MissingWeights);
        }
        for (code, count) in counts {
            odd += &format!("{name}: {code} x{count}\n");
        }
    }
    // The lints here are intended: repeated names that the test or OpenVINO's own pass created, and operations of an
    // extension.
    insta::assert_snapshot!(odd);
}
