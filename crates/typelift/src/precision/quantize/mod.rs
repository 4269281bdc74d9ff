//! Weight-only quantization without data, as nncf's `compress_weights` does it: codes, scales and zero points, bit for bit.
//!
//! A [`Quantization`] says what is wanted. [`QuantizationPlan::of`] says what becomes of each constant, and why, before
//! anything is changed. The plan can be edited, written to a file and read again. [`QuantizationPlan::apply`] makes the edits.
//! Codes are computed when the model is saved, a block at a time, so memory does not grow with the model.

mod apply;
mod file;
mod grid;
mod mode;
mod numbers;
mod order;
mod plan;
mod report;
mod select;
mod source;

pub use self::file::PlanError;
pub use self::mode::{Backup, Fallback, Group, Mode};
pub use self::plan::{Choice, Quantization, QuantizationPlan, QuantizedConstant, Request, Rule};
pub use self::report::QuantizationLoss;
