//! What inference knows of the graph that it goes through, and of those around it.

use std::collections::HashSet;

use rustc_hash::FxHashSet;

use super::value::Values;
use crate::findings::Diagnostic;
use crate::model::graph::{Body, Graph, Layer, LayerId, Place};
use crate::ops::Given;

/// A graph that inference goes through: the model's own, or a body. Pushed when it begins and popped when it ends, so that
/// nothing of a body is left behind in the graph around it.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) place: Place,
    /// Whether it is given something from outside.
    pub(super) is_given: bool,
    /// Whether what was found in it hangs on runs before: on variables, or on how often a Loop in it runs.
    pub(super) has_memory: bool,
    /// What its Parameters are given.
    pub(super) given: Given,
    /// Where a part of a typed graph is inferred anew: the layers that are to be.
    pub(super) stale: Option<FxHashSet<LayerId>>,
    /// The values found so far.
    pub(super) values: Values,
    /// What was found in it, its bodies left out.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The layers that OpenVINO's reader does not drop, once somebody asked.
    pub(super) read: Option<FxHashSet<LayerId>>,
    /// The variables that have a ReadValue.
    pub(super) readable: HashSet<String>,
    /// The layers that have an error or depend on one that has.
    pub(super) doubtful: FxHashSet<LayerId>,
}

impl Scope {
    /// The scope of a body inside of this one, with what its Parameters are given, or by itself.
    pub(super) fn of_body(&self, owner: &Layer, at: usize, body: &Body, given: Option<&Given>) -> Self {
        let all = |graph: &Graph| graph.unordered().map(Layer::id).collect();
        Self {
            place: self.place.inside(owner, at, body.name()),
            is_given: given.is_some(),
            given: given.cloned().unwrap_or_default(),
            stale: self.stale.as_ref().map(|_| all(&body.graph)),
            ..Self::default()
        }
    }
}

/// The cached results of a body.
#[derive(Default)]
pub(crate) struct Run {
    /// What the last run found, or the first one with errors.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// How often a loop runs the body, as it was last known.
    pub(super) iterations: Option<i64>,
    /// What the last run was given, and how many Parameters of the model had another type, if another such run would find
    /// the same.
    pub(super) repeats: Option<(Given, usize)>,
}

impl Run {
    pub(super) fn failed(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Whether the last run was one like this.
    pub(super) fn is_like(&self, given: &Given, retyped: usize) -> bool {
        self.repeats.as_ref().is_some_and(|(last, before)| last == given && *before == retyped)
    }
}
