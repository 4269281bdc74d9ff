//! The findings of a model are the same in the program, on the page and in the library.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use typelift::findings::{Diagnostics, Document, Voice};
use typelift::{Checking, NeedForWeights, Weights, xml};

use crate::view::data;

/// Returns the fixtures and models.
fn models() -> Vec<PathBuf> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").canonicalize().unwrap();
    let mut folders: Vec<_> =
        std::fs::read_dir(testdata.join("fixtures")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.push(testdata.join("models"));
    let folders = folders.into_iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "xml")).collect();
    files.sort();
    files
}

/// Runs the program and returns what it prints.
fn run(arguments: &[&str], file: &Path) -> Vec<u8> {
    Command::new(env!("CARGO_BIN_EXE_typelift")).args(arguments).arg(file).output().unwrap().stdout
}

/// Returns the findings of the library as a document; `None` if the bytes are no text.
fn library(file: &Path) -> Option<Value> {
    let text = Arc::new(xml::decode_utf8(std::fs::read(file).unwrap()).ok()?);
    let weights = Weights::open(&file.with_extension("bin")).unwrap();
    let checking = Checking { weights: NeedForWeights::of(file), ..Checking::default() };
    let checked = checking.run(&text, &weights);
    let found = Diagnostics { list: checked.findings, ..Diagnostics::new(file, text) };
    Some(serde_json::to_value(Document::with(&found, Voice::Shell(Some(file)))).unwrap())
}

/// Returns the code, severity and layer of a finding, and the words of its fixes up to where the page cuts them. The page has each
/// with its command.
fn brief(finding: &Value, path: Value) -> Value {
    let help = finding["help"].as_array().unwrap().iter();
    let help: Vec<_> =
        help.map(|help| help.as_str().or(help[0].as_str()).unwrap().chars().take(30).collect::<String>()).collect();
    json!([finding["code"], finding["severity"], path, help])
}

/// Returns the path of the layer of a finding in a document.
fn path(finding: &Value) -> Value {
    let layer = &finding["layer"];
    match (layer["path"].as_str(), layer["name"].as_str()) {
        (Some(""), Some(name)) => name.into(),
        (Some(path), Some(name)) => format!("{path}/{name}").into(),
        _ => Value::Null,
    }
}

#[test]
fn program_page_and_library_report_the_same() {
    let mut faults = Vec::new();
    let mut pages = 0;
    for file in models() {
        let printed: Value = serde_json::from_slice(&run(&["check", "--format", "json"], &file)).unwrap();
        let printed = &printed["diagnostics"];
        if library(&file).is_some_and(|found| found["diagnostics"] != *printed) {
            faults.push(format!("{}: the library", file.display()));
        }
        let page = String::from_utf8(run(&["view", "-o", "-"], &file)).unwrap();
        if page.is_empty() {
            continue;
        }
        pages += 1;
        let shown = data(&page);
        let shown: Vec<_> =
            shown["findings"].as_array().unwrap().iter().map(|it| brief(it, it["path"].clone())).collect();
        let printed: Vec<_> =
            printed.as_array().unwrap().iter().map(|it| brief(it, path(it))).take(shown.len()).collect();
        if shown != printed {
            faults.push(format!("{}: the page\n  {shown:?}\n  {printed:?}", file.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(pages > 500, "{pages}");
}
