//! The modules of the library use each other in one direction.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders of the library in the order of the data. Each uses only those before it.
const ORDER: &[&str] = &[
    "base",
    "model",
    "findings",
    "text",
    "ops",
    "infer",
    "edit",
    "promotion",
    "precision",
    "check",
    "rewrite",
    "convert",
    "explain",
];

/// Functions that change a graph without being public edits, and the modules that may call them: those that read, infer
/// and edit graphs.
const DOORS: &[(&str, &[&str])] = &[
    ("add_layer", &["edit"]),
    ("adopt", &["edit"]),
    ("append", &["text", "rewrite"]),
    ("change", &["edit"]),
    ("commit", &["edit"]),
    ("disconnect", &["text"]),
    ("enter", &["edit"]),
    ("feed", &["edit"]),
    ("feed_all", &["edit"]),
    ("ignore", &["text"]),
    ("index_layers", &["text", "rewrite"]),
    ("join", &["edit"]),
    ("layer_mut", &["text", "rewrite", "infer", "edit"]),
    ("mark_ports_changed", &["infer"]),
    ("name_output", &["edit"]),
    ("resize_inputs", &["edit"]),
    ("roll_back", &["edit"]),
    ("set_outputs", &["edit"]),
    ("take_all", &["edit"]),
    ("to_mut", &["edit"]),
    ("wire", &["text", "rewrite"]),
];

#[test]
fn rooms_use_only_those_before_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    for file in files(source.clone()) {
        let path = file.strip_prefix(&source).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if room == "lib" {
            continue;
        }
        let at = ORDER.iter().position(|known| *known == room);
        let at = at.unwrap_or_else(|| panic!("`{room}` has no place in the order"));
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

#[test]
fn only_public_verbs_change_graphs() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for file in files(source.clone()) {
        let path = file.strip_prefix(&source).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        let text = std::fs::read_to_string(&file).unwrap();
        if path.starts_with("model/graph") {
            let verbs = text.split("pub(crate) fn ").skip(1);
            let changes = verbs.filter(|verb| verb.split(')').next().unwrap().contains("&mut self"));
            found.extend(changes.map(|verb| verb.split(['(', '<']).next().unwrap().to_owned()));
            continue;
        }
        for (verb, rooms) in DOORS {
            if !rooms.contains(&room) && text.contains(&format!("graph.{verb}(")) {
                faults.push(format!("{} uses {verb}", path.display()));
            }
        }
        if text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("petgraph::"))
            && !["lib", "promotion"].contains(&room)
        {
            faults.push(format!("{} uses petgraph", path.display()));
        }
    }
    found.sort_unstable();
    assert_eq!(found, DOORS.iter().map(|(verb, _)| *verb).collect::<Vec<_>>());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn references_to_layers_and_paths_are_made_in_one_place_each() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    for file in files(source.clone()) {
        let path = file.strip_prefix(&source).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let makes_reference = line.contains("LayerRef { ") || line.ends_with(" LayerRef {") && line.contains('=');
            let makes_path = line.contains("format!") && line.contains("/{}") && line.contains("body.name");
            if makes_reference || makes_path {
                faults.push(format!("{}: {}", path.display(), line.trim()));
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
            if path
                .file_name()
                .is_some_and(|name| ["tests", "tests.rs", "double.rs"].iter().any(|tests| name == *tests))
            {
                // Tests may use everything.
            } else if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn no_room_uses_itself_through_others() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["typelift-promote", "typelift-cli", "typelift-py"] {
        let rooms = uses_of_rooms(&crates.join(name).join("src"));
        assert!(rooms.len() > 3, "{name}");
        let mut left: Vec<_> = rooms.iter().collect();
        while let Some(at) = left.iter().position(|(_, used)| left.iter().all(|(room, _)| !used.contains(*room))) {
            left.remove(at);
        }
        let left: BTreeMap<_, _> = left.into_iter().collect();
        assert!(left.is_empty(), "{name} has circles among {left:#?}");
    }
}

/// Returns the modules of a crate, each with the others that it uses. A re-export in `lib.rs` belongs to the module
/// that defines it.
fn uses_of_rooms(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let code = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").map(str::trim_start);
        lines.filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    let lib = code(&source.join("lib.rs"));
    let handed_on = lib.split("pub use ").skip(1).filter_map(|line| line.split(';').next()?.split_once("::"));
    let all_of = |room: &str| {
        let text = code(&source.join(room).join("mod.rs"));
        let names = ["pub mod ", "pub enum "].map(|kind| text.split(kind).skip(1).map(first_word).collect::<Vec<_>>());
        names.concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let names_of = |room: &str, names| match names {
        "*" => all_of(room),
        names => first_words(names).into_iter().map(str::to_owned).collect(),
    };
    let homes: BTreeMap<_, _> = handed_on
        .flat_map(|(room, names)| names_of(room, names).into_iter().map(move |name| (name, room.to_owned())))
        .collect();
    let mut rooms = BTreeMap::<_, BTreeSet<_>>::new();
    for file in files(source.to_owned()) {
        let path = file.strip_prefix(source).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if ["lib", "main"].contains(&room.as_str()) {
            continue;
        }
        let code = code(&file);
        let used = code.split("crate::").skip(1).flat_map(first_words).filter(|name| !name.is_empty());
        let used = used.map(|name| homes.get(name).cloned().unwrap_or_else(|| name.to_owned()));
        let used: Vec<_> = used.filter(|used| *used != room).collect();
        rooms.entry(room).or_default().extend(used);
    }
    rooms
}

/// Returns the names that a path begins with: `a` of `a::b`, `a` and `c` of `{a::{b, d}, c}`.
fn first_words(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else { return vec![first_word(path)] };
    let (mut depth, mut start) = (0, 0);
    let mut words = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                words.push(first_word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
        if c == '}' && start > at {
            break;
        }
    }
    words
}

fn first_word(path: &str) -> &str {
    path.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap()
}
