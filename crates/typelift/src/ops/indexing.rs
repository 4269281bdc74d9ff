//! Which inputs of operations are places in another tensor, and nothing else.

use crate::model::graph::Layer;

/// What a layer does with the values of one of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOfValues {
    /// They are in its first output, each as it is or as another type holds it.
    Passed,
    /// None: it looks at the shape alone.
    Unused,
    /// They are places in this input, along that axis.
    Places { of: usize, axis: Axis },
    /// They are computed with.
    Computed,
}

/// The position of the axis that indices are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    First,
    Attribute,
    Input(usize),
}

/// Operations whose input, counted from 0, has places in another one.
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

/// What a layer does with the values of an input.
pub(crate) fn use_of_values(layer: &Layer, input: usize) -> UseOfValues {
    // A file may spell the operation in other cases than the table.
    let operation = match layer.operation() {
        Some(operation) => operation.name(),
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
