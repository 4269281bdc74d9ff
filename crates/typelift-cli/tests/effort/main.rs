//! Cost of every command on adversarial models: in proportion to their size, in figures that do not depend on a clock.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod misshapen;
#[path = "../it/verbs.rs"]
mod verbs;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use allocation_counter::measure;

use self::misshapen::MISSHAPEN;

/// The file for the results of a run that another process started.
const REPORT: &str = "TYPELIFT_EFFORT_REPORT";

/// Returns the cost of a command per byte of the model: allocations, their total bytes, and the peak bytes.
fn effort(folder: &Path, verb: &[&str], text: &str) -> [f64; 3] {
    fs::write(folder.join("model.xml"), text).unwrap();
    let word = |word: &&str| -> OsString {
        if word.contains('.') && !word.starts_with("20") { folder.join(word).into() } else { word.into() }
    };
    let arguments: Vec<OsString> = std::iter::once("typelift".into()).chain(verb.iter().map(word)).collect();
    let info = measure(|| assert!(typelift_cli::run(arguments) <= 2));
    [info.count_total, info.bytes_total, info.bytes_max].map(|number| number as f64 / text.len() as f64)
}

/// Commands with a higher cost. The fixes that `check` and `view` test in nested bodies cost more the deeper these are, up
/// to the limit of 64. More than 64 bodies of a layer are findings, for which `check` reads a damaged line with each
/// change of one character, at a fixed cost. `view` allocates in total the square of the outputs of a Split, but not at one time.
const DEARER: [(&str, &str); 4] =
    [("check", "bodies"), ("check", "bodies in bodies"), ("view", "bodies in bodies"), ("view", "outputs of a Split")];

/// Returns the models on which the cost of a command is more than linear.
fn excesses(verb: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let measured =
        MISSHAPEN.iter().filter(|(name, _)| !DEARER.contains(&(verb[0], name))).filter_map(|(name, shape)| {
            effort(folder.path(), verb, &shape(2));
            let [small, large] = [40, 160].map(|size| effort(folder.path(), verb, &shape(size)));
            // A quadratic cost quadruples per byte, and a fixed cost decreases.
            let is_linear = (0..3).all(|at| large[at] < 2.0 * small[at] + 0.01);
            (!is_linear).then(|| format!("{name}, {verb:?}: {small:.3?} and {large:.3?} for a byte\n"))
        });
    measured.collect()
}

/// Checks all bounds on the cost of a command. Commands write to the standard output of the process, which the harness
/// does not capture, so the test runs again in its own process.
fn hold(name: &str) {
    let test = format!("{name}_is_in_proportion_to_misshapen_models");
    let Some(report) = report_of(&test) else { return };
    let chosen = verbs::VERBS.iter().filter(|verb| verb[0] == name);
    fs::write(report, chosen.flat_map(|verb| excesses(verb)).collect::<String>()).unwrap();
}

/// Returns the file for the excesses of a test. The first process runs the test in a second one, requires an empty
/// file, and gets `None`.
fn report_of(test: &str) -> Option<OsString> {
    if let Some(report) = std::env::var_os(REPORT) {
        return Some(report);
    }
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "--nocapture", test]);
    let run = again.env(REPORT, report.path()).stdout(Stdio::null()).output().unwrap();
    let excesses = fs::read_to_string(report.path()).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(excesses.is_empty(), "{excesses}");
    None
}

/// The harness does not capture the standard output of the process, so the test runs again in its own process.
#[test]
fn to_mend_one_finding_after_the_other_takes_a_few_looks_at_all() {
    let Some(report) = report_of("to_mend_one_finding_after_the_other_takes_a_few_looks_at_all") else { return };
    let folder = tempfile::tempdir().unwrap();
    let pair = |at: usize| {
        let (from, to) = (2 * at, 2 * at + 1);
        let data = r#"<data element_type="f32" shape=""/><output><port id="1" precision="FP32"/></output>"#;
        format!(
            r#"<layer id="{from}" name="p{from}" type="Parameter" version="opset1">{data}</layer>
            <layer id="{to}" name="r{to}" type="Reslt" version="opset1"><input><port id="0" precision="FP32"/></input></layer>"#
        )
    };
    let text = misshapen::model((0..60).map(pair), (0..60).map(|at| (2 * at, 2 * at + 1)));
    let [look, fix] = [&["check", "model.xml"][..], &["check", "--fix", "--diff", "model.xml"]].map(|verb| {
        effort(folder.path(), verb, &text);
        effort(folder.path(), verb, &text)[1]
    });
    let excess = if fix < 10.0 * look { String::new() } else { format!("{look} and {fix}") };
    fs::write(report, excess).unwrap();
}

/// The path of an entry can be as long as a command line.
#[test]
fn a_path_of_metadata_is_written_in_proportion_to_its_length() {
    let Some(report) = report_of("a_path_of_metadata_is_written_in_proportion_to_its_length") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [small, large] = [500, 2000].map(|parts| {
        let statement = format!("info : {}a = \"1\"", "a/".repeat(parts));
        let text = misshapen::model([], []);
        let cost = || effort(folder.path(), &["rewrite", "-e", &statement, "model.xml", "-o", "out.xml"], &text);
        cost();
        cost().map(|cost| cost / parts as f64)
    });
    let is_linear = (0..3).all(|at| large[at] < 1.3 * small[at]);
    fs::write(report, if is_linear { String::new() } else { format!("{small:?} and {large:?}") }).unwrap();
}

#[test]
fn check_is_in_proportion_to_misshapen_models() {
    hold("check");
}

#[test]
fn convert_is_in_proportion_to_misshapen_models() {
    hold("convert");
}

#[test]
fn rewrite_is_in_proportion_to_misshapen_models() {
    hold("rewrite");
}

#[test]
fn infer_is_in_proportion_to_misshapen_models() {
    hold("infer");
}

#[test]
fn show_is_in_proportion_to_misshapen_models() {
    hold("show");
}

#[test]
fn stats_is_in_proportion_to_misshapen_models() {
    hold("stats");
}

#[test]
fn diff_is_in_proportion_to_misshapen_models() {
    hold("diff");
}

#[test]
fn why_is_in_proportion_to_misshapen_models() {
    hold("why");
}

#[test]
fn view_is_in_proportion_to_misshapen_models() {
    hold("view");
}
