//! Role of a layer in its graph.

use crate::model::graph::Layer;

/// Role of a layer in its graph; a column of the operation table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayerKind {
    /// Receives a tensor from outside.
    Parameter,
    /// Returns a tensor to the outside.
    Result,
    /// Holds a tensor of the weights file.
    Constant,
    /// Converts to the element type in its attribute.
    Convert,
    /// Converts to the element type of its second input.
    ConvertLike,
    /// Converts two inputs to their common type.
    ConvertPromoteTypes,
    /// Stores a tensor in a variable.
    Assign,
    /// Returns the tensor that a variable stores.
    ReadValue,
    /// Runs one of two bodies.
    If,
    /// Runs a body until a condition fails.
    Loop,
    /// Runs a body once for each slice of its inputs.
    TensorIterator,
    /// Any other operation, including unknown ones.
    Other,
}

/// Returns the kind of a layer.
///
/// OpenVINO's reader ignores case in operation names, so `parameter` is a Parameter. Only `Result` is a Result,
/// because the reader does not [start](Layer::start) at a layer of type `result`.
#[must_use]
pub fn kind(layer: &Layer) -> LayerKind {
    match layer.operation() {
        Some(operation) if operation.kind != LayerKind::Result || layer.start().is_some() => operation.kind,
        _ => LayerKind::Other,
    }
}

pub(crate) fn is_promotion(layer: &Layer) -> bool {
    kind(layer) == LayerKind::ConvertPromoteTypes
}

/// True for an input, output or variable of the model. It is kept even if it is unused.
pub fn is_own(layer: &Layer) -> bool {
    layer.start().is_some() || matches!(kind(layer), LayerKind::Parameter | LayerKind::Result | LayerKind::Assign)
}

pub(crate) fn is_constant(layer: &Layer) -> bool {
    kind(layer) == LayerKind::Constant
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::graph::Start;

    /// Checks how OpenVINO 2026.4 treats each spelling, in a graph where a Result depends on the layer.
    #[test]
    fn case_matters_where_reading_starts_and_for_the_short_name_of_constants() {
        let kinds = |ty: &str, version: &str| {
            let layer = Layer::new(ty, version, "x");
            (kind(&layer), layer.start())
        };
        use LayerKind::{Assign, Constant, Other, Parameter, Result};
        assert_eq!(kinds("Result", "opset1"), (Result, Some(Start::Result)));
        assert_eq!(kinds("result", "opset1"), (Other, None));
        assert_eq!(kinds("Result", "mine"), (Other, Some(Start::Result)));
        assert_eq!(kinds("Parameter", "opset1"), (Parameter, Some(Start::Parameter)));
        assert_eq!(kinds("PARAMETER", "opset1"), (Parameter, None));
        assert_eq!(kinds("Assign", "opset6"), (Assign, Some(Start::Assign)));
        assert_eq!(kinds("assign", "opset6"), (Assign, None));
        for constant in ["Const", "Constant", "constant", "CONSTANT"] {
            assert_eq!(kinds(constant, "opset1"), (Constant, None));
        }
        assert_eq!(kinds("const", "opset1"), (Other, None));
    }
}
