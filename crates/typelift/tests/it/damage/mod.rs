//! Damage to the text of a model: to its bytes, and to its elements and attributes. Most of the latter texts are still
//! well-formed, and so pass the reader.

use std::ops::Range;

use proptest::prelude::*;

/// Values that attributes have elsewhere, or nowhere.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "3",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1e309",
    "?",
    "...",
    "1,?,3..5",
    "1,2,3",
    "f16",
    "i64",
    "u64",
    "f8e4m3",
    "FP16",
    "dynamic",
    "string",
    "true",
    "numpy",
    "Add",
    "Loop",
    "Const",
    "Result",
    "Parameter",
    "Concat",
    "Reshape",
    "ConvertPromoteTypes",
    "opset1",
    "opset14",
    "&lt;",
    "ä\u{0}",
];

/// Kind of damage. Positions are fractions of the text's length, so that a damage applies to every text.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    /// Bytes are removed.
    Cut(f64, u8),
    /// Bytes are duplicated.
    Double(f64, u8),
    /// A byte is replaced.
    Byte(f64, u8),
    /// A line is removed, moved or copied.
    Line { from: f64, to: Option<f64>, keep: bool },
    /// A quoted value is replaced.
    Value(f64, &'static str),
    /// A quoted value is replaced by another one of the text.
    Copy { from: f64, to: f64 },
    /// A quoted value is replaced by that of another attribute of the same name.
    Same { name: &'static str, from: f64, to: f64 },
    /// An attribute is removed or duplicated.
    Attribute { name: &'static str, at: f64, keep: bool },
    /// An element is removed.
    Remove(&'static str, f64),
    /// An element is copied to the position of another one.
    Repeat { name: &'static str, from: f64, to: f64 },
    /// Two elements are swapped.
    Swap { name: &'static str, first: f64, second: f64 },
    /// An element is moved into another one.
    Nest { name: &'static str, from: f64, into: &'static str, to: f64 },
    /// The tags of an element are repeated around it many times.
    Wrap(&'static str, f64, u8),
}

/// Elements that are damaged.
const ELEMENTS: &[&str] = &[
    "layer",
    "layer",
    "layer",
    "edge",
    "edge",
    "edge",
    "port",
    "port",
    "data",
    "dim",
    "input",
    "output",
    "rt_info",
    "attribute",
    "body",
    "then_body",
    "else_body",
    "port_map",
    "then_port_map",
    "else_port_map",
    "back_edges",
    "layers",
    "edges",
    "net",
];

/// Attributes that are damaged.
const ATTRIBUTES: &[&str] = &[
    "id",
    "id",
    "from-layer",
    "from-port",
    "to-layer",
    "to-port",
    "to-port",
    "type",
    "type",
    "version",
    "name",
    "names",
    "precision",
    "element_type",
    "shape",
    "offset",
    "size",
    "destination_type",
    "axis",
    "external_port_id",
    "internal_layer_id",
    "purpose",
    "start",
    "end",
    "stride",
    "part_size",
    "variable_id",
    "auto_broadcast",
    "special_zero",
    "output_names",
];

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0.0..1.0;
    let element = || prop::sample::select(ELEMENTS);
    let attribute = || prop::sample::select(ATTRIBUTES);
    prop_oneof![
        1 => (at(), 1..40u8).prop_map(|(at, length)| Damage::Cut(at, length)),
        1 => (at(), 1..40u8).prop_map(|(at, length)| Damage::Double(at, length)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        2 => (at(), prop::option::of(at()), any::<bool>()).prop_map(|(from, to, keep)| Damage::Line { from, to, keep }),
        4 => (at(), prop::sample::select(VALUES)).prop_map(|(at, value)| Damage::Value(at, value)),
        4 => (at(), at()).prop_map(|(from, to)| Damage::Copy { from, to }),
        6 => (attribute(), at(), at()).prop_map(|(name, from, to)| Damage::Same { name, from, to }),
        3 => (attribute(), at(), any::<bool>()).prop_map(|(name, at, keep)| Damage::Attribute { name, at, keep }),
        3 => (element(), at()).prop_map(|(name, at)| Damage::Remove(name, at)),
        3 => (element(), at(), at()).prop_map(|(name, from, to)| Damage::Repeat { name, from, to }),
        3 => (element(), at(), at()).prop_map(|(name, first, second)| Damage::Swap { name, first, second }),
        2 => (element(), at(), element(), at()).prop_map(|(name, from, into, to)| Damage::Nest { name, from, into, to }),
        1 => (element(), at(), 1..100u8).prop_map(|(name, at, times)| Damage::Wrap(name, at, times)),
    ]
}

impl Damage {
    pub(crate) fn apply(&self, text: &mut Vec<u8>) {
        let size = text.len();
        let bytes = |at: f64, length: u8| {
            let start = share(at, size);
            start..size.min(start + usize::from(length))
        };
        match *self {
            Self::Cut(at, length) => drop(text.drain(bytes(at, length))),
            Self::Double(at, length) => {
                let range = bytes(at, length);
                let copy = text[range.clone()].to_vec();
                text.splice(range.end..range.end, copy);
            }
            Self::Byte(at, byte) => text[bytes(at, 1)].fill(byte),
            Self::Line { from, to, keep } => {
                let mut lines: Vec<_> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
                let from = share(from, lines.len());
                let Some(line) = lines.get(from).cloned() else { return };
                if !keep {
                    lines.remove(from);
                }
                if let Some(to) = to {
                    lines.insert(share(to, lines.len()), line);
                }
                *text = lines.concat();
            }
            Self::Value(at, value) => {
                if let Some(range) = quoted(text, at) {
                    text.splice(range, value.bytes());
                }
            }
            Self::Copy { from, to } => {
                if let (Some(from), Some(to)) = (quoted(text, from), quoted(text, to)) {
                    let value = text[from].to_vec();
                    text.splice(to, value);
                }
            }
            _ => drop(self.apply_to_structure(text)),
        }
    }

    /// Damages elements and attributes; `None` if the text has no such element or attribute.
    fn apply_to_structure(&self, text: &mut Vec<u8>) -> Option<()> {
        match *self {
            Self::Same { name, from, to } => {
                let value = text[attribute(text, name, from)?.1].to_vec();
                text.splice(attribute(text, name, to)?.1, value);
            }
            Self::Attribute { name, at, keep } => {
                let whole = attribute(text, name, at)?.0;
                let copies =
                    if keep { [b" ", &text[whole.clone()], b" ", &text[whole.clone()]].concat() } else { Vec::new() };
                text.splice(whole, copies);
            }
            Self::Remove(name, at) => drop(text.drain(element(text, name, at)?.whole)),
            Self::Repeat { name, from, to } => {
                let copy = text[element(text, name, from)?.whole].to_vec();
                let to = element(text, name, to)?.whole.end;
                text.splice(to..to, copy);
            }
            Self::Swap { name, first, second } => {
                let [first, second] = [element(text, name, first)?.whole, element(text, name, second)?.whole];
                let (first, second) = if first.start < second.start { (first, second) } else { (second, first) };
                if first.end <= second.start {
                    let (one, other) = (text[first.clone()].to_vec(), text[second.clone()].to_vec());
                    text.splice(second, one);
                    text.splice(first, other);
                }
            }
            Self::Nest { name, from, into, to } => {
                let moved = text[element(text, name, from)?.whole].to_vec();
                let to = element(text, into, to)?.content.end;
                text.splice(to..to, moved);
            }
            Self::Wrap(name, at, times) => {
                let Element { whole, content } = element(text, name, at)?;
                let (before, after) =
                    (text[whole.start..content.start].to_vec(), text[content.end..whole.end].to_vec());
                let (before, after) = (before.repeat(times.into()), after.repeat(times.into()));
                text.splice(whole.end..whole.end, after);
                text.splice(whole.start..whole.start, before);
            }
            _ => {}
        }
        Some(())
    }
}

/// An element with its tags, and the range between them, which for an empty element is empty and at its end.
struct Element {
    whole: Range<usize>,
    content: Range<usize>,
}

/// Returns one of the elements of this name.
fn element(text: &[u8], name: &str, at: f64) -> Option<Element> {
    let text = std::str::from_utf8(text).ok()?;
    let open = format!("<{name}");
    let is_tag = |start: &usize| !text[start + open.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let starts: Vec<_> = text.match_indices(&open).map(|(start, _)| start).filter(is_tag).collect();
    let start = *starts.get(share(at, starts.len()))?;
    let tag_end = start + text[start..].find('>')? + 1;
    if text[..tag_end].ends_with("/>") {
        return Some(Element { whole: start..tag_end, content: tag_end..tag_end });
    }
    let close = format!("</{name}>");
    let (mut depth, mut inner) = (1, starts.iter().filter(|inner| **inner > start).peekable());
    for (end, _) in text[tag_end..].match_indices(&close) {
        let end = tag_end + end;
        while let Some(&inner) = inner.next_if(|inner| **inner < end) {
            let is_empty = text[inner..].find('>').is_some_and(|tag| text[..=inner + tag].ends_with("/>"));
            depth += usize::from(!is_empty);
        }
        depth -= 1;
        if depth == 0 {
            return Some(Element { whole: start..end + close.len(), content: tag_end..end });
        }
    }
    None
}

/// Returns one of the attributes of this name, and its value.
fn attribute(text: &[u8], name: &str, at: f64) -> Option<(Range<usize>, Range<usize>)> {
    let text = std::str::from_utf8(text).ok()?;
    let open = format!(" {name}=\"");
    let starts: Vec<_> = text.match_indices(&open).map(|(start, _)| start).collect();
    let start = *starts.get(share(at, starts.len()))?;
    let value = start + open.len();
    let end = value + text[value..].find('"')?;
    Some((start..end + 1, value..end))
}

fn share(at: f64, length: usize) -> usize {
    (at * length as f64) as usize
}

/// Returns the text in one of the pairs of quotes.
fn quoted(text: &[u8], at: f64) -> Option<Range<usize>> {
    let quotes: Vec<_> = text.iter().enumerate().filter(|(_, byte)| **byte == b'"').map(|(at, _)| at).collect();
    let pair = quotes.chunks_exact(2).nth(share(at, quotes.len() / 2))?;
    Some(pair[0] + 1..pair[1])
}
