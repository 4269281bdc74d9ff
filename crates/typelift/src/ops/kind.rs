//! What a layer is to the graph that it lies in.

use crate::model::graph::Layer;

/// What a layer is to the graph that it lies in; a column of the operation table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayerKind {
    /// Takes in a tensor from outside.
    Parameter,
    /// Gives a tensor to the outside.
    Result,
    /// Holds a tensor of the weights file.
    Constant,
    /// Converts to the element type that its attribute names.
    Convert,
    /// Converts to the element type of its second input.
    ConvertLike,
    /// Converts two inputs to their common type.
    ConvertPromoteTypes,
    /// Keeps a tensor in a variable.
    Assign,
    /// Gives what was kept in a variable.
    ReadValue,
    /// Runs one of two bodies.
    If,
    /// Runs a body until a condition fails.
    Loop,
    /// Runs a body once for each slice of its inputs.
    TensorIterator,
    /// Any other operation, and all that are not known.
    Other,
}

/// What kind of layer this is.
///
/// OpenVINO's reader creates operations by name without regard to case, so that `parameter` is a Parameter. A Result is
/// one only where it is spelled `Result`: nothing leads to a `result`, and reading does not [start](Layer::start) at it.
#[must_use]
pub fn kind(layer: &Layer) -> LayerKind {
    match layer.operation() {
        Some(operation) if operation.kind != LayerKind::Result || layer.start().is_some() => operation.kind,
        _ => LayerKind::Other,
    }
}

/// Whether a layer is a ConvertPromoteTypes.
pub(crate) fn is_promotion(layer: &Layer) -> bool {
    kind(layer) == LayerKind::ConvertPromoteTypes
}

/// Whether a layer is what the model takes, gives or keeps, and so stays where nothing uses it.
pub(crate) fn is_own(layer: &Layer) -> bool {
    layer.start().is_some() || matches!(kind(layer), LayerKind::Parameter | LayerKind::Result | LayerKind::Assign)
}

/// Whether a layer is a Constant.
pub(crate) fn is_constant(layer: &Layer) -> bool {
    kind(layer) == LayerKind::Constant
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::graph::Start;

    /// What OpenVINO 2026.4 makes of each spelling, in a graph where a Result needs the layer.
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
