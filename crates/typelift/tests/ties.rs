//! Which inputs of each operation are tied, and which take floating point only, against what OpenVINO refuses.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use std::collections::BTreeMap;

use typelift::ops;
use typelift::promote::ElementType;

const TABLE: &str = include_str!("../../../testdata/oracle/ties/ties.csv");

/// By operation and revision, for each input: the first input it is tied to, and the types it takes.
type Table = BTreeMap<(&'static str, u8), Vec<(usize, Vec<ElementType>)>>;

/// For each input of an operation's revision: the first input that it is tied with, itself if none, and the types that
/// it takes.
fn table() -> Table {
    let mut table = BTreeMap::<_, Vec<_>>::new();
    for line in TABLE.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [operation, revision, input, tied_with, takes] = fields[..] else { panic!("{line}") };
        let inputs = table.entry((operation, revision.parse().unwrap())).or_default();
        assert_eq!(inputs.len().to_string(), input, "{line}");
        let takes = takes.split_whitespace().map(|name| ElementType::from_name(name).unwrap()).collect();
        inputs.push((tied_with.parse().unwrap(), takes));
    }
    table
}

fn rows() -> BTreeMap<(&'static str, u8), &'static ops::Operation> {
    ops::all().map(|row| ((row.name(), row.revision()), row)).collect()
}

/// Operations with inputs that are tied in some modes only: the value of `Pad` counts in mode `constant`, those of a `Loop`
/// are tied by what its body makes of them.
const CONDITIONAL: &[&str] = &["Loop", "Pad"];

#[test]
fn rows_tie_the_inputs_that_openvino_wants_to_agree() {
    let rows = rows();
    let mut wrong = Vec::new();
    for ((name, revision), inputs) in table() {
        let Some(row) = rows.get(&(name, revision)) else { continue };
        // What is tied but for booleans does not count as tied in the table.
        let groups = row.tied_inputs().groups(&vec![ElementType::Boolean; inputs.len()]);
        let first = |input: usize| {
            let group = groups.iter().find(|group| group.contains(&input));
            group.and_then(|group| group.iter().min()).copied().unwrap_or(input)
        };
        let ours: Vec<usize> = (0..inputs.len()).map(first).collect();
        let openvinos: Vec<usize> = inputs.iter().map(|(tied_with, _)| *tied_with).collect();
        // Inputs that take one type only cannot differ; the table does not know that they are tied.
        let one_type = inputs.iter().all(|(_, takes)| takes.len() == 1);
        if ours != openvinos && !one_type && !CONDITIONAL.contains(&name) && !row.is_tied_when_run() {
            wrong.push(format!("{name}-{revision}: ours {ours:?}, OpenVINO's {openvinos:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_know_the_inputs_that_take_floating_point_only() {
    let rows = rows();
    let mut wrong = Vec::new();
    for ((name, revision), inputs) in table() {
        let Some(row) = rows.get(&(name, revision)) else { continue };
        for (input, (_, takes)) in inputs.iter().enumerate() {
            let only_floats = !takes.is_empty() && takes.iter().all(|ty| ty.is_float());
            if row.takes_only_floats(input) != only_floats {
                wrong.push(format!("{name}-{revision} input {input}: {takes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_main_input_takes_is_what_openvino_takes() {
    let rows = rows();
    let mut wrong = Vec::new();
    for ((name, revision), inputs) in table() {
        let (Some(row), Some((_, takes))) = (rows.get(&(name, revision)), inputs.first()) else { continue };
        let refused = takes.iter().filter(|&&ty| !row.accepted().takes(ty));
        let refused: Vec<_> = refused.map(ToString::to_string).collect();
        if !refused.is_empty() {
            wrong.push(format!("{name}-{revision} takes {}", refused.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
