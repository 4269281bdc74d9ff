//! Any bytes as a file of arrays and as a plan of quantization: the laws of `tests/it/files_survival.rs`. And as an execution
//! graph, which is read or refused.
//!
//! From `crates/typelift`: `mkdir -p fuzz/new && cargo +nightly fuzz run files fuzz/new`
#![no_main]

#[path = "../../tests/it/files_survival.rs"]
mod files_survival;

use std::path::Path;

use typelift_run::execution::Execution;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    files_survival::survive(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        drop(Execution::read(Path::new("execution.xml"), text.to_owned()));
    }
});
