//! Reasons why two models cannot be compared.

use std::fmt;

use thiserror::Error;

use super::RunError;
use crate::findings::Diagnostic;
use crate::model::graph::EditError;

/// One of the two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first model.
    A,
    /// The second model.
    B,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}

/// A comparison that could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// There is no runtime, or it cannot be talked to.
    #[error("{0}")]
    Runtime(RunError),
    /// The runtime cannot load or run a model.
    #[error("OpenVINO cannot run model {side}: {error}")]
    Run {
        /// The model.
        side: Side,
        /// The reason, in the words of the runtime.
        error: RunError,
    },
    /// A model has errors.
    #[error("model {side} has errors: {}", .found.message)]
    IllTyped {
        /// The model.
        side: Side,
        /// The first of its errors.
        found: Box<Diagnostic>,
    },
    /// Inputs or outputs cannot be paired.
    #[error("{0}")]
    Unpaired(String),
    /// Inference accepts no sizes for the open dimensions.
    #[error("no sizes were found for the open dimensions that both models accept")]
    NoShapes,
    /// A name or an array given by the user does not fit.
    #[error("{0}")]
    Inputs(String),
    /// An edit for the comparison was refused.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl VerifyError {
    /// A run that failed: because of the model, or because of the runtime.
    pub(super) fn of_run(side: Side, error: RunError) -> Self {
        if error.is_of_model() { Self::Run { side, error } } else { Self::Runtime(error) }
    }
}
