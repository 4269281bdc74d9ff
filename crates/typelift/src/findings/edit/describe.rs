//! Descriptions of text edits.

use super::TextEdit;
use crate::base::span::Span;

/// Maximum number of edits that are described one by one.
const MOST_EDITS: usize = 4;

/// Describes edits of `source`, for a finding of the layer at `home`.
pub(in crate::findings) fn describe_edits(source: &str, home: Option<Span>, edits: &[TextEdit]) -> String {
    if let Some(words) = describe_edge(source, edits) {
        return words;
    }
    let mut each = different(source, edits);
    let more = each.len().saturating_sub(MOST_EDITS);
    if more > 0 {
        each.truncate(MOST_EDITS - 1);
        each.push(format!("{} more edits like these", more + 1));
    }
    let mut words = each.join(" and ");
    if let Some(TextEdit { span, .. }) = edits.first()
        && home.is_none_or(|home| span.start < home.start || home.end < span.end)
        && span.start < span.end
        && !span.text(source).contains('<')
    {
        words += &owner_of(source, *span);
    }
    words
}

/// The dims of a port follow an attribute, and need no words of their own.
fn different(source: &str, edits: &[TextEdit]) -> Vec<String> {
    let (dims, others): (Vec<_>, Vec<_>) = edits.iter().partition(|edit| {
        let after = source.get(edit.span.end as usize..).unwrap_or_default();
        after.starts_with("</dim>") || edit.span.text(source).starts_with("<dim>")
    });
    let has_both = !dims.is_empty() && !others.is_empty();
    let mut counts = Vec::<(String, usize)>::new();
    let shown = if others.is_empty() { dims } else { others };
    for words in shown.into_iter().map(|edit| words_of(source, edit)) {
        match counts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => counts.push((words, 1)),
        }
    }
    let each = counts.into_iter().map(|(words, count)| match count {
        1 => words,
        count => format!("{words} in {count} places"),
    });
    each.chain(has_both.then(|| "the same in its port".to_owned())).collect()
}

/// Describes several edits of one edge as one replacement: `write <edge …/> for <edge …/>`.
fn describe_edge(source: &str, edits: &[TextEdit]) -> Option<String> {
    let (first, [_, ..]) = edits.split_first()? else { return None };
    let open = source.get(..first.span.start as usize)?.rfind('<')?;
    let close = open + source.get(open..)?.find('>')? + 1;
    let tag = Span::new(open, close);
    let are_inside = edits.iter().all(|edit| tag.start < edit.span.start && edit.span.end < tag.end);
    if !tag.text(source).starts_with("<edge ") || !are_inside {
        return None;
    }
    let moved = edits.iter().map(|TextEdit { span, text }| {
        TextEdit::new(Span { start: span.start - tag.start, end: span.end - tag.start }, &**text)
    });
    let becomes = TextEdit::apply(&moved.collect::<Vec<_>>(), tag.text(source));
    Some(format!("write {} for {}", shortened(&becomes), shortened(tag.text(source))))
}

/// Describes an edit: `write axis="0"`, `add <edge …/>`, `remove groups="2"`.
fn words_of(source: &str, edit: &TextEdit) -> String {
    let before = source.get(..edit.span.start as usize).unwrap_or_default();
    let after = source.get(edit.span.end as usize..).unwrap_or_default();
    let old = edit.span.text(source).trim();
    let new = edit.text.trim();
    let in_tag = before.rfind('<').is_some_and(|open| !before[open..].contains('>'));
    match attribute_around(before, after).filter(|_| in_tag) {
        // The edit replaces the value of an attribute.
        Some(name) => format!("write {name}=\"{new}\""),
        None if new.is_empty() => format!("remove {}", shortened(old)),
        None if old.is_empty() => format!("add {}", shortened(new)),
        None if in_tag && after.starts_with('=') => format!("write `{new}` for `{old}`"),
        None => format!("write {} for {}", shortened(new), shortened(old)),
    }
}

/// The edge or layer around a position: ` in <edge …/>`, ` in layer 3 \`sum\``.
fn owner_of(source: &str, place: Span) -> String {
    let before = source.get(..place.start as usize).unwrap_or_default();
    let open = before.rfind('<').unwrap_or_default();
    let tag = source.get(open..).and_then(|rest| rest.get(..=rest.find('>')?)).unwrap_or_default();
    if tag.starts_with("<edge ") {
        return format!(" in {}", shortened(tag));
    }
    let Some(layer) = before.rfind("<layer ").and_then(|at| source.get(at..)) else { return String::new() };
    let layer = layer.split('>').next().unwrap_or_default();
    let values = [" id=\"", " name=\""].map(|name| layer.split(name).nth(1)?.split('"').next());
    match values {
        [Some(id), Some(name)] => format!(" in layer {id} `{name}`"),
        _ => String::new(),
    }
}

fn attribute_around<'s>(before: &'s str, after: &str) -> Option<&'s str> {
    let quote = before.chars().next_back().filter(|quote| ['"', '\''].contains(quote) && after.starts_with(*quote))?;
    let name = before.strip_suffix(quote)?.trim_end().strip_suffix('=')?.trim_end();
    let start = name.rfind(|c: char| c.is_whitespace())?;
    Some(&name[start + 1..])
}

/// An element's text for one line, shortened if it is long.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("><", "> <");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
