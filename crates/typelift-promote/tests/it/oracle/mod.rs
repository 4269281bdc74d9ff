//! Compares every cell of the tables in `testdata/oracle`, which were recorded by running the real packages.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers fail by panicking and print counts"
)]

mod expressions;
mod jax;
mod numpy;
mod openvino;
mod paddle;
mod pytorch;
mod tables;
