//! Table of commands, as `--help` lists them. Tests for every command read it, so a new command is tested too.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::process::Command;

use unicode_width::UnicodeWidthStr;

use crate::verbs::VERBS;

/// Returns the output of the program, which must succeed.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output = crate::cli::output(command.env_remove("COLUMNS").args(arguments));
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    crate::cli::printed(output.stdout)
}

/// Returns the names of the commands in the order of the help, without `help`.
pub(crate) fn names() -> Vec<String> {
    let help = printed(&["--help"]);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    // Continued descriptions are indented further.
    let names = lines.filter(|line| !line.starts_with("   ")).map(|line| line.split_whitespace().next().unwrap());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Returns the names of the commands that write JSON documents.
pub(crate) fn with_documents() -> Vec<String> {
    let writes = |name: &String| {
        let help = printed(&[name, "--help"]);
        help.contains("--format <") || help.contains("--report <")
    };
    names().into_iter().filter(writes).collect()
}

/// Returns command lines for a `model.xml`, at least one for each command.
pub(crate) fn lines() -> Vec<Vec<String>> {
    let known = VERBS.iter().map(|line| line.iter().map(|&word| word.to_owned()).collect());
    let others = names().into_iter().filter(|name| VERBS.iter().all(|line| line[0] != name));
    known.chain(others.map(|name| vec![name, "model.xml".to_owned()])).collect()
}

#[test]
fn every_command_has_help_with_an_example_that_fits_a_terminal() {
    for name in names() {
        let (help, short) = (printed(&[&name, "--help"]), printed(&[&name, "-h"]));
        assert!(help.contains(&format!("Examples:\n  typelift {name} ")), "{help}");
        let wide = short.lines().chain(help.lines()).find(|line| line.width() > 100 && !line.starts_with("Usage: "));
        assert_eq!(wide, None, "{name}");
    }
}

#[test]
fn every_command_with_documents_has_a_schema() {
    for name in with_documents() {
        printed(&["schema", &name]);
    }
}
