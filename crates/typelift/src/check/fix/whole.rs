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

use typelift_promote::ElementType;

use super::site::{Candidate, Case, Evidence, Ground, Site, element};
use super::trial::Needs;
use crate::base::hash::{HashMap, HashSet};
use crate::base::span::Span;
use crate::check::Declared;
use crate::edit::numbers::element_count;
use crate::findings::TextEdit;
use crate::model::graph::{Direction, InputPort, Layer, LayerId, Model, OutputPort};
use crate::model::weights::stored_size;
use crate::ops::{self, LayerKind};
use crate::text::xml::{self, Tag};

/// Maximum number of layers whose ports are compared, and of shifts of a body that are tried.
const LAYERS: usize = 64;
const BODIES: usize = 4;

fn hypothesis(proof: &'static str, needs: Needs, edits: Vec<TextEdit>) -> Candidate {
    Candidate::new(Evidence::Near, Ground::File(proof, needs), edits)
}

fn shifted(span: Span, number: u64, by: i128) -> TextEdit {
    TextEdit::new(span, (i128::from(number) + by).to_string())
}

impl Case<'_> {
    pub(super) fn hypotheses(&self) -> Vec<Candidate> {
        let tags = xml::tags(self.source(), self.graph.layers_span.unwrap_or_default());
        let layers: Vec<&Tag> = tags.iter().filter(|tag| tag.parent == Some(0)).collect();
        let mut found = Vec::new();
        let ids: Option<Vec<(Span, u64)>> = layers.iter().map(|tag| tag.number(self.source(), "id")).collect();
        if let Some(ids) = ids {
            found.extend(self.shifted_layers(&ids));
            found.extend(self.exchanged_ids(&ids));
        }
        found.extend(self.shifted_ports());
        found.extend(self.pasted(&layers));
        found
    }

    /// A candidate for layer ids that are all too high by one from some layer on, or for the edges that use them.
    fn shifted_layers(&self, ids: &[(Span, u64)]) -> Option<Candidate> {
        let named: BTreeSet<u64> = self.edges.iter().flat_map(|edge| [edge.from.0, edge.to.0]).collect();
        let rises = ids.windows(2).all(|pair| pair[0].1 < pair[1].1);
        let from = ids.iter().zip(&named).position(|((_, id), name)| id != name)?;
        let named: Vec<u64> = named.into_iter().collect();
        let by = i128::from(ids[from].1) - i128::from(named[from]);
        let differing = ids.iter().zip(&named).skip(from);
        let is_shift = differing.clone().all(|((_, id), name)| i128::from(*id) - i128::from(*name) == by);
        if !rises || named.len() != ids.len() || !is_shift || ids.len() - from < 2 {
            return None;
        }
        let count_on = |all: &mut dyn Iterator<Item = u64>| (0..).zip(all).all(|(at, id)| at == id);
        let edits = if count_on(&mut named.iter().copied()) {
            differing.map(|(&(span, id), _)| shifted(span, id, -by)).collect()
        } else if count_on(&mut ids.iter().map(|&(_, id)| id)) {
            let ends = self.edges.iter().flat_map(|edge| [(edge.ends[0], edge.from.0), (edge.ends[2], edge.to.0)]);
            ends.filter(|&(_, id)| id >= named[from]).map(|(span, id)| shifted(span, id, by)).collect()
        } else {
            return None;
        };
        Some(hypothesis("all findings are explained by layer ids that are shifted by one", Needs::Trial, edits))
    }

    /// A candidate that swaps two ids, if the ids of all other layers rise in the order of the text.
    fn exchanged_ids(&self, ids: &[(Span, u64)]) -> Option<Candidate> {
        let mut sorted: Vec<u64> = ids.iter().map(|&(_, id)| id).collect();
        sorted.sort_unstable();
        let moved: Vec<_> = ids.iter().zip(&sorted).filter(|((_, id), meant)| id != *meant).take(3).collect();
        if moved.len() != 2 || ids.len() < 4 {
            return None;
        }
        let edits = moved.into_iter().map(|(&(span, _), meant)| TextEdit::new(span, meant.to_string())).collect();
        let needs = if self.is_error { Needs::NoErrors } else { Needs::NoDeviations };
        Some(hypothesis("ids: only these two are out of order, and their swap explains all", needs, edits))
    }

    /// Candidates for layers whose port ids are all too high by one. Every input then gets an edge, and some edge now
    /// refers to a port that does not exist.
    fn shifted_ports(&self) -> Vec<Candidate> {
        let mut ends = HashMap::<u64, [BTreeSet<u64>; 2]>::default();
        for edge in &self.edges {
            ends.entry(edge.to.0).or_default()[0].insert(edge.to.1);
            ends.entry(edge.from.0).or_default()[1].insert(edge.from.1);
        }
        let mut found = Vec::new();
        for layer in self.graph.layers() {
            let inputs: Vec<u64> = layer.inputs().iter().map(InputPort::id).collect();
            let outputs: Vec<u64> = layer.outputs().iter().map(OutputPort::id).collect();
            let mut ids = (0..).zip(inputs.iter().chain(&outputs));
            let Some(&by) = inputs.iter().chain(&outputs).next().filter(|by| **by > 0) else { continue };
            let Some([into, out]) = ends.get(&layer.id().0) else { continue };
            let is_shifted = ids.all(|(at, id)| id.checked_sub(by) == Some(at));
            let are_all = inputs.iter().map(|id| id.checked_sub(by)).eq(into.iter().copied().map(Some));
            if !is_shifted || !are_all || !out.iter().all(|id| outputs.contains(&id.saturating_add(by))) {
                continue;
            }
            let Some(site) = self.site(layer).filter(|_| found.len() < LAYERS) else { continue };
            let tags = [Direction::Input, Direction::Output].into_iter().flat_map(|side| site.ports(side));
            let edits = tags.filter_map(|tag| tag.number(self.source(), "id"));
            let edits = edits.map(|(span, id)| shifted(span, id, -i128::from(by))).collect();
            let proof = "all findings are explained by port ids that are shifted by one";
            found.push(hypothesis(proof, Needs::Trial, edits));
        }
        found
    }

    /// A candidate that removes layers and edges that are there twice.
    fn pasted(&self, layers: &[&Tag]) -> Option<Candidate> {
        let source = self.source();
        let mut seen = HashMap::<u64, &str>::default();
        let mut edits = Vec::new();
        for tag in layers {
            let (Some((_, id)), element) = (tag.number(source, "id"), element(source, tag)) else { continue };
            if element.text(source).matches("<layer ").count() > 1 {
                continue;
            }
            match seen.get(&id) {
                // Space between tags may differ.
                Some(text) if text.split_whitespace().eq(element.text(source).split_whitespace()) => {
                    edits.push(TextEdit::new(element, ""));
                }
                Some(_) => return None,
                None => drop(seen.insert(id, element.text(source))),
            }
        }
        let mut known = HashSet::default();
        let copies = self.edges.iter().filter(|edge| !known.insert((edge.from, edge.to)));
        edits.extend(copies.map(|edge| TextEdit::new(edge.span, "")));
        (!edits.is_empty()).then(|| hypothesis("the copy is identical", Needs::Trial, edits))
    }
}

/// A candidate for offsets that are all too high by the same number. The first offset is then not 0, and the last
/// constant ends beyond the weights by this number.
pub(super) fn shifted_offsets(model: &Model) -> Option<Candidate> {
    let length = model.weights.len()?;
    let layers = model.walk().flat_map(|(_, graph)| graph.unordered()).filter(|layer| ops::is_constant(layer));
    let place = |layer: &Layer| {
        let span = xml::locate(&model.source, layer.span().unwrap_or_default(), "data", "offset");
        Some((layer.byte_count("offset")?, layer.byte_count("size")?, span))
    };
    let places: Vec<_> = layers.map(place).collect::<Option<_>>()?;
    let first = places.iter().map(|it| it.0).min()?;
    let last = places.iter().map(|it| it.0.saturating_add(it.1)).max()?;
    if first == 0 || last.checked_sub(first) != Some(length) || places.len() < 2 {
        return None;
    }
    let edits = places.iter().map(|&(start, _, span)| shifted(span, start, -i128::from(first))).collect();
    let proof = "all findings are explained by offsets that are shifted by the same number";
    Some(hypothesis(proof, Needs::Trial, edits))
}

/// Candidates that shift all ids by which the port map and the back edges name layers of a body.
pub(super) fn renumbered_bodies(site: &Site<'_>) -> Vec<Candidate> {
    let source = site.source();
    let mut found = Vec::new();
    for body in site.layer.bodies() {
        let list = format!("{}port_map", body.name().strip_suffix("body").unwrap_or_default());
        let lists = [&*list, "back_edges"];
        let entries =
            site.joints().filter(|tag| tag.parent.is_some_and(|at| lists.contains(&site.tags[at].name.text(source))));
        let ids = ["internal_layer_id", "from-layer", "to-layer"];
        let named: Vec<_> = entries.flat_map(|tag| ids.iter().filter_map(|id| tag.number(source, id))).collect();
        let Some(&(_, first)) = named.first().filter(|it| named.iter().any(|other| other.1 != it.1)) else { continue };
        let ends = |by: i128, id: u64| {
            let meant = u64::try_from(i128::from(id) + by).ok().and_then(|id| body.graph.layer(LayerId(id)));
            meant.is_some_and(|layer| layer.start().is_some())
        };
        let shifts = body.graph.unordered().map(|layer| i128::from(layer.id().0) - i128::from(first));
        let shifts = shifts.filter(|&by| by != 0 && named.iter().all(|&(_, id)| ends(by, id))).take(BODIES);
        found.extend(shifts.map(|by| {
            let edits = named.iter().map(|&(span, id)| shifted(span, id, by)).collect();
            hypothesis("one shift of the ids of the body explains all", Needs::NoErrors, edits)
        }));
    }
    found
}

/// Edits for layers whose element type a search has replaced: each port still declares the type that it had. The bytes
/// of all constants among them agree with the ports.
pub(super) fn retyped(model: &Model) -> Option<Candidate> {
    let (mut pairs, mut edits, mut has_bytes) = (BTreeSet::new(), Vec::new(), false);
    let layers = model.walk().flat_map(|(_, graph)| graph.unordered());
    for (layer, (name, written, declared)) in layers.filter_map(|layer| Some((layer, retyped_layer(model, layer)?))) {
        if ops::is_constant(layer) {
            let count = layer.stored_as().and_then(|(_, dims)| element_count(&dims));
            let (bytes, count) = layer.byte_count("size").zip(count)?;
            let agrees = |ty| stored_size(ty, count) == Some(u128::from(bytes));
            if !agrees(declared) || agrees(written) {
                return None;
            }
            has_bytes = true;
        }
        pairs.insert((written.name(), declared.name()));
        let span = xml::locate(&model.source, layer.span().unwrap_or_default(), "data", name);
        edits.push(TextEdit::new(span, declared.name()));
    }
    let proof = "one replaced type explains all: the bytes of constants and all ports agree";
    let is_all = pairs.len() == 1 && edits.len() > 1 && has_bytes;
    is_all.then(|| hypothesis(proof, Needs::NoDeviations, edits))
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
