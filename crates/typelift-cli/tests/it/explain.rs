//! `explain` prints a page for every code, with true examples. The wrong example is in the test case of the code. With
//! the right one in its place, the command of the case reports less.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::fixtures::Directive;
use typelift::findings::{Code, Severity};
use typelift::promote::ElementType;
use typelift::{Checking, Device, Weights, xml};

fn run(arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_typelift")).args(arguments).current_dir(folder).output().unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

/// A block of a page: a part of the case's file or, if the file cannot be quoted, its description.
struct Example<'p> {
    kind: &'p str,
    text: &'p str,
}

impl<'p> Example<'p> {
    /// Returns the block after a word of a page.
    fn find(page: &'p str, word: &str) -> Option<Self> {
        let (kind, rest) = page.split_once(&format!("\n{word}:\n\n```"))?.1.split_once('\n')?;
        Some(Self { kind, text: rest.split_once("\n```")?.0 })
    }

    /// Writes the model of the example: the case with this block in place of the wrong one.
    fn write(&self, case: &Path, wrong: &Self, model: &Path) {
        let source = std::fs::read_to_string(case).unwrap();
        let weights = std::fs::read(case.with_extension("bin")).ok();
        let (source, weights) = match self.kind {
            "xml" => {
                assert!(source.contains(wrong.text), "{}: the wrong example is not in it", case.display());
                (source.replace(wrong.text, self.text), weights)
            }
            "bin" => (source, self.weights()),
            "bodies" => (self.bodies(), None),
            kind => panic!("{kind} is not a kind of example"),
        };
        std::fs::write(model, source).unwrap();
        match weights {
            Some(bytes) => std::fs::write(model.with_extension("bin"), bytes).unwrap(),
            None => drop(std::fs::remove_file(model.with_extension("bin"))),
        }
    }

    /// Returns `no file`, `12 bytes`, or the text of the file.
    fn weights(&self) -> Option<Vec<u8>> {
        match self.text.strip_suffix(" bytes").map(str::parse) {
            _ if self.text == "no file" => None,
            Some(Ok(length)) => Some(vec![0; length]),
            _ => Some(format!("{}\n", self.text).into_bytes()),
        }
    }

    /// Returns a model for `70 TensorIterators, each in the body of the one before`.
    fn bodies(&self) -> String {
        let depth = self.text.split(' ').next().unwrap().parse().unwrap();
        let around = |body: String, _| {
            format!(
                "<layers><layer id=\"0\" name=\"ti\" type=\"TensorIterator\" version=\"opset1\"><body>{body}</body></layer>\
                 </layers><edges/>"
            )
        };
        let graph = (0..depth).fold("<layers/><edges/>".to_owned(), around);
        format!("<net name=\"case\" version=\"11\">{graph}</net>")
    }
}

/// Returns the folder with a case for each code.
fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/diagnostics")
}

/// Returns the findings of a code that the command of a case prints for a model.
fn findings(directive: &Directive, model: &str, code: &str, folder: &Path) -> Vec<String> {
    // Files that an option names are next to the cases.
    let absolute = |option: &String| match option.starts_with("../") {
        true => cases().join(option).to_str().unwrap().to_owned(),
        false => option.clone(),
    };
    let options: Vec<String> = directive.options.iter().map(absolute).collect();
    let mut arguments: Vec<_> = [&directive.verb].into_iter().chain(&options).map(String::as_str).collect();
    match directive.verb.as_str() {
        "check" => arguments.extend(["--all"].iter().filter(|_| !directive.options.iter().any(|it| it == "--all"))),
        _ => arguments.extend(["-o", "out.xml"]),
    }
    arguments.push(model);
    let mark = format!("[{code}]: ");
    run(&arguments, folder).lines().filter(|line| line.contains(&mark)).map(str::to_owned).collect()
}

#[test]
fn every_page_has_examples_that_are_wrong_and_right() {
    let cases = cases();
    let folder = tempfile::tempdir().unwrap();
    // A line for each code, below the headings of three groups.
    let lines = run(&["explain"], folder.path());
    assert_eq!(lines.lines().filter(|line| line.contains("  ")).count(), Code::ALL.len(), "{lines}");
    for code in Code::ALL {
        let page = run(&["explain", code.name()], folder.path());
        assert!(page.starts_with(&format!("## {code}\n")) && !page.contains("]("), "{page}");
        let wrong = Example::find(&page, "Wrong").unwrap_or_else(|| panic!("{code} has no wrong example"));
        let right = Example::find(&page, "Right").unwrap_or_else(|| panic!("{code} has no right example"));
        let case = cases.join(code.name()).with_extension("xml");
        let directive = Directive::parse(&std::fs::read_to_string(&case).unwrap()).unwrap();
        let [before, after] = [&wrong, &right].map(|example| {
            example.write(&case, &wrong, &folder.path().join("model.xml"));
            findings(&directive, "model.xml", code.name(), folder.path())
        });
        // A note of every model has another text. A finding about a run needs another run.
        let is_other = code.severity() == Severity::Note && after != before || code.name().starts_with("ran-");
        assert!(
            after.len() < before.len() || is_other,
            "{code}: {before:?} of the wrong example, {after:?} of the right one"
        );
    }
}

/// Returns the templates of the messages of all fixtures, each after its code, in `messages.txt`.
fn messages() -> String {
    let mut found = BTreeSet::new();
    let folders = std::fs::read_dir(cases().join("..")).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    for file in files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "xml")) {
        let bytes = std::fs::read(&file).unwrap();
        let weights = Weights::open(&file.with_extension("bin")).unwrap();
        let list = match xml::decode_utf8(bytes) {
            Ok(text) => everything().run(&Arc::new(text), &weights).findings,
            Err(refusal) => vec![*refusal],
        };
        found.extend(list.iter().map(|found| format!("{}: {}\n", found.code, found.message.template())));
    }
    found.retain(|line| line.replace("{}", "").split(": ").nth(1).is_some_and(|words| words.trim().len() > 8));
    found.into_iter().collect()
}

/// A check with all requirements.
fn everything() -> Checking {
    Checking {
        precisions: vec![ElementType::F16, ElementType::Bf16, ElementType::I32],
        devices: vec![Device::Cpu, Device::Gpu, Device::Npu],
        ..Checking::default()
    }
}

/// `messages.txt` has the messages of the fixtures; `UPDATE_DOCS=1` writes it.
#[test]
fn a_message_leads_to_its_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("messages.txt");
    let now = messages();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == now, "messages.txt is out of date: run with UPDATE_DOCS=1");
    for (text, code) in [
        ("`Add` needs inputs of one type, but has f32 and i64", "type-mismatch"),
        ("error: Add needs inputs of one type, but has f32 and i64", "type-mismatch"),
        ("error[stale-port]: output 0 of `x` declares f32", "stale-port"),
        ("the .bin is a Git LFS pointer of 68 bytes, not the weights", "wrong-weights"),
    ] {
        let answer = run(&["explain", text], Path::new("."));
        assert!(answer.contains(&format!("{code}`?")), "{answer}");
    }
}
