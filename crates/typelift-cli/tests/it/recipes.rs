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

/// Copies the model of the tutorial, which has an error, to `model.xml` of a folder.
fn tutorial(folder: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tutorial");
    fs::copy(from.join("classifier.xml"), folder.join("model.xml")).unwrap();
    fs::copy(from.join("classifier.bin"), folder.join("model.bin")).unwrap();
}

#[test]
fn git_shows_models_with_errors_and_other_xml() {
    let folder = tempfile::tempdir().unwrap();
    let commit = "git add -A && git -c user.name=n -c user.email=e commit -qm one";
    script(folder.path(), "git init -q .");
    tutorial(folder.path());
    fs::write(folder.path().join("pom.xml"), "<project><a/></project>\n").unwrap();
    script(folder.path(), &format!("{}\n{commit}", recipe("echo '*.xml diff=typelift'")));
    script(folder.path(), "typelift convert model.xml --in-place 2> said");
    fs::write(folder.path().join("pom.xml"), "<project><b/></project>\n").unwrap();
    script(folder.path(), commit);
    let log = script(folder.path(), "git log -p 2> said");
    assert_eq!(log.lines().filter(|line| line.starts_with("commit ")).count(), 2, "{log}");
    assert!(log.contains("+29 norm/offset/norm/shifted.1 = Convert"), "{log}");
    assert!(log.contains("-<project><a/></project>\n+<project><b/></project>"), "{log}");
}

#[test]
fn the_hook_skips_other_xml_and_checks_models_of_changed_weights() {
    let hooks = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.pre-commit-hooks.yaml")).unwrap();
    let value = |key: &str| hooks.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap().to_owned();
    let (entry, files) = (value("entry: "), value("files: "));
    assert_eq!(files, r"\.(xml|bin)$");
    let folder = tempfile::tempdir().unwrap();
    tutorial(folder.path());
    script(folder.path(), "typelift convert model.xml --in-place 2> said");
    fs::write(folder.path().join("pom.xml"), "<project><a/></project>\n").unwrap();
    fs::write(folder.path().join("other.bin"), "not weights").unwrap();
    script(folder.path(), &format!("{entry} pom.xml other.bin 2> said"));
    script(folder.path(), &format!("{entry} pom.xml model.xml model.bin 2> said"));
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    assert!(said.contains("2 files: 1 without errors, 1 skipped"), "{said}");
    fs::write(folder.path().join("model.bin"), "").unwrap();
    let found = script(folder.path(), &format!("{entry} model.bin 2> said || true"));
    assert!(found.contains("wrong-weights"), "{found}");
}

#[test]
fn check_for_f16_is_satisfied_by_the_command_that_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    tutorial(folder.path());
    let gate = "COLUMNS=400 typelift check --for f16 --deny risky";
    script(folder.path(), "typelift convert model.xml -o repaired.xml 2> said");
    let gate = gate.replace("risky", "square-overflow,epsilon-lost,exponent-overflow,mask-overflow");
    let found = script(folder.path(), &format!("{gate} repaired.xml || echo refused"));
    assert!(found.contains("refused"), "{found}");
    let (_, rest) = found.split_once("= fix: `").unwrap();
    let (command, _) = rest.split_once('`').unwrap();
    assert!(command.contains("--mark-keeps") && command.ends_with("-o fixed.xml"), "{command}");
    script(folder.path(), &format!("{command} 2> said\n{gate} fixed.xml"));
}

#[test]
fn rewriting_a_model_that_openvino_refuses_says_so() {
    let folder = tempfile::tempdir().unwrap();
    tutorial(folder.path());
    script(folder.path(), "typelift rewrite model.xml -e 'rename image img' -o renamed.xml 2> said");
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    assert!(said.contains("OpenVINO refuses the result, which has 1 error"), "{said}");
}

#[test]
fn show_says_which_converts_lose_what() {
    let folder = tempfile::tempdir().unwrap();
    tutorial(folder.path());
    script(folder.path(), "typelift convert model.xml -o repaired.xml 2> said");
    let shown = script(folder.path(), "typelift show --only Convert --losses repaired.xml");
    // A Convert of a constant of i64, whose values f32 keeps, is exact too.
    assert!(shown.lines().count() == 2 && shown.matches("  # exact").count() == 2, "{shown}");
}
