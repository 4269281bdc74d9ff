//! Edits of a graph whose file has more than the graph: reading the written file returns the graph that was written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use typelift::edit::{Bf16, Edit, F16};
use typelift::findings::Code;
use typelift::graph::{BackEdge, EditError, NewLayer, PortMapEntry};
use typelift::promote::ElementType;
use typelift::xml::{WriteOptions, write};
use typelift::{LayerId, Model, Output, infer};

/// Returns a model of a Parameter with the id `id`, and a Result.
fn model(id: &str) -> String {
    format!(
        r#"<net name="n" version="11">
  <layers>
    <layer id="{id}" name="x" type="Parameter" version="opset1">
      <data shape="2" element_type="f16"/>
      <output>
        <port id="0" precision="FP16" names="x" names="again"><dim>2</dim></port>
      </output>
    </layer>
    <layer id="0" name="out" type="Result" version="opset1">
      <input>
        <port id="0" precision="FP16"><dim>2</dim></port>
      </input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="{id}" from-port="0" to-layer="0" to-port="0"/>
  </edges>
</net>
"#
    )
}

#[test]
fn a_new_layer_gets_an_id_that_openvino_reads() {
    let mut model = Model::from_xml(model("9223372036854775807")).unwrap();
    let x = Output { layer: LayerId(9_223_372_036_854_775_807), port: 0 };
    for id in [1, 2] {
        let convert = NewLayer::convert(ElementType::F32).named("x/f32");
        assert_eq!(model.edit(|graph| graph.add(convert, &[x])), Ok(LayerId(id)));
    }
    let again = Model::from_xml(write(&model, WriteOptions::default())).unwrap();
    assert_eq!(again.graph().layers().count(), 4);
}

#[test]
fn an_id_that_openvino_cannot_read_is_refused() {
    let errors = Model::from_xml(model("9223372036854775808")).unwrap_err();
    assert!(errors.list.iter().any(|error| error.code == Code::InvalidValue), "{errors}");
}

#[test]
fn names_that_are_taken_out_do_not_leave_others_that_stood_behind_them() {
    let mut model = Model::from_xml(model("1")).unwrap();
    let x = Output { layer: LayerId(1), port: 0 };
    model.edit(|graph| graph.set_names(x, Vec::new())).unwrap();
    let again = Model::from_xml(write(&model, WriteOptions::default())).unwrap();
    assert_eq!(again.graph().output(x).unwrap().names(), Vec::<String>::new());
}

/// Adds a Parameter and a Result of it.
fn add_to(graph: &mut Edit) -> Result<(), EditError> {
    let x = NewLayer::new("Parameter", "opset1").with_attribute("element_type", "f16").with_attribute("shape", 2);
    let x = graph.add(x.named("x"), &[])?;
    graph.add(NewLayer::new("Result", "opset1").named("out"), &[x.output(0)]).map(|_| ())
}

#[test]
fn what_is_added_is_written_where_the_file_has_no_place_for_it() {
    let root = "<net name=\"n\" version=\"11\"";
    let branches = r#"<then_port_map/><else_port_map/><then_body/>
        <else_body><edges/></else_body>"#;
    let bodies =
        format!("<layers><layer id=\"0\" name=\"if\" type=\"If\" version=\"opset8\">{branches}</layer></layers>");
    for content in [
        "/>",
        "></net>",
        ">\n  <layers/>\n</net>",
        ">\n\t<edges />\n</net>",
        "><edges></edges><layers></layers></net>",
        &format!(">\n\t{bodies}\n</net>"),
    ] {
        let mut model = Model::from_xml(format!("{root}{content}")).unwrap();
        let graphs = |model: &Model| {
            let bodies = model.graph().layers().flat_map(|layer| layer.bodies().iter().map(|body| body.graph.clone()));
            bodies.chain([model.graph().clone()]).collect::<Vec<_>>()
        };
        let bodies = graphs(&model).len() - 1;
        let edits = |graph: &mut Edit| {
            (0..bodies).try_for_each(|at| add_to(&mut graph.body(LayerId(0), at)?))?;
            add_to(graph)
        };
        model.edit(edits).unwrap();
        let written = write(&model, WriteOptions::default());
        let again = Model::from_xml(written.as_str()).unwrap_or_else(|errors| panic!("{errors}\n{written}"));
        for graph in graphs(&again) {
            let out = graph.layers().find(|layer| layer.ty() == "Result").unwrap();
            assert!(matches!(graph.producers(out.id())[..], [Some(_)]), "{written}");
        }
    }
}

/// Returns a file with an If whose branches negate their input, or do not.
fn with_if() -> String {
    let branch = |name: &str, operation: &str| {
        let port = r#"precision="FP32"><dim>2</dim></port>"#;
        format!(
            r#"
      <{name}>
        <layers>
          <layer id="0" name="given" type="Parameter" version="opset1">
            <data shape="2" element_type="f32"/><output><port id="0" {port}</output>
          </layer>
          <layer id="1" name="made" type="{operation}" version="opset1">
            <input><port id="0" {port}</input><output><port id="1" {port}</output>
          </layer>
          <layer id="2" name="result" type="Result" version="opset1"><input><port id="0" {port}</input></layer>
        </layers>
        <edges>
          <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
          <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
        </edges>
      </{name}>"#
        )
    };
    let map =
        r#"<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>"#;
    format!(
        r#"<net name="n" version="11">
  <layers>
    <layer id="0" name="c" type="Parameter" version="opset1"><data shape="" element_type="boolean"/>
      <output><port id="0" precision="BOOL"/></output></layer>
    <layer id="1" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
      <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
    <layer id="2" name="if" type="If" version="opset8"><!-- kept -->
      <input><port id="0" precision="BOOL"/><port id="1" precision="FP32"><dim>2</dim></port></input>
      <output><port id="2" precision="FP32"><dim>2</dim></port></output>
      <then_port_map>{map}</then_port_map>
      <else_port_map>{map}</else_port_map>{}{}
    </layer>
    <layer id="3" name="out" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port></input></layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
    <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
  </edges>
</net>"#,
        branch("then_body", "Negative"),
        branch("else_body", "Abs"),
    )
}

/// Checks that the model, written in the file's own style and anew, reads as the same valid model.
fn rereads(model: &Model) {
    for canonical in [false, true] {
        let text = write(model, WriteOptions { canonical, ..WriteOptions::default() });
        let mut again = Model::from_xml(text.clone()).unwrap();
        assert_eq!(infer(&mut again), [], "{text}");
        let layers = |model: &Model| -> Vec<String> {
            let graphs = model.walk();
            graphs.flat_map(|(place, graph)| graph.layers().map(move |layer| format!("{place} {layer:?}"))).collect()
        };
        let (mut now, mut then) = (layers(model), layers(&again));
        now.sort_unstable();
        then.sort_unstable();
        assert_eq!(now, then, "{text}");
    }
}

#[test]
fn a_port_map_is_edited_in_its_place() {
    let mut model = Model::from_xml(with_if()).unwrap();
    assert_eq!(infer(&mut model), []);
    let (choice, condition) = (LayerId(2), LayerId(0));
    model
        .edit(|graph| {
            let inputs = [condition.output(0), LayerId(1).output(0), LayerId(1).output(0)];
            graph.replace_in_place(choice, NewLayer::new("If", "opset8"), &inputs)?;
            for at in 0..2 {
                let mut body = graph.body(choice, at)?;
                let more = NewLayer::new("Parameter", "opset1").with_attribute("shape", "2");
                let more = body.add(more.with_attribute("element_type", "f32"), &[])?;
                let sum = NewLayer::new("Add", "opset1");
                let sum = body.insert_after(LayerId(1).output(0), sum, &[more.output(0)])?;
                assert!(body.producer(LayerId(2).input(0)) == Some(sum.output(0)));
                let joints = vec![
                    PortMapEntry::input(1, LayerId(0)),
                    PortMapEntry::input(2, more),
                    PortMapEntry::output(0, LayerId(2)),
                ];
                graph.set_port_map(choice, at, joints, Vec::new())?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(infer(&mut model), []);
    let text = write(&model, WriteOptions::default());
    assert!(text.contains("<!-- kept -->"), "{text}");
    assert_eq!(text.matches(r#"<input external_port_id="2""#).count(), 2, "{text}");
    rereads(&model);
}

#[test]
fn what_a_port_map_names_stays() {
    let mut model = Model::from_xml(with_if()).unwrap();
    let _ = infer(&mut model);
    let before = write(&model, WriteOptions::default());
    let choice = LayerId(2);
    let refused = [
        model.edit(|graph| graph.body(choice, 0)?.remove(LayerId(2))),
        model.edit(|graph| graph.replace_in_place(choice, NewLayer::new("If", "opset8"), &[LayerId(0).output(0)])),
        model.edit(|graph| graph.set_port_map(choice, 0, vec![PortMapEntry::input(1, LayerId(1))], Vec::new())),
        model.edit(|graph| graph.set_port_map(choice, 0, vec![PortMapEntry::input(2, LayerId(0))], Vec::new())),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(EditError::Joined { .. })), "{refused:?}");
    }
    let bodies = NewLayer::new("If", "opset8").with_body("then_body");
    let refused =
        model.edit(|graph| graph.replace_in_place(choice, bodies, &[LayerId(0).output(0), LayerId(1).output(0)]));
    assert_eq!(refused, Err(EditError::HasBodies(choice)));
    assert_eq!(write(&model, WriteOptions::default()), before);
}

#[test]
fn a_loop_is_added_with_its_body() {
    let mut model = Model::from_xml(with_if()).unwrap();
    model.set_weights(typelift::Weights::from_bytes([]));
    assert_eq!(infer(&mut model), []);
    model
        .edit(|graph| {
            let x = LayerId(1).output(0);
            let (trips, go) = (graph.constant_of(&[], &[3_i64])?, graph.constant_of(&[], &[true])?);
            let add = NewLayer::new("Loop", "opset5").named("loop").with_body("body");
            let repeat = graph.add(add, &[trips, go, x])?;
            let mut body = graph.body(repeat, 0)?;
            let given = NewLayer::new("Parameter", "opset1").with_attribute("shape", "2");
            let given = body.add(given.with_attribute("element_type", "f32"), &[])?;
            let made = body.add(NewLayer::new("ReLU", "opset1"), &[given.output(0)])?;
            let result = body.add(NewLayer::new("Result", "opset1"), &[made.output(0)])?;
            let goes_on = body.constant_of(&[], &[true])?;
            let condition = body.add(NewLayer::new("Result", "opset1"), &[goes_on])?;
            let joints = vec![
                PortMapEntry::input(2, given),
                PortMapEntry::output(0, result),
                PortMapEntry::output(0, condition).with_purpose("execution_condition"),
            ];
            graph.set_port_map(repeat, 0, joints, vec![BackEdge { from: result, to: given }])?;
            graph.add(NewLayer::new("Result", "opset1").named("looped"), &[repeat.output(0)])
        })
        .unwrap();
    assert_eq!(infer(&mut model), []);
    let repeat = model.graph().find("loop").unwrap();
    assert_eq!(model.graph().layer(repeat).unwrap().outputs()[0].to_string(), "f32[2]");
    let text = write(&model, WriteOptions::default());
    assert!(text.contains("<back_edges>"), "{text}");
}

#[test]
fn metadata_of_another_layer_is_written_in_its_place() {
    let text = with_if()
        .replace("<!-- kept -->", r#"<rt_info><attribute name="fused_names" version="0" value="if"/></rt_info>"#);
    let mut model = Model::from_xml(text).unwrap();
    assert_eq!(infer(&mut model), []);
    model.edit(|graph| graph.copy_metadata(LayerId(2), LayerId(1))).unwrap();
    let written = write(&model, WriteOptions::default());
    assert_eq!(written.matches("fused_names").count(), 2, "{written}");
    rereads(&model);
    model.edit(|graph| graph.copy_metadata(LayerId(0), LayerId(2))).unwrap();
    assert_eq!(write(&model, WriteOptions::default()).matches("fused_names").count(), 1);
}

/// Code that catches the panic of an edit finds the model unchanged, including bodies and weights.
#[test]
fn an_edit_that_panics_changes_nothing() {
    let mut model = Model::from_xml(with_if()).unwrap();
    let before = (write(&model, WriteOptions::default()), model.weights().len());
    let place = model.walk().map(|(place, _)| place).find(|place| !place.is_model()).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        model.edit::<()>(|graph| {
            graph.constant_of(&[2], &[F16::from(1.0), F16::from(2.0)])?;
            graph.everywhere(&mut |graph| {
                let layer = graph.layers().next().unwrap().id();
                graph.set_name(layer, "renamed")
            })?;
            let _inside = graph.at(&place)?;
            panic!("a fault of whoever edits");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((write(&model, WriteOptions::default()), model.weights().len()), before);
    assert_eq!(model.graph().verify(), Ok(()));
    model.edit(|graph| graph.constant_of(&[], &[Bf16::from(1.5)])).unwrap();
}

/// A function with an edit that is refused; it gets layers of a graph and a new layer.
type Refused = fn(&mut Edit, [LayerId; 4], NewLayer) -> Result<(), EditError>;

#[test]
fn what_openvino_cannot_run_is_not_made() {
    let text = "x = Parameter : f32[2]\ny = Relu(x)\nz = Tanh(y)\nn = Sigmoid(x) : f32[2] \"scores\"\nr = Result(z)\n";
    let mut model = Model::from_text(text).unwrap();
    assert!(infer(&mut model).is_empty());
    let id = |name: &str| model.graph().find(name).unwrap();
    let (x, y, n, r) = (id("x"), id("y"), id("n"), id("r"));
    let result = || NewLayer::new("Result", "opset1");
    let refusals: [(Refused, &str); 8] = [
        (
            |graph, [x, y, ..], result| graph.replace_in_place(y, result, &[x.output(0)]),
            "`y` feeds layer 2 `z`; add another Result",
        ),
        (|graph, [_, y, ..], _| graph.set_operation(y, "Result", "opset1"), "`y` feeds layer 2 `z`"),
        (
            |graph, [x, _, n, _], result| graph.replace_in_place(n, result, &[x.output(0)]),
            "`n` produces the tensor `scores`",
        ),
        (|graph, [.., r], _| graph.set_operation(r, "Relu", "opset1"), "`r` is an output of its graph"),
        (|graph, [_, y, _, r], _| graph.connect(r.output(0), y.input(0)), "`r` cannot feed another layer"),
        (|graph, [_, y, _, r], _| graph.connect_all([(r.output(0), y.input(0))]), "`r` cannot feed another layer"),
        (
            |graph, [x, ..], _| clamp(graph, x, &["min"]).map(|_| ()),
            "Clamp does not accept its inputs or attributes: it requires `max`; give",
        ),
        (|graph, [x, ..], _| clamp(graph, x, &[]).map(|_| ()), "`min` and `max`; give values, as in {min=…, max=…}"),
    ];
    let before = model.to_text();
    for (edit, expected) in refusals {
        let error = model.edit(|graph| edit(graph, [x, y, n, r], result())).unwrap_err();
        assert!(matches!(error, EditError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(model.to_text(), before);
    }
    model.edit(|graph| clamp(graph, x, &["max", "min"])).unwrap();
}

/// Adds a Clamp with these attributes.
fn clamp(graph: &mut Edit, x: LayerId, attributes: &[&str]) -> Result<LayerId, EditError> {
    let new = attributes
        .iter()
        .zip([6, 0])
        .fold(NewLayer::new("Clamp", "opset1"), |new, (name, value)| new.with_attribute(name, value));
    graph.add(new, &[x.output(0)])
}

/// OpenVINO reads a file without them, so an edit of such a layer must not require them.
#[test]
fn a_layer_keeps_lacking_what_its_file_lacks() {
    let text = "x = Parameter : f32[2]\ny = Elu(x)\nz = Relu(y)\nr = Result(z)\n";
    let mut model = Model::from_text(text).unwrap();
    assert!(infer(&mut model).is_empty());
    let (x, y, z) = ["x", "y", "z"].map(|name| model.graph().find(name).unwrap()).into();
    let elu = || NewLayer::new("Elu", "opset1");
    model.edit(|graph| graph.replace_in_place(y, elu(), &[x.output(0)])).unwrap();
    let error = model.edit(|graph| graph.replace_in_place(z, elu(), &[y.output(0)])).unwrap_err();
    assert!(error.to_string().contains("requires `alpha`"), "{error}");
}
