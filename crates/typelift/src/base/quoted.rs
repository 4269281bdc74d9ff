//! Names in quotes, as statements read them.

use std::fmt::{self, Display, Formatter, Write};

/// Name in the notation; quoted if it would be ambiguous.
pub(crate) struct Quoted<'a> {
    text: &'a str,
    bare: fn(char) -> bool,
}

impl<'a> Quoted<'a> {
    pub(crate) fn name(text: &'a str) -> Self {
        Self { text, bare: |c| !c.is_whitespace() && !c.is_control() && c != '"' && c != '#' }
    }

    pub(crate) fn word(text: &'a str) -> Self {
        Self { text, bare: is_bare }
    }

    pub(crate) fn text(text: &'a str) -> Self {
        Self { text, bare: |_| false }
    }
}

/// True if the character may occur in an attribute value without quotes.
pub(crate) fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !r#",{}[]()="$#'"#.contains(c)
}

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.text.is_empty() && self.text.chars().all(self.bare) && !self.text.starts_with('=') {
            return f.write_str(self.text);
        }
        f.write_char('"')?;
        for c in self.text.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
