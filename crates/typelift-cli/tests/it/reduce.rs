//! `typelift reduce`, and `convert --strip-weights`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn typelift(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_typelift")).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A model in a folder of its own, with a Softmax between other layers.
fn model() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let xml = folder.path().join("model.xml");
    let notation = "
x = Parameter : f32[?,8]
k = Const([1, 2, 3, 4, 5, 6, 7, 8]) : f32[8]
a = Multiply(x, k)
b = ReLU(a)
c = Softmax-8(b) {axis=-1}
d = Tanh(c)
e = Add(d, a)
axes = Const([-1]) : i64[1]
f = ReduceMean(e, axes) {keep_dims=true}
r = Result(f)
";
    let mut model = typelift::Model::from_text(notation).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    model.save(&xml).unwrap();
    (folder, xml)
}

#[cfg(unix)]
fn listed(path: &Path) -> String {
    text(&typelift(&["show", path.to_str().unwrap()]).stdout)
}

#[cfg(unix)]
#[test]
fn a_command_that_fails_is_kept_failing() {
    let (folder, xml) = model();
    let out = folder.path().join("small.xml");
    let (xml, out) = (xml.to_str().unwrap(), out.to_str().unwrap());
    // The command fails while a Softmax feeds a Tanh.
    let script = "if grep -q Softmax $0 && grep -q Tanh $0; then echo crash; exit 3; fi";
    for jobs in ["1", "3"] {
        let run = typelift(&[
            "reduce",
            xml,
            "-o",
            out,
            "-j",
            jobs,
            "--match",
            r"(?i)CRASH\b",
            "--",
            "sh",
            "-c",
            script,
            "{}",
        ]);
        assert!(run.status.success(), "{}", text(&run.stderr));
        let left = listed(Path::new(out));
        assert_eq!(left.lines().count(), 4, "{left}");
        assert!(text(&run.stderr).contains("10 layers -> 4 in "), "{}", text(&run.stderr));
    }
}

#[cfg(unix)]
#[test]
fn a_script_that_is_not_there_is_no_failure_of_the_model() {
    let (folder, xml) = model();
    let out = folder.path().join("small.xml");
    let (xml, out) = (xml.to_str().unwrap(), out.to_str().unwrap());
    for command in [&["sh", "missing.sh", "{}"][..], &["sh", "-c", "missing-program {}"]] {
        let run = typelift(&[&["reduce", xml, "-o", out, "--"], command].concat());
        assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
        assert!(text(&run.stderr).contains("did not start"), "{}", text(&run.stderr));
        assert!(!Path::new(out).exists());
    }
}

#[cfg(unix)]
#[test]
fn what_a_command_takes_too_long_for_is_not_interesting() {
    let (folder, xml) = model();
    let out = folder.path().join("small.xml");
    // Without a Softmax it would run for ever.
    let script = "if grep -q Softmax $0; then exit 1; fi; sleep 60";
    let words = ["reduce", xml.to_str().unwrap(), "-o", out.to_str().unwrap(), "--timeout", "1", "--max-runs", "6"];
    let run = typelift(&[&words[..], &["-j", "4", "--", "sh", "-c", script, "{}"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(listed(&out).contains("Softmax"));
}

/// The constants of removed layers are not in the weights of the result, nor in those of a candidate.
#[cfg(unix)]
#[test]
fn only_the_weights_of_layers_that_are_left_are_written() {
    let (folder, xml) = model();
    let (out, seen) = (folder.path().join("small.xml"), folder.path().join("seen"));
    let words = ["reduce", xml.to_str().unwrap(), "-o", out.to_str().unwrap(), "--"];
    // The last candidate of the script has no constant, unless the original is asked for again.
    let script = format!(
        "stat -c %a $(dirname $0) >> {0}; grep -c Const $0 >> {0}; stat -c %s ${{0%xml}}bin >> {0}; grep -q Softmax $0",
        seen.display()
    );
    let run = typelift(&[&words[..], &["sh", "-c", &script, "{}"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(fs::metadata(out.with_extension("bin")).map_or(0, |found| found.len()), 0, "{}", listed(&out));
    let seen = fs::read_to_string(seen).unwrap();
    for candidate in seen.lines().collect::<Vec<_>>().chunks(3) {
        let [mode, constants, size] = candidate else { panic!("{seen}") };
        assert_eq!(*mode, "700");
        assert_eq!(*size == "0", *constants == "0", "{candidate:?}");
    }
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let (folder, xml) = model();
    let path = folder.path();
    let out = path.join("small.xml");
    let other = path.join("small.other.xml");
    for ending in ["xml", "bin"] {
        fs::copy(xml.with_extension(ending), other.with_extension(ending)).unwrap();
    }
    let (xml, out) = (xml.to_str().unwrap(), out.to_str().unwrap());
    let bin = path.join("model.bin");
    let report = |file: &Path| {
        [&["--finding", "required-release", "--report"][..], &[file.to_str().unwrap()]]
            .concat()
            .iter()
            .map(|&word| word.to_owned())
            .collect::<Vec<_>>()
    };
    let cases = [
        report(Path::new(xml)),
        report(&bin),
        report(Path::new(out)),
        report(&path.join("small.bin")),
        vec!["--differs".to_owned(), other.display().to_string()],
    ];
    let before = fs::read_dir(path).unwrap().count();
    for words in cases {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let run = typelift(&[&["reduce", xml, "-o", out][..], &words].concat());
        assert_eq!(run.status.code(), Some(2), "{words:?} {}", text(&run.stderr));
        assert_eq!(fs::read_dir(path).unwrap().count(), before, "{words:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_best_model_is_written_if_the_command_cannot_be_run_any_more() {
    let (folder, xml) = model();
    let (out, program) = (folder.path().join("small.xml"), folder.path().join("judge"));
    fs::write(
        &program,
        format!(
            "#!/bin/sh\necho >> {0}.runs\n[ $(wc -l < {0}.runs) -lt 8 ] || rm -f {0}\ngrep -q Softmax $1\n",
            program.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let words = ["reduce", xml.to_str().unwrap(), "-o", out.to_str().unwrap(), "--", program.to_str().unwrap(), "{}"];
    let run = typelift(&words);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot run") && said.contains("the smallest model so far was written"), "{said}");
    assert!(listed(&out).contains("Softmax"));
}

/// What a command prints is read until it ends, and no more than a part is kept.
#[cfg(unix)]
#[test]
fn a_command_that_prints_without_end_fills_no_disk() {
    let (folder, xml) = model();
    let out = folder.path().join("small.xml");
    let words = [
        "reduce",
        xml.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
        "--max-runs",
        "3",
        "--timeout",
        "1",
        "--match",
        "y",
    ];
    let pid = folder.path().join("pid");
    let script = format!("yes & echo $! > {}; sleep 0.3; : {{}}", pid.display());
    let run = typelift(&[&words[..], &["--", "sh", "-c", &script]].concat());
    // The command ends, and what it left running in its group ends with it.
    assert!(run.status.success(), "{}", text(&run.stderr));
    let stat = format!("/proc/{}/stat", fs::read_to_string(pid).unwrap().trim());
    let stat = fs::read_to_string(stat).unwrap_or_default();
    assert!(stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])), "{stat}");
}

#[test]
fn a_finding_is_kept_and_the_result_is_anonymous() {
    let (folder, xml) = model();
    let out = folder.path().join("small.xml");
    let words = ["reduce", xml.to_str().unwrap(), "-o", out.to_str().unwrap(), "--finding", "required-release"];
    let run = typelift(&[&words[..], &["--anonymize", "--weights", "zero"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let found = text(&typelift(&["check", "--all", out.to_str().unwrap()]).stdout);
    assert!(found.contains("required-release"), "{found}");
}

#[test]
fn what_cannot_be_reduced_is_an_error_and_writes_nothing() {
    let (folder, xml) = model();
    let (xml, out) = (xml.to_str().unwrap().to_owned(), folder.path().join("small.xml"));
    let out_text = out.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["-o", out_text, "--finding", "type-mismatch"], 1, "; it has `required-release`"),
        (&["-o", out_text, "--finding", "no-such-code"], 2, "no finding has this code"),
        (&["-o", &xml, "--finding", "required-release"], 2, "a model is read from it"),
        (&["-o", "small.bin", "--finding", "required-release"], 2, "not .bin"),
        (&["-o", out_text, "--", "true"], 2, "does not name the candidate"),
        (&["-o", out_text, "--", "/no/such/program", "{}"], 2, "cannot run"),
    ];
    for (words, status, message) in cases {
        let run = typelift(&[&["reduce", &xml], words].concat());
        assert_eq!(run.status.code(), Some(status), "{words:?}: {}", text(&run.stderr));
        assert!(text(&run.stderr).contains(message), "{words:?}: {}", text(&run.stderr));
        assert!(!out.exists());
    }
}

#[test]
fn a_missing_openvino_says_what_was_tried_and_how_to_install_it() {
    let (folder, xml) = model();
    let (xml, out) = (xml.to_str().unwrap(), folder.path().join("small.xml"));
    // A program that is no Python did not refuse the model.
    let pythons = if cfg!(unix) { &["/no/such/python", "false"][..] } else { &["/no/such/python"] };
    for python in pythons {
        for words in [&["verify", xml, xml][..], &["reduce", xml, "--refused", "-o", out.to_str().unwrap()]] {
            let run = typelift(&[words, &["--python", python]].concat());
            let said = text(&run.stderr);
            assert_eq!(run.status.code(), Some(2), "{said}");
            assert!(said.contains(&format!("tried `{python}`")) && said.contains("pip install openvino"), "{said}");
        }
    }
}

#[test]
fn a_model_without_openvino_is_not_written_with_verify() {
    let (folder, xml) = model();
    let out = folder.path().join("out.xml");
    for words in [&["convert"][..], &["rewrite", "--use", "all"]] {
        let more = [xml.to_str().unwrap(), "-o", out.to_str().unwrap(), "--verify", "--python", "/no/such/python"];
        let run = typelift(&[words, &more[..]].concat());
        assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
        assert!(!out.exists());
    }
}

#[test]
fn stripped_constants_share_one_run_of_bytes_and_axes_stay() {
    let (folder, xml) = model();
    for (values, in_place) in [("zero", false), ("random", false), ("zero", true)] {
        let out = folder.path().join(format!("{values}.xml"));
        let place: &[&str] = if in_place { &["--in-place"] } else { &["-o", out.to_str().unwrap()] };
        let run = typelift(&[&["convert", xml.to_str().unwrap(), "--strip-weights", values], place].concat());
        assert!(run.status.success(), "{}", text(&run.stderr));
        let written = if in_place { &xml } else { &out };
        let model = typelift::Model::open(written).unwrap();
        let numbers = |name: &str| {
            let layer = model.graph().layer(model.graph().find(name).unwrap()).unwrap();
            layer.numbers(model.weights()).unwrap()
        };
        assert_eq!(numbers("axes"), [-1.0], "an axis is part of the graph");
        let scale = numbers("k");
        let original: Vec<f64> = (1..=8).map(f64::from).collect();
        assert!(scale != original && scale.iter().all(|value| value.is_finite()), "{scale:?}");
        assert_eq!(scale.iter().all(|value| *value == 0.0), values == "zero");
        assert!(fs::metadata(written.with_extension("bin")).unwrap().len() <= 128);
        assert_eq!(typelift(&["check", written.to_str().unwrap()]).status.code(), Some(0));
    }
}
