//! Check that the weights belong to the model. It replaces many findings about constants by one.

use typelift_promote::ElementType;

use super::Walk;
use super::recover::declared;
use super::value::Evaluator;
use crate::base::file::other_format;
use crate::findings::{Code, Diagnostic, LayerRef, Text, message};
use crate::model::graph::{Layer, Model};
use crate::model::weights::Weights;
use crate::ops::is_constant;
use crate::ops::values::conversion::Stored;
use crate::text::xml;

/// The first bytes of every Git LFS pointer.
const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// The first bytes of a NumPy file, before its version and the length of its header.
const NUMPY: &[u8] = b"\x93NUMPY";

fn is_page(head: &[u8]) -> bool {
    let head = head.trim_ascii_start().to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html", b"<?xml", b"<error"].iter().any(|start| head.starts_with(start))
}

#[derive(Default)]
struct ConstantStatistics {
    constants: usize,
    /// Number of constants that extend beyond the weights.
    beyond: usize,
    /// The finding for the first of them, or of all if the weights are a pointer.
    first: Option<Diagnostic>,
    /// End of the last constant.
    needed: u64,
}

fn place(constant: &Layer) -> Option<(u64, u64)> {
    let (offset, size) = constant.byte_count("offset").zip(constant.byte_count("size"))?;
    Some((offset, offset.saturating_add(size)))
}

/// Returns the number of bytes of weights that the constants of a model need.
#[must_use]
pub fn needed_weights(model: &Model) -> u64 {
    let layers = model.walk().flat_map(|(_, graph)| graph.unordered());
    layers.filter(|layer| is_constant(layer)).filter_map(place).map(|(_, end)| end).max().unwrap_or_default()
}

/// True if the additional bytes of weights are those of a text conversion: to lines that end with CR and LF, or to UTF-8.
fn converted(weights: &Weights, extra: u64) -> bool {
    let bytes = weights.len().and_then(|length| weights.read(0, usize::try_from(length).ok()?)).unwrap_or_default();
    let count = |added: usize| added as u64 == extra;
    let lines = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    count(lines) || std::str::from_utf8(&bytes).is_ok_and(|text| count(text.len() - text.chars().count()))
}

impl Walk<'_> {
    /// Reports weights that cannot belong to the model. The values of constants are then unknown.
    pub(super) fn check_weights(&mut self, model: &Model) {
        let Some(length) = model.weights.len() else { return };
        let needed = needed_weights(model);
        let head =
            usize::try_from(length.min(64)).ok().and_then(|size| model.weights.read(0, size)).unwrap_or_default();
        let is_pointer = head.starts_with(LFS_POINTER);
        if needed <= length && !is_pointer {
            let extra = length - needed;
            if extra > 0 && (self.find_shift(model, extra) || self.find_foreign(model, extra)) {
                self.forget_weights();
            }
            return;
        }
        let tally = self.tally(model, length, is_pointer);
        if tally.beyond < 2 && !is_pointer && !(tally.beyond == 1 && length == 0) {
            return;
        }
        let ConstantStatistics { constants, beyond, needed, .. } = tally;
        let other = other_format(&head);
        let (message, help) = match length {
            _ if is_pointer => (
                message!("the .bin is a Git LFS pointer of {} bytes, not the weights"; length),
                "run `git lfs pull` in the repository that the model comes from to fetch the .bin",
            ),
            0 => (
                message!("the .bin is empty (0 bytes), and the constants need {} bytes of it"; needed),
                "get a fresh copy of the .bin that was written with this .xml",
            ),
            _ if is_page(&head) => (
                message!("the .bin is a web page of {} bytes, not the weights"; length),
                "download the .bin again: the server sent an error page",
            ),
            _ if other.is_some() => (
                message!("the .bin has {} bytes and is {}, not the weights"; length, other.unwrap_or_default().0),
                "unpack it, or put the .bin that was written with this .xml next to it",
            ),
            _ => (
                message!(
                    "the .bin has {} bytes, and {} of {} constants are beyond its end ({} bytes are needed)";
                    length, beyond, constants, needed
                ),
                "the .bin belongs to another model or is incomplete: put the one that was written with this .xml next to it",
            ),
        };
        if let Some(first) = tally.first {
            self.scope.diagnostics.push(Diagnostic { message, layer: None, ..first }.help(help));
        }
        self.forget_weights();
    }

    fn forget_weights(&mut self) {
        self.evaluator = Evaluator::new(&Weights::none());
        self.trusts_ports = true;
    }

    /// Reports weights of another model: bytes after the last constant, and shapes and axes that are no such numbers.
    /// Returns true if it found them.
    fn find_foreign(&mut self, model: &Model, extra: u64) -> bool {
        /// The most values of a constant that is a shape or an axis, and the least magnitude that is neither.
        const MOST_VALUES: u64 = 16;
        const LEAST: u128 = 1 << 40;
        let (mut integers, mut absurd, mut first) = (0, 0, None);
        for (at, graph) in model.walk() {
            for layer in graph.layers().filter(|layer| is_constant(layer)) {
                let stored = Stored::of(layer).filter(|it| it.element_type == ElementType::I64);
                let Some(stored) = stored.filter(|it| it.count <= MOST_VALUES) else { continue };
                integers += 1;
                let found = stored.find_integer(&model.weights, |value| {
                    value.unsigned_abs() >= LEAST && value != i64::MAX.into() && value != i64::MIN.into()
                });
                if let Some(value) = found {
                    absurd += 1;
                    first.get_or_insert((at.clone(), layer, value));
                }
            }
        }
        let Some((at, layer, value)) = first.filter(|_| absurd > 1 && 2 * absurd >= integers) else { return false };
        let span = xml::locate(&self.source, layer.span().unwrap_or_default(), "data", "offset");
        let message = message!(
            "the .bin belongs to another model: {} of {} short integer constants hold numbers such as {}";
            absurd, integers, Text(value)
        );
        let found = Diagnostic::new(Code::WrongWeights, message);
        let found = found.at(span, message!("layer {} `{}`"; layer.id(), layer.name()));
        let found = found.note(message!("the last {} bytes of the .bin belong to no constant"; extra));
        let help = match converted(&model.weights, extra) {
            true => "a program has changed the .bin as if it were text: copy it again in binary mode",
            false => "put the .bin that was written with this .xml next to it",
        };
        self.scope.diagnostics.push(Diagnostic { layer: Some(LayerRef::of(&at, layer)), ..found }.help(help));
        true
    }

    /// Reports bytes that were inserted into the weights: a NumPy header at the start, or additional bytes of one
    /// constant. Returns true if it found some.
    fn find_shift(&mut self, model: &Model, extra: u64) -> bool {
        let mut constants: Vec<_> = model
            .walk()
            .flat_map(|(at, graph)| graph.unordered().map(move |layer| (at.clone(), layer)))
            .filter(|(_, layer)| is_constant(layer))
            .filter_map(|(at, layer)| Some((place(layer)?, at, layer)))
            .collect();
        constants.sort_by_key(|((start, end), ..)| (*start, *end));
        constants.dedup_by_key(|(place, ..)| *place);
        let inside = (1..constants.len()).filter(|&at| constants[at].0.0 < constants[at - 1].0.1);
        let inside: Vec<usize> = inside.map(|at| at - 1).collect();
        let (at, message, help) = if self.numpy_header(model) == Some(extra) {
            let message =
                message!("the .bin begins with the header of a NumPy file, {} bytes before the first constant"; extra);
            (
                0,
                message,
                message!("remove the first {} bytes of the .bin: write it with `tofile` instead of `np.save`"; extra),
            )
        } else {
            let [at] = inside[..] else { return false };
            let (one, next) = (&constants[at], &constants[at + 1]);
            if one.0.1 - next.0.0 != extra {
                return false;
            }
            let name = one.2.name();
            // A constant whose port declares another type has a different mistake.
            let says_other = one.2.outputs().first().is_some_and(|port| {
                let declared = declared(&self.source, port).element_type;
                one.2.attribute("element_type") != Some(declared.name())
            });
            if says_other {
                return false;
            }
            let message = message!(
                "the last {} bytes of `{}` overlap the next constant, and the last {} bytes of the .bin belong to no constant";
                extra, name, extra
            );
            (
                at,
                message,
                message!("add {} to the offset of each constant after `{}`, which has become larger"; extra, name),
            )
        };
        let Some((_, graph, layer)) = constants.get(at) else { return false };
        let span = xml::locate(&self.source, layer.span().unwrap_or_default(), "data", "offset");
        let found =
            Diagnostic::new(Code::WrongWeights, message).at(span, message!("layer {} `{}`"; layer.id(), layer.name()));
        self.scope.diagnostics.push(Diagnostic { layer: Some(LayerRef::of(graph, layer)), ..found }.help(help));
        true
    }

    /// The length of the NumPy header at the start of the weights, if there is one.
    fn numpy_header(&self, model: &Model) -> Option<u64> {
        let head = model.weights.read(0, NUMPY.len() + 4)?;
        let rest = head.strip_prefix(NUMPY)?;
        Some(NUMPY.len() as u64 + 4 + u64::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?])))
    }

    fn tally(&self, model: &Model, length: u64, is_pointer: bool) -> ConstantStatistics {
        let mut tally = ConstantStatistics::default();
        for (at, graph) in model.walk() {
            for layer in graph.layers().filter(|layer| is_constant(layer)) {
                let Some((offset, end)) = place(layer) else { continue };
                tally.constants += 1;
                tally.needed = tally.needed.max(end);
                tally.beyond += usize::from(end > length);
                if tally.first.is_none() && (end > length || is_pointer) {
                    let span = xml::locate(&self.source, layer.span().unwrap_or_default(), "data", "offset");
                    let label = message!("bytes {} to {} of layer {} `{}`"; offset, end, layer.id(), layer.name());
                    let found = Diagnostic::new(Code::WrongWeights, "").at(span, label);
                    tally.first = Some(Diagnostic { layer: Some(LayerRef::of(&at, layer)), ..found });
                }
            }
        }
        tally
    }
}
