//! A custom pass: `x * sigmoid(x)` becomes one Swish, in bodies too: `cargo run --example swish -- model.xml out.xml`
#![allow(clippy::print_stdout, reason = "it says what it made")]

use typelift::edit::Edit;
use typelift::graph::{EditError, NewLayer};
use typelift::passes::{Pass, run};
use typelift::{Model, infer};

fn fuse(graph: &mut Edit<'_>) -> Result<(), EditError> {
    let products = graph.layers().filter(|layer| layer.ty() == "Multiply").map(|layer| layer.id());
    for product in products.collect::<Vec<_>>() {
        let [Some(left), Some(right)] = graph.producers(product)[..] else { continue };
        for (x, other) in [(left, right), (right, left)] {
            let is_sigmoid = graph.layer(other.layer).is_some_and(|layer| layer.ty() == "Sigmoid");
            if is_sigmoid && graph.producers(other.layer).first() == Some(&Some(x)) {
                graph.replace_in_place(product, NewLayer::new("Swish", "opset4"), &[x])?;
                graph.remove_unused([other.layer])?;
                break;
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [path, out] = &arguments[..] else { return Err("give MODEL OUT".into()) };
    let mut model = Model::open(path)?;
    if let Some(error) = infer(&mut model).into_iter().find(|found| found.is_error()) {
        return Err(error.message.to_string().into());
    }
    let before = model.graph().len();
    run(&mut model, Pass::new("fuse-swish", "no tensor is multiplied by its own Sigmoid", fuse))?;
    model.save(out)?;
    println!("{before} layers, now {}", model.graph().len());
    Ok(())
}
