//! Attributes of operations, and the values they may have.

use std::fmt::Display;
use std::ops::Deref;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::{Fault, Operation};
use crate::base::foreign;
use crate::base::number::{float_prefix, integer_prefix, plain_integers, whole};
use crate::findings::{About, Code, Fix, Message, Owner, Text, list, message};
use crate::model::graph::{Attribute, Layer};
use crate::model::shape::Shape;

/// Values of a list attribute, usually few.
pub(crate) type List<T> = SmallVec<[T; 6]>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attr {
    pub(crate) name: &'static str,
    pub(crate) kind: AttrKind,
    /// Default that OpenVINO uses if a file omits the attribute; `None` if the attribute is required.
    pub(crate) default: Option<&'static str>,
    /// True if the attribute is the element type of an output.
    pub(crate) types_output: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum AttrKind {
    /// `true`, `false`, `1`, `0`.
    Bool,
    Int,
    Unsigned,
    /// Number of bytes in the weights: an integer with an optional sign, without other text.
    Bytes,
    Float,
    Text,
    /// One of these words, in any case.
    Enum(&'static [&'static str]),
    /// An element type in the spelling of attributes, such as `f32`.
    Type,
    /// Signed integers, separated by commas.
    Ints,
    /// Non-negative integers, separated by commas.
    UnsignedInts,
    /// Floating-point numbers, separated by commas.
    Floats,
    /// Texts, separated by commas.
    Texts,
    Shape,
}

impl Attr {
    pub(crate) const fn new(name: &'static str, kind: AttrKind) -> Self {
        Self { name, kind, default: None, types_output: matches!(kind, AttrKind::Type) }
    }

    /// Marks an element type that only the inference rule uses: it is not necessarily that of an output.
    pub(super) const fn of_rule(mut self) -> Self {
        self.types_output = false;
        self
    }

    pub(crate) const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    pub(crate) fn takes(&self, text: &str) -> bool {
        self.read(text, &mut Lists::default()).is_ok()
    }

    pub(crate) fn is_clear(&self, text: &str) -> bool {
        self.read(text, &mut Lists::default()).is_ok_and(|(_, is_odd)| !is_odd)
    }

    /// Parses `text`; the elements of a list are appended to `lists`. The flag is true if OpenVINO's reader silently
    /// ignores part of the text.
    ///
    /// # Errors
    /// A text that the reader does not accept, with the reason.
    fn read(&self, text: &str, lists: &mut Lists) -> Result<(AttrValue, bool), Fault> {
        match self.kind {
            // Any text that is not a boolean leaves the default.
            AttrKind::Bool => {
                let value = parse_bool(text);
                Ok((AttrValue::Bool(value.or_else(|| parse_bool(self.default?)).unwrap_or(false)), value.is_none()))
            }
            // OpenVINO's reader also accepts a sign before an unsigned number; a negative one becomes a large one.
            AttrKind::Int | AttrKind::Unsigned => {
                self.integer(text).map(|(number, junk)| (AttrValue::Int(number), junk))
            }
            AttrKind::Bytes => match whole(text).and_then(|number| i64::try_from(number).ok()) {
                Some(number) => Ok((AttrValue::Int(number), false)),
                None => self.integer(text).map(|(number, junk)| (AttrValue::Int(number), junk)),
            },
            AttrKind::Float => self.float(text).map(|(number, junk)| (AttrValue::Float(number), junk)),
            AttrKind::Text | AttrKind::Texts => Ok((AttrValue::Text, false)),
            // Errors in a shape are reported by the rule of the operation.
            AttrKind::Shape => Shape::parse_lenient(text)
                .map(|_| (AttrValue::Text, false))
                .map_err(|error| Fault::shape_text(self.name, text, error)),
            AttrKind::Enum(words) => Ok((AttrValue::Word(self.word(text, words)?), false)),
            AttrKind::Type => Ok((AttrValue::Type(self.element_type(text)?), false)),
            AttrKind::Ints | AttrKind::UnsignedInts => {
                self.integers(text, &mut lists.ints).map(|(range, junk)| (AttrValue::Ints(range), junk))
            }
            AttrKind::Floats => {
                let list = read_list(text, &mut lists.floats, |field| self.float(field));
                let (range, junk) = list.map_err(|_| self.invalid(text, "a list of numbers"))?;
                Ok((AttrValue::Floats(range), junk))
            }
        }
    }

    /// A finding about a text that OpenVINO's reader partly ignores, with a fix.
    #[cold]
    pub(crate) fn oddity(&self, text: &str) -> Fault {
        let (code, message) = match self.kind {
            AttrKind::Bool => {
                let stays = self.default.unwrap_or("unset");
                (
                    Code::InvalidBoolean,
                    message!("attribute `{}` is `{}`, not a boolean: OpenVINO uses {}"; self.name, text, stays),
                )
            }
            _ => (
                Code::TrailingJunk,
                message!("attribute `{}` is `{}`, of which OpenVINO reads only the numbers"; self.name, text),
            ),
        };
        let help = match self.kind {
            AttrKind::Bool => message!("write {}=\"true\" or {}=\"false\""; self.name, self.name),
            _ => message!("write {}=\"{}\" if you mean this value"; self.name, Text(self.numbers_in(text))),
        };
        Fault { attribute: Some(self.name), ..Fault::other(code, message) }.help(help)
    }

    fn numbers_in(&self, text: &str) -> String {
        let hexadecimal = text.trim().strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if let (AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes, Some(number)) = (self.kind, hexadecimal) {
            return number.to_string();
        }
        let parts = text.split(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
        let texts = parts.filter(|text| text.parse::<f64>().is_ok());
        match self.kind {
            AttrKind::Float => match float_prefix(text) {
                Some((number, _)) => format!("{number:?}"),
                None => texts.take(1).collect(),
            },
            AttrKind::Floats => texts.collect::<Vec<_>>().join(", "),
            AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes => {
                texts.take(1).filter_map(|text| Some(integer_prefix(text)?.0.to_string())).collect()
            }
            _ => {
                let integers = texts.filter_map(|text| Some(integer_prefix(text)?.0.to_string()));
                integers.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Parses the number at the start of `text`. The flag is true if text follows.
    fn integer(&self, text: &str) -> Result<(i64, bool), Fault> {
        integer_prefix(text).ok_or_else(|| self.invalid(text, "a 64-bit integer"))
    }

    /// Parses the integers of a list into `list`. The flag is true if OpenVINO ignores some of the text.
    fn integers(&self, text: &str, list: &mut List<i64>) -> Result<(ListRange, bool), Fault> {
        let unsigned = matches!(self.kind, AttrKind::UnsignedInts);
        let start = list.len();
        if plain_integers(text, list) && !(unsigned && list[start..].iter().any(|&number| number < 0)) {
            return Ok((ListRange::new(start, list.len()), false));
        }
        list.truncate(start);
        let expected = if unsigned { "a list of non-negative integers" } else { "a list of integers" };
        read_list(text, list, |field| match self.integer(field)? {
            (number, _) if unsigned && number < 0 => Err(self.invalid(field, "a non-negative integer")),
            number => Ok(number),
        })
        .map_err(|_| self.invalid(text, expected))
    }

    fn float(&self, text: &str) -> Result<(f64, bool), Fault> {
        float_prefix(text).ok_or_else(|| self.invalid(text, "a number"))
    }

    fn word(&self, text: &str, words: &'static [&'static str]) -> Result<&'static &'static str, Fault> {
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let fault = self.invalid(text, message!("one of {}"; Text(words.join(", "))));
            let lower = text.to_ascii_lowercase();
            let among: Vec<_> = words.iter().filter(|word| lower.len() > 2 && word.contains(&lower)).collect();
            let write = |word: &str| format!("{}=\"{word}\"", self.name);
            fault.help(match (&among[..], foreign::word(text, words)) {
                ([_, _, ..], _) => {
                    message!("write {}"; Text(list(among.iter().map(|word| write(word)).collect(), "or")))
                }
                (_, Some(meant)) => message!("write {}"; Text(write(meant))),
                (_, None) => {
                    let usual = self.default.filter(|default| !default.is_empty()).or(words.first().copied());
                    message!("write {} or another of these"; Text(write(usual.unwrap_or_default())))
                }
            })
        })
    }

    fn element_type(&self, text: &str) -> Result<ElementType, Fault> {
        ElementType::from_name(text).ok_or_else(|| {
            let fault = self.invalid(text, "an element type");
            match (ElementType::from_port_name(text), foreign::element_type(text)) {
                (Some(meant), _) => {
                    fault.help(message!("write {}=\"{}\"; only ports spell it `{}`"; self.name, meant, text))
                }
                (None, Some(meant)) => fault.help(message!("write {}=\"{}\""; self.name, meant)),
                (None, None) => {
                    fault.help("element types are f32, f16, bf16, f64, i64, i32, i8, u8, boolean, string, …")
                }
            }
        })
    }

    fn invalid(&self, text: &str, expected: impl Display) -> Fault {
        let fault =
            Fault::attribute(self.name, message!("attribute `{}` is `{}`, not {}"; self.name, text, Text(expected)));
        let numbers = self.numbers_in(text);
        if numbers.is_empty() || numbers == text {
            fault
        } else {
            fault.help(message!("write {}=\"{}\""; self.name, Text(numbers)))
        }
    }

    /// Suggests a valid value for a text that cannot be parsed.
    pub(crate) fn usual_value(&self) -> Message {
        match (self.kind, self.default) {
            (AttrKind::Float | AttrKind::Floats, _) => message!("write a number, as in {}=\"1\""; self.name),
            (_, Some(default)) if !default.is_empty() => {
                message!(
                    "write {}=\"{}\", the usual value, or correct the shapes that it must match";
                    self.name, default
                )
            }
            _ => message!("correct `{}`, or the shapes that it must match"; self.name),
        }
    }
}

/// Problem of an attribute's text.
pub(crate) enum Finding {
    /// OpenVINO accepts the text and silently ignores some of it.
    Odd(Fault),
    Refused(Fault),
}

#[derive(Clone, Copy, Debug)]
enum AttrValue {
    /// The layer does not have the attribute, or its text cannot be parsed.
    Unread,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text,
    /// Word of an enumeration, as the operation table spells it.
    Word(&'static &'static str),
    Type(ElementType),
    Ints(ListRange),
    Floats(ListRange),
}

/// Range of a list's elements in the shared storage [`Lists`].
#[derive(Clone, Copy, Debug)]
struct ListRange {
    start: u32,
    end: u32,
}

impl ListRange {
    fn new(start: usize, end: usize) -> Self {
        let [start, end] = [start, end].map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        Self { start, end }
    }

    fn of<T: Copy>(self, values: &[T]) -> List<T> {
        values.get(self.start as usize..self.end as usize).map(List::from_slice).unwrap_or_default()
    }
}

/// Shared storage of the elements of all lists of a layer.
#[derive(Debug, Default)]
struct Lists {
    ints: List<i64>,
    floats: Vec<f64>,
}

/// Parses a list and returns the range of its elements. The flag is true if OpenVINO ignores some of the text.
fn read_list<T, L: Extend<T> + Deref<Target = [T]>>(
    text: &str,
    values: &mut L,
    parse: impl Fn(&str) -> Result<(T, bool), Fault>,
) -> Result<(ListRange, bool), Fault> {
    let start = values.len();
    let mut junk = false;
    // OpenVINO permits one comma at the end.
    let fields = text.strip_suffix(',').unwrap_or(text);
    for field in fields.split(',').filter(|_| !text.is_empty()) {
        let (value, more) = parse(field)?;
        junk |= more;
        values.extend([value]);
    }
    Ok((ListRange::new(start, values.len()), junk))
}

/// The attributes before the one called `name`. They are those of an earlier revision.
pub(super) const fn before(name: &str, list: &'static [Attr]) -> &'static [Attr] {
    list.split_at(position(name, list)).0
}

/// The attribute called `name` and those after it. They are those of a later revision.
pub(super) const fn from(name: &str, list: &'static [Attr]) -> &'static [Attr] {
    list.split_at(position(name, list)).1
}

/// If it does not exist, compilation fails.
const fn position(name: &str, list: &[Attr]) -> usize {
    let mut at = 0;
    while !equal(list[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn equal(left: &[u8], right: &[u8]) -> bool {
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

impl Layer {
    /// Returns the names of attributes that hold a text of the author: of an unknown operation all that are not lists of
    /// numbers, of others those that are neither numbers nor words of the operation.
    pub fn free_texts(&self) -> Vec<&str> {
        let operation = self.operation();
        let free = self.attributes.iter().filter(|attribute| match operation {
            Some(operation) => operation.attribute(&attribute.name).is_none_or(|row| {
                matches!(row.kind, AttrKind::Text | AttrKind::Texts) && !attribute.value.is_empty()
                    || !row.is_clear(&attribute.value)
            }),
            None => attribute.value.split(',').any(|part| part.trim().parse::<f64>().is_err()),
        });
        free.map(|attribute| &*attribute.name).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct AttributeValues {
    /// Values by the position of the attribute in the operation table.
    values: SmallVec<[AttrValue; 6]>,
    lists: Lists,
    /// True if all attributes of the layer were parsed without a problem.
    is_plain: bool,
}

impl AttributeValues {
    /// Parses the attributes of a layer that its operation defines.
    pub(crate) fn of(layer: &Layer, operation: &Operation) -> Self {
        let mut values = Self::default();
        let _ = values.read(layer, operation);
        values
    }

    /// The attributes as [`of`](Self::of) reads them, but the first attribute that the operation refuses is an error.
    pub(crate) fn checked(layer: &Layer, operation: &Operation) -> Result<Self, Fault> {
        let mut values = Self::default();
        for finding in values.read(layer, operation) {
            if let Finding::Refused(fault) = finding {
                return Err(fault);
            }
        }
        Ok(values)
    }

    /// Parses the attributes of a layer that its operation defines, and returns the findings.
    pub(crate) fn read(&mut self, layer: &Layer, operation: &Operation) -> Vec<Finding> {
        let rows = operation.attributes;
        let mut findings = Vec::new();
        let mut next = 0;
        for attribute in layer.attributes.iter() {
            // Fast case: the file has the attributes in the order of the operation table.
            let found = match rows.get(next) {
                Some(row) if row.name == attribute.name => Some(next),
                _ => rows.iter().position(|row| row.name == attribute.name),
            };
            let Some(at) = found else { continue };
            next = at + 1;
            match rows[at].read(&attribute.value, &mut self.lists) {
                Ok((value, is_odd)) => {
                    self.values.resize(self.values.len().max(at), AttrValue::Unread);
                    match self.values.get_mut(at) {
                        Some(before) => *before = value,
                        None => self.values.push(value),
                    }
                    if is_odd {
                        findings.push(Finding::Odd(rows[at].oddity(&attribute.value)));
                    }
                }
                Err(fault) => findings.push(Finding::Refused(fault)),
            }
        }
        self.is_plain = findings.is_empty();
        findings
    }

    fn get(&self, at: usize) -> AttrValue {
        self.values.get(at).copied().unwrap_or(AttrValue::Unread)
    }
}

/// Attributes of a layer together with those of its operation. A missing attribute has the default of the operation.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) operation: &'static Operation,
    /// Values that were parsed before; others are parsed when needed.
    read: Option<&'a AttributeValues>,
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(layer: &'a Layer, operation: &'static Operation) -> Self {
        Self { layer, operation, read: None }
    }

    pub(crate) fn with(layer: &'a Layer, operation: &'static Operation, read: &'a AttributeValues) -> Self {
        Self { layer, operation, read: Some(read) }
    }

    pub(crate) fn has_attribute(&self, name: &'static str) -> bool {
        match (self.read, self.position(name)) {
            (Some(read), Some(at)) if read.is_plain => !matches!(read.get(at), AttrValue::Unread),
            _ => self.layer.attribute(name).is_some(),
        }
    }

    pub(crate) fn bool(&self, name: &'static str) -> Result<bool, Fault> {
        self.get(name, |value, _| if let AttrValue::Bool(value) = value { Some(value) } else { None })
    }

    pub(crate) fn int(&self, name: &'static str) -> Result<i64, Fault> {
        self.get(name, |value, _| if let AttrValue::Int(number) = value { Some(number) } else { None })
    }

    pub(crate) fn unsigned(&self, name: &'static str) -> Result<u64, Fault> {
        self.int(name).map(|number| number as u64)
    }

    pub(crate) fn float(&self, name: &'static str) -> Result<f64, Fault> {
        self.get(name, |value, _| if let AttrValue::Float(number) = value { Some(number) } else { None })
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<&'a str, Fault> {
        self.text_of(name, self.position(name)).map(|(_, text)| text)
    }

    pub(crate) fn word(&self, name: &'static str) -> Result<&'static str, Fault> {
        self.get(name, |value, _| if let AttrValue::Word(word) = value { Some(*word) } else { None })
    }

    pub(crate) fn type_attribute(&self, name: &'static str) -> Result<ElementType, Fault> {
        self.get(name, |value, _| if let AttrValue::Type(ty) = value { Some(ty) } else { None })
    }

    pub(crate) fn ints(&self, name: &'static str) -> Result<List<i64>, Fault> {
        self.get(
            name,
            |value, lists| if let AttrValue::Ints(range) = value { Some(range.of(&lists.ints)) } else { None },
        )
    }

    pub(crate) fn floats(&self, name: &'static str) -> Result<List<f64>, Fault> {
        self.get(
            name,
            |value, lists| {
                if let AttrValue::Floats(range) = value { Some(range.of(&lists.floats)) } else { None }
            },
        )
    }

    /// The value of an attribute, converted by `take` if it has the right kind.
    fn get<T>(&self, name: &'static str, take: impl Fn(AttrValue, &Lists) -> Option<T>) -> Result<T, Fault> {
        let position = self.position(name);
        let known = self.read.zip(position).and_then(|(read, at)| take(read.get(at), &read.lists));
        match known {
            Some(known) => Ok(known),
            None => self.read_now(name, position, take),
        }
    }

    /// Parses the layer's text or the default, and continues as [`get`](Self::get).
    fn read_now<T>(
        &self,
        name: &'static str,
        position: Option<usize>,
        take: impl Fn(AttrValue, &Lists) -> Option<T>,
    ) -> Result<T, Fault> {
        let (attribute, text) = self.text_of(name, position)?;
        let mut lists = Lists::default();
        let (value, _) = attribute.read(text, &mut lists)?;
        let found = take(value, &lists);
        debug_assert!(found.is_some(), "{name} of {} is of another kind", self.operation.name);
        found.ok_or_else(|| attribute.invalid(text, "of the required kind"))
    }

    fn position(&self, name: &'static str) -> Option<usize> {
        let rows = self.operation.attributes;
        // Names usually come from the same constant, and comparing addresses is faster than comparing text.
        let same = rows.iter().position(|row| std::ptr::eq(row.name, name));
        same.or_else(|| rows.iter().position(|row| row.name == name))
    }

    fn written(&self, name: &str, position: usize) -> Option<&'a str> {
        // Fast case: the file has the attributes in the order of the operation table.
        let expected = self.layer.attributes().get(position).filter(|attribute| attribute.name() == name);
        expected.map(Attribute::value).or_else(|| self.layer.attribute(name))
    }

    fn text_of(&self, name: &'static str, position: Option<usize>) -> Result<(&'static Attr, &'a str), Fault> {
        let attribute = position.and_then(|at| Some((at, self.operation.attributes.get(at)?)));
        debug_assert!(attribute.is_some(), "{} has no attribute {name} in its row", self.operation.name);
        let Some((at, attribute)) = attribute else {
            return Err(Fault::other(Code::MissingAttribute, message!("there is no attribute `{}`"; name)));
        };
        match self.written(name, at).or(attribute.default) {
            Some(text) => Ok((attribute, text)),
            None => {
                // A constant with its data in the attribute `value` needs no offset in the .bin.
                let in_text = self.layer.attribute("value").is_some();
                let needed = self.operation.attributes.iter().filter(|row| row.default.is_none()).map(|row| row.name);
                let missing = needed.filter(|name| self.layer.attribute(name).is_none());
                let missing: Vec<_> = missing.filter(|name| !in_text || !["offset", "size"].contains(name)).collect();
                let quoted = list(missing.iter().map(|name| format!("`{name}`")).collect(), "and");
                let attributes = if missing.len() > 1 { "attributes" } else { "attribute" };
                let message = message!("`{}` needs the {} {}"; self.layer.ty(), attributes, Text(quoted));
                let near = self.layer.attributes.iter().map(|attribute| attribute.name.as_str());
                let near = near.clone().find(|near| foreign::attribute(near, [name].into_iter()).is_some());
                let help = match near {
                    Some(near) => message!("write `{}` for `{}` in its <data>"; name, near).into(),
                    None => Fix::add(missing.iter().copied(), Owner::Data),
                };
                let written = near.map(str::to_owned);
                let about = About::missing("data", missing.into_iter().map(Into::into).collect(), written);
                Err(Fault::other(Code::MissingAttribute, message).concerning(about).help(help))
            }
        }
    }
}

/// Parses a boolean; `None` for any other text, for which OpenVINO uses the default.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") || text == "1" {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") || text == "0" {
        Some(false)
    } else {
        None
    }
}
