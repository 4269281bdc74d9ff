//! One word means one layer, whichever function reads it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use typelift::graph::Names;
use typelift::precision::{KeepPattern, Kept};
use typelift::rewrite::Script;
use typelift::{LayerId, Model};

const MODEL: &str = r#"<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,4" element_type="f32"/>
    <output><port precision="FP32" id="0" names="image"/></output></layer>
<layer id="1" name="2" type="Exp" version="opset1"><input><port id="0"/></input><output><port precision="FP32" id="1"/></output></layer>
<layer id="2" name="1" type="Abs" version="opset1"><input><port id="0"/></input><output><port precision="FP32" id="1"/></output></layer>
<layer id="3" name="axis" type="Const" version="opset1">
    <data element_type="i64" shape="" offset="0" size="8"/><output><port precision="I64" id="0"/></output></layer>
<layer id="4" name="halves" type="Split" version="opset1"><data num_splits="2"/>
    <input><port id="0"/><port id="1"/></input><output><port precision="FP32" id="2"/><port precision="FP32" id="3" names="right"/></output></layer>
<layer id="5" name="model/enc/layers.0/attention/aten::add/Add" type="Add" version="opset1">
    <input><port id="0"/><port id="1"/></input><output><port precision="FP32" id="2" names="sum,total"/></output></layer>
<layer id="6" name="Result_6" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="4" to-port="0"/><edge from-layer="3" from-port="0" to-layer="4" to-port="1"/>
<edge from-layer="4" from-port="2" to-layer="5" to-port="0"/><edge from-layer="4" from-port="3" to-layer="5" to-port="1"/>
<edge from-layer="5" from-port="2" to-layer="6" to-port="0"/></edges></net>"#;

/// Words, and the layer and output that each means.
const WORDS: &[(&str, u64, usize)] = &[
    ("halves", 4, 0),
    ("4", 4, 0),
    ("id:4", 4, 0),
    ("name:2", 1, 0),
    ("2", 1, 0),
    ("id:2", 2, 0),
    ("right", 4, 1),
    ("halves.1", 4, 1),
    ("id:4.1", 4, 1),
    ("image", 0, 0),
    ("total", 5, 0),
    ("Result_6", 5, 0),
    ("*/Add", 5, 0),
    ("h?lves", 4, 0),
    ("…attention/add/Add", 5, 0),
];

fn model() -> Model {
    let mut model = Model::from_xml(MODEL).unwrap();
    model.set_weights(typelift::Weights::from_bytes(vec![1, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(typelift::infer(&mut model), []);
    model
}

#[test]
fn every_reader_takes_a_word_to_mean_the_same() {
    let model = model();
    let names = Names::of(&model);
    for &(word, layer, port) in WORDS {
        let tensor = LayerId(layer).output(port);
        assert_eq!(model.find_tensor(word).unwrap().1, tensor, "{word}");
        assert_eq!(names.find(&model, word), model.find(word), "{word}");
        let step = typelift::why(&model, word).unwrap().steps.remove(0);
        assert_eq!((step.layer.id, step.output), (LayerId(layer), port), "{word}");
        let found = model.find(word).unwrap().1;
        assert_eq!(model.find_all(word).unwrap()[0].1, found, "{word}");
        let kept = Kept::find(&model, &[KeepPattern::from(word)]).unwrap();
        assert!(kept.iter().any(|(_, id)| id == found), "{word}");

        let script: Script = format!("tap \"{word}\"").parse().unwrap();
        let (tapped, _) = script.run(model.clone()).unwrap_or_else(|error| panic!("{word}: {error}"));
        assert!(tapped.outputs().any(|end| tapped.graph().producer(end.id().input(0)) == Some(tensor)), "tap {word}");
    }
}

#[test]
fn a_word_that_means_nothing_gets_the_nearest_that_does() {
    let model = model();
    for (word, near) in [
        ("havles", "halves"),
        ("Exp_1", ""),
        ("rihgt", "right"),
        ("halvs.*", "halves*"),
        ("*/attnetion/*", "*/attention/*"),
    ] {
        assert!(model.find(word).is_err(), "{word}");
        assert_eq!(model.nearest_name(word).unwrap_or_default(), near, "{word}");
    }
    let error = Kept::find(&model, &["type:Split".into(), "type:Sp1it".into()]).unwrap_err().to_string();
    assert_eq!(error, "`type:Sp1it` matches no layer; did you mean `type:Split`?");
    let error = Kept::find(&model, &["havles".into()]).unwrap_err().to_string();
    assert_eq!(error, "`havles` matches no layer; did you mean `halves`?");
}

#[test]
fn a_number_that_is_a_name_and_another_id_is_told() {
    let model = model();
    assert_eq!(model.other_meaning("2").map(|layer| layer.name()), Some("1"));
    assert!(model.other_meaning("4").is_none() && model.other_meaning("halves").is_none());
}

#[test]
fn a_name_of_two_layers_is_refused_with_an_address_of_each() {
    let model = Model::from_xml(MODEL.replace("name=\"1\"", "name=\"2\"")).unwrap();
    let error = model.find("2").unwrap_err().to_string();
    assert_eq!(error, "several layers are called `2`: `id:1`, `id:2`");
}

/// Exporters name both the product and what scales it after the output. The tensor has one producer.
#[test]
fn of_two_layers_with_a_name_the_one_whose_tensor_has_it_is_meant() {
    let names = MODEL.replace("name=\"1\"", "name=\"halves\"").replace("names=\"right\"", "names=\"halves\"");
    let model = Model::from_xml(names).unwrap();
    assert_eq!(model.find("halves").unwrap().1, LayerId(4));
    assert_eq!(model.find_tensor("halves").unwrap().1, LayerId(4).output(1));
    assert_eq!(Names::of(&model).find(&model, "halves"), model.find("halves"));
}
