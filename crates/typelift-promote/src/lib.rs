//! Tensor element types, and the rules by which OpenVINO, PyTorch and PaddlePaddle find the common type of two of them.
//!
//! Everything here is a pure function of types and ranks; nothing allocates, and nothing depends on anything.
//!
//! * [`ElementType`]: the types, with each system's spellings.
//! * [`openvino`], [`pytorch`], [`paddle`]: one rule set each, as the packages do it, refusals included.
//! * [`RuleSet`]: all of them behind one front, for tools that let the user choose.
//! * [`fidelity`](fn@fidelity): what a conversion can lose.
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

mod derivation;
mod element_type;
mod fidelity;
pub mod openvino;
mod operand;
pub mod paddle;
pub mod pytorch;
mod rule_set;

pub use derivation::Step;
pub use element_type::{ElementType, Kind};
pub use fidelity::{Fidelity, Loss, fidelity};
pub use operand::{Category, Operand, Promotion};
pub use rule_set::{OperandError, Refusal, RuleSet};
