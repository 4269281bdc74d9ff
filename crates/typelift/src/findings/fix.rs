//! Fixes of a finding, as data.

use std::path::PathBuf;

use serde::Serialize;
use typelift_promote::ElementType;

use super::words::{describe_edits, said};
use super::{Diagnostic, TextEdit};
use crate::base::span::Span;
use crate::model::graph::LayerId;

/// A change that would fix a finding. It prints as a sentence that names no option and no command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// The change.
    pub action: FixAction,
    /// The tools that may make the change.
    pub applicability: Applicability,
    /// The proof that the change is meant, if it is safe.
    pub proof: Option<Proof>,
}

/// Proof that an edit is what was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Proof {
    /// Kind of the proof, in words.
    pub kind: String,
    /// Other edits that were tried and fail: `axis="2"`.
    pub rivals: Vec<String>,
}

impl Proof {
    /// Creates a proof without rivals.
    pub(crate) fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), rivals: Vec::new() }
    }
}

/// The level of trust in a [`Fix`], and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// The change is only described, or was not tried.
    DisplayOnly,
    /// The change was tried and fixes the finding, but something else can be meant. A person decides.
    Possible,
    /// The file itself shows that the change is meant, and nothing else fits. A program may make it.
    Safe,
}

/// A change that a [`Fix`] makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FixAction {
    /// Advice that only words can give.
    Advise(String),
    /// Adds attributes.
    Add {
        /// The names of the attributes, with known values.
        attributes: Vec<(String, Option<String>)>,
        /// The element that lacks them.
        to: Owner,
    },
    /// Adds an edge.
    AddEdge {
        /// The layer and port where it starts.
        from: (LayerId, u64),
        /// The layer and port where it ends.
        to: (LayerId, u64),
        /// The layer where it starts, for people.
        producer: String,
    },
    /// Replaces parts of the text.
    Edit {
        /// The replacements.
        edits: Vec<TextEdit>,
        /// The replacements as a clause.
        words: String,
    },
    /// Inserts Converts so that element types agree ([`infer_aligned`](crate::infer_aligned)).
    Align,
    /// Inserts Converts by other promotion rules, which give the inputs a type.
    AlignBy {
        /// The promotion rules.
        rules: Rules,
        /// True if several inputs get the type.
        several: bool,
        /// The type that they get.
        to: ElementType,
    },
    /// Converts the model, which was tried ([`Conversion`](crate::Conversion)).
    Convert {
        /// The promotion rules; `None` for the types that the ports declare.
        rules: Option<Rules>,
        /// The Converts that are inserted before the layer, each with the types that it converts from and to.
        inserts: Vec<(ElementType, ElementType)>,
        /// True if the model has no other errors, which have to be fixed first.
        succeeds: bool,
    },
    /// Writes every port as inferred.
    RefreshPorts,
    /// Writes the model for the release that was asked for ([`retarget`](crate::Model::retarget)).
    Retarget,
    /// Converts an input after its Parameter instead of giving all that follows its type
    /// ([`convert_input`](crate::Model::convert_input)).
    ConvertInput,
    /// Lets layers keep their types where the model gets others: their paths, as
    /// [`KeepPattern`](crate::precision::KeepPattern) takes them.
    Keep(Vec<String>),
    /// Applies the built-in rules of this name ([`library`](crate::rewrite::library)).
    Rewrite(&'static str),
    /// Reads the weights from this file.
    ReadWeights(PathBuf),
}

/// Promotion rules that a conversion can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a rule set and its setting are all there is to choose")]
pub struct Rules {
    /// The name of the rule set.
    pub name: &'static str,
    /// The setting of the rule set that is needed; `None` for its defaults.
    pub setting: Option<&'static str>,
}

/// The element that lacks attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// The element that the finding points at.
    Here,
    /// Returns the `<data>` of the layer.
    Data,
    /// A `<data>` that the layer does not have either.
    NewData,
    /// An element of this name.
    Element(String),
}

impl FixAction {
    /// True if the action is of the text alone: words about it, or edits.
    fn is_of_text(&self) -> bool {
        matches!(self, Self::Advise(_) | Self::Add { .. } | Self::AddEdge { .. } | Self::Edit { .. })
    }
}

impl Fix {
    /// Returns a change that was not tried.
    pub(crate) fn untried(action: FixAction) -> Self {
        Self { action, applicability: Applicability::DisplayOnly, proof: None }
    }

    /// Attributes to add, without their values.
    pub(crate) fn add<'n>(names: impl IntoIterator<Item = &'n str>, to: Owner) -> Self {
        let attributes = names.into_iter().map(|name| (name.to_owned(), None)).collect();
        Self::untried(FixAction::Add { attributes, to })
    }

    /// Returns a change that was tried and may be what was meant.
    pub(crate) fn possible(action: FixAction) -> Self {
        Self { action, applicability: Applicability::Possible, proof: None }
    }

    /// Edits of this text that were tried, for a finding about the layer at `home`. With a proof they are safe.
    pub(crate) fn edit(source: &str, home: Option<Span>, edits: Vec<TextEdit>, proof: Option<Proof>) -> Self {
        let words = describe_edits(source, home, &edits);
        let applicability = if proof.is_some() { Applicability::Safe } else { Applicability::Possible };
        Self { action: FixAction::Edit { edits, words }, applicability, proof }
    }
}

impl From<String> for Fix {
    fn from(advice: String) -> Self {
        Self::untried(FixAction::Advise(said(advice)))
    }
}

impl From<&str> for Fix {
    fn from(advice: &str) -> Self {
        advice.to_owned().into()
    }
}

impl Diagnostic {
    /// Returns the same, with a fix or advice.
    #[must_use]
    pub fn help(mut self, fix: impl Into<Fix>) -> Self {
        self.fixes.reserve_exact(1);
        self.fixes.push(fix.into());
        self
    }

    /// Returns the edits of the text that fix it, if they are safe.
    pub fn edits(&self) -> Option<&[TextEdit]> {
        self.fixes.iter().find_map(|fix| match &fix.action {
            FixAction::Edit { edits, .. } if fix.applicability == Applicability::Safe => Some(&edits[..]),
            _ => None,
        })
    }

    /// Returns the proof that the safe edits are what was meant.
    pub fn proof(&self) -> Option<&Proof> {
        self.fixes.iter().find_map(|fix| fix.proof.as_ref())
    }

    /// Replaces advice and edits, and keeps other actions.
    pub(crate) fn replace_help(&mut self, help: Vec<Fix>) {
        self.fixes.retain(|fix| !fix.action.is_of_text());
        self.fixes.splice(0..0, help);
    }

    /// True if it has advice or edits.
    pub(crate) fn has_help(&self) -> bool {
        self.fixes.iter().any(|fix| fix.action.is_of_text())
    }

    /// Returns the actions on the model: all fixes but advice and edits.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Fix> {
        self.fixes.iter().filter(|fix| !fix.action.is_of_text())
    }

    /// Removes the actions on the model.
    pub(crate) fn remove_actions(&mut self) {
        self.fixes.retain(|fix| fix.action.is_of_text());
    }
}
