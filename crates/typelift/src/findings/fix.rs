//! Fixes of a finding, as data.

use std::path::PathBuf;

use serde::Serialize;
use typelift_promote::ElementType;

use super::edit::describe_edits;
use super::{Diagnostic, Message, TextEdit};
use crate::base::span::Span;
use crate::model::graph::LayerId;

/// A change that would fix a finding. `Display` describes it without naming a command or option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// The change.
    pub action: FixAction,
    /// The level of trust in the change.
    pub applicability: Applicability,
    /// The evidence that a safe change is the intended one.
    pub proof: Option<Proof>,
}

/// Evidence that an edit is the intended one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Proof {
    /// Kind of evidence.
    pub kind: Message,
    /// Other edits that were tried and fail, such as `axis="2"`.
    pub rivals: Vec<String>,
}

impl Proof {
    pub(crate) fn new(kind: impl Into<Message>) -> Self {
        Self { kind: kind.into(), rivals: Vec::new() }
    }
}

/// Level of trust in a [`Fix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// The change was not tried, or is advice for a person.
    DisplayOnly,
    /// The change was tried and fixes the finding, but another change might be intended. A person must decide.
    Possible,
    /// The change was tried, and the file shows that it is the intended one. A program may apply it.
    Safe,
}

/// Change that a [`Fix`] proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FixAction {
    /// Advice in words, for a change that no program can make.
    Advise(Message),
    /// Adds attributes.
    Add {
        /// The attributes, with their values if these are known.
        attributes: Vec<(String, Option<String>)>,
        /// The element to add them to.
        to: Owner,
    },
    /// Adds an edge.
    AddEdge {
        /// The layer and port where the edge starts.
        from: (LayerId, u64),
        /// The layer and port where the edge ends.
        to: (LayerId, u64),
        /// Description of the layer where the edge starts.
        producer: Message,
    },
    /// Edits of the text.
    Edit {
        /// The replacements.
        edits: Vec<TextEdit>,
        /// Description of the edits as a clause.
        words: String,
    },
    /// Inserts Converts so that element types agree ([`infer_aligned`](crate::passes::infer_aligned)).
    Align,
    /// Inserts Converts under other promotion rules, which find a common type.
    AlignBy {
        /// The promotion rules.
        rules: Rules,
        /// True if several inputs get another type.
        several: bool,
        /// The common type.
        to: ElementType,
    },
    /// Converts the model by a [`Conversion`](crate::convert::Conversion) that was tried.
    Convert {
        /// The promotion rules; `None` for the types that the ports declare.
        rules: Option<Rules>,
        /// The types of each Convert that is inserted before the layer: from and to.
        inserts: Vec<(ElementType, ElementType)>,
        /// True if the conversion succeeds at once; false if the model has other errors to fix first.
        succeeds: bool,
    },
    /// Corrects the declared types and shapes of all ports.
    RefreshPorts,
    /// Writes the model for the target release ([`retarget`](crate::Model::retarget)).
    Retarget,
    /// Inserts a Convert after a Parameter, so that the layers after it keep their types
    /// ([`convert_input`](crate::Model::convert_input)).
    ConvertInput,
    /// Changes the precision of the model, except of the layers at risk
    /// ([`KeepPattern::AtRisk`](crate::precision::KeepPattern::AtRisk)).
    Keep {
        /// The new type of the other layers, instead of i64 if it is i32, else of f32.
        to: ElementType,
    },
    /// Applies the built-in rules of this name ([`library`](crate::rewrite::library)).
    Rewrite(&'static str),
    /// Applies statements ([`Script`](crate::rewrite::Script)).
    Statements(Vec<String>),
    /// Chooses one of these settings of the command, each a name and a value.
    Settings(Vec<(&'static str, String)>),
    /// Reads the weights from another file.
    ReadWeights(PathBuf),
}

/// Promotion rules that a conversion can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The name of the promotion rules.
    pub name: &'static str,
    /// The required setting of the rules; `None` for the defaults.
    pub setting: Option<&'static str>,
}

/// Element that lacks attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// The element at the position of the finding.
    Here,
    /// The `<data>` of the layer.
    Data,
    /// The `<data>` of the layer, which is missing too.
    NewData,
    /// The element with this name.
    Element(String),
}

pub(crate) fn replaced_by(to: ElementType) -> ElementType {
    if to == ElementType::I32 { ElementType::I64 } else { ElementType::F32 }
}

impl FixAction {
    pub(crate) fn is_of_text(&self) -> bool {
        matches!(self, Self::Advise(_) | Self::Add { .. } | Self::AddEdge { .. } | Self::Edit { .. })
    }
}

impl Fix {
    pub(crate) fn untried(action: FixAction) -> Self {
        Self { action, applicability: Applicability::DisplayOnly, proof: None }
    }

    /// An action that adds attributes. A person must choose their values.
    pub(crate) fn add<'n>(names: impl IntoIterator<Item = &'n str>, to: Owner) -> Self {
        let attributes = names.into_iter().map(|name| (name.to_owned(), None)).collect();
        Self::untried(FixAction::Add { attributes, to })
    }

    pub(crate) fn settings(all: &[(&'static str, &str)]) -> Self {
        Self::untried(FixAction::Settings(all.iter().map(|&(name, value)| (name, value.to_owned())).collect()))
    }

    /// A fix that was tried, without evidence that it is the intended one.
    pub(crate) fn possible(action: FixAction) -> Self {
        Self { action, applicability: Applicability::Possible, proof: None }
    }

    /// A fix from edits of `source` that were tried, for a finding of the layer at `home`. It is safe if there
    /// is a proof.
    pub(crate) fn edit(source: &str, home: Option<Span>, edits: Vec<TextEdit>, proof: Option<Proof>) -> Self {
        let words = describe_edits(source, home, &edits);
        let applicability = if proof.is_some() { Applicability::Safe } else { Applicability::Possible };
        Self { action: FixAction::Edit { edits, words }, applicability, proof }
    }
}

impl<T: Into<Message>> From<T> for Fix {
    fn from(advice: T) -> Self {
        Self::untried(FixAction::Advise(advice.into()))
    }
}

impl Diagnostic {
    /// Returns the finding with one more fix.
    #[must_use]
    pub fn help(mut self, fix: impl Into<Fix>) -> Self {
        self.fixes.reserve_exact(1);
        self.fixes.push(fix.into());
        self
    }

    /// Returns the text edits of its safe fix, if there is one.
    pub fn edits(&self) -> Option<&[TextEdit]> {
        self.fixes.iter().find_map(|fix| match &fix.action {
            FixAction::Edit { edits, .. } if fix.applicability == Applicability::Safe => Some(&edits[..]),
            _ => None,
        })
    }

    pub(crate) fn proof(&self) -> Option<&Proof> {
        self.fixes.iter().find_map(|fix| fix.proof.as_ref())
    }

    /// Replaces all advice and text edits; other fixes are kept.
    pub(crate) fn replace_help(&mut self, help: Vec<Fix>) {
        self.fixes.retain(|fix| !fix.action.is_of_text());
        self.fixes.splice(0..0, help);
    }

    pub(crate) fn actions(&self) -> impl Iterator<Item = &Fix> {
        self.fixes.iter().filter(|fix| !fix.action.is_of_text())
    }

    /// Removes the fixes that change the model instead of the text.
    pub(crate) fn remove_actions(&mut self) {
        self.fixes.retain(|fix| fix.action.is_of_text());
    }
}
