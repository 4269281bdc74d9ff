//! The findings of `check` for machines: JSON, GitHub's workflow commands, SARIF.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use typelift::Span;
use typelift::diagnostic::{Code, Diagnostic, Diagnostics, LayerRef, Severity, TextEdit};
use typelift::span::Lines;

use crate::explain;
use crate::failure::Failure;
use crate::remedy::{self, Fix, Fixes};
use crate::render::Count;
use crate::terminal;

/// Where a span begins and ends; lines and columns count from 1, the end is one past the last character.
#[derive(Clone, Copy, Serialize)]
struct Region {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

impl Region {
    fn new(lines: &Lines, span: Span) -> Self {
        let ((line, column), (end_line, end_column)) = (lines.line_column(span.start), lines.line_column(span.end));
        Self { line, column, end_line, end_column }
    }

    fn of(lines: &Lines, diagnostic: &Diagnostic) -> Option<Self> {
        diagnostic.labels.first().map(|label| Self::new(lines, label.span))
    }
}

/// The diagnostics of a file as one JSON document.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    file: &'a str,
    #[serde(flatten)]
    count: Count,
    diagnostics: Vec<Entry<'a>>,
}

/// The document of a model that is refused, whatever was asked about it: what is wrong with it.
pub(crate) fn refused(diagnostics: &Diagnostics) -> Result<String, Failure> {
    terminal::json(&Document::new(diagnostics, &Fixes::default()))
}

#[derive(Serialize)]
struct Entry<'a> {
    severity: Severity,
    code: Code,
    message: &'a str,
    layer: Option<&'a LayerRef>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    labels: Vec<Label<'a>>,
    related: Vec<Tensor<'a>>,
    notes: &'a [String],
    victims: &'a [LayerRef],
    help: Vec<String>,
    fix: Option<&'a str>,
    edits: Vec<Replacement<'a>>,
}

/// A replacement in the text.
#[derive(Serialize)]
struct Replacement<'a> {
    #[serde(flatten)]
    region: Region,
    text: &'a str,
}

#[derive(Serialize)]
struct Label<'a> {
    #[serde(flatten)]
    region: Region,
    message: &'a str,
}

#[derive(Serialize)]
struct Tensor<'a> {
    layer: &'a LayerRef,
    line: usize,
    column: usize,
    element_type: &'static str,
    shape: String,
    message: &'a str,
}

impl<'a> Document<'a> {
    pub(crate) fn new(diagnostics: &'a Diagnostics, fixes: &'a Fixes) -> Self {
        let lines = Lines::new(diagnostics.source.clone());
        let all = diagnostics.list.iter().enumerate();
        let entries = all.map(|(at, diagnostic)| Entry::new(&lines, diagnostic, fixes.get(at))).collect();
        Self { file: &diagnostics.file, count: Count::of(diagnostics), diagnostics: entries }
    }
}

impl<'a> Entry<'a> {
    fn new(lines: &Lines, diagnostic: &'a Diagnostic, fix: Option<&'a Fix>) -> Self {
        let region = Region::of(lines, diagnostic);
        let edits = diagnostic.edits().unwrap_or_default().iter();
        let labels = diagnostic.labels.iter();
        let labels = labels.map(|label| Label { region: Region::new(lines, label.span), message: &label.message });
        let related = diagnostic.related.iter().map(|related| {
            let Region { line, column, .. } = Region::new(lines, related.span);
            let (element_type, shape) = (related.element_type.name(), related.shape.to_string());
            Tensor { layer: &related.layer, line, column, element_type, shape, message: &related.message }
        });
        Self {
            severity: diagnostic.severity,
            code: diagnostic.code,
            message: &diagnostic.message,
            layer: diagnostic.layer.as_ref(),
            line: region.map(|region| region.line),
            column: region.map(|region| region.column),
            end_line: region.map(|region| region.end_line),
            end_column: region.map(|region| region.end_column),
            labels: labels.collect(),
            related: related.collect(),
            notes: &diagnostic.notes,
            victims: &diagnostic.victims,
            help: remedy::help(diagnostic, fix).collect(),
            fix: fix.filter(|fix| fix.succeeds).map(|fix| fix.command.as_str()),
            edits: edits.map(|edit| Replacement { region: Region::new(lines, edit.span), text: &edit.text }).collect(),
        }
    }
}

/// What goes with a message, one line each.
fn details(lines: &Lines, diagnostic: &Diagnostic, fix: Option<&Fix>) -> String {
    let layer = diagnostic.layer.iter().map(|layer| format!("layer {} `{}`", layer.id, layer.name));
    let related = diagnostic.related.iter().map(|related| {
        let line = lines.line_column(related.span.start).0;
        format!("{} (line {line})", related.message)
    });
    let help = remedy::help(diagnostic, fix).map(|help| format!("help: {help}"));
    layer.chain(related).chain(diagnostic.notes.iter().cloned()).chain(help).map(|line| line + "\n").collect()
}

/// One workflow command of GitHub Actions for each finding, which shows it at its line of a pull request.
pub(crate) fn github(diagnostics: &Diagnostics, fixes: &Fixes) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let lines = Lines::new(diagnostics.source.clone());
    let mut text = String::new();
    for (at, diagnostic) in diagnostics.list.iter().enumerate() {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let _ = write!(text, "::{command} file={}", property(&diagnostics.file));
        if let Some(Region { line, column, end_line, end_column }) = Region::of(&lines, diagnostic) {
            let _ = write!(text, ",line={line},endLine={end_line},col={column},endColumn={end_column}");
        }
        let message = format!("{}\n{}", diagnostic.message, details(&lines, diagnostic, fixes.get(at)));
        let _ = writeln!(text, ",title={}::{}", property(diagnostic.code.name()), data(message.trim_end()));
    }
    text
}

/// A SARIF 2.1.0 log with the results of all files in one run: code scanning refuses several runs of one tool.
pub(crate) fn sarif(results: &[Box<RawValue>]) -> impl Serialize {
    let rules = Code::ALL.iter().map(|&code| {
        json!({
            "id": code.name(),
            "shortDescription": { "text": explain::summary(code) },
            "defaultConfiguration": { "level": level(code.severity()) },
        })
    });
    let driver =
        json!({ "name": "typelift", "version": env!("CARGO_PKG_VERSION"), "rules": rules.collect::<Vec<_>>() });
    Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [SarifRun { tool: json!({ "driver": driver }), column_kind: "unicodeCodePoints", results }],
    }
}

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun<'a> {
    tool: Value,
    column_kind: &'static str,
    results: &'a [Box<RawValue>],
}

/// The findings of a file as results of a SARIF log, as text: as values they would take many times the memory of the file.
pub(crate) fn sarif_results(diagnostics: &Diagnostics, fixes: &Fixes) -> Vec<Box<RawValue>> {
    let lines = Lines::new(diagnostics.source.clone());
    let uri = uri(&diagnostics.file);
    let results = diagnostics.list.iter().enumerate().map(|(at, diagnostic)| {
        let message = format!("{}\n{}", diagnostic.message, details(&lines, diagnostic, fixes.get(at)));
        let rule = Code::ALL.iter().position(|code| *code == diagnostic.code);
        let place = |span| physical(&uri, Region::new(&lines, span));
        let mut location = match diagnostic.labels.first() {
            Some(label) => place(label.span),
            None => json!({ "physicalLocation": { "artifactLocation": { "uri": uri } } }),
        };
        if let Some(layer) = &diagnostic.layer {
            location["logicalLocations"] = json!([{ "name": layer.name, "fullyQualifiedName": layer.full_name() }]);
        }
        let related = diagnostic.related.iter().enumerate().map(|(id, related)| {
            let mut location = place(related.span);
            location["id"] = id.into();
            location["message"] = json!({ "text": related.message });
            location
        });
        let mut result = json!({
            "ruleId": diagnostic.code.name(),
            "ruleIndex": rule,
            "level": level(diagnostic.severity),
            "message": { "text": message.trim_end() },
            "locations": [location],
            "relatedLocations": related.collect::<Vec<_>>(),
        });
        if let Some(edits) = diagnostic.edits() {
            result["fixes"] = json!([sarif_fix(&lines, &uri, edits)]);
        }
        to_raw_value(&result)
    });
    // A value of text and numbers is always printed.
    results.filter_map(Result::ok).collect()
}

/// Edits of the text as a fix.
fn sarif_fix(lines: &Lines, uri: &str, edits: &[TextEdit]) -> Value {
    let replacements = edits.iter().map(|edit| {
        json!({ "deletedRegion": region(Region::new(lines, edit.span)), "insertedContent": { "text": edit.text } })
    });
    json!({ "artifactChanges": [{
        "artifactLocation": { "uri": uri },
        "replacements": replacements.collect::<Vec<_>>(),
    }] })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn physical(uri: &str, region: Region) -> Value {
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri }, "region": self::region(region) } })
}

fn region(Region { line, column, end_line, end_column }: Region) -> Value {
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.replace('\\', "/").bytes() {
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
