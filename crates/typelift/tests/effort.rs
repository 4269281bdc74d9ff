//! What a conversion costs in allocations and memory, and that it is in proportion to the graph: numbers that no clock has a
//! part in.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../benches/common/mod.rs"]
mod graphs;

use std::convert::Infallible;

use allocation_counter::{AllocationInfo, measure};
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_WITHOUT_NOOPS, run};
use typelift::xml::{self, WriteOptions, write_to};
use typelift::{Graph, Model, Weights, check_after, infer};

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
    assert!(per_layer < 4.3, "{per_layer} allocations a layer");
    assert!(times_text < 3.16, "at most {times_text} bytes for a byte of text");
}

/// What inference finds of a layer is written in its ports: no layer costs an allocation.
#[test]
fn inference_of_a_chain_takes_hardly_any_allocations() {
    convert(&graphs::chain(1));
    let mut model = Model::from_xml(graphs::chain(1000)).unwrap();
    let info = measure(|| assert_eq!(infer(&mut model), []));
    assert!(info.count_total < 36, "{} allocations", info.count_total);
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

/// Reads, infers and checks a model that need not be in order, and gives how many diagnostics it has.
fn look(text: &str) -> usize {
    let reading = xml::parse(text.to_owned().into());
    let mut model = reading.model.unwrap();
    let mut found = reading.diagnostics;
    found.append(&mut infer(&mut model));
    check_after(&model, found).len()
}

/// A model of `layers`, each a layer with one input and one output, with edges between ids.
fn model(layers: impl IntoIterator<Item = String>, edges: impl IntoIterator<Item = (usize, usize)>) -> String {
    let edge = |(from, to)| format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{to}" to-port="0"/>"#);
    let (layers, edges): (String, String) = (layers.into_iter().collect(), edges.into_iter().map(edge).collect());
    format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

/// `tag` goes into the start tag of the layer, `content` into the layer.
fn layer(id: usize, tag: &str, content: &str) -> String {
    format!(
        r#"<layer id="{id}" name="n{id}" type="ReLU" version="opset1" {tag}>{content}<input><port id="0"/></input>
        <output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>"#
    )
}

/// `n` of something in the only layer.
fn many(n: usize, tag: impl Fn(usize) -> String, content: impl Fn(usize) -> String) -> String {
    let join = |part: &dyn Fn(usize) -> String| (0..n).map(part).collect::<String>();
    model([layer(0, &join(&tag), &join(&content))], [])
}

fn none(_: usize) -> String {
    String::new()
}

fn data(n: usize, attribute: impl Fn(usize) -> String) -> String {
    model([layer(0, "", &format!("<data {}/>", (0..n).map(attribute).collect::<String>()))], [])
}

/// A ReadValue or an Assign of one variable.
fn variable(id: usize) -> String {
    let ty = if id.is_multiple_of(2) { "ReadValue" } else { "Assign" };
    let data = r#"<data variable_id="v" variable_type="f32" variable_shape="4"/>"#;
    layer(id, "", data).replace("ReLU", ty).replace("opset1", "opset6")
}

/// What files that were made to hurt are full of.
const MISSHAPEN: [(&str, Shape); 18] = [
    ("stale ports", |n| {
        let ports: String = (1..=n).map(|port| format!(r#"<port id="{port}" precision="FP16"/>"#)).collect();
        let split = r#"<layer id="0" name="n0" type="VariadicSplit" version="opset1"><output>"#;
        model([format!("{split}{ports}</output></layer>")], [])
    }),
    ("one variable", |n| model((0..n).map(variable), (1..n).map(|id| (0, id)))),
    ("a cycle", |n| model((0..n).map(|id| layer(id, "", "")), (0..n).map(|id| (id, (id + 1) % n)))),
    ("short cycles", |n| model((0..n).map(|id| layer(id, "", "")), (0..n).map(|id| (id, id ^ 1)))),
    ("a chain backwards", |n| model((0..n).rev().map(|id| layer(id, "", "")), (1..n).map(|id| (id - 1, id)))),
    ("ids backwards", |n| model((0..n).map(|id| layer(n - id, "", "")), (1..n).map(|id| (id + 1, id)))),
    ("one id", |n| model((0..n).map(|_| layer(0, "", "")), [])),
    ("edges into one port", |n| model((0..2).map(|id| layer(id, "", "")), (0..n).map(|_| (0, 1)))),
    ("edges from nowhere", |n| model([layer(0, "", "")], (0..n).map(|id| (id + 1, 0)))),
    ("edges to nowhere", |n| model([layer(0, "", "")], (0..n).map(|id| (0, id + 1)))),
    ("attributes of data", |n| data(n, |at| format!(r#"a{at}="" "#))),
    ("one attribute of data", |n| data(n, |_| r#"a="" "#.to_owned())),
    ("attributes of a layer", |n| many(n, |at| format!(r#"a{at}="" "#), none)),
    ("one attribute of a layer", |n| many(n, |_| r#"id="0" "#.to_owned(), none)),
    ("elements", |n| many(n, none, |_| "<x/>".to_owned())),
    ("port maps", |n| many(n, none, |at| format!("<port_map{at}/>"))),
    ("bodies", |n| many(n, none, |at| format!("<body{at}/>"))),
    ("metadata", |n| many(n, none, |at| format!(r#"<rt_info><attribute name="a{at}" version="0"/></rt_info>"#))),
];

#[test]
fn misshapen_models_are_looked_at_in_proportion_to_their_size() {
    for (name, graph) in MISSHAPEN {
        look(&graph(2));
        let [small, large] = [4000, 16_000].map(|size| {
            let text = graph(size);
            let info = measure(|| assert!(look(&text) > 0));
            [info.count_total, info.bytes_max].map(|number| number as f64 / text.len() as f64)
        });
        assert!(large[0] < 1.1 * small[0], "{name}: {} and {} allocations a byte", small[0], large[0]);
        assert!(large[1] < 1.1 * small[1], "{name}: at most {} and {} bytes for a byte", small[1], large[1]);
        assert!(large[1] < 20.0, "{name}: at most {} bytes for a byte", large[1]);
    }
}

/// Values of tensors are worked out within a budget, however many a file asks for.
#[test]
fn values_take_no_more_memory_than_their_budget() {
    let source = |id: usize| {
        format!(
            r#"<layer id="{id}" name="c{id}" type="Const" version="opset1">
            <data element_type="i8" shape="512,512" offset="0" size="262144"/><output><port id="1" precision="UNSPECIFIED"/></output></layer>"#
        )
    };
    let asker = |id: usize| {
        format!(
            r#"<layer id="{id}" name="n{id}" type="NonZero" version="opset3"><data output_type="i64"/>
            <input><port id="0"/></input><output><port id="1" precision="UNSPECIFIED"/></output></layer>"#
        )
    };
    let layers = (0..200).map(|id| if id % 2 == 0 { source(id) } else { asker(id) });
    let text = model(layers, (0..100).map(|pair| (2 * pair, 2 * pair + 1)));
    let info = measure(|| {
        let mut model = Model::from_xml(text.as_str()).unwrap();
        model.set_weights(Weights::from_bytes(vec![1; 512 * 512]));
        let _ = infer(&mut model);
        let shapes = model.graph().layers().filter(|layer| layer.ty() == "NonZero");
        let known = shapes.filter(|layer| layer.outputs()[0].shape().is_static()).count();
        assert!((1..100).contains(&known), "{known}");
    });
    assert!(info.bytes_max < 160 << 20, "at most {} bytes", info.bytes_max);
}

/// What takes the square of a moment would never end on these.
#[test]
fn large_misshapen_models_are_looked_at() {
    for (name, graph) in MISSHAPEN {
        assert!(look(&graph(100_000)) > 0, "{name}");
    }
}
