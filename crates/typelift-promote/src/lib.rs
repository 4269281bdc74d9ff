//! Tensor element types, and the promotion rules of OpenVINO, PyTorch, PaddlePaddle, NumPy and JAX: which common type
//! and shape their operands get.
//!
//! Every function is pure and does not allocate. The only dependency is optional: with the feature `serde`, types are
//! serialized by their OpenVINO names and dimensions as they print.
//!
//! * [`ElementType`]: the element types, with each system's [spellings](Spelling).
//! * [`openvino`], [`pytorch`], [`paddle`], [`numpy`], [`jax`]: one rule set each, as the packages behave, including
//!   what they refuse.
//! * [`RuleSet`]: one interface to all of them, for tools that let the user choose.
//! * [`broadcast`]: broadcasting of shapes, [`Dim`] by dimension.
//! * [`fidelity`](fn@fidelity): the possible losses of a conversion.
//!
//! ```
//! use typelift_promote::{RuleSet, fidelity};
//!
//! let answer = |rules: &str, a, b| {
//!     let rules = RuleSet::from_name(rules)?;
//!     let operands = [rules.operand(a).ok()?, rules.operand(b).ok()?];
//!     Some(rules.promote("add", &operands).ok()?.result)
//! };
//! let f16 = answer("pytorch", "f16[2]", "i64[2]").unwrap();
//! assert_eq!(answer("openvino", "f16[2]", "i64[2]"), None); // promote_unsafe is not set
//! assert_eq!(fidelity(typelift_promote::ElementType::I64, f16).unwrap().to_string(), "rounds, overflows");
//! ```
#![no_std]

pub mod broadcast;
mod derivation;
mod dim;
mod element_type;
mod fidelity;
mod operand;
mod operation;
mod refusal;
mod rule_set;
mod rules;
#[cfg(feature = "serde")]
mod serialize;
mod sets;
mod spelling;
mod suggestion;

pub use broadcast::Clash;
pub use derivation::Step;
pub use dim::Dim;
pub use element_type::{ElementType, FloatFormat, Kind, Specials};
pub use fidelity::{Fidelity, Loss, fidelity};
pub use operand::{Category, Literal, Operand, Operands, Promotion};
pub use operation::{Operation, ShapeRule};
pub use refusal::{Reason, Refusal, System};
pub use rule_set::OperandError;
pub use rules::{Facts, PromotedAs, Rules, Setting};
pub use sets::*;
pub use spelling::Spelling;
pub use suggestion::{FlagSpelling, Suggestion};

/// Examples of the README, which run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
