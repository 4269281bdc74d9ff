//! Output on a terminal: lines fit its width.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};

use unicode_width::UnicodeWidthStr;

const COLUMNS: usize = 80;

/// Returns the output on a terminal of 80 columns, without colours.
fn on_terminal(folder: &Path, arguments: &str) -> String {
    let program = env!("CARGO_BIN_EXE_typelift");
    let line = format!("stty cols {COLUMNS} rows 50; {program} {arguments} 2>/dev/null");
    let run = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    anstream::adapter::strip_str(&String::from_utf8(run.stdout).unwrap()).to_string().replace('\r', "")
}

#[test]
fn findings_fit_the_terminal() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/diagnostics");
    let text = on_terminal(&fixtures, "check --all .");
    assert!(text.contains("error[") && text.lines().count() > 500, "{text}");
    // A word that is almost as long as a line cannot be broken.
    let is_breakable = |line: &&str| line.split(' ').all(|word| word.width() + 15 < COLUMNS);
    // Nor can a command.
    let is_prose = |line: &&str| !line.contains("= fix: `");
    let long = text.lines().filter(|line| line.width() > COLUMNS);
    let faults: Vec<_> = long.filter(is_breakable).filter(is_prose).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
