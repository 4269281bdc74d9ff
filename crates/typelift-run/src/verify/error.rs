//! Reasons why two models cannot be compared.

use std::fmt;

use thiserror::Error;
use typelift::findings::Diagnostic;
use typelift::model::graph::EditError;

use super::RunError;

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
    /// Creates the error of a failed run. The cause may be the model or the runtime.
    pub(super) fn of_run(side: Side, error: RunError) -> Self {
        if error.is_of_model() { Self::Run { side, error } } else { Self::Runtime(error) }
    }
}
