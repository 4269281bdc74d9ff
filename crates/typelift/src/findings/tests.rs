//! Test that no finding depends on the text of another one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Diagnostic, FixAction, said};
use crate::{Checking, Weights};

#[test]
fn other_words_change_no_finding() {
    // In an unoptimized build deeply nested bodies need more than the stack of a test thread.
    std::thread::Builder::new().stack_size(64 << 20).spawn(compare_garbled).unwrap().join().unwrap();
}

fn compare_garbled() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures");
    let mut count = 0;
    for file in files(&fixtures).into_iter().filter(|file| file.extension().is_some_and(|it| it == "xml")) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let text = Arc::new(text);
        let bin = fs::read(file.with_extension("bin")).ok();
        let plain = findings(&text, bin.as_deref());
        let garbled = said::garbled(|| findings(&text, bin.as_deref()));
        let data = |found: &[Diagnostic]| found.iter().map(data).collect::<Vec<_>>();
        assert_eq!(data(&plain), data(&garbled), "{}", file.display());
        count += plain.iter().zip(&garbled).filter(|(it, other)| it.message != other.message).count();
    }
    assert!(count > 100, "only {count} findings say something else");
}

/// Returns the data of a finding without its messages.
fn data(found: &Diagnostic) -> String {
    let spans: Vec<_> = found.labels.iter().map(|label| label.span).collect();
    let related: Vec<_> = found.related.iter().map(|it| (&it.layer, it.element_type, &it.shape)).collect();
    let fixes: Vec<_> = found.fixes.iter().filter(|fix| !matches!(fix.action, FixAction::Advise(_))).collect();
    let Diagnostic { severity, code, about, layer, consequences, .. } = found;
    format!("{severity:?} {code:?} {about:?} {layer:?} {spans:?} {related:?} {consequences:?} {fixes:?}")
}

fn findings(text: &Arc<String>, bin: Option<&[u8]>) -> Vec<Diagnostic> {
    let weights = bin.map_or_else(Weights::none, |bytes| Weights::from_bytes(bytes.to_vec()));
    Checking::default().run(text, &weights).findings
}

#[test]
fn no_code_reads_a_sentence() {
    let words = ["message", "help", "note", "notes", "reason", "label"];
    let ways = ["", ".as_str()", ".as_deref()", ".to_string()", "[0]"];
    let readers = [
        "starts_with",
        "ends_with",
        "contains",
        "strip_prefix",
        "strip_suffix",
        "split",
        "split_once",
        "rsplit",
        "find",
        "rfind",
        "replace",
        "replacen",
        "trim",
        "matches",
        "chars",
        "lines",
        "parse",
        "eq_ignore_ascii_case",
    ];
    let mut faults = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in ["typelift/src", "typelift-cli/src", "typelift-py/src"].iter().flat_map(|it| files(&crates.join(it))) {
        let path = file.to_string_lossy();
        let is_code = path.ends_with(".rs") && !path.ends_with("tests.rs") && !path.contains("diagnostic/words/");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let text = code.replace(char::is_whitespace, "");
        let named = words.iter().flat_map(|word| ways.iter().map(move |way| format!("{word}{way}")));
        let calls = named.flat_map(|word| readers.iter().map(move |reader| format!("{word}.{reader}(")));
        let comparisons = words.iter().map(|word| format!(".{word}=="));
        let is_word = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        for call in calls.chain(comparisons).filter(|_| is_code) {
            faults.extend(text.match_indices(&call).filter(|(at, _)| is_word(*at)).map(|_| format!("{path}: {call}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}
