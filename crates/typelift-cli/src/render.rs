//! Diagnostics as text, the way rustc shows them, and as JSON; failures in the same manner.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str};
use serde::Serialize;
use typelift::diagnostic::{Code, Diagnostic, Diagnostics, Label, LayerRef, Severity};
use typelift::span::Lines;

/// So many diagnostics of one kind are shown unless all are asked for.
const SHOWN_OF_EACH: usize = 10;

/// Source lines up to this many bytes are shown whole, of longer ones the part around what is pointed at.
const WHOLE_LINE: usize = 200;
const BEFORE_SPAN: usize = 60;
const AFTER_START: usize = 120;

/// Which diagnostics to print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Each one.
    All,
    /// Each one, but of a kind that is very frequent only the first.
    Many,
    /// Errors, and the rest only where there are none and little of it.
    Briefly,
}

/// Diagnostics in colours, and what was not shown.
pub(crate) fn text(diagnostics: &Diagnostics, show: Show) -> String {
    let mut text = String::new();
    let count = Count::of(diagnostics);
    let least = match show {
        Show::All | Show::Many => Severity::Note,
        Show::Briefly if count.errors == 0 && count.warnings <= 3 => Severity::Warning,
        Show::Briefly => Severity::Error,
    };
    let mut seen = BTreeMap::<Code, usize>::new();
    let mut lines = None;
    for diagnostic in diagnostics.list.iter().filter(|diagnostic| diagnostic.severity >= least) {
        let count = seen.entry(diagnostic.code).or_default();
        *count += 1;
        if show == Show::All || *count <= SHOWN_OF_EACH {
            let lines = lines.get_or_insert_with(|| Lines::new(diagnostics.source.clone()));
            text += &render(&diagnostics.file, lines, diagnostic);
        }
    }
    let hidden = seen.iter().filter(|&(_, &count)| show != Show::All && count > SHOWN_OF_EACH);
    let before = text.len();
    for (code, count) in hidden {
        let _ = writeln!(text, "... and {} more of {code}", count - SHOWN_OF_EACH);
    }
    if text.len() > before {
        let _ = writeln!(text, "`typelift check --all {}` shows each one\n", diagnostics.file);
    }
    if show == Show::Briefly && count.errors + count.warnings > 0 {
        let more =
            if least == Severity::Error && count.warnings > 0 { "; `typelift check` shows the warnings" } else { "" };
        let _ = writeln!(text, "{count} in {}{more}", diagnostics.file);
    }
    text
}

/// How many there are of each severity.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Count {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
}

impl Count {
    pub(crate) fn of(diagnostics: &Diagnostics) -> Self {
        let of = |severity| diagnostics.list.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        Self { errors: of(Severity::Error), warnings: of(Severity::Warning), notes: of(Severity::Note) }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self { errors: 0, warnings: 0, notes: 0 }, |a, b| Self {
            errors: a.errors + b.errors,
            warnings: a.warnings + b.warnings,
            notes: a.notes + b.notes,
        })
    }
}

/// `1 error, 2 warnings`; notes do not count.
impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        match (self.errors, self.warnings) {
            (0, 0) => f.write_str("no errors, no warnings"),
            (errors, 0) => f.write_str(&plural(errors, "error")),
            (0, warnings) => f.write_str(&plural(warnings, "warning")),
            (errors, warnings) => write!(f, "{}, {}", plural(errors, "error"), plural(warnings, "warning")),
        }
    }
}

/// One diagnostic with the source it points at, and an empty line.
fn render(file: &str, lines: &Lines, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.name());
    let mut group = Group::with_title(title);
    for excerpt in excerpts(lines, &diagnostic.labels) {
        group = group.elements(excerpt.elements(file));
    }
    let layer = diagnostic.layer.as_ref().filter(|layer| !shows(lines, diagnostic, layer));
    let layer = layer.map(|layer| Level::NOTE.message(normalize_untrusted_str(&describe(layer))));
    let notes = diagnostic.notes.iter().map(|note| Level::NOTE.message(normalize_untrusted_str(note)));
    let help = diagnostic.help.iter().map(|help| Level::HELP.message(normalize_untrusted_str(help)));
    let group = group.elements(layer.into_iter().chain(notes).chain(help));
    let text = Renderer::styled().render(&[group]);
    // The renderer puts an empty "::: " above a source whose path it was told apart from the text.
    let is_empty_path = |line: &&str| anstream::adapter::strip_str(line).to_string().trim() == ":::";
    let lines: Vec<_> = text.lines().filter(|line| !is_empty_path(line)).collect();
    lines.join("\n") + "\n\n"
}

/// Whether the line that is pointed at says which layer it is.
fn shows(lines: &Lines, diagnostic: &Diagnostic, layer: &LayerRef) -> bool {
    let Some(label) = diagnostic.labels.first().filter(|_| layer.path.is_empty()) else { return false };
    let line = lines.line(lines.line_column(label.span.start).0);
    let text = line.text(lines.source()).trim_start();
    text.len() <= WHOLE_LINE
        && text.starts_with("<layer ")
        && text.contains(&format!(" id=\"{}\"", layer.id))
        && text.contains(&format!(" name=\"{}\"", layer.name))
}

fn describe(layer: &LayerRef) -> String {
    let within = if layer.path.is_empty() { String::new() } else { format!(" in {}", layer.path) };
    format!("in layer {} `{}`{within}", layer.id, layer.name)
}

/// A few lines of the source, or the middle of a long one.
struct Excerpt<'a> {
    text: String,
    /// Where its first byte is.
    line: usize,
    /// Where the first thing pointed at is, where the renderer cannot tell from the text.
    column: Option<usize>,
    /// The part of the text that each label points at.
    labels: Vec<(Range<usize>, &'a Label, AnnotationKind)>,
}

impl<'a> Excerpt<'a> {
    fn elements(self, file: &'a str) -> Vec<Element<'a>> {
        let annotations = self.labels.into_iter().map(|(range, label, kind)| {
            let text = (!label.message.is_empty()).then(|| normalize_untrusted_str(&label.message));
            kind.span(range).label(text)
        });
        let snippet = Snippet::source(self.text).line_start(self.line).annotations(annotations);
        match self.column {
            Some(column) => {
                vec![Origin::path(file).line(self.line).char_column(column).into(), snippet.into()]
            }
            None => vec![snippet.path(file).into()],
        }
    }
}

/// The parts of the source that labels point at, that of the first one first; lines close together are one part.
fn excerpts<'a>(lines: &Lines, labels: &'a [Label]) -> Vec<Excerpt<'a>> {
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let (number, column) = lines.line_column(label.span.start);
        let line = lines.line(number);
        let text = line.text(lines.source());
        // A span over several lines is shown by its first.
        let start = (label.span.start.saturating_sub(line.start) as usize).min(text.len());
        let end = (label.span.end.saturating_sub(line.start) as usize).clamp(start, text.len());
        if text.len() > WHOLE_LINE {
            let from = text.floor_char_boundary(start.saturating_sub(BEFORE_SPAN));
            let to = text.ceil_char_boundary((start + AFTER_START).min(text.len()));
            let (head, tail) = (if from > 0 { "..." } else { "" }, if to < text.len() { "..." } else { "" });
            let range = start - from + head.len()..end.min(to) - from + head.len();
            let text = format!("{head}{}{tail}", &text[from..to]);
            excerpts.push(Excerpt { text, line: number, column: Some(column), labels: vec![(range, label, kind)] });
        } else if let Some(same) = excerpts.iter_mut().find(|e| e.line == number && e.column.is_none()) {
            same.labels.push((start..end, label, kind));
        } else {
            excerpts.push(Excerpt {
                text: text.to_owned(),
                line: number,
                column: None,
                labels: vec![(start..end, label, kind)],
            });
        }
    }
    excerpts
}

/// The diagnostics of a file as data.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    file: &'a str,
    #[serde(flatten)]
    count: Count,
    diagnostics: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    severity: Severity,
    code: Code,
    message: &'a str,
    layer: Option<&'a LayerRef>,
    line: Option<usize>,
    column: Option<usize>,
    labels: Vec<Place<'a>>,
    notes: &'a [String],
    help: &'a [String],
}

#[derive(Serialize)]
struct Place<'a> {
    line: usize,
    column: usize,
    message: &'a str,
}

impl<'a> Document<'a> {
    pub(crate) fn new(diagnostics: &'a Diagnostics) -> Self {
        let lines = Lines::new(diagnostics.source.clone());
        let place = |label: &'a Label| {
            let (line, column) = lines.line_column(label.span.start);
            Place { line, column, message: &label.message }
        };
        let entry = |diagnostic: &'a Diagnostic| {
            let labels: Vec<_> = diagnostic.labels.iter().map(place).collect();
            Entry {
                severity: diagnostic.severity,
                code: diagnostic.code,
                message: &diagnostic.message,
                layer: diagnostic.layer.as_ref(),
                line: labels.first().map(|label| label.line),
                column: labels.first().map(|label| label.column),
                labels,
                notes: &diagnostic.notes,
                help: &diagnostic.help,
            }
        };
        let entries = diagnostics.list.iter().map(entry).collect();
        Self { file: &diagnostics.file, count: Count::of(diagnostics), diagnostics: entries }
    }
}

/// Why something was not done, in colours.
pub(crate) fn error(code: Option<&str>, message: &str, remarks: impl Iterator<Item = Remark>) -> String {
    let title = Level::ERROR.primary_title(message);
    let title = match code {
        Some(code) => title.id(code),
        None => title,
    };
    let messages = remarks.map(|remark| match remark {
        Remark::Note(text) => Level::NOTE.message(normalize_untrusted_str(&text)),
        Remark::Help(text) => Level::HELP.message(normalize_untrusted_str(&text)),
    });
    Renderer::styled().render(&[Group::with_title(title).elements(messages)]) + "\n"
}

/// What goes with an error.
pub(crate) enum Remark {
    Note(String),
    Help(String),
}
