//! Tensor element types and the rules by which frameworks find the common type of two of them.
#![no_std]

mod element_type;
pub mod openvino;

pub use element_type::{ElementType, Kind};
