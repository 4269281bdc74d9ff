//! What a release ships beside the program.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::process::Command;

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_typelift")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The verbs that `--help` lists.
fn verbs() -> Vec<String> {
    let help = printed(&["--help"]);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    // Descriptions that run on are indented further.
    lines
        .filter(|line| !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn completions_of_every_shell_know_every_verb() {
    let verbs = verbs();
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
    for verb in verbs().iter().filter(|verb| *verb != "help") {
        let page = std::fs::read_to_string(folder.path().join(format!("typelift-{verb}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
}
