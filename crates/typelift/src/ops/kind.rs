//! What a layer is to the graph that it lies in.

use crate::graph::Layer;
pub use crate::graph::kind::{LayerKind, start};

/// What kind of layer this is.
///
/// OpenVINO's reader creates operations by name without regard to case, so that `parameter` is a Parameter. A Result is
/// one only where it is spelled `Result`: nothing leads to a `result`, and reading does not [start](start) at it.
#[must_use]
pub fn kind(layer: &Layer) -> LayerKind {
    match layer.operation() {
        Some(operation) if operation.kind != LayerKind::Result || start(layer).is_some() => operation.kind,
        _ => LayerKind::Other,
    }
}

/// Whether a layer is a Constant.
pub(crate) fn is_constant(layer: &Layer) -> bool {
    kind(layer) == LayerKind::Constant
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What OpenVINO 2026.4 makes of each spelling, in a graph where a Result needs the layer.
    #[test]
    fn case_matters_where_reading_starts_and_for_the_short_name_of_constants() {
        let kinds = |ty: &str, version: &str| {
            let layer = Layer::new(ty, version, "x");
            (kind(&layer), start(&layer))
        };
        use LayerKind::{Assign, Constant, Other, Parameter, Result};
        assert_eq!(kinds("Result", "opset1"), (Result, Some(Result)));
        assert_eq!(kinds("result", "opset1"), (Other, None));
        assert_eq!(kinds("Result", "mine"), (Other, Some(Result)));
        assert_eq!(kinds("Parameter", "opset1"), (Parameter, Some(Parameter)));
        assert_eq!(kinds("PARAMETER", "opset1"), (Parameter, None));
        assert_eq!(kinds("Assign", "opset6"), (Assign, Some(Assign)));
        assert_eq!(kinds("assign", "opset6"), (Assign, None));
        for constant in ["Const", "Constant", "constant", "CONSTANT"] {
            assert_eq!(kinds(constant, "opset1"), (Constant, None));
        }
        assert_eq!(kinds("const", "opset1"), (Other, None));
    }
}
