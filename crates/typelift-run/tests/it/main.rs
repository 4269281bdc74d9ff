//! All tests of the crate are one binary, because linking is most of a test's cost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod execution;
mod reduce;
mod verify;
