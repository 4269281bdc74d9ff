//! Hypotheses about a whole file: one mistake that explains many findings.
//!
//! Examples are layer ids shifted by a merge, ports counted from 1, text that was pasted twice, and a header before
//! the weights. Each hypothesis is a set of edits that is tried like any other candidate. It is suggested with the
//! first finding that it fixes.
//!
//! ```text
//! layers 0 1 2 4 5, edges name 0 1 2 3 4  ->  the ids of layers from the fourth on are one too high
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use typelift_promote::ElementType;

use super::change::{Change, Needs};
use super::site::{Candidate, EdgeText, Evidence, Site, with_end_tag};
use crate::base::hash::{HashMap, HashSet};
use crate::base::span::Span;
use crate::check::Declared;
use crate::edit::numbers::element_count;
use crate::findings::TextEdit;
use crate::model::graph::{Body, Direction, Graph, Layer, LayerId, Model};
use crate::model::weights::stored_size;
use crate::ops::{self, LayerKind};
use crate::text::xml::{self, Tag};

/// Maximum number of layers whose ports are compared.
const LAYERS: usize = 64;

pub(super) fn hypotheses(model: &Model, graph: &Graph, edges: &[EdgeText]) -> Vec<Candidate> {
    let source = &*model.source;
    let tags = xml::tags(source, graph.layers_span.unwrap_or_default());
    let layers: Vec<&Tag> = tags.iter().filter(|tag| tag.parent == Some(0)).collect();
    let mut found = shifted_layers(source, &layers, edges);
    found.extend(exchanged_ids(source, &layers));
    found.extend(shifted_ports(source, &tags, edges));
    found.extend(pasted(source, &tags, edges));
    found
}

fn hypothesis(proof: &'static str, needs: Needs, edits: Vec<TextEdit>) -> Candidate {
    Candidate::new(Evidence::Near, Change::Whole { proof, needs }, edits)
}

fn number(source: &str, tag: &Tag, name: &str) -> Option<(Span, u64)> {
    let span = tag.value(source, name)?;
    Some((span, span.text(source).trim().parse().ok()?))
}

/// A candidate for layer ids that are all too high by one from some layer on, or for the edges that use them.
fn shifted_layers(source: &str, layers: &[&Tag], edges: &[EdgeText]) -> Vec<Candidate> {
    let ids: Option<Vec<(Span, u64)>> = layers.iter().map(|tag| number(source, tag, "id")).collect();
    let Some(ids) = ids else { return Vec::new() };
    let named: BTreeSet<u64> = edges.iter().flat_map(|edge| [edge.from.0, edge.to.0]).collect();
    let rises = ids.windows(2).all(|pair| pair[0].1 < pair[1].1);
    let pairs: Vec<(Span, u64, u64)> = ids.iter().zip(&named).map(|(&(span, id), &name)| (span, id, name)).collect();
    let differing: Vec<_> = pairs.iter().filter(|(_, id, name)| id != name).collect();
    let Some(&&(_, id, name)) = differing.first() else { return Vec::new() };
    let by = i128::from(id) - i128::from(name);
    let is_shift = differing.iter().all(|(_, id, name)| i128::from(*id) - i128::from(*name) == by);
    let from = pairs.len() - differing.len();
    let is_suffix = pairs[from..].iter().all(|(_, id, name)| id != name);
    if !rises || named.len() != ids.len() || !is_shift || !is_suffix || differing.len() < 2 {
        return Vec::new();
    }
    let count_on = |all: &mut dyn Iterator<Item = u64>| (0..).zip(all).all(|(at, id)| at == id);
    let edits = if count_on(&mut named.iter().copied()) {
        differing.iter().map(|(span, _, name)| TextEdit::new(*span, name.to_string())).collect()
    } else if count_on(&mut ids.iter().map(|&(_, id)| id)) {
        let meant: HashMap<u64, u64> = differing.iter().map(|(_, id, name)| (*name, *id)).collect();
        let end = |span: Span, id: u64| Some(TextEdit::new(span, meant.get(&id)?.to_string()));
        let ends = edges.iter().flat_map(|edge| [end(edge.ends[0], edge.from.0), end(edge.ends[2], edge.to.0)]);
        ends.flatten().collect()
    } else {
        return Vec::new();
    };
    vec![hypothesis("all findings are explained by layer ids that are shifted by one", Needs::Trial, edits)]
}

/// A candidate that swaps two ids, if the ids of all other layers rise in the order of the text.
fn exchanged_ids(source: &str, layers: &[&Tag]) -> Option<Candidate> {
    let ids: Option<Vec<(Span, u64)>> = layers.iter().map(|tag| number(source, tag, "id")).collect();
    let ids = ids?;
    let mut sorted: Vec<u64> = ids.iter().map(|&(_, id)| id).collect();
    sorted.sort_unstable();
    let mut moved = ids.iter().zip(&sorted).filter(|((_, id), meant)| id != *meant);
    let (&(one, first), &(other, second)) = (moved.next()?.0, moved.next()?.0);
    if moved.next().is_some() || ids.len() < 4 {
        return None;
    }
    let edits = vec![TextEdit::new(one, second.to_string()), TextEdit::new(other, first.to_string())];
    let proof = "ids: only these two are out of order, and their swap explains all";
    Some(hypothesis(proof, Needs::Explanation, edits))
}

/// Candidates for layers whose port ids are all too high by one.
fn shifted_ports(source: &str, tags: &[Tag], edges: &[EdgeText]) -> Vec<Candidate> {
    let mut ends = HashMap::<u64, [BTreeSet<u64>; 2]>::default();
    for edge in edges {
        ends.entry(edge.to.0).or_default()[0].insert(edge.to.1);
        ends.entry(edge.from.0).or_default()[1].insert(edge.from.1);
    }
    let mut found = Vec::new();
    let layers: Vec<usize> = (0..tags.len()).filter(|&at| tags[at].parent == Some(0)).collect();
    for (layer, &at) in layers.iter().enumerate() {
        let tag = &tags[at];
        let Some(named) = number(source, tag, "id").and_then(|(_, id)| ends.get(&id)) else { continue };
        let within = at..layers.get(layer + 1).copied().unwrap_or(tags.len());
        let sides = [Direction::Input, Direction::Output].map(|side| ports(source, tags, within.clone(), side));
        let ids: Vec<(Span, u64)> = sides.iter().flatten().copied().collect();
        let Some(&(_, by)) = ids.first().filter(|(_, first)| *first > 0) else { continue };
        let is_shifted = (0..).zip(&ids).all(|(place, (_, id))| id.checked_sub(by) == Some(place));
        let is_meant = |(side, named): (&Vec<(Span, u64)>, &BTreeSet<u64>)| {
            let ids: HashSet<u64> = side.iter().map(|(_, id)| id - by).collect();
            named.iter().all(|id| ids.contains(id))
        };
        // The candidate is valid if every input gets an edge, and some edge now refers to a port that does not exist.
        let inputs: BTreeSet<u64> = sides[0].iter().filter_map(|(_, id)| id.checked_sub(by)).collect();
        let is_all = is_shifted && inputs == named[0] && sides.iter().zip(named).all(is_meant);
        if is_all && found.len() < LAYERS {
            let edits = ids.iter().map(|(span, id)| TextEdit::new(*span, (id - by).to_string())).collect();
            let proof = "all findings are explained by port ids that are shifted by one";
            found.push(hypothesis(proof, Needs::Trial, edits));
        }
    }
    found
}

/// `within` are the tags from that of the layer up to the next layer.
fn ports(source: &str, tags: &[Tag], within: Range<usize>, side: Direction) -> Vec<(Span, u64)> {
    let list = if side == Direction::Input { "input" } else { "output" };
    let is_list = |at: usize| tags[at].parent == Some(within.start) && tags[at].name.text(source) == list;
    let of_list =
        tags[within.clone()].iter().filter(|tag| tag.parent.is_some_and(is_list) && tag.name.text(source) == "port");
    of_list.filter_map(|tag| number(source, tag, "id")).collect()
}

fn pasted(source: &str, tags: &[Tag], edges: &[EdgeText]) -> Vec<Candidate> {
    let mut seen = HashMap::<u64, &str>::default();
    let mut edits = Vec::new();
    for tag in tags.iter().filter(|tag| tag.parent == Some(0)) {
        let (Some((_, id)), Some(element)) = (number(source, tag, "id"), element(source, tag)) else { continue };
        match seen.get(&id) {
            // Space between tags may differ.
            Some(text) if text.split_whitespace().eq(element.text(source).split_whitespace()) => {
                edits.push(TextEdit::new(element, ""));
            }
            Some(_) => return Vec::new(),
            None => {
                seen.insert(id, element.text(source));
            }
        }
    }
    let mut known = HashSet::default();
    for edge in edges {
        if !known.insert((edge.from, edge.to)) {
            let element = with_end_tag(source, edge.span);
            edits.push(TextEdit::new(element, ""));
        }
    }
    if edits.is_empty() { Vec::new() } else { vec![hypothesis("the copy is identical", Needs::Trial, edits)] }
}

/// `None` if it contains other layers.
fn element(source: &str, tag: &Tag) -> Option<Span> {
    if tag.span.text(source).ends_with("/>") {
        return Some(tag.span);
    }
    let rest = source.get(tag.span.end as usize..)?;
    let end = rest.find("</layer>")?;
    let is_plain = !rest[..end].contains("<layer");
    is_plain.then(|| Span { start: tag.span.start, end: tag.span.end + (end + "</layer>".len()) as u32 })
}

/// Candidates for offsets that are all too high by the same number. The first offset is then not 0, and the last
/// constant ends beyond the weights by this number.
pub(super) fn shifted_offsets(model: &Model) -> Vec<Candidate> {
    let source = &*model.source;
    let Some(length) = model.weights.len() else { return Vec::new() };
    let mut places = Vec::new();
    for layer in model.walk().flat_map(|(_, graph)| graph.unordered()).filter(|layer| ops::is_constant(layer)) {
        let span = xml::locate(source, layer.span().unwrap_or_default(), "data", "offset");
        let (Some(start), Some(size)) = (layer.byte_count("offset"), layer.byte_count("size")) else {
            return Vec::new();
        };
        places.push((start, start.saturating_add(size), span));
    }
    let (Some(first), Some(last)) = (places.iter().map(|it| it.0).min(), places.iter().map(|it| it.1).max()) else {
        return Vec::new();
    };
    if first == 0 || last.checked_sub(first) != Some(length) || places.len() < 2 {
        return Vec::new();
    }
    let edits = places.iter().map(|(start, _, span)| TextEdit::new(*span, (start - first).to_string())).collect();
    let proof = "all findings are explained by offsets that are shifted by the same number";
    vec![hypothesis(proof, Needs::Trial, edits)]
}

pub(super) fn renumbered_bodies(site: &Site<'_>) -> Vec<Candidate> {
    let shifted = site.layer.bodies().iter().filter_map(|body| {
        let named = named_in_body(site, body);
        let fits = |by: i128| {
            named.iter().all(|&(_, id, kind)| {
                let meant = u64::try_from(i128::from(id) + by).ok().and_then(|id| body.graph.layer(LayerId(id)));
                meant.is_some_and(|layer| ops::kind(layer) == kind)
            })
        };
        let &(_, first, _) = named.first()?;
        let ids: BTreeSet<u64> = named.iter().map(|it| it.1).collect();
        let shifts = body.graph.unordered().map(|layer| i128::from(layer.id().0) - i128::from(first));
        let mut shifts = shifts.filter(|&by| fits(by));
        let by = shifts.next().filter(|&by| by != 0 && shifts.next().is_none() && ids.len() > 1)?;
        let edits = named.iter().map(|&(span, id, _)| TextEdit::new(span, (i128::from(id) + by).to_string())).collect();
        Some(hypothesis("one shift of the ids of the body explains all", Needs::NoErrors, edits))
    });
    shifted.collect()
}

/// The ids of the layers of a body that its port map and back edges name, with the kind that each must have.
fn named_in_body(site: &Site<'_>, body: &Body) -> Vec<(Span, u64, LayerKind)> {
    let source = site.source();
    let list = format!("{}port_map", body.name().strip_suffix("body").unwrap_or_default());
    let is_own = |tag: &Tag| {
        let name = tag.parent.map_or("", |at| site.tags[at].name.text(source));
        name == list || name == "back_edges"
    };
    let ends = |tag: &Tag| match tag.name.text(source) {
        "input" => vec![("internal_layer_id", LayerKind::Parameter)],
        "output" => vec![("internal_layer_id", LayerKind::Result)],
        _ => vec![("from-layer", LayerKind::Result), ("to-layer", LayerKind::Parameter)],
    };
    let entries = site.joints().filter(|tag| is_own(tag));
    let named = entries.flat_map(|tag| ends(tag).into_iter().map(move |(name, kind)| (tag, name, kind)));
    named.filter_map(|(tag, name, kind)| number(source, tag, name).map(|(span, id)| (span, id, kind))).collect()
}

/// Edits for layers whose element type a search has replaced: each port still declares the type that it had. The bytes
/// of all constants among them agree with the ports.
pub(super) fn retyped(model: &Model) -> Vec<Candidate> {
    let (mut pairs, mut edits, mut has_bytes) = (BTreeSet::new(), Vec::new(), false);
    let layers = model.walk().flat_map(|(_, graph)| graph.unordered());
    for (layer, (name, written, declared)) in layers.filter_map(|layer| Some((layer, retyped_layer(model, layer)?))) {
        if ops::is_constant(layer) {
            let count = layer.stored_as().and_then(|(_, dims)| element_count(&dims));
            let (Some(bytes), Some(count)) = (layer.byte_count("size"), count) else { return Vec::new() };
            let agrees = |ty| stored_size(ty, count) == Some(u128::from(bytes));
            if !agrees(declared) || agrees(written) {
                return Vec::new();
            }
            has_bytes = true;
        }
        pairs.insert((written.name(), declared.name()));
        let span = xml::locate(&model.source, layer.span().unwrap_or_default(), "data", name);
        edits.push(TextEdit::new(span, declared.name()));
    }
    if pairs.len() != 1 || edits.len() < 2 || !has_bytes {
        return Vec::new();
    }
    let proof = "one replaced type explains all: the bytes of constants and all ports agree";
    vec![hypothesis(proof, Needs::NoDeviations, edits)]
}

/// The attribute of a layer that names its output's type, the type, and the type that its port declares instead.
fn retyped_layer(model: &Model, layer: &Layer) -> Option<(&'static str, ElementType, ElementType)> {
    let name = match ops::kind(layer) {
        LayerKind::Parameter | LayerKind::Constant => "element_type",
        LayerKind::Convert => "destination_type",
        _ => return None,
    };
    let written = layer.named_type(name)?;
    let port = layer.outputs().first()?;
    let declared = Declared::read(&model.source, port.declared, port.content).element_type?;
    (written != declared).then_some((name, written, declared))
}
