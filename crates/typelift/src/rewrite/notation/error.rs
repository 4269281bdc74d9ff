//! Errors of text in the notation, with their position.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use crate::ops::Meant;

/// Error of text in the notation: the message, the position, and the likely meaning.
///
/// `Display` shows the line with a caret under the error:
/// ```
/// let error = typelift::Model::from_text("x = Parameter : f32[3]\ny = Rleu(x)").unwrap_err();
/// assert_eq!(error.to_string(), "\
/// `Rleu` is not an operation
///   y = Rleu(x)
///       ^^^^
///   help: did you mean `Relu`?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotationError {
    /// The error message.
    pub message: String,
    /// A suggestion, if there is one.
    pub help: Option<String>,
    /// A known word that is probably meant in place of the text at the position. The suggestion names it.
    pub near: Option<String>,
    pub(crate) text: String,
    /// The text that is probably meant in a range that is more than the position.
    pub(crate) meant: Option<Box<(Range<usize>, String)>>,
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
}

/// Maximum number of characters of a line that are shown on each side of an error.
const MOST: usize = 100;

impl NotationError {
    /// Returns the wrong line with carets below the error, each on a line of its own after a line end.
    pub fn excerpt(&self) -> String {
        pointer(&self.text, self.span.clone(), "")
    }

    /// Returns line and column of the error, both from 1; columns count characters.
    pub fn line_column(&self) -> (usize, usize) {
        let before = self.text.get(..self.span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Suggests the operation that a name of another framework, or a misspelling, means.
    pub(crate) fn with_meant(self, meant: Meant) -> Self {
        let near = meant.operation.filter(|_| meant.is_same);
        let error = match meant.operation {
            Some(operation) => {
                let span = self.span.clone();
                self.with_meaning(span, operation.to_owned())
            }
            None => self,
        };
        error.with_help(meant.advice).with_near(near)
    }

    /// Returns the text with what is probably meant in place of what is wrong. It may have other errors.
    ///
    /// ```
    /// let error = "Relu(x) => Clip(x, 0, 6)".parse::<typelift::rewrite::Script>().unwrap_err();
    /// assert_eq!(error.corrected().unwrap(), "Relu(x) => Clamp(x, 0, 6)");
    /// ```
    #[must_use]
    pub fn corrected(&self) -> Option<String> {
        let (span, meant) = match &self.meant {
            Some(meant) => (meant.0.clone(), &meant.1),
            None => (self.span.clone(), self.near.as_ref()?),
        };
        Some(format!("{}{meant}{}", self.text.get(..span.start)?, self.text.get(span.end..)?))
    }

    /// Adds the text that is probably meant in a range that is more than what is wrong.
    pub(crate) fn with_meaning(self, range: Range<usize>, meant: String) -> Self {
        Self { meant: Some(Box::new((range, meant))), ..self }
    }

    pub(crate) fn with_near(self, near: Option<&str>) -> Self {
        match near {
            Some(near) => Self { near: Some(near.to_owned()), ..self.with_help(format!("did you mean `{near}`?")) },
            None => self,
        }
    }
}

impl Display for NotationError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        f.write_str(&self.excerpt())?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotationError {}

/// The line of a text in which `span` starts, and below it carets under the span, followed by `label`.
pub(crate) fn pointer(text: &str, span: Range<usize>, label: &str) -> String {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = text.floor_char_boundary(span.end.clamp(start, line_end));
    let clean = |part: &str| part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let before: Vec<char> = clean(&text[line_start..start]).chars().collect();
    let indent = before.iter().take_while(|c| **c == ' ').count();
    let before = &before[indent..];
    let (cut, before) = match before.len().checked_sub(MOST) {
        Some(from) if from > 0 => ("…", &before[from..]),
        _ => ("", before),
    };
    let before = format!("{cut}{}", before.iter().collect::<String>());
    let rest = clean(&text[start..line_end]);
    let after: String = rest.chars().take(2 * MOST).collect();
    let width = text[start..end].width().clamp(1, 2 * MOST);
    let carets = "^".repeat(width);
    let label = if label.is_empty() { String::new() } else { format!(" {label}") };
    format!("\n  {before}{}\n  {:2$}{carets}{label}", after.trim_end(), "", before.width())
}
