//! Reasons why two models cannot be compared.

use std::fmt;

use thiserror::Error;
use typelift::findings::Diagnostic;
use typelift::graph::EditError;

use super::RunError;
use typelift::shape::Shape;

/// One of the two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first model.
    A,
    /// The second model.
    B,
}

impl Side {
    pub(super) fn of(position: usize) -> Self {
        if position == 0 { Self::A } else { Self::B }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Reason why two models could not be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The runtime is missing, or communication with it failed.
    #[error("{0}")]
    Runtime(RunError),
    /// The runtime cannot load or run a model.
    #[error("OpenVINO cannot run model {side}: {error}")]
    Run {
        /// The model.
        side: Side,
        /// The runtime's error message.
        error: RunError,
    },
    /// A device does not take a property that was asked for.
    #[error("{device} was asked for {name}={asked} for model {side}, and took {answered}")]
    NotTaken {
        /// The model.
        side: Side,
        /// The device.
        device: String,
        /// The property.
        name: String,
        /// The value that was asked for.
        asked: String,
        /// The value that the device reports.
        answered: String,
    },
    /// A model with dynamic shapes would run on one CPU.
    #[error(
        "OpenVINO has one CPU for model {0}, where it reports no errors about lengths: a model with open dimensions may give wrong values"
    )]
    OneThread(Side),
    /// The lengths of inputs break a constraint of a model.
    #[error("the lengths of the inputs do not fit model {side}, which needs {needs}")]
    Lengths {
        /// The model.
        side: Side,
        /// The constraint with the layer that demands it: ``seq == 8, because of the Reshape `view` ``.
        needs: String,
        /// Shapes near those that fit, as `x=[1,8]`; empty if none were found.
        fit: Vec<String>,
    },
    /// An output has another shape than inference says.
    #[error("the output `{output}` of model {side} has the shape {got}, but inference says {inferred}")]
    WrongShape {
        /// The model.
        side: Side,
        /// The output.
        output: String,
        /// The shape that inference finds.
        inferred: Shape,
        /// The shape that the runtime returned.
        got: Shape,
    },
    /// There is one model, and nothing to compare it with.
    #[error("there is nothing to compare: one model, which runs twice in the same way")]
    NothingDiffers,
    /// The outputs agree, but the inputs that were made test nothing that differs.
    #[error("the outputs agree, but the inputs do not test {what}, because {reason}")]
    NotTested {
        /// The first layer that differs, or all layers.
        what: String,
        /// Why a change there would not show.
        reason: String,
    },
    /// A model has errors.
    #[error("model {side} has errors: {}", .found.message)]
    IllTyped {
        /// The model.
        side: Side,
        /// The first of its errors.
        found: Box<Diagnostic>,
    },
    /// The inputs or outputs of the two models cannot be paired.
    #[error("{0}")]
    Unpaired(String),
    /// No lengths of the dynamic dimensions are valid in both models.
    #[error("no lengths of the dynamic dimensions were found that both models accept")]
    NoShapes,
    /// A name or an array from the user does not match the models.
    #[error("{0}")]
    Inputs(String),
    /// An edit that the comparison needs is not possible.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl VerifyError {
    /// The error of a failed run. The cause may be the model or the runtime.
    pub(super) fn of_run(side: Side, error: RunError) -> Self {
        if error.is_of_model() { Self::Run { side, error } } else { Self::Runtime(error) }
    }
}
