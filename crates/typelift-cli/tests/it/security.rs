//! Promises of `docs/security.md`, as far as the sources show them; the tests that it names exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that bind the library to another language.
const BINDINGS: [&str; 2] = ["typelift-py", "typelift-web"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the sources of every crate, without tests.
fn sources() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let (mut pending, mut sources) = (crates.filter(|path| path.is_dir()).collect::<Vec<_>>(), Vec::new());
    while let Some(folder) = pending.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                pending.extend((!path.ends_with("tests")).then_some(path));
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
                sources.push(path);
            }
        }
    }
    sources
}

#[test]
fn every_promise_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut promises = 0;
    for row in rows {
        let held_by = row.split('|').nth(2).unwrap();
        let named: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{row}");
        for name in named {
            let (file, test) = name.split_once(": ").unwrap_or((name, "fuzz_target!"));
            let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            let test = if test == "fuzz_target!" { test.to_owned() } else { format!("fn {test}()") };
            assert!(text.contains(&test), "{file} has no {test}");
        }
        promises += 1;
    }
    assert!(promises > 5);
}

#[test]
fn sources_name_neither_the_network_nor_other_programs() {
    let sources = sources();
    assert!(sources.len() > 50);
    // `reduce` runs the command that it is given.
    for path in sources.into_iter().filter(|path| !path.ends_with("reduce/judge.rs")) {
        let text = fs::read_to_string(&path).unwrap();
        for name in ["std::net", "TcpStream", "UdpSocket", "process::Command"] {
            assert!(!text.contains(name), "{}: {name}", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_everywhere() {
    let manifest = |path: &Path| fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(manifest(&root()).contains("unsafe_code = \"forbid\""));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        // The macros of bindings generate unsafe code, so these crates cannot forbid it. Their sources contain none.
        if BINDINGS.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        assert!(manifest(&path).contains("[lints]\nworkspace = true"), "{}", path.display());
    }
    for path in
        sources().iter().filter(|path| BINDINGS.iter().any(|name| path.components().any(|it| it.as_os_str() == *name)))
    {
        let text = fs::read_to_string(path).unwrap();
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(!words.any(|word| word == "unsafe" || word == "unsafe_code"), "{}", path.display());
    }
}
