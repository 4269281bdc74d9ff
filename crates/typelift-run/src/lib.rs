//! What models compute when they run.
//!
//! - [`verify`] runs two models on an installed OpenVINO and says where their values part.
//! - [`reduce`] makes a model smaller as long as it shows what it showed.
//! - [`execution`] reads the execution graph of a plugin and says what it made of each layer.
//!
//! Nothing here starts a process: the caller passes a [`verify::Runner`], or the condition that a reduced model must meet.

pub mod execution;
pub mod reduce;
pub mod verify;

/// The example of the README, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
