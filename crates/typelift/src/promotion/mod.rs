//! Type promotion: the choice of types for inputs that must agree, and the passes that insert, lower and remove
//! Converts.
//!
//! The input is a model whose types may disagree. In the result every conversion is a Convert layer. `align` decides
//! and changes nothing; [`passes`] edits and is verified afterwards.
//!
//! Worked example: `Add(x: f16, y: f32)` is an error for OpenVINO. With its own rules `x` must become f32, so `align`
//! names that input, and the pass of the same name puts `Convert {f32}` in front of it.

pub(crate) mod align;
pub mod passes;
