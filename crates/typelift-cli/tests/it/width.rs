//! Text on narrow and wide terminals.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use unicode_width::UnicodeWidthStr;

use crate::cli::command;

/// Returns the output of commands for these columns, with a terminal's colours removed.
fn printed(columns: usize, arguments: &[&str]) -> String {
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models");
    let mut command = command(Path::new(models), arguments);
    let output = command.env("COLUMNS", columns.to_string()).args(["--color", "always"]).output().unwrap();
    anstream::adapter::strip_str(&String::from_utf8(output.stdout).unwrap()).to_string()
}

const SPLIT: &str = "__module.m.transformer.h.1.attn/prim::ListUnpack/VariadicSplit";
const VERBS: [&[&str]; 6] = [
    &["show", "--around", SPLIT, "gpt2_kv.promote.xml"],
    &["why", "gpt2_kv.promote.xml", SPLIT],
    &["why", "--path", "gpt2_kv.promote.xml", SPLIT],
    &["diff", "bert.promote.xml", "bert.promote.ref.xml"],
    &["stats", "gpt2_kv.promote.xml"],
    &["why", "--shape", "gru_torch.xml"],
];

#[test]
fn lines_fit_the_terminal_and_no_word_is_broken() {
    for arguments in VERBS {
        let all: &[&str] = if arguments[0] == "why" { &["--all"] } else { &[] };
        let wide = printed(1_000, arguments) + &printed(1_000, &[arguments, all].concat());
        for columns in [80, 120, 200] {
            let text = printed(columns, arguments);
            for line in text.lines() {
                assert!(line.width() <= columns, "{arguments:?} at {columns}: {line}");
            }
            // Long words are kept whole; names and counts differ.
            let is_word = |word: &&str| word.len() > 4 && word.chars().all(|c| c.is_ascii_alphabetic());
            for word in text.split_whitespace().filter(is_word) {
                assert!(wide.contains(word), "{arguments:?} at {columns}: {word}");
            }
        }
    }
}

#[test]
fn names_are_shortened_where_they_do_not_fit() {
    for columns in [80, 200] {
        let mut text = String::new();
        for arguments in VERBS {
            writeln!(text, "$ typelift {}\n{}", arguments.join(" "), printed(columns, arguments)).unwrap();
        }
        insta::assert_snapshot!(format!("text_of_{columns}_columns"), text);
    }
    assert!(printed(80, VERBS[0]).contains("164 …h.1.attn/prim::ListUnpack/VariadicSplit"));
    assert!(printed(80, VERBS[1]).contains(SPLIT), "a name with room is whole");
}

#[test]
fn an_explanation_and_a_comparison_are_a_screen() {
    for columns in [80, 200] {
        for arguments in &VERBS[1..4] {
            let lines = printed(columns, arguments).lines().count();
            assert!(lines <= 24, "{arguments:?} at {columns}: {lines} lines");
        }
    }
}
