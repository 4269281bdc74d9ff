//! Patterns of layer names. `*` matches any text, `?` any character, `[0-5]` one character of the range, and `{0..5}`
//! a number from 0 to 5. `{i}` matches one section of the name, between `.`, `/` or `:`, and captures it as `i`.

use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;

use crate::base::hash::{HashMap, HashSet};

/// Characters that separate the sections of a name.
const BORDERS: [char; 3] = ['.', '/', ':'];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern {
    text: String,
    pieces: Vec<PatternPiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    Letter(char),
    /// `*`
    Any,
    /// `?`
    One,
    /// `[a-z]`, `[!a-z]`
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    /// `{0..5}`
    Number(u64, u64),
    /// `{i}`
    Part(String),
}

impl NamePattern {
    /// Parses a pattern. A bracket or brace that starts no valid class, number or section is an ordinary character.
    pub(crate) fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            pieces.push(match letter {
                '*' => PatternPiece::Any,
                '?' => PatternPiece::One,
                '[' => inside(&mut letters, ']').and_then(|inner| class(&inner)).unwrap_or(PatternPiece::Letter('[')),
                '{' => inside(&mut letters, '}').and_then(|inner| braces(&inner)).unwrap_or(PatternPiece::Letter('{')),
                letter => PatternPiece::Letter(letter),
            });
            if let Some(PatternPiece::Class { .. } | PatternPiece::Number(..) | PatternPiece::Part(_)) = pieces.last() {
                let end = if letter == '[' { ']' } else { '}' };
                // A class contains at least one character, even `]`.
                letters.next();
                letters.by_ref().find(|&letter| letter == end);
            }
        }
        Self { text: text.to_owned(), pieces }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pieces.iter().any(|piece| !matches!(piece, PatternPiece::Letter(_)))
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            PatternPiece::Part(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// `None` if the name does not match. `known` returns the text that a captured section must have, if it is fixed
    /// already.
    pub(crate) fn captures(&self, name: &str, known: &dyn Fn(&str) -> Option<String>) -> Option<Vec<String>> {
        if !self.is_open() {
            return (self.text == name).then(Vec::new);
        }
        let name: Vec<_> = name.chars().collect();
        let attempt = MatchAttempt { pieces: &self.pieces, name: &name, known };
        let spans = attempt.spans()?.into_iter().zip(&self.pieces);
        let wildcards = spans.filter(|(_, piece)| !matches!(piece, PatternPiece::Letter(_)));
        Some(wildcards.map(|(span, _)| name[span].iter().collect()).collect())
    }

    pub(crate) fn named(&self, name: &str, known: &dyn Fn(&str) -> Option<String>) -> Option<Vec<(&str, String)>> {
        let captures = self.captures(name, known)?;
        let wildcards = self.pieces.iter().filter(|piece| !matches!(piece, PatternPiece::Letter(_)));
        let parts = wildcards.zip(captures).filter_map(|(piece, text)| match piece {
            PatternPiece::Part(name) => Some((name.as_str(), text)),
            _ => None,
        });
        Some(parts.collect())
    }

    /// `None` if their numbers differ.
    pub(crate) fn fill(&self, texts: &[String]) -> Option<String> {
        let mut texts = texts.iter();
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                PatternPiece::Letter(letter) => filled.push(*letter),
                _ => filled.push_str(texts.next()?),
            }
        }
        texts.next().is_none().then_some(filled)
    }
}

/// `None` if `end` does not follow.
fn inside(letters: &mut Peekable<Chars>, end: char) -> Option<Vec<char>> {
    let mut found = Vec::new();
    for letter in letters.clone() {
        if letter == end && !found.is_empty() {
            return Some(found);
        }
        found.push(letter);
    }
    None
}

fn class(inner: &[char]) -> Option<PatternPiece> {
    let (negated, inner) = match inner {
        ['!' | '^', rest @ ..] if !rest.is_empty() => (true, rest),
        inner => (false, inner),
    };
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Some(&first) = inner.get(at) {
        let last = inner.get(at + 2).filter(|_| inner.get(at + 1) == Some(&'-'));
        ranges.push((first, last.copied().unwrap_or(first)));
        at += if last.is_some() { 3 } else { 1 };
    }
    ranges.iter().all(|(first, last)| first <= last).then_some(PatternPiece::Class { negated, ranges })
}

fn braces(inner: &[char]) -> Option<PatternPiece> {
    let text: String = inner.iter().collect();
    if let Some((first, last)) = text.split_once("..") {
        return Some(PatternPiece::Number(first.parse().ok()?, last.parse().ok()?)).filter(|_| !text.contains('+'));
    }
    let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_') && text.starts_with(char::is_alphabetic);
    is_name.then_some(PatternPiece::Part(text))
}

/// Attempt to match a pattern with a name, by backtracking. It is a loop, because a name may have millions of letters.
struct MatchAttempt<'a> {
    pieces: &'a [PatternPiece],
    name: &'a [char],
    known: &'a dyn Fn(&str) -> Option<String>,
}

impl MatchAttempt<'_> {
    /// The letters that each piece matches, as few as possible for the first pieces.
    fn spans(&self) -> Option<Vec<Range<usize>>> {
        let (mut spans, mut at, mut least) = (Vec::<Range<usize>>::new(), 0, 0);
        // Positions from which a section has failed before, and the first one for each `*`: what follows a `*` fails from all later ones.
        let (mut failed, mut failed_from) = (HashSet::default(), HashMap::default());
        while spans.len() < self.pieces.len() || at < self.name.len() {
            let piece = spans.len();
            let is_known = failed.contains(&(piece, at)) || failed_from.get(&piece).is_some_and(|&from| from <= at);
            if let Some(length) = self.length(piece, at, least).filter(|_| !is_known) {
                spans.push(at..at + length);
                (at, least) = (at + length, 0);
                continue;
            }
            match self.pieces.get(piece) {
                Some(PatternPiece::Any) => {
                    _ = failed_from.entry(piece).and_modify(|from| *from = at.min(*from)).or_insert(at)
                }
                Some(PatternPiece::Part(_)) => _ = failed.insert((piece, at)),
                _ => {}
            }
            let last = spans.pop()?;
            (at, least) = (last.start, last.len() + 1);
        }
        Some(spans)
    }

    /// The smallest number of letters, at least `least`, that a piece matches from this position.
    fn length(&self, piece: usize, at: usize, least: usize) -> Option<usize> {
        let rest = &self.name[at..];
        let all = |fits: fn(char) -> bool| rest.iter().take_while(|&&letter| fits(letter)).count();
        let one = |fits: bool| (least <= 1 && fits).then_some(1);
        match self.pieces.get(piece)? {
            PatternPiece::Letter(letter) => one(rest.first() == Some(letter)),
            PatternPiece::One => one(!rest.is_empty()),
            PatternPiece::Class { negated, ranges } => one(rest
                .first()
                .is_some_and(|letter| ranges.iter().any(|(first, last)| (first..=last).contains(&letter)) != *negated)),
            PatternPiece::Any => Some(least).filter(|&length| length <= rest.len()),
            PatternPiece::Number(first, last) => Some(all(|letter| letter.is_ascii_digit())).filter(|&length| {
                let number = rest[..length].iter().collect::<String>().parse::<u64>();
                least <= length && number.is_ok_and(|number| (*first..=*last).contains(&number))
            }),
            PatternPiece::Part(name) => {
                let mut lengths = least.max(1)..=all(|letter| !BORDERS.contains(&letter));
                let known = (self.known)(name).map(|known| known.chars().collect::<Vec<_>>());
                lengths.find(|&length| known.as_ref().is_none_or(|known| rest[..length] == known[..]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pattern: &str, name: &str) -> Option<Vec<String>> {
        NamePattern::new(pattern).captures(name, &|_| None)
    }

    #[test]
    fn classes_numbers_and_parts_fit_names() {
        let cases = [
            ("layer.[0-5].*", "layer.3.q", Some(vec!["3", "q"])),
            ("layer.[0-5].*", "layer.7.q", None),
            ("layer.[!0-5].*", "layer.7.q", Some(vec!["7", "q"])),
            ("layer.{0..11}.*", "layer.10.q", Some(vec!["10", "q"])),
            ("layer.{0..5}*", "layer.12.q", None),
            ("*.layers.{i}.*", "model.layers.12.mlp.up", Some(vec!["model", "12", "mlp.up"])),
            ("h{i}", "h12", Some(vec!["12"])),
            ("h{i}", "h1.2", None),
            ("a[", "a[", Some(vec![])),
            ("a{", "a{", Some(vec![])),
            ("a[]b", "a[]b", Some(vec![])),
            ("{0..}x", "{0..}x", Some(vec![])),
            ("*{i}*", "ab", Some(vec!["", "a", "b"])),
            ("a[*]b", "a*b", Some(vec!["*"])),
            ("gr\u{fc}?", "gr\u{fc}n", Some(vec!["n"])),
        ];
        for (pattern, name, expected) in cases {
            let expected = expected.map(|parts| parts.into_iter().map(str::to_owned).collect());
            assert_eq!(parts(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_known_part_must_be_there() {
        let pattern = NamePattern::new("*.{i}.*");
        let known = |name: &str| (name == "i").then(|| "3".to_owned());
        assert_eq!(pattern.named("a.2.3.b", &known), Some(vec![("i", "3".to_owned())]));
        assert_eq!(pattern.named("a.2.4.b", &known), None);
        assert_eq!(pattern.parts().collect::<Vec<_>>(), ["i"]);
    }

    #[test]
    fn texts_take_the_place_of_wildcards() {
        let texts = ["3".to_owned(), "q".to_owned()];
        assert_eq!(NamePattern::new("now.*.?").fill(&texts).as_deref(), Some("now.3.q"));
        assert_eq!(NamePattern::new("now.*").fill(&texts), None);
        assert_eq!(NamePattern::new("now.*.*.*").fill(&texts), None);
    }

    #[test]
    fn many_wildcards_take_little_time() {
        assert_eq!(parts(&"*a".repeat(40), &"a".repeat(39)), None);
        assert_eq!(parts(&"*{i}".repeat(20), &".".repeat(500)), None);
        assert_eq!(parts("*a*b", &"a".repeat(1_000_000)), None);
    }

    #[test]
    fn long_names_take_no_stack() {
        let found = parts(&format!("{}[a]", "?".repeat(300_000)), &"a".repeat(300_001));
        assert_eq!(found.map(|found| found.len()), Some(300_001));
    }
}
