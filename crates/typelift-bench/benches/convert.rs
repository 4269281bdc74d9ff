//! Cost of a conversion relative to one bare pass of the tokenizer over the same text.
//!
//! `cargo bench -p typelift-bench` measures and prints the medians as ratios; with `UPDATE_DOCS=1` it writes them into the
//! documents.
#![allow(clippy::print_stdout, reason = "what is measured is for reading")]

mod common;

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{apart, bodies, chain, deep, star, update_document};
use criterion::{BatchSize, Criterion};
use quick_xml::Reader;
use quick_xml::events::Event;
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_WITHOUT_NOOPS, run};
use typelift::xml::{WriteOptions, parse, write};
use typelift::{Model, Weights, infer};

/// A graph to measure: its name, its text, and the path of its weights.
struct Subject {
    name: &'static str,
    text: Arc<String>,
    weights: Weights,
}

/// `convert` is the phases one after the other; the model is dropped after it.
const PHASES: &[&str] = &["bare pass", "read", "infer", "lower", "write", "convert"];

fn main() {
    let subjects = [
        made("chain, 20,000 layers", chain(10_000)),
        made("chain, 200,000 layers", chain(100_000)),
        made("one tensor, 100,000 uses", star(100_000)),
        made("chain without promotions, 100,000 layers", deep(100_000)),
        made("100,000 layers apart", apart(100_000)),
        made("10,000 bodies", bodies(5_000)),
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
        update_document("measured", &table);
    }
}

fn measure(criterion: &mut Criterion, subject: &Subject) {
    let mut group = criterion.benchmark_group(subject.name);
    let text = &subject.text;
    group.bench_function("bare pass", |b| b.iter(|| bare_pass(black_box(text))));
    group.bench_function("read", |b| b.iter_with_large_drop(|| parse(black_box(text.clone()))));
    let open = || {
        let mut model = parse(text.clone()).model.expect("the graph is valid");
        model.set_weights(subject.weights.clone());
        model
    };
    let inferred = || {
        let mut model = open();
        let _ = infer(&mut model);
        model
    };
    group.bench_function("infer", |b| b.iter_batched(open, |mut m| (infer(&mut m), m), BatchSize::PerIteration));
    group.bench_function("lower", |b| b.iter_batched(inferred, lower, BatchSize::PerIteration));
    let lowered = lower(inferred());
    group.bench_function("write", |b| b.iter_with_large_drop(|| write(black_box(&lowered), WriteOptions::default())));
    let convert = || {
        let model = lower(inferred());
        (write(&model, WriteOptions::default()), model)
    };
    group.bench_function("convert", |b| b.iter_with_large_drop(convert));
    group.finish();
}

fn lower(mut model: Model) -> Model {
    for pass in [LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS] {
        run(&mut model, pass).expect("the graph stays valid");
    }
    model
}

/// Reads every event and every attribute, and discards them.
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

fn made(name: &'static str, text: String) -> Subject {
    Subject { name, text: text.into(), weights: Weights::none() }
}

fn real(name: &'static str) -> Subject {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/models/{name}.xml"));
    let text = std::fs::read_to_string(&path).expect("the model is in testdata");
    Subject { name, text: text.into(), weights: Weights::beside(&path).expect("the weights can be opened") }
}

/// Returns the medians of this run, and their ratios to the bare pass.
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
