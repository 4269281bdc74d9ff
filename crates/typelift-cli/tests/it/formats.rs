//! What `check` prints for machines has the form that they expect.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/diagnostics")
}

fn check(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output = command.arg("check").args(arguments).current_dir(cases()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// The parts of the SARIF 2.1.0 schema that a log of findings uses: each object with the keys that it must and may have.
fn validate(value: &Value, path: &str) {
    let (required, optional): (&[&str], &[&str]) = match path {
        "" => (&["version", "runs"], &["$schema"]),
        "/runs" => (&["tool"], &["results", "columnKind"]),
        "/runs/tool" => (&["driver"], &[]),
        "/runs/tool/driver" => (&["name"], &["version", "rules", "informationUri"]),
        "/runs/tool/driver/rules" => (&["id"], &["defaultConfiguration", "shortDescription"]),
        "/runs/tool/driver/rules/defaultConfiguration" => (&[], &["level"]),
        "/runs/results" => (&["message"], &["ruleId", "ruleIndex", "level", "locations", "relatedLocations"]),
        path if path.ends_with("/message") => (&["text"], &[]),
        path if path.ends_with("/locations") => (&[], &["physicalLocation", "logicalLocations"]),
        path if path.ends_with("/relatedLocations") => (&[], &["id", "message", "physicalLocation"]),
        path if path.ends_with("/physicalLocation") => (&["artifactLocation"], &["region"]),
        path if path.ends_with("/artifactLocation") => (&["uri"], &[]),
        path if path.ends_with("/region") => (&["startLine", "startColumn", "endLine", "endColumn"], &[]),
        path if path.ends_with("/logicalLocations") => (&["name"], &["fullyQualifiedName"]),
        path => unreachable!("no object is expected at {path}"),
    };
    let object = value.as_object().unwrap();
    for key in required {
        assert!(object.contains_key(*key), "{path} lacks {key}");
    }
    for (key, value) in object {
        assert!(required.contains(&key.as_str()) || optional.contains(&key.as_str()), "{path} has {key}");
        let inner = format!("{path}/{key}");
        match value {
            Value::Object(_) => validate(value, &inner),
            Value::Array(items) => items.iter().for_each(|item| validate(item, &inner)),
            Value::String(text) if key == "level" => assert!(["error", "warning", "note"].contains(&text.as_str())),
            Value::Number(number) if key.starts_with("start") => assert!(number.as_u64() > Some(0)),
            _ => {}
        }
    }
}

#[test]
fn sarif_is_valid() {
    for file in ["type-mismatch.xml", "xml-syntax.xml", "stale-port.xml", "."] {
        let (_, text) = check(&["--format", "sarif", file]);
        let log: Value = serde_json::from_str(&text).unwrap();
        validate(&log, "");
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
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md")).unwrap();
    let mut pending = vec![&document];
    let mut keys = std::collections::BTreeSet::new();
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(object) => {
                keys.extend(object.keys().map(String::as_str));
                pending.extend(object.values());
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "docs/json.md does not say what `{key}` is");
    }
    let found = &document["diagnostics"][0];
    assert_eq!(found["related"].as_array().unwrap().len(), 2);
    assert!(found["end_column"].as_u64() > found["column"].as_u64());
}
