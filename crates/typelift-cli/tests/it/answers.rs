//! Whatever a file says, every verb answers: no panic, no endless run, no exit status but 0, 1 and 2.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::cli::{command, run};
use crate::verbs::VERBS;

/// Far more than any of these takes, also where nothing is optimized and much else runs.
const ENDLESS: Duration = Duration::from_secs(60);

/// The exit status of a run that ends in time.
fn answer(folder: &Path, arguments: &[&str]) -> Option<i32> {
    let mut program = command(folder, arguments);
    let mut child = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while start.elapsed() < ENDLESS {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn every_verb_answers_for_files_that_once_had_no_answer() {
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hostile/answers");
    let files: Vec<_> = fs::read_dir(hostile).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(&file, folder.path().join("model.xml")).unwrap();
        for verb in VERBS {
            let status = answer(folder.path(), verb);
            assert!(matches!(status, Some(0..=2)), "{}: {verb:?} ends with {status:?}", file.display());
        }
        let found = run(folder.path(), &["check", "model.xml"]);
        assert!(found.stdout.contains("error["), "{}: {}", file.display(), found.stdout);
    }
}
