//! Weight-only quantization without data, as nncf's `compress_weights` does it: codes, scales and zero points, bit for bit.
//!
//! A [`Quantization`] contains the settings. [`QuantizationPlan::of`] chooses a mode for each constant, with a reason,
//! and changes nothing. The plan can be edited, written to a file and read again. [`QuantizationPlan::apply`] makes
//! the edits. Codes are computed block by block when the model is saved, so memory does not grow with the model.

mod apply;
mod document;
mod file;
mod grid;
mod loss;
mod mode;
mod numbers;
mod order;
mod plan;
mod select;
mod source;

pub(crate) use self::apply::forget;
pub use self::file::PlanError;
pub use self::loss::QuantizationLoss;
pub use self::mode::{Backup, Fallback, Group, Mode};
pub use self::plan::{Choice, Quantization, QuantizationPlan, QuantizedConstant, Request, Rule};
