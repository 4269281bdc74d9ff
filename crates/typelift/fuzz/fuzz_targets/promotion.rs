//! Any text as operands under every rule set, and as a shape: the laws of `tests/it/promotion_survival.rs`.
//!
//! From `crates/typelift`: `cargo +nightly fuzz run promotion`
#![no_main]

#[path = "../../tests/it/promotion_survival.rs"]
mod promotion_survival;

libfuzzer_sys::fuzz_target!(|text: &str| promotion_survival::survive(text));
