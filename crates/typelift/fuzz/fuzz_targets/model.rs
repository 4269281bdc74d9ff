//! Any bytes as a model: the laws of `tests/it/survival`.
//!
//! From `crates/typelift`, starting with the fixtures and the stored corpus: `mkdir -p fuzz/new && cargo +nightly fuzz
//! run model fuzz/new fuzz/corpus/model ../../testdata/fixtures`
#![no_main]

#[path = "../../tests/it/survival/mod.rs"]
mod survival;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    survival::survive(bytes.to_vec());
});
