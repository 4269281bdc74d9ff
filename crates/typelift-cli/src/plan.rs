//! What a conversion does to a graph: the Converts that come and go.

use std::fmt::Write as _;

use serde::Serialize;
use typelift::diagnostic::LayerRef;
use typelift::passes::{Action, Change};

use crate::listing::Clean;

/// Every Convert that is there after and was not before, or the other way round.
pub(crate) struct Plan {
    changes: Vec<Change>,
}

impl Plan {
    /// From what passes did one after the other; what one put in and the next took out is no change.
    pub(crate) fn new(changes: Vec<Change>) -> Self {
        ...
    }
}
