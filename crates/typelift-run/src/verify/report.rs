//! Report of a comparison, as data.

use std::collections::BTreeMap;

use serde::Serialize;
use typelift::explain::Change;
use typelift::findings::LayerRef;
use typelift::promote::ElementType;

use super::Tensor;
use super::compare::Difference;
use super::conditions::{PRECISION, THREADS, is_exact};
use super::coverage::NotTested;
use super::inputs::Fed;
use super::tolerance::Tolerance;

/// Result of running two models on the same inputs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// True if all outputs agree on all samples.
    pub same: bool,
    /// What A and B ran on. With expected outputs and one model there is one run.
    pub runs: Vec<Run>,
    /// The narrowest element type that only one of the models uses, or in which a device computes. It determines the
    /// default tolerance.
    #[serde(serialize_with = "as_name")]
    pub narrowest: ElementType,
    /// The tolerance.
    pub tolerance: Tolerance,
    /// The inputs of each sample.
    pub samples: Vec<SampleReport>,
    /// The outputs, in the order of A, each with its largest difference.
    pub outputs: Vec<OutputReport>,
    /// The layer at which the difference starts.
    pub first: Option<First>,
    /// The number of layers of A whose changes would show in the outputs. It is counted if the models agree.
    pub tested: usize,
    /// The number of layers of A that compute values from inputs.
    pub layers: usize,
    /// The layers that were not tested.
    pub not_tested: Vec<NotTested>,
    /// The error of each block, if it was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Growth>,
    /// Remarks for the user.
    pub notes: Vec<String>,
    /// The inputs of A in all samples, with the names by which they are read again.
    #[serde(skip)]
    pub fed: Vec<(String, Tensor)>,
}

/// Installation and device on which a model ran.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Run {
    /// The version of OpenVINO: `2026.4.1`.
    pub openvino: String,
    /// The name of the device for OpenVINO: `CPU`.
    pub device: String,
    /// The full name of the device, if it is known.
    pub full_name: Option<String>,
    /// The precision in which the device says that it computes: `f32`; `null` if it does not say.
    pub precision: Option<String>,
    /// True if values were rounded to f16 and overflow as in f16.
    #[serde(rename = "simulated_f16")]
    pub simulates_f16: bool,
    /// Properties as the device reports them.
    pub config: BTreeMap<String, String>,
}

impl Run {
    /// Returns the properties that say more than that approximations are off: all but the precision, the number of
    /// threads, and those that have the exact value.
    pub fn said(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, value)| !is_exact(name, value) && ![PRECISION, THREADS].contains(name))
    }
}

/// Inputs of a sample.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SampleReport {
    /// The number of steps, between which state is kept.
    pub steps: usize,
    /// The inputs of the first step.
    pub inputs: Vec<Fed>,
}

/// An output of both models.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutputReport {
    /// The name in A.
    pub name: String,
    /// True if A is compared with an expected output, and not with B.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expected: bool,
    /// The element type in A.
    pub element_type: String,
    /// The element type in B, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_type_in_b: Option<String>,
    /// True if all values in A are finite.
    pub finite: bool,
    /// The largest difference.
    #[serde(flatten)]
    pub difference: Difference,
}

/// The layer at which a difference starts.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct First {
    /// The layer in A.
    pub layer: LayerRef,
    /// The operation in A.
    pub operation: String,
    /// The types and shapes of its outputs in A: `f32[1,16]`.
    pub types: Vec<String>,
    /// The layer in B.
    pub in_b: LayerRef,
    /// The operation in B.
    pub operation_in_b: String,
    /// The types and shapes of its outputs in B.
    pub types_in_b: Vec<String>,
    /// True if the inputs of the layer agree and its output differs. Otherwise the error grows most at this layer.
    pub inputs_agree: bool,
    /// The difference of its output; `null` if the difference is that another tensor feeds an output of the model.
    pub difference: Option<Difference>,
    /// The step in which it starts, counted from 1.
    pub step: usize,
    /// The changes to this layer, its constants, and added or removed layers next to it.
    pub changes: Vec<Change>,
}

/// Error of the tensors of a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Growth {
    /// The name of the block; empty outside of blocks.
    pub block: String,
    /// The number of tensors that were compared.
    pub tensors: usize,
    /// The largest error relative to the largest value of the tensor; `null` if a value is not finite in only one
    /// model.
    pub max_relative: f64,
    /// The layer with that error.
    pub layer: String,
}

fn as_name<S: serde::Serializer>(ty: &ElementType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(ty.name())
}
