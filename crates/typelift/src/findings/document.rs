//! Findings as a JSON document.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::{About, Code, Diagnostic, Diagnostics, LayerRef, Message, Proof, Related, Severity, SubjectKind, Voice};
use crate::base::span::{Lines, Span};

/// All findings of a file as a document. `typelift check --format json` prints it, and the Python package reads it.
///
/// ```
/// use typelift::findings::{Diagnostics, Document};
/// use typelift::xml;
///
/// let source = std::sync::Arc::new("<net name='n' version='11'><layers><layer/></layers></net>".to_owned());
/// let list = xml::parse(source.clone()).diagnostics;
/// let found = Diagnostics { list, ..Diagnostics::new("model.xml", source) };
/// let json = serde_json::to_value(Document::new(&found))?;
/// assert_eq!(json["diagnostics"][0]["code"], "missing-attribute");
/// assert_eq!(json["diagnostics"][0]["column"], 36);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    file: FileName<'a>,
    #[serde(flatten)]
    count: Count,
    diagnostics: Entries<'a>,
}

impl<'a> Document<'a> {
    /// Creates the document. Its fixes mention neither commands nor functions.
    pub fn new(diagnostics: &'a Diagnostics) -> Self {
        Self::with(diagnostics, Voice::Plain)
    }

    /// Creates the document with fixes for one audience.
    pub fn with(diagnostics: &'a Diagnostics, voice: Voice<'a>) -> Self {
        let entries = Entries { lines: Lines::new(diagnostics.source.clone()), list: &diagnostics.list, voice };
        Self { file: FileName(&diagnostics.file), count: Count::of(diagnostics), diagnostics: entries }
    }
}

/// The name of a file in a document: folders are separated by `/` on every system.
///
/// ```
/// # use std::path::Path;
/// use typelift::findings::FileName;
///
/// let file = Path::new("models").join("m.xml").display().to_string();
/// assert_eq!(serde_json::to_string(&FileName(&file))?, r#""models/m.xml""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FileName<'a>(pub &'a str);

impl<'a> FileName<'a> {
    pub(super) fn portable(self) -> Cow<'a, str> {
        if cfg!(windows) { self.0.replace('\\', "/").into() } else { self.0.into() }
    }
}

impl Serialize for FileName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.portable())
    }
}

/// The findings, each of which is put into words only while it is written.
#[derive(Debug)]
struct Entries<'a> {
    lines: Lines,
    list: &'a [Diagnostic],
    voice: Voice<'a>,
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.list.iter().map(|it| FindingEntry::new(&self.lines, it, self.voice)))
    }
}

/// The number of findings of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Count {
    /// Errors: OpenVINO refuses the model.
    pub errors: usize,
    /// Warnings: OpenVINO accepts the model, but it probably has a mistake.
    pub warnings: usize,
    /// Notes: facts that are no mistakes.
    pub notes: usize,
}

impl Count {
    /// Counts the findings of a file.
    pub fn of(diagnostics: &Diagnostics) -> Self {
        let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note]
            .map(|severity| diagnostics.list.iter().filter(|diagnostic| diagnostic.severity == severity).count());
        Self { errors, warnings, notes }
    }
}

/// Formats `1 error, 2 warnings`; notes are not counted.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        match (self.errors, self.warnings) {
            (0, 0) => f.write_str("no errors, no warnings"),
            (errors, 0) => f.write_str(&plural(errors, "error")),
            (0, warnings) => f.write_str(&plural(warnings, "warning")),
            (errors, warnings) => write!(f, "{}, {}", plural(errors, "error"), plural(warnings, "warning")),
        }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |a, b| Self {
            errors: a.errors + b.errors,
            warnings: a.warnings + b.warnings,
            notes: a.notes + b.notes,
        })
    }
}

/// The start and end of a span. Lines and columns count from 1, and the end is one past the last character.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Region {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) end_line: usize,
    pub(super) end_column: usize,
}

impl Region {
    pub(super) fn new(lines: &Lines, span: Span) -> Self {
        let ((line, column), (end_line, end_column)) = (lines.line_column(span.start), lines.line_column(span.end));
        Self { line, column, end_line, end_column }
    }

    pub(super) fn of(lines: &Lines, diagnostic: &Diagnostic) -> Option<Self> {
        diagnostic.labels.first().map(|label| Self::new(lines, label.span))
    }
}

#[derive(Debug, Serialize)]
struct FindingEntry<'a> {
    severity: Severity,
    code: Code,
    message: &'a Message,
    layer: Option<&'a LayerRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectEntry<'a>>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    labels: Vec<LabelEntry<'a>>,
    related: Vec<TensorEntry<'a>>,
    notes: &'a [Message],
    consequences: &'a [LayerRef],
    help: Vec<String>,
    fix: Option<String>,
    edits: Vec<EditEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'a Proof>,
}

#[derive(Debug, Serialize)]
struct SubjectEntry<'a> {
    kind: SubjectKind,
    name: &'a str,
}

#[derive(Debug, Serialize)]
struct EditEntry<'a> {
    #[serde(flatten)]
    region: Region,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct LabelEntry<'a> {
    #[serde(flatten)]
    region: Region,
    message: &'a Message,
}

#[derive(Debug, Serialize)]
struct TensorEntry<'a> {
    layer: &'a LayerRef,
    line: usize,
    column: usize,
    element_type: &'static str,
    shape: String,
    #[serde(rename = "message", serialize_with = "as_words")]
    related: &'a Related,
}

fn as_words<S: Serializer>(related: &Related, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(related)
}

impl<'a> FindingEntry<'a> {
    fn new(lines: &Lines, diagnostic: &'a Diagnostic, voice: Voice<'_>) -> Self {
        let region = Region::of(lines, diagnostic);
        let edits = diagnostic.edits().unwrap_or_default().iter();
        let labels = diagnostic.labels.iter();
        let labels = labels.map(|label| LabelEntry { region: Region::new(lines, label.span), message: &label.message });
        let related = diagnostic.related.iter().map(|related| {
            let Region { line, column, .. } = Region::new(lines, related.span);
            let (element_type, shape) = (related.element_type.name(), related.shape.to_string());
            TensorEntry { layer: &related.layer, line, column, element_type, shape, related }
        });
        Self {
            severity: diagnostic.severity,
            code: diagnostic.code,
            message: &diagnostic.message,
            layer: diagnostic.layer.as_ref(),
            subject: match &*diagnostic.about {
                About::Subject { kind, name } => Some(SubjectEntry { kind: *kind, name }),
                _ => None,
            },
            line: region.map(|region| region.line),
            column: region.map(|region| region.column),
            end_line: region.map(|region| region.end_line),
            end_column: region.map(|region| region.end_column),
            labels: labels.collect(),
            related: related.collect(),
            notes: &diagnostic.notes,
            consequences: &diagnostic.consequences,
            help: voice.help(diagnostic),
            fix: voice.command(diagnostic),
            proof: diagnostic.proof(),
            edits: edits.map(|edit| EditEntry { region: Region::new(lines, edit.span), text: &edit.text }).collect(),
        }
    }
}
