//! Interface to a runtime that runs models.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;
use typelift::model::graph::Model;
use typelift::text::xml::{self, WriteOptions};

use super::Tensor;

/// A runtime that runs models, such as an installed OpenVINO. Tests implement it without one.
pub trait Runner {
    /// Returns the version of the runtime, and the device that it uses for the name `device`.
    ///
    /// # Errors
    /// [`RunError::Missing`] if there is no runtime.
    fn describe(&mut self, device: &str) -> Result<Runtime, RunError>;

    /// Reads and compiles a model. Returns a key for running it.
    ///
    /// # Errors
    /// [`RunError`].
    fn load(&mut self, source: &Source, setting: &Setting) -> Result<u64, RunError>;

    /// Runs a model on its inputs, in order, and returns its outputs. If `is_first`, the state is reset before.
    ///
    /// # Errors
    /// [`RunError`].
    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError>;

    /// Releases a model.
    fn release(&mut self, key: u64);

    /// Reads the named arrays of an `.npz` file, or of a folder with `.npy` files.
    ///
    /// # Errors
    /// [`RunError`].
    fn arrays(&mut self, path: &Path) -> Result<Vec<(String, Tensor)>, RunError>;
}

/// Runtime with its device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Runtime {
    /// The version of OpenVINO: `2026.4.1`.
    pub version: String,
    /// The name of the device for OpenVINO: `CPU`.
    pub device: String,
    /// The full name of the device, if it is known.
    pub full_name: Option<String>,
}

/// Device and precision for running a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The device: `CPU`.
    pub device: String,
    /// The value of `INFERENCE_PRECISION_HINT`: `f32`, `bf16`, `f16`. Without it the device decides.
    pub hint: Option<String>,
}

/// Model in the form that a runtime reads: the text of its `.xml`, and its weights.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text of the `.xml`.
    pub text: String,
    /// The weights.
    pub weights: Bytes,
    /// True if the model has operations of extensions, such as those of tokenizers.
    pub needs_extension: bool,
}

/// Weights of a [`Source`].
#[derive(Clone, Debug)]
pub enum Bytes {
    /// A file.
    File(PathBuf),
    /// Bytes in memory.
    Memory(Vec<u8>),
}

impl Source {
    /// Creates the form of a model that a runtime reads.
    ///
    /// # Errors
    /// The weights cannot be read.
    pub fn of(model: &Model) -> io::Result<Self> {
        let weights = match model.weights().path() {
            Some(path) if !model.weights().has_added() => Bytes::File(std::path::absolute(path)?),
            _ => Bytes::Memory(model.weights().to_bytes()?),
        };
        let is_extension = |layer: &typelift::model::graph::Layer| !layer.version().starts_with("opset");
        let needs_extension = model.walk().any(|(_, graph)| graph.layers().any(is_extension));
        Ok(Self { text: xml::write(model, WriteOptions::default()), weights, needs_extension })
    }
}

/// Reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no runtime.
    #[error("{0}")]
    Missing(String),
    /// The runtime does not accept the model or its inputs.
    #[error("{0}")]
    Refused(String),
    /// The process of the runtime crashed: `signal 11`.
    #[error("OpenVINO crashed ({0})")]
    Crashed(String),
    /// The run exceeded the time limit.
    #[error("OpenVINO did not answer within {0} s")]
    TimedOut(u64),
    /// Communication with the runtime failed, or a file cannot be read.
    #[error("{0}")]
    Broken(String),
}

impl RunError {
    /// True if the cause of the failure is the model or its inputs.
    #[must_use]
    pub fn is_of_model(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Crashed(_) | Self::TimedOut(_))
    }
}
