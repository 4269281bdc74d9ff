//! Answers about a model, or about a pair of models, as data.
//!
//! An inferred model goes in. The answers are how a type came to be ([`why`]), what the model consists of ([`stats`]), its
//! blocks ([`blocks`]), where it keeps which precision ([`map`]), or what differs between two models ([`diff`]). Nothing here changes a model.
//!
//! Worked example: a tensor is f32 although its inputs are f16. [`why`] names the Convert in between, the layer that
//! asked for it, and the attribute that decided.

pub mod blocks;
pub mod diff;
pub mod map;
pub mod stats;
pub mod why;
