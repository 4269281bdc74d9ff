//! Cost of a conversion in allocations and memory, which must be in proportion to the graph. The figures do not depend
//! on a clock.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../benches/common/mod.rs"]
mod graphs;
mod misshapen;

use std::convert::Infallible;

use allocation_counter::{AllocationInfo, measure};
use typelift::convert::Conversion;
use typelift::passes::{Align, infer_aligned};
use typelift::rewrite::{Script, library};
use typelift::xml::{self, WriteOptions, write_to};
use typelift::{Checking, Model, Weights, infer};

use self::misshapen::{MISSHAPEN, Shape, model};

/// Reads, infers, lowers and writes in pieces, as the program does without a report. Returns the number of bytes
/// written.
fn convert(text: &str) -> usize {
    let mut model = Model::from_xml(text).unwrap();
    let mut conversion = Conversion::default();
    conversion.is_brief = true;
    let converted = conversion.run(&mut model).unwrap();
    assert_eq!((converted.found, converted.promotions_left), (Vec::new(), 0));
    let mut written = 0;
    let Ok(()) = write_to(&model, WriteOptions::default(), |piece| {
        written += piece.len();
        Ok::<_, Infallible>(())
    });
    written
}

fn effort(text: &str) -> AllocationInfo {
    // Tables that are created once are not counted.
    convert(&graphs::chain(1));
    measure(|| {
        convert(text);
    })
}

/// The bounds are a tenth above the measured values, so that a more expensive conversion is noticed.
#[test]
fn a_chain_takes_few_allocations_and_little_memory() {
    let text = graphs::chain(1000);
    let info = effort(&text);
    let per_layer = info.count_total as f64 / 2003.0;
    let times_text = info.bytes_max as f64 / text.len() as f64;
    assert!(per_layer < 1.38, "{per_layer} allocations a layer");
    assert!(times_text < 2.35, "at most {times_text} bytes for a byte of text");
}

/// Inference writes its results into the ports: no layer costs an allocation.
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

/// Work of quadratic cost would take far too long on these graphs.
#[test]
fn large_graphs_of_every_shape_are_converted() {
    let shapes: [(Shape, usize); 4] =
        [(graphs::star, 25_000), (graphs::deep, 25_000), (graphs::apart, 25_000), (graphs::bodies, 1_250)];
    for (graph, size) in shapes {
        let text = graph(size);
        assert!(convert(&text) > text.len() / 2);
    }
}

/// Reads, infers and checks a model that may have errors, and returns the number of diagnostics.
fn look(text: &str) -> usize {
    let reading = xml::parse(text.to_owned().into());
    let mut found = reading.diagnostics;
    let Some(mut model) = reading.model else { return found.len() };
    found.append(&mut infer(&mut model));
    Checking::default().check_inferred(&model, None, found, false).len()
}

/// Work of quadratic cost that allocates nothing would take far too long on the larger models.
#[test]
fn misshapen_models_are_looked_at_in_proportion_to_their_size() {
    let mut wrong = Vec::new();
    for (name, graph) in MISSHAPEN {
        look(&graph(2));
        let [small, large] = [2000, 8000].map(|size| {
            let text = graph(size);
            let info = measure(|| assert!(look(&text) > 0, "{name}"));
            [text.len() as u64, info.count_total, info.bytes_max].map(|number| number as f64)
        });
        let growth = (large[2] - small[2]) / (large[0] - small[0]);
        let [small, large] = [small, large].map(|[length, count, bytes]| [count / length, bytes / length]);
        let is_linear = large[0] < 1.1 * small[0] + 0.01 && large[1] < 1.1 * small[1];
        if !is_linear || growth > 20.0 {
            wrong.push(format!("{name}: {small:.4?} and {large:.4?} allocations and bytes for a byte"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A model of Ifs whose conditions are constants, each on the output of the one before.
fn constant_ifs(count: usize) -> String {
    let one = |at: usize| {
        let branch = |operation: &str| format!("a = Parameter : f32[2]\nb = {operation}(a)\nr = Result(b)\n");
        let body = |name: &str, operation: &str| {
            let lines = branch(operation).replace('\n', "\n        ");
            format!("    {name} (in 1 -> 0, out 2 -> 0):\n        {}\n", lines.trim_end())
        };
        let bodies = body("then_body", "Abs") + &body("else_body", "Exp");
        format!("c{at} = Const(true) : boolean[]\ny{} = If-8(c{at}, y{at})\n{bodies}", at + 1)
    };
    let ifs: String = (0..count).map(one).collect();
    format!("y0 = Parameter : f32[2]\n{ifs}out = Result(y{count})\n")
}

/// A name with a wildcard, a long path and a set of rules took the square of the time.
#[test]
fn statements_and_branches_take_effort_in_proportion() {
    let chain = |size: usize| Model::from_xml(graphs::chain(size)).unwrap();
    let run = |model: Model, text: &str| text.parse::<Script>().unwrap().run(model).is_ok();
    let rename = |size: usize| {
        let model = chain(size);
        measure(|| assert!(run(model, "rename * y_*")))
    };
    let info = |size: usize| {
        let (model, path) = (chain(1), "a/".repeat(size));
        // Groups nest at most 64 deep, so a longer path is an error.
        measure(|| assert!(!run(model, &format!("info {path}a = 1"))))
    };
    let branches = |size: usize| {
        let mut model = Model::from_text(&constant_ifs(size)).unwrap();
        let rules = library::get("constant-ifs").unwrap().rules().unwrap();
        measure(|| assert_eq!(model.rewrite(&rules).unwrap().applied.len(), size))
    };
    let runs: [(&str, &dyn Fn(usize) -> AllocationInfo); 3] =
        [("rename", &rename), ("info", &info), ("constant-ifs", &branches)];
    for (name, run) in runs {
        let [small, large] = [500, 2000].map(|size| {
            run(100);
            let info = run(size);
            [info.count_total, info.bytes_total].map(|number| number as f64 / size as f64)
        });
        assert!(large[0] < 1.2 * small[0], "{name}: {} and {} allocations", small[0], large[0]);
        assert!(large[1] < 1.2 * small[1], "{name}: {} and {} bytes", small[1], large[1]);
    }
}

/// No change of edges, ports or attributes turns an operation of an extension into one of OpenVINO's own.
#[test]
fn operations_of_extensions_take_no_trials() {
    let layer = |id: usize| {
        let operation = match id {
            0 => r#"type="Parameter" version="opset1"><data element_type="f32" shape="?"/>"#.to_owned(),
            _ if id.is_multiple_of(2) => r#"type="Softmax" version="opset8"><data axis="0"/>"#.to_owned(),
            _ => format!(r#"type="Tokenize{id}" version="extension">"#),
        };
        let input = if id == 0 { "" } else { r#"<input><port id="0"/></input>"# };
        format!(
            r#"<layer id="{id}" name="n{id}" {operation}{input}
            <output><port id="1" precision="FP32"><dim>-1</dim></port></output></layer>"#
        )
    };
    let text = model((0..16).map(layer), (1..16).map(|id| (id - 1, id)));
    let mut model = Model::from_xml(text.as_str()).unwrap();
    let found = infer(&mut model);
    let checked = measure(|| assert!(look(&text) > 0));
    let [without, with] = [false, true].map(|tries| {
        let found = found.clone();
        measure(|| drop(Checking::default().check_inferred(&model, None, found, tries))).count_total
    });
    assert!(
        with - without < checked.count_total,
        "{with} allocations with trials, {without} without, {} for the check",
        checked.count_total
    );
}

/// Values of tensors are computed within a budget, however many a file needs.
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

/// Files that describe much in few bytes take at most 20 times their size, in addition to the memory limit.
#[test]
fn files_of_arrays_take_memory_in_proportion() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &[0; 8]].concat();
    let many = |piece: &dyn Fn(usize) -> String| (0..20_000).map(piece).collect::<Vec<_>>().join(",");
    let tensor = |at: usize| format!(r#""{at}": {{"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}"#);
    let ones = many(&|_| "1".to_owned()).repeat(20);
    let numpy = format!("{{'descr': '|u1', 'fortran_order': True, 'shape': ({ones}), }}\n");
    let files = [
        ("tensors", header(&format!("{{{}}}", many(&tensor)))),
        ("names", header(&format!("{{{}}}", many(&|at| format!(r#""{at}": {{}}"#))))),
        ("axes", header(&format!(r#"{{"w": {{"dtype": "U8", "shape": [{ones}], "data_offsets": [0, 1]}}}}"#))),
        ("metadata", header(&format!(r#"{{"__metadata__": [{ones}]}}"#))),
        ("unknown keys", header(&format!(r#"{{"w": {{"x": [{ones}]}}}}"#))),
        ("numpy", [b"\x93NUMPY\x02\x00", &(numpy.len() as u32).to_le_bytes()[..], numpy.as_bytes()].concat()),
    ];
    let file = tempfile::NamedTempFile::new().unwrap();
    for (name, bytes) in files {
        std::fs::write(file.path(), &bytes).unwrap();
        // A back slash begins an escape in a quoted name.
        let path = file.path().display().to_string().replace('\\', "/");
        let array =
            if name == "numpy" { format!("npy(\"{path}\")") } else { format!("safetensors(\"{path}\", \"w\")") };
        let script: Script = format!("set c = {array}").parse().unwrap();
        let mut model = Model::from_text("c = Const([1, 2]) : f32[2]\nr = Result(c)\n").unwrap();
        model.set_weights(Weights::from_bytes(model.weights().read(0, 8).unwrap()).with_memory(1 << 20));
        let info = measure(|| assert!(script.run(model).is_err(), "{name}"));
        let most = (1 << 20) + 20 * bytes.len() as u64;
        assert!(info.bytes_max < most, "{name}: {} bytes for a file of {}", info.bytes_max, bytes.len());
    }
}

/// A plan of many lines took the square of their number to find names that occur twice.
#[test]
fn plans_are_read_in_proportion_to_their_lines() {
    use typelift::precision::quantize::Choice;
    let text: String = (0..50_000).map(|at| format!("keep - layers.{at}\n")).collect();
    let info = measure(|| assert_eq!(Choice::parse(&text).unwrap().len(), 50_000));
    assert!(info.bytes_max < 20 * text.len() as u64, "{} bytes", info.bytes_max);
}

/// Returns the layers and edges of a body that gets x and a condition, and adds f32 to x inside nested Ifs.
fn nested_ifs(depth: usize) -> (String, String) {
    let parameter = |id: usize, ty: &str, shape: &str| {
        format!(
            r#"<layer id="{id}" name="p{id}" type="Parameter" version="opset1"><data element_type="{ty}" shape="{shape}"/><output>
            <port id="0" precision="UNSPECIFIED"/></output></layer>"#
        )
    };
    let edge = |from: usize, port: usize, to: usize, at: usize| {
        format!(r#"<edge from-layer="{from}" from-port="{port}" to-layer="{to}" to-port="{at}"/>"#)
    };
    let result = r#"<layer id="9" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let ports = |ids: std::ops::Range<usize>| ids.map(|id| format!(r#"<port id="{id}"/>"#)).collect::<String>();
    let taken = [parameter(0, "f32", "4"), parameter(1, "boolean", "")].concat();
    let (layers, edges) = if depth == 0 {
        let constant = r#"<layer id="2" name="k" type="Const" version="opset1"><data element_type="f32" shape="4" offset="0" size="16"/>
            <output><port id="0" precision="UNSPECIFIED"/></output></layer>"#;
        let add = format!(
            r#"<layer id="3" name="add" type="Add" version="opset1"><input>{}</input><output><port id="2" precision="UNSPECIFIED"/></output></layer>"#,
            ports(0..2)
        );
        ([constant, &add].concat(), [edge(0, 0, 3, 0), edge(2, 0, 3, 1), edge(3, 2, 9, 0)].concat())
    } else {
        let (inner, wires) = nested_ifs(depth - 1);
        let gives = r#"<output external_port_id="3" internal_layer_id="9"/>"#;
        let takes = r#"<input external_port_id="1" internal_layer_id="0"/>"#;
        let layer = format!(
            r#"<layer id="4" name="if" type="If" version="opset8"><then_port_map>{takes}<input external_port_id="2" internal_layer_id="1"/>{gives}</then_port_map>
            <else_port_map>{takes}{gives}</else_port_map><input>{}</input><output><port id="3" precision="UNSPECIFIED"/></output>
            <then_body><layers>{inner}</layers><edges>{wires}</edges></then_body>
            <else_body><layers>{}{result}</layers><edges>{}</edges></else_body></layer>"#,
            ports(0..3),
            parameter(0, "f32", "4"),
            edge(0, 0, 9, 0),
        );
        (layer, [edge(1, 0, 4, 0), edge(0, 0, 4, 1), edge(1, 0, 4, 2), edge(4, 3, 9, 0)].concat())
    };
    ([taken, layers, result.to_owned()].concat(), edges)
}

/// A change in the innermost body affects all surrounding ones, and each of them is inferred again.
#[test]
fn alignment_of_nested_bodies_takes_at_most_the_square_of_their_depth() {
    let effort = |depth: usize| {
        let (layers, edges) = nested_ifs(depth);
        let layers = layers.replacen("f32", "f64", 1);
        let text = format!(r#"<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#);
        let rules = typelift::promote::openvino::Options { promote_unsafe: true, ..Default::default() };
        let info = measure(|| {
            let mut model = Model::from_xml(text.as_str()).unwrap();
            model.set_weights(Weights::from_bytes(vec![0; 16]));
            let rules = typelift::promote::RuleSet::OpenVino(rules);
            let (found, changes) = infer_aligned(&mut model, Align::Rules(rules)).unwrap();
            assert!(found.iter().all(|it| !it.is_error()), "{found:?}");
            assert!(changes.len() > depth, "{} changes", changes.len());
        });
        info.count_total as f64 / text.len() as f64
    };
    effort(1);
    let [few, many] = [15, 60].map(effort);
    assert!(many < 4.0 * few, "{few} and {many} allocations for a byte");
}

/// A chain of layers whose lengths grow: by a sum, and by a division in a division until an expression is too large.
fn open_chain(steps: usize) -> String {
    let mut text = String::from(
        "x = Parameter : f32[?,?]\ny = Parameter : f32[?,?]\nzero = Const([0]) : i64[1]\nend = Const([9223372036854775807]) : i64[1]\n\
         two = Const([2]) : i64[1]\none = Const([1]) : i64[1]\na0 = Add(x, y)\nb0 = ReLU(x)\n",
    );
    for step in 0..steps {
        text += &format!(
            "c{step} = Concat(a{step}, x) {{axis=1}}\na{0} = Add(c{step}, c{step})\n\
             d{step} = Slice-8(b{step}, zero, end, two, one)\nb{0} = Concat(d{step}, x) {{axis=1}}\n",
            step + 1
        );
    }
    text + &format!("r = Result(a{steps})\ns = Result(b{steps})\n")
}

/// Expressions are bounded in size, so that each layer costs the same.
#[test]
fn symbols_take_effort_in_proportion() {
    let effort = |steps: usize| {
        let mut model = Model::from_text(&open_chain(steps)).unwrap();
        assert_eq!(infer(&mut model), []);
        let info = measure(|| assert!(!typelift::shapes(&model).symbols.is_empty()));
        [info.count_total, info.bytes_total].map(|number| number as f64 / steps as f64)
    };
    let [small, large] = [1000, 5000].map(effort);
    assert!(large[0] < 1.1 * small[0], "{small:?} and {large:?} allocations and bytes a step");
    assert!(large[1] < 1.2 * small[1], "{small:?} and {large:?} allocations and bytes a step");
}
