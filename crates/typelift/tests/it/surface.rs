//! The public interface of the crate, one snapshot per module, so that its changes are visible: every `pub` item by its
//! declaration. The lint `unreachable_pub` makes sure that each of them is reachable.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_public_surface() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules = BTreeMap::<String, Vec<String>>::new();
    for file in files(&root) {
        let place = file.strip_prefix(&root).unwrap();
        let module = Path::new(place.components().next().unwrap().as_os_str()).file_stem().unwrap();
        let module = modules.entry(module.to_string_lossy().into_owned()).or_default();
        module.extend(declarations(&fs::read_to_string(&file).unwrap()));
    }
    modules.retain(|_, declarations| !declarations.is_empty());
    for (module, mut declarations) in modules {
        declarations.sort_unstable();
        insta::with_settings!({ snapshot_suffix => module, omit_expression => true }, {
            insta::assert_snapshot!("surface", declarations.join("\n"));
        });
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => pending.push(path),
                false => found.extend(path.extension().is_some_and(|it| it == "rs").then_some(path)),
            }
        }
    }
    found.sort();
    found
}

/// Returns the `pub` items, methods and fields of a file, each on one line, after the type or trait of the last `impl`.
fn declarations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut owner = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let head = line.trim_start();
        if line == head && (line.starts_with("impl") || line.starts_with("pub") || line.starts_with('}')) {
            owner = line.strip_suffix(" {").unwrap_or("");
        }
        if !head.starts_with("pub ") {
            continue;
        }
        let mut declaration = head.to_owned();
        while !declaration.ends_with(['{', ';', ',', '}']) {
            let Some(next) = lines.next() else { break };
            declaration += " ";
            declaration += next.trim();
        }
        // The parameters of a function on several lines end in commas too.
        while declaration.contains(" fn ") && !declaration.ends_with(['{', ';', '}']) {
            let Some(next) = lines.next() else { break };
            declaration += " ";
            declaration += next.trim();
        }
        let declaration = declaration.trim_end_matches([' ', '{', ';', ',']);
        let is_value = ["pub const ", "pub static "].iter().any(|word| declaration.starts_with(word))
            && !declaration.contains(" fn ");
        let declaration = if is_value { declaration.split(" = ").next().unwrap_or_default() } else { declaration };
        found.push(if line == head { declaration.to_owned() } else { format!("{owner} :: {declaration}") });
    }
    found
}
