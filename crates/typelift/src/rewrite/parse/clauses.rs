//! Clauses of a rule, and definitions that rules share.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Parser, Section};
use crate::ops;
use crate::rewrite::notation::{Cursor, NotationError};
use crate::rewrite::pattern::Allowed;
use crate::rewrite::term::{Definition, Name};

/// Clauses of a rule, as byte ranges of its text.
#[derive(Clone, Debug, Default)]
pub(super) struct Clauses {
    pub(super) pattern: Range<usize>,
    pub(super) replacement: Option<Range<usize>>,
    /// Definitions after `where`.
    pub(super) definitions: Vec<Item>,
    pub(super) condition: Option<Range<usize>>,
    pub(super) allowed: Allowed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clause {
    Pattern,
    Replacement,
    Where,
    If,
    Allow,
}

pub(in crate::rewrite) fn starts_clause(line: &str) -> bool {
    let mut cursor = Cursor::new(line);
    if ["|", "=>", "&&"].iter().any(|mark| cursor.sees(mark)) {
        return true;
    }
    let mut ahead = cursor.clone();
    let word = ahead.word();
    let is_word = ahead.peek().is_none_or(char::is_whitespace);
    is_word && ["where", "if", "with", "allow"].contains(&word) && !ahead.sees("=>")
}

pub(super) fn split(text: &str, range: Range<usize>) -> Result<Clauses, NotationError> {
    let mut marks = vec![(Clause::Pattern, range.start, range.start)];
    let mut at = OuterCharacters { cursor: Cursor::within(text, range.clone()), depth: 0 };
    while let Some(place) = at.next_outside() {
        let rest = &text[place..range.end];
        let before = text[range.start..place].chars().next_back().unwrap_or(' ');
        let word = |word: &str| {
            rest.strip_prefix(word).is_some_and(|rest| rest.starts_with(char::is_whitespace)) && before.is_whitespace()
        };
        let (clause, length) = match () {
            () if rest.starts_with("=>") => (Clause::Replacement, 2),
            () if word("where") => (Clause::Where, 5),
            () if word("if") => (Clause::If, 2),
            () if word("allow") => (Clause::Allow, 5),
            () => continue,
        };
        if let Some(&(_, earlier, _)) = marks.iter().find(|(known, ..)| *known == clause) {
            let error = Cursor::new(text).error(place..place + length, format!("`{}` appears twice", &rest[..length]));
            return Err(if earlier == place {
                error
            } else {
                error.with_help("a rule can have each clause only once")
            });
        }
        marks.push((clause, place, place + length));
    }
    let mut clauses = Clauses::default();
    for (at, &(clause, _, start)) in marks.iter().enumerate() {
        let end = marks.get(at + 1).map_or(range.end, |&(_, start, _)| start);
        match clause {
            Clause::Pattern => clauses.pattern = start..end,
            Clause::Replacement => clauses.replacement = Some(start..end),
            Clause::If => clauses.condition = Some(start..end),
            Clause::Where => clauses.definitions = items(text, start..end)?,
            Clause::Allow => clauses.allowed = allowed(Cursor::within(text, start..end))?,
        }
    }
    Ok(clauses)
}

/// Reads `integers, ranks`.
fn allowed(mut cursor: Cursor) -> Result<Allowed, NotationError> {
    let mut allowed = Allowed::default();
    loop {
        let start = cursor.start();
        let word = cursor.word().to_owned();
        if !allowed.lift(&word) {
            let error = cursor.error(start..cursor.at.max(start + 1), "this is not a limit that `allow` can lift");
            return Err(error.with_help(format!("`allow` takes {}", Allowed::WORDS.join(", "))));
        }
        if !cursor.eat(",") {
            break;
        }
    }
    if cursor.is_done() { Ok(allowed) } else { Err(cursor.expected("`,` or the end of the rule")) }
}

/// Definition: its names, a flag that is true if the only one is a list, and the position of its pattern.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) names: Vec<String>,
    pub(super) is_list: bool,
    pub(super) body: Range<usize>,
}

/// Parses definitions: `a = P, (b, c) = Q`. Each begins at the start, after a comma, or on a new line.
fn items(text: &str, range: Range<usize>) -> Result<Vec<Item>, NotationError> {
    let mut starts = vec![(range.start, range.start)];
    let mut at = OuterCharacters { cursor: Cursor::within(text, range.clone()), depth: 0 };
    while let Some(place) = at.next_outside() {
        let next = place + 1;
        if text[place..].starts_with([',', '\n']) && head(&mut Cursor::within(text, next..range.end)).is_some() {
            starts.push((place, next));
        }
    }
    let mut found = Vec::new();
    for (at, &(_, start)) in starts.iter().enumerate() {
        let end = starts.get(at + 1).map_or(range.end, |&(end, _)| end);
        let mut cursor = Cursor::within(text, start..end);
        let (names, is_list) = head(&mut cursor).ok_or_else(|| cursor.expected("`NAME = PATTERN`"))?;
        found.push(Item { names, is_list, body: cursor.at..end });
    }
    Ok(found)
}

/// Parses the names of a definition: `a =`, `(a, b) =` or `(a...) =`. The flag is true if the only name is a list.
pub(super) fn head(cursor: &mut Cursor) -> Option<(Vec<String>, bool)> {
    let (mut names, mut is_list) = (Vec::new(), false);
    if cursor.eat("(") {
        loop {
            names.push(cursor.word().to_owned());
            is_list = names.len() == 1 && cursor.eat_here("...");
            if is_list || !cursor.eat(",") {
                break;
            }
        }
        if !cursor.eat(")") {
            return None;
        }
    } else {
        names.push(cursor.word().to_owned());
    }
    let fits = !names.iter().any(String::is_empty) && !cursor.sees("=>") && !cursor.sees("==") && cursor.eat("=");
    fits.then_some((names, is_list))
}

/// Iterator over the characters of a text outside of brackets, quotes and comments.
struct OuterCharacters<'a> {
    cursor: Cursor<'a>,
    depth: usize,
}

impl OuterCharacters<'_> {
    fn next_outside(&mut self) -> Option<usize> {
        loop {
            let at = self.cursor.at;
            let c = self.cursor.peek()?;
            let before = self.cursor.text[..at].chars().next_back().unwrap_or(' ');
            match c {
                '"' if self.cursor.quoted().is_ok_and(|quoted| quoted.is_some()) => continue,
                '#' if before.is_whitespace() => {
                    self.cursor.skip_space();
                    continue;
                }
                '(' | '[' | '{' => self.depth += 1,
                ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.cursor.at += c.len_utf8();
            if self.depth == 0 {
                return Some(at);
            }
        }
    }
}

/// Names that rules of a script can use: patterns with parameters, and tensors.
#[derive(Clone, Debug, Default)]
pub(in crate::rewrite) struct Definitions {
    patterns: BTreeMap<String, Macro>,
    /// The names of `let`.
    tensors: BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Macro {
    pub(super) parameters: Vec<String>,
    pub(super) body: String,
}

impl Definitions {
    pub(super) fn get(&self, name: &str) -> Option<&Macro> {
        self.patterns.get(name)
    }

    pub(in crate::rewrite) fn declare(&mut self, name: &str) {
        self.tensors.insert(name.to_owned());
    }

    pub(super) fn is_tensor(&self, name: &str) -> bool {
        self.tensors.contains(name)
    }

    /// Parses `NAME(a, b) = PATTERN`, which can use earlier definitions.
    pub(in crate::rewrite) fn read(&mut self, text: &str, range: Range<usize>) -> Result<(), NotationError> {
        let mut cursor = Cursor::within(text, range.clone());
        let start = cursor.start();
        let name = cursor.word().to_owned();
        if name.is_empty() {
            return Err(cursor.expected("the name of a pattern"));
        }
        // A pattern may have the name of a function, because functions occur only in replacements and conditions.
        let taken = ops::revisions(&name).iter().any(|row| row.name == name);
        if taken || self.patterns.contains_key(&name) {
            return Err(cursor.error(start..cursor.at, format!("`{name}` is already defined")));
        }
        cursor.expect("(")?;
        let mut parameters = Vec::new();
        loop {
            match cursor.word() {
                "" => return Err(cursor.expected("the name of a parameter")),
                parameter => parameters.push(parameter.to_owned()),
            }
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.expect(")")?;
        cursor.expect("=")?;
        // The definition is parsed once with names as operands, so that errors are reported at their position.
        let mut parser = Parser::new(Cursor::within(text, cursor.at..range.end), self);
        for parameter in &parameters {
            let name = parser.bind(parameter.clone(), false);
            let term = crate::rewrite::term::TermKind::Name { name, constant: false };
            let term = parser.put(start..start, term)?;
            parser.parameters.push((parameter.clone(), term));
        }
        parser.alternatives()?;
        if !parser.cursor.is_done() {
            return Err(parser.cursor.expected("the end of the definition"));
        }
        let body = text[cursor.at..range.end].to_owned();
        self.patterns.insert(name, Macro { parameters, body });
        Ok(())
    }
}

impl<'a> Parser<'a> {
    /// Declares the names of `where`, so that any pattern can use them.
    pub(super) fn declare(&mut self, clauses: &Clauses) -> Result<(), NotationError> {
        for Item { names, is_list, body } in &clauses.definitions {
            for name in names {
                if self.parsed.names.iter().any(|known| known.text == *name) {
                    let error = self.cursor.error(body.clone(), format!("`{name}` is defined twice"));
                    return Err(error);
                }
                self.parsed.names.push(Name { is_list: *is_list, ..Name::new(name.clone()) });
            }
        }
        Ok(())
    }

    pub(super) fn define(&mut self, text: &'a str, clauses: &Clauses) -> Result<(), NotationError> {
        self.mode = Section::Pattern;
        for Item { names, is_list, body } in &clauses.definitions {
            self.cursor = Cursor::within(text, body.clone());
            let term = self.alternatives()?;
            if !self.cursor.is_done() {
                return Err(self.cursor.expected("`,` or the end of the definition"));
            }
            let own: Vec<_> = names.iter().map(|name| self.bind(name.clone(), false)).collect();
            let outputs = if own.len() > 1 || *is_list { own.clone() } else { Vec::new() };
            for &name in &own {
                self.parsed.names[name].definition = Some(Definition { term, outputs: outputs.clone() });
            }
        }
        Ok(())
    }
}
