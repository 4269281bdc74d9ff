//! Details of a finding, as data.

use std::borrow::Cow;

use serde::Serialize;
use smallvec::SmallVec;

use crate::model::graph::{Direction, LayerId, Place};

/// Details of a finding in addition to its code, layer and positions. Causes and consequences are matched by these
/// details, never by the text of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// There are no further details.
    #[default]
    Plain,
    /// Attributes that an element lacks.
    Missing {
        /// The name of the element.
        element: String,
        /// The attributes.
        attributes: Vec<Cow<'static, str>>,
        /// The attribute of the element that most likely is a misspelling of the missing one.
        written: Option<String>,
        /// The number of further elements that lack the same attributes.
        more: usize,
    },
    /// An attribute that the operation requires and the layer lacks.
    Assumed {
        /// The attribute.
        attribute: &'static str,
        /// The value that OpenVINO assumes.
        value: &'static str,
    },
    /// An attribute that does not exist for the operation or element.
    Unknown {
        /// The attribute.
        attribute: String,
        /// The attribute that is most likely meant instead.
        meant: Option<String>,
    },
    /// An element that does not exist at its position in the format.
    Element {
        /// The name.
        element: String,
        /// The element that is most likely meant instead.
        meant: Option<&'static str>,
    },
    /// An attribute of a layer, port or edge whose value cannot be read.
    Unreadable {
        /// The attribute.
        attribute: String,
    },
    /// A port whose declaration is wrong.
    Port {
        /// The direction of the port.
        direction: Direction,
        /// The position.
        at: usize,
    },
    /// An edge: layers and ports by the ids that it names.
    Edge {
        /// The start.
        from: (LayerId, u64),
        /// The end.
        to: (LayerId, u64),
    },
    /// Subject of a finding for a program.
    Subject {
        /// The kind.
        kind: SubjectKind,
        /// The name.
        name: String,
    },
    /// All layers that a finding about the file concerns, each with its graph, in no order.
    Layers(Vec<(Place, LayerId)>),
    /// Inputs or attributes that the operation does not accept.
    Refusal {
        /// The positions of the inputs.
        inputs: SmallVec<[usize; 2]>,
        /// The attribute.
        attribute: Option<&'static str>,
        /// True if the error is that a list's length differs from the number of spatial axes.
        counts_axes: bool,
    },
}

/// Kind of thing that a finding for a program concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SubjectKind {
    /// A file beside the model.
    File,
    /// A key of the metadata or of a settings file.
    Key,
    /// An input of the model.
    Input,
    /// An output of the model.
    Output,
    /// The variables of the model.
    State,
}

impl About {
    pub(crate) fn missing(element: &str, attributes: Vec<Cow<'static, str>>, written: Option<String>) -> Self {
        Self::Missing { element: element.to_owned(), attributes, written, more: 0 }
    }

    /// The attribute that is most likely meant instead of an unknown or missing one.
    pub(crate) fn meant_attribute(&self) -> Option<&str> {
        if let Self::Unknown { meant, .. } = self { meant.as_deref() } else { None }
    }

    /// The element that is most likely meant instead of an unknown one.
    pub(crate) fn meant_element(&self) -> Option<&'static str> {
        if let Self::Element { meant, .. } = self { *meant } else { None }
    }

    pub(crate) fn lacks_as(&self, other: &Self) -> bool {
        let Self::Missing { element, attributes, written, .. } = self else { return false };
        matches!(other, Self::Missing { element: e, attributes: a, written: w, .. }
            if (e, a, w) == (element, attributes, written))
    }

    pub(crate) fn is_about(&self, name: &str) -> bool {
        match self {
            Self::Missing { attributes, .. } => attributes.iter().any(|attribute| attribute == name),
            Self::Assumed { attribute, .. } => *attribute == name,
            Self::Unknown { attribute, .. } | Self::Unreadable { attribute } => attribute == name,
            Self::Refusal { attribute, .. } => *attribute == Some(name),
            Self::Plain
            | Self::Layers(_)
            | Self::Element { .. }
            | Self::Port { .. }
            | Self::Edge { .. }
            | Self::Subject { .. } => false,
        }
    }
}
