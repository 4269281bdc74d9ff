//! Bodies: types and shapes of every layer in them, compared with OpenVINO's on random models; also the cost and the
//! messages of their inference.
//!
//! `BODIES_FILE=… cargo test -p typelift bodies` uses other cases, created by `testdata/oracle/bodies/take.py`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use typelift::findings::{Code, Diagnostic};
use typelift::graph::{NewLayer, Place};
use typelift::{LayerId, Model};

use crate::recorded;

/// Reads and infers a model.
fn ours(xml: &str, weights: Vec<u8>) -> (Option<Model>, Vec<Diagnostic>) {
    recorded::infer_text(xml, Some(weights))
}

#[test]
fn bodies_infer_what_openvino_infers_in_them() {
    let taken = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/bodies/cases.jsonl.gz");
    let path = std::env::var("BODIES_FILE").unwrap_or(taken.to_owned());
    let (mut accepted, mut refused, mut wrong) = (0, 0, 0);
    for (line, case) in recorded::cases(&path).enumerate() {
        *(if case.is_accepted() { &mut accepted } else { &mut refused }) += 1;
        if let Some(different) = case.difference() {
            wrong += 1;
            println!("line {}: {different}", line + 1);
        }
    }
    println!("{accepted} accepted and {refused} refused models with bodies, {wrong} of them other than by OpenVINO");
    assert!(accepted > 100 && refused > 50);
    assert_eq!(wrong, 0);
}

/// Returns a model of a Parameter and `depth` nested Loops. Every body returns the result of `innermost` and the inner
/// Loop for its Parameter. The layers of `innermost` have the ids 4 to 9, and 9 is the last one.
fn nested_loops(depth: usize, innermost: &str) -> String {
    let parameter = r#"<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
        <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>"#;
    let numbers = r#"<layer id="1" name="count" type="Const" version="opset1">
            <data element_type="i64" shape="" offset="0" size="8"/><output><port id="0" precision="I64"/></output></layer>
        <layer id="2" name="go" type="Const" version="opset1">
            <data element_type="boolean" shape="" offset="0" size="1"/><output><port id="0" precision="BOOL"/></output></layer>
        <layer id="3" name="goes" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let result = r#"<layer id="10" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let graph = |inside: &str, edges: &str| {
        format!(
            r#"<layers>{parameter}{numbers}{inside}{result}</layers><edges>
            <edge from-layer="2" from-port="0" to-layer="3" to-port="0"/>{edges}</edges>"#
        )
    };
    let mut text = innermost.to_owned();
    for _ in 0..depth {
        text = graph(
            &format!(
                r#"<layer id="9" name="loop" type="Loop" version="opset5"><port_map>
                <input external_port_id="2" internal_layer_id="0"/><output external_port_id="3" internal_layer_id="10"/>
                <output external_port_id="-1" internal_layer_id="3" purpose="execution_condition"/></port_map>
                <back_edges><edge from-layer="10" to-layer="0"/></back_edges>
                <input><port id="0"/><port id="1"/><port id="2"/></input>
                <output><port id="3" precision="UNSPECIFIED"/></output><body>{text}</body></layer>"#
            ),
            r#"<edge from-layer="1" from-port="0" to-layer="9" to-port="0"/>
            <edge from-layer="2" from-port="0" to-layer="9" to-port="1"/>
            <edge from-layer="0" from-port="0" to-layer="9" to-port="2"/>
            <edge from-layer="9" from-port="3" to-layer="10" to-port="0"/>"#,
        );
    }
    format!(r#"<net name="nested" version="11">{text}</net>"#)
}

/// Returns the graph of an innermost body: its Parameter, the condition, and `kind` applied to the Parameter twice.
fn innermost(kind: &str, data: &str) -> String {
    format!(
        r#"<layers><layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
        <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
        <layer id="2" name="go" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
        <output><port id="0" precision="BOOL"/></output></layer>
        <layer id="3" name="goes" type="Result" version="opset1"><input><port id="0"/></input></layer>
        <layer id="9" name="grow" type="{kind}" version="opset1">{data}<input><port id="0"/><port id="1"/></input>
        <output><port id="2" precision="UNSPECIFIED"/></output></layer>
        <layer id="10" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>
        <edge from-layer="2" from-port="0" to-layer="3" to-port="0"/>
        <edge from-layer="0" from-port="0" to-layer="9" to-port="0"/>
        <edge from-layer="0" from-port="0" to-layer="9" to-port="1"/>
        <edge from-layer="9" from-port="2" to-layer="10" to-port="0"/></edges>"#
    )
}

#[test]
fn shapes_that_grow_settle_however_deep_the_loops_nest() {
    for depth in [1, 4, 60] {
        let xml = nested_loops(depth, &innermost("Concat", r#"<data axis="0"/>"#));
        let (model, diagnostics) = ours(&xml, vec![1; 8]);
        let model = model.unwrap();
        let outer = model.graph().layers().find(|layer| layer.name() == "loop").unwrap();
        let settled = outer.outputs()[0].shape().to_string() == "[?]";
        let given_up = diagnostics.iter().any(|found| found.code == Code::InvalidBody);
        assert!(settled || given_up, "{depth} deep: {diagnostics:?}");
        assert!(settled || depth > 4, "{depth} deep");
    }
}

#[test]
fn an_error_in_a_body_is_told_once_however_often_the_body_is_inferred() {
    let wrong = innermost("Add", r#"<data auto_broadcast="numpy"/>"#).replace(
        r#"<edge from-layer="0" from-port="0" to-layer="9" to-port="1"/>"#,
        r#"<edge from-layer="2" from-port="0" to-layer="9" to-port="1"/>"#,
    );
    let (_, diagnostics) = ours(&nested_loops(3, &wrong), vec![1; 8]);
    let told: Vec<_> = diagnostics.iter().map(|found| (found.code, found.layer.as_ref().unwrap().path())).collect();
    assert_eq!(told, [(Code::TypeMismatch, "loop/body/loop/body/loop/body")], "{diagnostics:#?}");
}

#[test]
fn a_lint_in_a_body_is_told_once_however_often_the_body_is_inferred() {
    let odd = innermost("Concat", r#"<data axis="0 or so"/>"#);
    let (_, diagnostics) = ours(&nested_loops(3, &odd), vec![1; 8]);
    let told: Vec<_> = diagnostics.iter().map(|found| found.code).filter(|code| *code == Code::TrailingJunk).collect();
    assert_eq!(told.len(), 1, "{diagnostics:#?}");
}

#[test]
fn layers_that_the_reader_drops_have_no_errors() {
    let alone = innermost("Add", "").replace(
        r#"<layer id="10""#,
        r#"<layer id="11" name="z" type="Result" version="opset1">
        <input><port id="0"/></input></layer><layer id="10""#,
    );
    let wrong = r#"<edge from-layer="2" from-port="0" to-layer="9" to-port="1"/>"#;
    let used = alone.replace(r#"<edge from-layer="0" from-port="0" to-layer="9" to-port="1"/>"#, wrong);
    let unused = used.replace(
        r#"<edge from-layer="9" from-port="2" to-layer="10" to-port="0"/>"#,
        r#"<edge from-layer="0" from-port="0" to-layer="10" to-port="0"/>"#,
    );
    let errors = |graph: &str| {
        let graph =
            graph.replace("</edges>", r#"<edge from-layer="0" from-port="0" to-layer="11" to-port="0"/></edges>"#);
        let (_, diagnostics) = ours(&format!(r#"<net name="dropped" version="11">{graph}</net>"#), vec![1; 8]);
        diagnostics.iter().filter(|found| found.is_error()).count()
    };
    assert_eq!((errors(&used), errors(&unused)), (1, 0));
}

/// Checking a body each time it was entered would double the work at every level, and never end.
#[test]
fn a_batch_that_enters_bodies_in_bodies_checks_each_once() {
    let depth = 60;
    let (model, _) = ours(&nested_loops(depth, &innermost("Add", "")), vec![1; 8]);
    let mut model = model.unwrap();
    let (inner, grow) = model.find(&format!("{}grow", "loop/body/".repeat(depth))).unwrap();
    let place =
        |level: usize| inner.steps()[..level].iter().fold(Place::default(), |place, &(id, at)| place.body(id, at));
    let places = (1..=depth).map(place);
    let places: Vec<_> = places.collect();
    let sources = [grow.output(0), grow.output(0)];
    model
        .edit(|graph| {
            for place in places.iter().chain(&places) {
                graph.at(place)?.set_name(LayerId(0), "parameter")?;
            }
            let mut inner = graph.at(&inner)?;
            let sum = inner.add(NewLayer::new("Add", "opset1").named("again"), &sources)?;
            inner.connect(sum.output(0), LayerId(10).input(0))
        })
        .unwrap();
    assert!(model.graph().verify().is_ok());
}
