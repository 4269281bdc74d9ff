//! Diagnostics as text, the way rustc shows them; failures in the same manner.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str};
use typelift::findings::{Code, Count, Diagnostic, Diagnostics, Label, LayerRef, Severity, Voice};
use typelift::span::Lines;

use unicode_width::UnicodeWidthStr;

use crate::fit::{self, ShortNames};

/// How many errors of one kind are shown before the others are folded.
const ERRORS_OF_EACH: usize = 10;
/// How many warnings or notes of one kind are shown; more are folded into the first.
const WARNINGS_OF_EACH: usize = 3;
/// How many layers are listed of those that were folded.
const LISTED: usize = 8;

/// Source lines up to this many bytes are shown whole, of longer ones the part around what is pointed at.
const WHOLE_LINE: usize = 200;
const BEFORE_SPAN: usize = 60;
/// The columns before notes and source text.
const BEFORE_TEXT: usize = 15;
/// The columns between the number of a line and its text.
const BAR: usize = 3;
const AFTER_START: usize = 120;

/// Which diagnostics to print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Each one.
    All,
    /// All of them, repeated ones folded into the first.
    Folded,
    /// Errors, what is lost or may not load, and other warnings only where there are few and no errors.
    Briefly,
}

/// Diagnostics in colours, and what was not shown.
pub(crate) fn text(diagnostics: &Diagnostics, voice: Voice<'_>, show: Show) -> String {
    let mut text = String::new();
    let count = Count::of(diagnostics);
    let all = diagnostics.list.iter();
    let is_shown = |diagnostic: &Diagnostic| match diagnostic.severity {
        _ if show != Show::Briefly => true,
        Severity::Error => true,
        Severity::Warning => is_essential(diagnostic) || count.errors == 0 && count.warnings <= WARNINGS_OF_EACH,
        Severity::Note => false,
    };
    let shown: Vec<_> = all.filter(|it| is_shown(it)).collect();
    let mut of_each = BTreeMap::<Code, Vec<&Diagnostic>>::new();
    for diagnostic in &shown {
        of_each.entry(diagnostic.code).or_default().push(diagnostic);
    }
    let lines = Lines::new(diagnostics.source.clone());
    let names = if shown.is_empty() { ShortNames::default() } else { ShortNames::in_source(&diagnostics.source) };
    let mut seen = BTreeMap::<Code, usize>::new();
    for &diagnostic in &shown {
        let seen = seen.entry(diagnostic.code).or_default();
        *seen += 1;
        let alike = of_each.get(&diagnostic.code).map_or(&[][..], Vec::as_slice);
        let room = if show == Show::All { usize::MAX } else { room_for(diagnostic, alike.len()) };
        if *seen > room {
            continue;
        }
        let folded = (*seen == room).then(|| fold(&alike[room..], &diagnostics.file)).flatten();
        text += &render((&diagnostics.file, &lines, &names), diagnostic, voice, folded);
    }
    if show == Show::Briefly && count.errors + count.warnings > 0 {
        let hidden = diagnostics.list.iter().filter(|it| it.severity == Severity::Warning && !is_shown(it)).count();
        let warnings = if hidden == 1 { "the warning" } else { "the warnings" };
        let more = match hidden {
            0 => String::new(),
            _ => format!("; `typelift check {}` shows {warnings}", diagnostics.file),
        };
        let _ = writeln!(text, "{count} in {}{more}", diagnostics.file);
    }
    text
}

/// Whether a warning is about values that are lost, or about what OpenVINO may not load.
fn is_essential(diagnostic: &Diagnostic) -> bool {
    [Code::LossyConversion, Code::UnknownOperation].contains(&diagnostic.code)
}

/// How many diagnostics of a kind are shown where there are `count`.
fn room_for(diagnostic: &Diagnostic, count: usize) -> usize {
    match diagnostic.severity {
        Severity::Error => ERRORS_OF_EACH,
        _ if count <= WARNINGS_OF_EACH => WARNINGS_OF_EACH,
        _ => 1,
    }
}

/// A note on diagnostics that are not shown.
fn fold(hidden: &[&Diagnostic], file: &str) -> Option<String> {
    let code = hidden.first()?.code;
    let layers = hidden.iter().filter_map(|diagnostic| diagnostic.layer.as_ref());
    let mut names: Vec<_> = layers.map(|layer| format!("{} `{}`", layer.id, layer.name)).collect();
    names.dedup();
    let more = if names.len() > LISTED { ", …" } else { "" };
    names.truncate(LISTED);
    let at = if names.is_empty() { String::new() } else { format!(": layers {}{more}", names.join(", ")) };
    Some(format!("{} more of {code}{at}; `typelift check --all {file}` shows them", hidden.len()))
}

/// One diagnostic with the source it points at, and an empty line.
fn render(
    (file, lines, names): (&str, &Lines, &ShortNames),
    diagnostic: &Diagnostic,
    voice: Voice<'_>,
    folded: Option<String>,
) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level
        .primary_title(names.message(&diagnostic.message, BEFORE_TEXT + diagnostic.code.name().len()))
        .id(diagnostic.code.name());
    let mut group = Group::with_title(title);
    for excerpt in excerpts(lines, &diagnostic.labels) {
        group = group.elements(excerpt.elements(file));
    }
    let layer = diagnostic.layer.as_ref().filter(|layer| !shows(lines, diagnostic, layer));
    let layer = layer.map(|layer| Level::NOTE.message(told(&describe(layer), names)));
    let related = diagnostic.related.iter().map(|related| {
        let line = lines.line_at(related.span.start);
        Level::NOTE.message(told(&format!("{related} (line {line})"), names))
    });
    let long = diagnostic.labels.iter().filter(|label| is_long(label)).map(|label| {
        let line = lines.line_at(label.span.start);
        Level::NOTE.message(told(&format!("line {line}: {}", label.message), names))
    });
    let notes = long.chain(diagnostic.notes.iter().map(|note| Level::NOTE.message(told(note, names))));
    let help = voice.help(diagnostic).into_iter();
    let help = help.map(|help| Level::HELP.message(told(&help, names)));
    let folded = folded.map(|folded| Level::NOTE.message(told(&folded, names)));
    let group = group.elements(layer.into_iter().chain(related).chain(notes).chain(help).chain(folded));
    let renderer = fit::columns().map_or(Renderer::styled(), |columns| Renderer::styled().term_width(columns));
    let text = renderer.render(&[group]);
    // The renderer puts an empty "::: " above a source whose path it was given apart from the text.
    let is_empty_path = |line: &&str| anstream::adapter::strip_str(line).to_string().trim() == ":::";
    let lines: Vec<_> = text.lines().filter(|line| !is_empty_path(line)).collect();
    lines.join("\n") + "\n\n"
}

/// A note or a help as it is printed.
fn told(text: &str, names: &ShortNames) -> String {
    names.message(&normalize_untrusted_str(text), BEFORE_TEXT)
}

/// Whether the line that is pointed at says which layer it is.
fn shows(lines: &Lines, diagnostic: &Diagnostic, layer: &LayerRef) -> bool {
    let Some(label) = diagnostic.labels.first().filter(|_| layer.place.is_model()) else { return false };
    let line = lines.line(lines.line_at(label.span.start));
    let text = line.text(lines.source()).trim_start();
    let room = fit::width().saturating_sub(BEFORE_TEXT);
    text.width() <= room
        && text.starts_with("<layer ")
        && text.contains(&format!(" id=\"{}\"", layer.id))
        && text.contains(&format!(" name=\"{}\"", layer.name))
}

fn describe(layer: &LayerRef) -> String {
    let within = if layer.place.is_model() { String::new() } else { format!(" in {}", layer.path()) };
    format!("in layer {} `{}`{within}", layer.id, layer.name)
}

/// A few lines of the source, or the middle of a long one.
struct Excerpt<'a> {
    text: String,
    /// Where its first byte is.
    line: usize,
    /// Where the first thing pointed at is, if the renderer cannot find it in the text.
    column: Option<usize>,
    /// The part of the text that each label points at.
    labels: Vec<(Range<usize>, &'a Label, AnnotationKind)>,
}

impl<'a> Excerpt<'a> {
    fn elements(self, file: &'a str) -> Vec<Element<'a>> {
        let annotations = self.labels.into_iter().map(|(range, label, kind)| {
            let text = (!label.message.is_empty() && !is_long(label)).then(|| normalize_untrusted_str(&label.message));
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
    let last = labels.iter().map(|label| lines.line_at(label.span.start)).max().unwrap_or_default();
    let room = fit::columns().map_or(usize::MAX, |columns| columns - last.to_string().len() - BAR);
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let (number, column) = lines.line_column(label.span.start);
        let line = lines.line(number);
        let text = line.text(lines.source());
        // A span over several lines is shown by its first.
        let start = (label.span.start.saturating_sub(line.start) as usize).min(text.len());
        let end = (label.span.end.saturating_sub(line.start) as usize).clamp(start, text.len());
        if text.len() > WHOLE_LINE || is_beyond(room, text, &(start..end), label) {
            let (text, range) = cut(text, start..end, label, room);
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

/// Whether a line and what is said below the part that is pointed at go beyond what there is room for.
fn is_beyond(room: usize, text: &str, pointed: &Range<usize>, label: &Label) -> bool {
    let said = columns_of(&text[..pointed.end]) + usize::from(pointed.is_empty()) + said_width(label);
    said.max(columns_of(text)) > room
}

/// The columns of a text, in which the renderer prints a tab as four.
fn columns_of(text: &str) -> usize {
    text.split('\t').map(|part| part.width() + 4).sum::<usize>() - 4
}

/// Whether a label takes so much of a terminal's line that it becomes a note.
fn is_long(label: &Label) -> bool {
    fit::columns().is_some_and(|columns| label.message.width() > columns * 5 / 8)
}

/// The columns that a label takes after what it points at.
fn said_width(label: &Label) -> usize {
    if is_long(label) { 0 } else { label.message.width() + 1 }
}

/// The part of a line around what is pointed at, and where that is in it.
fn cut(text: &str, pointed: Range<usize>, label: &Label, room: usize) -> (String, Range<usize>) {
    const DOTS: &str = "...";
    let is_blank = |end: usize| text[..end].trim_start().is_empty();
    let room = room.min(BEFORE_SPAN + AFTER_START + 2 * DOTS.len()) - 2 * DOTS.len();
    // What is said comes after what is pointed at, and has to fit too.
    let said = if fit::columns().is_some() { said_width(label) } else { 0 };
    let shown = pointed.len().min(AFTER_START).min(room.saturating_sub(said)).max(1);
    let before = BEFORE_SPAN.min(room.saturating_sub(said + shown));
    let from = text.floor_char_boundary(pointed.start.saturating_sub(before));
    let from = if is_blank(from) { (text.len() - text.trim_start().len()).min(pointed.start) } else { from };
    let to = text.floor_char_boundary((from + room).min(pointed.start + AFTER_START)).max(pointed.start);
    let end = text.floor_char_boundary(pointed.end.min(pointed.start + shown)).clamp(pointed.start, to);
    let head = if is_blank(from) { "" } else { DOTS };
    let tail = if to < text.len() { DOTS } else { "" };
    let text = format!("{head}{}{tail}", &text[from..to]);
    (text, pointed.start - from + head.len()..end - from + head.len())
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
