//! Compares types, shapes and verdicts with OpenVINO's on thousands of one-operation graphs and shape computations.
//!
//! `OPZOO=Reshape,Concat cargo test -p typelift opzoo -- --nocapture` tests only some operations and prints every
//! difference.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use crate::zoo;
use std::collections::BTreeMap;

#[test]
fn every_operation_infers_what_openvino_infers() {
    let only = std::env::var("OPZOO").ok();
    let mut counts = BTreeMap::<String, (usize, usize)>::new();
    let mut shown = 0;
    for case in zoo::cases(std::env::var("OPZOO_FILE").ok()) {
        let operation = case.operation();
        if only.as_ref().is_some_and(|only| !only.split(',').any(|name| name == operation)) {
            continue;
        }
        let count = counts.entry(format!("{operation} {}", case.version())).or_default();
        count.0 += 1;
        if let Some(difference) = case.difference() {
            count.1 += 1;
            if only.is_some() && shown < 60 {
                shown += 1;
                println!("{operation} {:?} #{}: {difference}", case.version(), case.number());
                if std::env::var("OPZOO_XML").is_ok() {
                    println!("{}", case.xml());
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
