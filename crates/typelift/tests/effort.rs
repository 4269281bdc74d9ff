//! What a conversion costs in allocations and memory, and that it is in proportion to the graph: numbers that no clock has a
//! part in.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../benches/common/mod.rs"]
mod graphs;

use std::convert::Infallible;

use allocation_counter::{AllocationInfo, measure};
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_WITHOUT_NOOPS, run};
use typelift::xml::{WriteOptions, write_to};
use typelift::{Graph, Model, infer};

/// A graph of some size.
type Shape = fn(usize) -> String;

/// Reads, infers, lowers and writes piece by piece, and tells how much.
fn convert(text: &str) -> usize {
    let mut model = Model::from_xml(text).unwrap();
    assert_eq!(infer(&mut model), []);
    for pass in [LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS] {
        run(&mut model, pass).unwrap();
    }
    assert_eq!(promotions(model.graph()), 0);
    let mut written = 0;
    let Ok(()) = write_to(&model, WriteOptions::default(), |piece| {
        written += piece.len();
        Ok::<_, Infallible>(())
    });
    written
}

fn promotions(graph: &Graph) -> usize {
    let count = |layer: &typelift::Layer| {
        let own = usize::from(layer.ty() == "ConvertPromoteTypes");
        own + layer.bodies().iter().map(|body| promotions(body.graph())).sum::<usize>()
    };
    graph.layers().map(count).sum()
}

fn effort(text: &str) -> AllocationInfo {
    // Tables that are made once are no part of it.
    convert(&graphs::chain(1));
    measure(|| {
        convert(text);
    })
}

/// Bounds a tenth above what is measured, so that whoever makes a conversion dearer knows it.
#[test]
fn a_chain_takes_few_allocations_and_little_memory() {
    let text = graphs::chain(1000);
    let info = effort(&text);
    let per_layer = info.count_total as f64 / 2003.0;
    let times_text = info.bytes_max as f64 / text.len() as f64;
    assert!(per_layer < 7.8, "{per_layer} allocations a layer");
    assert!(times_text < 3.1, "at most {times_text} bytes for a byte of text");
}

#[test]
fn effort_is_in_proportion_to_the_graph() {
    let shapes: [(&str, Shape); 5] = [
        ("chain", graphs::chain),
        ("star", graphs::star),
        ("deep", graphs::deep),
        ("apart", graphs::apart),
        ("bodies", graphs::bodies),
    ];
    for (name, graph) in shapes {
        let [small, large] = [200, 2000].map(|size| {
            let text = graph(size);
            let info = effort(&text);
            [info.count_total, info.bytes_max].map(|number| number as f64 / text.len() as f64)
        });
        assert!(large[0] < 1.1 * small[0], "{name}: {} and {} allocations a byte", small[0], large[0]);
        assert!(large[1] < 1.1 * small[1], "{name}: at most {} and {} bytes for a byte", small[1], large[1]);
    }
}

/// What takes more than a moment in proportion to its size would never end on these.
#[test]
fn large_graphs_of_every_shape_are_converted() {
    let shapes: [(Shape, usize); 4] =
        [(graphs::star, 100_000), (graphs::deep, 100_000), (graphs::apart, 100_000), (graphs::bodies, 5_000)];
    for (graph, size) in shapes {
        let text = graph(size);
        assert!(convert(&text) > text.len() / 2);
    }
}
