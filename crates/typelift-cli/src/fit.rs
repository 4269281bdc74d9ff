//! Text that fits the terminal: long names lose their middle if they stay unique, and words are wrapped.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use typelift::Model;
use typelift::graph::numbered_prefix;
use unicode_width::UnicodeWidthStr;

/// The smallest width to which lines are fitted.
const NARROWEST: usize = 60;
/// The indentation of the rest of a line below its start.
const HANG: usize = 4;
/// The smallest number of columns for wrapped words.
const LEAST_ROOM: usize = 24;
/// The number of columns that a short form must save.
const WORTH: usize = 4;

/// The columns to fit text to, `None` for a file or a program; and true if names keep their length.
static LAYOUT: OnceLock<(Option<usize>, bool)> = OnceLock::new();

/// Fits all further output to these columns, if any; with `full_names` names are not shortened.
pub(crate) fn lay_out(columns: Option<usize>, full_names: bool) {
    // Set once, by the terminal.
    let _set = LAYOUT.set((columns.map(|columns| columns.max(NARROWEST)), full_names));
}

/// Returns the width of a line on a terminal.
pub(crate) fn columns() -> Option<usize> {
    LAYOUT.get().and_then(|layout| layout.0)
}

/// Returns the width of a line.
pub(crate) fn width() -> usize {
    columns().unwrap_or(DEFAULT_TERM_WIDTH)
}

fn keeps_names() -> bool {
    LAYOUT.get().is_some_and(|layout| layout.1)
}

/// Returns the columns that a text takes, without its colours.
pub(crate) fn shown_width(text: &str) -> usize {
    if text.contains('\u{1b}') { anstream::adapter::strip_str(text).to_string().width() } else { text.width() }
}

/// Wraps a text to the width after `indent` columns, between words only.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let Some(columns) = columns() else { return text.to_owned() };
    broken(text, columns.saturating_sub(indent), 0)
}

/// Wraps a line with this hanging indentation, or a smaller one if the terminal is too narrow.
pub(crate) fn hanging(line: &str, indent: usize) -> String {
    match columns() {
        Some(columns) if shown_width(line) > columns => {
            broken(line, columns, if indent + LEAST_ROOM <= columns { indent } else { HANG })
        }
        _ => line.to_owned(),
    }
}

/// Breaks a line into several, all but the first with this indentation.
pub(crate) fn broken(line: &str, room: usize, indent: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    let mut is_first = true;
    for word in line.split(' ') {
        let length = shown_width(word);
        if is_first {
            is_first = false;
        } else if used + 1 + length <= room || used <= indent {
            text.push(' ');
            used += 1;
        } else {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        }
        text.push_str(word);
        used += length;
    }
    text
}

/// Names in models, with their short forms.
#[derive(Default)]
pub(crate) struct ShortNames {
    names: HashSet<String>,
    /// The unique short forms of names.
    short: OnceLock<HashMap<String, String>>,
}

impl ShortNames {
    /// Collects the names of layers and tensors in models.
    pub(crate) fn of<'a>(models: impl IntoIterator<Item = &'a Model>) -> Self {
        let mut names = HashSet::new();
        // Without a terminal no name is shortened.
        for model in models.into_iter().filter(|_| columns().is_some() && !keeps_names()) {
            for (place, graph) in model.walk() {
                for layer in graph.layers() {
                    names.insert(layer.name().to_owned());
                    names.insert(place.path_to(layer.name()));
                    names.extend(layer.outputs().iter().flat_map(|port| port.names()));
                }
            }
        }
        Self { names, short: OnceLock::new() }
    }

    /// Collects the names in the text of a file.
    pub(crate) fn in_source(source: &str) -> Self {
        let mut names = HashSet::new();
        if columns().is_some() && !keeps_names() {
            let attributes = source.split(" name=\"").skip(1).filter_map(|rest| rest.split_once('"'));
            names.extend(attributes.map(|(name, _)| name.to_owned()));
        }
        Self { names, short: OnceLock::new() }
    }

    fn short(&self, name: &str) -> Option<&str> {
        let short = self.short.get_or_init(|| {
            let mut users = HashMap::<String, Option<&str>>::new();
            for name in &self.names {
                if let Some(short) = short_form(name) {
                    users.entry(short).and_modify(|user| *user = None).or_insert(Some(name));
                }
            }
            let unique = users.into_iter().filter(|(short, _)| !self.names.contains(short));
            unique.filter_map(|(short, name)| Some((name?.to_owned(), short))).collect()
        });
        short.get(name).map(String::as_str)
    }

    /// Shortens a name to at most this many columns if it stays unique; else as far as it does.
    pub(crate) fn within(&self, name: &str, room: usize) -> String {
        if name.width() <= room { name.to_owned() } else { self.cut(name, room) }
    }

    /// Returns the short form of a name, in at most this many columns if it stays unique.
    fn cut(&self, name: &str, room: usize) -> String {
        if !self.names.contains(name) {
            return name.to_owned();
        }
        let short = self.short(name).unwrap_or(name);
        if short.width() <= room {
            return short.to_owned();
        }
        let letters: Vec<char> = short.chars().collect();
        let kept = room.saturating_sub(1);
        // The end gets more space than the start if that makes the name unique, else the start gets as much as is
        // needed.
        let mut ways = (kept / 3..=kept).step_by(4);
        ways.find_map(|start| self.without_middle(&letters, start, kept - start)).unwrap_or_else(|| short.to_owned())
    }

    /// Returns the start and the end of a name, if no other name shares both.
    fn without_middle(&self, name: &[char], start: usize, end: usize) -> Option<String> {
        let first: String = name.get(..start)?.iter().collect();
        let last: String = name.get(name.len().checked_sub(end)?..)?.iter().collect();
        let head = first.trim_start_matches('…');
        let is_like = |other: &&String| other.contains(head) && other.ends_with(&last);
        self.names.iter().filter(is_like).nth(1).is_none().then(|| format!("{first}…{last}"))
    }

    /// Shortens the names in a line.
    fn shortened<'t>(&self, line: &'t str, room: usize) -> Cow<'t, str> {
        if self.names.is_empty() {
            return line.into();
        }
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| !is_between(c)) {
            text.push_str(&rest[..start]);
            rest = &rest[start..];
            // The code of a colour ends in a letter.
            if text.ends_with("\u{1b}[") {
                let end = rest.find('m').map_or(rest.len(), |end| end + 1);
                text.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            let end = rest.find(is_between).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            text.push_str(&self.word(word, room));
        }
        text.push_str(rest);
        text.into()
    }

    /// Shortens a word if it is a name, or an output of a layer, `split.1`.
    fn word(&self, word: &str, room: usize) -> String {
        let bare = word.trim_end_matches([':', ';']);
        let after = &word[bare.len()..];
        if self.names.contains(bare) {
            return self.cut(bare, room) + after;
        }
        match bare.rsplit_once('.') {
            Some((layer, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && self.names.contains(layer) => {
                format!("{}.{port}{after}", self.cut(layer, room.saturating_sub(port.len() + 1)))
            }
            _ => word.to_owned(),
        }
    }

    /// Wraps a message after `indent` columns, with shorter names if it is too wide for one line.
    pub(crate) fn message(&self, text: &str, indent: usize) -> String {
        match columns() {
            Some(columns) if text.width() + indent > columns => {
                wrapped(&self.shortened(text, columns.saturating_sub(indent)), indent)
            }
            _ => text.to_owned(),
        }
    }

    /// Fits the lines of a text: names are shortened if a line is too wide, then words are wrapped.
    pub(crate) fn fit(&self, text: &str) -> String {
        let Some(columns) = columns() else { return text.to_owned() };
        let mut fitted = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            if shown_width(line) <= columns {
                fitted.push_str(line);
            } else {
                let plain = anstream::adapter::strip_str(line).to_string();
                let indent = plain.len() - plain.trim_start().len();
                let line = self.shortened(line, columns.saturating_sub(indent + HANG + 2));
                let indent = indent + HANG;
                fitted.push_str(&if shown_width(&line) <= columns {
                    line.into()
                } else {
                    broken(&line, columns, indent)
                });
            }
            fitted.push_str(end);
        }
        fitted
    }
}

/// Shortens the names of blocks to `…layers.0–31`, if they stay different and are printed on a terminal.
pub(crate) fn blocks(names: Vec<String>) -> Vec<String> {
    if columns().is_none() || keeps_names() {
        return names;
    }
    let word = |word: &str| match word.rmatch_indices('.').nth(1) {
        Some((at, _)) => format!("…{}", &word[at + 1..]),
        None => word.to_owned(),
    };
    let short: Vec<String> = names.iter().map(|name| name.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect();
    let different: HashSet<&String> = short.iter().collect();
    if different.len() == names.iter().collect::<HashSet<_>>().len() { short } else { names }
}

/// True for characters between words.
fn is_between(c: char) -> bool {
    matches!(c, ' ' | '`' | '(' | ')' | ',' | '"' | '[' | '\u{1b}')
}

/// Returns a name from its block on, `…layers.0.self_attn/cat/Concat_2`, or its last parts; `None` if that saves
/// nothing.
fn short_form(name: &str) -> Option<String> {
    /// The number of parts of a name outside of blocks that are kept.
    const PARTS: usize = 3;
    let start = match numbered_prefix(name) {
        Some(block) => {
            let family = block.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['.', '/']);
            family.rfind(['.', '/']).map_or(0, |at| at + 1)
        }
        None => {
            let ends: Vec<usize> = name.match_indices('/').map(|(at, _)| at).collect();
            match ends.len().checked_sub(PARTS) {
                Some(first) => ends[first] + 1,
                None => name[..ends.first().copied().unwrap_or(0)].rfind('.').map_or(0, |at| at + 1),
            }
        }
    };
    let mut short = String::new();
    if start > 0 {
        short.push('…');
    }
    for (at, part) in name[start..].split('/').enumerate() {
        short.push_str(if at > 0 { "/" } else { "" });
        short.push_str(part.rsplit_once("::").map_or(part, |(_, word)| word));
    }
    (short.width() + WORTH <= name.width()).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> ShortNames {
        ShortNames { names: names.iter().map(|&name| name.to_owned()).collect(), short: OnceLock::new() }
    }

    #[test]
    fn a_name_begins_at_its_block() {
        let short = |name| short_form(name).unwrap_or_default();
        assert_eq!(short("__module.m.model.layers.0.self_attn/aten::cat/Concat_2"), "…layers.0.self_attn/cat/Concat_2");
        assert_eq!(short("__module.m.model.rotary_emb/aten::to/Convert_1"), "…rotary_emb/to/Convert_1");
        assert_eq!(short("model/encoder/attention/self/query/MatMul"), "…self/query/MatMul");
        assert_eq!(short_form("Convert_1"), None);
    }

    #[test]
    fn a_name_that_would_not_be_unique_stays() {
        let known =
            names(&["a.model.layers.0.q/aten::mul/Multiply", "b.model.layers.0.q/aten::mul/Multiply", "a.b.c.d/e/f"]);
        let line = "`a.model.layers.0.q/aten::mul/Multiply` of a.b.c.d/e/f.1: x";
        assert_eq!(known.shortened(line, 60), "`a.model.layers.0.q/aten::mul/Multiply` of …d/e/f.1: x");
    }

    #[test]
    fn the_middle_goes_where_start_and_end_tell_names_apart() {
        let known =
            names(&["attention/aten.attention.default/Attention", "attention_1/aten.attention.default/Attention"]);
        assert_eq!(known.within("attention_1/aten.attention.default/Attention", 30), "attention_1/a…efault/Attention");
        let alike = names(&["attention_with_heads_1/aten/Attention", "attention_with_heads_2/aten/Attention"]);
        let name = "attention_with_heads_1/aten/Attention";
        assert_eq!(alike.within(name, 12), name);
    }

    #[test]
    fn words_go_to_the_next_line_and_colours_take_no_room() {
        assert_eq!(broken("one two three", 8, 2), "one two\n  three");
        assert_eq!(broken("\u{1b}[2mone\u{1b}[0m two three", 8, 2), "\u{1b}[2mone\u{1b}[0m two\n  three");
        assert_eq!(broken("unbreakable", 4, 2), "unbreakable");
    }
}
