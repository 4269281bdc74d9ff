//! Damaged models: after any deletion, duplication, replacement or swap nothing panics, and the laws of [`survival`]
//! hold.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::damage::damage;
use crate::survival::survive;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use typelift::{Checking, Weights};

/// Returns the fixtures of every topic.
pub(crate) fn fixtures() -> Vec<PathBuf> {
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
    let config = Config { cases: 2500, failure_persistence: None, rng_seed: RngSeed::Fixed(0), ..Config::default() };
    let sound = AtomicUsize::new(0);
    let strategy = (prop::sample::select(fixtures()), prop::collection::vec(damage(), 1..5));
    let result = TestRunner::new(config).run(&strategy, |(file, damages)| {
        let mut text = std::fs::read(file).unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut text));
        sound.fetch_add(usize::from(survive(text)), Ordering::Relaxed);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    // Damage that is always refused would test only the reader.
    let sound = sound.into_inner();
    println!("2500 damaged models, {sound} without errors");
    assert!(sound > 120, "{sound}");
}

#[test]
fn the_largest_numbers_are_refused_or_survive() {
    let names = ["document/u64_i8_unsafe.xml", "align/pytorch_zero_dim.xml"];
    let files = fixtures().into_iter().filter(|file| names.iter().any(|name| file.ends_with(name)));
    let mut damaged = 0;
    for text in files.map(|file| std::fs::read_to_string(file).unwrap()) {
        let quoted: Vec<&str> = text.split('"').collect();
        for at in (1..quoted.len()).step_by(2).filter(|&at| quoted[at].parse::<u64>().is_ok()) {
            for largest in [u64::MAX.to_string(), i64::MAX.to_string(), i64::MIN.to_string()] {
                let mut quoted = quoted.clone();
                quoted[at] = &largest;
                let text = Arc::new(quoted.join("\""));
                for fix in [false, true] {
                    Checking { fix, ..Checking::default() }.run(&text, &Weights::none());
                }
                survive(text.as_bytes().to_vec());
                damaged += 1;
            }
        }
    }
    assert!(damaged > 30, "{damaged}");
}
