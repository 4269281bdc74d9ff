//! Every JSON document is valid against its schema in `docs/schema`, and `docs/json.md` is generated from these
//! schemas.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use typelift::Model;
use typelift::promote::ElementType;
use typelift_run::verify::{Loaded, RunError, Runner, Runtime, Setting, Source, Tensor, Verification};

use crate::commands::with_documents;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the schema that the program prints.
fn schema(verb: &str) -> Value {
    serde_json::from_str(&printed(&["schema", verb])).unwrap()
}

fn printed(words: &[&str]) -> String {
    let models = root().join("testdata");
    let output = crate::cli::output(Command::new(env!("CARGO_BIN_EXE_typelift")).args(words).current_dir(models));
    String::from_utf8(output.stdout).unwrap()
}

fn is(value: &Value, ty: &str) -> bool {
    match ty {
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the schema has the type {other}"),
    }
}

/// Collects the violations of a JSON schema in a value: the keywords that the schemas of SARIF and typelift use.
pub(crate) fn violations(root: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    const NO_RULES: [&str; 8] = ["$schema", "$id", "$defs", "title", "description", "default", "definitions", "format"];
    for (keyword, rule) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                violations(root, root.pointer(pointer).unwrap(), value, path, found);
                true
            }
            "type" => match rule.as_array() {
                Some(types) => types.iter().any(|ty| is(value, ty.as_str().unwrap())),
                None => is(value, rule.as_str().unwrap()),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|value| Some(value) >= rule.as_f64()),
            "maximum" => value.as_f64().is_none_or(|value| Some(value) <= rule.as_f64()),
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
            // Concerns strings that the program does not write.
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

/// Fails if the output of a command is not one document of its schema.
fn assert_valid(verb: &str, words: &[&str]) {
    let text = printed(words);
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"));
    assert_form(verb, &document);
}

/// Fails if a document does not match the schema of a command.
pub(crate) fn assert_form(verb: &str, document: &Value) {
    let (schema, mut found) = (schema(verb), Vec::new());
    // A choice between forms reports only that none of them matches.
    for one in document.as_array().unwrap_or(&vec![document.clone()]) {
        let marks = [
            ("error", "failure"),
            ("diagnostics", "findings"),
            ("rows", "matrix"),
            ("path", "path"),
            ("dimension", "length"),
        ];
        let form = marks.iter().find(|(mark, _)| one.get(mark).is_some()).map_or("answer", |(_, form)| form);
        violations(&schema, &schema["$defs"][form], one, form, &mut found);
    }
    assert!(found.is_empty(), "{verb}: {}\n{document:#}", found.join("\n"));
    assert!(fits(&schema, &schema, document), "{verb}: {document:#}");
}

#[test]
fn every_document_has_the_form_of_its_schema() {
    let findings = fs::read_dir(root().join("testdata/fixtures/diagnostics")).unwrap();
    let findings = findings.map(|entry| format!("fixtures/diagnostics/{}", entry.unwrap().file_name().display()));
    for file in findings.filter(|file| file.ends_with(".xml")) {
        assert_valid("check", &["check", &file, "--format", "json"]);
        assert_valid("convert", &["convert", &file, "--dry-run", "--report", "-"]);
    }
    let swap = "Add(x, y) => Subtract(x, y)";
    let commands: [&[&str]; 25] = [
        &["check", "models/loop_py.xml", "absent.xml", "--format", "json"],
        &["infer", "models/loop_py.xml", "--format", "json"],
        &["infer", "models/loop_py.xml", "--shapes", "--format", "json"],
        &["why", "models/loop_py.xml", "--shape", "--format", "json"],
        &["infer", "models", "absent.xml", "--format", "json"],
        &["show", "models/loop_py.xml", "--format", "json"],
        &["stats", "models/loop_py.xml", "--format", "json"],
        &["stats", "models", "--format", "json"],
        &["diff", "models/loop_py.xml", "models/loop_py.promote.xml", "--format", "json"],
        &["diff", "models/bert.xml", "models/loop_py.xml", "--format", "json"],
        &["why", "models/loop_py.promote.xml", "3", "--format", "json"],
        &["why", "models/bert.promote.xml", "0", "--format", "json"],
        &["why", "fixtures/stats/compressed_text.xml", "w", "--path", "--format", "json"],
        &["promote", "f32", "i64", "--format", "json", "--explain"],
        &["promote", "u64[2]", "i32[2]", "--format", "json"],
        &["promote", "--table", "--format", "json"],
        &["promote", "--compare", "--format", "json"],
        &["convert", "models/loop_py.promote.xml", "--dry-run", "--report", "-"],
        &["convert", "models", "--dry-run", "--report", "-", "--target", "2022.1"],
        &["convert", "models/loop_py.xml", "--set-type", "x=f16", "--dry-run", "--report", "-"],
        &["convert", "models/irv10_resnet50.xml", "--set-shape", "x=[4,3,128,128]", "--dry-run", "--report", "-"],
        &["convert", "oracle/precision/edge_tensor_abs_one.xml", "--compress", "f16", "--audit", "--report", "-"],
        &["rewrite", "models/loop_py.xml", "-e", swap, "--dry-run", "--report", "-"],
        &["rewrite", "models/loop_py.xml", "-e", "cut nothing", "--dry-run", "--report", "-"],
        &["rewrite", "models", "absent.xml", "--use", "no-ops", "--dry-run", "--report", "-"],
    ];
    for words in commands {
        assert_valid(words[0], words);
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("small.xml");
    let out = out.to_str().unwrap();
    assert_valid(
        "reduce",
        &["reduce", "models/bert.promote.xml", "-o", out, "--finding", "required-release", "--report", "-"],
    );
    assert_valid("reduce", &["reduce", "absent.xml", "-o", out, "--finding", "required-release", "--report", "-"]);
    let none = ["--format", "json", "--python", "/no/python"];
    assert_valid("verify", &[&["verify", "models/bert.promote.xml", "models/bert.promote.xml"], &none[..]].concat());
}

/// A runtime whose outputs are the first input, twice as large for a model named `b`.
struct Scales(Vec<(usize, u8)>);

impl Runner for Scales {
    fn describe(&mut self, _: &Setting) -> Result<Runtime, RunError> {
        Ok(Runtime::default())
    }
    fn load(&mut self, source: &Source, _: &Setting) -> Result<Loaded, RunError> {
        let outputs = source.text.matches("type=\"Result\"").count();
        self.0.push((outputs, if source.text.contains("<net name=\"b\"") { 2 } else { 1 }));
        Ok(Loaded { key: self.0.len() as u64 - 1, ..Loaded::default() })
    }
    fn run(&mut self, key: u64, _: &[Tensor], _: bool) -> Result<Vec<Tensor>, RunError> {
        let (outputs, factor) = self.0[key as usize];
        Ok(vec![Tensor::new(ElementType::U8, vec![2], vec![factor, 3 * factor]); outputs])
    }
    fn release(&mut self, _: u64) {}
    fn arrays(&mut self, _: &Path, _: u64) -> Result<Vec<(String, Tensor)>, RunError> {
        Ok(Vec::new())
    }
}

#[test]
fn a_comparison_has_the_form_of_its_schema() {
    let text = |name: &str| {
        format!(
            r#"<net name="{name}" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1"><data element_type="u8" shape="2"/>
                <output><port id="0" precision="U8"><dim>2</dim></port></output></layer>
            <layer id="1" name="y" type="Abs" version="opset1"><input><port id="0"/></input>
                <output><port id="1" precision="U8"><dim>2</dim></port></output></layer>
            <layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>
            <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
                <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#
        )
    };
    let models = ["a", "b"].map(|name| {
        let mut model = Model::from_xml(text(name)).unwrap();
        assert!(typelift::infer(&mut model).iter().all(|found| !found.is_error()));
        model
    });
    let mut verification = Verification::default();
    verification.layers = true;
    for (a, b) in [(0, 1), (0, 0)] {
        let report = verification.run(&models[a], Some(&models[b]), &mut Scales(Vec::new())).unwrap();
        assert_eq!((report.same, report.first.is_none()), (b == 0, b == 0));
        let mut document = serde_json::to_value(&report).unwrap();
        document["format"] = 1.into();
        document["files"] = vec!["a.xml", "b.xml"].into();
        assert_form("verify", &document);
    }
}

#[test]
fn what_has_no_answer_is_a_document_too() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.xml");
    fs::write(&broken, "<net").unwrap();
    for file in [broken.to_str().unwrap(), "absent.xml"] {
        for verb in ["check", "infer", "show", "stats"] {
            assert_valid(verb, &[verb, file, "--format", "json"]);
        }
        assert_valid("why", &["why", file, "x", "--format", "json"]);
        assert_valid("diff", &["diff", file, file, "--format", "json"]);
        assert_valid("convert", &["convert", file, "--dry-run", "--report", "-"]);
        assert_valid("rewrite", &["rewrite", file, "--use", "no-ops", "--dry-run", "--report", "-"]);
    }
    assert_valid("why", &["why", "models/loop_py.xml", "no such layer", "--format", "json"]);
    assert_valid("show", &["show", "models/loop_py.xml", "--around", "no such layer", "--format", "json"]);
    assert_valid("promote", &["promote", "f33", "--format", "json"]);
}

#[test]
fn schemas_refuse_what_they_do_not_describe() {
    let words = ["check", "fixtures/diagnostics/type-mismatch.xml", "--format", "json"];
    let document: Value = serde_json::from_str(&printed(&words)).unwrap();
    let changes: [fn(&mut Value); 5] = [
        |document| document["format"] = 2.into(),
        |document| document["more"] = 1.into(),
        |document| document["diagnostics"][0]["severity"] = "fatal".into(),
        |document| document["diagnostics"][0]["line"] = "17".into(),
        |document| drop(document.as_object_mut().unwrap().remove("file")),
    ];
    for change in changes {
        let mut changed = document.clone();
        change(&mut changed);
        assert!(!fits(&schema("check"), &schema("check"), &changed), "{changed}");
    }
}

#[test]
fn what_several_schemas_name_is_one_thing() {
    let first = schema("convert");
    for verb in with_documents() {
        for (name, shape) in schema(&verb)["$defs"].as_object().unwrap() {
            if let Some(known) = first["$defs"].get(name).filter(|_| !["answer", "document"].contains(&name.as_str())) {
                assert_eq!(known, shape, "{verb}: {name}");
            }
        }
    }
}

/// Adds a row for each member of the objects that a schema describes, followed by nested ones.
fn rows(schema: &Value, shape: &Value, prefix: &str, text: &mut String) {
    let ty = |shape: &Value| match (&shape["type"], shape.get("$ref"), shape.get("anyOf"), shape.get("oneOf")) {
        (Value::String(ty), ..) => ty.clone(),
        (Value::Array(types), ..) => types.iter().map(|ty| ty.as_str().unwrap()).collect::<Vec<_>>().join(" or "),
        (_, _, Some(_), _) => "object or null".to_owned(),
        (_, Some(_), ..) | (.., Some(_)) => "object".to_owned(),
        _ if shape["enum"].is_array() => "string".to_owned(),
        _ => shape["const"].as_i64().map_or("boolean".to_owned(), |value| value.to_string()),
    };
    let resolve = |shape: &Value| {
        let pointer = shape.get("$ref").or_else(|| shape["anyOf"][0].get("$ref"));
        let shape =
            pointer.map_or(shape, |pointer| schema.pointer(pointer.as_str().unwrap().trim_start_matches('#')).unwrap());
        if shape["anyOf"].is_array() { shape["anyOf"][0].clone() } else { shape.clone() }
    };
    for (name, member) in shape["properties"].as_object().into_iter().flatten() {
        let said = member["description"].as_str().unwrap_or_default();
        let _ = writeln!(text, "| `{prefix}{name}` | {} | {said} |", ty(member));
        let (items, mark) = match member.get("items") {
            Some(items) => (items, "[]."),
            None => (member, "."),
        };
        let is_common =
            |shape: &Value| shape["$ref"] == "#/$defs/layer" || shape["anyOf"][0]["$ref"] == "#/$defs/layer";
        let inner = resolve(items);
        let nests =
            inner["properties"].as_object().is_some_and(|members| !members.contains_key("bodies") || prefix.is_empty());
        // A block contains blocks, which have the same members.
        let repeats = prefix.ends_with(&format!("{name}{mark}"));
        if nests && !repeats && !is_common(items) {
            rows(schema, &inner, &format!("{prefix}{name}{mark}"), text);
        }
        for choice in inner["oneOf"].as_array().into_iter().flatten() {
            let kind = choice["properties"]["kind"]["const"].as_str().unwrap_or_default();
            let members: Vec<_> = choice["properties"]
                .as_object()
                .unwrap()
                .keys()
                .filter(|name| *name != "kind")
                .map(|name| format!("`{name}`"))
                .collect();
            let with = if members.is_empty() { String::new() } else { format!(" with {}", members.join(", ")) };
            let _ = writeln!(text, "| `{prefix}{name}.kind` | string | `{kind}`{with} |");
        }
    }
}

#[test]
fn the_page_of_json_is_made_of_the_schemas() {
    let head = "| word | type | meaning |\n|---|---|---|\n";
    let mut made = String::new();
    let check = schema("check");
    for (title, name) in [("A layer", "layer"), ("A model that is refused", "findings"), ("No answer", "failure")] {
        let shape = &check["$defs"][name];
        let said = shape["description"].as_str().unwrap();
        let _ = write!(made, "\n## {title}\n\n{}{}.\n\n{head}", said[..1].to_uppercase(), &said[1..]);
        rows(&check, shape, "", &mut made);
    }
    for verb in with_documents() {
        let schema = schema(&verb);
        let title = schema["title"].as_str().unwrap();
        let _ = write!(made, "\n## typelift {verb}\n\n{title}.\n");
        if verb == "check" {
            made += "It is that of [a model that is refused](#a-model-that-is-refused), also for a model without findings.\n";
        }
        for name in ["answer", "matrix", "path"] {
            if let Some(shape) = schema["$defs"].get(name) {
                let _ = write!(made, "\n{head}");
                rows(&schema, shape, "", &mut made);
            }
        }
    }
    let path = root().join("docs/json.md");
    let page = fs::read_to_string(&path).unwrap();
    let (intro, _) = page.split_once("\n## ").unwrap();
    let whole = format!("{intro}{made}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, whole).unwrap();
    } else {
        assert!(page == whole, "docs/json.md is not what the schemas say: run with UPDATE_DOCS=1");
    }
}
