//! Cost of 100,000 edits relative to plain conversions of the same file, which read, infer, lower and write it.
//!
//! `cargo bench -p typelift --bench edits` prints the ratios; with `UPDATE_DOCS=1` it writes them into the documents.
#![allow(clippy::print_stdout, reason = "what is measured is for reading")]

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{deep, update_document, uses};
use typelift::edit::Edit;
use typelift::graph::{EditError, NewLayer};
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_WITHOUT_NOOPS, run};
use typelift::xml::{WriteOptions, parse, write};
use typelift::{LayerId, Model, infer};

type Edited = Result<(), EditError>;

/// The number of edits of each of four kinds.
const EACH: usize = 25_000;

/// A function that makes this many edits.
type Edits = fn(&mut Edit, usize) -> Edited;

fn main() {
    // `cargo test` runs benches too, to check that they work.
    let scale = if std::env::args().any(|argument| argument == "--bench") { 1 } else { 1_000 };
    let subjects: [(&str, String, Edits); 2] = [
        ("chain, 200,000 layers", deep(200_000 / scale), edit_chain),
        ("one tensor, 66,000 uses", uses(66_000 / scale), edit_uses),
    ];
    let mut table = String::from("| graph | plain conversion | 100,000 edits | conversions |\n|---|--:|--:|--:|\n");
    for (name, text, edits) in subjects {
        let text = Arc::new(text);
        let conversion = median(|| {
            let start = Instant::now();
            black_box(convert(&text));
            start.elapsed()
        });
        let edited = median(|| {
            let mut model = parse(text.clone()).model.expect("the graph is valid");
            let _ = infer(&mut model);
            let start = Instant::now();
            model.edit(|graph| edits(graph, EACH / scale)).expect("every edit can be made");
            let elapsed = start.elapsed();
            assert_eq!(model.graph().verify(), Ok(()));
            elapsed
        });
        let ratio = edited.as_secs_f64() / conversion.as_secs_f64();
        table += &format!("| {name} | {conversion:.0?} | {edited:.0?} | {ratio:.2} |\n");
    }
    println!("{table}");
    if scale == 1 && std::env::var_os("UPDATE_DOCS").is_some() {
        update_document("edits", &table);
    }
}

fn median(measure: impl Fn() -> Duration) -> Duration {
    let mut times: Vec<_> = (0..5).map(|_| measure()).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn convert(text: &Arc<String>) -> (Model, String) {
    let mut model = parse(text.clone()).model.expect("the graph is valid");
    let _ = infer(&mut model);
    for pass in [LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS] {
        run(&mut model, pass).expect("the pass leaves a valid graph");
    }
    let text = write(&model, WriteOptions::default());
    (model, text)
}

fn relus(graph: &Edit) -> Vec<LayerId> {
    graph.layers().filter(|layer| layer.ty() == "ReLU").map(|layer| layer.id()).collect()
}

/// Edits a chain. Of each four consecutive layers, one is replaced in place, one gets a layer after it, and two are
/// bypassed; one of these is removed.
fn edit_chain(graph: &mut Edit, each: usize) -> Edited {
    for layers in relus(graph).chunks_exact(4).take(each) {
        let source = graph.producers(layers[0])[0].ok_or(EditError::NoLayer(layers[0]))?;
        graph.replace_in_place(layers[0], NewLayer::new("Elu", "opset1").with_attribute("alpha", 1), &[source])?;
        graph.insert_after(layers[1].output(0), NewLayer::new("Sigmoid", "opset1"), &[])?;
        graph.replace_uses(layers[2].output(0), layers[1].output(0))?;
        graph.remove(layers[2])?;
    }
    Ok(())
}

/// Makes the same edits among the uses of one tensor: the second is connected to the first.
fn edit_uses(graph: &mut Edit, each: usize) -> Edited {
    let all = relus(graph);
    let hub = graph.producers(all[0])[0].ok_or(EditError::NoLayer(all[0]))?;
    for layers in all.chunks_exact(2).cycle().take(each) {
        let new = if graph.layer(layers[0]).is_some_and(|layer| layer.ty() == "ReLU") { "Elu" } else { "ReLU" };
        let new = NewLayer::new(new, "opset1").with_attribute("alpha", 1);
        graph.replace_in_place(layers[0], new, &[hub])?;
        let inserted = graph.insert_before(layers[1].input(0), NewLayer::new("Sigmoid", "opset1"), &[])?;
        graph.connect(hub, layers[1].input(0))?;
        graph.remove(inserted)?;
    }
    graph.insert_after(hub, NewLayer::new("Tanh", "opset1"), &[]).map(|_| ())
}
