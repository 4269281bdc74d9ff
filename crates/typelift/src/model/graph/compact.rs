//! Removal of bytes from the weights that no constant uses.

use std::io;

use compact_str::format_compact;

use super::{Graph, Layer, Model};
use crate::base::hash::{HashMap, HashSet};
use crate::base::number;
use crate::model::weights::{Ranges, Weights};

/// Offset and length of a constant's bytes.
type StoredSpan = (u64, u64);

/// Number of bytes that compacting must save to be worth moving constants.
const WORTH_BYTES: u64 = 64 << 10;
/// The same minimum as a fraction of the weights: 1/100.
const WORTH_PART: u64 = 100;

impl Model {
    /// The model with weights that hold the bytes that its constants use, equal bytes once.
    ///
    /// # Errors
    /// Bytes of a constant that are missing.
    pub(crate) fn compacted(&self) -> io::Result<Self> {
        let ranges = self.weights.ranges(self.ranges())?;
        Ok(self.laid_out(&ranges, self.weights.compacted(&ranges)))
    }

    /// Constants of the file keep their offsets, unless [compacting](Self::compacted) saves at least 64 KiB or 1 % of
    /// the weights.
    ///
    /// # Errors
    /// Bytes of a constant that are missing.
    pub(crate) fn rearranged(&self) -> io::Result<Self> {
        let ranges = self.weights.ranges(self.ranges())?;
        let (kept, compact) = (self.weights.kept(&ranges, &self.lost_ranges()), self.weights.compacted(&ranges));
        let [length, least] = [&kept, &compact].map(|(weights, _)| weights.len().unwrap_or(0));
        let saved = length.saturating_sub(least);
        let is_worth_it = saved >= WORTH_BYTES || saved > 0 && saved.saturating_mul(WORTH_PART) >= length;
        Ok(self.laid_out(&ranges, if is_worth_it { compact } else { kept }))
    }

    fn laid_out(&self, ranges: &Ranges, (weights, starts): (Weights, Vec<u64>)) -> Self {
        let places: HashMap<_, _> = ranges.all().iter().copied().zip(starts).collect();
        let length = weights.len().unwrap_or(0);
        let mut model = Self { weights, ..self.clone() };
        // A constant without bytes may have any offset within the weights.
        model.graph.move_constants(&|range| match range {
            (offset, 0) => (offset > length).then_some(0),
            range => places.get(&range).copied(),
        });
        model
    }

    fn ranges(&self) -> Vec<StoredSpan> {
        let (mut ranges, mut known) = (Vec::new(), HashSet::default());
        self.graph.each_range(&mut |range| {
            if known.insert(range) {
                ranges.push(range);
            }
        });
        ranges
    }

    /// True if constants of the file were removed from the graph, so that some of the weights may be unused.
    pub(crate) fn has_lost_constants(&self) -> bool {
        self.walk().any(|(_, graph)| {
            let mut removed = graph.removed().iter().map(|span| span.text(&self.source));
            removed.any(|text| text.starts_with("<layer") && text.contains("offset="))
        })
    }

    fn lost_ranges(&self) -> Vec<StoredSpan> {
        let mut lost = Vec::new();
        for (_, graph) in self.walk() {
            let edited = graph.unordered().filter(|layer| layer.edited).filter_map(|layer| layer.span);
            for span in edited.chain(graph.removed().iter().copied()) {
                let elements = span.text(&self.source).split('<').filter(|element| element.starts_with("data"));
                lost.extend(elements.filter_map(|data| Some((written(data, "offset")?, written(data, "size")?))));
            }
        }
        lost.retain(|&(offset, size): &StoredSpan| size > 0 && offset.checked_add(size).is_some());
        lost
    }
}

fn written(element: &str, attribute: &str) -> Option<u64> {
    let (_, rest) = element.split_once(&format!(" {attribute}="))?;
    let quote = rest.chars().next()?;
    number::bytes(rest[quote.len_utf8()..].split(quote).next()?)
}

impl Graph {
    /// Calls `look` with the byte range of each constant of the graph and its bodies.
    fn each_range(&self, look: &mut impl FnMut(StoredSpan)) {
        for layer in self.layers() {
            range_of(layer).into_iter().filter(|range| range.1 > 0).for_each(&mut *look);
            layer.bodies.iter().for_each(|body| body.graph.each_range(look));
        }
    }

    fn move_constants(&mut self, place: &impl Fn(StoredSpan) -> Option<u64>) {
        for layer in self.storage.node_weights_mut() {
            let moved = range_of(layer).and_then(|range| place(range).filter(|&start| start != range.0));
            if let Some(start) = moved
                && let Some(offset) = layer.attributes.to_mut().iter_mut().find(|it| it.name == "offset")
            {
                offset.value = format_compact!("{start}");
                layer.edited = true;
            }
            layer.bodies.iter_mut().for_each(|body| body.graph.move_constants(place));
        }
    }
}

/// The byte range of a layer, if it is a constant.
fn range_of(layer: &Layer) -> Option<StoredSpan> {
    let is_constant = ["const", "constant"].iter().any(|name| layer.ty().eq_ignore_ascii_case(name));
    Some((layer.byte_count("offset").filter(|_| is_constant)?, layer.byte_count("size")?))
}
