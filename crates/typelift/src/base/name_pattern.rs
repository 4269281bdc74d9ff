//! Patterns of layer names. `*` matches any text, `?` any character, `[0-5]` one character of the range, and `{0..5}`
//! a number from 0 to 5. `{i}` matches one section of the name, between `.`, `/` or `:`, and captures it as `i`.

use std::iter::Peekable;
use std::str::Chars;

use crate::base::hash::HashSet;

/// Characters that separate the sections of a name.
const BORDERS: [char; 3] = ['.', '/', ':'];

/// Pattern of layer names.
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
        let mut fit =
            MatchAttempt { pieces: &self.pieces, name: &name, known, parts: Vec::new(), dead: HashSet::default() };
        fit.fits(0, 0).then_some(fit.parts)
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

/// Attempt to match a pattern with a name, by backtracking.
struct MatchAttempt<'a> {
    pieces: &'a [PatternPiece],
    name: &'a [char],
    known: &'a dyn Fn(&str) -> Option<String>,
    parts: Vec<String>,
    /// Positions in pattern and name from which matching has failed before.
    dead: HashSet<(usize, usize)>,
}

impl MatchAttempt<'_> {
    fn fits(&mut self, piece: usize, at: usize) -> bool {
        let Some(wanted) = self.pieces.get(piece) else { return at == self.name.len() };
        if let PatternPiece::Letter(letter) = wanted {
            return self.name.get(at) == Some(letter) && self.fits(piece + 1, at + 1);
        }
        if self.dead.contains(&(piece, at)) {
            return false;
        }
        let rest = self.name.len() - at.min(self.name.len());
        let mut ends = match wanted {
            PatternPiece::Any => 0..=rest,
            PatternPiece::Part(_) => 1..=self.name[at..].iter().take_while(|letter| !BORDERS.contains(letter)).count(),
            PatternPiece::Number(..) => {
                let digits = self.name[at..].iter().take_while(|letter| letter.is_ascii_digit()).count();
                digits..=digits
            }
            _ => 1..=1,
        };
        let fits = ends.any(|length| {
            let Some(text) = self.name.get(at..at + length) else { return false };
            let text: String = text.iter().collect();
            if !self.allows(wanted, &text) {
                return false;
            }
            self.parts.push(text);
            let fits = self.fits(piece + 1, at + length);
            if !fits {
                self.parts.pop();
            }
            fits
        });
        if !fits {
            self.dead.insert((piece, at));
        }
        fits
    }

    fn allows(&self, piece: &PatternPiece, text: &str) -> bool {
        match piece {
            PatternPiece::Class { negated, ranges } => {
                let letter = text.chars().next().unwrap_or_default();
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter)) != *negated
            }
            PatternPiece::Number(first, last) => {
                text.parse().is_ok_and(|number: u64| (*first..=*last).contains(&number))
            }
            PatternPiece::Part(name) => (self.known)(name).is_none_or(|known| known == text),
            _ => true,
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
    }
}
