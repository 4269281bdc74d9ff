//! Verdicts, types and shapes against OpenVINO's own: single models that once differed, and computations of shapes by every
//! operation whose values OpenVINO knows.
//!
//! `VERDICTS_FILE=… cargo test -p typelift verdicts` takes other cases, made by `testdata/oracle/verdicts/take.py`.

use crate::recorded;

/// Cases that differ, and why.
const DIFFERENT: &[(&str, &str)] = &[];

#[test]
fn models_are_judged_and_inferred_as_by_openvino() {
    let taken = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/verdicts/cases.jsonl.gz");
    let path = std::env::var("VERDICTS_FILE").unwrap_or(taken.to_owned());
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
