//! The subject of a finding, as data.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::model::graph::{Direction, LayerId};

/// Details of a finding beyond its code, its layer and its places. Causes and consequences are matched by these
/// details, never by words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// Code, layer and places say all there is.
    #[default]
    Plain,
    /// Attributes that an element must have and does not.
    Missing {
        /// The name of the element.
        element: String,
        /// The attributes.
        attributes: Vec<Cow<'static, str>>,
        /// The attribute that the element has and that is most likely the one meant.
        written: Option<String>,
        /// The number of further elements that lack the same attributes.
        more: usize,
    },
    /// An attribute that the operation requires and the layer does not have.
    Assumed {
        /// The attribute.
        attribute: &'static str,
        /// The value that OpenVINO assumes.
        value: &'static str,
    },
    /// An attribute that the operation or element does not have.
    Unknown {
        /// The attribute.
        attribute: String,
        /// The attribute that is most likely meant.
        meant: Option<String>,
    },
    /// An element that the format does not have at its place.
    Element {
        /// The name.
        element: String,
        /// The element that is most likely meant.
        meant: Option<&'static str>,
    },
    /// The value of an attribute of an element of the graph that cannot be read.
    Unreadable {
        /// The attribute.
        attribute: String,
    },
    /// The declaration of a port.
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
    /// The refusal of an operation.
    Refusal {
        /// The inputs, by position.
        inputs: SmallVec<[usize; 2]>,
        /// The attribute.
        attribute: Option<&'static str>,
        /// True if the length of a list differs from the number of spatial axes.
        counts_axes: bool,
    },
}

impl About {
    /// Returns an attribute that an element lacks.
    pub(crate) fn missing(element: &str, attributes: Vec<Cow<'static, str>>, written: Option<String>) -> Self {
        Self::Missing { element: element.to_owned(), attributes, written, more: 0 }
    }

    /// Returns the attribute that is meant where another one is written.
    pub(crate) fn meant_attribute(&self) -> Option<&str> {
        if let Self::Unknown { meant, .. } = self { meant.as_deref() } else { None }
    }

    /// Returns the element that is meant where another one is written.
    pub(crate) fn meant_element(&self) -> Option<&'static str> {
        if let Self::Element { meant, .. } = self { *meant } else { None }
    }

    /// True if both say that elements of one name lack the same attributes.
    pub(crate) fn lacks_as(&self, other: &Self) -> bool {
        let Self::Missing { element, attributes, written, .. } = self else { return false };
        matches!(other, Self::Missing { element: e, attributes: a, written: w, .. }
            if (e, a, w) == (element, attributes, written))
    }

    /// True if the finding concerns this attribute.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        match self {
            Self::Missing { attributes, .. } => attributes.iter().any(|attribute| attribute == name),
            Self::Assumed { attribute, .. } => *attribute == name,
            Self::Unknown { attribute, .. } | Self::Unreadable { attribute } => attribute == name,
            Self::Refusal { attribute, .. } => *attribute == Some(name),
            Self::Plain | Self::Element { .. } | Self::Port { .. } | Self::Edge { .. } => false,
        }
    }
}
