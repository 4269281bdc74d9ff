//! Findings as a SARIF 2.1.0 log, for code scanning.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Format, Frame};
use crate::base::span::Lines;
use crate::findings::document::Region;
use crate::findings::words::whole;
use crate::findings::{Code, Diagnostic, Diagnostics, FileName, Voice};

pub(super) const FORMAT: Format = Format { name: "sarif", about: "A SARIF 2.1.0 log for code scanning", frame, page };

/// Code scanning does not accept several runs of one tool.
fn frame() -> io::Result<Frame> {
    let rules = Code::ALL.iter().map(|code| {
        json!({
            "defaultConfiguration": { "level": code.severity().name() },
            "id": code.name(),
            "shortDescription": { "text": code.summary() },
        })
    });
    let driver = Driver { name: "typelift", version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    let log = serde_json::to_string_pretty(&Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [SarifRun { tool: Tool { driver }, column_kind: "unicodeCodePoints", results: [] }],
    })?;
    let results = "\"results\": [";
    let (before, after) = log.split_once(results).unwrap_or((&log, ""));
    Ok(Frame { open: format!("{before}{results}").into(), between: ",".into(), close: format!("{after}\n").into() })
}

fn page(diagnostics: &Diagnostics, voice: Voice<'_>) -> io::Result<String> {
    let lines = Lines::new(diagnostics.source.clone());
    let uri = uri(&diagnostics.file);
    let mut text = String::new();
    for (at, diagnostic) in diagnostics.list.iter().enumerate() {
        let result = result(&lines, &uri, diagnostic, voice);
        let _ = write!(text, "{}\n        {result}", if at > 0 { "," } else { "" });
    }
    Ok(text)
}

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun {
    tool: Tool,
    column_kind: &'static str,
    /// Always empty here: results are written file by file, because those of many files need much memory.
    results: [(); 0],
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    rules: Vec<Value>,
    version: &'static str,
}

fn result(lines: &Lines, uri: &str, diagnostic: &Diagnostic, voice: Voice<'_>) -> Value {
    let mut place = location(uri, Region::of(lines, diagnostic));
    if let Some(layer) = &diagnostic.layer {
        place["logicalLocations"] = json!([{ "fullyQualifiedName": layer.full_name(), "name": layer.name }]);
    }
    let related = diagnostic.related.iter().enumerate().map(|(id, related)| {
        let mut place = location(uri, Some(Region::new(lines, related.span)));
        place["id"] = json!(id);
        place["message"] = json!({ "text": related.to_string() });
        place
    });
    let mut result = json!({
        "level": diagnostic.severity.name(),
        "locations": [place],
        "message": { "text": whole(lines, diagnostic, voice).trim_end() },
        "relatedLocations": related.collect::<Vec<_>>(),
        "ruleId": diagnostic.code.name(),
        "ruleIndex": Code::ALL.iter().position(|code| *code == diagnostic.code),
    });
    if let Some(edits) = diagnostic.edits() {
        let replacements = edits.iter().map(|edit| {
            json!({ "deletedRegion": region(Region::new(lines, edit.span)), "insertedContent": { "text": edit.text } })
        });
        let replacements = replacements.collect::<Vec<_>>();
        let change = json!({ "artifactLocation": { "uri": uri }, "replacements": replacements });
        result["fixes"] = json!([{ "artifactChanges": [change] }]);
    }
    result
}

fn location(uri: &str, at: Option<Region>) -> Value {
    let mut place = json!({ "artifactLocation": { "uri": uri } });
    if let Some(at) = at {
        place["region"] = region(at);
    }
    json!({ "physicalLocation": place })
}

fn region(Region { line, column, end_line, end_column }: Region) -> Value {
    json!({ "endColumn": end_column, "endLine": end_line, "startColumn": column, "startLine": line })
}

fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in FileName(path).portable().bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}
