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
    // The folder of a `typelift` that runs the program for Windows, whose separators and quotes differ.
    let foreign = std::env::var_os("TYPELIFT_FOREIGN").map(std::path::PathBuf::from);
    let program = foreign.as_deref().unwrap_or(Path::new(env!("CARGO_BIN_EXE_typelift")).parent().unwrap());
    let comparable = |printed: &str| match foreign {
        Some(_) => printed.trim_end().replace('\\', "/").replace('"', "'").replace('\r', ""),
        None => printed.trim_end().to_owned(),
    };
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
                    assert_eq!(comparable(&printed), comparable(expected), "{}: {command}", document.display());
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

/// Runs the commands of `docs/other-numbers.md` in their order, where a Python has OpenVINO.
#[test]
fn the_commands_about_other_numbers_run() {
    let python = std::env::var_os("TYPELIFT_PYTHON").unwrap_or_else(|| "python3".into());
    let runs = |script: &str, folder: &Path| {
        let script = format!("import numpy, openvino\n{script}");
        let ended = Command::new(&python).args(["-c", &script]).current_dir(folder).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    };
    let folder = tempfile::tempdir().unwrap();
    if !runs("", folder.path()) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for ending in ["xml", "bin"] {
        let name = format!("classifier.{ending}");
        std::fs::copy(root.join("testdata/tutorial").join(&name), folder.path().join(&name)).unwrap();
    }
    // Two installations, which are one.
    let wrapper = format!("#!/bin/sh\nexec {} \"$@\"\n", python.display());
    for name in ["old", "new"] {
        let bin = folder.path().join(name).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("python"), &wrapper).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join("python"), executable).unwrap();
    }
    let run = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
        command.args(line.split_whitespace().skip(1)).current_dir(folder.path()).env("TYPELIFT_PYTHON", &python);
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let text = std::fs::read_to_string(root.join("docs/other-numbers.md")).unwrap();
    let mut lines: Vec<&str> = text.split('`').map(str::trim).filter(|part| part.starts_with("typelift ")).collect();
    lines.extend(text.lines().filter(|line| line.starts_with("typelift ")));
    // The example comes first: its result is the model of the other commands.
    lines.sort_by_key(|line| !(line.contains("convert classifier.xml") || line.contains("fixed.xml")));
    lines.dedup();
    assert!(lines.len() >= 11, "{lines:?}");
    for line in lines {
        let (status, said) = run(line);
        if line.contains("--save-inputs") {
            let script = "
import shutil
saved = numpy.load('inputs.npz')
inputs = {name.partition('/')[2]: saved[name] for name in saved.files if name.startswith('sample1.')}
numpy.savez('inputs.npz', **inputs)
compiled = openvino.Core().compile_model('fixed.xml', 'CPU')
numpy.savez('outputs.npz', probabilities=compiled(inputs)['probabilities'])
for copy in ['model', 'old', 'new']:
    for ending in ['xml', 'bin']:
        shutil.copy('fixed.' + ending, copy + '.' + ending)
";
            assert!(runs(script, folder.path()));
        }
        let is_of_the_device = said.contains("device") || said.contains("was asked for");
        let finds_nothing = line.starts_with("typelift reduce") && status == 1;
        assert!(status == 0 || finds_nothing || status == 2 && is_of_the_device, "{line}: {status} {said}");
    }
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
