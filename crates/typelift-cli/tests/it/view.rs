//! `typelift view`: a page that needs nothing from elsewhere. What it does in a browser is tested by `.ci/view`.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;

use serde_json::Value;

use crate::cli::{folder, model, run};

/// What the page shows, as its script reads it.
fn data(page: &str) -> Value {
    let start = page.find(r#"<script id="data" type="application/json">"#).unwrap();
    let text = page[start..].split_once('>').unwrap().1.split("</script>").next().unwrap();
    serde_json::from_str(text).unwrap()
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
    let names: Vec<_> = data["scenes"][0]["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    // The constant is part of what uses it.
    assert_eq!(names, ["x", "p0", "</script><img src=x>", "r0"]);
    assert_eq!(data["scenes"][0]["nodes"][1]["inputs"][1]["text"], "c f32[] = 1.5");
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
    assert_eq!(data["changes"][0]["text"], "f16 → f64");
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
