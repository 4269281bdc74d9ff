//! Types, shapes and verdicts against OpenVINO's own, on thousands of one-operation graphs and shape computations.
//!
//! `OPZOO=Reshape,Concat cargo test -p typelift --test opzoo -- --nocapture` looks at some operations only and prints
//! every difference.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use base64::Engine;
use serde_json::Value;
use typelift::{Diagnostic, Graph, Weights, infer, xml};

struct Verdict {
    /// The first error, or the outputs of every layer but Results, by name.
    outputs: Result<HashMap<String, Vec<(String, String)>>, String>,
}

fn ours(case: &Value) -> Verdict {
    let reading = xml::parse(case["xml"].as_str().unwrap().into());
    let mut errors: Vec<Diagnostic> = reading.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    let mut outputs = HashMap::new();
    if let Some(mut model) = reading.model {
        let bytes = base64::engine::general_purpose::STANDARD.decode(case["bin"].as_str().unwrap_or_default()).unwrap();
        model.weights = Weights::Memory(Arc::from(bytes));
        errors.extend(infer(&mut model).into_iter().filter(Diagnostic::is_error));
        outputs = collect(&model.graph);
    }
    Verdict { outputs: errors.first().map_or(Ok(outputs), |error| Err(error.to_string())) }
}

fn collect(graph: &Graph) -> HashMap<String, Vec<(String, String)>> {
    let port = |port: &typelift::graph::OutputPort| (port.element_type().to_string(), port.shape().to_string());
    graph.layers().map(|layer| (layer.name().to_owned(), layer.outputs().iter().map(port).collect())).collect()
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    value.as_array().into_iter().flatten().map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

/// What differs, or `None`.
fn difference(case: &Value) -> Option<String> {
    let accepted = case["accept"].as_bool().unwrap();
    match (ours(case).outputs, accepted) {
        (Ok(_), false) => Some(format!("accepted, OpenVINO: {}", case["error"].as_str().unwrap_or_default())),
        (Err(error), true) => Some(format!("refused: {error}")),
        (Err(_), false) => None,
        (Ok(ours), true) => {
            let mut expected: Vec<_> =
                case["all"].as_object().into_iter().flatten().map(|(n, v)| (n.clone(), pairs(v))).collect();
            expected.push(("op".to_owned(), pairs(&case["outputs"])));
            let wrong = expected.into_iter().find(|(name, want)| {
                // A Result has no output port of its own, and a file need not list every port of an operation.
                let ours = ours.get(name).map(Vec::as_slice).unwrap_or_default();
                !ours.is_empty() && (ours.len() > want.len() || ours != &want[..ours.len()])
            });
            wrong.map(|(name, want)| format!("{name}: ours {:?}, OpenVINO's {want:?}", ours.get(&name)))
        }
    }
}

#[test]
fn every_operation_infers_what_openvino_infers() {
    let only = std::env::var("OPZOO").ok();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/opzoo/cases.jsonl.gz");
    let path = std::env::var("OPZOO_FILE").unwrap_or(path.to_owned());
    let lines = BufReader::new(flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap())).lines();
    let mut counts = BTreeMap::<String, (usize, usize)>::new();
    let mut shown = 0;
    for line in lines {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let operation = if case["family"] == "shapeflow" { "shapeflow" } else { case["op"].as_str().unwrap() };
        if only.as_ref().is_some_and(|only| !only.split(',').any(|name| name == operation)) {
            continue;
        }
        let count = counts.entry(format!("{operation} {}", case["version"].as_str().unwrap_or_default())).or_default();
        count.0 += 1;
        if let Some(difference) = difference(&case) {
            count.1 += 1;
            if only.is_some() && shown < 60 {
                shown += 1;
                println!("{operation} {} #{}: {difference}", case["version"], case["case"]);
                if std::env::var("OPZOO_XML").is_ok() {
                    println!("{}", case["xml"].as_str().unwrap());
                }
            }
        }
    }
    let (cases, wrong) = counts.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    for (operation, (cases, wrong)) in counts.iter().filter(|(_, count)| count.1 > 0) {
        println!("{operation}: {wrong} of {cases} differ");
    }
    println!("{wrong} of {cases} cases differ from OpenVINO");
    assert!(cases > 0, "no case of {only:?}");
    assert_eq!(wrong, 0);
}
