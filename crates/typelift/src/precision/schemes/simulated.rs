//! Stored floats that FakeQuantize or FakeConvert rounds to a few values.

use std::fmt;

use typelift_promote::ElementType;

use super::{Operand, Sharing, dims_of, is_convert, name, source};
use crate::model::graph::{Graph, Layer};
use crate::model::weights::Weights;
use crate::ops;

/// Quantization that a layer simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Simulated {
    /// FakeQuantize rounds values to this many levels. Its ranges are shared by a set of values.
    Levels(u32, Sharing),
    /// FakeConvert rounds values to this type, with scales that a set of values shares.
    Type(ElementType, Sharing),
}

/// Formats the quantization: `FakeQuantize to 255 levels, per channel`.
impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Levels(levels, sharing) => write!(f, "FakeQuantize to {levels} levels, {sharing}"),
            Self::Type(ty, sharing) => write!(f, "FakeConvert to {ty}, {sharing}"),
        }
    }
}

/// Finds the constants of a graph before a FakeQuantize or FakeConvert, in the order of the file. A Convert may lie between.
/// Types and shapes must be inferred.
pub(crate) fn find_simulated<'g>(graph: &'g Graph, weights: &Weights) -> impl Iterator<Item = (&'g Layer, Simulated)> {
    graph.layers().filter_map(|layer| recognize(graph, weights, layer))
}

fn recognize<'g>(graph: &'g Graph, weights: &Weights, layer: &Layer) -> Option<(&'g Layer, Simulated)> {
    let operand = match name(layer) {
        "FakeQuantize" => 2,
        "FakeConvert" => 1,
        _ => return None,
    };
    let mut constant = source(graph, layer.id(), 0)?;
    if is_convert(constant) {
        constant = source(graph, constant.id(), 0)?;
    }
    let sharing = Operand::of(graph, weights, layer.id(), operand)?.sharing(&dims_of(constant)?);
    let quantization = match layer.attribute("levels") {
        Some(levels) => Simulated::Levels(levels.trim().parse().ok()?, sharing),
        None => Simulated::Type(layer.named_type("destination_type")?, sharing),
    };
    ops::is_constant(constant).then_some((constant, quantization))
}
