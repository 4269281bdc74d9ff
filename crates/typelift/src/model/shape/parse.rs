//! Parsing of shapes.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserializer;
use thiserror::Error;

use super::{Dim, Shape};
use crate::base::options::{self, deserialize_as_text};

/// Shape text that OpenVINO's reader refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{fault}")]
#[non_exhaustive]
pub struct ParseShapeError {
    /// The error message.
    pub fault: ShapeFault,
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
}

/// Reason why a shape text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShapeFault {
    /// An item is empty: between two commas, before the first or after the last one.
    #[error("a dimension is missing here")]
    Missing,
    /// An item is neither a number, nor `?`, nor a range.
    #[error("expected a dimension such as `3`, `?` or `1..5`")]
    Dimension,
    /// The part before `..` is not a number.
    #[error("expected a whole number before `..`")]
    LowerBound,
    /// The part after `..` is not a number.
    #[error("expected a whole number after `..`")]
    UpperBound,
}

/// Section of a shape text that OpenVINO's reader silently misreads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Oddity {
    /// The kind of misreading.
    pub kind: OddityKind,
    /// The bytes of the text.
    pub span: Range<usize>,
    /// The dimension that OpenVINO reads there.
    pub read_as: Dim,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the dimension is read as {}", self.kind, self.read_as)
    }
}

/// Kind of misreading of a shape text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OddityKind {
    /// White space between two commas: read as 0.
    Blank,
    /// A number below 0 (other than a dimension `-1`): read as 0; an upper bound below the lower one empties the range.
    Negative,
    /// A number of more than 63 bits. A length or lower bound is read as 0, and an upper bound as unlimited. OpenVINO
    /// uses `i64::MAX` for "no upper bound".
    TooLarge,
    /// A `-` that belongs to no number (`1-2`, `--1`, `-`): reading stops there.
    StrayMinus,
    /// The upper bound is below the lower one. No length is valid, although OpenVINO prints the dimension as `?`.
    Reversed,
}

impl fmt::Display for OddityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank dimension",
            Self::Negative => "negative number",
            Self::TooLarge => "number too large",
            Self::StrayMinus => "stray minus sign",
            Self::Reversed => "upper bound below the lower one",
        })
    }
}

/// Parses a `shape` attribute as [`Shape::parse_lenient`] does, and ignores misreadings.
impl FromStr for Shape {
    type Err = ParseShapeError;

    fn from_str(text: &str) -> Result<Self, ParseShapeError> {
        Self::parse_lenient(text).map(|(shape, _)| shape)
    }
}

/// Shape of an option, without sections that OpenVINO misreads.
struct OptionShape(Shape);

deserialize_as_text!(OptionShape);

impl FromStr for OptionShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |reason: String| format!("`{text}` is not a shape: {reason}");
        let (shape, oddities) = Shape::parse_lenient(text).map_err(|error| refused(error.to_string()))?;
        oddities.first().map_or(Ok(Self(shape)), |oddity| Err(refused(oddity.kind.to_string())))
    }
}

/// Reads shapes by name.
pub fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Shape)>, D::Error> {
    Ok(options::pairs(from)?.into_iter().map(|(name, OptionShape(shape))| (name, shape)).collect())
}

impl Shape {
    /// Parses the `shape` attribute of a Parameter exactly as OpenVINO 2026.4.1 does. Also returns each section that
    /// OpenVINO misreads.
    ///
    /// Items are separated by commas, may be in one pair of brackets, and may have white space around them; `...` is a
    /// dynamic rank. An item is a length, `?` or `-1`, or a range `2..5`, `2..`, `..5`.
    ///
    /// ```
    /// use typelift::shape::{OddityKind, Shape};
    /// let (shape, oddities) = Shape::parse_lenient("1, ?, -2").unwrap();
    /// assert_eq!(shape.to_string(), "[1,?,0]");
    /// assert_eq!((oddities[0].kind, oddities[0].span.clone()), (OddityKind::Negative, 6..8));
    /// assert_eq!("2,,3".parse::<Shape>().unwrap_err().span, 2..2);
    /// ```
    ///
    /// # Errors
    /// [`ParseShapeError`] if OpenVINO refuses the text.
    pub fn parse_lenient(text: &str) -> Result<(Self, Vec<Oddity>), ParseShapeError> {
        let trimmed = trim(text);
        let inner = trim(trimmed.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(trimmed));
        match inner {
            "" => return Ok((Self::scalar(), Vec::new())),
            "..." => return Ok((Self::dynamic(), Vec::new())),
            _ => {}
        }
        let mut reader = ItemReader { text, oddities: Vec::new() };
        let shape = inner.split(',').map(|item| reader.dim(item)).collect::<Result<_, _>>()?;
        Ok((shape, reader.oddities))
    }
}

/// Trims the white space of C's `isspace`, which includes the vertical tab, unlike Rust's ASCII white space.
fn trim(text: &str) -> &str {
    text.trim_matches(|c| matches!(c, ' ' | '\t'..='\r'))
}

struct ItemReader<'a> {
    text: &'a str,
    oddities: Vec<Oddity>,
}

impl<'a> ItemReader<'a> {
    fn dim(&mut self, item: &'a str) -> Result<Dim, ParseShapeError> {
        if item.is_empty() {
            return Err(ParseShapeError { fault: ShapeFault::Missing, span: self.span(item) });
        }
        // Fast case: a plain length of fewer than 19 digits.
        if item.len() < 19
            && item.bytes().all(|b| b.is_ascii_digit())
            && let Ok(length) = item.parse()
        {
            return Ok(Dim::fixed(length));
        }
        let before = self.oddities.len();
        let trimmed = trim(item);
        let dim = if trimmed.is_empty() {
            self.note(OddityKind::Blank, item);
            Dim::fixed(0)
        } else if matches!(trimmed, "?" | "-1") {
            Dim::ANY
        } else if let Some((lower, upper)) = trimmed.split_once("..") {
            let lower = self.number(lower, ShapeFault::LowerBound)?.unwrap_or(0);
            let upper = self.number(upper, ShapeFault::UpperBound)?.unwrap_or(i64::MAX);
            if upper < lower {
                self.note(OddityKind::Reversed, trimmed);
            }
            Dim::between(lower, upper)
        } else {
            Dim::fixed(self.number(trimmed, ShapeFault::Dimension)?.unwrap_or(0))
        };
        for oddity in &mut self.oddities[before..] {
            oddity.read_as = dim;
        }
        Ok(dim)
    }

    /// Parses the number at the start of a text of digits and minus signs; `None` if OpenVINO finds none.
    fn number(&mut self, text: &'a str, fault: ShapeFault) -> Result<Option<i64>, ParseShapeError> {
        if !text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return Err(ParseShapeError { fault, span: self.span(text) });
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let end = digits.find('-').unwrap_or(digits.len());
        let literal = &text[..text.len() - digits.len() + end];
        let number = literal.parse::<i64>().ok();
        if end < digits.len() || (digits.is_empty() && !text.is_empty()) {
            self.note(OddityKind::StrayMinus, text);
        } else if number.is_some_and(i64::is_negative) {
            self.note(OddityKind::Negative, text);
        } else if !text.is_empty() && number.is_none_or(|n| n == i64::MAX) {
            self.note(OddityKind::TooLarge, text);
        }
        Ok(number)
    }

    fn note(&mut self, kind: OddityKind, part: &str) {
        let span = self.span(part);
        self.oddities.push(Oddity { kind, span, read_as: Dim::ANY });
    }

    fn span(&self, part: &str) -> Range<usize> {
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + part.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oddities_point_at_the_number_and_tell_the_outcome() {
        let told = |text| {
            let (_, oddities) = Shape::parse_lenient(text).unwrap();
            oddities.into_iter().map(|oddity| format!("`{}` {oddity}", &text[oddity.span.clone()])).collect::<Vec<_>>()
        };
        assert_eq!(told("[ 2 , ? ,-1, 1..5 ]"), [""; 0]);
        assert_eq!(told("1, -2"), ["`-2` negative number: the dimension is read as 0"]);
        assert_eq!(told("2, ,3"), ["` ` blank dimension: the dimension is read as 0"]);
        assert_eq!(told("3,-1..4"), ["`-1` negative number: the dimension is read as ..4"]);
        assert_eq!(told("1-2"), ["`1-2` stray minus sign: the dimension is read as 1"]);
        assert_eq!(told("--1"), ["`--1` stray minus sign: the dimension is read as 0"]);
        assert_eq!(told(" 5..2,1"), ["`5..2` upper bound below the lower one: the dimension is read as ?"]);
        assert_eq!(
            told("..99999999999999999999"),
            ["`99999999999999999999` number too large: the dimension is read as ?"]
        );
        assert_eq!(
            told("-7..99999999999999999999"),
            [
                "`-7` negative number: the dimension is read as ?",
                "`99999999999999999999` number too large: the dimension is read as ?"
            ]
        );
    }

    #[test]
    fn refusals_point_at_the_item_and_say_what_is_missing() {
        let refused = |text| {
            let fault = Shape::parse_lenient(text).unwrap_err();
            format!("`{}` at {}: {fault}", &text[fault.span.clone()], fault.span.start)
        };
        assert_eq!(refused("1,,3"), "`` at 2: a dimension is missing here");
        assert_eq!(refused("[2,]"), "`` at 3: a dimension is missing here");
        assert_eq!(refused("1, abc"), "`abc` at 3: expected a dimension such as `3`, `?` or `1..5`");
        assert_eq!(refused("1 .. 5"), "`1 ` at 0: expected a whole number before `..`");
        assert_eq!(refused("2,..."), "`.` at 4: expected a whole number after `..`");
        assert_eq!(refused("\u{e9},1"), "`\u{e9}` at 0: expected a dimension such as `3`, `?` or `1..5`");
    }
}
