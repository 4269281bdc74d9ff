//! Commands of the program that do something about a finding, as data.

use typelift_promote::ElementType;

/// A command that fixes what a finding is about, as it is pasted into a shell. It prints as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the program that offers a command makes it")]
pub struct Command {
    /// The command.
    pub line: String,
    /// What it does.
    pub effect: Effect,
    /// Whether it succeeds now: other errors may have to be fixed first.
    pub succeeds: bool,
}

/// What a command does about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Every port is written as inferred.
    RefreshesPorts,
    /// Element types agree with it.
    MakesTypesAgree,
    /// Inserts Converts before the layer, from one type to another.
    InsertsConverts(Vec<(ElementType, ElementType)>),
}
