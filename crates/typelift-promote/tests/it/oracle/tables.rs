//! Reads the CSV files that `testdata/oracle/tables.py` writes.

use std::path::PathBuf;

use typelift_promote::{ElementType, Operand};

/// Returns the text of a file in `testdata/oracle`.
pub(crate) fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the fields of each line that is not a comment, without quotes.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(',').map(|field| field.trim_matches('"')).collect())
}

/// Calls `compare(key, lhs, column)` for each cell of a table, and fails with a list of the cells whose answer differs.
/// `None` skips a cell. Returns the number of cells compared.
pub(crate) fn compare(name: &str, mut compare: impl FnMut(&str, &str, &str, &str) -> Option<String>) -> usize {
    let text = read(name);
    let mut rows = rows(&text);
    let header = rows.next().expect("a header");
    let (mut compared, mut mismatches) = (0, Vec::new());
    for row in rows {
        assert_eq!(row.len(), header.len(), "{name}: {row:?}");
        for (key, (column, cell)) in
            row[0].split(' ').flat_map(|key| header[2..].iter().zip(&row[2..]).map(move |pair| (key, pair)))
        {
            if let Some(answer) = compare(key, row[1], column, cell) {
                compared += 1;
                if answer != *cell {
                    mismatches.push(format!("{key} {} {column}: {cell}, we say {answer}", row[1]));
                }
            }
        }
    }
    assert!(
        mismatches.is_empty(),
        "{name}: {} of {compared} cells differ:\n{}",
        mismatches.len(),
        mismatches[..mismatches.len().min(60)].join("\n")
    );
    println!("{name}: {compared} cells, 0 mismatches");
    compared
}

/// Parses an operand: `d:T` is a tensor of shape [2], `z:T` one of shape [], `w:KIND` a Python number.
pub(crate) fn operand(text: &str) -> Operand {
    let (category, name) = text.split_once(':').unwrap_or_else(|| panic!("operand {text}"));
    let ty = || ElementType::from_framework_name(name).unwrap_or_else(|| panic!("no type {name}"));
    match category {
        "d" => Operand::dimensioned(ty()),
        "z" => Operand::zero_dim(ty()),
        _ => number(name),
    }
}

/// Returns a Python number of a kind.
pub(crate) fn number(kind: &str) -> Operand {
    let word = if kind == "bool" { "True" } else { kind };
    Operand::from_number(word).unwrap_or_else(|| panic!("no number {kind}"))
}
