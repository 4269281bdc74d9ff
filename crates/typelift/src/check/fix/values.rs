//! Candidates that change attributes, types and versions.

use std::collections::BTreeMap;

use typelift_promote::ElementType;

use super::change::Change;
use super::fitting::{Fitting, candidates};
use super::proof;
use super::relation;
use super::site::{Candidate, Evidence, Site, insert_attribute};
use crate::base::span::Span;
use crate::base::{foreign, names};
use crate::check::Declared;
use crate::edit::numbers::element_count;
use crate::findings::TextEdit;
use crate::model::graph::{Attribute, Direction, Layer};
use crate::model::weights::stored_size;
use crate::ops::{self, Attr, AttrKind, LayerKind};

/// Maximum number of values that are tried for an attribute: from the operation table, and from other layers.
const FROM_TABLE: usize = 6;
const FROM_SISTERS: usize = 4;
/// Maximum number of attribute pairs that are swapped.
const PAIRS: usize = 64;
const VARIABLE: &str = "variable_id";

impl Site<'_> {
    /// A missing attribute is added only if it is `missed`, or if it has no default.
    pub(super) fn attributes(&self, only: &dyn Fn(&str) -> bool, missed: Option<&str>) -> Vec<Candidate> {
        let Some(operation) = self.layer.operation() else { return Vec::new() };
        let mut found = Vec::new();
        if ops::is_constant(self.layer) || ops::kind(self.layer) == LayerKind::Parameter {
            found.extend(self.declared_attributes(only));
        }
        found.extend(self.exchanges(only));
        let mut fitting = Fitting::new(self.model, self.graph, self.layer.id());
        for row in operation.attribute_names().filter_map(|name| operation.attribute(name)).filter(|row| only(row.name))
        {
            let written = self.layer.attribute(row.name);
            let is_missed = missed == Some(row.name) || operation.required.contains(&row.name);
            if written.is_none() && row.default.is_some() && !is_missed {
                found.extend(self.left_out(row, &mut fitting));
                continue;
            }
            let mut values: Vec<(Evidence, String)> = Vec::new();
            let near = written.map_or_else(Vec::new, |text| near_values(row, text));
            let mut of_table = candidates(row, self.layer);
            let possible = of_table.len();
            // If no value gives the declared outputs, the inputs have changed since the ports were written.
            let mut fits = |value: &str| fitting.fits(row.name, value) != Some(false);
            let is_told = missed != Some(row.name) || of_table.is_empty() || of_table.iter().any(|value| fits(value));
            of_table.retain(|value| !is_told || fits(value));
            // OpenVINO's default is a candidate if the declared outputs distinguish it from other values.
            let assumed = row.default.filter(|_| written.is_none() && of_table.len() < possible);
            let assumed = assumed.filter(|value| of_table.iter().any(|it| it == value));
            values.extend(near);
            values.extend(assumed.map(|value| (Evidence::Unused, value.to_owned())));
            values.extend(self.sibling_values(row.name).into_iter().map(|value| (Evidence::File, value)));
            values.extend(of_table.into_iter().take(FROM_TABLE).map(|value| (Evidence::Table, value)));
            if row.name == VARIABLE {
                found.extend(self.lone_variables(written.unwrap_or_default()));
            }
            let mut seen = vec![written.unwrap_or_default().to_owned()];
            for (evidence, value) in values {
                if seen.contains(&value) || is_told && fitting.fits(row.name, &value) == Some(false) {
                    continue;
                }
                found.extend(self.valued(evidence, row.name, &value));
                seen.push(value);
            }
        }
        found
    }

    /// Candidates that add a missing attribute, if the layer gets its declared outputs only with it.
    fn left_out(&self, row: &Attr, fitting: &mut Fitting) -> Vec<Candidate> {
        let words: &[&str] = match row.kind {
            AttrKind::Bool => &["true", "false"],
            AttrKind::Enum(words) => words,
            _ => return Vec::new(),
        };
        let default = row.default.unwrap_or_default();
        if fitting.fits(row.name, default) != Some(false) {
            return Vec::new();
        }
        let fit = words.iter().filter(|word| **word != default && fitting.fits(row.name, word) == Some(true));
        fit.filter_map(|word| self.valued(Evidence::File, row.name, word)).collect()
    }

    fn valued(&self, evidence: Evidence, name: &str, value: &str) -> Option<Candidate> {
        let change = Change::Value { layer: self.layer.id(), name: name.to_owned(), value: value.to_owned() };
        Some(Candidate::new(evidence, change, vec![self.set(name, value)?]))
    }

    fn exchanges(&self, only: &dyn Fn(&str) -> bool) -> Vec<Candidate> {
        let written = self.layer.attributes();
        let pairs = written.iter().enumerate().flat_map(|(at, one)| written[at + 1..].iter().map(move |it| (one, it)));
        let pairs = pairs.take(PAIRS).map(|(one, other)| (one.name(), other.name()));
        let lost = pairs.filter(|(one, other)| relation::are_exchanged(self.layer, one, other));
        let mut found: Vec<_> = lost.map(|(one, other)| (Evidence::Near, one, other)).collect();
        let broken = relation::broken(self.layer);
        let evidence = |pair| if broken.contains(pair) { Evidence::Unused } else { Evidence::Table };
        found.extend(relation::pairs(self.layer).iter().map(|pair| (evidence(pair), pair.0, pair.1)));
        found.retain(|(_, one, other)| only(one) || only(other));
        let candidates = found.into_iter().filter_map(|(evidence, one, other)| {
            let first = self.set(one, self.layer.attribute(other)?)?;
            let second = self.set(other, self.layer.attribute(one)?)?;
            let change = Change::Exchange { layer: self.layer.id(), names: [one.to_owned(), other.to_owned()] };
            Some(Candidate::new(evidence, change, vec![first, second]))
        });
        candidates.collect()
    }

    fn declared_attributes(&self, only: &dyn Fn(&str) -> bool) -> Vec<Candidate> {
        let Some(port) = self.layer.outputs().first() else { return Vec::new() };
        let Declared { element_type, dims } = Declared::read(self.source(), port.declared, port.content);
        let shape = dims.iter().map(|&dim| if dim < 0 { "?".to_owned() } else { dim.to_string() });
        let shape = shape.collect::<Vec<_>>().join(self.separator());
        let mut values = vec![("shape", shape)];
        values.extend(element_type.map(|ty| ("element_type", ty.name().to_owned())));
        let count = dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(u64::try_from(dim).ok()?));
        let bytes = element_type.zip(count).and_then(|(ty, count)| stored_size(ty, count));
        if ops::is_constant(self.layer) {
            values.extend(
                bytes.or_else(|| self.bytes_to_next().map(u128::from)).map(|bytes| ("size", bytes.to_string())),
            );
        }
        values.retain(|(name, value)| self.layer.attribute(name).map(str::trim) != Some(value.as_str()));
        let edits = values.iter().map(|(name, value)| (*name, self.set(name, value)));
        let edits: Vec<_> = edits.filter_map(|(name, edit)| Some((name, edit?))).collect();
        let all = edits.iter().map(|(_, edit)| edit.clone()).collect::<Vec<_>>();
        let (written, size) = (self.written_bytes(), self.layer.byte_count("size").map(u128::from));
        // True if the declared size ends where the next constant begins.
        let fills = bytes.is_some() && bytes == self.bytes_to_next().map(u128::from) && bytes != size;
        let is_unreadable = |name: &str| {
            let row = self.layer.operation().and_then(|operation| operation.attribute(name));
            self.layer.attribute(name).is_some_and(|text| row.is_some_and(|row| !row.is_clear(text)))
        };
        let are_unreadable = edits.iter().all(|(name, _)| is_unreadable(name));
        let together = if fills || are_unreadable { Evidence::Unused } else { Evidence::Part };
        let names = edits.iter().map(|(name, _)| *name).collect();
        let change = Change::Declared { layer: self.layer.id(), names, fills };
        let several = (all.len() > 1 && self.data().is_some()).then(|| Candidate::new(together, change, all));
        let is_whole = dims.iter().all(|&dim| dim >= 0) || ops::is_constant(self.layer);
        // True if only with this change the size of the constant agrees with its type and shape.
        let settles = edits.len() == 1 && bytes.is_some() && bytes == size && written != size;
        let evidence = |name| match () {
            // Ports cannot declare the bounds of a dimension, so the shape may be incomplete.
            () if name == "shape" && !is_whole => Evidence::Part,
            () if settles => Evidence::Unused,
            () => Evidence::File,
        };
        let each = values.iter().filter(|(name, _)| only(name) || ops::is_constant(self.layer));
        let each = each.filter_map(|(name, value)| self.valued(evidence(*name), name, value));
        each.chain(several).chain(self.shapes_of_consumers()).chain(self.offsets()).collect()
    }

    /// The shapes with as many elements that the ports of consumers declare for a constant. Its own port is changed
    /// too. A rival can be a lost Reshape or Transpose, so none is safe.
    fn shapes_of_consumers(&self) -> Vec<Candidate> {
        let (Some(port), Some(output)) =
            (self.ports(Direction::Output).into_iter().next(), self.layer.outputs().first())
        else {
            return Vec::new();
        };
        let Some(now) = output.shape().to_static().filter(|_| ops::is_constant(self.layer)) else { return Vec::new() };
        let count = |dims: &[i64]| dims.iter().try_fold(1_i64, |count, &dim| count.checked_mul(dim));
        let mut shapes = Vec::new();
        for input in self.graph.consumers(self.layer.id().output(0)) {
            let taken = self.graph.layer(input.layer).and_then(|layer| layer.inputs().get(input.port));
            let Some(taken) = taken else { continue };
            let Declared { element_type, dims } = Declared::read(self.source(), taken.declared, taken.content);
            let is_other = element_type.is_some() && dims[..] != now[..] && count(&dims) == count(&now);
            if is_other && !shapes.contains(&dims) {
                shapes.push(dims);
            }
        }
        let edits = shapes.into_iter().filter_map(|dims| {
            let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
            let shape = self.set("shape", &dims.join(self.separator()))?;
            Some([vec![shape], self.with_dims(port, &dims)].concat())
        });
        edits.map(|edits| Candidate::new(Evidence::File, Change::Other, edits)).collect()
    }

    fn separator(&self) -> &'static str {
        if self.layer.attribute("shape").is_some_and(|text| text.contains(", ")) { ", " } else { "," }
    }

    /// True if the size of a constant contradicts its type and shape, so that its port may be right.
    pub(super) fn is_misread(&self) -> bool {
        let size = self.layer.byte_count("size").map(u128::from);
        ops::is_constant(self.layer) && self.written_bytes().zip(size).is_some_and(|(written, size)| written != size)
    }

    pub(super) fn written_bytes(&self) -> Option<u128> {
        let (ty, dims) = self.layer.stored_as()?;
        stored_size(ty, element_count(&dims)?)
    }

    pub(super) fn declared_bytes(&self) -> Option<u128> {
        let port = self.layer.outputs().first()?;
        let declared = Declared::read(self.source(), port.declared, port.content);
        let dims = declared.dims.iter().map(|&dim| u64::try_from(dim).ok());
        stored_size(declared.element_type?, dims.into_iter().try_fold(1_u64, |count, dim| count.checked_mul(dim?))?)
    }

    fn bytes_to_next(&self) -> Option<u64> {
        let offset = |layer: &Layer| layer.attribute("offset")?.trim().parse::<u64>().ok();
        let start = offset(self.layer)?;
        let layers = self.model.walk().flat_map(|(_, graph)| graph.unordered());
        let starts = layers.filter(|layer| ops::is_constant(layer)).filter_map(offset);
        let end = starts.chain(self.model.weights.len()).filter(|&other| other > start).min()?;
        Some(end - start)
    }

    fn offsets(&self) -> Vec<Candidate> {
        let Some(data) = self.data().filter(|_| ops::is_constant(self.layer)) else { return Vec::new() };
        let mut places = Vec::new();
        let mut alike = BTreeMap::<u64, usize>::new();
        let layers = self.model.walk().flat_map(|(_, graph)| graph.unordered());
        for layer in layers.filter(|layer| !std::ptr::eq(*layer, self.layer) && ops::is_constant(layer)) {
            if let (Some(start), Some(size)) = (layer.byte_count("offset"), layer.byte_count("size")) {
                places.push((start, start.saturating_add(size)));
                let is_alike = |name| layer.attribute(name) == self.layer.attribute(name);
                if is_alike("element_type") && is_alike("shape") {
                    *alike.entry(start).or_default() += 1;
                }
            }
        }
        places.sort_unstable();
        let mut holes = Vec::new();
        let mut end = 0;
        for &(start, stop) in &places {
            holes.extend((start > end).then_some((end, start)));
            end = end.max(stop);
        }
        holes.extend(self.model.weights.len().filter(|&length| length > end).map(|length| (end, length)));
        let written = data.value(self.source(), "offset");
        let edit = |start: u64| match written {
            Some(span) => TextEdit::new(span, start.to_string()),
            None => insert_attribute(data, "offset", &start.to_string()),
        };
        let (now, size) = (self.layer.byte_count("offset"), self.layer.byte_count("size"));
        // The bytes of a constant of equal size are also possible, because equal constants share bytes.
        holes.extend(places.iter().filter(|&&(start, end)| Some(end - start) == size).copied());
        holes.retain(|&(start, end)| size.is_none_or(|size| end - start >= size) && Some(start) != now);
        let is_taken = |start| places.binary_search_by_key(&start, |place: &(u64, u64)| place.0).is_ok();
        let uses = |start| alike.get(&start).copied().unwrap_or_default();
        let rank = |start: u64, end: u64| {
            let distance = now.map_or(start, |now| start.abs_diff(now));
            let overlaps = now.zip(size).is_some_and(|(now, size)| start < now.saturating_add(size) && now < end);
            (Some(end - start) != size, is_taken(start), !overlaps, std::cmp::Reverse(uses(start)), distance)
        };
        holes.sort_by_key(|&(start, end)| rank(start, end));
        holes.dedup();
        let evidence = |start, fits: bool| match (fits, is_taken(start)) {
            (true, false) => Evidence::Unused,
            (true, true) => Evidence::File,
            (false, _) => Evidence::Part,
        };
        let free = holes.iter().filter(|&&(start, end)| Some(end - start) == size && !is_taken(start)).count();
        let change = Change::Place { layer: self.layer.id(), is_only_one: free == 1 };
        let found = holes.into_iter().take(FROM_TABLE);
        let fits = |start, end| evidence(start, Some(end - start) == size);
        found.map(|(start, end)| Candidate::new(fits(start, end), change.clone(), vec![edit(start)])).collect()
    }

    fn sibling_values(&self, name: &str) -> Vec<String> {
        let mut counts = BTreeMap::<&str, usize>::new();
        for sibling in self.siblings() {
            *counts.entry(sibling.attribute(name).unwrap_or_default()).or_default() += 1;
        }
        let mut values: Vec<_> = counts.into_iter().filter(|(value, _)| !value.is_empty()).collect();
        values.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let is_place = ops::is_constant(self.layer) && ["offset", "shape", "size"].contains(&name);
        let is_own = is_place || name == VARIABLE;
        let limit = if is_own { 0 } else { FROM_SISTERS };
        values.into_iter().take(limit).map(|(value, _)| value.to_owned()).collect()
    }

    /// An edit makes both names equal; the file does not show which one is misspelled.
    fn lone_variables(&self, written: &str) -> Vec<Candidate> {
        let partner = match ops::kind(self.layer) {
            LayerKind::Assign => LayerKind::ReadValue,
            LayerKind::ReadValue => LayerKind::Assign,
            _ => return Vec::new(),
        };
        let taken: Vec<_> = self.siblings().filter_map(|sibling| sibling.attribute(VARIABLE)).collect();
        let partners = self.graph.unordered().filter(|layer| ops::kind(layer) == partner);
        let name = |layer: &Layer| layer.attribute(VARIABLE).unwrap_or_default().to_owned();
        let mut lone: Vec<_> = partners.map(|layer| (name(layer), layer)).collect();
        lone.retain(|(name, _)| !taken.contains(&name.as_str()));
        let near = names::nearest(written, lone.iter().map(|(name, _)| name.as_str())).map(str::to_owned);
        // If one name is similar, the others are excluded.
        lone.retain(|(name, _)| near.as_ref().is_none_or(|near| near == name));
        let edits = lone.iter().flat_map(|(name, partner)| {
            let there =
                Site::new(self.model, self.graph, self.edges, partner).and_then(|site| site.set(VARIABLE, written));
            self.set(VARIABLE, name).into_iter().chain(there)
        });
        edits.map(|edit| Candidate::new(Evidence::File, Change::Other, vec![edit])).collect()
    }

    fn siblings(&self) -> impl Iterator<Item = &Layer> {
        self.graph.unordered().filter(|layer| layer.ty() == self.layer.ty() && layer.id() != self.layer.id())
    }

    pub(super) fn attribute_names(&self) -> Vec<Candidate> {
        let (Some(operation), Some(data)) = (self.layer.operation(), self.data()) else { return Vec::new() };
        let mut found = Vec::new();
        for &(name, value) in &data.attributes {
            let written = name.text(self.source());
            if operation.attribute(written).is_some() {
                continue;
            }
            let free: Vec<_> =
                operation.attribute_names().filter(|name| self.layer.attribute(name).is_none()).collect();
            let near = foreign::attribute(written, free.iter().copied());
            let only = proof::attribute(written, &free);
            let evidence = |known: &str| if near == Some(known) { Evidence::Near } else { Evidence::Table };
            let others = free.into_iter().filter(|known| near.is_none() || near == Some(known));
            let change = |known: &str| Change::AttributeName { is_only: only == Some(known) };
            found.extend(others.map(|known| Candidate::one(evidence(known), change(known), name, known)));
            let whole = Span { start: name.start, end: value.end + 1 };
            found.push(Candidate::one(Evidence::Part, Change::Other, whole, ""));
        }
        found
    }

    pub(super) fn operations(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        if let Some(span) = self.head("version") {
            let of_sisters: Vec<_> = self.siblings().map(Layer::version).collect();
            let rows = ops::revisions(self.layer.ty()).iter();
            let mut sets: Vec<_> = rows.clone().filter_map(|row| row.opsets().next()).collect();
            sets.sort_unstable_by(|a, b| b.cmp(a));
            // The number of the version after its spelling is corrected.
            let number: Option<u32> =
                self.layer.version().trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
            let named = rows.flat_map(|row| row.opsets()).find(|set| number == Some(u32::from(*set)));
            sets.extend(named.filter(|set| !sets.contains(set) && self.layer.operation().is_none()));
            for set in sets.into_iter().map(|set| format!("opset{set}")).filter(|set| set != self.layer.version()) {
                let digits = |text: &str| text.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
                let is_near = self.layer.operation().is_none() && digits(&set) == digits(self.layer.version());
                let evidence = match () {
                    () if is_near => Evidence::Near,
                    () if of_sisters.contains(&set.as_str()) => Evidence::File,
                    () => Evidence::Table,
                };
                let change = Change::Version { layer: self.layer.id(), value: set.clone() };
                found.push(Candidate::one(evidence, change, span, set));
            }
        }
        found.extend(self.names());
        found
    }

    /// Candidates for the name of an operation that the format does not have.
    fn names(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        // `Constant` is the name of the operation, but not the one that files use.
        let class = ops::all().map(|row| row.name).find(|name| *name == self.layer.ty());
        let spelling = class.map(ops::file_spelling).filter(|name| !name.is_empty() && *name != self.layer.ty());
        if let Some((span, spelling)) = self.head("type").zip(spelling) {
            found.push(self.operation(Evidence::Near, span, spelling));
        }
        if let (Some(span), None) = (self.head("type"), self.layer.operation()) {
            let names: Vec<_> = ops::all().map(|row| row.name).collect();
            let meant = foreign::operation(self.layer.ty(), &names).map(|(meant, _)| meant);
            let distance = |name: &str| names::distance(name, self.layer.ty());
            let written = names.into_iter().map(ops::file_spelling);
            let limit = self.layer.ty().chars().count() / 2;
            let meant = meant.map(ops::file_spelling);
            let mut near: Vec<_> = written
                .filter(|name| names::is_within(limit.min(3), name, self.layer.ty()) || Some(*name) == meant)
                .collect();
            near.sort_by_key(|name| (Some(*name) != meant, distance(name), *name));
            near.dedup();
            // A name that another operation set has is rarely misspelt.
            let has_name = !ops::revisions(self.layer.ty()).is_empty();
            let set = self.layer.version().strip_prefix("opset").and_then(|set| set.parse::<u8>().ok());
            let is_here = |name: &str| ops::revisions(name).iter().any(|row| row.opsets().any(|it| Some(it) == set));
            near.retain(|name| !has_name || distance(name) == 1 && is_here(name));
            // All operations with the same attributes are tried, because the name alone does not decide.
            let mut alike = ops::with_attributes(self.layer.attributes().iter().map(Attribute::name));
            if !alike.is_empty() && proof::operation(self.layer.ty()).is_some() {
                alike.clear();
            }
            found.extend(alike.iter().map(|name| self.operation(Evidence::File, span, name)));
            near.retain(|name| !alike.contains(name));
            for name in near.into_iter().take(FROM_TABLE).filter(|name| !name.is_empty()) {
                let is_near = Some(name) == meant || distance(name) <= (limit / 2).clamp(1, 2);
                let evidence = match () {
                    () if is_near && !alike.is_empty() => Evidence::File,
                    () if is_near => Evidence::Near,
                    () => Evidence::Table,
                };
                found.push(self.operation(evidence, span, name));
            }
        }
        found
    }

    fn operation(&self, evidence: Evidence, span: Span, name: &str) -> Candidate {
        let (written, meant) = (self.layer.ty().to_owned(), name.to_owned());
        Candidate::one(evidence, Change::Operation { layer: self.layer.id(), written, meant }, span, name)
    }

    pub(super) fn missing_head(&self) -> Vec<Candidate> {
        let Some(head) = self.tags.first() else { return Vec::new() };
        let mut found = Vec::new();
        if self.head("version").is_none() {
            let rows = ops::revisions(self.layer.ty()).iter();
            let mut sets: Vec<_> = rows.filter_map(|row| row.opsets().next()).collect();
            sets.sort_unstable();
            let sets = sets.into_iter().rev().map(|set| format!("opset{set}"));
            let edit = |set: &str| vec![insert_attribute(head, "version", set)];
            let change = |set: &str| Change::Version { layer: self.layer.id(), value: set.to_owned() };
            found.extend(sets.map(|set| Candidate::new(Evidence::File, change(&set), edit(&set))));
        }
        found
    }
}

fn near_values(row: &Attr, text: &str) -> Vec<(Evidence, String)> {
    if row.is_clear(text) {
        return Vec::new();
    }
    let read = proof::read(row, text).map(|read| (Evidence::Near, read.value));
    let likely = likely_values(row, text.trim()).into_iter().map(|value| (Evidence::File, value));
    read.into_iter().chain(likely).collect()
}

/// The values that a text most likely means if some characters are ignored: `8` for `8 px`, `i32` for `int`.
fn likely_values(row: &Attr, text: &str) -> Vec<String> {
    let near_types = || {
        let near = ElementType::all().filter(|ty| names::distance(ty.name(), text) <= 1);
        foreign::element_type(text).into_iter().chain(near).map(|ty| ty.name().to_owned()).collect()
    };
    match row.kind {
        AttrKind::Bool => foreign::word(text, &["true", "false"]).map(str::to_owned).into_iter().collect(),
        AttrKind::Enum(words) => foreign::word(text, words).map(str::to_owned).into_iter().collect(),
        AttrKind::Type => near_types(),
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes | AttrKind::Float => {
            let number: String = text.chars().take_while(|&c| c.is_ascii_digit() || c == '-').collect();
            number.parse::<i64>().ok().map(|number| number.to_string()).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
