//! Every command answers on any file: no panic, no endless run, and no exit status other than 0, 1 and 2.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::cli::{command, run, start};
use crate::commands::lines;

/// Far more time than any of these needs, even without optimization on a busy machine.
const ENDLESS: Duration = Duration::from_secs(60);

/// Returns the exit status of a run that ends in time.
fn answer(folder: &Path, arguments: &[&str]) -> Option<i32> {
    let mut program = command(folder, arguments);
    let mut child = start(program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    let start = Instant::now();
    while start.elapsed() < ENDLESS {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn every_verb_answers_for_files_that_once_had_no_answer() {
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hostile/answers");
    let files: Vec<_> = fs::read_dir(hostile).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    let lines = lines();
    for file in files {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(&file, folder.path().join("model.xml")).unwrap();
        for verb in &lines {
            let words: Vec<_> = verb.iter().map(String::as_str).collect();
            let status = answer(folder.path(), &words);
            assert!(matches!(status, Some(0..=2)), "{}: {verb:?} ends with {status:?}", file.display());
        }
        let found = run(folder.path(), &["check", "model.xml"]);
        assert!(found.stdout.contains("error["), "{}: {}", file.display(), found.stdout);
    }
}

#[test]
fn endless_rules_and_lines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(answer(folder.path(), &["rules", "/dev/zero"]), Some(2));
    let zeros = fs::File::open("/dev/zero").unwrap();
    let said = command(folder.path(), &["promote", "-"]).stdin(zeros).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("line 1 has over 64 KB"), "{said:?}");
}

#[test]
fn a_pattern_of_thousands_of_layers_has_an_answer() {
    let pattern = (0..2048).map(|leaf| format!("y{leaf}")).collect::<Vec<_>>();
    let halve = |terms: Vec<String>| terms.chunks(2).map(|pair| format!("Add&({}, {})", pair[0], pair[1])).collect();
    let pattern: Vec<String> = (0..11).fold(pattern, |terms, _| halve(terms));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules"), format!("{} => y0", pattern[0])).unwrap();
    let text = format!(r#"<net name="n" version="11"><layers>{}</layers><edges/></net>"#, layer(0, "ReLU", ""));
    fs::write(folder.path().join("model.xml"), text).unwrap();
    let status = answer(folder.path(), &["rewrite", "--rules", "rules", "model.xml", "-o", "out.xml"]);
    assert!(matches!(status, Some(1 | 2)), "{status:?}");
}

#[test]
fn metadata_in_metadata_is_written_in_proportion_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let depth = 20_000;
    let text = format!(
        r#"<net name="n" version="11"><layers><layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="2"/>
        <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer></layers><edges/><rt_info>{}{}</rt_info></net>"#,
        "<a>".repeat(depth),
        "</a>".repeat(depth)
    );
    fs::write(folder.path().join("model.xml"), &text).unwrap();
    assert_eq!(answer(folder.path(), &["convert", "--canonical", "model.xml", "-o", "out.xml"]), Some(0));
    let written = fs::metadata(folder.path().join("out.xml")).unwrap().len();
    assert!(written < 20 * text.len() as u64, "{written} bytes");
}

/// A function that returns the layer of some id, and an edge to it or nothing.
type LayerAndEdge = fn(usize) -> (String, String);

/// A report names layers and shapes, and their positions; no part of it grows faster than the file.
#[test]
fn reports_and_pages_are_in_proportion_to_the_file() {
    const REPORTS: [&[&str]; 3] = [
        &["check", "--all", "--target", "2024.6", "--format", "sarif", "model.xml"],
        &["check", "--all", "--target", "2024.6", "--format", "json", "model.xml"],
        &["view", "model.xml", "-o", "-"],
    ];
    let shapes: [(&str, LayerAndEdge); 4] = [
        ("errors", |id| (layer(id, "Add", ""), String::new())),
        ("a chain", |id| (layer(id, "ReLU", ""), edge(id.saturating_sub(1), id))),
        ("a hub", |id| (layer(id, "ReLU", ""), edge(0, id))),
        ("strangers", |id| (layer(id, "Stranger", r#"<data a="b"/>"#), String::new())),
    ];
    let folder = tempfile::tempdir().unwrap();
    let size = |shape: LayerAndEdge, count: usize, report| {
        let (layers, edges): (Vec<String>, Vec<String>) = (0..count).map(shape).unzip();
        let text = format!(
            r#"<net name="n" version="11"><layers>{}</layers><edges>{}</edges></net>"#,
            layers.concat(),
            edges.concat()
        );
        fs::write(folder.path().join("model.xml"), &text).unwrap();
        let said = run(folder.path(), report);
        assert!(said.status < 2, "{}", said.stderr);
        said.stdout.len() as f64 / text.len() as f64
    };
    for (name, shape) in shapes {
        for report in REPORTS {
            let [small, large] = [500, 2000].map(|count| size(shape, count, report));
            assert!(large < 1.1 * small, "{name}, {report:?}: {small} and {large} bytes for a byte");
            assert!(large < 20.0, "{name}, {report:?}: {large} bytes for a byte");
        }
    }
}

fn layer(id: usize, ty: &str, data: &str) -> String {
    format!(
        r#"<layer id="{id}" name="n{id}" type="{ty}" version="opset1">{data}<input><port id="0"/></input>
        <output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>"#
    )
}

fn edge(from: usize, to: usize) -> String {
    format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{to}" to-port="0"/>"#)
}
