//! What an attribute may say.

use std::fmt::Display;
use std::str::FromStr;

use typelift_promote::ElementType;

use super::Fault;

/// An attribute of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attr {
    pub(crate) name: &'static str,
    pub(crate) kind: AttrKind,
    /// What it says where a file does not; `None` where a file must.
    pub(crate) default: Option<&'static str>,
}

/// What kind of value an attribute has, by how OpenVINO's reader parses its text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttrKind {
    /// `true`, `false`, `1`, `0`.
    Bool,
    /// A signed integer.
    Int,
    /// An integer from 0.
    Unsigned,
    /// A floating-point number.
    Float,
    /// Any text.
    Text,
    /// One of these words, in any case.
    Enum(&'static [&'static str]),
    /// An element type, as attributes spell it.
    Type,
    /// Signed integers, separated by commas.
    Ints,
    /// Integers from 0, separated by commas.
    UnsignedInts,
    /// Floating-point numbers, separated by commas.
    Floats,
    /// Words, separated by commas.
    Texts,
    /// A partial shape.
    Shape,
}

impl Attr {
    /// An attribute that the file must have.
    pub(crate) const fn new(name: &'static str, kind: AttrKind) -> Self {
        Self { name, kind, default: None }
    }

    /// The same, saying `default` where the file does not have it.
    pub(crate) const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Whether OpenVINO's reader takes `text` as a value; `Ok(true)` where it does in silence but ignores some of it.
    ///
    /// # Errors
    /// The reason why it does not.
    pub(crate) fn check(&self, text: &str) -> Result<bool, Fault> {
        match self.kind {
            AttrKind::Bool => Ok(parse_bool(text).is_none()),
            AttrKind::Int => self.number::<i64>(text).map(|(_, junk)| junk),
            AttrKind::Unsigned => self.number::<u64>(text).map(|(_, junk)| junk),
            AttrKind::Float => self.float(text).map(|(_, junk)| junk),
            AttrKind::Text | AttrKind::Texts => Ok(false),
            AttrKind::Enum(words) => self.word(text, words).map(|_| false),
            AttrKind::Type => self.element_type(text).map(|_| false),
            AttrKind::Ints => self.list(text, |field| self.number::<i64>(field)).map(|(_, junk)| junk),
            AttrKind::UnsignedInts => self.list(text, |field| self.number::<u64>(field)).map(|(_, junk)| junk),
            AttrKind::Floats => self.list(text, |field| self.float(field)).map(|(_, junk)| junk),
            // A Parameter's shape has its own lints.
            AttrKind::Shape => Ok(false),
        }
    }

    /// The number at the start of `text`, and whether more follows.
    pub(crate) fn number<T: FromStr>(&self, text: &str) -> Result<(T, bool), Fault> {
        let trimmed = text.trim();
        let sign = usize::from(trimmed.starts_with('-'));
        let digits = trimmed[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let number = trimmed[..sign + digits].parse().map_err(|_| self.invalid(text, "a number"))?;
        Ok((number, sign + digits < trimmed.len()))
    }

    pub(crate) fn float(&self, text: &str) -> Result<(f64, bool), Fault> {
        let trimmed = text.trim();
        // The longest start that is a number.
        let ends = (1..=trimmed.len().min(64)).rev().filter(|&end| trimmed.is_char_boundary(end));
        for end in ends {
            let start = &trimmed[..end];
            let spelled = start.trim_start_matches('-');
            let word = spelled.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
            if word && !["inf", "nan"].contains(&spelled) {
                continue;
            }
            if let Ok(number) = start.parse::<f64>() {
                if number.is_infinite() && !word {
                    break;
                }
                return Ok((number, end < trimmed.len()));
            }
        }
        Err(self.invalid(text, "a number"))
    }

    pub(crate) fn word(&self, text: &str, words: &[&'static str]) -> Result<&'static str, Fault> {
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        found.copied().ok_or_else(|| self.invalid(text, format!("one of {}", words.join(", "))))
    }

    pub(crate) fn element_type(&self, text: &str) -> Result<ElementType, Fault> {
        ElementType::from_name(text).ok_or_else(|| {
            let fault = self.invalid(text, "an element type");
            match ElementType::from_port_name(text) {
                Some(meant) => fault.help(format!("attributes spell it `{meant}`; `{text}` is how ports do")),
                None => fault,
            }
        })
    }

    /// The fields of a list, and whether OpenVINO ignores some of their text.
    pub(crate) fn list<T>(
        &self,
        text: &str,
        parse: impl Fn(&str) -> Result<(T, bool), Fault>,
    ) -> Result<(Vec<T>, bool), Fault> {
        if text.is_empty() {
            return Ok((Vec::new(), false));
        }
        let mut junk = false;
        let values = text.split(',').map(|field| {
            let (value, more) = parse(field)?;
            junk |= more;
            Ok(value)
        });
        let values = values.collect::<Result<_, Fault>>()?;
        Ok((values, junk))
    }

    fn invalid(&self, text: &str, expected: impl Display) -> Fault {
        Fault::attribute(self.name, format!("attribute `{}` is `{text}`, not {expected}", self.name))
    }
}

/// A boolean; `None` for a text that OpenVINO's reader passes over, leaving the default.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") || text == "1" {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") || text == "0" {
        Some(false)
    } else {
        None
    }
}
