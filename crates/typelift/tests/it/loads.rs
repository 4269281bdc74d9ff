//! Compares verdicts, types and shapes with OpenVINO's: single models that once differed, and shape computations by
//! every operation that OpenVINO evaluates.
//!
//! `LOADS_FILE=… cargo test -p typelift loads` uses other cases, created by `testdata/oracle/loads/take.py`.

use crate::recorded;

/// Cases that differ, with the reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("f16v10", "`Core.read_model` puts Converts into a model of version 10: a note says so"),
    ("pp", "`Core.read_model` subtracts the mean of <pre-process>, which changes no type and no shape"),
    ("onlyov_205233", "a length read from a dim of 2^63-1, which OpenVINO forgets on the way"),
    ("types_202170", "OpenVINO leaves an Assign in a body with the shape of a run before the last"),
    ("mish-bf16", "OpenVINO rounds to bf16 after each step of Mish, Typelift once"),
    ("types_15887", "OpenVINO reads elements behind the end of what a VariadicSplit cuts"),
    ("nonzero_shape", "OpenVINO evaluates a MaxPool on the bounds of its input, which gives the places of its maxima"),
];

#[test]
fn models_are_judged_and_inferred_as_by_openvino() {
    let taken = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/loads/cases.jsonl.gz");
    let path = std::env::var("LOADS_FILE").unwrap_or(taken.to_owned());
    let (mut count, mut wrong) = (0, Vec::new());
    for case in recorded::cases(&path) {
        count += 1;
        match (case.difference(), DIFFERENT.iter().find(|(name, _)| *name == case.name())) {
            (Some(difference), None) => wrong.push(format!("{}: {difference}", case.name())),
            (None, Some((name, _))) => wrong.push(format!("{name} is listed and does not differ")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
