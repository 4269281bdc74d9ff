//! Inputs and outputs of version 10 models that become version 11, compared with what OpenVINO's reader gives them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use typelift::convert::Conversion;
use typelift::precision::{Compression, Plan, TypeMap};
use typelift::promote::ElementType::F16;
use typelift::{IrVersion, Layer, Model};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/version_10")
}

fn open(name: &str) -> Model {
    let mut model = Model::open(folder().join(name).with_extension("xml")).unwrap();
    assert_eq!(typelift::infer(&mut model).iter().filter(|it| it.is_error()).count(), 0);
    model
}

/// Returns the inputs and outputs as OpenVINO finds them in version 11: the end, its sorted names, its type.
fn ends(model: &Model) -> Vec<String> {
    let graph = model.graph();
    let of_input = |layer: &Layer| ("input", layer.id().output(0));
    let of_output = |layer: &Layer| ("output", graph.producer(layer.id().input(0)).unwrap());
    let ends = model.inputs().map(of_input).chain(model.outputs().map(of_output));
    let row = |(end, tensor)| {
        let port = graph.output(tensor).unwrap();
        let mut names = port.names();
        names.sort_unstable();
        format!("{end},{},{}", names.join(" "), port.element_type())
    };
    ends.map(row).collect()
}

fn recorded(name: &str) -> Vec<String> {
    let table = std::fs::read_to_string(folder().join("ends.csv")).unwrap();
    let prefix = format!("{name},");
    table.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
}

#[test]
fn inputs_and_outputs_keep_the_types_and_names_that_openvino_gives_them() {
    for name in ["argmax", "split_keep_io", "types", "v10_io"] {
        let mut model = open(name);
        let mut conversion = Conversion::default();
        conversion.keep = vec!["*".into()];
        conversion.mark_keeps = true;
        conversion.run(&mut model).unwrap();
        assert_eq!(model.version(), IrVersion::V11);
        assert!(model.outputs().all(|layer| layer.output_names().is_none()));
        let (mut found, mut expected) = (ends(&model), recorded(name));
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_compressed_model_keeps_them_too() {
    for name in ["argmax", "types", "v10_io"] {
        let mut model = open(name);
        Plan::compress(&model, &Compression::to(F16)).apply(&mut model).unwrap();
        assert_eq!(ends(&model).len(), recorded(name).len());
        assert!(recorded(name).iter().all(|row| ends(&model).contains(row)), "{name}: {:?}", ends(&model));
    }
}

#[test]
fn converts_before_outputs_of_one_layer_get_the_names_of_the_outputs() {
    let mut model = open("split_keep_io");
    let mut conversion = Conversion::default();
    conversion.types = "f32=f16".parse::<TypeMap>().unwrap();
    conversion.keep_io = true;
    conversion.run(&mut model).unwrap();
    assert_eq!(model.version(), IrVersion::V10);
    let names: Vec<_> =
        model.outputs().map(|layer| model.graph().producer(layer.id().input(0)).unwrap().layer).collect();
    let names: Vec<_> = names.into_iter().map(|id| model.graph().layer(id).unwrap().name()).collect();
    assert_eq!(names, ["output_2.1", "output_2.0"]);
}
