//! Makes an image model accept bytes in camera order, and normalizes them inside: `cargo run --example preprocess --
//! model.xml INPUT out.xml`
#![allow(clippy::print_stdout, reason = "it says what it made")]

use typelift::graph::NewLayer;
use typelift::promote::ElementType;
use typelift::{Model, infer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [path, input, out] = &arguments[..] else { return Err("give MODEL INPUT OUT".into()) };
    let mut model = Model::open(path)?;
    if let Some(error) = infer(&mut model).into_iter().find(|found| found.is_error()) {
        return Err(error.message.to_string().into());
    }
    let id = model.find_input(input)?;
    let shape = model.graph().layer(id).and_then(|layer| layer.outputs()[0].shape().to_static());
    let Some(&[count, channels, height, width]) = shape.as_deref() else { return Err("no image comes in here".into()) };
    model.edit(|graph| {
        let mean = graph.constant_of(&[3], &[123.675_f32, 116.28, 103.53])?;
        let scale = graph.constant_of(&[3], &[58.395_f32, 57.12, 57.375])?;
        let order = graph.constant_of(&[4], &[0_i64, 3, 1, 2])?;
        graph.set_attribute(id, "element_type", "u8")?;
        graph.set_attribute(id, "shape", format!("{count},{height},{width},{channels}"))?;
        let transpose = graph.insert_after(id.output(0), NewLayer::new("Transpose", "opset1"), &[order])?;
        graph.insert_before(transpose.input(0), NewLayer::convert(ElementType::F32), &[])?;
        graph.insert_before(transpose.input(0), NewLayer::new("Subtract", "opset1"), &[mean])?;
        graph.insert_before(transpose.input(0), NewLayer::new("Divide", "opset1"), &[scale])
    })?;
    if let Some(error) = infer(&mut model).into_iter().find(|found| found.is_error()) {
        return Err(error.message.to_string().into());
    }
    model.save(out)?;
    println!("{out} takes u8[{count},{height},{width},{channels}] at {input}");
    Ok(())
}
