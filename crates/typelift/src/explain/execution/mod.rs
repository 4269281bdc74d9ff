//! Execution graphs: what a plugin of OpenVINO ran for a model, matched with the layers of the model.
//!
//! A plugin gives its execution graph as a file (`get_runtime_model()`, or `benchmark_app -exec_graph_path`). It names the
//! layers of the model that it ran, fused or computed when it compiled. [`Execution::read`] reads such a file and [`Ran::of`]
//! matches it with its model. How each match is known is always stated: see [`Became`].

mod findings;
mod graph;
mod matching;
mod weights;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::graph::{Executed, Execution};
pub use self::weights::{StoredWeights, UsedWeights};
use crate::model::graph::Model;

/// The result of compilation for a layer of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Became {
    /// An executed layer has its name.
    Ran,
    /// An executed layer lists its name among those that were fused into it.
    Fused,
    /// A constant that the plugin computed has its name.
    Folded,
    /// The layer is a constant, and the plugin keeps it as one.
    Constant,
    /// The layer is an input of the model.
    Input,
    /// The layer is an output of the model.
    Output,
    /// Nothing has its name, but it lies between named layers, and all ways lead into one executed layer.
    Inside,
    /// Nothing has its name, and ways lead into several executed layers.
    Spread,
    /// Nothing has its name, and no way leads to an executed layer.
    Gone,
}

impl Became {
    /// Returns the name in JSON: `ran`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Fused => "fused",
            Self::Folded => "folded",
            Self::Constant => "constant",
            Self::Input => "input",
            Self::Output => "output",
            Self::Inside => "inside",
            Self::Spread => "spread",
            Self::Gone => "gone",
        }
    }
}

/// The executed layers that a layer of the model led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Led {
    /// To one.
    To(String),
    /// To several, sorted by name.
    ToAll(Vec<String>),
}

/// A layer of the model's own graph, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RanLayer {
    /// The id in the file of the model.
    pub id: u64,
    /// The name.
    pub name: String,
    /// The operation, as the file spells it.
    #[serde(rename = "type")]
    pub ty: String,
    /// The element types of its outputs in the model.
    pub gives: Vec<&'static str>,
    /// The result of compilation.
    pub became: Became,
    /// The executed layers that it led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Led>,
    /// The kind of the executed layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_type: Option<String>,
    /// The types that come into the executed layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_in: Option<Vec<&'static str>>,
    /// The type in which the executed layer computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// The types that the executed layer gives, if this layer is the last one of its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_gives: Option<Vec<&'static str>>,
    /// The mean time in microseconds; `None` if it was not measured, is below one microsecond, or belongs to compiling.
    pub us: Option<u64>,
    /// The number of layers of each body, which an execution graph does not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bodies_not_shown: Vec<usize>,
}

/// An executed layer that stands for no layer of the model: a Reorder, a Convert, or one that the plugin made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AddedLayer {
    /// The name.
    pub exec: String,
    /// The kind.
    #[serde(rename = "type")]
    pub ty: String,
    /// The types that come in.
    pub from: Vec<&'static str>,
    /// The types that it gives.
    pub to: Vec<&'static str>,
    /// The mean time in microseconds.
    pub us: Option<u64>,
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// The number of layers of the model by what became of them.
    pub ir: BTreeMap<&'static str, usize>,
    /// The number of executed layers of each kind.
    pub exec: BTreeMap<String, usize>,
    /// The time of one inference in microseconds.
    pub us: u64,
    /// The time of Reorders among it.
    pub us_reorders: u64,
}

/// A model and what a plugin ran for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Ran {
    /// Each layer of the model's own graph, in the order of the file.
    pub layers: Vec<RanLayer>,
    /// The constant weights of executed layers, and the type in which they arrive.
    pub weights: Vec<UsedWeights>,
    /// The constants of few bits in the model, and the type in which they are used.
    pub stored: Vec<StoredWeights>,
    /// Returns the executed layers that stand for no layer of the model.
    pub added: Vec<AddedLayer>,
    /// Totals.
    pub counts: Counts,
    /// The time and number of executed layers by kind and precision, the most time first. Layers that ran when the model was
    /// compiled are left out.
    pub kernels: Vec<Kernels>,
}

/// The executed layers of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kernels {
    /// The kind.
    #[serde(rename = "type")]
    pub ty: String,
    /// The type in which they compute.
    pub precision: String,
    /// The number of layers.
    pub count: usize,
    /// The total time in microseconds.
    pub us: u64,
}

impl Ran {
    /// Matches a model with an execution graph.
    ///
    /// # Errors
    /// A sentence that says why the two do not belong together: their inputs differ, or a constant of both has another shape or
    /// more bits.
    pub fn of(model: &Model, execution: &Execution) -> Result<Self, String> {
        matching::refuse_other_model(model, execution)?;
        Ok(matching::Matching::new(model.graph(), execution).ran())
    }

    /// Returns the layer of the model with this name.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<&RanLayer> {
        self.layers.iter().find(|layer| layer.name == name)
    }
}
