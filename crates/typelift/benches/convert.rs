//! Cost of a conversion relative to one bare pass of the tokenizer over the same text.
//!
//! `cargo bench -p typelift` measures and prints the medians as ratios; with `UPDATE_DOCS=1` it writes them into the
//! documents.
#![allow(clippy::print_stdout, reason = "what is measured is for reading")]

mod common;

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use common::{apart, bodies, chain, deep, median, star, update_document};
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
    // `cargo test` runs benches too, to check that they work.
    let is_measuring = std::env::args().any(|argument| argument == "--bench");
    let (scale, samples) = if is_measuring { (1, 20) } else { (1_000, 1) };
    let subjects = [
        made("chain, 20,000 layers", chain(10_000 / scale)),
        made("chain, 200,000 layers", chain(100_000 / scale)),
        made("one tensor, 100,000 uses", star(100_000 / scale)),
        made("chain without promotions, 100,000 layers", deep(100_000 / scale)),
        made("100,000 layers apart", apart(100_000 / scale)),
        made("10,000 bodies", bodies(5_000 / scale)),
        real("bert.promote"),
        real("gpt2_kv.promote"),
        real("fasterrcnn_tv.promote"),
    ];
    let table = table(&subjects, samples);
    println!("{table}");
    if is_measuring && std::env::var_os("UPDATE_DOCS").is_some() {
        update_document("measured", &table);
    }
}

/// Returns the median of each phase in milliseconds.
fn measure(subject: &Subject, samples: usize) -> [f64; PHASES.len()] {
    let text = &subject.text;
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
    let lowered = lower(inferred());
    let convert = || {
        let model = lower(inferred());
        (write(&model, WriteOptions::default()), model)
    };
    [
        time(samples, || (), |()| bare_pass(black_box(text))),
        time(samples, || (), |()| parse(black_box(text.clone()))),
        time(samples, open, |mut model| (infer(&mut model), model)),
        time(samples, inferred, lower),
        time(samples, || (), |()| write(black_box(&lowered), WriteOptions::default())),
        time(samples, || (), |()| convert()),
    ]
}

/// Returns the median time of `run` in milliseconds, without that of `prepare` and of dropping the result.
fn time<I, O>(samples: usize, prepare: impl Fn() -> I, run: impl Fn(I) -> O) -> f64 {
    black_box(run(prepare()));
    median((0..samples).map(|_| {
        let input = prepare();
        let begin = Instant::now();
        let _dropped_later = black_box(run(input));
        begin.elapsed().as_secs_f64() * 1e3
    }))
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

/// Returns the medians, and their ratios to the bare pass.
fn table(subjects: &[Subject], samples: usize) -> String {
    let mut table = String::from("| graph | MB |");
    for phase in PHASES {
        let _ = write!(table, " {phase} |");
    }
    table.push_str("\n|---|---:|");
    table.push_str(&"---:|".repeat(PHASES.len()));
    for subject in subjects {
        let _ = write!(table, "\n| {} | {:.2} |", subject.name, subject.text.len() as f64 / 1e6);
        let medians = measure(subject, samples);
        for time in medians {
            let _ = write!(table, " {time:.2} ms, {:.2}x |", time / medians[0]);
        }
    }
    table
}
