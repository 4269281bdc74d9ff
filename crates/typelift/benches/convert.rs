//! What a conversion costs beside one bare pass of the tokenizer over the same text.
//!
//! `cargo bench -p typelift` measures and prints the medians as ratios; with `UPDATE_DOCS=1` it writes them into
//! `docs/benchmarks.md`.
#![allow(clippy::print_stdout, reason = "what is measured is for reading")]

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion};
use quick_xml::Reader;
use quick_xml::events::Event;
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_WITHOUT_NOOPS, run};
use typelift::xml::{WriteOptions, parse, write};
use typelift::{Model, Weights, infer};

/// A graph to measure on: its name, its text, and where its weights are.
struct Subject {
    name: &'static str,
    text: Arc<str>,
    weights: Weights,
}

const PHASES: &[&str] = &["bare pass", "read", "infer", "lower", "write", "convert"];

fn main() {
    let subjects = [
        Subject { name: "chain of 20,000 layers", text: chain(10_000).into(), weights: Weights::None },
        real("bert.promote"),
        real("gpt2_kv.promote"),
        real("fasterrcnn_tv.promote"),
    ];
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(4))
        .configure_from_args();
    for subject in &subjects {
        measure(&mut criterion, subject);
    }
    criterion.final_summary();
    let table = table(&subjects);
    println!("\n{table}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        update_document(&table);
    }
}

fn measure(criterion: &mut Criterion, subject: &Subject) {
    let mut group = criterion.benchmark_group(subject.name);
    let text = &subject.text;
    group.bench_function("bare pass", |b| b.iter(|| bare_pass(black_box(text))));
    group.bench_function("read", |b| b.iter_with_large_drop(|| parse(black_box(text.clone()))));
    let open = || {
        let mut model = Model::from_xml(text.clone()).expect("the graph is valid");
        model.weights = subject.weights.clone();
        model
    };
    let inferred = || {
        let mut model = open();
        infer(&mut model);
        model
    };
    group.bench_function("infer", |b| b.iter_batched(open, |mut m| (infer(&mut m), m), BatchSize::PerIteration));
    group.bench_function("lower", |b| b.iter_batched(inferred, lower, BatchSize::PerIteration));
    let lowered = lower(inferred());
    group.bench_function("write", |b| b.iter_with_large_drop(|| write(black_box(&lowered), WriteOptions::default())));
    group.bench_function("convert", |b| b.iter_with_large_drop(|| write(&lower(inferred()), WriteOptions::default())));
    group.finish();
}

fn lower(mut model: Model) -> Model {
    for pass in [LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS] {
        run(&mut model, pass).expect("the graph stays valid");
    }
    model
}

/// Every event and every attribute, looked at and forgotten.
fn bare_pass(text: &str) -> usize {
    let mut reader = Reader::from_str(text);
    let mut bytes = 0;
    loop {
        match reader.read_event().expect("the text is well-formed") {
            Event::Start(tag) | Event::Empty(tag) => {
                bytes += tag.attributes().flatten().map(|attribute| attribute.value.len()).sum::<usize>();
            }
            Event::Eof => return bytes,
            _ => {}
        }
    }
}

fn real(name: &'static str) -> Subject {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/models/{name}.xml"));
    let text = std::fs::read_to_string(&path).expect("the model is in testdata");
    Subject { name, text: text.into(), weights: Weights::beside(&path).expect("the weights can be opened") }
}

/// A chain of `blocks` times ConvertPromoteTypes and Add, in the style of OpenVINO's serializer.
fn chain(blocks: usize) -> String {
    const LONG: &[u32] = &[1, 16, 64];
    const SHORT: &[u32] = &[64];
    let mut out = String::from("<?xml version=\"1.0\"?>\n<net name=\"chain\" version=\"11\">\n\t<layers>\n");
    let mut edges = String::new();
    layer(
        &mut out,
        0,
        "x",
        "Parameter\" version=\"opset1",
        "shape=\"1,16,64\" element_type=\"f32\"",
        &[],
        &[("FP32", LONG)],
    );
    layer(
        &mut out,
        1,
        "b",
        "Parameter\" version=\"opset1",
        "shape=\"64\" element_type=\"f16\"",
        &[],
        &[("FP16", SHORT)],
    );
    let mut edge = |from: (usize, usize), to: (usize, usize)| {
        let (a, b, c, d) = (from.0, from.1, to.0, to.1);
        let text = format!("\t\t<edge from-layer=\"{a}\" from-port=\"{b}\" to-layer=\"{c}\" to-port=\"{d}\" />\n");
        edges.push_str(&text);
    };
    let mut previous = (0, 0);
    for block in 0..blocks {
        let (promote, add) = (2 + 2 * block, 3 + 2 * block);
        let attributes =
            "promote_unsafe=\"true\" pytorch_scalar_promotion=\"false\" u64_integer_promotion_target=\"f32\"";
        let name = format!("model.layers.{block}.self_attn");
        let both = [("FP32", LONG), ("FP32", SHORT)];
        let ty = "ConvertPromoteTypes\" version=\"opset14";
        layer(&mut out, promote, &format!("{name}/promote"), ty, attributes, &[("FP32", LONG), ("FP16", SHORT)], &both);
        let ty = "Add\" version=\"opset1";
        layer(&mut out, add, &format!("{name}/add"), ty, "auto_broadcast=\"numpy\"", &both, &[("FP32", LONG)]);
        edge(previous, (promote, 0));
        edge((1, 0), (promote, 1));
        edge((promote, 2), (add, 0));
        edge((promote, 3), (add, 1));
        previous = (add, 2);
    }
    let result = 2 + 2 * blocks;
    layer(&mut out, result, "y", "Result\" version=\"opset1", "", &[("FP32", LONG)], &[]);
    edge(previous, (result, 0));
    out + "\t</layers>\n\t<edges>\n" + &edges + "\t</edges>\n\t<rt_info />\n</net>\n"
}

type Port = (&'static str, &'static [u32]);

fn layer(out: &mut String, id: usize, name: &str, ty: &str, attributes: &str, inputs: &[Port], outputs: &[Port]) {
    let _ = writeln!(out, "\t\t<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\">");
    if !attributes.is_empty() {
        let _ = writeln!(out, "\t\t\t<data {attributes} />");
    }
    for (section, ports, first) in [("input", inputs, 0), ("output", outputs, inputs.len())] {
        if ports.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\t\t\t<{section}>");
        for (port, (precision, dims)) in (first..).zip(ports) {
            let _ = writeln!(out, "\t\t\t\t<port id=\"{port}\" precision=\"{precision}\">");
            for dim in *dims {
                let _ = writeln!(out, "\t\t\t\t\t<dim>{dim}</dim>");
            }
            out.push_str("\t\t\t\t</port>\n");
        }
        let _ = writeln!(out, "\t\t\t</{section}>");
    }
    out.push_str("\t\t</layer>\n");
}

/// The medians of this run, and what they are beside the bare pass.
fn table(subjects: &[Subject]) -> String {
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../criterion");
    let median = |subject: &str, phase: &str| {
        let file = results.join(subject).join(phase).join("new/estimates.json");
        let text = std::fs::read_to_string(file).ok()?;
        let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(estimates["median"]["point_estimate"].as_f64()? / 1e6)
    };
    let mut table = String::from("| graph | MB |");
    for phase in PHASES {
        let _ = write!(table, " {phase} |");
    }
    table.push_str("\n|---|---:|");
    table.push_str(&"---:|".repeat(PHASES.len()));
    for subject in subjects {
        let _ = write!(table, "\n| {} | {:.2} |", subject.name, subject.text.len() as f64 / 1e6);
        let bare = median(subject.name, PHASES[0]);
        for phase in PHASES {
            match (median(subject.name, phase), bare) {
                (Some(time), Some(bare)) => {
                    let _ = write!(table, " {time:.2} ms, {:.2}x |", time / bare);
                }
                _ => table.push_str(" not measured |"),
            }
        }
    }
    table
}

fn update_document(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md");
    let text = std::fs::read_to_string(&path).expect("docs/benchmarks.md is there");
    let (before, rest) = text.split_once("<!-- measured -->\n").expect("the document has a place for the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("the place for the table has an end");
    let text = format!("{before}<!-- measured -->\n{table}\n<!-- end -->{after}");
    std::fs::write(path, text).expect("docs/benchmarks.md can be written");
}
