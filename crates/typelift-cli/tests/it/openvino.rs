//! The Python that `verify`, `--verify` and `reduce` start: what it may run, how long, and what it may answer.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cli::{Run, command, folder};

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
