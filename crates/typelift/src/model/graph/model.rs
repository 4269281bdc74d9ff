//! Model: a graph with its name, IR version, metadata, source text and weights.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use compact_str::CompactString;
use serde::Serialize;
use thiserror::Error;

use super::Graph;
use crate::base::span::Span;
use crate::model::shape::{Dim, Shape};
use crate::model::weights::Weights;

/// Version of the IR format.
///
/// ```
/// # use typelift::IrVersion;
/// assert_eq!("10".parse(), Ok(IrVersion::V10));
/// assert_eq!(IrVersion::V11.to_string(), "11");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum IrVersion {
    /// Without metadata of layers and ports.
    V10,
    /// With `rt_info` on layers and ports.
    V11,
}

impl IrVersion {
    /// Returns the number in the file.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::V10 => 10,
            Self::V11 => 11,
        }
    }
}

impl OutputConstraints {
    /// Returns the dimensions that a port of this shape has in the text; `None` if it has none.
    pub(crate) fn dims(self, shape: &Shape) -> Option<&[Dim]> {
        shape.dims().filter(|_| !self.fixed_dims || shape.is_static())
    }
}

impl fmt::Display for IrVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl FromStr for IrVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match text {
            "10" => Ok(Self::V10),
            "11" => Ok(Self::V11),
            _ => Err(UnknownVersion(text.to_owned())),
        }
    }
}

impl Serialize for IrVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

/// Text that is not an [`IrVersion`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a version of IR that is read here: those are 10 and 11")]
pub struct UnknownVersion(String);

/// An OpenVINO model.
///
/// A model keeps the text that it was read from, so that unchanged parts are written as they were.
#[derive(Clone)]
pub struct Model {
    pub(crate) graph: Graph,
    pub(crate) weights: Weights,
    pub(crate) name: Option<CompactString>,
    pub(crate) version: IrVersion,
    /// An `Arc<str>` would need another copy of a text that was read from a file.
    pub(crate) source: Arc<String>,
    /// Children of the root other than layers, edges and `rt_info`.
    pub(crate) extras: Vec<Span>,
    /// Output constraints of the target release.
    pub(crate) constraints: OutputConstraints,
}

/// Constraints that older readers put on the text of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputConstraints {
    /// Every port declares its type; none is open.
    pub(crate) port_types: bool,
    /// No port has an open dimension. A port of an open shape is written without dimensions.
    pub(crate) fixed_dims: bool,
    /// The `<net …>` tag is within the first bytes of the text, as many as [`OPENING`](crate::text::xml::OPENING), and the model
    /// ends after them.
    pub(crate) opening: bool,
}

/// Formats name, version, size and weights.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({:?}, {:?}, {:?}, {:?})", self.name(), self.version, self.graph, self.weights)
    }
}

impl Model {
    /// Returns the name; empty if the file has none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns its layers and edges. [`edit`](Self::edit) changes them.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the bytes of its constants.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Sets the bytes of its constants, including those of added constants.
    pub fn set_weights(&mut self, weights: Weights) {
        self.weights = weights;
    }

    /// Returns the version of its format.
    pub fn version(&self) -> IrVersion {
        self.version
    }

    /// Returns the text that it was read from.
    pub fn source(&self) -> &Arc<String> {
        &self.source
    }
}
