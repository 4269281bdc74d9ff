//! A model: a graph with its name, IR version, metadata, source text and weights.

use std::path::Path;
use std::sync::Arc;

use compact_str::CompactString;
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashSet;

use super::Graph;
use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use crate::weights::Weights;

/// The version of the IR format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IrVersion {
    /// Without metadata of layers and ports.
    V10,
    /// With `rt_info` on layers and ports.
    V11,
}

/// An OpenVINO model.
///
/// It keeps the text it was read from, so that what nobody changed is written as it was.
#[derive(Clone, Debug)]
pub struct Model {
    /// The layers and wires.
    pub graph: Graph,
    /// The bytes of its constants.
    pub weights: Weights,
    pub(crate) name: Option<CompactString>,
    pub(crate) version: IrVersion,
    /// No `Arc<str>`, which would be one more copy of a text that was read from a file.
    pub(crate) source: Arc<String>,
    /// Children of the root besides layers, edges and `rt_info`.
    pub(crate) extras: Vec<Span>,
    /// The layers whose shapes are computed from values that come out of a ConvertPromoteTypes, in their bodies too:
    /// OpenVINO evaluates none, and so more is known of them without it. `None` until types and shapes are inferred.
    pub(crate) withheld: Option<FxHashSet<NodeIndex>>,
}

impl Model {
    /// Reads a model and looks for its weights beside it, in the file of the same name that ends in `.bin`.
    ///
    /// # Errors
    /// [`ReadError::Io`](crate::ReadError::Io) where the file cannot be read,
    /// [`ReadError::Model`](crate::ReadError::Model) with everything that is wrong in it where it is not a model.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, crate::ReadError> {
        let path = path.as_ref();
        let source = Arc::new(crate::xml::load(path)?);
        let reading = crate::xml::parse(source.clone());
        let mut diagnostics = Diagnostics::new(path, source);
        diagnostics.list = reading.diagnostics;
        match reading.model {
            Some(mut model) if !diagnostics.has_errors() => {
                model.weights = Weights::beside(path)?;
                Ok(model)
            }
            _ => Err(diagnostics.into()),
        }
    }

    /// Reads a model from text. It has no weights until [`weights`](Self::weights) is set.
    ///
    /// # Errors
    /// Everything that is wrong in it. Warnings are not errors; [`parse`](crate::xml::parse) gives them too.
    ///
    /// # Examples
    /// ```
    /// let model = typelift::Model::from_xml(r#"<net name="empty" version="11"><layers/></net>"#)?;
    /// assert_eq!(model.name(), "empty");
    /// # Ok::<(), typelift::Diagnostics>(())
    /// ```
    pub fn from_xml(source: impl Into<String>) -> Result<Self, Diagnostics> {
        let source = Arc::new(source.into());
        let reading = crate::xml::parse(source.clone());
        match reading.model {
            Some(model) if !reading.diagnostics.iter().any(Diagnostic::is_error) => Ok(model),
            _ => Err(Diagnostics { list: reading.diagnostics, ..Diagnostics::new("<memory>", source) }),
        }
    }

    /// Its name; empty where the file gives none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The version of its format.
    pub fn version(&self) -> IrVersion {
        self.version
    }

    /// The text it was read from.
    pub fn source(&self) -> &Arc<String> {
        &self.source
    }
}
