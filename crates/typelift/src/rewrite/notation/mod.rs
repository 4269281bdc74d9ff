//! Notation of graphs. [`Display`](std::fmt::Display) of a model, a graph or a layer prints it,
//! [`Model::from_text`](crate::Model::from_text) parses it, and [rules](crate::rewrite) are written in it.
//!
//! Each layer is one line: its id and name, the operation with its inputs, the attributes that differ from their
//! defaults, and the output types and shapes. Small constants show their values, and bodies are indented under their
//! layers.
//!
//! ```
//! let model = typelift::Model::from_text("
//!     0 x = Parameter : f32[?,3]
//!     1 half = Const(0.5) : f32[]
//!     2 y = Multiply(0, 1)
//!     3 out = Result(2)
//! ")?;
//! assert_eq!(model.to_string().lines().nth(2), Some("2 y = Multiply(0, 1) : f32[?,3]"));
//! # Ok::<(), typelift::rewrite::notation::NotationError>(())
//! ```

mod error;
mod lex;
mod listing;
mod print;
mod read;
mod value;

pub(crate) use crate::base::quoted::Quoted;
pub use error::NotationError;
pub(crate) use error::pointer;
pub(crate) use lex::Cursor;

/// Returns a text in quotes, as statements read it.
#[must_use]
pub fn quoted(text: &str) -> String {
    Quoted::text(text).to_string()
}

/// Returns a name as statements read it: in quotes if it has other characters than a bare name.
#[must_use]
pub fn quoted_name(name: &str) -> String {
    Quoted::name(name).to_string()
}

pub(crate) use listing::{attribute_value, element_type, shape, tensor_type, word};
pub use print::{Line, body_line};
pub(crate) use value::{Literal, number, print as print_values};
