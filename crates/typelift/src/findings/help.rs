//! What the author of a file can do about a finding, as data.

use super::edit::Mend;
use super::words::said;
use crate::model::graph::LayerId;

/// What the author of the file can do about a finding. It prints as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Help {
    /// Advice that only words can give.
    Advice(String),
    /// Attributes that are missing.
    Add {
        /// Their names, with the values that are known.
        attributes: Vec<(String, Option<String>)>,
        /// The element that they are missing in.
        to: Owner,
    },
    /// An edge that is missing, because its producer makes what the port declares and nothing uses it.
    AddEdge {
        /// The layer and port where it starts.
        from: (LayerId, u64),
        /// The layer and port where it ends.
        to: (LayerId, u64),
        /// The layer where it starts, for people.
        producer: String,
    },
    /// Edits of the text that mend it.
    Mend(Mend),
    /// Edits of the text each of which would mend it, and one of which may be what was meant.
    OneOf(Vec<Mend>),
}

/// The element that attributes are missing in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// The one that the finding points at.
    Here,
    /// The `<data>` of the layer.
    Data,
    /// A `<data>` that the layer does not have either.
    NewData,
    /// An element of this name.
    Element(String),
}

impl Help {
    /// Attributes to add, of which no value is known yet.
    pub(crate) fn add<'n>(names: impl IntoIterator<Item = &'n str>, to: Owner) -> Self {
        Self::Add { attributes: names.into_iter().map(|name| (name.to_owned(), None)).collect(), to }
    }

    /// Puts the value of an attribute in, where it is to be added and its value is not known.
    pub(crate) fn fill_in(&mut self, name: &str, text: &str) {
        let Self::Add { attributes, .. } = self else { return };
        for (_, value) in attributes.iter_mut().filter(|(known, value)| known == name && value.is_none()) {
            *value = Some(text.to_owned());
        }
    }
}

impl From<String> for Help {
    fn from(advice: String) -> Self {
        Self::Advice(said(advice))
    }
}

impl From<&str> for Help {
    fn from(advice: &str) -> Self {
        advice.to_owned().into()
    }
}
