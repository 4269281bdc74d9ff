//! Diagnostics as text in rustc's style, and failures in the same style.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str};
use typelift::findings::{
    Code, Count, Diagnostic, Diagnostics, Label, LayerRef, Lines, Remedy, Severity, Voice, shell_word,
};
use typelift::host::without_numbers;

use unicode_width::UnicodeWidthStr;

use crate::fit::{self, ShortNames};
use crate::gate::Clean;

/// The number of errors of one kind that are shown before the others are folded.
const ERRORS_OF_EACH: usize = 10;
/// The number of warnings or notes of one kind that are shown; more are folded into the first.
const WARNINGS_OF_EACH: usize = 3;
/// The number of folded layers that are listed.
const LISTED: usize = 8;

/// Source lines up to this many bytes are shown whole; longer ones are cut around the marked part.
const WHOLE_LINE: usize = 200;
const BEFORE_SPAN: usize = 60;
/// The columns before notes and source text.
const BEFORE_TEXT: usize = 15;
/// The columns between the number of a line and its text.
const BAR: usize = 3;
const AFTER_START: usize = 120;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    All,
    /// The findings, with repeated ones folded into the first.
    Folded,
    /// Errors, losses and loading problems; other warnings only if they are few and there are no errors.
    Briefly,
}

/// Formats diagnostics in colours, and the number of those not shown.
pub(crate) fn text(diagnostics: &Diagnostics, voice: Voice<'_>, show: Show) -> String {
    let mut text = String::new();
    let count = Count::of(diagnostics);
    let shown = diagnostics.list.iter().filter(|diagnostic| match diagnostic.severity {
        _ if show != Show::Briefly => true,
        Severity::Error => true,
        Severity::Warning => is_essential(diagnostic) || count.errors == 0 && count.warnings <= WARNINGS_OF_EACH,
        Severity::Note => false,
    });
    let shown: Vec<_> = shown.collect();
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
        let hidden = count.warnings - shown.iter().filter(|it| it.severity == Severity::Warning).count();
        let warnings = if hidden == 1 { "the warning" } else { "the warnings" };
        let more = match hidden {
            0 => String::new(),
            _ => format!("; `typelift check {}` shows {warnings}", model_word(&diagnostics.file)),
        };
        let _ = writeln!(text, "{count} in {}{more}", diagnostics.file);
    }
    text
}

/// The name of a file for a command. `MODEL.xml` stands for a model from standard input.
pub(crate) fn model_word(file: &str) -> Cow<'_, str> {
    if file == "<stdin>" { STAND_IN.into() } else { shell_word(file) }
}

/// Stands in commands for a model from standard input.
pub(crate) const STAND_IN: &str = "MODEL.xml";

/// Counts the errors and warnings of a model in a line that names the command that shows them; empty without any.
pub(crate) fn in_one_line(diagnostics: &Diagnostics) -> String {
    let count = Count::of(diagnostics);
    if count.errors + count.warnings == 0 {
        return String::new();
    }
    let (file, them) = (&diagnostics.file, if count.errors + count.warnings == 1 { "it" } else { "them" });
    format!("{count} in {file}: `typelift check {}` shows {them}\n", model_word(file))
}

/// True for a warning about lost values, or about parts that OpenVINO may not load.
fn is_essential(diagnostic: &Diagnostic) -> bool {
    [Code::LossyConversion, Code::UnknownOperation].contains(&diagnostic.code)
}

/// The number of diagnostics of a kind to show, of `count` in all.
fn room_for(diagnostic: &Diagnostic, count: usize) -> usize {
    match diagnostic.severity {
        Severity::Error => ERRORS_OF_EACH,
        _ if count <= WARNINGS_OF_EACH => WARNINGS_OF_EACH,
        _ => 1,
    }
}

/// A note on diagnostics that are not shown. Layers whose names differ in numbers are named together.
fn fold(hidden: &[&Diagnostic], file: &str) -> Option<String> {
    let code = hidden.first()?.code;
    // Patterns with their first layer and the number of layers, in the order of the findings.
    let mut alike = Vec::<(String, String, usize)>::new();
    let (mut places, mut seen) = (HashMap::new(), HashSet::new());
    for layer in hidden.iter().filter_map(|diagnostic| diagnostic.layer.as_ref()) {
        let name = format!("{} `{}`", layer.id, layer.name);
        if !seen.insert(name.clone()) {
            continue;
        }
        let pattern = without_numbers(&layer.name);
        let at = *places.entry(pattern.clone()).or_insert(alike.len());
        match alike.get_mut(at) {
            Some((.., count)) => *count += 1,
            None => alike.push((pattern, name, 1)),
        }
    }
    let more = if alike.len() > LISTED { ", …" } else { "" };
    let names = alike.iter().take(LISTED).map(|(pattern, name, count)| match count {
        1 => name.clone(),
        count => format!("`{pattern}` ({count} layers)"),
    });
    let names: Vec<_> = names.collect();
    let at = if names.is_empty() { String::new() } else { format!(": layers {}{more}", names.join(", ")) };
    Some(format!("{} more of {code}{at}; `typelift check --all {}` shows them", hidden.len(), model_word(file)))
}

/// Formats one diagnostic with its source, and an empty line.
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
    let message = diagnostic.message.to_string();
    let message = Clean(&brief(&message)).to_string();
    let title = level
        .primary_title(names.message(&message, diagnostic.severity.name().len() + diagnostic.code.name().len() + 4))
        .id(diagnostic.code.name());
    let mut group = Group::with_title(title);
    for excerpt in excerpts(lines, &diagnostic.labels) {
        group = group.elements(excerpt.elements(file));
    }
    let layer = diagnostic.layer.as_ref().filter(|layer| !shows(lines, diagnostic, layer));
    let layer = layer.map(|layer| Level::NOTE.message(told(&Clean(&describe(layer)).to_string(), names)));
    let related = diagnostic.related.iter().map(|related| {
        let line = lines.line_at(related.span.start);
        Level::NOTE.message(told(&Clean(&format!("{related} (line {line})")).to_string(), names))
    });
    let long = diagnostic.labels.iter().filter(|label| is_long(label)).map(|label| {
        let line = lines.line_at(label.span.start);
        Level::NOTE.message(told(&Clean(&format!("line {line}: {}", label.message)).to_string(), names))
    });
    let notes = long.chain(diagnostic.notes.iter().map(|note| Level::NOTE.message(told(&note.to_string(), names))));
    let help = voice.remedies(diagnostic).into_iter().flat_map(|Remedy { words, command, .. }| {
        let help = Level::HELP.message(told(&words, names));
        // A command stays on one line, so that it can be copied.
        let command = command
            .map(|command| Level::HELP.with_name("fix").message(normalize_untrusted_str(&format!("`{command}`"))));
        std::iter::once(help).chain(command)
    });
    let folded = folded.map(|folded| Level::NOTE.message(told(&Clean(&folded).to_string(), names)));
    let group = group.elements(layer.into_iter().chain(related).chain(notes).chain(help).chain(folded));
    let renderer = fit::columns().map_or(Renderer::styled(), |columns| Renderer::styled().term_width(columns));
    let text = renderer.render(&[group]);
    // The renderer prints an empty "::: " above a source whose path was given separately.
    let lines = text.lines().filter(|line| anstream::adapter::strip_str(line).to_string().trim() != ":::");
    lines.collect::<Vec<_>>().join("\n") + "\n\n"
}

/// Formats a note or a help.
fn told(text: &str, names: &ShortNames) -> String {
    names.message(&normalize_untrusted_str(&brief(text)), BEFORE_TEXT)
}

/// Maximum length of a message in bytes.
const LONGEST: usize = 10_000;

/// Removes the middle of a text that is too long for a terminal: the name of a layer may be as long as the file.
fn brief(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return text.into();
    }
    let start = &text[..text.floor_char_boundary(LONGEST / 2)];
    let end = &text[text.ceil_char_boundary(text.len() - LONGEST / 2)..];
    format!("{start}…{end}").into()
}

fn shows(lines: &Lines, diagnostic: &Diagnostic, layer: &LayerRef) -> bool {
    let Some(label) = diagnostic.labels.first().filter(|_| layer.place.is_model()) else { return false };
    let line = lines.line(lines.line_at(label.span.start));
    let text = line.text(lines.source()).trim_start();
    let room = fit::width().saturating_sub(BEFORE_TEXT);
    // A line may be as long as the file.
    text.len() <= WHOLE_LINE
        && text.width() <= room
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
    /// The position of its first byte.
    line: usize,
    /// The position of the first marked part, if the renderer cannot compute it.
    column: Option<usize>,
    /// The part of the text that each label marks.
    labels: Vec<(Range<usize>, &'a Label, AnnotationKind)>,
}

impl<'a> Excerpt<'a> {
    fn elements(self, file: &'a str) -> Vec<Element<'a>> {
        let annotations = self.labels.into_iter().map(|(range, label, kind)| {
            let text = (!label.message.is_empty() && !is_long(label))
                .then(|| normalize_untrusted_str(&label.message.to_string()));
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

/// The parts of the source with labels, that of the first label first; close lines are one part.
fn excerpts<'a>(lines: &Lines, labels: &'a [Label]) -> Vec<Excerpt<'a>> {
    let last = labels.iter().map(|label| lines.line_at(label.span.start)).max().unwrap_or_default();
    let room = fit::columns().map_or(usize::MAX, |columns| columns - last.to_string().len() - BAR);
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let (number, column) = lines.line_column(label.span.start);
        let line = lines.line(number);
        let text = line.text(lines.source());
        // A span over several lines is shown by its first line.
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

fn is_beyond(room: usize, text: &str, pointed: &Range<usize>, label: &Label) -> bool {
    let said = columns_of(&text[..pointed.end]) + usize::from(pointed.is_empty()) + said_width(label);
    said.max(columns_of(text)) > room
}

/// The columns of a text, in which the renderer prints a tab as four.
fn columns_of(text: &str) -> usize {
    text.split('\t').map(|part| part.width() + 4).sum::<usize>() - 4
}

fn is_long(label: &Label) -> bool {
    fit::columns().is_some_and(|columns| label.message.to_string().width() > columns * 5 / 8)
}

fn said_width(label: &Label) -> usize {
    if is_long(label) { 0 } else { label.message.to_string().width() + 1 }
}

/// Cuts a line around the marked part, and returns the new position of that part.
fn cut(text: &str, pointed: Range<usize>, label: &Label, room: usize) -> (String, Range<usize>) {
    const DOTS: &str = "...";
    let indent = text.len() - text.trim_start().len();
    let room = room.min(BEFORE_SPAN + AFTER_START + 2 * DOTS.len()) - 2 * DOTS.len();
    // The message follows the marked part, and has to fit too.
    let said = if fit::columns().is_some() { said_width(label) } else { 0 };
    let shown = pointed.len().min(AFTER_START).min(room.saturating_sub(said)).max(1);
    let before = BEFORE_SPAN.min(room.saturating_sub(said + shown));
    let from = text.floor_char_boundary(pointed.start.saturating_sub(before));
    let from = from.max(indent.min(pointed.start));
    let to = text.floor_char_boundary((from + room).min(pointed.start + AFTER_START)).max(pointed.start);
    let end = text.floor_char_boundary(pointed.end.min(pointed.start + shown)).clamp(pointed.start, to);
    let head = if from <= indent { "" } else { DOTS };
    let tail = if to < text.len() { DOTS } else { "" };
    let text = format!("{head}{}{tail}", &text[from..to]);
    (text, pointed.start - from + head.len()..end - from + head.len())
}

/// Formats an error in colours, wrapped. Lines of the message after the first are an excerpt, and are kept.
pub(crate) fn error(code: Option<&str>, said: &str, remarks: impl Iterator<Item = Remark>) -> String {
    let (first, excerpt) = said.split_at(said.find('\n').unwrap_or(said.len()));
    let indent = BEFORE_ERROR + code.map_or(0, |code| code.len() + 2);
    let title = Level::ERROR.primary_title(fit::wrapped(first, indent) + excerpt);
    let title = match code {
        Some(code) => title.id(code),
        None => title,
    };
    let messages = remarks.map(|remark| {
        let (level, text) = match remark {
            Remark::Note(text) => (Level::NOTE, text),
            Remark::Help(text) => (Level::HELP, text),
        };
        level.message(fit::wrapped(&normalize_untrusted_str(&text), BEFORE_REMARK))
    });
    Renderer::styled().render(&[Group::with_title(title).elements(messages)]) + "\n"
}

/// The columns before the message of an error without a code, and before a remark below it.
const BEFORE_ERROR: usize = 7;
const BEFORE_REMARK: usize = 10;

pub(crate) enum Remark {
    Note(String),
    Help(String),
}
