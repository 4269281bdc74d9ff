//! Lists the layers of a model with the types and shapes of their outputs: `cargo run --example list -- model.xml`
#![allow(clippy::print_stdout, reason = "what is listed is for reading")]

use typelift::{Model, infer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path =
        std::env::args().nth(1).unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml").into());
    let mut model = Model::open(path)?;
    for found in infer(&mut model) {
        println!("{found}");
    }
    for layer in model.graph().layers() {
        println!("{layer:?}");
    }
    Ok(())
}
