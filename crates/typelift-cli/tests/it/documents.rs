//! Documents show the real output of the program; `UPDATE_DOCS=1` writes it into them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn documents_show_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("testdata"), folder.path().join("testdata")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_typelift")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let in_docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> = in_docs.chain([root.join("README.md")]).collect();
    documents.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    documents.sort();
    let updates = std::env::var_os("UPDATE_DOCS").is_some();
    let mut commands = 0;
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        let mut updated = text.clone();
        for block in text.split("```console\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let block =
                block.strip_prefix("$ ").unwrap_or_else(|| panic!("{}: no command in {block}", document.display()));
            for command in block.split("\n$ ") {
                let (command, expected) = command.split_once('\n').unwrap_or((command, ""));
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{command} 2>&1")]).current_dir(&folder).env("PATH", &path);
                // Lines are as on a terminal of 80 columns.
                shell.env("COLUMNS", "80");
                let output = shell.stdin(Stdio::null()).output().unwrap();
                let printed = String::from_utf8(output.stdout).unwrap();
                if updates {
                    // A line end before the fence, also if nothing was printed before.
                    let shown = |output: &str| match output.trim_end() {
                        "" => format!("$ {command}\n"),
                        output => format!("$ {command}\n{output}\n"),
                    };
                    updated = updated.replacen(&shown(expected), &shown(&printed), 1);
                } else {
                    assert_eq!(printed.trim_end(), expected.trim_end(), "{}: {command}", document.display());
                }
                commands += 1;
            }
        }
        if updated != text {
            std::fs::write(&document, updated).unwrap();
        }
    }
    assert!(commands > 0);
}

#[test]
fn troubles_are_in_the_words_of_openvino() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let said: BTreeMap<String, String> = serde_json::from_str(&read("testdata/oracle/messages/messages.json")).unwrap();
    let text = read("docs/troubleshooting.md");
    let sections: Vec<_> = text.split("\n## ").skip(1).collect();
    assert!(sections.len() > 12);
    for section in sections {
        let (heading, rest) = section.split_once('\n').unwrap();
        let heading = heading.replace("\\<", "<");
        let (_, path) = rest.split_once("\ntypelift check ").unwrap();
        let path = path.lines().next().unwrap();
        let words = said.get(path).unwrap_or_else(|| panic!("{path} is not recorded"));
        assert!(words.contains(&heading), "{heading}: of {path} OpenVINO says {words}");
    }
}
