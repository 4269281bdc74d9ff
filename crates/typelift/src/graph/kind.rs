//! What a layer is to the graph that it lies in, and at which layers reading starts.

use super::Layer;

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

/// As what OpenVINO's reader looks for a layer: a Parameter, a Result or an Assign; `None` where it creates the layer only if
/// it leads to one of these.
///
/// The reader creates every Parameter, and then whatever leads to a Result or an Assign; it drops the rest of the file. It
/// finds these by the text of `type`, before it knows of operations: here case matters, and the operation set does not.
#[must_use]
pub fn start(layer: &Layer) -> Option<LayerKind> {
    match layer.ty() {
        "Parameter" => Some(LayerKind::Parameter),
        "Result" => Some(LayerKind::Result),
        "Assign" => Some(LayerKind::Assign),
        _ => None,
    }
}
