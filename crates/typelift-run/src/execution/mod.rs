//! Execution graphs: the layers that a plugin of OpenVINO executed for a model, matched with those of the model.
//!
//! A plugin can write its execution graph to a file (`get_runtime_model()`, or `benchmark_app -exec_graph_path`). The
//! file names the model layers that were executed, fused, or computed during compilation. [`Execution::read`] reads
//! such a file, and [`Ran::of`] matches it with its model. [`Became`] is the evidence of each match.

mod findings;
mod graph;
mod matching;
mod weights;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

pub use self::graph::{Executed, Execution};
pub use self::weights::{StoredWeights, UsedWeights};
use typelift::Model;

/// Result of compiling a layer of the model, by the names in the execution graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Became {
    /// An executed layer has the name of the layer.
    Ran,
    /// An executed layer lists the name among those that were fused into it.
    Fused,
    /// An executed constant has the name: the plugin computed the layer during compilation.
    Folded,
    /// The layer is a constant, and the plugin kept it as a constant.
    Constant,
    /// The layer is an input of the model.
    Input,
    /// The layer is an output of the model.
    Output,
    /// No executed layer has the name, but all consumers reach the same executed layer, so the layer is part of it.
    Inside,
    /// No executed layer has the name, and the consumers reach several executed layers.
    Spread,
    /// No executed layer has the name, and the consumers reach no executed layer.
    Gone,
}

impl Became {
    /// Returns the name in JSON, such as `ran`.
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

/// Executed layers that a layer of the model is part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Led {
    /// To one.
    To(String),
    /// Several layers, sorted by name.
    ToAll(Vec<String>),
}

/// Executed layer, as part of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// The name.
    pub exec: String,
    /// The kind.
    pub ty: String,
    /// The mean time in microseconds.
    pub us: Option<u64>,
}

/// Formats the kind with the time: `RNNSeq 215 µs`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ty)?;
        self.us.map_or(Ok(()), |us| write!(f, " {us} µs"))
    }
}

/// Layer of the model's own graph, with its result in the execution graph.
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
    /// The executed layers that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Led>,
    /// The kind of the executed layer; of several, the one that takes longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_type: Option<String>,
    /// The element types of the executed layer's inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_in: Option<Vec<&'static str>>,
    /// The type in which the executed layer computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// The element types of the executed layer's outputs, if this is the last of its model layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_gives: Option<Vec<&'static str>>,
    /// The mean time in microseconds; `None` if it was not measured, is below one microsecond, or is part of
    /// compilation.
    pub us: Option<u64>,
    /// The executed layers without a name of the model that lead only to `exec`: a plugin that computes one layer by several
    /// gives its name to the last one. Their time is part of `us`.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// The number of layers in each body. An execution graph does not show them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bodies_not_shown: Vec<usize>,
}

/// Executed layer that corresponds to no layer of the model, such as a Reorder or a Convert that the plugin inserted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AddedLayer {
    /// The name.
    pub exec: String,
    /// The kind.
    #[serde(rename = "type")]
    pub ty: String,
    /// The element types of its inputs.
    pub from: Vec<&'static str>,
    /// The element types of its outputs.
    pub to: Vec<&'static str>,
    /// The mean time in microseconds.
    pub us: Option<u64>,
}

/// Counts and times of an execution graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// The number of model layers by result of compilation.
    pub ir: BTreeMap<&'static str, usize>,
    /// The number of executed layers of each kind.
    pub exec: BTreeMap<String, usize>,
    /// The time of one inference in microseconds.
    pub us: u64,
    /// The time of all Reorders in microseconds, which is included.
    pub us_reorders: u64,
    /// The time of layers that compute constants, in microseconds. They ran once, during compilation.
    #[serde(skip)]
    pub us_once: u64,
}

/// A model matched with its execution graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Ran {
    /// Each layer of the model's own graph, in the order of the file.
    pub layers: Vec<RanLayer>,
    /// The constant weights of executed layers, with the type in which the kernel gets them.
    pub weights: Vec<UsedWeights>,
    /// The constants of few bits in the model, with the type in which they are used.
    pub stored: Vec<StoredWeights>,
    /// The executed layers that correspond to no layer of the model.
    pub added: Vec<AddedLayer>,
    /// Totals.
    pub counts: Counts,
    /// The time and number of executed layers by kind and precision, sorted by time. Layers that ran during
    /// compilation are not included.
    pub kernels: Vec<Kernels>,
}

/// Executed layers of the same kind and precision.
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
    /// A sentence about the difference, if the execution graph belongs to another model. Either the inputs differ, or
    /// a constant has another shape or more bits.
    pub fn of(model: &Model, execution: &Execution) -> Result<Self, String> {
        matching::refuse_other_model(model, execution)?;
        Ok(matching::Matching::new(model.graph(), execution).ran())
    }

    /// Returns the layer of the model with this name.
    pub fn layer(&self, name: &str) -> Option<&RanLayer> {
        self.layers.iter().find(|layer| layer.name == name)
    }
}
