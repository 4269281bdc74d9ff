//! Text that fits the terminal: long names are shortened to a unique end, and words are wrapped.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use typelift::Model;
use unicode_width::UnicodeWidthStr;

const NARROWEST: usize = 60;
/// The indentation of the rest of a line below its start.
const HANG: usize = 4;
/// The smallest number of columns for wrapped words.
const LEAST_ROOM: usize = 24;
/// The widths of names that are tried so that a line fits, in hundredths of the line.
const ROOMS: [usize; 4] = [100, 70, 50, 35];

/// The columns to fit text to, `None` for a file or a program; and true if names keep their length.
static LAYOUT: OnceLock<(Option<usize>, bool)> = OnceLock::new();

/// Fits all further output to these columns, if any; with `full_names` names are not shortened.
pub(crate) fn lay_out(columns: Option<usize>, full_names: bool) {
    // Set once, by the terminal.
    let _set = LAYOUT.set((columns.map(|columns| columns.max(NARROWEST)), full_names));
}

pub(crate) fn columns() -> Option<usize> {
    LAYOUT.get().and_then(|layout| layout.0)
}

pub(crate) fn width() -> usize {
    columns().unwrap_or(DEFAULT_TERM_WIDTH)
}

fn keeps_names() -> bool {
    LAYOUT.get().is_some_and(|layout| layout.1)
}

/// The columns that a text takes, without its colours.
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

/// Iterates over the words of a line, between single spaces. A command, `` `typelift … ` ``, is one word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let command = if is_command(text) { end_of_command(text) } else { 0 };
        let end = text[command..].find(' ').map(|end| command + end);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

fn is_command(word: &str) -> bool {
    word.starts_with("`typelift ")
}

/// The position after the backtick that ends a command; one within quotes does not.
fn end_of_command(text: &str) -> usize {
    let mut is_quoted = false;
    let ends = text.char_indices().find(|&(at, letter)| {
        is_quoted ^= letter == '\'';
        letter == '`' && at > 0 && !is_quoted
    });
    ends.map_or(0, |(at, _)| at + 1)
}

/// Breaks a line into several, all but the first with this indentation.
pub(crate) fn broken(line: &str, room: usize, indent: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    let mut is_first = true;
    for word in words(line) {
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

/// Names in models, with their short forms: `…attention/Add`, an end that no other name has. Every command accepts it.
#[derive(Default)]
pub(crate) struct ShortNames {
    names: HashSet<String>,
    /// The names in order of their last letters.
    ends: OnceLock<Vec<String>>,
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
        Self { names, ends: OnceLock::new() }
    }

    pub(crate) fn in_source(source: &str) -> Self {
        let mut names = HashSet::new();
        if columns().is_some() && !keeps_names() {
            let attributes = source.split(" name=\"").skip(1).filter_map(|rest| rest.split_once('"'));
            names.extend(attributes.map(|(name, _)| name.to_owned()));
        }
        Self { names, ends: OnceLock::new() }
    }

    /// Shortens a name to at most this many columns, or as far as its end is unique.
    pub(crate) fn within(&self, name: &str, room: usize) -> String {
        if name.width() <= room || !self.names.contains(name) {
            return name.to_owned();
        }
        let starts = name.char_indices().map(|(at, _)| at);
        let unique: Vec<usize> = starts.skip(1).take_while(|at| self.is_unique(&name[*at..])).collect();
        let (long, short): (Vec<usize>, Vec<usize>) = unique.into_iter().partition(|at| name[*at..].width() >= room);
        let mut bordered =
            [&short, &long].map(|ends| ends.iter().filter(|at| name[..**at].ends_with(['.', '/', ':', '_'])));
        let chosen = bordered[0].next().or(short.first()).or(bordered[1].next_back());
        chosen.map_or_else(|| name.to_owned(), |&at| format!("…{}", &name[at..]))
    }

    fn is_unique(&self, end: &str) -> bool {
        let ends = self.ends.get_or_init(|| {
            let mut ends: Vec<String> = self.names.iter().map(|name| name.chars().rev().collect()).collect();
            ends.sort_unstable();
            ends
        });
        let end: String = end.chars().rev().collect();
        let first = ends.partition_point(|name| *name < end);
        ends[first..].iter().take(2).filter(|name| name.starts_with(&end)).count() == 1
    }

    /// Shortens the names in a line that are wider than `room`. Commands keep theirs.
    fn shortened<'t>(&self, line: &'t str, room: usize) -> Cow<'t, str> {
        if self.names.is_empty() {
            return line.into();
        }
        let mut text = String::with_capacity(line.len());
        for (at, word) in words(line).enumerate() {
            text.push_str(if at > 0 { " " } else { "" });
            if is_command(word) {
                text.push_str(word);
                continue;
            }
            let mut rest = word;
            while let Some(start) = rest.find(|c: char| !is_between(c)) {
                text.push_str(&rest[..start]);
                rest = &rest[start..];
                // The code of a colour ends in a letter.
                let is_colour = text.ends_with("\u{1b}[");
                let end = if is_colour { rest.find('m').map(|end| end + 1) } else { rest.find(is_between) };
                let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
                rest = after;
                text.push_str(&if is_colour { name.to_owned() } else { self.word(name, room) });
            }
            text.push_str(rest);
        }
        text.into()
    }

    /// Shortens a word if it is a name, or an output of a layer, `split.1`.
    fn word(&self, word: &str, room: usize) -> String {
        let bare = word.trim_end_matches([':', ';']);
        let after = &word[bare.len()..];
        if self.names.contains(bare) {
            return self.within(bare, room) + after;
        }
        match bare.rsplit_once('.') {
            Some((layer, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && self.names.contains(layer) => {
                format!("{}.{port}{after}", self.within(layer, room.saturating_sub(port.len() + 1)))
            }
            _ => word.to_owned(),
        }
    }

    /// Wraps a message after `indent` columns. Names that are wider than a line are shortened.
    pub(crate) fn message(&self, text: &str, indent: usize) -> String {
        match columns() {
            Some(columns) if text.width() + indent > columns => {
                wrapped(&self.shortened(text, columns.saturating_sub(indent + 2)), indent)
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
                let indent = plain.len() - plain.trim_start().len() + HANG;
                let room = columns.saturating_sub(indent + 2);
                let mut shorter = ROOMS.iter().map(|part| self.shortened(line, room * part / 100));
                let short = shorter.find(|line| shown_width(line) <= columns);
                fitted.push_str(&short.unwrap_or_else(|| broken(&self.shortened(line, room), columns, indent).into()));
            }
            fitted.push_str(end);
        }
        fitted
    }

    /// Counts the lines of a text after [`Self::fit`].
    pub(crate) fn lines(&self, text: &str) -> usize {
        self.fit(text).lines().count()
    }
}

/// Shortens the names of blocks to `…layers.0–31`, if they stay different and are printed on a terminal.
pub(crate) fn blocks(names: Vec<String>) -> Vec<String> {
    if columns().is_none() || keeps_names() {
        return names;
    }
    let words = names.iter().map(|name| name.split(' '));
    let short = words.map(|words| {
        let words = words.map(|word| match word.rmatch_indices('.').nth(1) {
            Some((at, _)) => format!("…{}", &word[at + 1..]),
            None => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    let short: Vec<String> = short.collect();
    let different: HashSet<&String> = short.iter().collect();
    if different.len() == names.iter().collect::<HashSet<_>>().len() { short } else { names }
}

fn is_between(c: char) -> bool {
    matches!(c, ' ' | '`' | '(' | ')' | ',' | '"' | '[' | '\u{1b}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> ShortNames {
        ShortNames { names: names.iter().map(|&name| name.to_owned()).collect(), ends: OnceLock::new() }
    }

    #[test]
    fn a_short_name_is_an_end_that_no_other_name_has() {
        let known = names(&["a.layers.0.q/aten::mul/Multiply", "b.layers.1.q/aten::mul/Multiply", "a.b.c.d/e/f"]);
        assert_eq!(known.within("a.layers.0.q/aten::mul/Multiply", 30), "…layers.0.q/aten::mul/Multiply");
        assert_eq!(known.within("a.layers.0.q/aten::mul/Multiply", 10), "…0.q/aten::mul/Multiply");
        let line = "`a.layers.0.q/aten::mul/Multiply` of a.b.c.d/e/f.1: x";
        assert_eq!(known.shortened(line, 9), "`…0.q/aten::mul/Multiply` of …d/e/f.1: x");
        let alike = names(&["block/add", "add"]);
        assert_eq!(alike.within("add", 1), "add");
    }

    #[test]
    fn a_command_is_one_word_with_whole_names() {
        let known = names(&["model.layers.0.norm/Add"]);
        let line = "try `typelift convert --keep model.layers.0.norm/Add 'a ` b.xml'` now";
        assert_eq!(known.shortened(line, 8), line);
        let command = "`typelift convert --keep model.layers.0.norm/Add 'a ` b.xml'`";
        assert_eq!(words(line).collect::<Vec<_>>(), ["try", command, "now"]);
    }

    #[test]
    fn words_go_to_the_next_line_and_colours_take_no_room() {
        assert_eq!(broken("one two three", 8, 2), "one two\n  three");
        assert_eq!(broken("\u{1b}[2mone\u{1b}[0m two three", 8, 2), "\u{1b}[2mone\u{1b}[0m two\n  three");
        assert_eq!(broken("unbreakable", 4, 2), "unbreakable");
    }
}
