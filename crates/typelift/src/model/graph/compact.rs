//! Models whose weights contain only the bytes that their constants use.

use std::io;

use compact_str::format_compact;
use rustc_hash::FxHashMap;

use super::{Graph, Layer, Model};

/// Offset and length of a constant's bytes.
type Range = (u64, u64);

impl Model {
    /// Returns the model with compact weights: the bytes that its constants use, and equal bytes once.
    ///
    /// # Errors
    /// Bytes of a constant that are missing.
    pub(crate) fn compacted(&self) -> io::Result<Self> {
        let mut ranges = Vec::new();
        let mut known = FxHashMap::default();
        self.graph.each_range(&mut |range| {
            known.entry(range).or_insert_with(|| {
                ranges.push(range);
                ranges.len() - 1
            });
        });
        let (weights, starts) = self.weights.compacted(&ranges)?;
        let mut model = Self { weights, ..self.clone() };
        // A constant without bytes may have any offset within the weights, so it gets offset 0.
        model.graph.move_constants(&|range| match range {
            (_, 0) => Some(0),
            range => known.get(&range).and_then(|&at| starts.get(at)).copied(),
        });
        Ok(model)
    }

    /// True if constants of the file were removed, so that no other constant may use their bytes.
    pub(crate) fn has_lost_constants(&self) -> bool {
        self.walk().any(|(_, graph)| {
            let mut removed = graph.removed().iter().map(|span| span.text(&self.source));
            removed.any(|text| text.starts_with("<layer") && text.contains("offset="))
        })
    }
}

impl Graph {
    /// Calls `look` with the bytes of each constant of the graph and its bodies.
    fn each_range(&self, look: &mut impl FnMut(Range)) {
        for layer in self.layers() {
            range_of(layer).into_iter().filter(|range| range.1 > 0).for_each(&mut *look);
            layer.bodies.iter().for_each(|body| body.graph.each_range(look));
        }
    }

    /// Changes the offsets of constants.
    fn move_constants(&mut self, place: &impl Fn(Range) -> Option<u64>) {
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

/// Returns the bytes of a layer, if it is a constant.
fn range_of(layer: &Layer) -> Option<Range> {
    let is_constant = ["const", "constant"].iter().any(|name| layer.ty().eq_ignore_ascii_case(name));
    Some((layer.byte_count("offset").filter(|_| is_constant)?, layer.byte_count("size")?))
}
