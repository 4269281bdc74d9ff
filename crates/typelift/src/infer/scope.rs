//! State of inference for one graph.

use super::value::Values;
use crate::base::hash::HashSet;
use crate::findings::Diagnostic;
use crate::model::graph::{Body, Layer, LayerId, Place};
use crate::ops::Given;

/// State of one graph: the model's own, or a body. Each body has a separate one, so that its values do not mix with
/// those of the surrounding graph.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) place: Place,
    /// True if the layer around the body determines the types and shapes of its Parameters.
    pub(super) is_given: bool,
    /// True if results depend on earlier runs, through variables or iteration counts. They cannot be cached then.
    pub(super) has_memory: bool,
    /// The types and shapes of the body's Parameters.
    pub(super) given: Given,
    /// The layers to infer, if only some must be inferred again.
    pub(super) stale: Option<HashSet<LayerId>>,
    pub(super) values: Values,
    /// The findings in the graph, without those of its bodies.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The layers that OpenVINO's reader keeps, computed when first needed.
    pub(super) read: Option<HashSet<LayerId>>,
    /// The variables that have a ReadValue.
    pub(super) readable: HashSet<String>,
    /// The layers with an error, and those that depend on one.
    pub(super) doubtful: HashSet<LayerId>,
}

impl Scope {
    /// `given` are the types of its Parameters; with `None` they keep their own.
    pub(super) fn of_body(&self, owner: &Layer, at: usize, body: &Body, given: Option<&Given>) -> Self {
        Self {
            place: self.place.inside(owner, at, body.name()),
            is_given: given.is_some(),
            given: given.cloned().unwrap_or_default(),
            stale: self.stale.as_ref().map(|_| body.graph.unordered().map(Layer::id).collect()),
            ..Self::default()
        }
    }
}

/// Cached results of a body.
#[derive(Default)]
pub(crate) struct Run {
    /// The findings of the last run or, if a run had errors, of the first such run.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The last known number of iterations of the loop.
    pub(super) iterations: Option<i64>,
    /// Inputs of the last run and the number of retyped Parameters, if another run with the same ones gives the same
    /// result.
    pub(super) repeats: Option<(Given, usize)>,
}

impl Run {
    pub(super) fn failed(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    pub(super) fn is_like(&self, given: &Given, retyped: usize) -> bool {
        self.repeats.as_ref().is_some_and(|(last, before)| last == given && *before == retyped)
    }
}
