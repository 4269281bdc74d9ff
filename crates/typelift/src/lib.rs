//! Read, infer, rewrite and write OpenVINO IR graphs without OpenVINO.

mod array;
mod check;
pub mod diagnostic;
mod file;
pub mod graph;
mod infer;
mod interface;
pub mod loss;
pub mod notation;
mod number;
pub mod ops;
pub mod passes;
pub mod save;
pub mod shape;
pub mod span;
mod spelling;
mod verbs;
pub mod weights;
pub mod why;
pub mod xml;

pub use check::{check, check_after, unknown_operations};
pub use diagnostic::{Code, Diagnostic, Diagnostics, Severity};
pub use graph::{Graph, Input, IrVersion, Layer, LayerId, Model, Output};
pub use infer::infer;
pub use interface::{End, InterfaceError, trace_changes};
pub use passes::infer_aligned;
pub use save::{SaveError, SaveOptions, WeightsMode};
pub use span::Span;
pub use typelift_promote as promote;
pub use verbs::Element;
pub use weights::Weights;
pub use why::why;
pub use xml::ReadError;
