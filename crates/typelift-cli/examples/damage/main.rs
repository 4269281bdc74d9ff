//! Damages models and runs every command on the result. None may panic, end with an exit status other than 0, 1 and 2,
//! or use more than ten seconds of processor time. Processor time does not depend on other work of the machine.
//!
//! `cargo run --release -p typelift-cli --example damage -- OUT COUNT SEED FOLDER... > OUT/said` damages one of the
//! models in the folders `COUNT` times. At most a thousand are useful, because the program keeps what it read until the
//! process ends. Failures are kept in `OUT`. So is the current model as `model.xml`, in case the process is killed;
//! `too-long` then names the command that did not end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a tool for tests fails by panicking")]

#[path = "model.rs"]
mod damage;
#[path = "../../tests/it/verbs.rs"]
mod verbs;

use std::ffi::OsString;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Limit on the processor time of a command.
const LONGEST: Duration = Duration::from_secs(10);
/// Limit on the elapsed time of a command, which ends one that waits forever.
const WAITS: Duration = Duration::from_secs(600);
/// Longer texts than this are selected less often, the longer the less.
const SHORT: u64 = 8 << 10;

/// The number of panics, including those that the program caught.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Damages models and runs all commands on each. Returns the failures.
fn run(out: &Path, count: usize, seed: u64, models: &[PathBuf]) -> Vec<String> {
    let said = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        said(info);
    }));
    let weighted = models.iter().map(|model| {
        let size = fs::metadata(model).unwrap().len();
        ((SHORT * 100 / size.max(SHORT)).max(1) as u32, Just(model.clone()))
    });
    let strategy =
        (prop::strategy::Union::new_weighted(weighted.collect()), prop::collection::vec(damage::damage(), 1..6));
    let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let mut failures = Vec::new();
    for at in 0..count {
        let (model, damages) = strategy.new_tree(&mut runner).unwrap().current();
        let mut text = fs::read(&model).unwrap();
        damages.iter().for_each(|damage| damage.apply(&mut text));
        fs::write(out.join("model.xml"), &text).unwrap();
        let weights = model.with_extension("bin");
        let kept = out.join("model.bin");
        if weights.exists() {
            drop(fs::copy(weights, kept))
        } else {
            drop(fs::remove_file(kept))
        }
        for (number, verb) in verbs::VERBS.iter().enumerate() {
            if let Some(failure) = ask(out, verb) {
                let name = format!("{seed}-{at}-{number}.xml");
                fs::write(out.join(&name), &text).unwrap();
                failures.push(format!("{name} ({}): {} {failure}", model.display(), verb.join(" ")));
                fs::write(out.join("failures"), failures.join("\n")).unwrap();
            }
        }
    }
    failures
}

/// Returns the problem of the program's answer.
fn ask(out: &Path, verb: &[&str]) -> Option<String> {
    let place = |word: &&str| {
        if word.contains('.') && !word.starts_with("20") { out.join(word).into() } else { OsString::from(word) }
    };
    let arguments: Vec<OsString> = std::iter::once("typelift".into()).chain(verb.iter().map(place)).collect();
    let panics = PANICS.load(Ordering::Relaxed);
    let (done, waits) = mpsc::channel::<()>();
    let (line, place) = (verb.join(" "), out.join("too-long"));
    let (began, used) = (Instant::now(), processor_time());
    let watch = std::thread::spawn(move || {
        while waits.recv_timeout(LONGEST / 10) == Err(RecvTimeoutError::Timeout) {
            let waited = began.elapsed();
            let worked = processor_time().zip(used).map_or(waited, |(now, used)| now.saturating_sub(used));
            if worked > LONGEST || waited > WAITS {
                // A run cannot be ended from outside, and the model is in its file. The run may have locked standard
                // output.
                drop(fs::write(place, line));
                std::process::abort();
            }
        }
    });
    let status = panic::catch_unwind(AssertUnwindSafe(|| typelift_cli::run(arguments)));
    drop(done);
    watch.join().unwrap();
    match status {
        _ if PANICS.load(Ordering::Relaxed) > panics => Some("panics".to_owned()),
        Ok(0..=2) => None,
        status => Some(format!("ends with {status:?}")),
    }
}

/// Returns the processor time of this process; `None` where it is not Linux.
fn processor_time() -> Option<Duration> {
    let said = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program comes first, in parentheses, and can contain anything.
    let mut numbers = said.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u64>);
    let hundredths = numbers.next()?.ok()? + numbers.next()?.ok()?;
    Some(Duration::from_millis(10 * hundredths))
}

/// Returns the models in a folder and those inside it.
fn models(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "xml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, count, seed, folders @ ..] = &arguments[..] else { panic!("OUT COUNT SEED FOLDER...") };
    let models: Vec<_> = folders.iter().flat_map(|folder| models(Path::new(folder))).collect();
    let failures = run(Path::new(out), count.parse().unwrap(), seed.parse().unwrap(), &models);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The commands print to the streams of their process, which is a separate one here.
#[test]
fn every_verb_answers_whatever_is_damaged() {
    const CHILD: &str = "TYPELIFT_DAMAGE_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "every_verb_answers_whatever_is_damaged", "--nocapture"]).env(CHILD, "");
        let run = test.output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        let last: Vec<_> = said.lines().rev().take(20).collect();
        assert!(run.status.success(), "{last:#?}");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let models: Vec<_> = ["models", "fixtures"].iter().flat_map(|folder| models(&testdata.join(folder))).collect();
    assert_eq!(run(out.path(), 100, 0, &models), Vec::<String>::new());
}
