//! Files that a release ships next to the program.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path};

use walkdir::WalkDir;

use crate::commands::{names, printed};

#[test]
fn completions_of_every_shell_know_every_verb() {
    let verbs = names();
    assert!(verbs.contains(&"convert".to_owned()), "{verbs:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for verb in &verbs {
            assert!(script.contains(verb.as_str()), "{shell} does not complete {verb}");
        }
    }
}

#[test]
fn every_verb_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["man", folder.path().to_str().unwrap()]);
    for verb in names() {
        let page = fs::read_to_string(folder.path().join(format!("typelift-{verb}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
}

#[test]
fn a_package_compiles_without_what_is_beside_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut outside = Vec::new();
    for name in ["typelift-promote", "typelift", "typelift-run", "typelift-view", "typelift-cli"] {
        let root = crates.join(name);
        for folder in ["src", "tests", "benches", "examples"] {
            let sources = WalkDir::new(root.join(folder)).into_iter().filter_map(Result::ok);
            for file in sources.filter(|file| file.path().extension() == Some(OsStr::new("rs"))) {
                let text = fs::read_to_string(file.path()).unwrap();
                let named = ["include_str!(\"", "include_bytes!(\"", "#[path = \""].iter();
                let named =
                    named.flat_map(|opening| text.split(opening).skip(1).filter_map(|rest| rest.split('"').next()));
                let depth = file.path().strip_prefix(&root).unwrap().components().count() - 1;
                let ups =
                    |path: &str| Path::new(path).components().filter(|part| *part == Component::ParentDir).count();
                outside.extend(
                    named.filter(|path| ups(path) > depth).map(|path| format!("{}: {path}", file.path().display())),
                );
            }
        }
    }
    assert_eq!(outside, [""; 0]);
}
