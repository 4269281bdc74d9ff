//! Tokenizer of the notation.

use std::ops::Range;

use super::NotationError;

#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, end: text.len() }
    }

    pub(crate) fn within(text: &'a str, range: Range<usize>) -> Self {
        Self { text, at: range.start, end: range.end }
    }

    /// The text that is not parsed yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn is_done(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty()
    }

    /// Skips white space and comments, which extend from a `#` after white space to the end of the line.
    pub(crate) fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            if rest.bytes().next().is_some_and(|byte| byte.is_ascii_graphic() && byte != b'#') {
                return;
            }
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let after_space = self.text[..self.at].chars().next_back().is_none_or(char::is_whitespace);
            if !(trimmed.starts_with('#') && after_space) {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Skips white space, and returns the position after it.
    pub(crate) fn start(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    /// Parses with a copy of the cursor, and goes on after the text if it was found.
    pub(crate) fn find<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut ahead = self.clone();
        let found = read(&mut ahead)?;
        *self = ahead;
        Some(found)
    }

    /// Skips white space, and consumes `token` if it comes next.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        self.eat_here(token)
    }

    /// Consumes `token` if it comes directly here.
    pub(crate) fn eat_here(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(crate) fn sees(&mut self, token: &str) -> bool {
        self.skip_space();
        self.rest().starts_with(token)
    }

    pub(crate) fn expect(&mut self, token: &str) -> Result<(), NotationError> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Reads the longest run of characters that satisfy `of`.
    pub(crate) fn run(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !of(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips white space, and consumes a word of letters, digits and `_`; empty if there is none.
    pub(crate) fn word(&mut self) -> &'a str {
        self.skip_space();
        self.run(|c| c.is_alphanumeric() || c == '_')
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        self.find(|ahead| (ahead.word() == word).then_some(())).is_some()
    }

    /// Parses a name: in quotes, or up to the next white space.
    pub(crate) fn name(&mut self, what: &str) -> Result<String, NotationError> {
        self.skip_space();
        if let Some(quoted) = self.quoted()? {
            return Ok(quoted);
        }
        match self.run(|c| !c.is_whitespace()) {
            "" => Err(self.expected(what)),
            name => Ok(name.to_owned()),
        }
    }

    /// Parses a text in quotes, if one comes here: `\n`, `\t`, `\r`, `\\`, `\"` and `\u{…}` are escapes.
    pub(crate) fn quoted(&mut self) -> Result<Option<String>, NotationError> {
        let start = self.at;
        if !self.eat_here("\"") {
            return Ok(None);
        }
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(Some(out));
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some('u') => {
                        let code: String = chars.by_ref().map(|(_, c)| c).skip(1).take_while(|&c| c != '}').collect();
                        let c = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        let fault = start..(self.at + at + 2).min(self.end);
                        out.push(c.ok_or_else(|| {
                            self.error(fault, "`\\u{…}` needs the number of a character; in a path, write `/`")
                        })?);
                    }
                    Some(c) => out.push(c),
                    None => break,
                },
                '\n' => break,
                c => out.push(c),
            }
        }
        Err(self.error(start..start + 1, "this quote is not closed"))
    }

    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> NotationError {
        NotationError { message: message.into(), help: None, near: None, text: self.text.to_owned(), meant: None, span }
    }

    pub(crate) fn expected(&mut self, what: &str) -> NotationError {
        self.skip_space();
        let found = self.rest();
        let word = found.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(found.len());
        let length = word.max(found.chars().next().map_or(0, char::len_utf8));
        if found.is_empty() {
            // The error is placed at the end of the last line with text.
            let end = self.text[..self.at].trim_end().len();
            return self.error(end..end, format!("expected {what}, but the text ends here"));
        }
        self.error(self.at..self.at + length, format!("expected {what}, found `{}`", &found[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::quoted::Quoted;

    #[test]
    fn quoted_names_come_back() {
        for name in ["", "a b", "x\"y\\", "tab\tnew\nline", "\u{7}bell", "=", "=>b", "#a", "ä/β:0", "plain"] {
            let text = format!("{} = rest", Quoted::name(name));
            let mut cursor = Cursor::new(&text);
            assert!(!cursor.sees("="), "{text}: an id before it would be the name");
            assert_eq!(cursor.name("a name").unwrap(), name, "{text}");
            assert!(cursor.eat("="), "{text}");
        }
    }
}
