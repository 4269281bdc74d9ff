//! Replacement of tensors, and what a replacement has done.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::bound::{Bindings, Bound};
use super::losses::Losses;
use super::pattern::Pattern;
use crate::base::hash::HashSet;
use crate::edit::Edit;
use crate::model::graph::{EditError, Graph, Layer, LayerId, Model, Output};
use crate::model::shape::Shape;

/// Search of one graph for the matches of a rule.
pub(super) struct Scan<'a> {
    pub(super) model: &'a Model,
    pub(super) graph: &'a Graph,
    /// The layers, producers first.
    pub(super) order: &'a [LayerId],
    pub(super) rule: usize,
    pub(super) taken: &'a mut HashSet<LayerId>,
    /// True for a layer at which the rule is not applied again.
    pub(super) is_settled: &'a dyn Fn(LayerId) -> bool,
}

impl Scan<'_> {
    pub(super) fn is_open(&self, id: LayerId) -> bool {
        !self.taken.contains(&id) && !(self.is_settled)(id)
    }

    /// Makes a match of layers, which are all replaced.
    pub(super) fn take(&mut self, layers: impl IntoIterator<Item = LayerId>, names: Vec<Bound>) -> Found {
        let names = names.into_iter().map(Some).collect();
        let layers: SmallVec<_> = layers.into_iter().map(|id| (id, 0)).collect();
        self.taken.extend(layers.iter().map(|&(id, _)| id));
        Found { rule: self.rule, bound: Bindings { names, layers, ..Bindings::default() } }
    }
}

/// A match to apply.
pub(super) struct Found {
    pub(super) rule: usize,
    pub(super) bound: Bindings,
}

impl Found {
    /// Empty if the pattern names none.
    pub(super) fn named_outputs(&self, pattern: &Pattern) -> Vec<Output> {
        let named = pattern.side.outputs.iter().filter_map(|&name| self.bound.names[name].as_ref());
        named.flat_map(Bound::tensors).copied().collect()
    }
}

/// Effect of an impossible replacement on the rest of the rewrite: an error, or a skipped match. If matches are
/// skipped, replacements with fewer known dimensions are accepted too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnRefusal {
    Fails,
    Skips,
}

impl OnRefusal {
    pub(super) fn allows(self, was: &Shape, is: &Shape) -> bool {
        match self {
            Self::Fails => is.refines(was),
            Self::Skips => is.rank() == was.rank() && is.is_compatible(was),
        }
    }
}

pub(super) fn is_random(layer: &Layer) -> bool {
    let seed = |name: &str| layer.attribute(name).is_none_or(|seed| seed.trim() == "0");
    layer.operation().is_some_and(|row| !row.is_repeatable()) && seed("global_seed") && seed("op_seed")
}

/// Result of a replacement.
#[derive(Default)]
pub(super) struct Placed {
    pub(super) added: Vec<LayerId>,
    /// Tensors at the root, each with the one that its consumers use instead.
    pub(super) swaps: Vec<(Output, Output)>,
    /// True if the layer at the root was replaced in place; false if other tensors replace its outputs.
    pub(super) root_stays: bool,
    /// True if user code edited the graph and kept the root.
    pub(super) edited: bool,
    pub(super) losses: Losses,
}

pub(super) fn pairs(old: Vec<Output>, new: Vec<Output>) -> Result<Vec<(Output, Output)>, EditError> {
    if old.len() != new.len() {
        let (old, new) = (old.len(), new.len());
        return Err(EditError::Other(format!("{old} outputs cannot be replaced by {new} tensors")));
    }
    Ok(old.into_iter().zip(new).collect())
}

/// Connects the consumers of `old` to `new`. The type must be equal, and the shape at least as well known.
pub(super) fn swap(edit: &mut Edit<'_>, old: Output, new: Output, refusal: OnRefusal) -> Result<(), EditError> {
    let known = |edit: &Edit<'_>, output| edit.output(output).map(|port| (port.element_type(), port.shape().clone()));
    if let (Some((was, shape)), Some((is, new_shape))) = (known(edit, old), known(edit, new))
        && (was != is && was != ElementType::Dynamic || !refusal.allows(&shape, &new_shape))
        && edit.consumers(old).next().is_some()
    {
        let (from_type, to_type) = (format!("{is}{new_shape}"), format!("{was}{shape}"));
        return Err(EditError::Incompatible { from: new, from_type, to: old, to_type });
    }
    edit.replace_uses(old, new)
}

pub(super) fn all_outputs(graph: &Graph, id: LayerId) -> Vec<Output> {
    let count = graph.layer(id).map_or(0, |layer| layer.outputs().len());
    (0..count).map(|port| id.output(port)).collect()
}
