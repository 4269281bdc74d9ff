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
    /// Without `rt_info` on layers and ports.
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
    /// `None` if it lists none.
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
#[error("`{0}` is not a supported IR version; supported are 10 and 11")]
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
    /// `Arc<String>` avoids a copy of the text, which `Arc<str>` would need.
    pub(crate) source: Arc<String>,
    /// Children of the root other than layers, edges and `rt_info`.
    pub(crate) extras: Vec<Span>,
    pub(crate) constraints: OutputConstraints,
}

/// Requirements of an older OpenVINO release on the text of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputConstraints {
    /// Every port must declare an element type that is not dynamic.
    pub(crate) port_types: bool,
    /// No port may have a dynamic dimension. A port of a dynamic shape is written without dimensions.
    pub(crate) fixed_dims: bool,
    /// The `<net …>` tag must be within the first [`OPENING`](crate::xml::OPENING) bytes of the text.
    pub(crate) opening: bool,
}

/// Formats name, version, size and weights.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({:?}, {:?}, {:?}, {:?})", self.name(), self.version, self.graph, self.weights)
    }
}

impl Model {
    /// Gives the model another name.
    pub fn set_name(&mut self, name: &str) {
        self.name = Some(name.into());
    }

    /// Returns the name; empty if the file has none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns its layers and edges. [`edit`](Self::edit) changes them.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the weights: the bytes of its constants.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Replaces the weights, including the bytes of added constants.
    pub fn set_weights(&mut self, weights: Weights) {
        self.weights = weights;
    }

    /// Returns the version of its IR format.
    pub fn version(&self) -> IrVersion {
        self.version
    }

    /// Returns the text that it was read from.
    pub fn source(&self) -> &Arc<String> {
        &self.source
    }
}
