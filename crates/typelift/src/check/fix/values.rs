//! Candidates that change attributes, types and versions.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use typelift_promote::ElementType;

use super::fitting::{Fitting, candidates};
use super::reading;
use super::relation;
use super::site::{Candidate, Evidence, Ground, Site};
use super::trial::Needs;
use crate::base::span::Span;
use crate::base::{foreign, names};
use crate::check::Declared;
use crate::edit::numbers::element_count;
use crate::model::graph::{Attribute, Layer};
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
        if self.is_source() {
            found.extend(self.declared_attributes(only));
        }
        found.extend(self.exchanges(only));
        let mut fitting = Fitting::new(self.case.model, self.graph, self.layer.id());
        for row in operation.attribute_names().filter_map(|name| operation.attribute(name)).filter(|row| only(row.name))
        {
            let written = self.layer.attribute(row.name);
            let is_missed = missed == Some(row.name) || operation.required.contains(&row.name);
            if written.is_none() && row.default.is_some() && !is_missed {
                found.extend(self.left_out(row, &mut fitting));
                continue;
            }
            let mut of_table = candidates(row, self.layer);
            let possible = of_table.len();
            // If no value gives the declared outputs, the inputs have changed since the ports were written.
            let mut fits = |value: &str| fitting.fits(row.name, value) != Some(false);
            let is_told = missed != Some(row.name) || of_table.is_empty() || of_table.iter().any(|value| fits(value));
            of_table.retain(|value| !is_told || fits(value));
            // OpenVINO's default is a candidate if the declared outputs distinguish it from other values.
            let assumed = row.default.filter(|_| written.is_none() && of_table.len() < possible);
            let assumed = assumed.filter(|value| of_table.iter().any(|it| it == value)).map(str::to_owned);
            let mut values = written.map_or_else(Vec::new, |text| near_values(row, text));
            values.extend(assumed.map(|value| (Evidence::Unused, value)));
            values.extend(self.sibling_values(row.name).into_iter().map(|value| (Evidence::File, value)));
            values.extend(of_table.into_iter().take(FROM_TABLE).map(|value| (Evidence::Table, value)));
            if row.name == VARIABLE {
                found.extend(self.variables(written.unwrap_or_default()));
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
        Some(Candidate::new(evidence, self.ground(name, value), vec![self.set(name, value)?]))
    }

    /// The evidence that an attribute has this value: its old text, the only port of a Parameter or constant, or the
    /// outputs of another layer.
    fn ground(&self, name: &str, value: &str) -> Ground {
        let unclear = self.unclear(name);
        let is_exchanged =
            self.layer.attributes().iter().any(|it| relation::are_exchanged(self.layer, name, it.name()));
        match unclear.and_then(|(row, text)| reading::value(row, text)) {
            _ if is_exchanged => Ground::None,
            // Lists with and without spaces after commas are equal.
            Some(read) if read.value.split(',').map(str::trim).eq(value.split(',').map(str::trim)) => read.into(),
            Some(_) => Ground::None,
            None if self.is_source() => {
                let is_meant = self.declared_values().iter().any(|(known, said)| *known == name && said == value);
                let is_wrong = unclear.is_some() || self.layer.attribute(name).is_none() || self.is_contradicted(name);
                let needs = match name {
                    _ if is_wrong => Needs::Trial,
                    // The bytes are the same.
                    "shape" if self.case.is_error && ops::is_constant(self.layer) => Needs::NoDeviations,
                    _ => return Ground::None,
                };
                let says = match name {
                    "shape" => "port: it declares the shape",
                    "element_type" => "port: it declares the type",
                    _ => "type, shape and port agree on the size",
                };
                if is_meant && self.declares(name) { Ground::File(says, needs) } else { Ground::None }
            }
            None => Ground::Outputs { layer: self.layer.id(), name: name.to_owned(), value: value.to_owned() },
        }
    }

    /// The text of an attribute, if it is not a value.
    fn unclear(&self, name: &str) -> Option<(&'static Attr, &str)> {
        let row = self.layer.operation()?.attribute(name)?;
        Some((row, self.layer.attribute(name)?)).filter(|(row, text)| !row.is_clear(text))
    }

    /// True for a Parameter or constant, which has only one port.
    fn is_source(&self) -> bool {
        ops::is_constant(self.layer) || ops::kind(self.layer) == LayerKind::Parameter
    }

    /// Either the size of a constant agrees with the port, or the wrong type of a Parameter causes errors. Otherwise
    /// the author may want a new shape of the Parameter.
    fn is_contradicted(&self, name: &str) -> bool {
        let size = self.layer.byte_count("size").map(u128::from);
        match ops::is_constant(self.layer) {
            true if self.case.is_error && name == "size" => true,
            true => self.declared_bytes() == size && self.written_bytes() != size,
            false => self.case.is_error,
        }
    }

    fn declares(&self, name: &str) -> bool {
        let Some(Declared { element_type, dims }) = self.declared() else { return false };
        match name {
            // A port without dimensions declares no shape, and one with dynamic dimensions declares no bounds.
            "shape" => !dims.is_empty() && dims.iter().all(|&dim| dim >= 0),
            "element_type" => element_type.is_some(),
            "size" => self.written_bytes().is_some_and(|bytes| {
                let is_exchanged = self.layer.byte_count("offset").map(u128::from) == Some(bytes);
                self.declared_bytes() == Some(bytes) && !is_exchanged
            }),
            _ => false,
        }
    }

    fn declared(&self) -> Option<Declared> {
        let port = self.layer.outputs().first()?;
        Some(Declared::read(self.source(), port.declared, port.content))
    }

    fn exchanges(&self, only: &dyn Fn(&str) -> bool) -> Vec<Candidate> {
        let written = self.layer.attributes();
        let pairs = written.iter().enumerate().flat_map(|(at, one)| written[at + 1..].iter().map(move |it| (one, it)));
        let pairs = pairs.take(PAIRS).map(|(one, other)| (one.name(), other.name()));
        let lost = pairs.filter(|(one, other)| relation::are_exchanged(self.layer, one, other));
        let proof = Ground::File("swap: each value is valid only for the other attribute", Needs::Trial);
        let mut found: Vec<_> = lost.map(|(one, other)| (Evidence::Near, proof.clone(), one, other)).collect();
        let related = relation::pairs(self.layer);
        found.extend(related.iter().map(|pair| (Evidence::Table, Ground::None, pair.0, pair.1)));
        found.retain(|(.., one, other)| only(one) || only(other));
        let candidates = found.into_iter().filter_map(|(evidence, ground, one, other)| {
            let first = self.set(one, self.layer.attribute(other)?)?;
            let second = self.set(other, self.layer.attribute(one)?)?;
            Some(Candidate::new(evidence, ground, vec![first, second]))
        });
        candidates.collect()
    }

    /// The values of the attributes that the port of a Parameter or constant declares.
    fn declared_values(&self) -> Vec<(&'static str, String)> {
        let Some(Declared { element_type, dims }) = self.declared() else { return Vec::new() };
        let shape = dims.iter().map(|&dim| if dim < 0 { "?".to_owned() } else { dim.to_string() });
        let mut values = vec![("shape", shape.collect::<Vec<_>>().join(self.separator()))];
        values.extend(element_type.map(|ty| ("element_type", ty.name().to_owned())));
        if ops::is_constant(self.layer) {
            let bytes = self.declared_bytes().or_else(|| self.bytes_to_next().map(u128::from));
            values.extend(bytes.map(|bytes| ("size", bytes.to_string())));
        }
        values
    }

    fn declared_attributes(&self, only: &dyn Fn(&str) -> bool) -> Vec<Candidate> {
        let Some(Declared { dims, .. }) = self.declared() else { return Vec::new() };
        let mut values = self.declared_values();
        values.retain(|(name, value)| self.layer.attribute(name).map(str::trim) != Some(value.as_str()));
        let (written, size) = (self.written_bytes(), self.layer.byte_count("size").map(u128::from));
        let bytes = self.declared_bytes();
        let is_constant = ops::is_constant(self.layer);
        let mut found = Vec::new();
        for (name, value) in values.iter().filter(|(name, _)| only(name) || is_constant) {
            let evidence = match *name {
                // Ports cannot declare the bounds of a dimension, so the shape may be incomplete.
                "shape" if dims.iter().any(|&dim| dim < 0) && !is_constant => Evidence::Part,
                // Only with this change the size of the constant agrees with its type and shape.
                _ if values.len() == 1 && bytes.is_some() && bytes == size && written != size => Evidence::Unused,
                _ => Evidence::File,
            };
            found.extend(self.valued(evidence, name, value));
        }
        let all: Option<Vec<_>> = values.iter().map(|(name, value)| self.set(name, value)).collect();
        if let Some(all) = all.filter(|all| all.len() > 1 && self.data().is_some()) {
            // True if the declared size ends where the next constant begins.
            let fills = bytes.is_some() && bytes == self.bytes_to_next().map(u128::from) && bytes != size;
            let is_lost = |name: &str| self.layer.attribute(name).is_none() || self.unclear(name).is_some();
            let mut others = values.iter().map(|(name, _)| *name).filter(|name| *name != "size");
            let are_declared = others.clone().all(|name| self.declares(name));
            let evidence = if fills || values.iter().all(|(name, _)| self.unclear(name).is_some()) {
                Evidence::Unused
            } else {
                Evidence::Part
            };
            let is_meant = are_declared && (fills && self.case.is_error || others.all(is_lost));
            let proof = Ground::File("port: it declares the type and the shape", Needs::Trial);
            found.push(Candidate::new(evidence, if is_meant { proof } else { Ground::None }, all));
        }
        found.extend(self.offsets());
        found
    }

    fn separator(&self) -> &'static str {
        if self.layer.attribute("shape").is_some_and(|text| text.contains(", ")) { ", " } else { "," }
    }

    /// True if the size of a constant contradicts its type and shape, so that its port may be right.
    pub(super) fn is_misread(&self) -> bool {
        let size = self.layer.byte_count("size").map(u128::from);
        ops::is_constant(self.layer) && self.written_bytes().zip(size).is_some_and(|(written, size)| written != size)
    }

    fn written_bytes(&self) -> Option<u128> {
        let (ty, dims) = self.layer.stored_as()?;
        stored_size(ty, element_count(&dims)?)
    }

    fn declared_bytes(&self) -> Option<u128> {
        let Declared { element_type, dims } = self.declared()?;
        let count = dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(u64::try_from(dim).ok()?))?;
        stored_size(element_type?, count)
    }

    /// The places of all other constants in the weights.
    fn places(&self) -> Vec<(u64, u64, &Layer)> {
        let layers = self.case.model.walk().flat_map(|(_, graph)| graph.unordered());
        let others = layers.filter(|layer| !std::ptr::eq(*layer, self.layer) && ops::is_constant(layer));
        let place = |layer| {
            let (start, size) = (Layer::byte_count(layer, "offset")?, Layer::byte_count(layer, "size")?);
            Some((start, start.saturating_add(size), layer))
        };
        let mut places: Vec<_> = others.filter_map(place).collect();
        places.sort_unstable_by_key(|&(start, end, _)| (start, end));
        places
    }

    fn bytes_to_next(&self) -> Option<u64> {
        let start = self.layer.byte_count("offset")?;
        let places = self.places();
        let starts = places.iter().map(|place| place.0).chain(self.case.model.weights.len());
        Some(starts.filter(|&other| other > start).min()? - start)
    }

    /// Candidates for the place of a constant: the unused ranges of its size, then the bytes of an equal constant,
    /// because equal constants share bytes.
    fn offsets(&self) -> Vec<Candidate> {
        let size = self.layer.byte_count("size").filter(|_| ops::is_constant(self.layer));
        let (Some(size), Some(length)) = (size, self.case.model.weights.len()) else { return Vec::new() };
        let now = self.layer.byte_count("offset");
        let places = self.places();
        let (mut free, mut shared, mut end) = (Vec::new(), Vec::new(), 0);
        for &(start, stop, layer) in &places {
            free.extend((start == end + size).then_some(end));
            let is_alike = |name| layer.attribute(name) == self.layer.attribute(name);
            shared.extend((stop - start == size && is_alike("element_type") && is_alike("shape")).then_some(start));
            end = end.max(stop);
        }
        free.extend((length == end.saturating_add(size)).then_some(end));
        let ground = match (now, &free[..]) {
            (None, [_]) => Ground::File("the only unused range of its size", Needs::Trial),
            _ => Ground::None,
        };
        shared.dedup();
        shared.sort_by_key(|start| start.abs_diff(now.unwrap_or_default()));
        let free = free.into_iter().map(|start| (Evidence::Unused, ground.clone(), start));
        let shared = shared.into_iter().map(|start| (Evidence::File, Ground::None, start));
        let all = free.chain(shared).filter(|(.., start)| Some(*start) != now).take(FROM_TABLE);
        let edit = |start: u64| Some(vec![self.set("offset", &start.to_string())?]);
        all.filter_map(|(evidence, ground, start)| Some(Candidate::new(evidence, ground, edit(start)?))).collect()
    }

    fn sibling_values(&self, name: &str) -> Vec<String> {
        let is_place = ops::is_constant(self.layer) && ["offset", "shape", "size"].contains(&name);
        if is_place || name == VARIABLE {
            return Vec::new();
        }
        let mut counts = BTreeMap::<&str, usize>::new();
        for value in self.siblings().filter_map(|sibling| sibling.attribute(name)).filter(|value| !value.is_empty()) {
            *counts.entry(value).or_default() += 1;
        }
        let mut values: Vec<_> = counts.into_iter().collect();
        values.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        values.into_iter().take(FROM_SISTERS).map(|(value, _)| value.to_owned()).collect()
    }

    /// An edit makes the names of a ReadValue and an Assign equal; the file does not show which one is misspelled.
    fn variables(&self, written: &str) -> Vec<Candidate> {
        let kinds = [LayerKind::Assign, LayerKind::ReadValue];
        let is_partner = |it: &&Layer| kinds.contains(&ops::kind(it)) && ops::kind(it) != ops::kind(self.layer);
        let partners = self.graph.unordered().filter(is_partner).filter_map(|it| Some((it.attribute(VARIABLE)?, it)));
        let mut lone: Vec<_> = partners.collect();
        lone.retain(|(name, _)| self.siblings().all(|sibling| sibling.attribute(VARIABLE) != Some(name)));
        // If one name is similar, the others are excluded.
        if let Some(near) = names::nearest(written, lone.iter().map(|(name, _)| *name)) {
            lone.retain(|(name, _)| *name == near);
        }
        let edits = lone.iter().flat_map(|(name, partner)| {
            let there = self.case.site(partner).and_then(|site| site.set(VARIABLE, written));
            self.set(VARIABLE, name).into_iter().chain(there)
        });
        edits.map(|edit| Candidate::new(Evidence::File, Ground::None, vec![edit])).collect()
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
            let only = reading::attribute(written, &free);
            for known in free.into_iter().filter(|known| near.is_none_or(|near| near == *known)) {
                let evidence = if near.is_some() { Evidence::Near } else { Evidence::Table };
                let text = Ground::Text(vec!["one letter, the case of letters, or another word for it"]);
                let ground = if only == Some(known) { text } else { Ground::None };
                found.push(Candidate::one(evidence, ground, name, known));
            }
            let whole = Span { start: name.start, end: value.end + 1 };
            found.push(Candidate::one(Evidence::Part, Ground::None, whole, ""));
        }
        found
    }

    /// Candidates for the operation set, and for the name of an operation that the format does not have.
    pub(super) fn operations(&self) -> Vec<Candidate> {
        let Some(head) = self.tags.first() else { return Vec::new() };
        let (written, is_known) = (self.layer.version(), self.layer.operation().is_some());
        let digits = |text: &str| text.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
        let rows = ops::revisions(self.layer.ty()).iter();
        let mut sets: Vec<_> = rows.clone().filter_map(|row| row.opsets().next()).collect();
        sets.sort_unstable_by(|a, b| b.cmp(a));
        // The number of the version after its spelling is corrected.
        let named = rows.flat_map(|row| row.opsets()).find(|set| digits(written) == set.to_string());
        sets.extend(named.filter(|set| !sets.contains(set) && !is_known));
        let mut found = Vec::new();
        for set in sets.into_iter().map(|set| format!("opset{set}")).filter(|set| set != written) {
            let span = self.head("version");
            let evidence = match () {
                () if span.is_some() && !is_known && digits(&set) == digits(written) => Evidence::Near,
                () if span.is_none() || self.siblings().any(|it| it.version() == set) => Evidence::File,
                () => Evidence::Table,
            };
            let edit = head.set(self.source(), "version", &set);
            found.push(Candidate::new(evidence, self.ground_of_version(&set), vec![edit]));
        }
        found.extend(self.names());
        found
    }

    fn ground_of_version(&self, value: &str) -> Ground {
        let written = self.layer.version().to_lowercase().replace([' ', '_', '-'], "");
        let mut siblings = self.siblings().peekable();
        let has_siblings = siblings.peek().is_some();
        match () {
            () if self.layer.operation().is_some() => Ground::None,
            () if written == value || format!("opset{written}") == value => {
                Ground::Text(vec!["the number of the operation set"])
            }
            () if ops::revisions(self.layer.ty()).len() == 1 => {
                Ground::File("the only revision of the operation", Needs::Trial)
            }
            () if has_siblings && siblings.all(|it| it.version() == value) => {
                Ground::File("the version of all sibling layers", Needs::Trial)
            }
            () => Ground::None,
        }
    }

    fn names(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        let (Some(span), written) = (self.head("type"), self.layer.ty()) else { return found };
        let read = LazyCell::new(|| reading::operation(written));
        let operation = |evidence, name: &str, is_alike: bool| {
            let ground = match &*read {
                Some(read) if read.value == name => read.clone().into(),
                None if is_alike => Ground::File("attributes: only this operation has them", Needs::Trial),
                _ => Ground::None,
            };
            Candidate::one(evidence, ground, span, name)
        };
        // `Constant` is the name of the operation, but not the one that files use.
        let class = ops::all().map(|row| row.name).find(|name| *name == written);
        let spelling = class.map(ops::file_spelling).filter(|name| !name.is_empty() && *name != written);
        found.extend(spelling.map(|spelling| operation(Evidence::Near, spelling, false)));
        if self.layer.operation().is_some() {
            return found;
        }
        let names: Vec<_> = ops::all().map(|row| row.name).collect();
        let meant = foreign::operation(written, &names).map(|(meant, _)| ops::file_spelling(meant));
        let distance = |name: &str| names::distance(name, written);
        let limit = written.chars().count() / 2;
        let mut near: Vec<_> = names.into_iter().map(ops::file_spelling).collect();
        near.retain(|name| names::is_within(limit.min(3), name, written) || Some(*name) == meant);
        near.retain(|name| reading::has_number_of(name, written));
        near.sort_by_key(|name| (Some(*name) != meant, distance(name), *name));
        near.dedup();
        // A name that another operation set has is rarely misspelt.
        let has_name = !ops::revisions(written).is_empty();
        let set = self.layer.version().strip_prefix("opset").and_then(|set| set.parse::<u8>().ok());
        let is_here = |name: &str| ops::revisions(name).iter().any(|row| row.opsets().any(|it| Some(it) == set));
        near.retain(|name| !has_name || distance(name) == 1 && is_here(name));
        // All operations with the same attributes are tried, because the name alone does not decide.
        let mut alike = ops::with_attributes(self.layer.attributes().iter().map(Attribute::name));
        if !alike.is_empty() && read.is_some() {
            alike.clear();
        }
        found.extend(alike.iter().map(|name| operation(Evidence::File, name, true)));
        near.retain(|name| !alike.contains(name) && !name.is_empty());
        for name in near.into_iter().take(FROM_TABLE) {
            let is_near = Some(name) == meant || distance(name) <= (limit / 2).clamp(1, 2);
            let evidence = match () {
                () if is_near && !alike.is_empty() => Evidence::File,
                () if is_near => Evidence::Near,
                () => Evidence::Table,
            };
            found.push(operation(evidence, name, false));
        }
        found
    }
}

/// The values that the text of an attribute means, or most likely means if some characters are ignored: `8` for
/// `8 px`, `i32` for `int`.
fn near_values(row: &Attr, text: &str) -> Vec<(Evidence, String)> {
    if row.is_clear(text) {
        return Vec::new();
    }
    let trimmed = text.trim();
    let likely: Vec<String> = match row.kind {
        AttrKind::Bool => foreign::word(trimmed, &["true", "false"]).map(str::to_owned).into_iter().collect(),
        AttrKind::Enum(words) => foreign::word(trimmed, words).map(str::to_owned).into_iter().collect(),
        AttrKind::Type => {
            let near = ElementType::all().filter(|ty| names::distance(ty.name(), trimmed) <= 1);
            foreign::element_type(trimmed).into_iter().chain(near).map(|ty| ty.name().to_owned()).collect()
        }
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes | AttrKind::Float => {
            let number: String = trimmed.chars().take_while(|&c| c.is_ascii_digit() || c == '-').collect();
            number.parse::<i64>().ok().map(|number| number.to_string()).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let read = reading::value(row, text).map(|read| (Evidence::Near, read.value));
    read.into_iter().chain(likely.into_iter().map(|value| (Evidence::File, value))).collect()
}
