//! The rooms of the library use each other in one direction.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// Each room uses only those before it.
const ORDER: &[&str] = &[
    "number",
    "spelling",
    "span",
    "shape",
    "file",
    "weights",
    "graph",
    "diagnostic",
    "xml",
    "save",
    "array",
    "loss",
    "ops",
    "infer",
    "passes",
];

#[test]
fn rooms_use_only_those_before_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    for file in files(source.clone()) {
        let path = file.strip_prefix(&source).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let Some(at) = ORDER.iter().position(|known| *known == room) else { continue };
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        for line in code.take_while(|line| *line != "#[cfg(test)]") {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap();
                if ORDER.iter().position(|known| *known == used).is_none_or(|used| used > at) {
                    faults.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.file_name().is_some_and(|name| name == "tests.rs") {
                // Tests may look at the whole.
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}
