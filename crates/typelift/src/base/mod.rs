//! Helpers that are independent of models: files, positions in a text, parsing of numbers, progress, threads,
//! spelling.
//!
//! Every other folder of the library may use them. They use nothing but each other.
//!
//! Worked example: a reader finds `shape="2,x"`. It asks [`number`] for the integer, [`span`] for the line and column
//! of the `x`, and [`names`] for the known name nearest to a misspelled one.

pub(crate) mod file;
pub(crate) mod foreign;
pub(crate) mod hash;
pub(crate) mod name_pattern;
pub(crate) mod names;
pub(crate) mod number;
pub mod options;
pub(crate) mod parallel;
pub mod progress;
pub(crate) mod quoted;
pub(crate) mod span;
