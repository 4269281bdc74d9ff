//! Answers about a model, or about a pair of models, as data.
//!
//! An inferred model goes in. The answers are how a type came to be ([`why`](crate::why())), what the model consists of ([`stats`](crate::stats())), its
//! blocks ([`blocks`]), where it keeps which precision ([`map`]), or what differs between two models ([`diff`](crate::diff())). Nothing here changes a model.
//!
//! Worked example: a tensor is f32 although its inputs are f16. [`why`](crate::why()) names the Convert in between, the layer that
//! asked for it, and the attribute that decided.

pub mod blocks;
pub(crate) mod diff;
pub mod map;
pub(crate) mod shown;
pub(crate) mod stats;
pub(crate) mod why;

pub use crate::edit::metadata::InfoChange;
pub use diff::{
    BlockChange, Change, ChangeKind, Consequence, Diff,
    alike::Alike,
    story::StoryLine,
    values::{ValueChange, ValueError},
};
pub use stats::{
    Decompressed, LargeTensor, OperationCount, SchemeCount, SimulatedCount, StateStats, Stats, Tensor, TypeCount,
    Weight,
};
pub use why::{Derivation, Origin, Origins, Premise, Rule, Step};
