//! Any bytes as a model: the laws of `tests/it/survival`.
//!
//! From `crates/typelift`, with the fixtures to begin with:
//! `mkdir -p fuzz/corpus/model && cp ../../testdata/fixtures/*/*.xml fuzz/corpus/model && cargo +nightly fuzz run model`
#![no_main]

#[path = "../../tests/it/survival/mod.rs"]
mod survival;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    survival::survive(bytes.to_vec());
});
