//! `typelift show` and `typelift stats`: parts of a graph, and its statistics.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::path::Path;

use serde_json::Value;

use crate::cli::run;
use crate::schemas::assert_form;

fn models() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models")
}

fn document(arguments: &[&str]) -> Value {
    let run = run(&models(), &[arguments, &["--format", "json"]].concat());
    let document = serde_json::from_str(&run.stdout).unwrap();
    assert_form(arguments[0], &document);
    document
}

#[test]
fn stats_count_every_layer_and_every_byte_once() {
    for name in ["loop_py.xml", "bert.promote.xml", "lowbit_consts.xml", "irv10_resnet50.xml"] {
        let stats = document(&["stats", name]);
        let text = std::fs::read_to_string(models().join(name)).unwrap();
        assert_eq!(stats["layers"], text.matches("<layer ").count(), "{name}");
        let sum = |list: &str, member: &str| -> u64 {
            stats[list].as_array().unwrap().iter().map(|item| item[member].as_u64().unwrap()).sum()
        };
        assert_eq!(sum("operations", "count"), stats["layers"].as_u64().unwrap(), "{name}");
        assert_eq!(sum("weights", "bytes"), stats["weight_bytes"].as_u64().unwrap(), "{name}");
        assert_eq!(sum("weights", "constants"), text.matches(r#"type="Const""#).count() as u64, "{name}");
        let file = std::fs::metadata(models().join(name).with_extension("bin")).unwrap().len();
        assert!(sum("weights", "bytes") <= file, "{name}");
    }
}

#[test]
fn several_models_are_an_array_that_names_them() {
    let stats = document(&["stats", "loop_py.xml", "gru_torch.xml"]);
    let files: Vec<_> = stats.as_array().unwrap().iter().map(|stats| stats["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["loop_py.xml", "gru_torch.xml"]);
}

#[test]
fn what_is_near_a_layer_grows_with_the_depth() {
    let shown = |depth: &str| {
        let arguments = ["show", "--around", "Add_8", "--depth", depth, "loop_py.xml"];
        let listed = run(&models(), &arguments).stdout;
        listed.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect::<Vec<u64>>()
    };
    assert_eq!(shown("0"), [5]);
    assert_eq!(shown("1"), [1, 4, 5, 7, 9, 13]);
    assert_eq!(shown("9"), [0, 1, 2, 3, 4, 5, 7, 9, 11, 12, 13, 14], "not the constants of what follows");
    let layers = &document(&["show", "--around", "Add_8", "--depth", "1", "loop_py.xml"])["layers"];
    assert_eq!(layers.as_array().unwrap().len(), 6);
}

#[test]
fn columns_are_for_terminals_and_colours_for_those_that_want_them() {
    let plain = run(&models(), &["show", "loop_py.xml"]).stdout;
    assert!(plain.contains("\n1 trip = Parameter : i64[]\n"), "{plain}");
    let always = run(&models(), &["show", "--color", "always", "loop_py.xml"]).stdout;
    assert!(always.contains("\u{1b}["), "{always}");
    assert_eq!(always.lines().count(), plain.lines().count());
}
