//! All tests of the crate are one binary, because linking is most of a test's cost.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and print counts")]

mod docs;
mod fidelity;
mod laws;
mod matrices;
mod oracle;
// A package cannot depend on itself, which would turn the feature on here.
#[cfg(feature = "serde")]
mod serde;
