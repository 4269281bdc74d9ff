//! Tensor element types and the rules by which frameworks find the common type of two of them.
#![no_std]

mod derivation;
mod element_type;
mod fidelity;
pub mod openvino;
mod operand;
pub mod paddle;
pub mod pytorch;

pub use derivation::Step;
pub use element_type::{ElementType, Kind};
pub use fidelity::{Fidelity, Loss, fidelity};
pub use operand::{Category, Operand, Promotion};
