//! Damaged rules and listings: after any deletion, duplication or insertion nothing panics, and the laws of
//! [`notation_survival`](crate::notation_survival) hold.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::notation_survival::survive;

const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=>",
    "=",
    "...",
    "?",
    "&",
    "-",
    "$t",
    "_",
    "x",
    "0",
    "-1",
    "1e309",
    "nan",
    "[[1], [2]]",
    "const",
    "f16|f32",
    "[?,..3]",
    ".1",
    "\"",
    "#",
    "\n",
    "\\u{",
    "Relu(x)",
    "Split",
    "Result",
    "convert(",
    "transpose(",
    "model m\n",
    "xs...",
    "b = ",
    " like [1?, C, 1...]",
    "name(root) like \"*a*\"",
    "count(xs)",
    " if ",
    "é",
];

/// Returns the texts with which fuzzing begins.
fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/notation");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Returns the byte at this share of a text, moved back to the start of a character.
fn place(text: &str, share: f64) -> usize {
    text.floor_char_boundary((text.len() as f64 * share) as usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_texts_survive(
        (first, second) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        damages in prop::collection::vec((0.0..1.0, 0.0..1.0, prop::sample::select(PIECES), 0..4), 0..4),
    ) {
        let seeds = seeds();
        let mut text = seeds[first.index(seeds.len())].clone();
        let other = &seeds[second.index(seeds.len())];
        for (at, length, piece, kind) in damages {
            let at = place(&text, at);
            let end = at + place(&text[at..], length * length * length);
            match kind {
                0 => text.replace_range(at..end, ""),
                1 => text.insert_str(at, piece),
                2 => text = format!("{}{}", &text[..end], &text[at..]),
                _ => text = format!("{}{}", &text[..at], &other[place(other, length)..]),
            }
        }
        survive(&text);
    }
}

#[test]
fn seeds_survive() {
    let seeds = seeds();
    assert!(seeds.len() > 30);
    seeds.iter().for_each(|seed| survive(seed));
}
