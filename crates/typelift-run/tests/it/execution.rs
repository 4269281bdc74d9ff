//! Execution graphs of OpenVINO's CPU plugin, matched with their models: `testdata/oracle/execution`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;
use typelift::Model;
use typelift::findings::Code;
use typelift_run::execution::{Execution, Ran};

const PAIRS: [&str; 5] = ["weights_ways", "types_ways", "comma_names", "folded_and_fused", "decomposed"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/execution")
}

fn execution(name: &str) -> Execution {
    let path = folder().join(format!("{name}.exec.xml"));
    Execution::read(&path, std::fs::read_to_string(&path).unwrap()).unwrap()
}

fn model(name: &str) -> Model {
    Model::open(folder().join(format!("{name}.xml"))).unwrap()
}

/// A list without times, sorted.
fn facts(document: &Value, list: &str) -> Vec<String> {
    let mut facts: Vec<_> = document[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| {
            let mut fact = fact.as_object().unwrap().clone();
            fact.remove("us");
            Value::Object(fact).to_string()
        })
        .collect();
    facts.sort();
    facts
}

/// Every layer is matched, every type is read, and all weights are found as the recorded truth has them.
#[test]
fn layers_are_matched_with_what_ran() {
    for name in PAIRS {
        let truth: Value =
            serde_json::from_str(&std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap()).unwrap();
        let ran = serde_json::to_value(Ran::of(&model(name), &execution(name)).unwrap()).unwrap();
        for list in ["layers", "weights", "stored", "added"] {
            assert_eq!(facts(&ran, list), facts(&truth, list), "{name}: {list}");
        }
        assert_eq!(ran["counts"]["ir"], truth["counts"]["ir"], "{name}");
        assert_eq!(ran["counts"]["exec"], truth["counts"]["exec"], "{name}");
    }
}

/// A sequence of two directions ran as the Concat of its halves, and a LogSoftmax as its last term; the rest seemed to be added.
#[test]
fn a_layer_of_several_kernels_has_the_time_and_the_kind_of_all() {
    let executed = execution("decomposed");
    let ran = Ran::of(&model("decomposed"), &executed).unwrap();
    let time = |kinds: &[&str]| -> u64 {
        executed
            .layers
            .iter()
            .filter(|it| kinds.contains(&it.ty.as_str()) && !it.is_constant)
            .filter_map(|it| it.us)
            .sum()
    };
    let lstm = ran.layer("lstm").unwrap();
    assert_eq!((lstm.exec_type.as_deref(), lstm.parts.len()), (Some("RNNSeq"), 4));
    assert!(lstm.us.unwrap() >= time(&["RNNSeq"]) && time(&["RNNSeq"]) > 0);
    assert_eq!(ran.layer("log_softmax").unwrap().parts.len(), 4);
    assert!(ran.added.iter().all(|it| it.ty == "Reorder"), "{:?}", ran.added);
}

/// An execution graph of another model is refused, whatever names the two share.
#[test]
fn a_pair_that_does_not_belong_together_is_refused() {
    for (a, b) in [("weights_ways", "types_ways"), ("comma_names", "folded_and_fused")] {
        let reason = Ran::of(&model(a), &execution(b)).unwrap_err();
        assert!(reason.contains("not of this model"), "{reason}");
    }
}

/// A plugin numbers its own constants like those of models, so equal names do not make a pair wrong.
#[test]
fn a_constant_that_a_plugin_numbered_is_no_contradiction() {
    let executed = execution("weights_ways");
    let own = executed.layers.iter().find(|layer| layer.ty == "Const" && layer.name.starts_with("Constant_")).unwrap();
    let model = std::fs::read_to_string(folder().join("weights_ways.xml")).unwrap();
    let model = model.replace("\"i8_scale/weights\"", &format!("\"{}\"", own.name));
    let model = typelift::xml::parse(std::sync::Arc::new(model)).model.unwrap();
    assert!(Ran::of(&model, &executed).is_ok());
}

/// An execution graph that is given as a model is one finding, and a model that is given as one is refused.
#[test]
fn a_graph_of_the_wrong_kind_is_one_finding() {
    let text = std::fs::read_to_string(folder().join("types_ways.exec.xml")).unwrap();
    let reading = typelift::xml::parse(std::sync::Arc::new(text));
    let codes: Vec<_> = reading.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::ExecutionGraph]);
    let path = folder().join("types_ways.xml");
    let refused = Execution::read(&path, std::fs::read_to_string(&path).unwrap()).unwrap_err();
    assert_eq!(refused.list.len(), 1);
}

/// Weights are reported as unfolded on a CPU exactly where the plugin unfolded them.
#[test]
fn weights_that_unfold_are_reported() {
    let path = folder().join("weights_ways.xml");
    let source = std::fs::read_to_string(&path).unwrap().into();
    let checking = typelift::Checking { devices: vec![typelift::Device::Cpu], ..Default::default() };
    let checked = checking.run(&source, &typelift::Weights::none());
    let found = checked.findings.iter().filter(|it| it.code == Code::WeightsUnfold);
    let mut found: Vec<_> = found.map(|it| it.layer.as_ref().unwrap().name.clone()).collect();
    let ran = Ran::of(&model("weights_ways"), &execution("weights_ways")).unwrap();
    let mut unfolded: Vec<_> =
        ran.stored.iter().filter(|it| it.kept == Some(false)).map(|it| it.constant.clone()).collect();
    found.sort();
    unfolded.sort();
    assert_eq!(found, unfolded);
    assert_eq!(found.len(), 5);
}

/// Bytes are removed, doubled or replaced, and nothing panics. `PROPTEST_CASES` makes it try more.
#[test]
fn damaged_execution_graphs_are_read_or_refused() {
    let cases = Config::default().cases.max(300);
    let config = Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(0), ..Config::default() };
    let damage = (0.0..1.0, 0_usize..40, 0..4, any::<u8>());
    let strategy = (prop::sample::select(&PAIRS[..]), prop::collection::vec(damage, 0..4));
    let read = AtomicUsize::new(0);
    let result = TestRunner::new(config).run(&strategy, |(name, damages)| {
        let mut text = std::fs::read(folder().join(format!("{name}.exec.xml"))).unwrap();
        for (share, length, kind, byte) in damages {
            let start = (share * text.len() as f64) as usize;
            let end = (start + length).min(text.len());
            match kind {
                0 => drop(text.drain(start..end)),
                1 => {
                    let copy = text[start..end].to_vec();
                    drop(text.splice(start..start, copy));
                }
                2 => text.truncate(end),
                _ => text[start..end].iter_mut().take(1).for_each(|it| *it = byte),
            }
        }
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        let read_it = Execution::read(Path::new("execution.xml"), text).is_ok_and(|execution| {
            let _another_model = Ran::of(&model(name), &execution);
            true
        });
        read.fetch_add(usize::from(read_it), Ordering::Relaxed);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    let read = read.into_inner();
    assert!(read > 60, "{read} were read");
}
