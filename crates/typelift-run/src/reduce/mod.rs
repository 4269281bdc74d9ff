//! Reduction of a model to the smallest one that is still interesting: that still fails, still has a finding, or still
//! differs.
//!
//! [`Reduction::run`] removes layers as long as a [`Judge`] finds the rest interesting. Tensors of removed layers
//! become inputs if the rest needs them, and tensors that are no longer used become outputs. A candidate with new
//! errors in inference is skipped. The search is deterministic: the number of jobs changes only its duration.
//!
//! 1. Layers are ordered so that neighbours are close. The last layer that matters is found by bisection, then the first one
//!    from there backwards, then the layers between them.
//! 2. Bodies of If, Loop and TensorIterator become the model itself if that is interesting, or their layers are replaced by
//!    constants.
//! 3. Each layer that is left is removed or bypassed alone, inputs of one type are merged, dimensions and attributes become
//!    plainer, and metadata is removed.
//!
//! # Examples
//! ```
//! use std::convert::Infallible;
//! use typelift::Model;
//! use typelift_run::reduce::Reduction;
//!
//! let mut model = Model::from_text("
//!     x = Parameter : f32[?,4]
//!     a = Exp(x)
//!     b = ReLU(a)
//!     c = Tanh(b)
//!     d = Abs(c)
//!     r = Result(d)
//! ")?;
//! typelift::infer(&mut model);
//! let has_relu = |model: &Model| Ok::<_, Infallible>(model.graph().layers().any(|layer| layer.ty() == "ReLU"));
//! let reduced = Reduction::default().run(&model, &has_relu).unwrap();
//! assert_eq!((reduced.layers_before, reduced.layers_after), (6, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bodies;
mod keep;
mod search;
mod share;
mod simplify;

use search::{Halt, Search};
use serde::Serialize;
use typelift::{Model, infer};

pub use keep::part_like;
pub use share::{anonymized, kept_texts, without_metadata};

/// Settings of a reduction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reduction {
    /// The number of candidates that are judged at the same time.
    pub jobs: usize,
    /// The maximum number of candidates that are judged.
    pub most_runs: usize,
}

impl Default for Reduction {
    fn default() -> Self {
        Self { jobs: 1, most_runs: 1000 }
    }
}

/// Decides if a candidate is interesting. Several threads may call it at the same time.
pub trait Judge: Sync {
    /// Reason why the search must stop, such as Ctrl-C.
    type Stop: Send;

    /// True if the candidate has the property of the original that must be kept.
    ///
    /// # Errors
    /// The search must stop. The best result so far is kept.
    fn is_interesting(&self, candidate: &Model) -> Result<bool, Self::Stop>;
}

impl<S: Send, F: Fn(&Model) -> Result<bool, S> + Sync> Judge for F {
    type Stop = S;

    fn is_interesting(&self, candidate: &Model) -> Result<bool, S> {
        self(candidate)
    }
}

/// Result of a reduction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reduced<S> {
    /// The smallest interesting model that was found.
    pub model: Model,
    /// The number of layers of the original, including bodies.
    pub layers_before: usize,
    /// The number of layers of the result, including bodies.
    pub layers_after: usize,
    /// The number of candidates that were judged.
    pub runs: usize,
    /// The number of candidates that were skipped because of new errors in inference.
    pub refused: usize,
    /// The successful steps, in order.
    pub steps: Vec<Step>,
    /// The reason why the search stopped early.
    pub stopped: Option<Stopped<S>>,
}

/// Successful step of a reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// The kind of step, such as `fewer layers`.
    pub what: &'static str,
    /// The number of layers after the step.
    pub layers: usize,
    /// The number of candidates that were judged before.
    pub runs: usize,
}

/// Reason why a search stopped early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped<S> {
    /// The judge stopped it.
    ByJudge(S),
    /// The maximum number of candidates was reached.
    AtLimit,
}

impl Reduction {
    /// Reduces an inferred model as long as it is interesting; the model itself must be interesting. Candidates may
    /// only have kinds of errors that the model has.
    ///
    /// # Errors
    /// The judge's answer for the model itself; `None` if the model is not interesting.
    ///
    /// # Examples
    /// See [the module](self).
    pub fn run<J: Judge>(&self, model: &Model, judge: &J) -> Result<Reduced<J::Stop>, Option<J::Stop>> {
        if !judge.is_interesting(model).map_err(Some)? {
            return Err(None);
        }
        let mut own = model.clone();
        let known = infer(&mut own).iter().filter(|found| found.is_error()).map(|found| found.code).collect();
        let mut search = Search::new(self, judge, own, known);
        let stopped = everything(&mut search).err();
        Ok(search.finish(model, stopped))
    }
}

/// Makes the model as small as possible by all kinds of steps, the largest first.
fn everything<J: Judge>(search: &mut Search<'_, J>) -> Result<(), Halt<J>> {
    search.fewer_layers()?;
    while bodies::lifted(search)? {
        search.fewer_layers()?;
    }
    bodies::emptied(search)?;
    simplify::all(search)
}

/// Returns the number of layers of a model, including bodies.
#[must_use]
pub fn layers(model: &Model) -> usize {
    model.walk().map(|(_, graph)| graph.len()).sum()
}
