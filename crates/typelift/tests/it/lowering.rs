//! Shapes that become known when a ConvertPromoteTypes is removed: OpenVINO evaluates Converts, and no
//! ConvertPromoteTypes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;

use typelift::passes::{LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS, Pass, run};
use typelift::promote::ElementType;
use typelift::xml::{WriteOptions, write};
use typelift::{Graph, Layer, Model, Weights, infer};

/// Type, opset, content, the layer and output that feeds each input, and the number of outputs.
type Row<'a> = (&'a str, u32, &'a str, &'a [(usize, usize)], usize);

fn graph(layers: &[Row]) -> String {
    let (mut text, mut edges) = (String::new(), String::new());
    for (id, (ty, opset, content, inputs, outputs)) in layers.iter().enumerate() {
        write!(text, r#"<layer id="{id}" name="{ty}{id}" type="{ty}" version="opset{opset}">{content}<input>"#)
            .unwrap();
        for (port, (from, output)) in inputs.iter().enumerate() {
            write!(text, r#"<port id="{port}"/>"#).unwrap();
            let from_port = layers[*from].3.len() + output;
            write!(edges, r#"<edge from-layer="{from}" from-port="{from_port}" to-layer="{id}" to-port="{port}"/>"#)
                .unwrap();
        }
        text += "</input><output>";
        for port in inputs.len()..inputs.len() + outputs {
            write!(text, r#"<port id="{port}" precision="UNSPECIFIED"/>"#).unwrap();
        }
        text += "</output></layer>";
    }
    format!("<layers>{text}</layers><edges>{edges}</edges>")
}

const ANY: &str = r#"<data shape="?,?" element_type="f32"/>"#;

/// Returns a model with a Reshape whose target is the sum of two promoted constants. After it the shape is read as
/// values and used as a shape again.
fn promoted_target() -> String {
    let wide = r#"<data element_type="i64" shape="2" offset="0" size="16"/>"#;
    let narrow = r#"<data element_type="i32" shape="2" offset="16" size="8"/>"#;
    graph(&[
        ("Parameter", 1, ANY, &[], 1),
        ("Const", 1, wide, &[], 1),
        ("Const", 1, narrow, &[], 1),
        ("ConvertPromoteTypes", 14, "", &[(1, 0), (2, 0)], 2),
        ("Add", 1, "", &[(3, 0), (3, 1)], 1),
        ("Reshape", 1, r#"<data special_zero="false"/>"#, &[(0, 0), (4, 0)], 1),
        ("ShapeOf", 3, r#"<data output_type="i64"/>"#, &[(5, 0)], 1),
        ("Parameter", 1, r#"<data shape="" element_type="f32"/>"#, &[], 1),
        ("Broadcast", 3, r#"<data mode="numpy"/>"#, &[(7, 0), (6, 0)], 1),
        ("ReLU", 1, "", &[(8, 0)], 1),
        ("Result", 1, "", &[(9, 0)], 0),
    ])
}

/// Returns the same model in a branch of an If.
fn promoted_target_in_a_body() -> String {
    let maps = |branch: &str, x: usize, s: usize, out: usize| {
        format!(
            r#"<{branch}_port_map><input external_port_id="1" internal_layer_id="{x}"/><input external_port_id="2"
            internal_layer_id="{s}"/><output external_port_id="3" internal_layer_id="{out}"/></{branch}_port_map>"#
        )
    };
    let body = promoted_target();
    let bodies = format!(
        "{}{}<then_body>{body}</then_body><else_body>{body}</else_body>",
        maps("else", 0, 7, 10),
        maps("then", 0, 7, 10)
    );
    graph(&[
        ("Parameter", 1, r#"<data shape="" element_type="boolean"/>"#, &[], 1),
        ("Parameter", 1, ANY, &[], 1),
        ("Parameter", 1, r#"<data shape="" element_type="f32"/>"#, &[], 1),
        ("If", 8, &bodies, &[(0, 0), (1, 0), (2, 0)], 1),
        ("ReLU", 1, "", &[(3, 0)], 1),
        ("Result", 1, "", &[(4, 0)], 0),
    ])
}

fn open(text: String) -> Model {
    let mut model = Model::from_xml(text).unwrap();
    let bytes: Vec<u8> =
        [2_i64, -2].iter().flat_map(|value| value.to_le_bytes()).chain([0, 0, 0, 0, 1, 0, 0, 0]).collect();
    model.set_weights(Weights::from_bytes(bytes));
    assert_eq!(infer(&mut model), []);
    model
}

/// Returns the shape of each layer's first output.
fn shapes(graph: &Graph) -> Vec<String> {
    let mut shapes = Vec::new();
    for layer in graph.layers() {
        shapes.extend(layer.outputs().first().map(|port| format!("{} {}", layer.name(), port.shape())));
        for body in layer.bodies() {
            shapes.extend(self::shapes(&body.graph));
        }
    }
    shapes
}

fn check(graph: &str, pass: Pass, last: &str) {
    let mut model = open(format!(r#"<net name="n" version="11">{graph}</net>"#));
    assert!(shapes(model.graph()).contains(&format!("{last} [?,?]")), "{:?}", shapes(model.graph()));
    run(&mut model, pass.clone()).unwrap();
    let found = shapes(model.graph());
    assert!(found.contains(&format!("{last} [2,?]")), "{}: {found:?}", pass.name);
    let written = open(write(&model, WriteOptions::default()));
    let (mut found, mut expected) = (found, shapes(written.graph()));
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{}: what is written is not what is known", pass.name);
}

#[test]
fn lowering_makes_known_what_is_computed_from_promoted_values() {
    for pass in [LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS] {
        check(&promoted_target(), pass, "ReLU9");
    }
}

#[test]
fn lowering_in_a_body_makes_known_what_comes_out_of_it() {
    for pass in [LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS] {
        check(&promoted_target_in_a_body(), pass, "ReLU4");
    }
}

/// OpenVINO reads a Convert without a destination as one to `dynamic`. It stays so next to promotions, which then have no
/// type before run time.
#[test]
fn lowering_leaves_a_convert_without_a_destination_dynamic() {
    let layers = graph(&[
        ("Parameter", 1, ANY, &[], 1),
        ("Convert", 1, "", &[(0, 0)], 1),
        ("ConvertPromoteTypes", 14, "", &[(0, 0), (1, 0)], 2),
        ("Add", 1, "", &[(2, 0), (2, 1)], 1),
        ("Convert", 1, r#"<data destination_type="f16"/>"#, &[(0, 0)], 1),
        ("ConvertPromoteTypes", 14, "", &[(0, 0), (4, 0)], 2),
        ("Add", 1, "", &[(5, 0), (5, 1)], 1),
    ]);
    let declared = layers.replacen("UNSPECIFIED", "FP32", 1).replacen("UNSPECIFIED", "FP16", 1);
    for pass in [LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS] {
        let mut model = Model::from_xml(format!(r#"<net name="n" version="11">{declared}</net>"#)).unwrap();
        assert_eq!(infer(&mut model).iter().filter(|it| it.is_error()).count(), 0);
        run(&mut model, pass).unwrap();
        for canonical in [false, true] {
            let options = WriteOptions { canonical, ..WriteOptions::default() };
            let mut again = Model::from_xml(write(&model, options)).unwrap();
            assert_eq!(infer(&mut again).iter().filter(|it| it.is_error()).count(), 0);
            let left = again.graph().layers().filter(|layer| layer.ty() == "ConvertPromoteTypes");
            assert_eq!(left.map(Layer::name).collect::<Vec<_>>(), ["ConvertPromoteTypes2"]);
            let of = |id: &str| again.graph().layer(again.graph().find(id).unwrap()).unwrap();
            assert_eq!(of("Convert1").attribute("destination_type").unwrap_or("dynamic"), "dynamic");
            assert_eq!(of("Convert1").outputs()[0].element_type(), ElementType::Dynamic);
            assert_eq!(of("Add6").outputs()[0].element_type(), ElementType::F32);
        }
    }
}
