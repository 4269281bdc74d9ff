//! One binary for every test of the crate: linking is most of what a test costs.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and print counts")]

mod docs;
mod fidelity;
mod laws;
mod matrices;
mod oracle;
// A package has no dependency on itself, which turns the feature on here.
#[cfg(feature = "serde")]
mod serde;
