//! Validation of the `<rt_info>` that OpenVINO reads in layers and ports.

use std::collections::BTreeSet;
use std::iter;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::super::tokens::{Element, Tokens, decode};
use super::Read;
use crate::base::number::integer_prefix;
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, Message, message};
use crate::model::graph::{IrVersion, Layer};

/// Reason why a value is invalid, and the fix.
type Refused = (Message, &'static str);

/// Values of an attribute that OpenVINO can read.
enum ReadableValues {
    /// The attribute has no value, or any value is valid.
    Anything,
    /// No value is valid: only OpenVINO itself uses the attribute.
    Nothing,
    /// The value is in this attribute and must pass this check, unless it is absent.
    If(&'static str, fn(&str) -> Result<(), Refused>),
}

/// The `rt_info` attributes of version 0 that OpenVINO 2026.4.1 reads.
const RT_INFO: &[(&str, ReadableValues)] = &[
    ("DisableConstantFolding", ReadableValues::Nothing),
    ("DisablePrecisionConversion", ReadableValues::If("value", conversions)),
    ("decompression", ReadableValues::Anything),
    ("fused_names", ReadableValues::Anything),
    ("layout", ReadableValues::If("layout", layout)),
    ("memory_type", ReadableValues::Anything),
    ("nms_selected_indices", ReadableValues::Nothing),
    ("old_api_map_element_type", ReadableValues::If("value", element_type)),
    ("old_api_map_order", ReadableValues::If("value", order)),
    ("precise", ReadableValues::Anything),
    ("preprocessing", ReadableValues::Anything),
    ("primitives_priority", ReadableValues::Anything),
    ("strides_propagation", ReadableValues::Nothing),
];

impl<'a> Read<'a> {
    /// Checks the metadata of a layer or of one of its ports. OpenVINO ignores it in files of version 10.
    pub(super) fn check_rt_info(&mut self, span: Span, layer: &Layer) {
        if self.version != IrVersion::V11 {
            return;
        }
        let mut tokens = Tokens::new(self.source, span);
        let Ok(Some(root)) = tokens.child(None) else { return };
        let mut seen = SmallVec::<[&str; 4]>::new();
        while let Ok(Some(child)) = tokens.child(Some(&root)) {
            let report = match child.name() {
                "attribute" => rt_attribute(&tokens, &child, &mut seen),
                "user_data" => None,
                other => {
                    let message = message!("<{}> in the rt_info of a layer is ignored"; other);
                    let lint = Diagnostic::new(Code::UnknownElement, message);
                    let lint = lint.at(child.tag_span, "OpenVINO reads <attribute> and <user_data> here");
                    let help = "write <user_data name=\"…\" value=\"…\" version=\"\"/> to keep a value of your own";
                    Some(lint.help(help))
                }
            };
            if let Some(report) = report {
                self.report_of(layer, report);
            }
            if tokens.skip(&child).is_err() {
                return;
            }
        }
    }
}

/// `seen` contains the names of earlier ones.
fn rt_attribute(tokens: &Tokens<'_>, element: &Element<'_>, seen: &mut SmallVec<[&str; 4]>) -> Option<Diagnostic> {
    let written = |name| Tokens::attribute(element, name);
    let name = written("name").unwrap_or_default();
    let Some((known, reads)) = RT_INFO.iter().find(|(known, _)| *known == name) else {
        let lint = Diagnostic::new(Code::UnknownAttribute, message!("rt_info has an unknown attribute `{}`"; name));
        return Some(lint.at(element.tag_span, "OpenVINO ignores it, and does not write it to new files"));
    };
    if written("version") != Some("0") {
        let message = match written("version") {
            Some(version) => message!("rt_info has `{}` with version `{}`, not 0"; name, version),
            None => message!("rt_info has `{}` without a version"; name),
        };
        let lint = Diagnostic::new(Code::UnknownAttribute, message);
        let lint = lint.at(element.tag_span, "OpenVINO ignores it, and a file that it writes will not have it");
        return Some(lint.help("write version=\"0\" in the <attribute>"));
    }
    if seen.contains(known) {
        let refusal = Diagnostic::new(Code::DuplicateRtInfo, message!("rt_info has `{}` twice"; name));
        return Some(refusal.at(element.tag_span, "the second").help("remove one of them"));
    }
    match reads {
        ReadableValues::Nothing => {
            let message = message!("rt_info has `{}`, which OpenVINO cannot read"; name);
            let refusal = Diagnostic::new(Code::InvalidValue, message);
            return Some(refusal.at(element.tag_span, "only OpenVINO itself uses this attribute").help("remove it"));
        }
        ReadableValues::If(attribute, check) => {
            seen.push(known);
            let value = written(attribute)?;
            let (reason, help) = check(&decode(value)).err()?;
            let message = message!("`{}` is `{}`, which OpenVINO cannot read"; name, decode(value));
            let refusal = Diagnostic::new(Code::InvalidValue, message).at(tokens.span_of(value), reason);
            return Some(refusal.help(help));
        }
        ReadableValues::Anything => seen.push(known),
    }
    None
}

/// `None` for a name that OpenVINO does not read.
///
/// # Errors
/// A value that OpenVINO cannot read, with the reason.
pub(crate) fn metadata_attribute(name: &str, value: &str) -> Result<Option<&'static str>, String> {
    match RT_INFO.iter().find(|(known, _)| *known == name) {
        None => Ok(None),
        Some((_, ReadableValues::Nothing)) => Err("only OpenVINO itself uses this attribute".to_owned()),
        Some((_, ReadableValues::Anything)) => Ok(Some("value")),
        Some((_, ReadableValues::If(attribute, check))) => match check(value) {
            Ok(()) => Ok(Some(attribute)),
            Err((reason, help)) => Err(format!("{reason}; {help}")),
        },
    }
}

/// Checks a list of conversions that must not happen: `from:to,to;from:to`. An entry without a colon, or with nothing
/// after it, is ignored.
fn conversions(value: &str) -> Result<(), Refused> {
    let help = "write pairs of element types, value=\"dynamic:f16\"";
    let pairs = value.split(';').filter_map(|pair| pair.split_once(':'));
    for name in pairs
        .filter(|(from, to)| !to.is_empty() || from.is_empty())
        .flat_map(|(from, to)| iter::once(from).chain(to.split(',')))
    {
        if ElementType::from_port_name(name).is_none() {
            return Err((message!("`{}` is not an element type here"; name), help));
        }
    }
    Ok(())
}

fn element_type(value: &str) -> Result<(), Refused> {
    let known = ElementType::from_name(value).map(drop);
    known.ok_or_else(|| ("not an element type".into(), "write a type as in attributes: f32, i64, boolean"))
}

/// Checks a comma-separated list of non-negative numbers.
fn order(value: &str) -> Result<(), Refused> {
    let odd = value.split(',').find(|item| integer_prefix(item).is_none_or(|(number, _)| number < 0));
    odd.filter(|_| !value.is_empty()).map_or(Ok(()), |item| {
        Err((message!("`{}` is not an axis"; item), "write the numbers of the axes with commas: 0,2,3,1"))
    })
}

/// Checks a layout: names of dimensions as single letters or in brackets, `NCHW`, `[N,...,C]`, `N...C`. OpenVINO
/// converts them to capitals.
fn layout(value: &str) -> Result<(), Refused> {
    let help = "write one letter per dimension, `NCHW`, or names in brackets, `[N,C,H,W]`, with `?` for any dimension and `...` for any number of dimensions";
    let text = value.trim().to_ascii_uppercase();
    if text == "**SCALAR**" {
        return Ok(());
    }
    let names: Vec<&str> = match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some("") => return Err(("a layout needs at least one dimension".into(), help)),
        // A comma at the end is ignored, except after dots.
        Some(inside) => {
            let without = inside.strip_suffix(',').filter(|names| !names.ends_with("..."));
            without.unwrap_or(inside).split(',').map(str::trim).collect()
        }
        None => letters(&text).ok_or_else(|| ("write exactly three dots: `...`".into(), help))?,
    };
    let mut seen = BTreeSet::new();
    for name in names {
        let is_open = name == "..." && seen.insert(name);
        let is_word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if name == "?" || is_open {
            continue;
        }
        if !is_word {
            return Err((message!("`{}` is not the name of a dimension"; name), help));
        }
        if !seen.insert(name) {
            return Err((message!("two dimensions have the name `{}`"; name), help));
        }
    }
    Ok(())
}

/// Splits a layout without brackets into its dimensions; `None` if it has dots other than one `...`.
fn letters(text: &str) -> Option<Vec<&str>> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = if first == '.' { 3 } else { first.len_utf8() };
        let name = rest.get(..length).filter(|name| first != '.' || *name == "...")?;
        names.push(name);
        rest = &rest[length..];
    }
    Some(names)
}
