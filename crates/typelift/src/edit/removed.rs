//! Layers that an edit removed, and those that it kept.

use std::fmt;

use crate::model::graph::{Graph, Layer, LayerId};
use crate::ops::{LayerKind, kind};

/// Result of [`Edit::remove_unused`](super::Edit::remove_unused).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The layers that were removed.
    pub layers: Vec<LayerId>,
    /// The layers that were to be removed and stay.
    pub kept: Vec<KeptLayer>,
}

/// A layer that was to be removed and stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptLayer {
    /// The layer.
    pub layer: LayerId,
    /// Name of the layer.
    pub name: String,
    /// Reason why it stays.
    pub reason: KeptReason,
}

/// Reason why a layer stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptReason {
    /// Input of the model.
    Input,
    /// Output of the model.
    Output,
    /// Write of a variable.
    Assign,
    /// Names of the layers that use it.
    UsedBy(Vec<String>),
}

impl KeptLayer {
    /// `None` if it was removed.
    pub(super) fn of(graph: &Graph, id: LayerId) -> Option<Self> {
        let layer = graph.layer(id)?;
        let reason = match kind(layer) {
            LayerKind::Parameter => KeptReason::Input,
            LayerKind::Result => KeptReason::Output,
            LayerKind::Assign => KeptReason::Assign,
            _ => KeptReason::UsedBy(
                graph.users(id).filter_map(|id| graph.layer(id)).map(Layer::name).map(Into::into).collect(),
            ),
        };
        Some(Self { layer: id, name: layer.name().to_owned(), reason })
    }
}

impl fmt::Display for KeptLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is kept: {}", self.name, self.reason)
    }
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("it is an input of the model"),
            Self::Output => f.write_str("it is an output of the model"),
            Self::Assign => f.write_str("it writes a variable"),
            Self::UsedBy(users) => match &users[..] {
                [only] => write!(f, "`{only}` uses it"),
                [first, second] => write!(f, "`{first}` and `{second}` use it"),
                [first, rest @ ..] => write!(f, "`{first}` and {} others use it", rest.len()),
                [] => f.write_str("it is needed"),
            },
        }
    }
}
