//! Constants, and the bytes of the weights that they use.

use std::collections::HashSet;
use std::ops::Range;

use super::{GraphCheck, Located, PLACES};
use crate::findings::{Code, Diagnostic, Message, Text, message};
use crate::model::graph::{Layer, Model};
use crate::text::xml;

/// Gaps between constants that are shorter than this are padding, because some writers align constants to their
/// element size.
const PADDING: u64 = 8;

/// Alignment in bytes of the constants that some writers, this program among them, store.
const ALIGNMENT: u64 = 64;

pub(super) struct Constant<'a> {
    pub(super) place: Located<'a>,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Bytes of the weights that no constant uses.
struct Hole<'a> {
    /// The constant before the gap.
    after: Option<&'a Layer>,
    start: u64,
    end: u64,
}

impl Hole<'_> {
    fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    fn is_padding(&self) -> bool {
        self.len() < PADDING || self.len() < ALIGNMENT && self.end.is_multiple_of(ALIGNMENT)
    }
}

impl<'a> GraphCheck<'a> {
    pub(super) fn check_constants(&mut self, model: &Model) {
        let mut constants = std::mem::take(&mut self.constants);
        let Some(length) = model.weights.len() else {
            self.report_missing_weights(&constants);
            return;
        };
        // Constants beyond the end of the weights are errors of inference.
        if constants.iter().any(|constant| constant.end > length) || self.has_misplaced_constants {
            return;
        }
        constants.sort_by_key(|constant| (constant.start, constant.end));
        self.find_unaligned_constants(&constants);
        let means = preprocessing_weights(model);
        let mut holes = Vec::new();
        let mut hole = |before: Option<&'_ Constant<'a>>, end| {
            let start = before.map_or(0, |constant: &Constant| constant.end);
            let start = means.iter().fold(start, |start, mean| if mean.contains(&start) { mean.end } else { start });
            holes.push(Hole { after: before.map(|constant| constant.place.layer), start, end });
        };
        let mut before: Option<&Constant> = None;
        for constant in &constants {
            match before {
                // Constants with exactly the same bytes share them on purpose.
                Some(before) if constant.start < before.end => {
                    // A size that is too large is its own finding.
                    let is_cause = needed(before.place.layer).is_some_and(|size| before.start + size <= constant.start);
                    if (before.start, before.end) != (constant.start, constant.end) && !is_cause {
                        self.report_overlap(before, constant);
                    }
                }
                _ => hole(before, constant.start),
            }
            if before.is_none_or(|before| constant.end >= before.end) {
                before = Some(constant);
            }
        }
        hole(before, length);
        self.find_unreferenced_weights(model, &holes, length);
    }

    /// Reports constants at an offset that is not a multiple of their element size. If each constant begins where
    /// another one ends, as OpenVINO writes them, nothing is reported.
    fn find_unaligned_constants(&mut self, constants: &[Constant]) {
        let ends: HashSet<u64> = constants.iter().map(|constant| constant.end).collect();
        if constants.iter().any(|Constant { place, start, .. }| {
            element_size(place.layer).is_some_and(|size| start % size != 0) && ends.contains(start)
        }) {
            return;
        }
        for Constant { place: Located { layer, reference }, start, .. } in constants {
            let Some(ty) = layer.named_type("element_type") else { continue };
            let Some(size) = element_size(layer).filter(|size| start % size != 0 && !ends.contains(start)) else {
                continue;
            };
            let message = message!("offset {} is not a multiple of {}, the size of {} in bytes"; start, size, ty);
            let lint =
                Diagnostic { layer: Some(reference.clone()), ..Diagnostic::new(Code::UnalignedConstant, message) };
            let lint = lint.at(self.locate(layer, "data", "offset"), "and no constant ends here");
            self.diagnostics.push(lint.help("the offset is wrong, or the .bin was not written by OpenVINO"));
        }
    }

    #[cold]
    fn report_overlap(&mut self, before: &Constant, constant: &Constant) {
        let Located { layer, reference } = &constant.place;
        let message = message!(
            "bytes {} to {} of `{}` overlap those of `{}`, {} to {}";
            constant.start, constant.end, layer.name(), before.place.layer.name(), before.start, before.end
        );
        let lint =
            Diagnostic { layer: Some(reference.clone()), ..Diagnostic::new(Code::OverlappingConstants, message) };
        let lint = lint.at(self.locate(layer, "data", "offset"), "begins inside another constant");
        let lint = lint.at(self.locate(before.place.layer, "data", "offset"), "the other constant");
        self.diagnostics
            .push(lint.help("constants may share all of their bytes or none: an offset, a size or the .bin is wrong"));
    }

    fn find_unreferenced_weights(&mut self, model: &Model, holes: &[Hole], length: u64) {
        let holes: Vec<_> = holes.iter().filter(|hole| !hole.is_padding()).collect();
        let Some(first) = holes.first() else { return };
        let unused: u64 = holes.iter().map(|hole| hole.len()).sum();
        let message = message!("{} of the {} bytes of the weights belong to no constant"; unused, length);
        let lint = Diagnostic::new(Code::UnreferencedWeights, message);
        let lint = match first.after {
            Some(layer) => {
                lint.at(self.locate(layer, "data", "offset"), "the bytes after this constant belong to no constant")
            }
            None => lint.at(
                xml::locate(self.source, model.graph.span.unwrap_or_default(), "net", ""),
                "the weights begin with bytes that belong to no constant",
            ),
        };
        let list: Vec<_> = holes.iter().take(PLACES).map(|hole| format!("{} to {}", hole.start, hole.end)).collect();
        let more = if holes.len() > PLACES { ", and more" } else { "" };
        let lint = lint.note(message!("bytes {}{}"; Text(list.join(", ")), more));
        self.diagnostics.push(lint.help("the .bin belongs to another model, or constants were removed from this one"));
    }

    fn report_missing_weights(&mut self, constants: &[Constant]) {
        let Some(Constant { place: Located { layer, reference }, .. }) = constants.first() else { return };
        let count: Message = match constants.len() {
            1 => "a constant".into(),
            count => message!("{} constants"; count),
        };
        let message = message!("the model has {} and no weights"; count);
        let lint = Diagnostic { layer: Some(reference.clone()), ..Diagnostic::new(Code::MissingWeights, message) };
        let lint = lint.at(self.locate(layer, "data", "offset"), "its bytes are missing");
        self.diagnostics.push(
            lint.help("put the .bin next to the .xml; shapes that are computed from constants are unknown without it"),
        );
    }
}

/// The bytes that the means of `<pre-process>` use, in order.
fn preprocessing_weights(model: &Model) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = model.extras.iter().flat_map(|&span| xml::means(&model.source, span)).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// The number of bytes of one element of a constant, if there is more than one.
/// The bytes that the type and the shape of a constant require.
fn needed(layer: &Layer) -> Option<u64> {
    let (ty, port) = (layer.named_type("element_type")?, layer.outputs().first()?);
    Some(u64::from(ty.bits()).checked_mul(port.shape().element_count()?)?.div_ceil(8))
}

fn element_size(layer: &Layer) -> Option<u64> {
    let ty = layer.named_type("element_type")?;
    Some(u64::from(ty.bits() / 8)).filter(|&size| size > 1)
}
