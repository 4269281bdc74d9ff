//! The git commands of `docs/ci.md` do what the page says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = "../../docs/ci.md";

const MODEL: &str = r#"<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="6"/>
<output><port id="0" precision="FP32"><dim>6</dim></port></output></layer>
<layer id="1" name="shape" type="Const" version="opset1"><data element_type="i64" shape="2" offset="0" size="16"/>
<output><port id="0" precision="I64"><dim>2</dim></port></output></layer>
<layer id="2" name="reshape" type="Reshape" version="opset1"><data special_zero="false"/>
<input><port id="0"/><port id="1"/></input><output><port id="2" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
<layer id="3" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>
"#;

/// Runs a script as GitHub does, with the program in its path, and returns its output.
fn script(folder: &Path, text: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_typelift")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-ec", text]).current_dir(folder).envs([
        ("PATH", &*path),
        ("HOME", folder.to_str().unwrap()),
        ("BASE", "HEAD~1"),
        ("GITHUB_STEP_SUMMARY", "../summary"),
    ]);
    let done = shell.output().unwrap();
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Returns a repository with the model in a first commit, and the effect of `change` on the folder of the models in a
/// second one.
fn committed(outer: &Path, change: impl Fn(&Path)) -> std::path::PathBuf {
    let models = outer.join("repository/models");
    fs::create_dir_all(&models).unwrap();
    fs::write(models.join("m.xml"), MODEL).unwrap();
    fs::write(models.join("m.bin"), [2_i64, 3].map(i64::to_le_bytes).concat()).unwrap();
    let commit = "git add -A && git -c user.name=n -c user.email=e commit -qm one";
    let repository = outer.join("repository");
    script(&repository, &format!("git init -q . && {commit}"));
    change(&models);
    script(&repository, commit);
    repository
}

/// Returns the lines of the page from the one with this start to the end of the block.
fn recipe(start: &str) -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let block = page.lines().skip_while(|line| !line.trim_start().starts_with(start));
    block.take_while(|line| *line != "```").collect::<Vec<_>>().join("\n")
}

#[test]
fn a_changed_comment_is_no_change_of_shapes_for_git_difftool() {
    let folder = tempfile::tempdir().unwrap();
    let repository = committed(folder.path(), |models| {
        fs::write(models.join("m.xml"), MODEL.replace("<net ", "<!-- another comment --><net ")).unwrap();
    });
    let said = script(&repository, &recipe("git difftool"));
    assert!(said.contains("same") || !said.contains("reshape"), "{said}");
    assert!(!said.contains("[2,3]"), "{said}");
}

#[test]
fn a_commit_that_changes_only_weights_is_in_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let repository = committed(folder.path(), |models| {
        fs::write(models.join("m.bin"), [3_i64, 2].map(i64::to_le_bytes).concat()).unwrap();
    });
    script(&repository, &recipe("git worktree add"));
    let summary = fs::read_to_string(folder.path().join("summary")).unwrap();
    assert!(summary.contains("### models/m.xml"), "{summary}");
    assert!(summary.contains("shape"), "{summary}");
}
