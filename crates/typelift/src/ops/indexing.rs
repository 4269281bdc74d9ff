//! Inputs of operations whose values are only used as indices into another tensor.

use crate::model::graph::Layer;

/// Use of an input's values by a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOfValues {
    /// The values become part of the first output, unchanged or converted to another type.
    Passed,
    /// Only the shape is used.
    Unused,
    /// The values are indices into this input, along that axis.
    Places { of: usize, axis: Axis },
    /// The values are used in a computation.
    Computed,
}

/// Position of the axis that indices refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    First,
    Attribute,
    Input(usize),
}

/// Operations with an input of indices: the operation, that input, the indexed input (both from 0), and the axis.
const INDEXING: &[(&str, usize, usize, Axis)] = &[
    ("Gather", 1, 0, Axis::Input(2)),
    ("GatherElements", 1, 0, Axis::Attribute),
    ("ScatterUpdate", 1, 0, Axis::Input(3)),
    ("ScatterElementsUpdate", 1, 0, Axis::Input(3)),
    ("EmbeddingBagOffsets", 1, 0, Axis::First),
    ("EmbeddingBagOffsetsSum", 1, 0, Axis::First),
    ("EmbeddingBagPacked", 1, 0, Axis::First),
    ("EmbeddingBagPackedSum", 1, 0, Axis::First),
    ("EmbeddingSegmentsSum", 1, 0, Axis::First),
];

const PASSING: &[&str] = &["Convert", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Broadcast", "Tile"];

pub(crate) fn use_of_values(layer: &Layer, input: usize) -> UseOfValues {
    // The file may spell the operation in another case than the table.
    let operation = match layer.operation() {
        Some(operation) => operation.name,
        None => layer.ty(),
    };
    let row = INDEXING.iter().find(|&&(name, at, ..)| name == operation && at == input);
    match row {
        Some(&(_, _, of, axis)) => UseOfValues::Places { of, axis },
        None if operation == "ShapeOf" => UseOfValues::Unused,
        None if input == 0 && PASSING.contains(&operation) => UseOfValues::Passed,
        None => UseOfValues::Computed,
    }
}
