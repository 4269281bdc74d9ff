//! `typelift view`: a self-contained page. Its behaviour in a browser is tested by `.ci/view`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

use std::fs;

use serde_json::Value;

use crate::cli::{folder, model, run};

/// Returns the data of the page, as its script reads them.
pub(crate) fn data(page: &str) -> Value {
    let start = page.find(r#"<script id="data" type="application/json">"#).unwrap();
    let text = page[start..].split_once('>').unwrap().1.split("</script>").next().unwrap();
    let Value::Object(mut data) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
    let mut strings = Vec::<String>::new();
    for pair in data["strings"].as_array().unwrap().chunks(2) {
        let shared = pair[0].as_u64().unwrap() as usize;
        let start = strings.last().map_or("", |last| &last[..shared]);
        strings.push(format!("{start}{}", pair[1].as_str().unwrap()));
    }
    let mut page = data.remove("page").unwrap();
    unfold(&mut page, &strings);
    for graph in page["graphs"].as_array_mut().unwrap() {
        graph["nodes"].as_array_mut().unwrap().iter_mut().for_each(name_columns);
    }
    page
}

/// Makes an object of the row of a box.
fn name_columns(row: &mut Value) {
    let named = |names: &[&str], row: &Value| -> serde_json::Map<_, _> {
        names.iter().map(|&name| name.to_owned()).zip(row.as_array().unwrap().iter().cloned()).collect()
    };
    let columns = ["id", "path", "op", "line", "group", "outputs", "inputs", "attributes", "tensors", "more"];
    let mut node = named(&columns, row);
    node.insert("name".to_owned(), node["path"].clone());
    let inputs = node["inputs"].as_array().unwrap().iter();
    let inputs = inputs.map(|input| Value::Object(named(&["text", "from", "name", "held", "parts", "of"], input)));
    node.insert("inputs".to_owned(), inputs.collect());
    if let Some(Value::Object(more)) = node.remove("more") {
        node.extend(more);
    }
    *row = node.into();
}

/// Restores strings: `~1` is the second of them.
fn unfold(value: &mut Value, strings: &[String]) {
    match value {
        Value::String(text) => {
            if let Some(place) = text.strip_prefix('~') {
                text.clone_from(&strings[place.parse::<usize>().unwrap()]);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| unfold(item, strings)),
        Value::Object(map) => map.values_mut().for_each(|item| unfold(item, strings)),
        _ => {}
    }
}

#[test]
fn a_page_holds_the_graph_and_needs_nothing_else() {
    let folder = folder();
    let path = folder.path();
    let hostile = fs::read_to_string(path.join("model.xml")).unwrap().replace("s0", "&lt;/script>&lt;img src=x>");
    fs::write(path.join("model.xml"), hostile).unwrap();
    assert_eq!(run(path, &["view", "model.xml", "-o", "model.html"]).status, 0);
    let page = fs::read_to_string(path.join("model.html")).unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("https:"));
    assert_eq!(page.matches("http:").count(), page.matches("http://www.w3.org/2000/svg").count());
    let data = data(&page);
    let names: Vec<_> = data["graphs"][0]["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    // The constant is part of its consumer.
    assert_eq!(names, ["x", "p0", "</script><img src=x>", "r0"]);
    assert_eq!(data["graphs"][0]["nodes"][1]["inputs"][1]["text"], "c f32[] = 1.5");
}

#[test]
fn two_models_give_their_changes() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("after.xml"), model("f64", 1)).unwrap();
    fs::copy(path.join("model.bin"), path.join("after.bin")).unwrap();
    assert_eq!(run(path, &["view", "model.xml", "after.xml", "-o", "-"]).status, 0);
    let data = data(&run(path, &["view", "model.xml", "after.xml", "-o", "-"]).stdout);
    assert_eq!(data["changes"].as_array().unwrap().len(), 1);
    assert_eq!((&data["changes"][0]["before"], &data["changes"][0]["after"]), (&"f16".into(), &"f64".into()));
}

#[test]
fn a_page_is_not_written_over_a_model() {
    let folder = folder();
    let before = fs::read(folder.path().join("model.xml")).unwrap();
    for arguments in [["model.xml", "-o", "model.xml"], ["model.xml", "-o", "./model.xml"]] {
        assert_eq!(run(folder.path(), &[&["view"], &arguments[..]].concat()).status, 2);
    }
    assert_eq!(fs::read(folder.path().join("model.xml")).unwrap(), before);
}

/// Returns a model of layers with one input and one output, by their types, and edges between their positions.
fn graph(layers: impl Iterator<Item = &'static str>, edges: impl Iterator<Item = (usize, usize)>) -> String {
    let layer = |(id, ty): (usize, &str)| {
        let data = if ty == "Parameter" { r#"<data shape="4" element_type="f32"/>"# } else { "" };
        format!(
            r#"<layer id="{id}" name="n{id}" type="{ty}" version="opset1">{data}<input><port id="0"/></input><output><port id="1"
            precision="FP32"><dim>4</dim></port></output></layer>"#
        )
    };
    let edge = |(from, to)| format!(r#"<edge from-layer="{from}" from-port="1" to-layer="{to}" to-port="0"/>"#);
    let (layers, edges): (String, String) = (layers.enumerate().map(layer).collect(), edges.map(edge).collect());
    format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

/// Returns the data of a model's page, drawn on the stack of a small thread.
fn drawn(text: String) -> (Value, usize) {
    let folder = tempfile::tempdir().unwrap();
    let [model, page] = ["model.xml", "page.html"].map(|name| folder.path().join(name));
    fs::write(&model, text).unwrap();
    let arguments =
        ["typelift".into(), "view".into(), model.into_os_string(), "-o".into(), page.clone().into_os_string()];
    let small = std::thread::Builder::new().stack_size(512 << 10);
    assert!(small.spawn(|| typelift_cli::run(arguments)).unwrap().join().unwrap() < 2);
    let page = fs::read_to_string(page).unwrap();
    (data(&page), page.len())
}

#[test]
fn a_graph_of_any_shape_is_a_page_of_moderate_size() {
    const RELU: &str = "ReLU";
    let sources = |count: usize| std::iter::repeat_n("Parameter", count);
    let layers = |count: usize| sources(1).chain(std::iter::repeat_n(RELU, count - 1));
    let many = 30_000;
    let ports: String = (1..2 * many).map(|port| format!(r#"<port id="{port}" precision="FP32"/>"#)).collect();
    let outputs = format!(r#"<layer id="0" name="n" type="Foo" version="extension"><output>{ports}</output></layer>"#);
    let shapes = [
        ("outputs", format!(r#"<net name="n" version="11"><layers>{outputs}</layers><edges/></net>"#), false),
        ("a layer that feeds itself", graph([RELU].into_iter(), [(0, 0)].into_iter()), true),
        ("a circle", graph(layers(500), (1..500).map(|at| (at, at % 499 + 1))), true),
        ("a chain", graph(layers(5_000), (1..5_000).map(|at| (at - 1, at))), true),
        ("a long chain", graph(layers(many), (1..many).map(|at| (at - 1, at))), false),
        (
            "pairs",
            graph((0..6_000).map(|at| ["Parameter", RELU][at % 2]), (0..3_000).map(|at| (2 * at, 2 * at + 1))),
            true,
        ),
        (
            "many pairs",
            graph((0..many).map(|at| ["Parameter", RELU][at % 2]), (0..many / 2).map(|at| (2 * at, 2 * at + 1))),
            false,
        ),
        ("a hub", graph(layers(5_000), (1..5_000).map(|at| (0, at))), true),
        ("a large hub", graph(layers(many), (1..many).map(|at| (0, at))), false),
    ];
    for (name, text, is_drawn) in shapes {
        let (data, size) = drawn(text);
        assert!(data["outline"].is_null() || !is_drawn, "{name}");
        let boxes = data["graphs"][0]["nodes"].as_array().unwrap();
        assert!(size < 5 << 20, "{name}: {size} bytes");
        assert!(boxes.len() <= 20_000, "{name}: {} boxes", boxes.len());
        let layers = boxes.iter().map(|node| node["layers"].as_u64().unwrap_or(1)).sum::<u64>();
        assert_eq!(data["layers"], layers, "{name}: every layer is in a box");
    }
}

/// A matrix from red, green and blue to perceived colours.
type Eyes = [[f64; 3]; 3];
const MOST: Eyes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
/// The matrix is from Machado, Oliveira and Fernandes, 2009.
const DEUTERANOPIA: Eyes =
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];

/// Returns a colour as somebody perceives it, in CIELAB.
fn seen(code: &str, eyes: Eyes) -> [f64; 3] {
    let linear = |at: usize| {
        let value = f64::from(u8::from_str_radix(&code[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let apply = |rows: [[f64; 3]; 3], of: [f64; 3]| rows.map(|row| row.iter().zip(of).map(|(a, b)| a * b).sum::<f64>());
    let to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
    let rgb = apply(eyes, [1, 3, 5].map(linear)).map(|value| value.clamp(0.0, 1.0));
    let [x, y, z] = apply(to_xyz, rgb);
    let root = |value: f64| if value > 0.008856 { value.cbrt() } else { 7.787 * value + 16.0 / 116.0 };
    let [x, y, z] = [x / 0.95047, y, z / 1.08883].map(root);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The colours were apart in a table, and i32 and u4 looked alike on a dark page.
#[test]
fn colours_of_any_two_element_types_are_apart_in_light_and_in_dark() {
    let script = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../typelift-view/src/page/data.js")).unwrap();
    let table = script.split_once("const COLORS = {").unwrap().1.split_once("};").unwrap().0;
    let colours: Vec<_> = table.split('"').skip(1).step_by(2).collect();
    assert!(colours.len() > 50, "{table}");
    let luminance = |code: &str| ((seen(code, MOST)[0] + 16.0) / 116.0).powi(3) + 0.05;
    for (theme, ground) in ["#ffffff", "#212934"].into_iter().enumerate() {
        let colours: Vec<_> = colours.iter().skip(theme).step_by(2).collect();
        for (at, one) in colours.iter().enumerate() {
            let contrast = luminance(one) / luminance(ground);
            assert!(contrast.max(1.0 / contrast) >= 3.0, "{one} on {ground} has a contrast of {contrast}");
            for other in &colours[at + 1..] {
                for eyes in [MOST, DEUTERANOPIA] {
                    let pairs = seen(one, eyes).into_iter().zip(seen(other, eyes));
                    let distance = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(distance > 16.0, "{one} and {other} are {distance:.1} apart");
                }
            }
        }
    }
}

/// A page showed the shape of a Reshape as the values of a weight.
#[test]
fn a_weight_of_several_constants_has_its_values_and_each_part() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/pages/int4.xml");
    assert_eq!(run(folder.path(), &["view", file, "-o", "page.html"]).status, 0);
    let data = data(&fs::read_to_string(folder.path().join("page.html")).unwrap());
    let nodes = data["graphs"][0]["nodes"].as_array().unwrap();
    let product = nodes.iter().find(|node| node["op"] == "MatMul").unwrap();
    let parts = serde_json::json!([
        ["w", "codes"],
        ["Constant_12", "output_shape"],
        ["w/scale", "scales"],
        ["w/zero", "zero points"]
    ]);
    assert_eq!(product["inputs"][1]["parts"], parts);
    let values = |path: &str| data["constants"].as_array().unwrap().iter().find(|it| it["path"] == path).unwrap();
    assert_eq!((values("w")["text"].clone(), values("w")["max"].clone()), ("u4[8,2,32]".into(), 15.0.into()));
    assert_eq!(
        (values("w/convert")["text"].clone(), values("w/convert")["count"].clone()),
        ("f32[8,64]".into(), 512.into())
    );
    assert!(values("w/convert")["max"].as_f64().unwrap() < 0.1);
}

/// A page showed the stored values of a weight as those that the model computes with. These are OpenVINO's.
#[test]
fn a_fake_quantized_weight_has_the_values_that_the_model_uses() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/cnn_fq_explicit.xml");
    let data = data(&run(folder.path(), &["view", file, "-o", "-"]).stdout);
    let of = |path: &str| data["constants"].as_array().unwrap().iter().find(|it| it["path"] == path).unwrap().clone();
    let found = of("conv0/fq_weights");
    let close = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-5;
    assert!(close(&found["min"], -1.081_829_4) && close(&found["first"][0], 0.611_319), "{found}");
}

#[test]
fn a_convert_of_a_constant_is_judged_by_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/pages/minus_one.xml");
    assert!(!run(folder.path(), &["stats", "--all", file]).stdout.contains("rounds"));
    assert_eq!(run(folder.path(), &["view", file, "-o", "page.html"]).status, 0);
    let data = data(&fs::read_to_string(folder.path().join("page.html")).unwrap());
    // The tenth column has the loss.
    assert!(data["steps"].as_array().unwrap().iter().all(|step| step[10].is_null() || step[10] == "exact"));
    let path = run(folder.path(), &["why", "--path", file, "neg/ConvertLike"]).stdout;
    assert!(path.contains("(exact)") && path.contains("the Converts lose nothing"), "{path}");
    assert!(run(folder.path(), &["show", "--losses", file]).stdout.contains(": f32[]  # exact"));
    let steps: Value = serde_json::from_str(
        &run(folder.path(), &["why", "--format", "json", "--path", file, "neg/ConvertLike"]).stdout,
    )
    .unwrap();
    assert_eq!(steps["loses"], serde_json::json!([]));
}

/// All ways to see a Convert name the same loss of a constant.
#[test]
fn a_loss_of_a_constant_has_the_same_words_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let text = "c = Const([1, 16777217]) : i32[2]\nx = Parameter : f32[2]\nv = Convert(c) {destination_type=f32}\n\
                y = Add(x, v)\nz = Result(y)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let words = "1 of 2 values changes: 1 is rounded; off by up to 1 (5.96e-6 %)";
    let said = |arguments: &[&str]| run(folder.path(), arguments).stdout;
    assert!(said(&["show", "--losses", "m.xml"]).contains(words));
    assert!(said(&["why", "--path", "m.xml", "v"]).contains(&format!("({words})")));
    assert!(data(&said(&["view", "m.xml", "-o", "-"]))["steps"].as_array().unwrap().iter().any(|it| it[10] == words));
}

/// A page called every integer an index, and the map judged constants by their types.
#[test]
fn converts_of_indices_and_losses_of_constants_are_told_by_use_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x = Parameter : i64[2]\nd = Parameter : i32[2]\nt = Const([1, 2, 3]) : f32[3]\na = Const([0]) : i32[]\n\
                c = Const([1e-300, 1e-310]) : f64[2]\nplace = Convert(x) {destination_type=i32}\ng = Gather(t, place, a)\n\
                data = Convert(d) {destination_type=f32}\ntiny = Convert(c) {destination_type=f32}\n\
                y = Add(g, data)\nw = Add(y, tiny)\nz = Result(w)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let page = data(&run(folder.path(), &["view", "m.xml", "-o", "-"]).stdout);
    let convert = |name: &str| {
        let nodes = page["graphs"][0]["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["name"] == name).unwrap()["convert"][3].clone()
    };
    assert_eq!((convert("place"), convert("data")), (true.into(), false.into()));
    let lossy = page["map"][0]["lossy"].as_array().unwrap();
    let of = |from: &str| {
        let found = lossy.iter().find(|it| it["from"] == from).unwrap();
        serde_json::json!([found["count"], found["indices"], found["loses"]])
    };
    assert_eq!((of("i64"), of("i32")), (serde_json::json!([1, 1, ["wraps"]]), serde_json::json!([1, 0, ["rounds"]])));
    assert_eq!(of("f64"), serde_json::json!([1, 0, ["rounds"]]));
}

/// A page did not say which lengths fit, nor the bounds of a length that depends on data.
#[test]
fn a_page_has_limits_and_bounds_of_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x = Parameter : f32[4,?]\nb = Const([0, 1]) : i64[2]\nz = Const(0) : f32[]\n\
                y = Pad(x, b, b, z) {pad_mode=reflect}\nr = Result(y)\nn = Parameter : boolean[4]\n\
                i = NonZero(n) {output_type=i64}\nq = Result(i)\nu = Parameter : f32[1..10,?]\nw = Result(u)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let page = data(&run(folder.path(), &["view", "m.xml", "-o", "-"]).stdout);
    let nodes = page["graphs"][0]["nodes"].as_array().unwrap();
    let of = |name: &str| nodes.iter().find(|node| node["name"] == name).unwrap();
    assert_eq!(of("x")["limits"], serde_json::json!([["s0 ≥ 2", ["y"]]]));
    assert_eq!(of("y")["limits"], serde_json::json!([["s0 ≥ 2", ["x"]]]));
    assert_eq!(of("i")["outputs"], serde_json::json!(["i64[1,..4]"]));
    assert_eq!(page["lengths"], serde_json::json!([["s0", 224, 2, null], ["batch", 1, 1, 10], ["s2", 224, 1, null]]));
    assert_eq!(of("u")["limits"], serde_json::json!([["batch ≤ 10", []]]));
}

/// A finding's edge was in a terminal and not on the page, although it is the cause.
#[test]
fn a_finding_names_the_layers_at_the_ends_of_its_edge() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/fixtures/safe/shape_of_a_consumer.xml");
    let folder = tempfile::tempdir().unwrap();
    let page = data(&run(folder.path(), &["view", model, "-o", "-"]).stdout);
    let remark = "it connects f32[4,1,2] to input 1 of layer 2, which declares f32[4,2,1]";
    assert_eq!(page["findings"][0]["sites"], serde_json::json!([[remark, ["scale", "scaled"]]]));
}

/// A cache of earlier tokens is empty at first, and a page refused that length.
#[test]
fn a_length_that_only_extends_another_may_be_0() {
    let text = "p = Parameter : f32[1,?,4]\nq = Parameter : f32[1,2..,4]\nx = Parameter : f32[1,?,4]\n\
                o = Const([0, 2, 1]) : i64[3]\nt = Transpose(p, o)\nb = Transpose(t, o)\n\
                k = Concat(q, b, x) {axis=-2}\ny = Abs(x)\nr = Result(k)\nz = Result(y)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    let found = typelift::infer(&mut model);
    let page = data(&typelift_view::Page::new(&model, &found).html().unwrap());
    let least = page["lengths"].as_array().unwrap().iter().map(|length| length[2].as_i64().unwrap());
    assert_eq!(least.collect::<Vec<_>>(), [0, 2, 1]);
}

/// An outline counted operations at the least lengths only, and no page knew which lengths belong together.
#[test]
fn an_outline_has_formulas_and_a_page_the_conditions_on_lengths() {
    let block = |at: usize| {
        let before = if at == 0 { "x".to_owned() } else { format!("m.block.{}.out", at - 1) };
        let name = format!("m.block.{at}");
        let rest: String = (1..40).map(|nth| format!("{name}.s{nth} = Sin({name}.s{})\n", nth - 1)).collect();
        format!(
            "{name}.w = Const([1, 2, 3, 4]) : f32[2,2]\n{name}.s0 = MatMul({before}, {name}.w)\n{rest}\
             {name}.out = Abs({name}.s39)\n"
        )
    };
    let layers: String = (0..4).map(block).collect();
    let text = format!(
        "x = Parameter : f32[?,2]\n{layers}m = Parameter : f32[?,2]\na = Add(m.block.3.out, m)\nr = Result(a)\n"
    );
    let mut model = typelift::Model::from_text(&text).unwrap();
    let found = typelift::infer(&mut model);
    let mut page = typelift_view::Page::new(&model, &found);
    let open = data(&page.html().unwrap());
    let [condition] = &open["conditions"].as_array().unwrap()[..] else { panic!("{}", open["conditions"]) };
    assert_eq!(condition, "batch == m_batch or batch == 1 or m_batch == 1");
    page.most_bytes = 1;
    let outline = data(&page.html().unwrap());
    let groups = outline["graphs"][0]["groups"].as_array().unwrap();
    let formulas: Vec<&Value> = groups.iter().map(|group| &group["formula"]).collect();
    assert_eq!(formulas.iter().filter(|formula| **formula == "4 * batch").count(), 4, "{formulas:?}");
    assert_eq!(outline["lengths"], open["lengths"]);
    let names = outline["names"].as_array().unwrap();
    let x = names.iter().find(|name| name[0] == "x").unwrap();
    assert_eq!(x[2], "f32[batch,2]");
}

/// A page had other fixes than `check`, and none of their commands.
#[test]
fn a_page_has_the_findings_and_fixes_of_check() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/");
    for file in ["pages/mm_bad.xml", "fixtures/align/chain.xml", "fixtures/align/constant_loses.xml"] {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("{root}{file}");
        let page = data(&run(folder.path(), &["view", &file, "-o", "-"]).stdout);
        let check: Value =
            serde_json::from_str(&run(folder.path(), &["check", "--all", "--format", "json", &file]).stdout).unwrap();
        let (found, checked) = (page["findings"].as_array().unwrap(), check["diagnostics"].as_array().unwrap());
        assert!(!found.is_empty() && found.len() == checked.len());
        for (found, checked) in found.iter().zip(checked) {
            assert_eq!((&found["code"], &found["message"]), (&checked["code"], &checked["message"]));
            let help = found["help"].as_array().unwrap();
            let (words, commands): (Vec<_>, Vec<_>) = help.iter().map(|fix| (fix[0].clone(), fix[1].clone())).unzip();
            assert_eq!(Value::from(words), checked["help"]);
            assert_eq!(commands.into_iter().find(|it| !it.is_null()).unwrap_or(Value::Null), checked["fix"]);
        }
    }
}

/// A block in another type said that fewer siblings have the usual type than do.
#[test]
fn siblings_of_the_usual_type_are_counted_by_their_type() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "x0 = Parameter : f32[2]\n".to_owned();
    for block in 0..7 {
        let ty = if block == 3 { "f16" } else { "f32" };
        let act = if block == 1 { "Exp" } else { "ReLU" };
        text += &format!(
            "m.layers.{block}.in = Convert(x{block}) {{destination_type={ty}}}\nm.layers.{block}.a = {act}(m.layers.{block}.in)\n\
             m.layers.{block}.b = Tanh(m.layers.{block}.a)\nx{} = Convert(m.layers.{block}.b) {{destination_type=f32}}\n",
            block + 1
        );
    }
    let mut model = typelift::Model::from_text(&(text + "y = Result(x7)\n")).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let said = run(folder.path(), &["stats", "m.xml"]).stdout;
    assert!(said.contains("computes in f16, its 6 siblings in f32"), "{said}");
}

/// A page showed the range and the losses of 4,096 values as those of a larger constant.
#[test]
fn the_values_of_a_constant_are_all_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut values = vec!["0"; 20_000];
    values[12_345] = "7";
    let text = format!(
        "x = Parameter : f32[20000]\nc = Const([{}]) : f32[20000]\ny = Add(x, c)\nz = Result(y)\n",
        values.join(", ")
    );
    let mut model = typelift::Model::from_text(&text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let page = data(&run(folder.path(), &["view", "m.xml", "-o", "-"]).stdout);
    let constant = page["constants"].as_array().unwrap().iter().find(|it| it["path"] == "c").unwrap();
    assert_eq!((&constant["max"], &constant["zeros"]), (&7.0.into(), &19_999.into()));
    assert!(constant.get("sample").is_none());
}

/// The end of a slice, the largest i64, was shown as 9223372036854776000.
#[test]
fn wide_integers_have_all_digits() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x = Parameter : i64[2]\nc = Const([9223372036854775807, 9007199254740993]) : i64[2]\ny = Add(x, c)\nz = Result(y)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let page = data(&run(folder.path(), &["view", "m.xml", "-o", "-"]).stdout);
    assert!(page.to_string().contains("c i64[2] = 9223372036854775807, 9007199254740993"));
    // The values below them were rounded.
    let wide = serde_json::json!(["9223372036854775807", "9007199254740993"]);
    let values = &page["constants"][0];
    assert_eq!((&values["first"], &values["min"], &values["max"]), (&wide, &wide[1], &wide[0]));
}

/// A page showed the values before a Convert as those after it, and called values that wrap infinite. These are OpenVINO's.
#[test]
fn values_after_a_convert_are_those_that_the_model_uses() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x = Parameter : f32[4]\na = Const([0.1, 1000000, 3, 1e-9]) : f32[4]\n\
                h = Convert(a) {destination_type=f16}\nb = Convert(h) {destination_type=f32}\n\
                k = Const([1.5, 300.2, -129, 7]) : f32[4]\ni = Convert(k) {destination_type=i8}\n\
                j = Convert(i) {destination_type=f32}\ny = Add(x, b)\nw = Subtract(y, j)\nz = Result(w)\n\
                t = Const([1e-310, -inf]) : f64[2]\ns = Parameter : f64[2]\nr = Add(s, t)\nq = Result(r)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let page = data(&run(folder.path(), &["view", "m.xml", "-o", "-"]).stdout);
    let whole = page.to_string();
    assert!(whole.contains("b f32[4] = 0.099975586, inf, 3, 0 ("), "{whole}");
    assert!(whole.contains("j f32[4] = 1, 44, 127, 7 ("), "{whole}");
    let messages: Vec<_> =
        page["findings"].as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
    let words = ["`a` has values beyond the range of f16: 1 of 4", "`k` has values beyond the range of i8: 2 of 4"];
    assert!(words.iter().all(|words| messages.contains(words)), "{messages:?}");
    assert!(
        whole.contains("1 overflows, 1 becomes zero, 1 is rounded; the others are off by up to 2.44e-5 (100 %)"),
        "{whole}"
    );
    let tiny = page["constants"].as_array().unwrap().iter().find(|it| it["path"] == "t").unwrap();
    assert_eq!((&tiny["first"], &tiny["max"]), (&serde_json::json!([1e-310, "-inf"]), &1e-310.into()));
}

/// A block whose weights were multiplied by 100 was merged with its siblings.
#[test]
fn a_block_with_weights_of_another_scale_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let said = |scales: [f64; 5]| {
        let mut text = "x0 = Parameter : f32[8,8]\n".to_owned();
        for (block, scale) in scales.into_iter().enumerate() {
            let values: Vec<_> = (0..64).map(|at| ((f64::from(at) - 20.0) * scale).to_string()).collect();
            text += &format!(
                "m.layers.{block}.w = Const([{}]) : f32[8,8]\nm.layers.{block}.a = MatMul(x{block}, m.layers.{block}.w) {{transpose_a=false, transpose_b=false}}\n\
                 m.layers.{block}.b = ReLU(m.layers.{block}.a)\nm.layers.{block}.c = Tanh(m.layers.{block}.b)\nx{} = Exp(m.layers.{block}.c)\n",
                values.join(", "),
                block + 1
            );
        }
        let mut model = typelift::Model::from_text(&(text + "y = Result(x5)\n")).unwrap();
        assert!(typelift::infer(&mut model).is_empty());
        model.save(folder.path().join("m.xml")).unwrap();
        run(folder.path(), &["stats", "m.xml"]).stdout
    };
    let found = said([1.0, 2.0, 0.5, 100.0, 1.0]);
    assert!(found.contains("`w` has values about 100 times as large as in its siblings"), "{found}");
    assert!(said([1.0, 0.01, 1.0, 1.0, 1.0]).contains("`w` has values about 100 times as small as in its siblings"));
    for ordinary in [[1.0, 2.0, 4.0, 6.0, 3.0], [1.0, 9.0, 90.0, 900.0, 9000.0], [1.0, 1.0, 100.0, 100.0, 1.0]] {
        assert!(!said(ordinary).contains("times as"), "{ordinary:?}");
    }
}

/// The path of a value led to the layer that uses it last.
#[test]
fn a_path_leads_to_the_first_user() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x = Parameter : f32[2]\nc = Const([1, 2]) : f32[2]\na = Add(x, c)\nb = Multiply(a, c)\nz = Result(b)\n";
    let mut model = typelift::Model::from_text(text).unwrap();
    assert!(typelift::infer(&mut model).is_empty());
    model.save(folder.path().join("m.xml")).unwrap();
    let page = data(&run(folder.path(), &["view", "m.xml", "-o", "-"]).stdout);
    let steps = page["steps"].as_array().unwrap();
    let at = |name: &str| steps.iter().position(|step| step[1] == name).unwrap();
    assert_eq!(steps[at("c")][8], at("a"));
}
