//! Built-in rules that are no patterns.

use super::bound::Bound;
use super::build::Added;
use super::swap::{Found, Placed, Scan, all_outputs, pairs};
use super::{duplicates, known, pieces};
use crate::edit::Edit;
use crate::model::graph::EditError;

/// Built-in rule, in the order of application.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    /// A layer with known values becomes constants.
    Known,
    /// An If with a known condition becomes its executed branch.
    Branch,
    /// Slices that cover a tensor become one split.
    Split,
    /// The first of several equal layers replaces the others.
    Same,
}

impl Builtin {
    pub(super) const ALL: [Self; 4] = [Self::Known, Self::Branch, Self::Split, Self::Same];

    pub(super) fn find(self, scan: &mut Scan<'_>) -> Vec<Found> {
        match self {
            Self::Known => known::layers(scan),
            Self::Branch => known::choices(scan),
            Self::Split => pieces::groups(scan),
            Self::Same => duplicates::layers(scan),
        }
    }

    pub(super) fn replace(
        self,
        edit: &mut Edit<'_>,
        found: &Found,
        constants: &mut Added,
    ) -> Result<Placed, EditError> {
        let (bound, root) = (&found.bound, found.bound.layers[0].0);
        match self {
            Self::Known => known::replace(edit, bound, root, constants),
            Self::Branch => known::choose(edit, bound, root),
            Self::Split => pieces::split(edit, bound, constants),
            Self::Same => {
                // Another application may have removed that layer; then the next sweep finds one.
                let same = bound.names[0].as_ref().and_then(Bound::tensor).map(|tensor| tensor.layer);
                let Some(same) = same.filter(|&same| edit.layer(same).is_some()) else {
                    return Ok(Placed { root_stays: true, ..Placed::default() });
                };
                edit.merge_marks(root, same)?;
                let outputs = all_outputs(edit, root);
                let new = outputs.iter().map(|output| same.output(output.port)).collect();
                Ok(Placed { swaps: pairs(outputs, new)?, ..Placed::default() })
            }
        }
    }
}
