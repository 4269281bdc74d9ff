//! Every command that `check` prints in a terminal ends with success when it is typed back, and its finding is no longer reported.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

/// Returns what a command prints in a terminal of this width, without colours.
fn in_terminal(columns: u16, folder: &Path, arguments: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let screen = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS").env("TERM", "xterm");
    let mut child = command.stdin(Stdio::null()).stdout(screen).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    let mut printed = Vec::new();
    // The end of a terminal is an error of the system.
    let _end = File::from(terminal).read_to_end(&mut printed);
    child.wait().unwrap();
    let text = String::from_utf8(printed).unwrap().replace("\r\n", "\n");
    anstream::adapter::strip_str(&text).to_string()
}

/// Returns the commands in a text: what stands between `` `typelift `` and the next backtick.
fn commands(text: &str) -> Vec<String> {
    let parts = text.split("`typelift ").skip(1);
    parts.map(|rest| format!("typelift {}", rest.split('`').next().unwrap())).collect()
}

/// Returns the codes and layers of the findings of a model, with the fix of each.
fn findings(folder: &Path, arguments: &[&str]) -> Vec<((String, String), Option<String>)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output = command.args(["check", "--format", "json"]).args(arguments).current_dir(folder).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = document["diagnostics"].as_array().unwrap().iter();
    let key = |it: &Value| (it["code"].to_string(), format!("{}/{}", it["layer"]["path"], it["layer"]["name"]));
    found.map(|it| (key(it), it["fix"].as_str().map(str::to_owned))).collect()
}

#[test]
fn every_command_of_check_runs_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut models = BTreeSet::new();
    for source in ["models", "tutorial", "newcomer"] {
        for entry in std::fs::read_dir(testdata.join(source)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            std::fs::copy(&path, folder.path().join(&name)).unwrap();
            // The result of OpenVINO's pass has the weights of the model before.
            if let Some(stem) = name.strip_suffix(".promote.bin") {
                std::fs::copy(&path, folder.path().join(format!("{stem}.promote.ref.bin"))).unwrap();
            }
            models.extend(name.ends_with(".xml").then_some(name));
        }
    }
    let path = format!(
        "{}:{}",
        Path::new(env!("CARGO_BIN_EXE_typelift")).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let (mut printed, mut longest) = (0, 0);
    for model in &models {
        for options in [&[][..], &["--for", "f16"], &["--for", "i32"]] {
            let arguments = [options, &[model]].concat();
            let before = findings(folder.path(), &arguments);
            let mut fixes = BTreeMap::<String, Vec<(String, String)>>::new();
            for (finding, fix) in before {
                if let Some(fix) = fix {
                    fixes.entry(fix).or_default().push(finding);
                }
            }
            for columns in [80, 120] {
                let text = in_terminal(columns, folder.path(), &[&["check", "--all"], &arguments[..]].concat());
                for command in commands(&text) {
                    assert!(!command.contains(['\n', '…']), "{model} {options:?} at {columns}: {command}");
                    longest = longest.max(command.replace(model.as_str(), "").len());
                    printed += 1;
                    fixes.entry(command).or_default();
                }
            }
            for (command, fixed) in fixes {
                for file in ["fixed.xml", "fixed.bin"] {
                    let _absent = std::fs::remove_file(folder.path().join(file));
                }
                let mut shell = Command::new("sh");
                let output = shell.args(["-c", &command]).current_dir(&folder).env("PATH", &path).output().unwrap();
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
                let after = findings(folder.path(), &[options, &["fixed.xml"]].concat());
                let is_left = |finding| after.iter().any(|(left, _)| left == finding);
                assert!(!fixed.iter().any(is_left), "{command} leaves {fixed:?}");
            }
        }
    }
    println!("{printed} commands, the longest of {longest} characters without the file");
    assert!(printed >= 60 && longest <= 200, "{printed} {longest}");
}
