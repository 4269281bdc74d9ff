//! Any bytes as a file of arrays, as a plan of quantization and as an execution graph: each is read or refused, within the
//! memory limit of the model.
//!
//! From `crates/typelift`: `mkdir -p fuzz/new && cargo +nightly fuzz run files fuzz/new fuzz/corpus/files`
#![no_main]

use std::io::Write;
use std::path::Path;

use typelift::precision::quantize::Choice;
use typelift::rewrite::Script;
use typelift::{Model, Weights};
use typelift_run::execution::Execution;

const MODEL: &str = "
    x = Parameter : f32[2]
    c = Const([1, 2]) : f32[2]
    y = Multiply(x, c)
    r = Result(y)
";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for a file");
    let path = file.path().display();
    for array in [format!("npy(\"{path}\")"), format!("safetensors(\"{path}\", \"w\")")] {
        let script: Script = format!("set c = {array}").parse().expect("a statement");
        let mut model = Model::from_text(MODEL).expect("a model");
        model.set_weights(Weights::from_bytes(model.weights().read(0, 8).expect("two values")).with_memory(1 << 20));
        drop(script.run(model));
    }
    if let Ok(text) = str::from_utf8(bytes) {
        drop(Choice::parse(text));
        drop(Execution::read(Path::new("execution.xml"), text.to_owned()));
    }
});
