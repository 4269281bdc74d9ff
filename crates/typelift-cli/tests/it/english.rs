//! Rejects phrases that were replaced by plain English in messages, help, comments and documents.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// Each phrase, in lower case, with its replacement.
const PHRASES: &[(&str, &str)] = &[
    ("takes down a ", "records a"),
    ("takes down the ", "records the"),
    ("takes down text", "records text"),
    ("take down a ", "record a"),
    ("goes on and on", "does not converge"),
    ("have to do.", "must be valid"),
    (" so many ", "a number, a limit, this many"),
    ("stands twice", "appears twice"),
    ("fed by nothing", "is not connected"),
    ("in a circle", "a cycle"),
    ("the ones too many", "the extra ones"),
    ("ports too many", "extra ports"),
    ("is no news", "suppresses follow-up errors, is not reported"),
    ("are no news", "suppresses errors about"),
    ("converts nothing by itself", "does not convert types implicitly"),
    ("from where it came from", "a fresh copy"),
    ("how to tell it", "output format"),
    ("tell every error", "report every error"),
    ("takes out ", "removes"),
    ("take out ", "remove"),
    ("taken out ", "removed"),
    ("took out ", "removed"),
    ("take it out", "remove it"),
    ("is told ", "is reported"),
    ("tells whether", "returns whether"),
    ("lets every consumer of", "redirects every consumer of"),
    ("tell how a", "explain where"),
    ("stands beside", "is beside"),
    ("of several families ask", "shared by several families"),
    ("do not count, and could", "ignored, and could take effect"),
    ("is no element type", "is not an element type"),
    ("is no dimension", "is not a dimension"),
    ("is no multiple", "is not a multiple"),
    ("is no boolean", "is not a boolean"),
    ("is no name", "is not a name"),
    ("is no type", "is not a type"),
    ("is no number of", "is not a number of"),
    ("is no axis", "is not an axis"),
    ("is no integer", "is not an integer"),
    ("is no length", "is not a length"),
    ("is no model", "is not a model"),
    ("is no ir ", "is not an IR"),
    ("is no failure", "is not a failure"),
    ("is no loss", "is not a loss"),
    ("is no use", "does not work"),
    ("are no models", "are not models"),
    ("are no matrices", "are not matrices"),
    ("there is no layer", "the graph has no layer"),
    ("there is no directory", "does not exist"),
    ("made where there is none", "created if it does not exist"),
    ("what stands ", "what is"),
    ("cannot be told", "is not known, cannot be distinguished"),
    ("told apart", "distinguished"),
    ("how a tensor came to", "where it comes from"),
    ("mends ", "fixes"),
    ("is mended", "is fixed"),
    ("that do not count", "that are ignored"),
];

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
                found.push(path);
            }
        }
    }
}

#[test]
fn what_was_rewritten_stays_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md")];
    files(&root.join("docs"), &["md"], &mut all);
    for source in ["typelift-promote", "typelift", "typelift-run", "typelift-cli"] {
        files(&root.join("crates").join(source).join("src"), &["rs"], &mut all);
    }
    assert!(all.len() > 80);
    let mut found = String::new();
    for file in all {
        let text = std::fs::read_to_string(&file).unwrap().to_lowercase();
        for (number, line) in text.lines().enumerate() {
            for (phrase, plain) in PHRASES.iter().filter(|(phrase, _)| line.contains(phrase)) {
                found += &format!("{}:{}: `{phrase}`: write {plain}\n", file.display(), number + 1);
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// The library reports suggestions as data. Only the program, and the library's texts for the program's users, know how
/// options are spelled.
#[test]
fn the_library_names_no_option_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    files(&root.join("typelift/src"), &["rs"], &mut all);
    all.retain(|file| !file.ends_with("findings/words/fixes.rs"));
    let mut found = String::new();
    for file in all {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (number, line) in
            lines.filter(|(_, line)| line.replace("`-->", "").contains("`--") || line.contains("`typelift "))
        {
            found += &format!("{}:{}: {line}\n", file.display(), number + 1);
        }
    }
    assert!(found.is_empty(), "{found}");
}
