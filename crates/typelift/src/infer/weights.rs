//! Check that the weights belong to the model: one finding if they do not, in place of one for each constant.

use super::Walk;
use super::value::Evaluator;
use crate::base::file::other_format;
use crate::findings::{Code, Diagnostic, LayerRef};
use crate::model::graph::{Layer, Model};
use crate::model::weights::Weights;
use crate::ops::is_constant;
use crate::text::xml;

/// The first bytes of every Git LFS pointer.
const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// True if a file begins as a web page or a server's error message does.
fn is_page(head: &[u8]) -> bool {
    let head = head.trim_ascii_start().to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html", b"<?xml", b"<error"].iter().any(|start| head.starts_with(start))
}

/// Counts of a model's constants, by the position of their bytes.
#[derive(Default)]
struct Tally {
    constants: usize,
    /// The number that extend beyond the weights.
    beyond: usize,
    /// The first of them.
    first: Option<Diagnostic>,
    /// The end of the last one.
    needed: u64,
}

/// Returns start and end of a constant's bytes.
fn place(constant: &Layer) -> Option<(u64, u64)> {
    let (offset, size) = constant.byte_count("offset").zip(constant.byte_count("size"))?;
    Some((offset, offset.saturating_add(size)))
}

/// True if a constant extends beyond the end of the weights, which is rare.
fn reach_beyond(model: &Model, length: u64) -> bool {
    let layers = model.walk().flat_map(|(_, graph)| graph.unordered());
    layers.filter(|layer| is_constant(layer)).filter_map(place).any(|(_, end)| end > length)
}

impl Walk<'_> {
    /// Reports weights that cannot belong to the model. Values of constants are not used then.
    pub(super) fn check_weights(&mut self, model: &Model) {
        let Some(length) = model.weights.len() else { return };
        if !reach_beyond(model, length) {
            return;
        }
        let head =
            usize::try_from(length.min(64)).ok().and_then(|size| model.weights.read(0, size)).unwrap_or_default();
        let is_pointer = head.starts_with(LFS_POINTER);
        let tally = self.tally(model, length);
        if tally.beyond < 2 && !(tally.beyond == 1 && (is_pointer || length == 0)) {
            return;
        }
        let Tally { constants, beyond, needed, .. } = tally;
        let other = other_format(&head);
        let (message, help) = match length {
            _ if is_pointer => (
                format!("the .bin is a Git LFS pointer of {length} bytes, not the weights"),
                "run `git lfs pull` in the repository that the model comes from to fetch the .bin",
            ),
            0 => (
                format!("the .bin is empty (0 bytes), and the constants need {needed} bytes of it"),
                "get a fresh copy of the .bin that was written with this .xml",
            ),
            _ if is_page(&head) => (
                format!("the .bin is a web page of {length} bytes, not the weights"),
                "download the .bin again: the server sent an error page",
            ),
            _ if other.is_some() => (
                format!("the .bin has {length} bytes and is {}, not the weights", other.unwrap_or_default().0),
                "unpack it, or put the .bin that was written with this .xml next to it",
            ),
            _ => (
                format!(
                    "the .bin has {length} bytes, and {beyond} of {constants} constants lie beyond its end ({needed} bytes)"
                ),
                "the .bin is another model's, or was cut off: put the one that was written with this .xml next to it",
            ),
        };
        if let Some(first) = tally.first {
            self.scope.diagnostics.push(Diagnostic { message, layer: None, ..first }.help(help));
        }
        self.evaluator = Evaluator::new(&Weights::none());
        self.trusts_ports = true;
    }

    fn tally(&self, model: &Model, length: u64) -> Tally {
        let mut tally = Tally::default();
        for (at, graph) in model.walk() {
            for layer in graph.layers().filter(|layer| is_constant(layer)) {
                let Some((offset, end)) = place(layer) else { continue };
                tally.constants += 1;
                tally.needed = tally.needed.max(end);
                tally.beyond += usize::from(end > length);
                if end > length && tally.first.is_none() {
                    let span = xml::locate(&self.source, layer.span().unwrap_or_default(), "data", "offset");
                    let label = format!("bytes {offset} to {end} of layer {} `{}`", layer.id(), layer.name());
                    let found = Diagnostic::new(Code::WrongWeights, "").at(span, label);
                    tally.first = Some(Diagnostic { layer: Some(LayerRef::of(&at, layer)), ..found });
                }
            }
        }
        tally
    }
}
