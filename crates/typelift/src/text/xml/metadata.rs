//! The `<rt_info>` of a model, a layer or a port.

use super::tokens::{Tokens, decode, encode, is_name};
use crate::base::span::Span;

/// Entry of the `<rt_info>` of a layer or a port.
pub(crate) struct Entry<'a> {
    /// The name of an `<attribute>` of version 0, the one that OpenVINO reads; empty for any other element.
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    /// The whole element.
    pub(crate) text: &'a str,
}

/// The entries of an `<rt_info>`, up to the first one that is incomplete.
pub(crate) fn entries(rt_info: &str) -> Vec<Entry<'_>> {
    let entries = children(rt_info, whole(rt_info)).into_iter().map(|child| {
        let name = child.written("name").filter(|_| child.is_attribute()).unwrap_or_default();
        Entry { name, value: child.written("value"), text: child.span.text(rt_info) }
    });
    entries.collect()
}

/// The value of an entry in a layer's `<rt_info>`: an attribute that OpenVINO reads, or a `<user_data>`. An
/// entry without a value is empty.
pub(crate) fn value_of(rt_info: &str, name: &str) -> Option<String> {
    let child = children(rt_info, whole(rt_info)).into_iter().find(|child| child.is_of(name))?;
    Some(child.written("value").or_else(|| child.written(name)).unwrap_or_default())
}

pub(crate) fn names_of(rt_info: &str) -> Vec<String> {
    let named = children(rt_info, whole(rt_info)).into_iter().filter_map(|child| Some((child.written("name")?, child)));
    named.filter(|(name, child)| child.is_of(name)).map(|(name, _)| name).collect()
}

/// The `<rt_info>` of a layer without the entry of a name; `None` if nothing else is in it.
pub(crate) fn without_entry(rt_info: &str, name: &str) -> Option<String> {
    let children = children(rt_info, whole(rt_info));
    let Some(child) = children.iter().find(|child| child.is_of(name)) else { return Some(rt_info.to_owned()) };
    if children.len() == 1 {
        return None;
    }
    Some(cut(rt_info, child.span))
}

/// The `<rt_info>` of a layer with this entry added, or replaced if the name exists.
pub(crate) fn with_entry(rt_info: Option<&str>, name: &str, attributes: &[(&str, &str)], is_attribute: bool) -> String {
    let new = tag(if is_attribute { "attribute" } else { "user_data" }, attributes);
    let Some(rt_info) = rt_info else { return format!("<rt_info>{new}</rt_info>") };
    match children(rt_info, whole(rt_info)).into_iter().find(|child| child.is_of(name)) {
        Some(child) => spliced(rt_info, child.span, &new),
        None => with_child(rt_info, whole(rt_info), &new),
    }
}

/// The value under these nested keys in the `<rt_info>` of a model; `None` if there is none.
pub(crate) fn value_at(rt_info: &str, path: &[&str]) -> Option<String> {
    let (last, groups) = path.split_last()?;
    let group = groups.iter().try_fold(whole(rt_info), |group, key| Some(child(rt_info, group, key)?.span))?;
    child(rt_info, group, last)?.written("value")
}

pub(crate) fn leaves(rt_info: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let mut pending = vec![(Vec::new(), whole(rt_info))];
    while let Some((path, place)) = pending.pop() {
        let start = pending.len();
        for child in children(rt_info, place) {
            let path: Vec<_> = path.iter().cloned().chain([child.key()]).collect();
            match child.written("value") {
                Some(value) => found.push((path, value)),
                None if path.len() < DEEPEST => pending.push((path, child.span)),
                None => {}
            }
        }
        pending[start..].reverse();
    }
    found
}

/// The `<rt_info>` of a model with this value under these keys.
///
/// # Errors
/// A key before the last one that has a value, or a last key that is a group.
pub(crate) fn with_value(rt_info: &str, path: &[&str], value: &str) -> Result<String, String> {
    if path.len() > DEEPEST {
        return Err(format!("groups nest at most {DEEPEST} deep, and this path has {} names", path.len()));
    }
    let mut group = whole(rt_info);
    for (at, key) in path.iter().enumerate() {
        let Some(child) = child(rt_info, group, key) else {
            return Ok(with_child(rt_info, group, &branch(&path[at..], value)));
        };
        let inside = children(rt_info, child.span);
        if at + 1 == path.len() {
            if let Some(first) = inside.first() {
                return Err(format!("`{key}` is a group; name a value in it, `{}/{}`", path.join("/"), first.key()));
            }
            return Ok(spliced(rt_info, child.span, &branch(&[key], value)));
        }
        if child.written("value").is_some() {
            return Err(format!("`{key}` is a value, so nothing can be inside it"));
        }
        group = child.span;
    }
    Err("a name is missing".to_owned())
}

/// The `<rt_info>` of a model without the value or group under these keys, and without groups that have nothing
/// else. `None` if it does not exist.
pub(crate) fn without_value(rt_info: &str, path: &[&str]) -> Option<String> {
    let (mut group, mut removed) = (whole(rt_info), None);
    for key in path {
        let has_others = children(rt_info, group).len() > 1;
        group = child(rt_info, group, key)?.span;
        removed = removed.filter(|_| !has_others).or(Some(group));
    }
    Some(cut(rt_info, removed?))
}

/// Removes an element and the white space before it.
fn cut(text: &str, place: Span) -> String {
    let start = text[..place.start as usize].trim_end().len();
    spliced(text, Span::new(start, place.end as usize), "")
}

/// Limit on the names of a path, because OpenVINO reads nested groups recursively.
const DEEPEST: usize = 64;

/// The `<rt_info>` of a model, with the entries of another model that it lacks. Groups are copied completely.
pub(crate) fn with_missing(rt_info: &str, other: &str) -> String {
    let mut all = rt_info.to_owned();
    for missing in children(other, whole(other)) {
        if child(rt_info, whole(rt_info), &missing.key()).is_none() {
            all = with_child(&all, whole(&all), missing.span.text(other));
        }
    }
    all
}

struct Child {
    name: String,
    attributes: Vec<(String, String)>,
    span: Span,
}

impl Child {
    fn written(&self, wanted: &str) -> Option<String> {
        self.attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
    }

    /// True for an `<attribute>` that OpenVINO may read.
    fn is_attribute(&self) -> bool {
        self.name == "attribute" && self.written("version").as_deref() == Some("0")
    }

    fn is_of(&self, name: &str) -> bool {
        (self.is_attribute() || self.name == "user_data") && self.written("name").as_deref() == Some(name)
    }

    /// The key that an element of a model's metadata stands for. A key that is no valid XML name is stored in
    /// an attribute.
    fn key(&self) -> String {
        self.written("name").filter(|_| self.name == INFO).unwrap_or_else(|| self.name.clone())
    }
}

/// Element name for keys that are not valid XML names.
const INFO: &str = "info";

fn whole(text: &str) -> Span {
    Span::new(0, text.len())
}

/// The direct children of the element at a position, up to the first one that is incomplete.
fn children(text: &str, place: Span) -> Vec<Child> {
    let mut tokens = Tokens::new(text, place);
    let mut found = Vec::new();
    let Ok(Some(root)) = tokens.child(None) else { return found };
    while let Ok(Some(child)) = tokens.child(Some(&root)) {
        let attributes = Tokens::attributes(&child).flatten();
        let attributes = attributes.map(|(name, value)| (name.to_owned(), decode(value).into_owned())).collect();
        let name = child.name().to_owned();
        let Ok(span) = tokens.skip(&child) else { break };
        found.push(Child { name, attributes, span });
    }
    found
}

fn child(text: &str, place: Span, key: &str) -> Option<Child> {
    children(text, place).into_iter().find(|child| child.key() == key)
}

fn tag(name: &str, attributes: &[(&str, &str)]) -> String {
    let mut tag = format!("<{name}");
    for (name, value) in attributes {
        tag.push_str(&format!(" {name}=\""));
        encode(value, &mut tag);
        tag.push('"');
    }
    tag + " />"
}

fn branch(path: &[&str], value: &str) -> String {
    let element = |key: &str, value: Option<&str>| {
        let named =
            if is_name(key) { (key.to_owned(), None) } else { (INFO.to_owned(), Some(("name", key.to_owned()))) };
        let attributes: Vec<_> = named
            .1
            .iter()
            .map(|(name, key)| (*name, key.as_str()))
            .chain(value.map(|value| ("value", value)))
            .collect();
        (tag(&named.0, &attributes), named.0)
    };
    let Some((last, groups)) = path.split_last() else { return String::new() };
    groups.iter().rev().fold(element(last, Some(value)).0, |inside, key| {
        let (tag, name) = element(key, None);
        format!("{}>{inside}</{name}>", tag.trim_end_matches(" />"))
    })
}

fn spliced(text: &str, place: Span, new: &str) -> String {
    let (before, after) = (&text[..place.start as usize], &text[place.end as usize..]);
    format!("{before}{new}{after}")
}

/// The text with one more child at the end of an element, indented like its first child.
fn with_child(text: &str, place: Span, new: &str) -> String {
    let element = place.text(text);
    let gap = children(text, place).first().map_or("", |first| {
        let before = &text[..first.span.start as usize];
        &before[before.trim_end().len()..]
    });
    let new = match element.rfind("</") {
        Some(end) => {
            let content = element[..end].trim_end().len();
            format!("{}{gap}{new}{}", &element[..content], &element[content..])
        }
        None => {
            let tag = element.trim_end_matches("/>").trim_end();
            let name: String = tag.chars().skip(1).take_while(|c| !c.is_whitespace()).collect();
            format!("{tag}>{new}</{name}>")
        }
    };
    spliced(text, place, &new)
}
