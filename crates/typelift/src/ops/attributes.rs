//! What an attribute may say.

use std::fmt::Display;
use std::str::FromStr;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::{Fault, Operation};
use crate::diagnostic::Code;
use crate::graph::Layer;
use crate::spelling;

/// The values of an attribute that has several: few, as a rule.
pub(crate) type List<T> = SmallVec<[T; 6]>;

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
            AttrKind::Unsigned => self.unsigned(text).map(|(_, junk)| junk),
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
        let number = trimmed[..sign + digits].parse().map_err(|_| self.invalid(text, "a 64-bit integer"))?;
        Ok((number, sign + digits < trimmed.len()))
    }

    /// As [`number`](Self::number), in 64 bits without sign: OpenVINO's reader takes what fits with one, and wraps.
    pub(crate) fn unsigned(&self, text: &str) -> Result<(u64, bool), Fault> {
        self.number::<i64>(text).map(|(number, junk)| (number as u64, junk))
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
        found.copied().ok_or_else(|| {
            let fault = self.invalid(text, format!("one of {}", words.join(", ")));
            match spelling::word(text, words) {
                Some(meant) => fault.help(format!("write {}=\"{meant}\"", self.name)),
                None => {
                    fault.help(format!("write {}=\"{}\" or another of these", self.name, words.first().unwrap_or(&"")))
                }
            }
        })
    }

    pub(crate) fn element_type(&self, text: &str) -> Result<ElementType, Fault> {
        ElementType::from_name(text).ok_or_else(|| {
            let fault = self.invalid(text, "an element type");
            match (ElementType::from_port_name(text), spelling::element_type(text)) {
                (Some(meant), _) => {
                    fault.help(format!("write {}=\"{meant}\"; only ports spell it `{text}`", self.name))
                }
                (None, Some(meant)) => fault.help(format!("write {}=\"{meant}\"", self.name)),
                (None, None) => {
                    fault.help("element types are f32, f16, bf16, f64, i64, i32, i8, u8, boolean, string, …")
                }
            }
        })
    }

    /// The fields of a list, and whether OpenVINO ignores some of their text.
    pub(crate) fn list<T>(
        &self,
        text: &str,
        parse: impl Fn(&str) -> Result<(T, bool), Fault>,
    ) -> Result<(List<T>, bool), Fault> {
        if text.is_empty() {
            return Ok((List::new(), false));
        }
        let mut junk = false;
        // A comma at the end is none too many.
        let values = text.strip_suffix(',').unwrap_or(text).split(',').map(|field| {
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

/// A layer and the row of its operation: what each attribute says, where the layer or the row gives it a value.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) operation: &'static Operation,
}

impl<'a> Attributes<'a> {
    /// Whether the file gives the attribute a value.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        self.layer.attribute(name).is_some()
    }

    pub(crate) fn bool(&self, name: &'static str) -> Result<bool, Fault> {
        let (attribute, text) = self.text_of(name)?;
        Ok(parse_bool(text).or_else(|| parse_bool(attribute.default?)).unwrap_or(false))
    }

    pub(crate) fn int(&self, name: &'static str) -> Result<i64, Fault> {
        let (attribute, text) = self.text_of(name)?;
        attribute.number(text).map(|(number, _)| number)
    }

    pub(crate) fn unsigned(&self, name: &'static str) -> Result<u64, Fault> {
        let (attribute, text) = self.text_of(name)?;
        attribute.unsigned(text).map(|(number, _)| number)
    }

    pub(crate) fn float(&self, name: &'static str) -> Result<f64, Fault> {
        let (attribute, text) = self.text_of(name)?;
        attribute.float(text).map(|(number, _)| number)
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<&'a str, Fault> {
        self.text_of(name).map(|(_, text)| text)
    }

    /// The word of an enumeration, as the row spells it.
    pub(crate) fn word(&self, name: &'static str) -> Result<&'static str, Fault> {
        let (attribute, text) = self.text_of(name)?;
        match attribute.kind {
            AttrKind::Enum(words) => attribute.word(text, words),
            _ => Ok(""),
        }
    }

    pub(crate) fn type_attribute(&self, name: &'static str) -> Result<ElementType, Fault> {
        let (attribute, text) = self.text_of(name)?;
        attribute.element_type(text)
    }

    pub(crate) fn ints(&self, name: &'static str) -> Result<List<i64>, Fault> {
        let (attribute, text) = self.text_of(name)?;
        attribute.list(text, |field| attribute.number(field)).map(|(numbers, _)| numbers)
    }

    pub(crate) fn floats(&self, name: &'static str) -> Result<List<f64>, Fault> {
        let (attribute, text) = self.text_of(name)?;
        attribute.list(text, |field| attribute.float(field)).map(|(numbers, _)| numbers)
    }

    /// The row of an attribute and its text, or the row's default.
    fn text_of(&self, name: &'static str) -> Result<(&'static Attr, &'a str), Fault> {
        let attribute = self.operation.attribute(name);
        debug_assert!(attribute.is_some(), "{} has no attribute {name} in its row", self.operation.name);
        let Some(attribute) = attribute else {
            return Err(Fault::other(Code::MissingAttribute, format!("there is no attribute `{name}`")));
        };
        match self.layer.attribute(name).or(attribute.default) {
            Some(text) => Ok((attribute, text)),
            None => {
                let message = format!("`{}` needs the attribute `{name}`", self.layer.ty);
                let near = self.layer.attributes.iter().map(|attribute| attribute.name.as_str());
                let near = near.clone().find(|near| spelling::nearest(near, [name].into_iter()).is_some());
                let help = match near {
                    Some(near) => format!("write `{name}` for `{near}` in its <data>"),
                    None => format!("add {name}=\"…\" to its <data>"),
                };
                Err(Fault::other(Code::MissingAttribute, message).help(help))
            }
        }
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
