//! Laws of edits: after any edit the graph is valid and is written as it is, or nothing changed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use typelift::edit::Edit;
use typelift::graph::{EditError, NewLayer};
use typelift::promote::ElementType;
use typelift::xml::{WriteOptions, write};
use typelift::{Graph, LayerId, Model, Output, Weights, infer};

/// Returns a model of Relus and sums, each fed by earlier layers, and Results of the last ones.
fn model(feeds: &[(bool, Index, Index)]) -> Model {
    const PORT: &str = "<dim>2</dim></port>";
    let parameter = format!(
        r#"<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
        <output><port id="0" precision="FP32" names="x">{PORT}</output></layer>
    <layer id="1" name="c" type="Const" version="opset1"><data element_type="f32" shape="2" offset="0" size="8"/>
        <output><port id="0" precision="FP32">{PORT}</output></layer>"#
    );
    let (mut layers, mut edges) = (parameter, String::new());
    for (at, (is_sum, left, right)) in feeds.iter().enumerate() {
        let id = at + 2;
        let (ty, count) = if *is_sum { ("Add", 2) } else { ("ReLU", 1) };
        let inputs: String = (0..count).map(|port| format!(r#"<port id="{port}" precision="FP32">{PORT}"#)).collect();
        layers += &format!(
            r#"
    <!-- before {id} --><layer id="{id}" name="l{id}" type="{ty}" version="opset1">
        <input>{inputs}</input>
        <output><port id="{count}" precision="FP32" names="t{id}">{PORT}</output>
    </layer>"#
        );
        for (port, feed) in [left, right].into_iter().take(count).enumerate() {
            let from = feed.index(id);
            let from_port = if from < 2 { 0 } else { 1 + usize::from(feeds[from - 2].0) };
            edges += &format!(
                "    <edge from-layer=\"{from}\" from-port=\"{from_port}\" to-layer=\"{id}\" to-port=\"{port}\"/>\n"
            );
        }
    }
    let last = feeds.len() + 1;
    let from_port = if last < 2 { 0 } else { 1 + usize::from(feeds[last - 2].0) };
    let id = last + 1;
    layers += &format!(
        r#"<layer id="{id}" name="out" type="Result" version="opset1"><input><port id="0" precision="FP32">{PORT}</input></layer>"#
    );
    edges += &format!(r#"<edge from-layer="{last}" from-port="{from_port}" to-layer="{id}" to-port="0"/>"#);
    let text = format!("<net name=\"n\" version=\"11\"><layers>\n{layers}</layers><edges>\n{edges}</edges></net>");
    let mut model = Model::from_xml(text).unwrap();
    model.set_weights(Weights::from_bytes([0; 8]));
    assert_eq!(infer(&mut model), []);
    model
}

/// Returns the content of a graph, independent of its order.
fn listing(graph: &Graph) -> BTreeMap<LayerId, String> {
    let line = |layer: &typelift::Layer| {
        let outputs: Vec<_> = layer.outputs().iter().map(|port| format!("{port} {:?}", port.names())).collect();
        format!(
            "{} {} {} {:?} {:?} {outputs:?} {:?}",
            layer.name(),
            layer.ty(),
            layer.version(),
            layer.output_names(),
            layer.attributes(),
            graph.producers(layer.id()),
        )
    };
    graph.layers().map(|layer| (layer.id(), line(layer))).collect()
}

/// Makes one edit, chosen by numbers.
fn edit(graph: &mut Edit, verb: u8, [first, second, third]: [&Index; 3]) -> Result<(), EditError> {
    let ids: Vec<_> = graph.layers().map(|layer| layer.id()).collect();
    let makers: Vec<_> = graph.layers().filter(|layer| !layer.outputs().is_empty()).map(|l| l.id().output(0)).collect();
    let (id, a, b): (LayerId, Output, Output) = (*first.get(&ids), *second.get(&makers), *third.get(&makers));
    let is_own = |id| ["Parameter", "Result"].contains(&graph.layer(id).unwrap().ty());
    let unary = || NewLayer::new("Elu", "opset1").with_attribute("alpha", 0.5);
    match verb {
        0 if !is_own(id) => graph.replace_in_place(id, unary(), &[a]),
        1 if !is_own(id) => graph.replace_in_place(id, NewLayer::new("Multiply", "opset1"), &[a, b]),
        2 => graph.insert_after(a, unary(), &[]).map(|_| ()),
        3 => graph.insert_after(a, NewLayer::new("Maximum", "opset1"), &[b]).map(|_| ()),
        4 => graph.insert_before(id.input(0), NewLayer::new("Abs", "opset1"), &[]).map(|_| ()),
        5 => graph.connect(a, id.input(third.index(2))),
        6 => graph.replace_uses(a, b),
        7 => graph.remove(id),
        8 => graph.remove_unused([id, a.layer]).map(|_| ()),
        9 => graph.rename(&format!("t{}", a.layer), &format!("t{}", b.layer)),
        10 => {
            let name = graph.layer(id).unwrap().name().to_owned();
            graph.rename(&name, "renamed")
        }
        11 => graph.set_names(a, vec![format!("new{}", b.layer)]),
        12 if third.index(4) == 0 => graph.cut(a).map(|_| ()),
        13 => graph.constant_of(&[2], &[1_f32, third.index(3) as f32]).map(|_| ()),
        14 => graph.constant(ElementType::F32, &[3], &[0; 8]).map(|_| ()),
        15 if !is_own(id) => graph.replace_in_place(id, NewLayer::new("MatMul", "opset1"), &[a]),
        16 => graph.add(NewLayer::new("Power", "opset1"), &[a, b]).map(|_| ()),
        _ => graph.set_name(id, "again"),
    }
}

fn feeds() -> impl Strategy<Value = Vec<(bool, Index, Index)>> {
    prop::collection::vec(any::<(bool, Index, Index)>(), 1..12)
}

fn steps() -> impl Strategy<Value = Vec<(u8, Index, Index, Index)>> {
    prop::collection::vec((0_u8..18, any::<Index>(), any::<Index>(), any::<Index>()), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_holds_together_and_is_written_as_it_is(feeds in feeds(), steps in steps(), batches in 1_usize..4) {
        let mut model = model(&feeds);
        let source = model.source().clone();
        let before = listing(model.graph());
        for batch in steps.chunks(steps.len().div_ceil(batches)) {
            let (listed, written) = (listing(model.graph()), write(&model, WriteOptions::default()));
            let weights = model.weights().len();
            let result = model.edit(|graph| {
                for (verb, first, second, third) in batch {
                    let before = listing(graph);
                    if graph.layers().next().is_some() && edit(graph, *verb, [first, second, third]).is_err() {
                        assert_eq!(listing(graph), before, "a verb that fails changes nothing");
                    }
                }
                Ok(())
            });
            prop_assert_eq!(model.graph().verify(), Ok(()));
            if result.is_err() {
                prop_assert_eq!(listing(model.graph()), listed);
                prop_assert_eq!(write(&model, WriteOptions::default()), written);
                prop_assert_eq!(model.weights().len(), weights);
            }
        }
        let after = listing(model.graph());
        for canonical in [false, true] {
            let written = write(&model, WriteOptions { canonical, ..WriteOptions::default() });
            let again = Model::from_xml(written.as_str());
            let again = again.map_err(|errors| TestCaseError::fail(format!("{errors}\n{written}")))?;
            prop_assert_eq!(listing(again.graph()), after.clone(), "{}", written);
            for layer in model.graph().layers().filter(|layer| !canonical && before.get(&layer.id()) == after.get(&layer.id())) {
                let Some(span) = layer.span() else { continue };
                let text = span.text(&source);
                prop_assert!(written.contains(text), "layer {} was not touched:\n{text}\n{written}", layer.id());
            }
        }
    }
}

#[test]
fn a_batch_that_closes_a_cycle_changes_nothing() {
    let feeds: Vec<_> = (0..3).map(|_| false).collect();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let index = any::<Index>().new_tree(&mut runner).unwrap().current();
    let mut model = model(&feeds.iter().map(|&sum| (sum, index, index)).collect::<Vec<_>>());
    let before = write(&model, WriteOptions::default());
    let ids = ["l2", "l3", "l4"].map(|name| model.graph().find(name).unwrap());
    let error = model.edit(|graph| {
        graph.connect(ids[2].output(0), ids[0].input(0))?;
        graph.connect(ids[0].output(0), ids[1].input(0))?;
        graph.connect(ids[1].output(0), ids[2].input(0))
    });
    assert_eq!(error, Err(EditError::Cycle(ids.to_vec())));
    assert_eq!(write(&model, WriteOptions::default()), before);
    assert_eq!(error.unwrap_err().to_string(), "layers 2, 3, 4 would form a cycle");
}
