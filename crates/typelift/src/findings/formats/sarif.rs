//! Findings as a SARIF 2.1.0 log, for code scanning.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use super::{Format, Frame};
use crate::base::span::Lines;
use crate::findings::document::Region;
use crate::findings::words::whole;
use crate::findings::{Code, Diagnostic, Diagnostics, FileName, LayerRef, TextEdit, Voice};

pub(super) const FORMAT: Format = Format { name: "sarif", about: "A SARIF 2.1.0 log for code scanning", frame, page };

/// Code scanning does not accept several runs of one tool.
fn frame() -> io::Result<Frame> {
    let rules = Code::ALL.iter().map(|code| SarifRule {
        id: code.name(),
        short_description: SarifText { text: code.summary() },
        default_configuration: Configuration { level: code.severity().name() },
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
        let result = serde_json::to_string(&SarifResult::new(&lines, &uri, diagnostic, voice))?;
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
    rules: Vec<SarifRule>,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    default_configuration: Configuration,
    id: &'static str,
    short_description: SarifText<&'static str>,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct SarifText<T> {
    text: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    fixes: Option<[SarifFix; 1]>,
    level: &'static str,
    locations: [Location; 1],
    message: SarifText<String>,
    related_locations: Vec<Location>,
    rule_id: &'static str,
    rule_index: Option<usize>,
}

impl SarifResult {
    fn new(lines: &Lines, uri: &str, diagnostic: &Diagnostic, voice: Voice<'_>) -> Self {
        let related = diagnostic.related.iter().enumerate().map(|(id, related)| Location {
            id: Some(id),
            message: Some(SarifText { text: related.to_string() }),
            ..Location::new(uri, Some(Region::new(lines, related.span)))
        });
        let layer = diagnostic.layer.as_ref();
        let location = Location {
            logical_locations: layer.map(|layer| [LogicalLocation::new(layer)]),
            ..Location::new(uri, Region::of(lines, diagnostic))
        };
        Self {
            fixes: diagnostic.edits().map(|edits| [SarifFix::new(lines, uri, edits)]),
            level: diagnostic.severity.name(),
            locations: [location],
            message: SarifText { text: whole(lines, diagnostic, voice).trim_end().to_owned() },
            related_locations: related.collect(),
            rule_id: diagnostic.code.name(),
            rule_index: Code::ALL.iter().position(|code| *code == diagnostic.code),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_locations: Option<[LogicalLocation; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<SarifText<String>>,
    physical_location: PhysicalLocation,
}

impl Location {
    fn new(uri: &str, region: Option<Region>) -> Self {
        let physical_location = PhysicalLocation {
            artifact_location: Artifact { uri: uri.to_owned() },
            region: region.map(SarifRegion::from),
        };
        Self { id: None, logical_locations: None, message: None, physical_location }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    name: String,
}

impl LogicalLocation {
    fn new(layer: &LayerRef) -> Self {
        Self { fully_qualified_name: layer.full_name(), name: layer.name.clone() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<SarifRegion>,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRegion {
    end_column: usize,
    end_line: usize,
    start_column: usize,
    start_line: usize,
}

impl From<Region> for SarifRegion {
    fn from(Region { line, column, end_line, end_column }: Region) -> Self {
        Self { end_column, end_line, start_column: column, start_line: line }
    }
}

/// Edits of one file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifFix {
    artifact_changes: [ArtifactChange; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactChange {
    artifact_location: Artifact,
    replacements: Vec<SarifReplacement>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifReplacement {
    deleted_region: SarifRegion,
    inserted_content: SarifText<String>,
}

impl SarifFix {
    fn new(lines: &Lines, uri: &str, edits: &[TextEdit]) -> Self {
        let replacements = edits.iter().map(|edit| SarifReplacement {
            deleted_region: Region::new(lines, edit.span).into(),
            inserted_content: SarifText { text: edit.text.clone() },
        });
        let artifact_location = Artifact { uri: uri.to_owned() };
        Self { artifact_changes: [ArtifactChange { artifact_location, replacements: replacements.collect() }] }
    }
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
