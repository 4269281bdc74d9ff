//! `explain` prints a page for every code, and its examples are what they say: the wrong one stands in the case of the code,
//! and the right one in its place leaves fewer findings of that code.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Codes about whole files, or about nothing wrong, whose pages have no pair of examples.
const WITHOUT_PAIR: &[&str] = &[
    "nesting-too-deep",
    "wrong-weights",
    "missing-weights",
    "lossy-conversion",
    "required-release",
    // They depend on the release that is asked for.
    "newer-than-target",
    "version-10-loss",
];

fn run(arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_typelift")).args(arguments).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// How many findings of a code a file has.
fn count(file: &str, code: &str, folder: &Path) -> usize {
    let document: serde_json::Value = serde_json::from_str(&run(&["check", "--format", "json", file], folder)).unwrap();
    document["diagnostics"].as_array().unwrap().iter().filter(|found| found["code"] == code).count()
}

/// The block of XML behind a word of a page.
fn block<'p>(page: &'p str, word: &str) -> Option<&'p str> {
    page.split_once(&format!("\n{word}:\n\n```xml\n"))?.1.split_once("\n```").map(|(block, _)| block)
}

#[test]
fn every_page_has_examples_that_are_wrong_and_right() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/diagnostics");
    let folder = tempfile::tempdir().unwrap();
    let list = run(&["explain"], folder.path());
    assert!(list.lines().count() > 50, "{list}");
    for code in list.lines().map(|line| line.split(' ').next().unwrap()) {
        let page = run(&["explain", code], folder.path());
        assert!(page.starts_with(&format!("## {code}\n")), "{page}");
        let (Some(wrong), Some(right)) = (block(&page, "Wrong"), block(&page, "Right")) else {
            assert!(WITHOUT_PAIR.contains(&code), "{code} has no pair of examples");
            continue;
        };
        let source = std::fs::read_to_string(cases.join(code).with_extension("xml")).unwrap();
        assert!(source.contains(wrong), "{code}: the wrong example is not in its case");
        let (before, after) = (folder.path().join("before.xml"), folder.path().join("after.xml"));
        std::fs::write(&before, &source).unwrap();
        std::fs::write(&after, source.replace(wrong, right)).unwrap();
        for file in [&before, &after] {
            let _ = std::fs::remove_file(file.with_extension("bin"));
            if let Ok(bytes) = std::fs::read(cases.join(code).with_extension("bin")) {
                std::fs::write(file.with_extension("bin"), bytes).unwrap();
            }
        }
        let (before, after) = (count("before.xml", code, folder.path()), count("after.xml", code, folder.path()));
        assert!(after < before, "{code}: {before} findings of the wrong example, {after} of the right one");
    }
}
