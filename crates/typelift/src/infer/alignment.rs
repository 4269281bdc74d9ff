//! Target types of inputs.

use std::fmt;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::base::hash::HashMap;
use crate::model::graph::LayerId;

/// The target types of inputs, by the layers of one graph.
pub(crate) type Alignments = HashMap<LayerId, Alignment>;

/// Inputs of one layer that get another type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alignment {
    /// The positions with their new types.
    pub(crate) inputs: SmallVec<[(usize, ElementType); 2]>,
    /// The reason, as a clause.
    pub(crate) reason: String,
    /// True if OpenVINO also reads the layer without it.
    pub(crate) optional: bool,
}

impl Alignment {
    /// Adds a reason.
    pub(crate) fn because(&mut self, reason: fmt::Arguments) {
        let separator = if self.reason.is_empty() { "" } else { "; " };
        self.reason += &format!("{separator}{reason}");
    }
}
