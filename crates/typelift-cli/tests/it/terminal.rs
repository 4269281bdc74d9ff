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

/// A run that takes longer than half a second shows one bar, on a terminal only. The Python that `verify` asks sleeps.
#[test]
fn long_work_shows_a_bar_on_a_terminal_and_none_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/rewrite");
    for name in ["a.xml", "b.xml"] {
        std::fs::copy(models.join("shared.xml"), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("slow"), "#!/bin/sh\nsleep 2\nexit 1\n").unwrap();
    assert!(Command::new("chmod").args(["+x", "slow"]).current_dir(&folder).status().unwrap().success());
    let program = env!("CARGO_BIN_EXE_typelift");
    let line = format!("{program} verify a.xml b.xml --python ./slow");
    for (line, is_terminal) in [(line.clone(), true), (format!("{line} 2>&1 | cat"), false)] {
        let mut script = Command::new("script");
        let run = script.args(["-qec", &line, "/dev/null"]).current_dir(&folder).stdin(Stdio::null());
        let text = String::from_utf8(run.output().unwrap().stdout).unwrap();
        assert_eq!(text.contains('\u{2591}'), is_terminal, "{text}");
        assert!(text.contains("error"), "{text}");
    }
}
