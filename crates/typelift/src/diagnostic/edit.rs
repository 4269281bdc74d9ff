//! Edits of the text of a file that were tried, and what they do in words.

use std::fmt;

use crate::span::Span;

/// A replacement in the text of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes that go; none where something is only added.
    pub span: Span,
    /// What takes their place.
    pub text: String,
}

impl TextEdit {
    /// Another text in place of these bytes.
    pub(crate) fn new(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// The text with these edits made. Edits that overlap an earlier one are left out.
    #[must_use]
    pub fn apply(edits: &[Self], source: &str) -> String {
        let mut sorted: Vec<_> = edits.iter().collect();
        sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut text = String::with_capacity(source.len() + 64);
        let mut at = 0;
        for edit in sorted {
            let Some(before) = source.get(at..edit.span.start as usize) else { continue };
            text += before;
            text += &edit.text;
            at = edit.span.end as usize;
        }
        text + source.get(at..).unwrap_or_default()
    }
}

/// Edits of the text that were tried: with them the finding is gone, nothing new is wrong, and no port deviates from what the
/// file declares that did not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// What changes in the text.
    pub edits: Vec<TextEdit>,
    /// Whether nothing else that was tried does as well.
    pub certain: bool,
    /// The edits in words.
    pub(crate) words: String,
}

impl Mend {
    /// Edits of this text, said of the layer at `home`.
    pub(crate) fn new(source: &str, home: Option<Span>, edits: Vec<TextEdit>, certain: bool) -> Self {
        let mut words = edits.iter().map(|edit| words_of(source, edit)).collect::<Vec<_>>().join(" and ");
        let is_home = |edit: &TextEdit| home.is_some_and(|it| it.start <= edit.span.start && edit.span.end <= it.end);
        if let Some(first) = edits
            .first()
            .filter(|edit| !is_home(edit) && !edit.span.text(source).contains('<') && edit.span.start < edit.span.end)
        {
            words += &owner_of(source, first.span);
        }
        Self { edits, certain, words }
    }
}

impl fmt::Display for Mend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What an edit does: `write axis="0"`, `add <edge …/>`, `remove groups="2"`.
fn words_of(source: &str, edit: &TextEdit) -> String {
    let before = source.get(..edit.span.start as usize).unwrap_or_default();
    let after = source.get(edit.span.end as usize..).unwrap_or_default();
    let old = edit.span.text(source).trim();
    let new = edit.text.trim();
    let in_tag = before.rfind('<').is_some_and(|open| !before[open..].contains('>'));
    match attribute_around(before, after).filter(|_| in_tag) {
        // The value of an attribute.
        Some(name) => format!("write {name}=\"{new}\""),
        None if new.is_empty() => format!("remove {}", shortened(old)),
        None if old.is_empty() => format!("add {}", shortened(new)),
        None if in_tag && after.starts_with('=') => format!("write `{new}` for `{old}`"),
        None => format!("write {} for {}", shortened(new), shortened(old)),
    }
}

/// The edge or layer that a place is in: ` in <edge …/>`, ` in layer 3 \`sum\``.
fn owner_of(source: &str, place: Span) -> String {
    let before = source.get(..place.start as usize).unwrap_or_default();
    let open = before.rfind('<').unwrap_or_default();
    let tag = source.get(open..).and_then(|rest| rest.get(..=rest.find('>')?)).unwrap_or_default();
    if tag.starts_with("<edge ") {
        return format!(" in {}", shortened(tag));
    }
    let Some(layer) = before.rfind("<layer ").and_then(|at| source.get(at..)) else { return String::new() };
    let layer = layer.split('>').next().unwrap_or_default();
    let value = |name: &str| layer.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    match (value("id"), value("name")) {
        (Some(id), Some(name)) => format!(" in layer {id} `{name}`"),
        _ => String::new(),
    }
}

/// The attribute whose value lies between two texts.
fn attribute_around<'s>(before: &'s str, after: &str) -> Option<&'s str> {
    let quote = before.chars().next_back().filter(|quote| ['"', '\''].contains(quote) && after.starts_with(*quote))?;
    let name = before.strip_suffix(quote)?.trim_end().strip_suffix('=')?.trim_end();
    let start = name.rfind(|c: char| c.is_whitespace())?;
    Some(&name[start + 1..])
}

/// An element in one line, its middle left out where it is long.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
