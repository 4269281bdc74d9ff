//! Damaged files of arrays and plans: after any deletion, duplication, replacement or swap the laws of
//! [`files_survival`](crate::files_survival) hold.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::damage::damage;
use crate::files_survival::survive;

fn seeds() -> Vec<Vec<u8>> {
    let npy = |header: &str, values: &[u8]| {
        let header = format!("{header:<117}\n");
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), values].concat()
    };
    let safetensors =
        |header: &str, values: &[u8]| [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), values].concat();
    vec![
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0; 8]),
        npy("{'descr': '>i2', 'fortran_order': True, 'shape': (1, 2, 1), }", &[1; 4]),
        npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", &[1]),
        safetensors(
            r#"{"__metadata__": {"format": "pt"}, "w": {"dtype": "F16", "shape": [1, 2], "data_offsets": [2, 6]}}"#,
            &[1; 6],
        ),
        safetensors(
            r#"{"v": {"dtype": "BOOL", "shape": [], "data_offsets": [0, 1]}, "w": {"dtype": "F64", "shape": [2], "data_offsets": [1, 17]}}"#,
            &[1; 17],
        ),
        b"# a plan\nint4_sym 128 layers.0.up\nint8_asym -1 embed\nkeep - head\n".to_vec(),
    ]
}

/// `PROPTEST_CASES` makes it try more.
#[test]
fn damaged_files_of_arrays_and_plans_are_refused_or_survive() {
    let cases = Config::default().cases.max(2000);
    let config = Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(0), ..Config::default() };
    let read = AtomicUsize::new(0);
    let strategy = (prop::sample::select(seeds()), prop::collection::vec(damage(), 0..4));
    let result = TestRunner::new(config).run(&strategy, |(mut bytes, damages)| {
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        read.fetch_add(usize::from(survive(&bytes)), Ordering::Relaxed);
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    // Damage that is always refused would test only the first bytes.
    let read = read.into_inner();
    assert!(read > 400, "{read} were read");
}
