//! Laws that hold for arbitrary bytes as a file of arrays and as a plan of quantization, for tests and fuzz targets.

use std::io::Write;

use typelift::precision::quantize::Choice;
use typelift::rewrite::Script;
use typelift::{Model, Weights};

const MODEL: &str = "
    x = Parameter : f32[2]
    c = Const([1, 2]) : f32[2]
    y = Multiply(x, c)
    r = Result(y)
";

/// Reads bytes as each of these files. Nothing panics, and values beyond the memory limit are refused. Returns true if a
/// file was read.
pub(crate) fn survive(bytes: &[u8]) -> bool {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for a file");
    // A back slash begins an escape in a quoted name.
    let path = file.path().display().to_string().replace('\\', "/");
    let is_set = |array: &String| {
        let script: Script = format!("set c = {array}").parse().expect("a statement");
        let mut model = Model::from_text(MODEL).expect("a model");
        model.set_weights(Weights::from_bytes(model.weights().read(0, 8).expect("two values")).with_memory(1 << 20));
        script.run(model).is_ok()
    };
    let arrays = [format!("npy(\"{path}\")"), format!("safetensors(\"{path}\", \"w\")")];
    let is_array = arrays.iter().any(is_set);
    is_array | str::from_utf8(bytes).is_ok_and(|text| Choice::parse(text).is_ok())
}
