//! Types to which the inputs of layers are converted.

use std::fmt;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::base::hash::HashMap;
use crate::model::graph::LayerId;

pub(crate) type Alignments = HashMap<LayerId, Alignment>;

/// Inputs of one layer that must be converted to another type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alignment {
    pub(crate) inputs: SmallVec<[(usize, ElementType); 2]>,
    /// The reason, as a clause.
    pub(crate) reason: String,
    /// True if OpenVINO also accepts the layer without the conversions.
    pub(crate) optional: bool,
}

impl Alignment {
    pub(crate) fn because(&mut self, reason: fmt::Arguments) {
        let separator = if self.reason.is_empty() { "" } else { "; " };
        self.reason += &format!("{separator}{reason}");
    }
}
