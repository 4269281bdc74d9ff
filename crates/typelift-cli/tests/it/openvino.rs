//! The Python that `verify`, `--verify` and `reduce` start: what it may run, how long, and what it may answer.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cli::{Run, command, folder, run};

/// Commands that start the Python of `--python`. `model.xml` and `other.xml` differ.
const STARTING: [&[&str]; 7] = [
    &["verify", "model.xml", "other.xml"],
    &["convert", "model.xml", "-o", "out.xml", "--verify"],
    &["rewrite", "model.xml", "-e", "rename x y", "-o", "out.xml", "--verify"],
    &["check", "--fix", "model.xml", "-o", "out.xml", "--verify"],
    &["reduce", "model.xml", "-o", "out.xml", "--refused"],
    &["reduce", "model.xml", "-o", "out.xml", "--differs", "other.xml"],
    &["reduce", "model.xml", "-o", "out.xml", "--differs", "other.xml", "--inputs", "in.npz"],
];

/// Returns a folder with two models.
fn models() -> TempDir {
    let folder = folder();
    for ending in ["xml", "bin"] {
        let [from, to] = ["model", "other"].map(|stem| folder.path().join(stem).with_extension(ending));
        fs::copy(from, to).unwrap();
    }
    folder
}

/// Writes a program.
fn program(path: &Path, text: &str) -> PathBuf {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

/// Runs a command with variables.
fn run_as(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let output = command(folder, arguments).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Modules that Python imports when it starts, that the script imports, and that they import in turn.
const MODULES: [&str; 12] = [
    "json",
    "struct",
    "signal",
    "os",
    "openvino",
    "numpy",
    "encodings",
    "site",
    "sitecustomize",
    "usercustomize",
    "re",
    "threading",
];

/// The archive of a model can contain a `struct.py` or an `openvino.py`.
#[test]
fn no_module_of_the_current_folder_is_run() {
    if !Path::new("/usr/bin/python3").exists() {
        return;
    }
    for line in STARTING {
        for search in [None, Some(""), Some("."), Some(":/usr/lib"), Some("./:/usr/lib:"), Some("sub")] {
            let (folder, elsewhere) = (models(), tempfile::tempdir().unwrap());
            let ran = elsewhere.path().join("ran");
            fs::create_dir_all(folder.path().join("sub")).unwrap();
            for module in MODULES {
                let text = format!("open({ran:?}, 'a').write('{module} ')\nraise ImportError('planted')\n");
                for place in ["", "sub/"] {
                    fs::write(folder.path().join(format!("{place}{module}.py")), &text).unwrap();
                }
            }
            let line = [line, &["--python", "/usr/bin/python3"]].concat();
            let variables: Vec<_> = search.iter().map(|&parts| ("PYTHONPATH", parts)).collect();
            let done = run_as(folder.path(), &line, &variables);
            assert_eq!(fs::read_to_string(&ran).ok(), None, "{line:?} {search:?} {done:?}");
        }
    }
}

/// Packages of the user are still found.
#[test]
fn the_python_gets_only_whole_paths_to_search() {
    let folder = models();
    let python = program(&folder.path().join("python"), "#!/bin/sh\nenv > said\nexit 1\n");
    let parts = "/usr/bin::/bin:.:lib:";
    let variables = ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH"].map(|name| (name, parts));
    run_as(folder.path(), &["verify", "model.xml", "other.xml", "--python", python.to_str().unwrap()], &variables);
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    for (name, _) in variables {
        assert!(said.lines().any(|line| line == format!("{name}=/usr/bin:/bin")), "{name}: {said}");
    }
    assert!(said.contains("PYTHONSAFEPATH=1\n"), "{said}");
    // A variable with nothing left is removed: empty, it would mean the current folder.
    run_as(
        folder.path(),
        &["verify", "model.xml", "other.xml", "--python", python.to_str().unwrap()],
        &[("PYTHONPATH", ".")],
    );
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    assert!(!said.contains("PYTHONPATH"), "{said}");
}

/// Returns a message of the Python: JSON after its length, and bytes.
fn message(head: &str, blobs: &[u8]) -> Vec<u8> {
    [&(head.len() as u64).to_le_bytes()[..], head.as_bytes(), blobs].concat()
}

/// Writes a program that stands for the Python. It answers these bytes, whatever it is asked, and then runs a script.
fn answering(folder: &Path, replies: &[u8], then: &str) -> String {
    fs::write(folder.join("replies"), replies).unwrap();
    let text = format!("#!/bin/sh\ncd {}\ncat replies\n{then}\n", folder.display());
    program(&folder.join("python"), &text).to_str().unwrap().to_owned()
}

/// Replies to the requests that come before a model is run.
fn loaded() -> Vec<u8> {
    let heads = ["{}", r#"{"version": "1"}"#, r#"{"outputs": 1, "config": {}}"#, r#"{"outputs": 1, "config": {}}"#];
    heads.iter().flat_map(|head| message(head, b"")).collect()
}

/// True if a process runs, and is not only remembered by its parent.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_broken_answer_ends_the_run_in_time() {
    let deep = [&100_000_u64.to_le_bytes()[..], &[b'['; 100_000]].concat();
    let lies = message(r#"{"outputs": [{"type": "f32", "shape": [1000000]}], "blobs": [4]}"#, &[0; 4]);
    let many = message(r#"{"outputs": [], "blobs": []}"#, b"");
    for (replies, then) in [
        (b"garbage! garbage!".to_vec(), "exec sleep 60"),
        (deep, "exec sleep 60"),
        (Vec::new(), "exec sleep 60"),
        (Vec::new(), "exec >&-; exec sleep 60"),
        (loaded(), "exec >&-; exec sleep 60"),
        ([loaded(), message("{}", b"")].concat(), "exec sleep 60"),
        ([loaded(), many].concat(), "exec sleep 60"),
        ([loaded(), lies.clone(), lies].concat(), "exec sleep 60"),
    ] {
        let folder = models();
        let python = answering(folder.path(), &replies, then);
        let begin = Instant::now();
        let line = ["verify", "model.xml", "other.xml", "--shape", "x=[]", "--timeout", "2", "--python", &python];
        let run = run(folder.path(), &line);
        assert_eq!(run.status, 2, "{run:?}");
        assert!(!run.stderr.contains("panicked") && !run.stderr.contains("internal error"), "{run:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{run:?}");
    }
}

/// OpenVINO's own package starts processes when it is imported.
#[test]
fn what_the_python_started_ends_with_it() {
    let folder = models();
    let python = answering(folder.path(), b"garbage", "sleep 60 & echo $! > pid; exec sleep 60");
    let line = ["verify", "model.xml", "other.xml", "--timeout", "1", "--python", &python];
    assert_eq!(run(folder.path(), &line).status, 2);
    assert!(!runs(&fs::read_to_string(folder.path().join("pid")).unwrap()));
}

#[test]
fn a_path_that_is_no_text_is_sent_as_it_is() {
    let folder = models();
    let name = |ending: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(&[b"\xff.", ending].concat()));
    for ending in ["xml", "bin"] {
        fs::rename(folder.path().join("model").with_extension(ending), name(ending.as_bytes())).unwrap();
    }
    let python = answering(folder.path(), &loaded(), "cat > asked");
    let mut command = command(folder.path(), &["verify", "--timeout", "2", "--shape", "x=[]", "--python", &python]);
    command.args([name(b"xml"), name(b"xml")]).output().unwrap();
    let asked = fs::read(folder.path().join("asked")).unwrap();
    assert!(asked.windows(5).any(|part| part == b"\xff.bin"), "{}", String::from_utf8_lossy(&asked));
}

/// Runs the real script with a module that stands for OpenVINO, and returns the folder of that module.
fn with_module(text: &str) -> TempDir {
    let modules = tempfile::tempdir().unwrap();
    fs::write(modules.path().join("openvino.py"), text).unwrap();
    fs::write(modules.path().join("openvino_telemetry.py"), "open('sent', 'w')\n").unwrap();
    modules
}

#[test]
fn no_telemetry_is_sent() {
    if !Path::new("/usr/bin/python3").exists() {
        return;
    }
    let folder = models();
    let modules = with_module(
        "try:\n    import openvino_telemetry\nexcept ImportError:\n    open('refused', 'w')\nraise ImportError('none')\n",
    );
    let search = [("PYTHONPATH", modules.path().to_str().unwrap())];
    run_as(folder.path(), &["verify", "model.xml", "other.xml", "--python", "/usr/bin/python3"], &search);
    let made = ["refused", "sent"].map(|name| folder.path().join(name).exists());
    assert_eq!(made, [true, false]);
}

/// A program that is killed cannot end its Python, which must see it.
#[test]
fn a_python_ends_when_the_program_is_killed() {
    if !Path::new("/usr/bin/python3").exists() {
        return;
    }
    let folder = models();
    let text = "import os, subprocess, time\nother = subprocess.Popen(['sleep', '60'])\n\
                open('pids.new', 'w').write(f'{os.getpid()} {other.pid}')\nos.rename('pids.new', 'pids')\ntime.sleep(60)\n";
    let modules = with_module(text);
    let mut command = command(folder.path(), &["verify", "model.xml", "other.xml", "--python", "/usr/bin/python3"]);
    let mut child = command.env("PYTHONPATH", modules.path()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let pids = loop {
        match fs::read_to_string(folder.path().join("pids")) {
            Ok(pids) => break pids,
            Err(_) => assert!(begin.elapsed() < Duration::from_secs(60), "Python did not start"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(pids.split(' ').all(runs), "{pids}");
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    while pids.split(' ').any(runs) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{pids} are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Advice is a field of a reply, whatever its text contains.
#[test]
fn a_reply_sends_its_help_apart_from_its_error() {
    let folder = models();
    let refused = message(r#"{"error": "no `A`\nhelp: none", "help": "write `B`"}"#, b"");
    let replies = [message("{}", b""), message(r#"{"version": "1"}"#, b"").repeat(2), refused.repeat(4)].concat();
    let python = answering(folder.path(), &replies, "exec sleep 60");
    let line = ["verify", "--format", "json", "--shape", "x=[]", "model.xml", "other.xml", "--python", &python];
    let run = run(folder.path(), &line);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let error = &reply["error"];
    assert_eq!(error["help"], "write `B`", "{run:?}");
    assert_eq!(error["message"], "OpenVINO cannot run model A: no `A`\nhelp: none");
}

/// Files of inputs are read by Python: pipes, and archives whose arrays do not fit into memory.
#[test]
fn files_of_inputs_are_regular_and_not_too_large() {
    checked(CHECKS);
}

#[test]
fn the_script_says_what_a_device_took_and_has() {
    checked(PROPERTIES);
}

/// Runs lines after the script in a Python that has NumPy, if there is one.
fn checked(lines: &str) {
    let named = std::env::var("TYPELIFT_PYTHON").unwrap_or_default();
    let python = ["/usr/bin/python3", &named];
    let has_numpy = |python: &&&str| {
        std::process::Command::new(python).args(["-c", "import numpy"]).output().is_ok_and(|run| run.status.success())
    };
    let Some(python) = python.iter().find(has_numpy) else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "{}\n{lines}",
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openvino/runner.py"))
            .unwrap()
            .replace("if __name__", "if 0 and __name__")
    );
    let run = std::process::Command::new(python).args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// Loads models with a module that stands for OpenVINO, whose device computes in bf16 unless it is asked for another precision.
const PROPERTIES: &str = r#"
from types import SimpleNamespace

HINT = "INFERENCE_PRECISION_HINT"

class Core:
    available_devices = ["CPU"]
    def get_property(self, device, name):
        return {"SUPPORTED_PROPERTIES": [HINT, "KV_CACHE_PRECISION"]}[name]
    def read_model(self, text, weights):
        return None
    def compile_model(self, model, device, config):
        if "odd" in config.values():
            raise RuntimeError("cannot take odd .\nSupported values: even, uneven")
        answers = {HINT: "bf16", "INFERENCE_NUM_THREADS": 2, **config}
        if device != "CPU" or set(config) - {HINT, "KV_CACHE_PRECISION"}:
            raise RuntimeError("no")
        return SimpleNamespace(get_property=answers.__getitem__, create_infer_request=lambda: None)

module = SimpleNamespace(Core=Core, Tensor=lambda *_: None, Type=type("Type", (), {"u8": 0}))
_openvino = lambda: module
load = lambda config, defaults, device="CPU": Runner().load(1, b"", b"", device, config, defaults, False)
assert load({}, {})[HINT] == "bf16", "a precision that was not asked for is answered"
assert load({}, {HINT: "f32"})[HINT] == "f32"
for config, device, reason, help in [
    ({}, "GPU", "it finds no device `GPU`", "the devices here are CPU"),
    ({"KV_CACHE": "u8"}, "CPU", "CPU has no property `KV_CACHE`", "did you mean `KV_CACHE_PRECISION`?"),
    ({HINT: "odd"}, "CPU", "cannot take odd .\nSupported values: even, uneven", "write one of them, such as even"),
]:
    try:
        load(config, {}, device)
    except Unknown as error:
        assert (str(error), error.help) == (reason, help), (str(error), error.help)
    else:
        assert False, config
"#;

/// Calls the reader of the script with hostile files.
const CHECKS: &str = r#"
import io, numpy, zipfile

def header(shape, descr="|u1"):
    stream = io.BytesIO()
    numpy.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()

def refused(path, reason):
    try:
        Runner.arrays(None, path, 1 << 20)
    except (ValueError, Unknown) as error:
        assert reason in str(error), error
    else:
        assert False, path

os.mkfifo("pipe.npz")
refused("pipe.npz", "it is not a regular file")
refused("/dev/zero", "it is not a regular file")
open("lie.npy", "wb").write(header((1 << 40,)))
refused("lie.npy", "fewer values")
with open("hole.npy", "wb") as file:
    file.write(header((1 << 30,)))
    file.truncate(1 << 31)
refused("hole.npy", "more memory than the limit of 1048576 bytes")
with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    with archive.open("a.npy", "w", force_zip64=True) as stream:
        stream.write(header((1 << 24,)) + bytes(1 << 24))
refused("bomb.npz", "more memory than the limit of 1048576 bytes")
with zipfile.ZipFile("lie.npz", "w") as archive:
    archive.writestr("a.npy", header((1 << 40,)))
refused("lie.npz", "fewer values")
open("mixed.npy", "wb").write(header((1 << 40,)) + open("lie.npz", "rb").read())
refused("mixed.npy", "fewer values")
with zipfile.ZipFile("torch.npz", "w") as archive:
    archive.writestr("model/data.pkl", b"\x80\x02")
refused("torch.npz", "is a PyTorch file or a pickle")
for name, start, reason in [
    ("cut.npz", b"PK\x03\x04", "the file is cut off"),
    ("pickle.npz", b"\x80\x04", "is a PyTorch file or a pickle"),
    ("pointer.npz", b"version https://git-lfs.github.com/spec/v1", "is a Git LFS pointer"),
    ("a.safetensors", b"\x40\0\0\0\0\0\0\0{", "is a safetensors file"),
]:
    open(name, "wb").write(start)
    refused(name, reason)
"#;
