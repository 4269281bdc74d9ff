//! Formats that `check` prints for other programs are valid.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::schemas::violations;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/diagnostics")
}

fn check(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output = command.arg("check").args(arguments).current_dir(cases()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Validates a log against the schema of the standard.
fn validate(log: &Value) -> Vec<String> {
    let schema = cases().join("../../oracle/sarif/sarif-schema-2.1.0.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let mut found = Vec::new();
    violations(&schema, &schema, log, "", &mut found);
    found
}

#[test]
fn sarif_is_valid() {
    for file in ["type-mismatch.xml", "xml-syntax.xml", "stale-port.xml", "."] {
        let (_, text) = check(&["--format", "sarif", file]);
        let log: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(validate(&log), [""; 0], "{file}");
        assert_eq!(log["runs"].as_array().unwrap().len(), 1);
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        for result in run["results"].as_array().unwrap() {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
        }
    }
}

#[test]
fn the_schema_of_sarif_refuses_what_is_not_sarif() {
    let (_, text) = check(&["--format", "sarif", "type-mismatch.xml"]);
    let log: Value = serde_json::from_str(&text).unwrap();
    let changes: [fn(&mut Value); 5] = [
        |log| log["runs"][0]["results"][0]["level"] = "fatal".into(),
        |log| log["runs"][0]["results"][0]["place"] = "here".into(),
        |log| log["runs"][0]["tool"] = serde_json::json!({}),
        |log| log["version"] = "2.0.0".into(),
        |log| log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0.into(),
    ];
    for change in changes {
        let mut changed = log.clone();
        change(&mut changed);
        assert!(!validate(&changed).is_empty(), "{changed}");
    }
}

#[test]
fn github_commands_are_one_line_each() {
    let (status, text) = check(&["--format", "github", "type-mismatch.xml"]);
    assert_eq!(status, Some(1));
    for line in text.lines() {
        let (head, message) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
        let (command, properties) = head.split_once(' ').unwrap();
        assert!(["error", "warning", "notice"].contains(&command), "{line}");
        assert!(properties.split(',').all(|property| property.contains('=')), "{line}");
        assert!(!message.is_empty());
    }
    assert!(text.starts_with("::error file=type-mismatch.xml,line=17,"), "{text}");
}

#[test]
fn denied_findings_count_and_allowed_ones_are_silent() {
    assert_eq!(check(&["stale-port.xml"]).0, Some(0));
    assert_eq!(check(&["--deny", "warnings", "stale-port.xml"]).0, Some(1));
    assert_eq!(check(&["--deny", "stale-port", "stale-port.xml"]).0, Some(1));
    assert_eq!(check(&["--deny", "unreachable-layer", "stale-port.xml"]).0, Some(0));
    let (status, text) = check(&["--deny", "warnings", "--allow", "stale-port", "stale-port.xml"]);
    assert!(status == Some(0) && !text.contains("stale-port]"), "{text}");
    assert_eq!(check(&["--allow", "type-mismatch", "stale-port.xml"]).0, Some(2));
    assert_eq!(check(&["--deny", "no-such-code", "stale-port.xml"]).0, Some(2));
}

#[test]
fn json_has_what_the_document_says() {
    let (_, text) = check(&["--format", "json", "type-mismatch.xml"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let found = &document["diagnostics"][0];
    assert_eq!(found["related"].as_array().unwrap().len(), 2);
    assert!(found["end_column"].as_u64() > found["column"].as_u64());
}
