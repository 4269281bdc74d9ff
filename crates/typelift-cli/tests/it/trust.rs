//! Untrusted models: their files, the memory that they ask for, and their text in the output.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

#[cfg(unix)]
use crate::cli::command;
use crate::cli::{Run, folder, run};

fn hostile(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hostile").join(file)
}

/// Hostile texts: they control a terminal, give commands to a CI system, or break lines.
const TEXTS: [&str; 40] = [
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{1b}[1A\u{1b}[2K",
    "\u{1b}c",
    "\u{1b}[31;45m",
    "\u{1b}[?25l",
    "\u{1b}P1$r\u{1b}\\",
    "\u{9b}2J",
    "\u{9d}0;x\u{9c}",
    "\u{85}",
    "\u{8d}",
    "\u{90}q\u{9c}",
    "\u{7}",
    "\u{8}\u{8}\u{8}ok",
    "\rok",
    "\u{b}",
    "\u{c}",
    "\u{7f}",
    "\u{202e}txt.exe",
    "\u{202a}",
    "\u{202d}",
    "\u{2066}",
    "\u{2067}x\u{2069}",
    "\u{2068}",
    "\u{200f}",
    "\u{200e}",
    "\u{61c}",
    "\u{2028}FORGED",
    "\u{2029}FORGED",
    "\nFORGED line",
    "\n::error::FORGED",
    "::error file=x::own",
    " ::set-output name=a::b",
    "##[error]own",
    "##vso[task.complete]",
    "##teamcity[buildStop]",
    "</script><script>alert(1)</script>",
    "](javascript:x) | `a`",
    "%0A::error::own",
    "\u{0}\\u001b[2J",
];

/// Puts the texts, from one on, in the places of a file that are marked for them.
fn filled(file: &str, first: usize) -> String {
    let mut text = fs::read_to_string(hostile(file)).unwrap();
    for at in first.. {
        if !text.contains("HOSTILE") {
            break;
        }
        let escaped = TEXTS[at % TEXTS.len()].chars().map(|c| match c {
            // No reference stands for a zero character.
            '\0' => String::new(),
            c => format!("&#{};", u32::from(c)),
        });
        text = text.replacen("HOSTILE", &escaped.collect::<String>(), 1);
    }
    text
}

/// A folder with the model whose names, types and attributes are these texts, from one on, and what a device ran for it.
fn model(first: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["model.xml", "ran.xml"] {
        fs::write(folder.path().join(file), filled(&format!("text/{file}"), first)).unwrap();
    }
    fs::copy(hostile("text/model.bin"), folder.path().join("model.bin")).unwrap();
    fs::write(folder.path().join("rules.txt"), "Add(x, c) => Add(c, x) once\n").unwrap();
    folder
}

/// Commands that print text of a model.
const COMMANDS: &[&[&str]] = &[
    &["check", "--all", "model.xml"],
    &["check", "--all", "--format", "json", "model.xml"],
    &["check", "--all", "--format", "sarif", "model.xml"],
    &["check", "--all", "--format", "github", "model.xml"],
    &["check", "--all", "--for", "f16", "model.xml"],
    &["check", "--fix", "--diff", "model.xml"],
    &["check", "--fix", "model.xml", "-o", "fixed.xml"],
    &["check", "--target", "2022.1", "model.xml"],
    &["convert", "model.xml", "--dry-run"],
    &["convert", "model.xml", "-o", "out.xml", "--report", "-"],
    &["convert", "model.xml", "--types", "f32=f16", "--dry-run"],
    &["convert", "model.xml", "--compress", "f16", "--audit"],
    &["convert", "model.xml", "--set-type", "absent=f16", "-o", "out.xml"],
    &["convert", "model.xml", "--target", "2022.1", "--dry-run"],
    &["rewrite", "--use", "all", "--dry-run", "model.xml"],
    &["rewrite", "--use", "all", "--report", "-", "model.xml", "-o", "out.xml"],
    &["rewrite", "--use", "all", "--explain", "2", "--dry-run", "model.xml"],
    &["rewrite", "--use", "all", "--explain", "5", "--dry-run", "model.xml"],
    &["rewrite", "-e", "Add(x, c) => Multiply(x, c)", "--dry-run", "model.xml"],
    &["rewrite", "-e", "rename * y_*", "--dry-run", "model.xml"],
    &["rewrite", "-e", "Relu(x) => x", "model.xml", "-o", "out.xml"],
    &["infer", "model.xml"],
    &["infer", "--format", "json", "model.xml"],
    &["show", "model.xml"],
    &["show", "--all", "model.xml"],
    &["show", "--format", "json", "model.xml"],
    &["show", "--format", "dot", "model.xml"],
    &["stats", "model.xml"],
    &["stats", "--format", "json", "model.xml"],
    &["diff", "model.xml", "other.xml"],
    &["diff", "--all", "model.xml", "other.xml"],
    &["diff", "--format", "json", "model.xml", "other.xml"],
    &["why", "--all", "model.xml", "2"],
    &["why", "--path", "model.xml", "4"],
    &["why", "--format", "json", "model.xml", "5"],
    &["why", "model.xml", "absent"],
    &["view", "model.xml", "-o", "page.html"],
    &["view", "--ran", "ran.xml", "model.xml", "-o", "page.html"],
    &["model.xml"],
    &["ran.xml"],
    &["stats", "--ran", "ran.xml", "model.xml"],
    &["stats", "--ran", "ran.xml", "--format", "json", "model.xml"],
    &["check", "--for", "cpu", "--all", "model.xml"],
    &["convert", "--quantize", "int8_sym", "--dry-run", "model.xml"],
    &["convert", "--quantize", "int8_sym", "--report", "-", "model.xml", "-o", "out.xml"],
    &["convert", "--quantize", "int4_asym", "--all-layers", "--audit", "model.xml"],
    &["convert", "--strip-weights", "zero", "--dry-run", "model.xml"],
    &["convert", "--set-shape", "*=[1,?]", "model.xml", "-o", "out.xml"],
    &["rewrite", "-e", "add output o = absent", "model.xml", "-o", "out.xml"],
    &["verify", "model.xml", "other.xml", "--python", "false"],
    &["verify", "model.xml", "absent.xml", "--format", "json", "--python", "false"],
    &["reduce", "model.xml", "-o", "small.xml", "--max-runs", "9", "--finding", "unknown-operation"],
    &["reduce", "model.xml", "-o", "small.xml", "--max-runs", "9", "--finding", "cycle"],
    &["reduce", "model.xml", "-o", "small.xml", "--max-runs", "9", "--finding", "unknown-operation", "--report", "-"],
];

/// True for a character that controls a terminal or turns a line.
fn is_raw(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || c.is_control() && c != '\n' && c != '\t'
}

/// Returns the hostile part of an output.
fn objection(text: &str, is_github: bool) -> Option<String> {
    for line in text.lines() {
        let start = line.trim_start();
        let is_forged = start.starts_with("FORGED")
            || line.contains("##[")
            || line.contains("##vso[")
            || line.contains("##teamcity[");
        let is_command = start.starts_with("::") && !(is_github && start.contains(" file=model.xml,"));
        if is_forged || is_command || line.chars().any(is_raw) {
            return Some(format!("{line:?}"));
        }
    }
    None
}

#[test]
fn no_text_of_a_file_reaches_the_terminal_as_it_is() {
    let mut wrong = String::new();
    for first in [0, 9, 18, 27, 36] {
        let folder = model(first);
        let other = fs::read_to_string(folder.path().join("model.xml")).unwrap().replace("numpy", "none");
        fs::write(folder.path().join("other.xml"), other).unwrap();
        fs::copy(folder.path().join("model.bin"), folder.path().join("other.bin")).unwrap();
        for arguments in COMMANDS {
            let Run { status, stdout, stderr } = run(folder.path(), arguments);
            assert!((0..=2).contains(&status), "{arguments:?} {stderr}");
            let is_github = arguments.contains(&"github");
            for text in [&stdout, &stderr] {
                if let Some(line) = objection(text, is_github) {
                    wrong += &format!("{arguments:?} from {first}: {line}\n");
                }
            }
            if let Ok(page) = fs::read_to_string(folder.path().join("page.html")) {
                assert!(!page.contains(is_raw) && !page.contains("<script>alert"), "{arguments:?} from {first}");
                fs::remove_file(folder.path().join("page.html")).unwrap();
            }
            if arguments.contains(&"json") || arguments.contains(&"sarif") {
                assert!(serde_json::from_str::<serde_json::Value>(&stdout).is_ok(), "{arguments:?} {stdout}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// In colours only sequences for colours are printed.
#[test]
fn colours_are_all_that_a_terminal_gets() {
    for arguments in COMMANDS {
        let folder = model(0);
        let run = run(folder.path(), &[arguments, &["--color", "always"][..]].concat());
        for piece in format!("{}{}", run.stdout, run.stderr).split('\u{1b}').skip(1) {
            let codes = piece.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(codes, _)| codes);
            let is_style = codes.is_some_and(|codes| codes.bytes().all(|b| b.is_ascii_digit() || b == b';'));
            assert!(is_style && codes != Some("31;45"), "{arguments:?} {piece:?}");
        }
    }
}

/// A chain of Multiply layers whose product has 8,000,000,000 elements, in a file of 10 KB.
#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    let folder = folder();
    let path = folder.path();
    for ending in ["xml", "bin"] {
        fs::copy(hostile(&format!("affine_memory.{ending}")), path.join(format!("affine.{ending}"))).unwrap();
    }
    let run = run(path, &["rewrite", "--use", "affine", "affine.xml", "model.xml", "-o", "out", "--dry-run"]);
    assert_eq!(run.status, 0, "{run:?}");
    assert!(
        run.stdout.contains("`Multiply_6`: it needs 91.6 MiB, and the memory limit for values is 64.1 MiB"),
        "{run:?}"
    );
    assert!(run.stdout.contains("model.xml: no rule applied"), "{run:?}");
    for (limit, skipped) in [("64MB", 2), ("1K", 2)] {
        let arguments = ["rewrite", "--use", "affine", "affine.xml", "--dry-run", "--max-memory", limit];
        let run = crate::cli::run(path, &arguments);
        assert_eq!(run.stdout.matches("the memory limit for values").count(), skipped, "{limit} {run:?}");
    }
    assert_eq!(crate::cli::run(path, &["check", "model.xml", "--max-memory", "much"]).status, 2);
}

/// Files that are read next to a model must be regular: a device or a pipe has no end.
#[cfg(unix)]
#[test]
fn a_device_or_a_pipe_is_refused_at_once() {
    let folder = folder();
    let path = folder.path();
    assert!(std::process::Command::new("mkfifo").arg(path.join("pipe")).status().unwrap().success());
    for file in ["/dev/zero", "pipe"] {
        let (set, keep, join) =
            (format!("set c = npy(\"{file}\")"), format!("@{file}"), format!("join \"{file}\" as y_"));
        for arguments in [
            &["rewrite", "-e", &set, "model.xml", "-o", "out.xml"][..],
            &["rewrite", "-e", &join, "model.xml", "-o", "out.xml"],
            &["rewrite", "--rules", file, "model.xml", "-o", "out.xml"],
            &["convert", "--compress", "f16", "--keep", &keep, "model.xml", "-o", "out.xml"],
            &["convert", "--quantize", &keep, "model.xml", "-o", "out.xml"],
            &["convert", "--bin", file, "model.xml", "-o", "out.xml"],
            &["check", "model.xml", "--ran", file],
            &["stats", "model.xml", "--ran", file],
            &["view", "model.xml", "--ran", file, "-o", "page.html"],
        ] {
            let mut child = command(path, arguments);
            let run = child.stdin(std::process::Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(matches!(run.status.code(), Some(1 | 2)) && said.contains("regular file"), "{arguments:?} {said}");
        }
    }
}

/// A hole takes no space on the disk, and must take none in memory.
#[cfg(unix)]
#[test]
fn the_hole_of_a_sparse_text_is_not_read() {
    let folder = folder();
    let sparse = fs::File::create(folder.path().join("hole.xml")).unwrap();
    std::io::Write::write_all(&mut &sparse, b"<net>").unwrap();
    sparse.set_len(3 << 30).unwrap();
    for arguments in [&["check", "hole.xml"][..], &["stats", "model.xml", "--ran", "hole.xml"]] {
        let program = env!("CARGO_BIN_EXE_typelift");
        let script = format!("ulimit -v 1000000; exec {program} {}", arguments.join(" "));
        let run = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        assert!(matches!(run.status.code(), Some(1 | 2)), "{run:?}");
    }
    sparse.set_len(5 << 30).unwrap();
    let large = run(folder.path(), &["check", "hole.xml"]);
    assert!(large.status == 2 && large.stderr.contains("is 4 GiB or longer"), "{large:?}");
    let run = run(folder.path(), &["rewrite", "model.xml", "--rules", "hole.xml", "-o", "out.xml"]);
    assert!(run.status == 2 && run.stderr.contains("has over 16 MB"), "{run:?}");
}

#[test]
fn a_report_replaces_no_file_that_any_option_reads() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("keep.txt"), "c\n").unwrap();
    fs::write(path.join("rules.txt"), "try Add(x, y) => Add(y, x)\n").unwrap();
    let values = [
        b"\x93NUMPY\x01\x00v\x00" as &[u8],
        format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (), }").as_bytes(),
        &[0; 4],
    ]
    .concat();
    fs::write(path.join("c.npy"), values).unwrap();
    for (read, arguments) in [
        ("keep.txt", &["convert", "--compress", "f16", "--keep", "@keep.txt"][..]),
        ("rules.txt", &["rewrite", "--rules", "rules.txt"]),
        ("c.npy", &["rewrite", "-e", "set c = npy(\"c.npy\")"]),
        ("model.bin", &["convert"]),
        ("out.bin", &["convert"]),
    ] {
        let before = fs::read(path.join(read)).ok();
        for report in [read.to_owned(), format!("./{read}")] {
            let run = run(path, &[arguments, &["model.xml", "-o", "out.xml", "--report", &report]].concat());
            assert!(run.status == 2 && run.stderr.contains("cannot write"), "{arguments:?} {report}: {run:?}");
            assert_eq!(fs::read(path.join(read)).ok(), before, "{arguments:?}");
            assert!(!path.join("out.xml").exists(), "{arguments:?}");
        }
    }
}

/// A command that a message prints is pasted into a shell.
#[cfg(unix)]
#[test]
fn names_of_files_in_printed_commands_are_quoted() {
    let folder = folder();
    let path = folder.path();
    for name in ["$(touch PWNED)", "a;touch PWNED", "`touch PWNED`"] {
        let (file, directory) = (format!("{name}.xml"), format!("{name} folder"));
        fs::write(path.join(&file), crate::cli::model("f16", 40)).unwrap();
        fs::create_dir(path.join(&directory)).unwrap();
        let lines: [&[&str]; 7] = [
            &["check", &file],
            &["convert", &file, "--dry-run"],
            &["infer", &file],
            &["rewrite", "--use", "all", "--dry-run", &file],
            &[name],
            &[&directory],
            &[&file],
        ];
        for line in lines {
            let run = run(path, line);
            let said = run.stdout + &run.stderr;
            let shown = said.split('`').skip(1).step_by(2).chain(said.lines().map(str::trim));
            for shown in shown.filter(|shown| shown.starts_with("typelift ")) {
                let mut shell = std::process::Command::new("sh");
                shell.args(["-c", shown]).env("PATH", "/usr/bin:/bin").current_dir(path).output().unwrap();
                assert!(!path.join("PWNED").exists(), "{line:?} prints {shown}");
            }
        }
    }
}

/// Secrets are planted in every field of a model, and in bytes of the weights that no constant has.
#[test]
fn each_secret_of_an_anonymous_model_is_gone_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut text = fs::read_to_string(hostile("text/model.xml")).unwrap() + "<!-- HOSTILE -->\n";
    let mut secrets = Vec::new();
    while text.contains("HOSTILE") {
        secrets.push(format!("Secret{}x", secrets.len()));
        text = text.replacen("HOSTILE", secrets.last().unwrap(), 1);
    }
    fs::write(path.join("model.xml"), &text).unwrap();
    let mut weights = fs::read(hostile("text/model.bin")).unwrap();
    weights.resize(64, 0);
    weights.extend(b"SecretWeights");
    fs::write(path.join("model.bin"), weights).unwrap();
    let line = ["reduce", "model.xml", "-o", "small.xml", "--max-runs", "1", "--finding", "unknown-operation"];
    let run = run(path, &[&line[..], &["--anonymize"]].concat());
    assert_eq!(run.status, 0, "{run:?}");
    let written = [fs::read(path.join("small.xml")).unwrap(), fs::read(path.join("small.bin")).unwrap()].concat();
    let written = String::from_utf8_lossy(&written);
    assert!(!written.contains("SecretWeights"));
    let kept: Vec<_> = secrets.iter().filter(|secret| written.contains(*secret)).collect();
    assert_eq!(kept.len(), 3, "the name, the set and the attribute of an unknown operation: {kept:?}");
    for secret in kept {
        let is_value = text.contains(&format!("k=\"{secret}\""));
        let is_named = run.stderr.contains(secret) || is_value && run.stderr.contains("the text of its attribute `k`");
        assert!(is_named, "{secret}: {}", run.stderr);
    }
    assert!(run.stderr.contains("constants keep their values"), "{}", run.stderr);
}

#[test]
fn a_byte_order_mark_before_rules_is_skipped() {
    let folder = folder();
    fs::write(folder.path().join("rules.txt"), "\u{feff}rename c d\n").unwrap();
    let run = run(folder.path(), &["rewrite", "model.xml", "--rules", "rules.txt", "-o", "out.xml"]);
    assert_eq!(run.status, 0, "{run:?}");
}
