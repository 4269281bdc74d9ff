//! Edits of a graph whose file has more than the graph: what is written reads as the graph that was written.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use typelift::graph::{Edit, EditError, LayerId, NewLayer, Output};
use typelift::promote::ElementType;
use typelift::xml::{WriteOptions, write};
use typelift::{Code, Model};

/// A Parameter with the id `id`, and a Result.
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
            let bodies =
                model.graph().layers().flat_map(|layer| layer.bodies().iter().map(|body| body.graph().clone()));
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
