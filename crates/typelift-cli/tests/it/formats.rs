//! What `check` prints for machines has the form that they expect.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
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

/// What is wrong with a value by a JSON schema: the keywords of draft 7 that the schema of SARIF uses.
fn violations(root: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    const NO_RULES: [&str; 7] = ["$schema", "$id", "title", "description", "default", "definitions", "format"];
    for (keyword, rule) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                violations(root, root.pointer(pointer).unwrap(), value, path, found);
                true
            }
            "type" => match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                other => panic!("the schema has the type {other}"),
            },
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64() >= rule.as_f64(),
            "maximum" => value.as_f64() <= rule.as_f64(),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
            "uniqueItems" => value
                .as_array()
                .is_none_or(|items| items.iter().enumerate().all(|(at, item)| !items[..at].contains(item))),
            "required" => rule.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    violations(root, rule, item, &format!("{path}/{at}"), found);
                }
                true
            }
            "properties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(key) {
                        violations(root, rule, inner, &format!("{path}/{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" if rule.is_boolean() => {
                let known = |key: &String| schema["properties"].get(key).is_some();
                rule == true || value.as_object().is_none_or(|object| object.keys().all(known))
            }
            "additionalProperties" => {
                value.as_object().is_none_or(|object| object.values().all(|inner| fits(root, rule, inner)))
            }
            "anyOf" => rule.as_array().unwrap().iter().any(|rule| fits(root, rule, value)),
            "oneOf" => rule.as_array().unwrap().iter().filter(|rule| fits(root, rule, value)).count() == 1,
            // Of strings that the program does not write.
            "pattern" => false,
            other => NO_RULES.contains(&other),
        };
        if !holds {
            found.push(format!("{path}: {keyword} {rule}"));
        }
    }
}

fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let mut found = Vec::new();
    violations(root, schema, value, "", &mut found);
    found.is_empty()
}

/// A log against the schema of the standard.
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

/// Fails if docs/json.md does not name every member of a document, those apart whose names are data.
pub(crate) fn assert_documented(document: &Value) {
    const NAMED_BY_DATA: &[&str] = &["attributes", "bodies", "element_types", "tensors"];
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md")).unwrap();
    let mut pending = vec![(document, false)];
    while let Some((value, is_data)) = pending.pop() {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let word = format!("`{key}`");
                    assert!(is_data || page.contains(&word), "docs/json.md does not say what {word} is");
                    pending.push((value, NAMED_BY_DATA.contains(&key.as_str())));
                }
            }
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, false))),
            _ => {}
        }
    }
}

#[test]
fn every_verb_prints_what_the_document_says() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let swap = "Add(x, y) => Subtract(x, y)";
    let commands: [&[&str]; 8] = [
        &["infer", "loop_py.xml", "--format", "json"],
        &["show", "loop_py.xml", "--format", "json"],
        &["stats", "loop_py.xml", "--format", "json"],
        &["diff", "loop_py.xml", "loop_py.promote.xml", "--format", "json"],
        &["why", "loop_py.promote.xml", "3", "--format", "json"],
        &["promote", "f32", "i64", "--format", "json", "--explain"],
        &["convert", "loop_py.promote.xml", "--dry-run", "--report", "-"],
        &["rewrite", "loop_py.xml", "-e", swap, "--dry-run", "--report", "-"],
    ];
    for words in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_typelift")).args(words).current_dir(&models).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"));
        assert_documented(&document);
    }
}

#[test]
fn json_has_what_the_document_says() {
    let (_, text) = check(&["--format", "json", "type-mismatch.xml"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_documented(&document);
    let found = &document["diagnostics"][0];
    assert_eq!(found["related"].as_array().unwrap().len(), 2);
    assert!(found["end_column"].as_u64() > found["column"].as_u64());
}
