//! Texts of operands and shapes, put together from pieces: the laws of [`promotion_survival`](crate::promotion_survival).

use proptest::prelude::*;

use crate::promotion_survival::survive;

const PIECES: &[&str] = &[
    "f32",
    "i8",
    "u64",
    "bool",
    "float32",
    "2",
    "-1",
    "1.5",
    "1e400",
    "[",
    "]",
    "[2,3]",
    "?",
    "..",
    "[1..8,?]",
    ",",
    "...",
    "3:f16",
    "scalar",
    "None",
    "é",
    "18446744073709551616",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_operands_and_shapes_survive(pieces in prop::collection::vec((prop::sample::select(PIECES), any::<bool>()), 0..6)) {
        let text: String = pieces.iter().map(|(piece, is_apart)| format!("{piece}{}", if *is_apart { " " } else { "" })).collect();
        survive(&text);
    }
}
