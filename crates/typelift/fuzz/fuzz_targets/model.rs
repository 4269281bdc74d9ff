//! Any bytes as a model: the laws of `tests/it/survival`.
//!
//! From `crates/typelift`, with the fixtures to begin with besides the corpus that is kept:
//! `mkdir -p fuzz/new && cargo +nightly fuzz run model fuzz/new fuzz/corpus/model ../../testdata/fixtures`
#![no_main]

#[path = "../../tests/it/survival/mod.rs"]
mod survival;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    survival::survive(bytes.to_vec());
});
