//! Models whose weights hold what their constants use, and nothing else.

use std::io;

use compact_str::format_compact;
use rustc_hash::FxHashMap;

use super::{Graph, Layer, Model};

/// Where constants have their bytes, and how many.
type Range = (u64, u64);

impl Model {
    /// The model with weights that hold what its constants use, equal bytes once.
    ///
    /// # Errors
    /// Bytes of a constant are not there.
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
        // A constant without bytes is anywhere within the weights, so at their start.
        model.graph.move_constants(&|range| match range {
            (_, 0) => Some(0),
            range => known.get(&range).and_then(|&at| starts.get(at)).copied(),
        });
        Ok(model)
    }

    /// Whether constants of the file are gone, so that nothing may use their bytes any more.
    pub(crate) fn has_lost_constants(&self) -> bool {
        self.walk().any(|(_, graph)| {
            let mut removed = graph.removed().iter().map(|span| span.text(&self.source));
            removed.any(|text| text.starts_with("<layer") && text.contains("offset="))
        })
    }
}

impl Graph {
    /// Shows `look` where the constants of the graph and of its bodies have their bytes.
    fn each_range(&self, look: &mut impl FnMut(Range)) {
        for layer in self.layers() {
            range_of(layer).into_iter().filter(|range| range.1 > 0).for_each(&mut *look);
            layer.bodies.iter().for_each(|body| body.graph.each_range(look));
        }
    }

    /// Points constants at other bytes.
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

/// Where a layer has its bytes, if it is a constant.
fn range_of(layer: &Layer) -> Option<Range> {
    let is_constant = ["const", "constant"].iter().any(|name| layer.ty().eq_ignore_ascii_case(name));
    Some((layer.byte_count("offset").filter(|_| is_constant)?, layer.byte_count("size")?))
}
