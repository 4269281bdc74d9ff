//! The program as scripts see it: exit status, pipes, files.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("COLUMNS");
    command
}

pub(crate) fn run_with(folder: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let mut command = command(folder, arguments);
    let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that does not read its input closes it early.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Run { status: output.status.code().unwrap(), stdout: printed(output.stdout), stderr: printed(output.stderr) }
}

/// Starts a program. Wine fails to start one of some thousand, before its first step.
pub(crate) fn start(program: &mut Command) -> Child {
    const ERROR_INTERNAL_ERROR: i32 = 1359;
    loop {
        match program.spawn() {
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) => {}
            child => return child.unwrap(),
        }
    }
}

pub(crate) fn output(program: &mut Command) -> Output {
    start(program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().unwrap()
}

/// Splits a command into words; one in quotes may have spaces.
pub(crate) fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut quote, mut is_in_word) = (Vec::new(), None, false);
    for letter in line.chars() {
        if quote.is_none() && letter.is_whitespace() {
            is_in_word = false;
            continue;
        }
        if !is_in_word {
            words.push(String::new());
            is_in_word = true;
        }
        match quote {
            Some(open) if open == letter => quote = None,
            None if ['\'', '"'].contains(&letter) => quote = Some(letter),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    if quote.is_none() { Ok(words) } else { Err("a quote is open".to_owned()) }
}

/// Returns what a run printed, on Windows as other systems print it: with their separators in paths and their quotes in commands.
pub(crate) fn printed(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap();
    if cfg!(not(windows)) || text.starts_with(['{', '[', '<']) || text.starts_with("digraph") {
        return text;
    }
    let in_paths = |(at, part): (usize, &str)| match part.chars().next() {
        _ if at == 0 => part.to_owned(),
        Some(letter) if letter.is_alphanumeric() || "._<*".contains(letter) => format!("/{part}"),
        _ => format!("\\{part}"),
    };
    let text: String = text.replace("\r\n", "\n").split('\\').enumerate().map(in_paths).collect();
    let has_words = |line: &str| ["typelift ", "`-", "write -e"].iter().any(|start| line.contains(start));
    let in_commands = |line: &str| match line.split_once("<# PowerShell 7.3 #> ") {
        Some((before, word)) => before.replace('"', "'") + word,
        None if has_words(line) => line.replace('"', "'"),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(in_commands).collect()
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Run {
    run_with(folder, arguments, b"")
}

/// Returns a folder with `model.xml` and its weights, with one promotion and one constant.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.xml"), model("f16", 1)).unwrap();
    fs::write(folder.path().join("model.bin"), 1.5_f32.to_le_bytes()).unwrap();
    folder
}

/// Returns a model in which `x` of this type is promoted with an f32 constant and added to it, `times` times.
pub(crate) fn model(x: &str, times: usize) -> String {
    let port = |id: usize, precision: &str| format!("<port id=\"{id}\" precision=\"{precision}\"/>\n");
    let mut layers = format!(
        "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\">\n<data shape=\"\" element_type=\"{x}\"/>\n\
         <output>\n{}</output>\n</layer>\n\
         <layer id=\"1\" name=\"c\" type=\"Const\" version=\"opset1\">\n\
         <data element_type=\"f32\" shape=\"\" offset=\"0\" size=\"4\"/>\n<output>\n{}</output>\n</layer>\n",
        port(0, &x.to_uppercase().replace('F', "FP")),
        port(0, "FP32")
    );
    let mut edges = String::new();
    for at in 0..times {
        let (promote, sum, result) = (2 + 3 * at, 3 + 3 * at, 4 + 3 * at);
        layers += &format!(
            "<layer id=\"{promote}\" name=\"p{at}\" type=\"ConvertPromoteTypes\" version=\"opset14\">\n\
             <input>\n{4}{1}</input>\n<output>\n{2}{3}</output>\n</layer>\n\
             <layer id=\"{sum}\" name=\"s{at}\" type=\"Add\" version=\"opset1\">\n\
             <input>\n{0}{1}</input>\n<output>\n{2}</output>\n</layer>\n\
             <layer id=\"{result}\" name=\"r{at}\" type=\"Result\" version=\"opset1\">\n<input>\n{0}</input>\n</layer>\n",
            port(0, "FP32"),
            port(1, "FP32"),
            port(2, "FP32"),
            port(3, "FP32"),
            port(0, &x.to_uppercase().replace('F', "FP")),
        );
        let wires =
            [(0, 0, promote, 0), (1, 0, promote, 1), (promote, 2, sum, 0), (promote, 3, sum, 1), (sum, 2, result, 0)];
        for (from, from_port, to, to_port) in wires {
            edges += &format!(
                "<edge from-layer=\"{from}\" from-port=\"{from_port}\" to-layer=\"{to}\" to-port=\"{to_port}\"/>\n"
            );
        }
    }
    format!("<net name=\"m\" version=\"11\">\n<layers>\n{layers}</layers>\n<edges>\n{edges}</edges>\n</net>\n")
}

pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn exit_status_tells_done_from_faulty_from_usage() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("faulty.xml"), model("f64", 1).replace("ConvertPromoteTypes", "Add")).unwrap();
    fs::write(path.join("latin1.xml"), b"<net name=\"caf\xe9\" version=\"11\"/>").unwrap();
    fs::write(path.join("empty.xml"), "").unwrap();
    fs::create_dir(path.join("sub")).unwrap();
    for (status, arguments) in [
        (0, &["convert", "model.xml", "-o", "out.xml"][..]),
        (0, &["check", "model.xml"]),
        (0, &["--help"]),
        (0, &["--version"]),
        (1, &["check", "faulty.xml"]),
        (1, &["convert", "faulty.xml", "-o", "faulty.out.xml"]),
        (1, &["infer", "latin1.xml"]),
        (1, &["show", "empty.xml"]),
        (1, &["promote", "u64", "i8"]),
        (2, &[]),
        (2, &["lint", "model.xml"]),
        (2, &["check"]),
        (2, &["check", "absent.xml"]),
        (2, &["check", "sub"]),
        (2, &["check", "model.bin"]),
        (2, &["check", "--format", "yaml", "model.xml"]),
        (2, &["convert", "model.xml"]),
        (2, &["convert", "model.xml", "-o", "out.xml", "--in-place"]),
        (0, &["convert", "model.xml", "-o", "sub"]),
        (2, &["convert", "model.xml", "-o", "absent/out.xml"]),
        (2, &["convert", "model.xml", "-o", "out.bin"]),
        (2, &["convert", "-", "--in-place"]),
        (2, &["convert", "model.xml", "-o", "-", "--report", "-"]),
        (2, &["convert", "model.xml", "--dry-run", "--set-type", "y=f32"]),
        (2, &["convert", "model.xml", "--dry-run", "--set-type", "x=f31"]),
        (2, &["convert", "model.xml", "--dry-run", "--set-shape", "x=[5..2]"]),
        (2, &["promote", "f32"]),
        (2, &["promote", "f32", "float33"]),
        (2, &["promote", "--rules", "paddle", "--promote-unsafe", "f32", "f32"]),
        (2, &["promote", "--rules", "pytorch", "--default-dtype", "i8", "f32", "f32"]),
        (2, &["promote", "--rules", "pytorch", "--op", "ad", "f32", "f32"]),
    ] {
        let run = run(path, arguments);
        assert_eq!(run.status, status, "{arguments:?} {run:?}");
        let said = if arguments.first() == Some(&"check") && status == 1 { &run.stdout } else { &run.stderr };
        assert!(status == 0 || !said.is_empty(), "{arguments:?} {run:?}");
    }
    assert!(!path.join("faulty.out.xml").exists());
}

#[test]
fn messages_about_files_say_what_to_do() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("empty.xml"), "\n").unwrap();
    fs::write(path.join("latin1.xml"), b"<net name=\"caf\xe9\" version=\"11\"/>").unwrap();
    let said = |arguments: &[&str]| run(path, arguments).stderr;
    let messages = [
        said(&["show", "."]),
        said(&["check", "model"]),
        said(&["check", "model.bin"]),
        said(&["infer", "empty.xml"]),
        said(&["infer", "latin1.xml"]),
        said(&["convert", "model.xml"]),
        said(&["convert", "model.xml", "-o", "."]),
        said(&["convert", "model.xml", "-o", "absent/out.xml"]),
        said(&["convert", "model.xml", "-o", "out.bin"]),
        said(&["convert", "-", "--in-place"]),
        said(&["infer", "model.xml", "--set-type", "X=f32"]),
        said(&["infer", "model.xml", "--set-shape", "input_ids=[1]"]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

/// Files and folders of other programs, and files that were damaged, are named with the next command.
#[test]
fn wrong_files_are_named_with_the_next_command() {
    let folder = folder();
    let path = folder.path();
    let write = |name: &str, bytes: &[u8]| {
        fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
        fs::write(path.join(name), bytes).unwrap();
    };
    let zip = [&b"PK\x03\x04"[..], &[0; 26], b"model/data.pkl"].concat();
    write("hub/config.json", b"{}");
    write("hub/model.safetensors", b"");
    write("pair.xml/model.xml", &fs::read(path.join("model.xml")).unwrap());
    write("torch.xml", &zip);
    write("models.zip", &zip);
    write("other.xml.txt", b"<net/>");
    write("cyrillic.xml", b"<?xml version=\"1.0\" encoding=\"KOI8-R\"?><net name=\"\xcb\xcc\" version=\"11\"/>");
    write("my.rules", b"Relu(x) => Abs(x)\nAdd(x, Multiply(y, 2) => x\n");
    let text = fs::read_to_string(path.join("model.xml")).unwrap();
    let text = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    write("conflict.xml", &text("<layer id=", "<layer\n<<<<<<< HEAD\n id="));
    write("old.xml", &text("version=\"11\"", "version=\"7\""));
    write("newest.xml", &text("version=\"opset1\"", "version=\"opset99\""));
    write("letters.npy", b"");
    let gone = r#"<net name="n" version="11"><layers><layer id="0" name="x" type="Parameter" version="opset1">
        <data shape="2" element_type="f16"/><output><port id="0" precision="FP16"><dim>2</dim></port></output></layer>
        <layer id="2" name="y" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;
    write("gone.xml", gone.as_bytes());
    write("packed.xml", b"\x1f\x8b\x08\0");
    write("rules.yaml", b"rules:\n  - Relu\n");
    write("arrays.npz", b"PK\x03\x04\x14\0\0\0\0\0arr_0.npy");
    write("adapter.bin", &zip);
    write("model.pt", &zip);
    write("unbound.rules", b"Relu(x) => Multiply(x, scale)\n");
    for (arguments, expected) in [
        (&["check", "conflict.xml"][..], "the file contains an unresolved merge conflict"),
        (&["check", "old.xml"], "2020.4 is the last release that reads this version"),
        (&["check", "gone.xml"], "write from-layer=\"0\" from-port=\"0\", where the edge to layer 1 starts"),
        (&["rewrite", "-e", "lora adapter.bin", "model.xml", "-o", "o.xml"], "`safetensors.torch.save_file`"),
        (
            &["rewrite", "-e", "freeze x = npy(\"arrays.npz\")", "model.xml", "-o", "o.xml"],
            "`unzip` divides into .npy files",
        ),
        (
            &["convert", "--compress", "f16", "--keep", "@hub/config.json", "model.xml", "-o", "o.xml"],
            "is JSON, and each",
        ),
        (&["convert", "model.pt", "-o", "o.xml"], "`openvino.save_model(openvino.convert_model(model), \"OUT.xml\")`"),
        (&["convert", "model.xml", "-o", "adapter.bin/o.xml"], "`adapter.bin` is a file: name another folder"),
        (&["check", "packed.xml"], "`gunzip < packed.xml > packed.new.xml && mv packed.new.xml packed.xml`"),
        (&["check", "pairs.xml/model.xml"], "did you mean `typelift check pair.xml/model.xml`?"),
        (&["check", "newest.xml"], "= help: write version=\"opset1\""),
        (&["show", "letters.npy"], "`letters.npy` holds arrays, which `numpy.load` reads"),
        (&["check", "hub/config.json"], "`optimum-cli export openvino --model hub OUT`"),
        (&["convert", "absent.onnx", "-o", "o.xml"], "`ovc absent.onnx` converts it"),
        (
            &["rewrite", "--rules", "rules.yaml", "model.xml", "-o", "o.xml"],
            "is YAML or Python, not a file of statements",
        ),
        (
            &["rewrite", "--rules", "unbound.rules", "model.xml", "-o", "o.xml"],
            "a line `let scale = …` before the rule",
        ),
        (&["check", "hub"], "`optimum-cli export openvino --model hub OUT` converts it to OpenVINO IR"),
        (&["convert", "pair.xml", "-o", "o.xml"], "give the model in the folder: `pair.xml/model.xml`"),
        (&["check", "torch.xml"], "the file is a PyTorch checkpoint, not the XML of a model"),
        (&["check", "models.zip/model.xml"], "`models.zip` is packed: unpack it, and give the .xml in it"),
        (&["check", "other.xml"], "did you mean `typelift check other.xml.txt`?"),
        (
            &["check", "cyrillic.xml"],
            "`iconv -f KOI8-R -t UTF-8 cyrillic.xml > cyrillic.new.xml && mv cyrillic.new.xml cyrillic.xml`",
        ),
        (&["rewrite", "--rules", "my.rules", "model.xml", "-o", "o.xml"], "error: my.rules:2: expected `,` or `)`"),
        (&["rewrite", "--rules", "my.rules", "model.xml", "-o", "o.xml"], "close the bracket of `Add(` before `=>`"),
    ] {
        let done = run(path, arguments);
        let text = (done.stdout + &done.stderr).replace('\\', "/");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = folder();
    let path = folder.path();
    let source = fs::read(path.join("model.xml")).unwrap();
    for verb in [&["show"][..], &["infer"], &["infer", "--format", "json"], &["show", "--format", "dot"]] {
        let (piped, file) = ([verb, &["-", "--bin", "model.bin"]].concat(), [verb, &["model.xml"]].concat());
        let named = run(path, &file).stdout.replace("\"file\": \"model.xml\"", "\"file\": \"<stdin>\"");
        assert_eq!(run_with(path, &piped, &source).stdout, named);
    }
    assert_eq!(run(path, &["convert", "model.xml", "-o", "out.xml"]).status, 0);
    let piped = run_with(path, &["convert", "-", "-o", "-"], &source);
    assert_eq!((piped.status, piped.stdout), (0, fs::read_to_string(path.join("out.xml")).unwrap()));
    assert!(run_with(path, &["check", "-"], b"<net").stdout.contains("<stdin>:1:"));
}

#[test]
fn nobody_reading_the_output_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("large.xml"), model("f16", 5000)).unwrap();
    for arguments in [&["show", "large.xml"][..], &["infer", "--format", "json", "large.xml"], &["promote", "--table"]]
    {
        let mut command = command(folder.path(), arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn only_terminals_get_colours_unless_told_otherwise() {
    let folder = folder();
    let coloured = |arguments: &[&str], no_color: &str| {
        let output = command(folder.path(), arguments).env("NO_COLOR", no_color).output().unwrap();
        String::from_utf8(output.stderr).unwrap().contains('\x1b')
    };
    assert!(!coloured(&["check", "absent.xml"], ""));
    assert!(coloured(&["check", "absent.xml", "--color", "always"], ""));
    assert!(coloured(&["--color=always", "check", "absent.xml"], "1"));
    assert!(!coloured(&["check", "absent.xml", "--color", "never"], ""));
    let audit = |color: &str| {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/compress");
        run(&models, &["convert", "--compress", "f16", "--audit", "audit.xml", "--color", color])
            .stdout
            .contains('\x1b')
    };
    assert_eq!(["auto", "never", "always"].map(audit), [false, false, true]);
}

#[test]
fn json_is_one_document_whatever_happens() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("broken.xml"), "<net").unwrap();
    for arguments in [&["check", "--format", "json"][..], &["infer", "--format", "json"], &["show", "--format", "json"]]
    {
        for file in ["model.xml", "broken.xml"] {
            let run = run(path, &[arguments, &[file]].concat());
            serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap_or_else(|_| panic!("{arguments:?} {run:?}"));
        }
    }
}

/// Other programs spell the types of `check --for` differently, and in capitals.
#[test]
fn a_type_that_a_model_is_for_has_several_spellings() {
    let folder = tempfile::tempdir().unwrap();
    let model = typelift::Model::from_text("x = Parameter : f32[2]\ny = Multiply(x, x)\nr = Result(y)").unwrap();
    model.save(folder.path().join("model.xml")).unwrap();
    let check = |word: &str| run(folder.path(), &["check", "--for", word, "model.xml"]);
    let expected = check("bf16");
    assert_eq!(expected.status, 0, "{}", expected.stderr);
    for word in ["bfloat16", "BF16"] {
        let found = check(word);
        assert_eq!((found.status, found.stdout), (0, expected.stdout.clone()), "{word}: {}", found.stderr);
    }
    assert_eq!(check("f32").status, 2);
}

#[test]
fn in_place_changes_the_graph_and_nothing_else() {
    let folder = folder();
    let path = folder.path();
    let bin = fs::metadata(path.join("model.bin")).unwrap().modified().unwrap();
    assert_eq!(run(path, &["convert", "model.xml", "-o", "out.xml"]).status, 0);
    assert_eq!(run(path, &["convert", "model.xml", "--in-place"]).status, 0);
    let converted = fs::read(path.join("model.xml")).unwrap();
    assert_eq!(converted, fs::read(path.join("out.xml")).unwrap());
    assert_eq!(fs::metadata(path.join("model.bin")).unwrap().modified().unwrap(), bin);
    assert_eq!(entries(path), ["model.bin", "model.xml", "out.bin", "out.xml"]);
    // Without a change the file is not even touched.
    let before = fs::metadata(path.join("model.xml")).unwrap().modified().unwrap();
    assert_eq!(run(path, &["convert", "model.xml", "--in-place"]).status, 0);
    assert_eq!(fs::metadata(path.join("model.xml")).unwrap().modified().unwrap(), before);
}

#[cfg(unix)]
#[test]
fn links_are_replaced_and_permissions_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder();
    let path = folder.path();
    fs::set_permissions(path.join("model.xml"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(path.join("sub")).unwrap();
    symlink("../model.xml", path.join("sub/link.xml")).unwrap();
    symlink("../model.bin", path.join("sub/link.bin")).unwrap();
    let before = ["model.xml", "model.bin"].map(|name| fs::read(path.join(name)).unwrap());
    let replaced = run(path, &["convert", "sub/link.xml", "--in-place"]);
    assert_eq!(replaced.status, 0);
    let said = "`sub/link.xml` was a link to `../model.xml`, which stays as it is; now it is a file\n";
    assert!(replaced.stderr.contains(said), "{replaced:?}");
    // The weights do not change, so their link stays.
    assert!(!path.join("sub/link.xml").is_symlink() && path.join("sub/link.bin").is_symlink());
    assert_eq!(fs::metadata(path.join("sub/link.xml")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!fs::read_to_string(path.join("sub/link.xml")).unwrap().contains("ConvertPromoteTypes"));
    assert_eq!(["model.xml", "model.bin"].map(|name| fs::read(path.join(name)).unwrap()), before);
    assert_eq!(run(path, &["convert", "model.xml", "-o", "/dev/null"]).status, 0);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn weights_are_copied_linked_or_left() {
    let folder = folder();
    let path = folder.path();
    let weights = fs::read(path.join("model.bin")).unwrap();
    for (mode, exists) in [("copy", true), ("link", true), ("none", false)] {
        let out = format!("{mode}.xml");
        assert_eq!(run(path, &["convert", "model.xml", "-o", &out, "--weights", mode]).status, 0);
        assert_eq!(fs::read(path.join(format!("{mode}.bin"))).ok(), exists.then(|| weights.clone()));
    }
    // The copy is a separate file, the link is not; an existing link is kept.
    fs::write(path.join("model.bin"), 2.5_f32.to_le_bytes()).unwrap();
    assert_eq!(fs::read(path.join("copy.bin")).unwrap(), weights);
    assert_ne!(fs::read(path.join("link.bin")).unwrap(), weights);
    assert_eq!(run(path, &["convert", "model.xml", "-o", "link.xml"]).status, 0);
    assert_eq!(run(path, &["convert", "-", "--bin", "model.bin", "-o", "piped.xml"]).status, 1);
    let piped = run_with(path, &["convert", "-", "--bin", "model.bin", "-o", "piped.xml"], model("f16", 1).as_bytes());
    assert_eq!(piped.status, 0, "{piped:?}");
    assert_eq!(fs::read(path.join("piped.bin")).unwrap(), 2.5_f32.to_le_bytes());
}

#[test]
fn weights_that_are_missing_matter_only_where_they_are_written() {
    let folder = folder();
    let path = folder.path();
    fs::remove_file(path.join("model.bin")).unwrap();
    for arguments in [&["-o", "out.xml"][..], &["-o", "out.xml", "--weights", "link"]] {
        let refused = run(path, &[&["convert", "model.xml"], arguments].concat());
        assert_eq!(refused.status, 1);
        for part in ["error[missing-weights]", "model.xml:9:21", "`c`", "--weights none"] {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
        assert_eq!(entries(path), ["model.xml"]);
    }
    for arguments in [&["-o", "-"][..], &["-o", "out.xml", "--weights", "none"], &["--dry-run"], &["--in-place"]] {
        assert_eq!(run(path, &[&["convert", "model.xml"], arguments].concat()).status, 0, "{arguments:?}");
    }
}

#[test]
fn a_model_with_errors_leaves_what_was_there() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("model.xml"), model("f64", 1).replace("ConvertPromoteTypes", "Add")).unwrap();
    fs::write(path.join("out.xml"), "old").unwrap();
    let before = fs::read(path.join("model.xml")).unwrap();
    for arguments in [
        &["convert", "model.xml", "-o", "out.xml"][..],
        &["convert", "model.xml", "--in-place"],
        &["infer", "model.xml", "-o", "out.xml"],
    ] {
        assert_eq!(run(path, arguments).status, 1);
    }
    assert_eq!(fs::read(path.join("out.xml")).unwrap(), b"old");
    assert_eq!(fs::read(path.join("model.xml")).unwrap(), before);
    assert_eq!(entries(path), ["model.bin", "model.xml", "out.xml"]);
}

/// Returns a folder with a tree of models under `in`: two to convert, one with no pair to convert, one with errors, and
/// XML of another kind.
fn tree() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("in");
    fs::create_dir_all(root.join("b/deep")).unwrap();
    let faulty = model("f64", 1).replace("ConvertPromoteTypes", "Add");
    let models =
        [("a", model("f16", 1)), ("b/deep/d", model("f16", 300)), ("b/e", model("f32", 0)), ("b/faulty", faulty)];
    for (name, text) in models {
        fs::write(root.join(name).with_extension("xml"), text).unwrap();
        fs::write(root.join(name).with_extension("bin"), 1.5_f32.to_le_bytes()).unwrap();
    }
    fs::write(root.join("b/pom.xml"), "<project/>").unwrap();
    fs::write(root.join("notes.txt"), "not XML").unwrap();
    folder
}

const TREE: [&str; 4] = ["in/a.xml", "in/b/deep/d.xml", "in/b/e.xml", "in/b/faulty.xml"];

#[test]
fn a_directory_is_converted_as_each_of_its_models_alone() {
    let folder = tree();
    let path = folder.path();
    let all = run(path, &["convert", "in", "-o", "out/new"]);
    assert_eq!((all.status, all.stdout.as_str()), (1, ""));
    let mut said = String::new();
    for file in TREE {
        let alone = run(path, &["convert", file, "-o", "alone.xml"]);
        let place = format!("out/new/{}", file.trim_start_matches("in/").trim_end_matches(".xml"));
        said += &alone.stderr.replace("wrote alone.xml and alone.bin", &format!("wrote {place}.xml and {place}.bin"));
        let converted = fs::read(path.join("out/new").join(file.strip_prefix("in/").unwrap())).ok();
        assert_eq!(converted, (alone.status == 0).then(|| fs::read(path.join("alone.xml")).unwrap()), "{file}");
    }
    said += "in/b/pom.xml: the root element is <project>, not <net>; skipped\n\
             5 files: 2 converted, 1 with no pair to convert, 1 refused, 1 skipped; 301 ConvertPromoteTypes replaced, \
             2 Converts inserted\n";
    assert_eq!(all.stderr, said);
    assert_eq!(entries(&path.join("out/new")), ["a.bin", "a.xml", "b"]);
    assert_eq!(entries(&path.join("out/new/b")), ["deep", "e.bin", "e.xml"]);
    // Files that a run writes below its input directory are not read by the next run.
    for _ in 0..2 {
        assert!(run(path, &["convert", "in", "-o", "in/new"]).stderr.contains("\n5 files: 2 converted, "));
    }
    assert!(!path.join("in/new/new").exists());
}

#[test]
fn many_models_are_told_in_their_order_whatever_the_threads() {
    let folder = tree();
    let path = folder.path();
    // The largest model is converted first, so that the others finish before it.
    let files = ["in/b/deep/d.xml", "in/b/faulty.xml", "in/a.xml", "in/b/e.xml"];
    for verb in [&["check"][..], &["check", "--all"], &["convert", "--dry-run"]] {
        let alone = files.map(|file| run(path, &[verb, &[file]].concat()));
        for threads in ["1", "4"] {
            let all = run(path, &[verb, &files, &["-j", threads]].concat());
            assert_eq!(all.status, 1);
            assert_eq!(all.stdout, alone.iter().map(|run| run.stdout.as_str()).collect::<String>());
            let summary = all.stderr.strip_prefix(&alone.iter().map(|run| run.stderr.as_str()).collect::<String>());
            let summary = summary.unwrap_or_else(|| panic!("{verb:?} {threads}: {}", all.stderr));
            assert!(summary.starts_with("4 files: ") && summary.lines().count() == 1, "{summary}");
        }
    }
    let listed = run(path, &["infer", "in/a.xml", "in/b/e.xml"]).stdout;
    let [a, e] = ["in/a.xml", "in/b/e.xml"].map(|file| run(path, &["infer", file]).stdout);
    assert_eq!(listed, format!("in/a.xml:\n{a}\nin/b/e.xml:\n{e}"));
}

#[test]
fn json_of_many_models_is_one_array() {
    let folder = tree();
    let path = folder.path();
    let files = |text: &str| -> Vec<String> {
        let documents: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        documents.iter().map(|document| document["file"].as_str().unwrap().to_owned()).collect()
    };
    for verb in ["check", "infer"] {
        assert_eq!(files(&run(path, &[verb, "--format", "json", "in"]).stdout), TREE);
    }
    let plans = run(path, &["convert", "in", "-o", "out", "--report", "-"]);
    assert_eq!(files(&plans.stdout), TREE);
    run(path, &["convert", "in", "--dry-run", "--report", "plans.json"]);
    assert_eq!(fs::read_to_string(path.join("plans.json")).unwrap(), plans.stdout);
    assert_eq!(
        files(&run(path, &["check", "--format", "json", "in/a.xml", "absent.xml"]).stdout),
        ["in/a.xml", "absent.xml"]
    );
}

#[test]
fn one_bad_file_of_many_does_not_stop_the_others() {
    let folder = tree();
    let path = folder.path();
    let run_in_place = |files: &[&str]| run(path, &[&["convert", "--in-place"], files].concat());
    let failed = run_in_place(&["in/absent.xml", "in/b/faulty.xml", "in/a.xml"]);
    assert_eq!(failed.status, 2);
    assert!(failed.stderr.contains("3 files: 1 converted, 1 refused, 1 failed; "), "{failed:?}");
    assert!(!fs::read_to_string(path.join("in/a.xml")).unwrap().contains("ConvertPromoteTypes"));
    assert_eq!(run_in_place(&["in/a.xml", "in/b/faulty.xml"]).status, 1);
    assert_eq!(run_in_place(&["in/a.xml", "in/b/e.xml"]).status, 0);
    // A named file must be a model. An empty file counts as a model everywhere.
    assert_eq!(run(path, &["check", "in/b/pom.xml", "in/a.xml"]).status, 1);
    fs::write(path.join("in/b/faulty.xml"), "").unwrap();
    assert_eq!(run(path, &["check", "in"]).status, 1);
    fs::remove_file(path.join("in/b/faulty.xml")).unwrap();
    assert_eq!(run(path, &["check", "in"]).status, 0);
    // A failure of one model names it.
    let unknown = run(path, &["infer", "--set-type", "y=f32", "in/a.xml", "in/b/e.xml"]);
    assert!(unknown.stderr.starts_with("error: in/a.xml: the model has no input `y`"), "{unknown:?}");
}

#[test]
fn what_makes_no_sense_of_many_models_is_refused_before_any_is_written() {
    let folder = tree();
    let path = folder.path();
    fs::create_dir(path.join("none")).unwrap();
    fs::write(path.join("file"), "").unwrap();
    let refused = [
        &["convert", "in"][..],
        &["convert", "in", "-o", "-"],
        &["convert", "in", "-o", "file"],
        &["convert", "in/a.xml", "in/b/e.xml", "-o", "out.xml"],
        &["convert", "in/a.xml", "-", "-o", "out"],
        &["convert", "in", "--bin", "in/a.bin", "-o", "out"],
        &["convert", "in", "in/b", "in", "-o", "out"],
        &["convert", "in/a.xml", "in/../in/a.xml", "--in-place"],
        &["convert", "in", "none", "-o", "out"],
        &["convert", "none", "-o", "out.xml"],
        &["infer", "in", "-o", "-"],
        &["check", "in", "-j", "0"],
    ];
    let before = fs::read(path.join("in/a.xml")).unwrap();
    let messages = refused.map(|arguments| {
        let run = run(path, arguments);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{arguments:?} {run:?}");
        run.stderr
    });
    insta::assert_snapshot!(messages.join("\n"));
    assert_eq!(entries(path), ["file", "in", "none"]);
    assert_eq!(fs::read(path.join("in/a.xml")).unwrap(), before);
}

#[test]
fn a_dry_run_writes_only_its_report() {
    let folder = folder();
    let path = folder.path();
    let plan = run(path, &["convert", "model.xml", "--dry-run", "--report", "plan.json"]);
    assert!(plan.stdout.contains("+ 5 x/p0.0  f16 -> f32  exact"), "{plan:?}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(path.join("plan.json")).unwrap()).unwrap();
    assert_eq!(report["converts"][0]["to"], "f32");
    assert_eq!(entries(path), ["model.bin", "model.xml", "plan.json"]);
    let alone = run(path, &["convert", "model.xml", "--dry-run", "--report", "-"]);
    assert_eq!(alone.stdout, fs::read_to_string(path.join("plan.json")).unwrap());
}

/// After a kill at any moment, the old file or the new one exists completely.
#[test]
fn killing_it_never_leaves_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.xml");
    fs::write(path.with_extension("bin"), 1.5_f32.to_le_bytes()).unwrap();
    let old = model("f16", 3_000);
    fs::write(&path, &old).unwrap();
    let begin = Instant::now();
    assert_eq!(run(folder.path(), &["convert", "model.xml", "--in-place"]).status, 0);
    let whole_run = begin.elapsed();
    let new = fs::read_to_string(&path).unwrap();
    assert_ne!(old, new);
    let (mut old_left, mut new_left) = (0, 0);
    for at in 0..30_u32 {
        fs::write(&path, &old).unwrap();
        let mut child =
            command(folder.path(), &["convert", "model.xml", "--in-place"]).stderr(Stdio::null()).spawn().unwrap();
        // The moments are spread over the run, denser at its end, where the file is replaced.
        let share = f64::from(at) / 26.0;
        std::thread::sleep(whole_run.mul_f64(share.sqrt()).min(Duration::from_secs(5)));
        // The process may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
        match fs::read_to_string(&path).unwrap() {
            left if left == old => old_left += 1,
            left if left == new => new_left += 1,
            left => panic!("{} bytes of {} old and {} new ones are left", left.len(), old.len(), new.len()),
        }
    }
    assert!(old_left > 0 && old_left + new_left == 30, "{old_left} old, {new_left} new");
}

#[test]
fn promote_answers_as_its_contract_says() {
    let folder = tempfile::tempdir().unwrap();
    let promote = |arguments: &[&str], input: &str| {
        run_with(folder.path(), &[&["promote"], arguments].concat(), input.as_bytes())
    };
    for (arguments, answer) in [
        (&["i16", "u8"][..], "i16\n"),
        (&["i16[2]", "u8[]"], "i16[2]\n"),
        (&["boolean", "f8e4m3"], "f8e4m3\n"),
        (&["--promote-unsafe", "u64", "i8"], "f32\n"),
        (&["--promote-unsafe", "--u64-integer-promotion-target", "i64", "u64", "i8"], "i64\n"),
        (&["--pytorch-scalar-promotion", "--promote-unsafe", "u8[2]", "i64[]"], "u8[2]\n"),
        (&["--pytorch-scalar-promotion", "i32[...]", "i64[2]"], "dynamic[...]\n"),
        (&["--rules", "pytorch", "f16[2]", "f32[]"], "f16[2]\n"),
        (&["--rules", "pytorch", "bool[2]", "int"], "i64[2]\n"),
        (&["--rules", "pytorch", "--op", "result_type", "u8[2]", "1", "i16[]", "1.0"], "f32\n"),
        (&["--rules", "pytorch", "--op", "sqrt", "i32[3]"], "f32[3]\n"),
        (&["--rules", "numpy", "--op", "result_type", "i8", "u8", "f16"], "f16\n"),
        (&["--rules", "numpy", "i32[2,1]", "f16[3]"], "f64[2,3]\n"),
        (&["--rules", "jax", "i32[2]", "1.0"], "f64*[2]\n"),
        (&["--rules", "jax", "--no-x64", "i32[2]", "1.0"], "f32*[2]\n"),
        (&["--rules", "jax-strict", "f16[2]", "1.0"], "f16[2]\n"),
        (&["--rules", "numpy", "i8[10]", "127"], "i8[10]\n"),
        (&["--rules", "numpy-1", "i8[10]", "256"], "i16[10]\n"),
        (&["--rules", "numpy-1", "i8[10]", "i64[]"], "i8[10]\n"),
        (&["--rules", "jax", "f16", "f64*"], "f16\n"),
        (&["--rules", "pytorch", "bool", "bool[2]"], "bool\n"),
        (&["--rules", "pytorch", "--op", "div", "i32", "i32"], "f32\n"),
        (&["--rules", "pytorch", "--op", "div", "--default-dtype", "f64", "i32", "i32"], "f64\n"),
        (&["--rules", "pytorch", "--op", "eq", "i32", "f32"], "bool\n"),
        (&["--rules", "paddle", "f16[2]", "bf16[2]"], "f32[2]\n"),
        (&["--rules", "paddle", "f32[2]", "c64[2]"], "c64[2]\n"),
    ] {
        let run = promote(arguments, "");
        assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, answer, ""), "{arguments:?}");
    }
    let refused = promote(&["f16", "i64"], "");
    assert_eq!((refused.status, refused.stdout.as_str()), (1, ""));
    assert!(refused.stderr.starts_with("error[integer-to-float]: f16 and i64 have no common type"), "{refused:?}");
    let bounds = promote(&["--rules", "numpy", "i8[10]", "256"], "");
    assert!(bounds.status == 1 && bounds.stderr.starts_with("error[out-of-bounds]"), "{bounds:?}");
    let lines = promote(&["-"], "i16 u8\nu64 i8\n\n# f32\nf32 nonsense\nf32[2] f64[]\nf32[2] f32[3]\n");
    assert_eq!(lines.stdout, "i16\nerror: unsigned-to-signed\n\n# f32\nerror: not-an-operand\nf64[2]\nerror: shapes\n");
    let table = promote(&["--table", "--format", "json"], "").stdout;
    let table: serde_json::Value = serde_json::from_str(&table).unwrap();
    assert_eq!(table[0]["rows"][0]["operands"], serde_json::json!(["boolean"]));
    assert_eq!(table[0]["rows"][0]["answers"]["f16"], "f16");
    let compared = promote(&["--compare", "--format", "json"], "").stdout;
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    assert_eq!(compared[1]["title"], "tensor with tensor of rank 0");
    assert_eq!(compared[0]["rows"][0]["answers"]["paddle"], serde_json::Value::Null);
    assert_eq!(promote(&["--table"], "").stdout.lines().count(), 19);
}

#[test]
fn promote_explains_itself() {
    let folder = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str]| {
        let run = run(folder.path(), &[&["promote"], arguments].concat());
        format!("$ typelift promote {}\n{}{}", arguments.join(" "), run.stdout, run.stderr)
    };
    let outputs = [
        said(&["--explain", "i16", "u8"]),
        said(&["--explain", "u64", "i32"]),
        said(&["--explain", "--rules", "pytorch", "f16[2]", "f32[]"]),
        said(&["--explain", "--rules", "pytorch", "--op", "eq", "i32", "i64"]),
        said(&["--explain", "--rules", "paddle", "i32", "i64"]),
        said(&["--compare", "u8[2]", "i64[]"]),
        said(&["--compare", "f16", "int"]),
        said(&["fp32", "f32"]),
        said(&["--rules", "pytorch", "boolean", "f32"]),
    ];
    insta::assert_snapshot!(outputs.join("\n"));
    insta::assert_snapshot!(said(&["--compare"]));
    insta::assert_snapshot!(said(&["--table", "--rules", "paddle"]));
}

#[test]
fn paths_with_odd_names_work() {
    let folder = folder();
    let path: PathBuf = folder.path().join("a b=ü.v1.xml");
    fs::copy(folder.path().join("model.xml"), &path).unwrap();
    fs::copy(folder.path().join("model.bin"), path.with_extension("bin")).unwrap();
    let out = folder.path().join("ö.xml");
    assert_eq!(run(folder.path(), &["convert", path.to_str().unwrap(), "-o", out.to_str().unwrap()]).status, 0);
    assert!(out.with_extension("bin").exists());
}

#[test]
fn a_command_that_cannot_be_understood_gets_a_tip() {
    for (arguments, tip) in [
        (&["stats", "--json", "x.xml"][..], "write `typelift stats --format json x.xml`"),
        (&["check", "--werror", "x.xml"], "write `typelift check --deny warnings x.xml`"),
        (&["diff", "-o", "y.xml", "x.xml"], "write `typelift view x.xml AFTER.xml -o model.html`"),
        (&["diff", "--xyz", "a.xml", "b.xml"], "`typelift diff -h` lists the options"),
        (&["convert", "--algin", "pytorch", "x.xml"], "write `typelift convert x.xml --align pytorch -o OUT.xml`"),
        (&["dif", "x.xml"], "write `typelift diff x.xml AFTER.xml`"),
        (&["lint", "x.xml"], "write `typelift check x.xml`"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_typelift")).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("\n = help: {tip}\n")), "{said}");
    }
}

/// `--target` writes what the plugin of the release compiles. Only a file without any finding is read as it is.
#[test]
fn a_release_and_its_plugin_decide_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let save = |name: &str, text: &str| typelift::Model::from_text(text).unwrap().save(path.join(name)).unwrap();
    let masked = |mask: &str, first: &str| {
        format!(
            "q = Parameter : f32[1,2,?,8]\n{mask}\na = ScaledDotProductAttention-13({first}, q, q, m) {{causal=false}}\nr = Result(a)"
        )
    };
    save("boolean.xml", &masked("m = Parameter : boolean[1,1,?,?]", "q"));
    save("numbers.xml", &masked("m = Parameter : f32[1,1,?,?]", "q"));
    save("unknown.xml", "x = Parameter : f32[2]\ny = GroupQueryAttention-extension(x) : f32[2]\nr = Result(y)");
    let convert = |file: &str, options: &[&str]| {
        let fixed = ["convert", file, "-o", "out.xml", "--report", "out.json"];
        run(path, &[&fixed, options].concat())
    };
    let is_as_it_is = |run: &Run| run.stderr.contains("reads it as it is");
    for release in ["2023.3", "2024.0"] {
        assert!(is_as_it_is(&convert("numbers.xml", &["--target", release])), "{release}");
        assert_eq!(convert("unknown.xml", &["--target", release]).status, 1, "{release}");
    }
    assert!(is_as_it_is(&convert("boolean.xml", &["--target", "2024.0", "--for", "cpu"])));
    let rewritten = convert("boolean.xml", &["--target", "2023.3"]);
    assert!(rewritten.status == 0 && !is_as_it_is(&rewritten), "{rewritten:?}");
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(path.join("out.json")).unwrap()).unwrap();
    assert_eq!(report["target"]["masks"][0]["name"], "a", "{report}");
    for file in ["boolean.xml", "out.xml"] {
        let checked = run(path, &["check", file, "--target", "2023.3", "--for", "cpu"]);
        assert_eq!(
            (checked.status, checked.stdout.contains("boolean-mask")),
            (i32::from(file != "out.xml"), file != "out.xml")
        );
    }
    // An NPU takes no open lengths.
    assert!(!is_as_it_is(&convert("numbers.xml", &["--target", "2024.0", "--for", "npu"])));
    assert_eq!(convert("numbers.xml", &["--for", "cpu"]).status, 2);
    assert_eq!(convert("numbers.xml", &["--target", "2024.0", "--for", "f16"]).status, 2);
}
