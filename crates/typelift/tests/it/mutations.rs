//! Damaged models: whatever is cut, doubled, replaced or exchanged in a model, nothing panics and the laws of [`survival`] hold.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::survival::survive;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Values that attributes may have elsewhere, or nowhere.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "3",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1e309",
    "?",
    "...",
    "1,?,3..5",
    "1,2,3",
    "f16",
    "i64",
    "u64",
    "f8e4m3",
    "FP16",
    "dynamic",
    "string",
    "true",
    "numpy",
    "Add",
    "Loop",
    "Const",
    "Result",
    "Parameter",
    "Concat",
    "Reshape",
    "ConvertPromoteTypes",
    "opset1",
    "opset14",
    "&lt;",
    "ä\u{0}",
];

/// One damage: where things are is told in shares of the text, so that it fits every text.
#[derive(Clone, Debug)]
enum Damage {
    /// Bytes are gone.
    Cut(f64, u8),
    /// Bytes stand twice.
    Double(f64, u8),
    /// A byte is another.
    Byte(f64, u8),
    /// A line is gone, or stands at another place, too or instead.
    Line { from: f64, to: Option<f64>, keep: bool },
    /// Something in quotes is another value.
    Value(f64, &'static str),
    /// Something in quotes is what stands in other quotes.
    Copy { from: f64, to: f64 },
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0.0..1.0;
    prop_oneof![
        1 => (at(), 1..40u8).prop_map(|(at, length)| Damage::Cut(at, length)),
        1 => (at(), 1..40u8).prop_map(|(at, length)| Damage::Double(at, length)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        2 => (at(), prop::option::of(at()), any::<bool>()).prop_map(|(from, to, keep)| Damage::Line { from, to, keep }),
        4 => (at(), prop::sample::select(VALUES)).prop_map(|(at, value)| Damage::Value(at, value)),
        4 => (at(), at()).prop_map(|(from, to)| Damage::Copy { from, to }),
    ]
}

impl Damage {
    fn apply(&self, text: &mut Vec<u8>) {
        let size = text.len();
        let bytes = |at: f64, length: u8| {
            let start = share(at, size);
            start..size.min(start + usize::from(length))
        };
        match *self {
            Self::Cut(at, length) => drop(text.drain(bytes(at, length))),
            Self::Double(at, length) => {
                let range = bytes(at, length);
                let copy = text[range.clone()].to_vec();
                text.splice(range.end..range.end, copy);
            }
            Self::Byte(at, byte) => text[bytes(at, 1)].fill(byte),
            Self::Line { from, to, keep } => {
                let mut lines: Vec<_> = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
                let from = share(from, lines.len());
                let Some(line) = lines.get(from).cloned() else { return };
                if !keep {
                    lines.remove(from);
                }
                if let Some(to) = to {
                    lines.insert(share(to, lines.len()), line);
                }
                *text = lines.concat();
            }
            Self::Value(at, value) => {
                if let Some(range) = quoted(text, at) {
                    text.splice(range, value.bytes());
                }
            }
            Self::Copy { from, to } => {
                if let (Some(from), Some(to)) = (quoted(text, from), quoted(text, to)) {
                    let value = text[from].to_vec();
                    text.splice(to, value);
                }
            }
        }
    }
}

fn share(at: f64, length: usize) -> usize {
    (at * length as f64) as usize
}

/// What stands in one of the pairs of quotes.
fn quoted(text: &[u8], at: f64) -> Option<Range<usize>> {
    let quotes: Vec<_> = text.iter().enumerate().filter(|(_, byte)| **byte == b'"').map(|(at, _)| at).collect();
    let pair = quotes.chunks_exact(2).nth(share(at, quotes.len() / 2))?;
    Some(pair[0] + 1..pair[1])
}

/// The fixtures of every topic.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures");
    let topics = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = topics.flat_map(|topic| std::fs::read_dir(topic).unwrap()).map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "xml")).collect();
    files.sort();
    files
}

#[test]
fn undamaged_fixtures_survive() {
    let sound = fixtures().iter().filter(|file| survive(std::fs::read(file).unwrap())).count();
    assert!(sound > 100, "{sound}");
}

#[test]
fn damaged_fixtures_are_refused_or_survive() {
    let config = Config { cases: 4000, failure_persistence: None, rng_seed: RngSeed::Fixed(0), ..Config::default() };
    let sound = AtomicUsize::new(0);
    let strategy = (prop::sample::select(fixtures()), prop::collection::vec(damage(), 1..5));
    let result = TestRunner::new(config).run(&strategy, |(file, damages)| {
        let mut text = std::fs::read(file).unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut text));
        sound.fetch_add(usize::from(survive(text)), Ordering::Relaxed);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    // Damage that is always refused would not get past the reader.
    let sound = sound.into_inner();
    println!("4000 damaged models, {sound} without errors");
    assert!(sound > 200, "{sound}");
}
