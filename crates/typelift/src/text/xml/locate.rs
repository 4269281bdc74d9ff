//! Positions and values in the text of a layer.

use std::ops::Range;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::tokens::{Element, Tokens};
use crate::base::number::integer_prefix;
use crate::base::span::Span;
use crate::findings::TextEdit;
use crate::model::graph::{Direction, LayerId, OutputPort};
use crate::model::shape::Shape;

/// `declared` is the type in its tag and `content` the text between its tags. The text cannot express bounds of a
/// dimension, or the difference between a scalar and a dynamic rank.
pub(crate) fn declares(source: &str, declared: Option<ElementType>, content: Span, output: &OutputPort) -> bool {
    declared == Some(output.element_type)
        && ((!output.stale && content.text(source) == output.content.text(source))
            || matches_dims(&declared_dims(source, content), &output.shape))
}

/// If the attribute is missing, returns the element's tag; if the element is missing too, the layer's tag.
pub(crate) fn locate(source: &str, span: Span, element: &str, attribute: &str) -> Span {
    let mut tokens = Tokens::new(source, span);
    let Ok(Some(root)) = tokens.child(None) else { return span };
    let find = |tokens: &Tokens, tag: &Element| {
        Tokens::attribute(tag, attribute).map_or(tag.tag_span, |value| tokens.span_of(value))
    };
    if root.name() == element {
        return find(&tokens, &root);
    }
    while let Ok(Some(child)) = tokens.child(Some(&root)) {
        if child.name() == element {
            return find(&tokens, &child);
        }
        if tokens.skip(&child).is_err() {
            break;
        }
    }
    root.tag_span
}

pub(crate) struct Tag {
    pub(crate) name: Span,
    pub(crate) span: Span,
    /// The parent element, by position; `None` for the outermost ones.
    pub(crate) parent: Option<usize>,
    pub(crate) attributes: SmallVec<[(Span, Span); 4]>,
}

impl Tag {
    pub(crate) fn value(&self, source: &str, name: &str) -> Option<Span> {
        self.attributes.iter().find(|(known, _)| known.text(source) == name).map(|&(_, value)| value)
    }

    pub(crate) fn number(&self, source: &str, name: &str) -> Option<(Span, u64)> {
        let span = self.value(source, name)?;
        Some((span, span.text(source).trim().parse().ok()?))
    }

    pub(crate) fn set(&self, source: &str, name: &str, value: &str) -> TextEdit {
        if let Some(span) = self.value(source, name) {
            return TextEdit::new(span, value);
        }
        let end = self.attributes.last().map_or(self.name.end, |(_, value)| value.end + 1);
        TextEdit::new(Span { start: end, end }, format!(" {name}=\"{value}\""))
    }
}

/// The start tags in a section of the text, in order, until it is no longer well-formed.
pub(crate) fn tags(source: &str, span: Span) -> Vec<Tag> {
    let mut tokens = Tokens::new(source, span);
    let mut found = Vec::new();
    let mut open: Vec<(Element, usize)> = Vec::new();
    loop {
        match tokens.child(open.last().map(|(element, _)| element)) {
            Ok(Some(element)) => {
                let attributes = Tokens::attributes(&element).flatten();
                found.push(Tag {
                    name: tokens.span_of(element.name()),
                    span: element.tag_span,
                    parent: open.last().map(|&(_, at)| at),
                    attributes: attributes.map(|(name, value)| (tokens.span_of(name), tokens.span_of(value))).collect(),
                });
                open.push((element, found.len() - 1));
            }
            Ok(None) if open.pop().is_some() => {}
            _ => return found,
        }
    }
}

/// Searches elements two levels below the root at `span`, in parents whose name satisfies `is_list`. Calls `find` with
/// the element and its position in its parent. Returns its first result and the tag of the root. Stops where the text
/// is not well-formed.
fn find_below<T>(
    source: &str,
    span: Span,
    is_list: impl Fn(&str) -> bool,
    mut find: impl FnMut(&Element, usize) -> Option<T>,
) -> (Span, Option<T>) {
    let mut tokens = Tokens::new(source, span);
    let Ok(Some(root)) = tokens.child(None) else { return (span, None) };
    let mut look = || {
        while let Some(list) = tokens.child(Some(&root)).ok()? {
            if !is_list(list.name()) {
                tokens.skip(&list).ok()?;
                continue;
            }
            let mut position = 0;
            while let Some(entry) = tokens.child(Some(&list)).ok()? {
                if let Some(found) = find(&entry, position) {
                    return Some(found);
                }
                position += 1;
                tokens.skip(&entry).ok()?;
            }
        }
        None
    };
    let found = look();
    (root.tag_span, found)
}

/// The tag of a port of the layer at `span`, or the layer's tag if it has no such port.
pub(crate) fn locate_port(source: &str, span: Span, direction: Direction, position: usize) -> Span {
    let list = if direction == Direction::Input { "input" } else { "output" };
    let is_list = |name: &str| name == list;
    let mut others = 0;
    let (layer, port) = find_below(source, span, is_list, |entry, at| {
        others = if at == 0 { 0 } else { others };
        let is_port = entry.name() == "port";
        others += usize::from(!is_port);
        (is_port && at - others == position).then_some(entry.tag_span)
    });
    port.unwrap_or(layer)
}

/// The tag of a back edge of the layer at `span`, by position, or the layer's tag if it has no such edge.
pub(crate) fn locate_back_edge(source: &str, span: Span, position: usize) -> Span {
    let (layer, edge) =
        find_below(source, span, |name| name == "back_edges", |edge, at| (at == position).then_some(edge.tag_span));
    edge.unwrap_or(layer)
}

#[cold]
pub(crate) fn locate_entry(source: &str, span: Span, name: &str, direction: Direction, id: LayerId) -> Option<Span> {
    let list = format!("{}port_map", name.strip_suffix("body").unwrap_or_default());
    let element = if direction == Direction::Input { "input" } else { "output" };
    let is_list = |name: &str| name == list;
    let found = find_below(source, span, is_list, |entry, _| {
        let mut ids = Tokens::attributes(entry).flatten().filter(|(name, _)| *name == "internal_layer_id");
        let is_it = entry.name() == element && ids.any(|(_, value)| value.trim().parse() == Ok(id.0));
        is_it.then_some(entry.tag_span)
    });
    found.1
}

#[cold]
pub(crate) fn locate_joint(source: &str, span: Span, id: LayerId) -> Option<Span> {
    let names = ["internal_layer_id", "from-layer", "to-layer"];
    locate_joint_with(source, span, |name, value| names.contains(&name) && value.trim().parse() == Ok(id.0))
}

#[cold]
pub(crate) fn locate_joint_with(source: &str, span: Span, is_it: impl Fn(&str, &str) -> bool) -> Option<Span> {
    let is_list = |name: &str| name.contains("port_map") || name == "back_edges";
    let found = find_below(source, span, is_list, |entry, _| {
        let mut attributes = Tokens::attributes(entry).flatten();
        attributes.any(|(name, value)| is_it(name, value)).then_some(entry.tag_span)
    });
    found.1
}

pub(crate) fn matches_dims(declared: &[i64], shape: &Shape) -> bool {
    let dims = shape.dims().unwrap_or_default();
    declared.len() == dims.len() && declared.iter().zip(dims).all(|(&text, dim)| dim.value().unwrap_or(-1) == text)
}

/// The dimensions declared between a port's tags: -1 for a length that is not fixed, a smaller number for text that is
/// not a dimension.
pub(crate) fn declared_dims(source: &str, content: Span) -> SmallVec<[i64; 6]> {
    if let Some(dims) = plain_dims(content.text(source)) {
        return dims;
    }
    let mut tokens = Tokens::new(source, content);
    let mut dims = SmallVec::new();
    while let Ok(Some(child)) = tokens.child(None) {
        let text = if child.name() == "dim" { tokens.text(&child) } else { tokens.skip(&child).map(|_| "".into()) };
        match text {
            Ok(text) if child.name() == "dim" => dims.push(integer_prefix(&text).map_or(i64::MIN, |(dim, _)| dim)),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    dims
}

/// Does the same as [`declared_dims`] for the usual text: plain elements with numbers and white space.
fn plain_dims(text: &str) -> Option<SmallVec<[i64; 6]>> {
    let mut dims = SmallVec::new();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let inside = rest.strip_prefix("<dim>")?;
        let (dim, behind) = inside.split_at(inside.bytes().position(|b| b == b'<')?);
        let behind = behind.strip_prefix("</dim>")?;
        match integer_prefix(dim)? {
            (dim, false) => dims.push(dim),
            (_, true) => return None,
        }
        rest = behind.trim_ascii_start();
    }
    Some(dims)
}

pub(super) fn rt_info_in(source: &str, content: Span) -> Option<Span> {
    if !content.text(source).contains("rt_info") {
        return None;
    }
    let mut tokens = Tokens::new(source, content);
    while let Ok(Some(child)) = tokens.child(None) {
        let span = tokens.skip(&child).ok()?;
        if child.name() == "rt_info" {
            return Some(span);
        }
    }
    None
}

pub(crate) fn means(source: &str, span: Span) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let is_list = |_: &str| true;
    find_below(source, span, is_list, |mean, _| {
        let numbers = ["offset", "size"].map(|name| Tokens::attribute(mean, name)?.trim().parse::<u64>().ok());
        if let ("mean", [Some(start), Some(size)]) = (mean.name(), numbers) {
            found.push(start..start.saturating_add(size));
        }
        None::<()>
    });
    found
}
