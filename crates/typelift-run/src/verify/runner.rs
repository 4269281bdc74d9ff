//! Interface to a runtime that runs models.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use typelift::Model;
use typelift::xml::{self, WriteOptions};

use super::Tensor;

/// A runtime that runs models, such as an installed OpenVINO. Tests implement it without one.
pub trait Runner {
    /// The version of the runtime, and the device that it uses.
    ///
    /// # Errors
    /// [`RunError::Missing`] if there is no runtime.
    fn describe(&mut self, setting: &Setting) -> Result<Runtime, RunError>;

    /// Reads and compiles a model.
    ///
    /// # Errors
    /// [`RunError`].
    fn load(&mut self, source: &Source, setting: &Setting) -> Result<Loaded, RunError>;

    /// Runs a model on its inputs, in order, and returns its outputs. If `is_first`, the state is reset before.
    ///
    /// # Errors
    /// [`RunError`].
    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError>;

    /// Releases a model, if it is still loaded.
    fn release(&mut self, key: u64);

    /// Reads the named arrays of an `.npz` file, or of a folder with `.npy` files. Together they have at most `most` bytes.
    ///
    /// # Errors
    /// [`RunError`].
    fn arrays(&mut self, path: &Path, most: u64) -> Result<Vec<(String, Tensor)>, RunError>;
}

/// Runtime with its device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runtime {
    /// The version of OpenVINO: `2026.4.1`.
    pub version: String,
    /// The full name of the device, if it is known.
    pub full_name: Option<String>,
}

/// Installation and device that run a model, and the properties of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// The Python interpreter of the installation; `None` for the runner's own.
    pub python: Option<PathBuf>,
    /// The device: `CPU`.
    pub device: String,
    /// Properties that the device must have, by name.
    pub config: BTreeMap<String, String>,
    /// Properties that are set if the device knows them.
    pub defaults: BTreeMap<String, String>,
    /// True if the model is changed before it is loaded, so that it rounds values to f16 and overflows as f16 does.
    pub simulates_f16: bool,
}

/// A compiled model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The key for running it.
    pub key: u64,
    /// Properties as the device reports them: those of the setting, and `INFERENCE_NUM_THREADS`.
    pub config: BTreeMap<String, String>,
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
        let needs_extension =
            model.walk().any(|(_, graph)| graph.layers().any(|layer| !layer.version().starts_with("opset")));
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
    /// The runtime does not have a device, a property or a value that was asked for.
    #[error("{reason}")]
    Unknown {
        /// The part that it lacks.
        reason: String,
        /// The advice, such as what to write instead.
        help: String,
    },
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
    /// True if the cause of the failure is the model, its inputs or its setting.
    pub fn is_of_model(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unknown { .. } | Self::Crashed(_) | Self::TimedOut(_))
    }
}
