//! Replays the corpus of the fuzz targets without a fuzzer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use crate::survival::survive;

#[test]
fn the_corpus_of_models_survives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/model");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let asked: Vec<bool> = files.map(survive).collect();
    assert!(asked.contains(&true) && asked.contains(&false), "{asked:?}");
}

/// Elements in elements, and bodies in bodies, are nested far deeper than the stack allows.
#[test]
fn nesting_without_end_survives() {
    let body = "<net name=\"n\" version=\"11\"><layers>".to_owned()
        + &"<layer id=\"0\" name=\"l\" type=\"Loop\" version=\"opset5\"><body><layers>".repeat(20_000);
    let elements = format!("<net name=\"n\" version=\"11\"><layers/>{}", "<a>".repeat(200_000));
    let ends = "</a>".repeat(200_000) + "</net>";
    for text in [body, elements.clone(), elements + &ends] {
        survive(text.into_bytes());
    }
}
