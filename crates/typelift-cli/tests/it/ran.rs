//! `--ran`: the graph that a plugin ran, next to its model.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers fail by panicking")]

use std::path::{Path, PathBuf};

use crate::cli::run;
use crate::view::data;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/execution")
}

/// The page gives layers the types in which they were computed, and names the executed layers.
#[test]
fn a_page_shows_the_types_of_a_run() {
    let folder = folder();
    let page = run(&folder, &["view", "types_ways.xml", "--ran", "types_ways.exec.xml", "-o", "-"]);
    let data = data(&page.stdout);
    let layers = data["runs"][0]["layers"].as_array().unwrap();
    let layer = layers.iter().find(|layer| layer["path"] == "i64_add").unwrap();
    assert_eq!((&layer["type"], &layer["exec"]), (&"i32".into(), &"i64_add.0".into()));
    assert_eq!(data["runs"].as_array().unwrap().len(), 1);
}

/// A page left out the layers that the plugin added, which took most of the time.
#[test]
fn a_page_has_the_times_of_all_executed_layers() {
    let folder = folder();
    for model in ["types_ways", "weights_ways"] {
        let exec = format!("{model}.exec.xml");
        let page = run(&folder, &["view", &format!("{model}.xml"), "--ran", &exec, "-o", "-"]);
        let run = data(&page.stdout)["runs"][0].clone();
        let sum = |list: &str| -> u64 {
            run[list].as_array().unwrap().iter().map(|layer| layer["us"].as_u64().unwrap_or(0)).sum()
        };
        assert_eq!(sum("kernels"), run["us"].as_u64().unwrap());
        assert!(sum("layers") + sum("added") <= sum("kernels"), "{model}");
        assert!(!run["added"].as_array().unwrap().is_empty(), "{model}");
    }
}

/// A second run is shown next to the first one.
#[test]
fn a_page_shows_two_runs_side_by_side() {
    let folder = folder();
    let run_of = ["--ran", "weights_ways.exec.xml"];
    let arguments = [&["view", "weights_ways.xml", "-o", "-"], &run_of[..], &run_of[..]].concat();
    let data = data(&run(&folder, &arguments).stdout);
    assert_eq!(data["runs"][1], data["runs"][0]);
    let weights =
        data["runs"][0]["layers"].as_array().unwrap().iter().filter_map(|layer| layer["weights"][0].as_array());
    let unfolded = weights.filter(|pair| pair[0] == "u8" && pair[1] == "f32").count();
    assert_eq!(unfolded, 4);
}

/// Every command refuses the graph of another model, and one graph for several models.
#[test]
fn a_run_of_another_model_is_refused() {
    let folder = folder();
    for command in [&["stats"][..], &["check"], &["why", "i64_add"], &["view", "-o", "-"]] {
        let (verb, rest) = command.split_first().unwrap();
        let arguments = [&[*verb, "types_ways.xml"], rest, &["--ran", "weights_ways.exec.xml"]].concat();
        let refused = run(&folder, &arguments);
        assert_eq!(refused.status, 2, "{verb}");
        assert!(refused.stderr.contains("the execution graph is not of this model"), "{}", refused.stderr);
    }
    for verb in ["stats", "check"] {
        let arguments = [verb, "types_ways.xml", "weights_ways.xml", "--ran", "types_ways.exec.xml"];
        let refused = run(&folder, &arguments);
        assert_eq!(refused.status, 2);
        assert!(refused.stderr.contains("belongs to one model"), "{}", refused.stderr);
    }
}

/// The overview of an execution graph leads to its model, by the name that they share.
#[test]
fn an_execution_graph_leads_to_its_model() {
    let folder = folder();
    let next = |file: &str| {
        let shown = run(&folder, &[file]);
        assert_eq!(shown.status, 1);
        shown.stdout.split_once("next\n").unwrap().1.to_owned()
    };
    let command = next("types_ways.exec.xml");
    assert_eq!(command, "  typelift check types_ways.xml --ran types_ways.exec.xml\n");
    let words: Vec<_> = command.split_whitespace().skip(1).collect();
    let found = run(&folder, &words);
    assert!(found.stdout.contains("ran-"), "{found:?}");
    let said = "  typelift check MODEL.xml --ran ran-narrower.exec.xml\nMODEL.xml is the model that the device ran\n";
    assert_eq!(next("ran-narrower.exec.xml"), said);
}

/// Findings of a run can be denied. Those of several runs name the file.
#[test]
fn findings_of_a_run_can_be_denied() {
    let folder = folder();
    let denied =
        run(&folder, &["check", "weights_ways.xml", "--ran", "weights_ways.exec.xml", "--deny", "ran-unfolded"]);
    assert_eq!(denied.status, 1);
    assert!(denied.stdout.contains("`u8_divided/weights` was unfolded from u8 to f32"), "{}", denied.stdout);
    let run_of = ["--ran", "types_ways.exec.xml"];
    let both = run(&folder, &[&["check", "types_ways.xml"], &run_of[..], &run_of[..]].concat());
    assert_eq!(both.stdout.matches("in `types_ways.exec.xml`").count(), 2, "{}", both.stdout);
}
