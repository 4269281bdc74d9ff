//! Runs the program on every file in `testdata/fixtures` as its first comment says, and compares the output with the
//! snapshot next to it. `testdata/fixtures/README.md` explains the comment.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use typelift::findings::Code;
use typelift::graph::OutputPort;
use typelift::{Graph, Model};

use crate::cli::{output, printed, words};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures").canonicalize().unwrap()
}

/// Returns every file under the fixtures, two levels deep: topic, case.
fn files(extension: &str) -> Vec<PathBuf> {
    let topics = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = topics.flat_map(|topic| std::fs::read_dir(topic).unwrap()).map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

/// Instructions in the first comment of a case.
#[derive(Debug, PartialEq)]
pub(crate) struct Directive {
    /// The expected exit status.
    status: i32,
    pub(crate) verb: String,
    pub(crate) options: Vec<String>,
}

impl Directive {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (_, rest) = text.split_once("<!--").ok_or("it has no comment")?;
        let (comment, _) = rest.split_once("-->").ok_or("its first comment has no end")?;
        let (command, sentence) = comment.trim().split_once('\n').ok_or("its first comment needs a sentence")?;
        let sentence = sentence.trim();
        if !sentence.ends_with('.') || ["RUN:", "FAIL:", "USAGE:"].iter().any(|word| sentence.contains(word)) {
            return Err(format!("{sentence:?} is not one sentence or more"));
        }
        let (word, command) =
            command.split_once(':').ok_or("its first comment does not begin with RUN:, FAIL: or USAGE:")?;
        let status = match word {
            "RUN" => 0,
            "FAIL" => 1,
            "USAGE" => 2,
            _ => return Err(format!("{word:?} is neither RUN nor FAIL nor USAGE")),
        };
        let mut words = words(command)?.into_iter();
        if words.next().as_deref() != Some("typelift") {
            return Err("it does not run typelift".to_owned());
        }
        let verb = words.next().ok_or("it names no verb")?;
        if !["convert", "rewrite", "infer", "check", "show", "stats", "why"].contains(&verb.as_str()) {
            return Err(format!("{verb:?} is no verb that takes a model"));
        }
        Ok(Self { status, verb, options: words.collect() })
    }

    /// True if the program writes a model on success.
    fn writes(&self) -> bool {
        let looks = self.options.iter().any(|option| ["--audit", "--dry-run", "--explain"].contains(&option.as_str()));
        ["convert", "rewrite"].contains(&self.verb.as_str()) && !looks
    }

    /// Checks the laws of the written model.
    fn laws(&self, source: &str, out: &Path) -> Result<(), String> {
        match self.verb.as_str() {
            "rewrite" => rewrite_laws(self, out),
            _ => convert_laws(self, source, out),
        }
    }
}

fn typelift(folder: &Path, arguments: &[&str]) -> Output {
    output(Command::new(env!("CARGO_BIN_EXE_typelift")).args(arguments).current_dir(folder))
}

/// Runs a case and returns its snapshot.
fn run(case: &Path) -> Result<String, String> {
    let source = std::fs::read_to_string(case).map_err(|error| error.to_string())?;
    let directive = Directive::parse(&source)?;
    let (topic, file) = (case.parent().unwrap(), case.file_name().unwrap().to_str().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out.xml");
    let writes = directive.writes();
    let mut arguments = vec![directive.verb.as_str(), file];
    arguments.extend(directive.options.iter().map(String::as_str));
    if writes {
        arguments.extend(["-o", out.to_str().unwrap()]);
    }
    let output = typelift(topic, &arguments);
    let place = printed(format!("{}/", scratch.path().display()).into_bytes());
    let (stdout, stderr) = (printed(output.stdout), printed(output.stderr).replace(&place, ""));
    if output.status.code() != Some(directive.status) {
        return Err(format!("exit status {:?}\n{stdout}{stderr}", output.status.code()));
    }
    let mut snapshot = String::new();
    for (name, text) in [("stderr", stderr), ("stdout", stdout)] {
        if !text.is_empty() {
            let _ = write!(snapshot, "--- {name}\n{}\n", text.trim_end());
        }
    }
    match (writes, directive.status) {
        (true, 1..) if out.exists() => return Err("it wrote a model with errors".to_owned()),
        (true, 0) => {
            let written = std::fs::read_to_string(&out).unwrap();
            let shown = typelift(scratch.path(), &["show", "out.xml"]);
            let _ = write!(snapshot, "--- show\n{}\n", printed(shown.stdout).trim_end());
            let _ = write!(snapshot, "--- diff\n{}", diff(&source, &written));
            directive.laws(&source, &out)?;
        }
        _ => {}
    }
    Ok(snapshot)
}

/// Returns the lines that differ.
fn diff(old: &str, new: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    let visible = |line: &str| line.replace('\r', "<CR>");
    let mut out = String::new();
    for change in diff.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Equal => {}
            tag => drop(writeln!(out, "{tag}{}", visible(change.value().trim_end_matches('\n')))),
        }
    }
    if out.is_empty() { "none\n".to_owned() } else { out }
}

/// Checks laws of every conversion: repeating it changes nothing, and every Result keeps its names.
fn convert_laws(directive: &Directive, source: &str, out: &Path) -> Result<(), String> {
    let written = std::fs::read_to_string(out).unwrap();
    let mut arguments = vec!["convert", "out.xml", "-o", "-"];
    arguments.extend(
        directive.options.iter().map(String::as_str).filter(|o| ["--canonical", "--keep-noop-converts"].contains(o)),
    );
    let again = typelift(out.parent().unwrap(), &arguments);
    // A conversion of precision keeps promotions, which a conversion without options replaces.
    let has_promotions = written.contains("type=\"ConvertPromoteTypes\"");
    if !has_promotions && printed(again.stdout) != written {
        return Err("a second conversion changes it".to_owned());
    }
    let [before, after] = [source, &written].map(|text| Model::from_xml(text).unwrap());
    for (before, after) in results(before.graph()).into_iter().zip(results(after.graph())) {
        if !before.is_subset(&after) {
            return Err(format!("a Result named {before:?} is now named {after:?}"));
        }
    }
    Ok(())
}

/// Checks laws of every rewrite: the model has no errors, and repeating the rules finds nothing.
fn rewrite_laws(directive: &Directive, out: &Path) -> Result<(), String> {
    let folder = out.parent().unwrap();
    let checked = typelift(folder, &["check", "out.xml"]);
    if !checked.status.success() {
        return Err(format!("check finds errors in it\n{}", printed(checked.stderr)));
    }
    let mut statements = directive.options.chunks(2).filter(|pair| pair[0] == "-e");
    if statements.all(|pair| pair[1].contains("=>")) {
        let mut arguments = vec!["rewrite", "out.xml", "--dry-run"];
        arguments.extend(directive.options.iter().map(String::as_str));
        let again = printed(typelift(folder, &arguments).stdout);
        if again != "out.xml: no rule applied\n" {
            return Err(format!("the rules apply again\n{again}"));
        }
    }
    Ok(())
}

/// Returns for each Result its name and those of its tensor.
fn results(graph: &Graph) -> Vec<BTreeSet<String>> {
    let results = graph.layers().filter(|layer| layer.ty() == "Result");
    let names = results.map(|layer| {
        let tensor = graph.producers(layer.id()).into_iter().flatten().filter_map(|output| graph.output(output));
        tensor.flat_map(OutputPort::names).chain([layer.name().to_owned()]).collect()
    });
    names.collect()
}

#[test]
fn every_case_gives_its_snapshot() {
    let cases = files("xml");
    assert!(cases.len() > 50, "the fixtures are not where they were");
    let mut failed = Vec::new();
    for case in &cases {
        let name = case.strip_prefix(folder()).unwrap().with_extension("").display().to_string();
        match run(case) {
            Err(reason) => failed.push(format!("{name}: {reason}")),
            Ok(snapshot) => {
                let mut settings = insta::Settings::clone_current();
                settings.set_snapshot_path(case.parent().unwrap());
                settings.set_prepend_module_to_snapshot(false);
                settings.set_omit_expression(true);
                let stem = case.file_stem().unwrap().to_str().unwrap();
                let compare = || settings.bind(|| insta::assert_snapshot!(stem, snapshot));
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)).is_err() {
                    failed.push(format!("{name}: not as in its snapshot"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} of {} cases fail:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn every_snapshot_has_its_case() {
    let orphans: Vec<_> =
        files("snap").into_iter().filter(|snapshot| !snapshot.with_extension("xml").exists()).collect();
    assert!(orphans.is_empty(), "{orphans:?}");
}

#[test]
fn every_diagnostic_code_has_a_case_of_its_name() {
    for code in Code::ALL {
        let snapshot = folder().join("diagnostics").join(code.name()).with_extension("snap");
        let text = std::fs::read_to_string(&snapshot).unwrap_or_else(|_| panic!("no case for {code}"));
        assert!(text.contains(&format!("[{code}]: ")), "{} does not show it", snapshot.display());
    }
}

#[test]
fn a_header_with_a_mistake_is_refused() {
    let parse = |comment: &str| Directive::parse(&format!("<?xml version=\"1.0\"?>\n<!-- {comment} -->\n<net/>"));
    let good = |status, verb: &str, options: &[&str]| {
        Ok(Directive { status, verb: verb.to_owned(), options: options.iter().map(|&word| word.to_owned()).collect() })
    };
    assert_eq!(parse("FAIL: typelift check --all\nIt is empty."), good(1, "check", &["--all"]));
    assert_eq!(
        parse("USAGE: typelift rewrite -e 'Rleu(x) => x'\nA quote."),
        good(2, "rewrite", &["-e", "Rleu(x) => x"])
    );
    for bad in [
        "RUN typelift check\nNo colon.",
        "RUNS: typelift check\nNo such word.",
        "RUN: typelifts check\nAnother program.",
        "RUN: typelift lint\nNo such verb.",
        "RUN: typelift check",
        "RUN: typelift check\nRUN: typelift show\nTwo commands.",
        "RUN: typelift rewrite -e 'x\nAn open quote.",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    assert!(Directive::parse("<net/>").is_err());
}

/// Returns the commands of a JSON document of `check` that write a model.
fn commands(document: &serde_json::Value) -> Vec<String> {
    let mut found = Vec::new();
    for finding in document["diagnostics"].as_array().into_iter().flatten() {
        found.extend(finding["fix"].as_str().map(str::to_owned));
        let help = finding["help"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
        let quoted = help.flat_map(|help| help.split('`').skip(1).step_by(2)).map(str::to_owned);
        found.extend(quoted.filter(|it| it.starts_with("typelift ") && it.contains(" -o ")));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A user copies the command below a finding and expects a model without errors.
#[test]
fn every_printed_command_writes_a_model_without_errors() {
    let (mut failed, mut count) = (Vec::new(), 0);
    for case in files("xml") {
        let (topic, file) = (case.parent().unwrap(), case.file_name().unwrap().to_str().unwrap());
        let checked = typelift(topic, &["check", "--format", "json", file]);
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(&checked.stdout) else { continue };
        for command in commands(&document) {
            let scratch = tempfile::tempdir().unwrap();
            let out = scratch.path().join("fixed.xml").to_str().unwrap().to_owned();
            let arguments: Vec<_> = words(&command).unwrap().into_iter().skip(1).collect();
            let arguments: Vec<_> =
                arguments.iter().map(|word| if word == "fixed.xml" { out.as_str() } else { word }).collect();
            count += 1;
            let is_fixed =
                typelift(topic, &arguments).status.success() && typelift(topic, &["check", &out]).status.success();
            failed.extend((!is_fixed).then(|| format!("{}: {command}", case.display())));
        }
    }
    assert!(count > 10, "only {count} commands");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
