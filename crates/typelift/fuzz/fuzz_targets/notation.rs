//! Any text as a listing, a rule and statements: the laws of `tests/it/notation_survival.rs`.
//!
//! From `crates/typelift`: `mkdir -p fuzz/new && cargo +nightly fuzz run notation fuzz/new fuzz/corpus/notation`
#![no_main]

#[path = "../../tests/it/notation_survival.rs"]
mod notation_survival;

libfuzzer_sys::fuzz_target!(|text: &str| notation_survival::survive(text));
