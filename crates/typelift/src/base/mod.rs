//! Helpers that know nothing of models: files and paths, places in a text, text as numbers, progress, threads, spelling.
//!
//! Every other folder of the library may use them. They use nothing but each other.
//!
//! Worked example: a reader finds `shape="2,x"`. It asks [`number`] for the integer, [`span`] for the line and column
//! of the `x`, and [`names`] for the word that was meant.

pub(crate) mod file;
pub(crate) mod foreign;
pub(crate) mod hash;
pub(crate) mod name_pattern;
pub(crate) mod names;
pub(crate) mod number;
pub(crate) mod parallel;
pub mod progress;
pub mod span;
