//! Compares the table of operations with OpenVINO's operation sets, and with `docs/operations.md`, which
//! `UPDATE_DOCS=1` writes anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use crate::zoo;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use typelift::ops::{self, Operation, Ties};

/// An operation and its revision.
type Revision = (String, u8);

fn revision(row: &Operation) -> Revision {
    (row.name.to_owned(), row.revision)
}

/// Returns the operation sets that have each revision, in OpenVINO 2026.4.1.
fn openvinos() -> BTreeMap<Revision, BTreeSet<u8>> {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/openvino/opset_table.csv"))
            .unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let mut sets = BTreeMap::<_, BTreeSet<u8>>::new();
    for line in lines {
        for (opset, cell) in header.iter().zip(&line) {
            if let (Some(Ok(opset)), Some(Ok(revision))) =
                (opset.strip_prefix("opset").map(str::parse), cell.strip_prefix('v').map(str::parse::<u8>))
            {
                sets.entry((line[0].to_owned(), revision)).or_default().insert(opset);
            }
        }
    }
    assert!(sets.len() > 200);
    sets
}

#[test]
fn every_revision_of_every_operation_is_in_the_sets_that_openvino_has_it_in() {
    let ours = ops::all().map(|row| (revision(row), row.opsets().collect::<BTreeSet<_>>()));
    let (count, ours) = (ops::all().count(), ours.collect::<BTreeMap<_, _>>());
    assert_eq!(ours.len(), count, "a revision has two rows");
    let theirs = openvinos();
    let different = |(key, sets): &(&Revision, &BTreeSet<u8>)| ours.get(*key) != Some(*sets);
    let missing: Vec<_> = theirs.iter().filter(different).map(|(key, sets)| (key, sets, ours.get(key))).collect();
    assert!(missing.is_empty(), "OpenVINO's sets and ours: {missing:#?}");
    let added: Vec<_> = ours.keys().filter(|key| !theirs.contains_key(*key)).collect();
    assert!(added.is_empty(), "OpenVINO does not have {added:?}");
}

#[test]
fn every_operation_is_found_in_every_set_that_has_it() {
    for (name, wanted) in
        openvinos().into_iter().flat_map(|(key, sets)| sets.into_iter().map(move |set| (key.clone(), set)))
    {
        let found = ops::lookup(&name.0, &format!("opset{wanted}")).map(revision);
        assert_eq!(found, Some(name), "in opset{wanted}");
    }
}

#[test]
fn every_operation_has_cases_and_the_document_tells_how_they_come_out() {
    let mut counts = BTreeMap::<Revision, (usize, usize)>::new();
    let mut flows = (0, 0);
    for case in zoo::cases(None) {
        let count = match ops::lookup(case.operation(), case.version()) {
            Some(row) => counts.entry(revision(row)).or_default(),
            None => {
                assert_eq!(
                    case.operation(),
                    "shapeflow",
                    "the table does not have {} {}",
                    case.operation(),
                    case.version()
                );
                &mut flows
            }
        };
        count.0 += 1;
        count.1 += usize::from(case.difference().is_some());
    }
    let mut rows: Vec<_> = ops::all().collect();
    rows.sort_by_key(|row| revision(row));
    let mut table = String::new();
    let mut total = flows;
    for row in rows {
        let (cases, different) = counts.get(&revision(row)).copied().unwrap_or_default();
        assert!(cases > 0, "{} {} has no case", row.name, row.revision);
        let sets = ranges(&row.opsets().collect::<Vec<_>>());
        let tied = tied(row.ties);
        table += &format!("| {} | {} | {sets} | {tied} | {cases} | {different} |\n", row.name, row.revision);
        total = (total.0 + cases, total.1 + different);
    }
    let names: BTreeSet<_> = ops::all().map(|row| row.name).collect();
    let generated = format!(
        "{} operations in {} revisions. {} cases compared, of which {} shape computations of several operations; {} differ, \
         of which {} shape computations.\n\n\
         | operation | revision | operation sets | inputs of one type | cases | different |\n|---|---|---|---|---|---|\n{table}",
        names.len(),
        ops::all().count(),
        total.0,
        flows.0,
        total.1,
        flows.1
    );
    check_document("operations.md", "coverage", &generated);
}

/// Formats `1 2 3, 0 4` for two groups.
fn tied(ties: Ties) -> String {
    let group = |inputs: &[usize]| inputs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    match ties {
        Ties::None => String::new(),
        Ties::All => "all".to_owned(),
        Ties::Inputs(inputs) => group(inputs),
        Ties::Groups(groups) => groups.iter().map(|inputs| group(inputs)).collect::<Vec<_>>().join(", "),
        Ties::Mask { inputs, mask } => format!("{}, and {mask} unless boolean", group(inputs)),
        other => panic!("{other:?}"),
    }
}

/// Formats `1-8, 17`.
fn ranges(sets: &[u8]) -> String {
    let runs = sets.chunk_by(|a, b| a + 1 == *b);
    let text = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    text.collect::<Vec<_>>().join(", ")
}

/// Compares the generated section of a document with `table`, or writes it.
fn check_document(name: &str, section: &str, table: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let document = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (format!("<!-- generated: {section} -->\n"), format!("<!-- end: {section} -->"));
    let from = document.find(&start).unwrap() + start.len();
    let to = from + document[from..].find(&end).unwrap();
    let mut expected = document.clone();
    expected.replace_range(from..to, &format!("\n{table}\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(document == expected, "docs/{name} is out of date: run this test with UPDATE_DOCS=1");
    }
}

#[test]
fn names_of_inputs_are_those_of_operations() {
    for list in include_str!("../../src/ops/inputs.txt").split(['\n', ';']).filter(|list| !list.is_empty()) {
        for operation in list.split_once(": ").unwrap().1.split(' ') {
            let (name, revision) = operation.split_once('-').unwrap_or((operation, ""));
            let is_there = |row: &Operation| row.name == name && ["", &row.revision.to_string()].contains(&revision);
            assert!(ops::all().any(is_there), "{operation}");
        }
    }
    let names = |ty, version, input| ops::lookup(ty, version).and_then(|it| it.input_name(input));
    assert_eq!([0, 1, 2].map(|input| names("Range", "opset4", input)), ["start", "stop", "step"].map(Some));
    assert_eq!(["opset4", "opset11"].map(|set| names("Interpolate", set, 2)), [Some("scales"), Some("axes")]);
    assert_eq!(["opset1", "opset5"].map(|set| names("BatchNormInference", set, 0)), [Some("gamma"), Some("data")]);
    assert_eq!([names("If", "opset8", 1), names("Add", "opset1", 0)], [None, None]);
}
