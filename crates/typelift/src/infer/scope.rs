//! State of inference for the current graph and the surrounding ones.

use super::value::Values;
use crate::base::hash::HashSet;
use crate::findings::Diagnostic;
use crate::model::graph::{Body, Graph, Layer, LayerId, Place};
use crate::ops::Given;

/// State of one graph: the model's own, or a body. It is pushed at the start and popped at the end of the graph, so
/// that nothing of a body leaks into the graph around it.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) place: Place,
    /// True if its Parameters have types and shapes from outside.
    pub(super) is_given: bool,
    /// True if results depend on earlier runs, through variables or iteration counts, so that they cannot be cached.
    pub(super) has_memory: bool,
    /// The types and shapes of its Parameters.
    pub(super) given: Given,
    /// The layers to infer, if only a part of a typed graph is inferred anew.
    pub(super) stale: Option<HashSet<LayerId>>,
    /// The values found so far.
    pub(super) values: Values,
    /// The findings in the graph, without its bodies.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The layers that OpenVINO's reader keeps, computed on demand.
    pub(super) read: Option<HashSet<LayerId>>,
    /// The variables that have a ReadValue.
    pub(super) readable: HashSet<String>,
    /// The layers that have an error or depend on one that has.
    pub(super) doubtful: HashSet<LayerId>,
}

impl Scope {
    /// Creates the scope of a body inside this one, with its Parameters or by itself.
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

/// Cached results of a body.
#[derive(Default)]
pub(crate) struct Run {
    /// The findings of the last run, or of the first one with errors.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The last known number of iterations of the body.
    pub(super) iterations: Option<i64>,
    /// The inputs of the last run and the number of retyped Parameters of the model, if a run with both equal would
    /// have the same result.
    pub(super) repeats: Option<(Given, usize)>,
}

impl Run {
    pub(super) fn failed(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// True if the last run had the same inputs.
    pub(super) fn is_like(&self, given: &Given, retyped: usize) -> bool {
        self.repeats.as_ref().is_some_and(|(last, before)| last == given && *before == retyped)
    }
}
