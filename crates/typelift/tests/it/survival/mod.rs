//! Laws that hold for arbitrary bytes, for tests and fuzz targets.

use std::sync::Arc;

use typelift::findings::Diagnostic;
use typelift::passes::{PASSES, infer_aligned, run};
use typelift::promote::RuleSet;
use typelift::xml::{WriteOptions, decode_utf8, parse, write};
use typelift::{Model, Weights, check, infer, why};

const SPLICED: WriteOptions = WriteOptions { canonical: false, refresh_ports: true, on_one_thread: false };
const CANONICAL: WriteOptions = WriteOptions { canonical: true, refresh_ports: true, on_one_thread: false };

/// Reads bytes as a model, runs everything on it, and panics if a law is violated. Every finding points into the text,
/// unchanged parts are written as they were, and reading a written model returns the same graph. Returns true if all
/// laws were tested.
pub(crate) fn survive(bytes: Vec<u8>) -> bool {
    let Ok(text) = decode_utf8(bytes) else { return false };
    let text: Arc<String> = text.into();
    let reading = parse(text.clone());
    points_into(&text, &reading.diagnostics);
    let Some(mut model) = reading.model else { return false };
    model.set_weights(Weights::from_bytes((0..=255).collect::<Vec<u8>>()));
    let sound = !reading.diagnostics.iter().any(Diagnostic::is_error);
    if sound {
        assert_eq!(write(&model, WriteOptions::default()), *text, "it changes although nobody changed it");
    }
    let aligned = RuleSet::for_models().map(|rules| {
        let mut model = model.clone();
        let (diagnostics, _) = infer_aligned(&mut model, rules).unwrap();
        (model, diagnostics)
    });
    let aligned: Vec<_> = aligned.collect();
    let diagnostics = infer(&mut model);
    points_into(&text, &check(&model));
    for layer in model.graph().layers() {
        let _ = why(&model, layer.name());
    }
    let valid = !diagnostics.iter().any(Diagnostic::is_error);
    let mut asked = false;
    for (mut model, diagnostics) in aligned.into_iter().chain([(model, diagnostics)]) {
        points_into(&text, &diagnostics);
        if !sound || diagnostics.iter().any(Diagnostic::is_error) {
            continue;
        }
        asked = true;
        rereads(&model, valid);
        for pass in PASSES {
            run(&mut model, pass.clone()).unwrap_or_else(|violations| panic!("{}: {violations:?}", pass.name));
            rereads(&model, valid);
        }
    }
    asked
}

fn points_into(text: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        for label in &diagnostic.labels {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            assert!(text.get(start..end).is_some(), "{diagnostic}: {label:?} is no part of the text");
        }
    }
}

/// Checks that the model, written in both styles and read again, is the same graph, without errors if it was `valid`
/// before alignment.
fn rereads(model: &Model, valid: bool) {
    let canonical = write(model, CANONICAL);
    for text in [write(model, SPLICED), canonical.clone()] {
        let mut again = Model::from_xml(text.as_str()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let reread = write(&again, CANONICAL);
        let (was, is) = (sorted_edges(&canonical), sorted_edges(&reread));
        let different = was.iter().zip(&is).find(|(was, is)| was != is);
        assert!(was == is, "read again it is another graph, {different:?}:\n{text}");
        again.set_weights(model.weights().clone());
        let error = infer(&mut again).into_iter().find(Diagnostic::is_error);
        assert!(!valid || error.is_none(), "read again it is refused, {error:?}:\n{text}");
    }
}

/// Returns the lines, with those of edges last and sorted: their order is that of the file, and no part of the graph.
fn sorted_edges(text: &str) -> Vec<&str> {
    let (mut edges, mut lines): (Vec<_>, Vec<_>) =
        text.lines().partition(|line| line.trim_start().starts_with("<edge "));
    edges.sort_unstable();
    lines.append(&mut edges);
    lines
}
