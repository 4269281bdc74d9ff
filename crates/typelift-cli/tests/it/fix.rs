//! `check --fix`: edits that were tried are made, and nothing else is.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use serde_json::Value;

use crate::cli::{folder, run};

/// A model, with a slip in it.
fn slipped(from: &str, to: &str) -> tempfile::TempDir {
    let folder = folder();
    let text = fs::read_to_string(folder.path().join("model.xml")).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(folder.path().join("slip.xml"), text.replacen(from, to, 1)).unwrap();
    fs::copy(folder.path().join("model.bin"), folder.path().join("slip.bin")).unwrap();
    folder
}

const SLIPS: &[(&str, &str)] = &[
    ("type=\"Const\"", "type=\"Cnst\""),
    ("element_type=\"f32\"", "element_type=\"fp32\""),
    ("size=\"4\"", "size=\"0x4\""),
];

#[test]
fn a_slip_is_mended_into_what_stood_there() {
    for (from, to) in SLIPS {
        let folder = slipped(from, to);
        let path = folder.path();
        let fixed = run(path, &["check", "--fix", "slip.xml", "-o", "fixed.xml"]);
        assert_eq!(fixed.status, 0, "{to}: {}{}", fixed.stdout, fixed.stderr);
        let [original, fixed] = ["model.xml", "fixed.xml"].map(|name| fs::read_to_string(path.join(name)).unwrap());
        assert_eq!(original, fixed, "{to}");
        assert!(path.join("fixed.bin").exists());
    }
}

#[test]
fn a_diff_writes_nothing_and_shows_the_edits_that_json_has() {
    for (from, to) in SLIPS {
        let folder = slipped(from, to);
        let path = folder.path();
        let before = fs::read(path.join("slip.xml")).unwrap();
        let shown = run(path, &["check", "--fix", "--diff", "slip.xml"]).stdout;
        assert!(shown.lines().any(|line| line.starts_with('-') && line.contains(to)), "{shown}");
        assert!(shown.lines().any(|line| line.starts_with('+') && line.contains(from)), "{shown}");
        assert_eq!(fs::read(path.join("slip.xml")).unwrap(), before);
        let json: Value = serde_json::from_str(&run(path, &["check", "--format", "json", "slip.xml"]).stdout).unwrap();
        let found = json["diagnostics"].as_array().unwrap();
        let edits: Vec<_> = found.iter().flat_map(|it| it["edits"].as_array().unwrap()).collect();
        assert!(edits.iter().any(|edit| from.contains(edit["text"].as_str().unwrap())), "{edits:?}");
    }
}

#[test]
fn what_is_not_certain_stays_as_it_is() {
    let folder = folder();
    let path = folder.path();
    let before = fs::read(path.join("model.xml")).unwrap();
    let run = run(path, &["check", "--fix", "--in-place", "model.xml"]);
    assert!(run.stderr.contains("no edit is certain"), "{}", run.stderr);
    assert_eq!(fs::read(path.join("model.xml")).unwrap(), before);
}

#[test]
fn a_format_that_cannot_be_read_keeps_its_version() {
    let folder = slipped("version=\"11\"", "version=\"7\"");
    let path = folder.path();
    let run = run(path, &["check", "--fix", "slip.xml", "-o", "fixed.xml"]);
    assert_eq!(run.status, 1, "{}", run.stdout);
    let [slip, fixed] = ["slip.xml", "fixed.xml"].map(|name| fs::read_to_string(path.join(name)).unwrap());
    assert_eq!(slip, fixed);
}

#[test]
fn a_refused_model_is_told_how_to_mend_it() {
    let folder = slipped("size=\"4\"", "size=\"0x4\"");
    let run = run(folder.path(), &["convert", "slip.xml", "-o", "out.xml"]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("`typelift check --fix slip.xml -o fixed.xml` makes an edit that was tried"),
        "{}",
        run.stderr
    );
}
