//! Real models written by OpenVINO 2026.4.1: preserved byte for byte, and typed and lowered as OpenVINO does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use typelift::findings::Diagnostic;
use typelift::graph::{Direction, OutputPort};
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_PROMOTE_TYPES, LOWER_WITHOUT_NOOPS, UNIQUE_TENSOR_NAMES, run};
use typelift::xml::{WriteOptions, parse, write};
use typelift::{Graph, Layer, Model, Weights, infer};

pub(crate) fn models(wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut files: Vec<_> = files.filter(|path| name(path).ends_with(".xml") && wanted(&name(path))).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Returns the model as read, and its text.
fn open(path: &Path) -> (Model, String) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut model = Model::from_xml(text.as_str()).unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
    model.set_weights(Weights::beside(path).unwrap());
    (model, text)
}

fn infer_without_errors(model: &mut Model, path: &Path) {
    let errors: Vec<_> = infer(model).into_iter().filter(Diagnostic::is_error).collect();
    assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
}

/// Edges and `<data>` in OpenVINO's form are read by comparing text, and others attribute by attribute.
#[test]
fn both_ways_to_read_edges_and_data_give_the_same_model() {
    for path in models(|_| true) {
        let (model, text) = open(&path);
        let spaced = text.replace("<edge ", "<edge  ").replace("<data ", "<data  ");
        assert_ne!(text, spaced);
        let mut other = Model::from_xml(spaced).unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
        other.set_weights(Weights::beside(&path).unwrap());
        assert_eq!(model.to_string(), other.to_string(), "{}", path.display());
    }
}

/// Text that looks like an edge or `<data>` after an element without content does not belong to that element.
#[test]
fn an_element_without_content_takes_nothing_from_what_follows() {
    let relu = |id, ports: &str| format!(r#"<layer id="{id}" name="relu{id}" type="ReLU" version="opset1"{ports}"#);
    let port = r#"><data a="1" /></layer>"#;
    let layers = relu(0, port) + &relu(1, "/>") + r#"<data a="1" />"# + &relu(2, port);
    let edge = r#"<edge from-layer="0" from-port="0" to-layer="1" to-port="0" />"#;
    let text = format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges />{edge}<rt_info /></net>"#);
    let reading = parse(text.into());
    let attributes = |layer: &Layer| layer.attributes().len();
    let model = reading.model.unwrap();
    assert_eq!(model.graph().layers().map(attributes).collect::<Vec<_>>(), [1, 0, 1]);
    let ignored = reading.diagnostics.iter().filter(|it| it.code == typelift::findings::Code::UnknownElement).count();
    assert_eq!(ignored, 2, "{:#?}", reading.diagnostics);
}

#[test]
fn untouched_models_are_written_byte_for_byte() {
    for path in models(|_| true) {
        let (model, text) = open(&path);
        for canonical in [false, true] {
            let written = write(&model, WriteOptions { canonical, refresh_ports: true, ..WriteOptions::default() });
            assert!(written == text, "{} changes, canonical: {canonical}", path.display());
        }
    }
}

#[test]
fn inference_finds_every_type_and_dim_that_openvino_wrote() {
    for path in models(|name| !name.ends_with(".ref.xml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let reading = parse(strip(&text).into());
        let mut model = reading.model.unwrap();
        model.set_weights(Weights::beside(&path).unwrap());
        infer_without_errors(&mut model, &path);
        // Operations of extensions keep their declared outputs, and this file declares none.
        if text.contains("version=\"extension\"") {
            continue;
        }
        let refreshed = write(&model, WriteOptions { canonical: true, refresh_ports: true, ..WriteOptions::default() });
        let different = text.lines().zip(refreshed.lines()).enumerate().find(|(_, (want, got))| want != got);
        assert!(refreshed == text, "{}: line and text {different:?}", path.display());
    }
}

/// Removes the dimensions and types of ports from a text.
fn strip(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("<dim>"));
    let typeless = lines.map(|line| match (line.contains("<port "), line.find("precision=\"")) {
        (true, Some(at)) => {
            let value = at + "precision=\"".len();
            let end = value + line[value..].find('"').unwrap();
            format!("{}UNSPECIFIED{}\n", &line[..value], &line[end..])
        }
        _ => format!("{line}\n"),
    });
    typeless.collect()
}

#[test]
fn lowering_gives_the_graph_of_openvinos_own_pass() {
    for reference in models(|name| name.ends_with(".ref.xml")) {
        let path = PathBuf::from(reference.to_str().unwrap().replace(".ref.xml", ".xml"));
        let (mut model, _) = open(&path);
        infer_without_errors(&mut model, &path);
        assert!(!run(&mut model, LOWER_PROMOTE_TYPES).unwrap().is_empty(), "{}", path.display());
        run(&mut model, UNIQUE_TENSOR_NAMES).unwrap();
        let (mut expected, _) = open(&reference);
        if expected.weights().len().is_none() {
            expected.set_weights(model.weights().clone());
        }
        let (ours, theirs) = (describe(model.graph(), model.weights()), describe(expected.graph(), expected.weights()));
        for (key, want) in &theirs {
            assert_eq!(ours.get(key), Some(want), "{}: {key}", path.display());
        }
        for key in ours.keys() {
            assert!(theirs.contains_key(key), "{}: {key} is too much", path.display());
        }
    }
}

#[test]
fn lowering_leaves_nothing_for_inference_to_find() {
    for path in models(|name| !name.ends_with(".ref.xml")) {
        let (mut model, _) = open(&path);
        infer_without_errors(&mut model, &path);
        for pass in [LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS] {
            run(&mut model, pass).unwrap();
        }
        let before = describe(model.graph(), model.weights());
        infer_without_errors(&mut model, &path);
        assert_eq!(before, describe(model.graph(), model.weights()), "{}", path.display());
    }
}

#[test]
fn converting_twice_changes_nothing_more() {
    for path in models(|name| !name.ends_with(".ref.xml")) {
        let convert = |text: String| {
            let mut model = Model::from_xml(text).unwrap();
            model.set_weights(Weights::beside(&path).unwrap());
            infer_without_errors(&mut model, &path);
            run(&mut model, LOWER_WITHOUT_NOOPS).unwrap();
            run(&mut model, ELIMINATE_NOOP_CONVERTS).unwrap();
            write(&model, WriteOptions::default())
        };
        let once = convert(std::fs::read_to_string(&path).unwrap());
        assert!(convert(once.clone()) == once, "{}", path.display());
        let canonical = write(
            &Model::from_xml(once.as_str()).unwrap(),
            WriteOptions { canonical: true, refresh_ports: true, ..WriteOptions::default() },
        );
        assert_eq!(
            describe(Model::from_xml(once).unwrap().graph(), &Weights::none()),
            describe(Model::from_xml(canonical).unwrap().graph(), &Weights::none()),
            "{}",
            path.display()
        );
    }
}

/// Describes a graph by the names of its layers: ids, order and offsets of constants are ignored.
fn describe(graph: &Graph, weights: &Weights) -> BTreeMap<String, String> {
    let mut seen = HashMap::new();
    let keys: HashMap<_, _> = graph
        .layers()
        .map(|layer| {
            let occurrence = seen.entry(layer.name().to_owned()).and_modify(|n| *n += 1).or_insert(0);
            (layer.id(), format!("{}#{occurrence}", layer.name()))
        })
        .collect();
    let mut description = BTreeMap::new();
    for layer in graph.layers() {
        let producers = graph.producers(layer.id()).into_iter().map(|producer| {
            let port = producer.and_then(|output| graph.output(output)).map(type_and_dims);
            format!("{:?} {port:?}", producer.map(|output| (&keys[&output.layer], output.port)))
        });
        let outputs = layer.outputs().iter().map(|port| format!("{} {:?}", type_and_dims(port), port.names()));
        let maps = layer.bodies().iter().map(|body| {
            let inner: HashMap<_, _> = body.graph.layers().map(|layer| (layer.id(), layer.name().to_owned())).collect();
            let mut entries: Vec<_> = body
                .port_map
                .iter()
                .map(|entry| {
                    let direction = if entry.direction == Direction::Input { "in" } else { "out" };
                    format!(
                        "{direction} {} {:?} {:?}",
                        entry.external_port_id,
                        inner.get(&entry.internal_layer_id),
                        entry.axis
                    )
                })
                .collect();
            entries.extend(
                body.back_edges.iter().map(|edge| format!("{:?} {:?}", inner.get(&edge.from), inner.get(&edge.to))),
            );
            entries.sort();
            entries
        });
        let text = format!(
            "{} {} {:?} {} in {:?} out {:?} maps {:?}",
            layer.ty(),
            layer.version(),
            layer.output_names(),
            attributes(layer, weights),
            producers.collect::<Vec<_>>(),
            outputs.collect::<Vec<_>>(),
            maps.collect::<Vec<_>>(),
        );
        let key = &keys[&layer.id()];
        for body in layer.bodies() {
            let inner = describe(&body.graph, weights);
            description.extend(inner.into_iter().map(|(name, text)| (format!("{key}/{}: {name}", body.name()), text)));
        }
        description.insert(key.clone(), text);
    }
    description
}

fn type_and_dims(port: &OutputPort) -> String {
    let dims = port.shape().dims().unwrap_or_default().iter().map(|dim| dim.value().unwrap_or(-1));
    format!("{} {:?}", port.element_type(), dims.collect::<Vec<_>>())
}

/// Returns the attributes of a layer, with a constant's bytes in place of their offset.
fn attributes(layer: &Layer, weights: &Weights) -> String {
    let number = |name| layer.attribute(name).and_then(|text| text.parse::<u64>().ok());
    let bytes = number("offset").zip(number("size")).and_then(|(at, size)| weights.read(at, size as usize));
    let plain = layer.attributes().iter().filter(|attribute| bytes.is_none() || attribute.name() != "offset");
    let text: Vec<_> = plain.map(|attribute| format!("{}={}", attribute.name(), attribute.value())).collect();
    format!("{text:?} {bytes:?}")
}
