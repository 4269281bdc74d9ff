//! Changes that candidates for a fix make.

use typelift_promote::ElementType;

use super::reading::Slip;
use crate::model::graph::{Direction, LayerId};

/// Kind of change that a candidate makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Sets the value of an attribute of `<data>`.
    Value { layer: LayerId, name: String, value: String },
    /// Sets several attributes of a Parameter or constant to what its port declares. `fills` is true if only the
    /// declared size ends where the next constant begins.
    Declared { layer: LayerId, names: Vec<&'static str>, fills: bool },
    /// Swaps the values of two attributes of a layer.
    Exchange { layer: LayerId, names: [String; 2] },
    /// Sets the offset of a constant in the weights. `is_only_one` is true if no other free range has its size.
    Place { layer: LayerId, is_only_one: bool },
    /// Name of an attribute of `<data>`, and whether it is the only one that the text can mean.
    AttributeName { is_only: bool },
    /// Changes the operation of a layer.
    Operation { layer: LayerId, written: String, meant: String },
    /// Changes the operation set of a layer.
    Version { layer: LayerId, value: String },
    /// Corrects the spelling of a number, anywhere in the file.
    Number(Vec<Slip>),
    /// Changes the producer of an input; `from` has the ids in the new edge.
    Source { layer: LayerId, input: usize, from: (u64, u64) },
    /// Changes the output where an edge starts, because the old one does not exist.
    OutputPort { from: LayerId },
    /// Changes the input where an edge ends, because the old one does not exist or has another edge.
    Target { layer: LayerId },
    /// Changes the order of a layer's inputs.
    Order { layer: LayerId },
    /// Swaps the ends of an edge.
    Turned { from: (u64, u64), to: (u64, u64) },
    /// Changes the id of a layer.
    LayerId,
    /// Changes the id of a port.
    PortId { layer: LayerId },
    /// Adds a port.
    NewPort { layer: LayerId, direction: Direction },
    /// Changes the type and dimensions that a port declares.
    Port { written: Option<String>, ty: ElementType, is_type_alone: bool },
    /// Changes an entry of a port map. `is_only` is true if it connects the only two ends without an entry.
    Joint { is_only: bool },
    /// Applies a hypothesis about many findings. It is proved if the text then has as few faults as it `needs`.
    Whole { proof: &'static str, needs: Needs },
    /// Restores or removes a line, so that the elements are nested.
    Nested(&'static str),
    /// Corrects a tag or the name of an attribute. `is_only` is true if no other reading
    /// of the damaged line exists.
    Text { slip: &'static str, is_only: bool },
    /// Any other change, which is never safe.
    Other,
}

/// Remaining faults with which a hypothesis is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Any, as every trial permits them.
    Trial,
    /// No errors.
    NoErrors,
    /// No errors, and no port that differs from its tensor.
    NoDeviations,
    /// No errors, and no such port if OpenVINO accepts the file.
    Explanation,
}

impl Change {
    pub(super) fn is_spelling(&self) -> bool {
        matches!(
            self,
            Self::Value { .. }
                | Self::AttributeName { .. }
                | Self::Operation { .. }
                | Self::Version { .. }
                | Self::Number(_)
                | Self::Text { .. }
        )
    }
}
