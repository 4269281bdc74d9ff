//! The gate that all text passes on its way out: nothing in it moves the cursor, reverses lines or is a command to a CI system.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Text,
    /// Documents of JSON, whose strings have escapes of their own.
    Json,
    /// Lines that are commands to a CI system.
    Commands,
    /// The product that was asked for, byte for byte: a model or a page.
    Product,
}

/// Prefixes of lines that GitHub Actions reads as commands.
const AT_START: &str = "::";
/// Prefix of a line that names a further place of a finding. No CI system reads it as a command.
const PLACE: &str = "::: ";
/// Texts that Azure Pipelines, TeamCity and GitHub Actions read as commands anywhere in a line.
const ANYWHERE: [&str; 3] = ["##[", "##vso[", "##teamcity["];

pub(crate) fn pass(text: &str, form: Form) -> Cow<'_, str> {
    match form {
        Form::Product => Cow::Borrowed(text),
        form => match escape_controls(text, form) {
            Cow::Borrowed(text) => escape_commands(text, form),
            Cow::Owned(text) => Cow::Owned(escape_commands(&text, form).into_owned()),
        },
    }
}

fn is_hostile(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || c.is_control() && c != '\n' && c != '\t'
}

fn escape_controls(text: &str, form: Form) -> Cow<'_, str> {
    // Nearly all text is printable ASCII.
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'));
    if is_plain || !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_hostile) {
        out += &rest[..at];
        rest = &rest[at..];
        let style = if form == Form::Text { style(rest) } else { 0 };
        if style > 0 {
            out += &rest[..style];
            rest = &rest[style..];
        } else if let Some(c) = rest.chars().next() {
            let _ = match form {
                Form::Json => write!(out, "\\u{:04x}", u32::from(c)),
                _ => write!(out, "{}", c.escape_unicode()),
            };
            rest = &rest[c.len_utf8()..];
        }
    }
    Cow::Owned(out + rest)
}

/// The length of the style, such as `ESC [ 1 m`, that a text begins with: the only control sequence that is printed.
fn style(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(codes.len());
    if codes[end..].starts_with('m') { text.len() - codes.len() + end + 1 } else { 0 }
}

/// A name on one line: control characters and line breaks are escaped.
pub(crate) struct Clean<'a>(pub(crate) &'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                c if c.is_control() => write!(f, "{}", c.escape_default())?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

fn escape_commands(text: &str, form: Form) -> Cow<'_, str> {
    let may_start = form == Form::Text && text.contains(AT_START);
    if !may_start && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        let start = without_styles(line);
        if may_start && start.starts_with(AT_START) && !start.starts_with(PLACE) {
            out += &line[..line.len() - start.len()];
            out += "\\u{3a}";
            rest = &start[1..];
        }
        while let Some(at) = ANYWHERE.iter().filter_map(|command| rest.find(command)).min() {
            out += &rest[..at];
            out += if form == Form::Json { "\\u0023" } else { "\\u{23}" };
            rest = &rest[at + 1..];
        }
        out += rest;
    }
    Cow::Owned(out)
}

/// A line without the white space and styles that it begins with.
fn without_styles(mut line: &str) -> &str {
    loop {
        line = line.trim_start();
        match style(line) {
            0 => return line,
            length => line = &line[length..],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_files_commands_nothing() {
        let text = |text: &'static str| pass(text, Form::Text);
        assert_eq!(text("\u{1b}[1mbold\u{1b}[0m\tplain\n"), "\u{1b}[1mbold\u{1b}[0m\tplain\n");
        assert_eq!(text("a\u{1b}[2Jb\u{9b}1A\u{202e}c\r"), "a\\u{1b}[2Jb\\u{9b}1A\\u{202e}c\\u{d}");
        assert_eq!(text("x\n  \u{1b}[1m::error::y :: z"), "x\n  \u{1b}[1m\\u{3a}:error::y :: z");
        assert_eq!(text("  ::: model.xml:3:1\n"), "  ::: model.xml:3:1\n");
        assert_eq!(text("a ##vso[task] ##[error] ## [b]"), "a \\u{23}#vso[task] \\u{23}#[error] ## [b]");
        assert!(matches!(text("opset1::Add ## heading"), Cow::Owned(same) if same == "opset1::Add ## heading"));
        assert!(matches!(text("a layer"), Cow::Borrowed("a layer")));
        assert_eq!(pass("{\"a\": \"\u{85}\u{2066}\"}\n", Form::Json), "{\"a\": \"\\u0085\\u2066\"}\n");
        assert_eq!(pass("::error::\u{1b}[1m", Form::Commands), "::error::\\u{1b}[1m");
        assert_eq!(pass("<net name=\"\u{202e}\"/>", Form::Product), "<net name=\"\u{202e}\"/>");
    }
}
