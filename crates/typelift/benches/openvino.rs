//! What a conversion costs beside OpenVINO's own, phase by phase, on the same graphs.
//!
//! `openvino.sh` builds the program of OpenVINO's side and runs this with `OPENVINO_PHASES` naming it, and `TYPELIFT` the
//! program whose whole process is measured. Each side is a process of its own for every graph, so that its peak memory can be
//! told; the side of this library is this program called with a model and a number of runs.
#![allow(clippy::print_stdout, reason = "what is measured is for reading")]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use common::{chain, update_document};
use typelift::passes::{ELIMINATE_NOOP_CONVERTS, LOWER_WITHOUT_NOOPS, run};
use typelift::xml::{WriteOptions, write};
use typelift::{Model, infer};

/// The row of what a user waits for: `typelift convert`, cold, beside OpenVINO's conversion in a process that runs already.
const WHOLE_PROCESS: &str = "whole process";

/// The same beside the first conversion in an OpenVINO process, its start not counted.
const BOTH_COLD: &str = "whole process, both cold";

/// Real graphs are measured from this many bytes on.
const SMALLEST: u64 = 100_000;

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [model, runs] = &arguments[..]
        && let Some(runs) = runs.to_str().and_then(|runs| runs.parse().ok())
    {
        println!("{}", serde_json::to_string(&phases(Path::new(model), runs)).expect("numbers are data"));
        return;
    }
    let (Some(theirs), Some(ours)) = (std::env::var_os("OPENVINO_PHASES"), std::env::var_os("TYPELIFT")) else {
        println!("openvino.sh beside this bench measures OpenVINO too");
        return;
    };
    let scratch = tempfile::tempdir().expect("a folder can be made");
    let large = scratch.path().join("chain.xml");
    std::fs::write(&large, chain(10_000)).expect("the chain can be written");
    let measured = |model: &Path, runs| {
        let [mut our, mut their] = both(&theirs, model, runs);
        let whole = whole_process(&ours, model, &scratch.path().join("out.xml"), runs);
        our.extend([WHOLE_PROCESS, BOTH_COLD].map(|row| (row.to_owned(), whole)));
        their.insert(WHOLE_PROCESS.to_owned(), their["conversion"]);
        their.insert(BOTH_COLD.to_owned(), their["first conversion"]);
        [our, their]
    };
    let large = measured(&large, 9);
    let real: Vec<_> = real_models().iter().map(|model| measured(model, 25)).collect();
    let system = std::env::var("FILE_SYSTEM").unwrap_or_else(|_| "an unknown file system".to_owned());
    let table = format!("{}\n\nWhole processes wrote new files to {system}, and synced none.", table(&large, &real));
    println!("{table}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        update_document("beside OpenVINO", &table);
    }
}

/// The median of each phase in milliseconds, and the peak memory of the process in megabytes.
type Phases = BTreeMap<String, f64>;

/// What this library takes.
fn phases(model: &Path, runs: usize) -> Phases {
    let mut times = BTreeMap::<&str, Vec<f64>>::new();
    for _ in 0..runs {
        let begin = Instant::now();
        let mut before = begin;
        let mut lap = |phase| {
            let now = Instant::now();
            times.entry(phase).or_default().push((now - before).as_secs_f64() * 1e3);
            before = now;
        };
        let mut model = Model::open(model).expect("the model is valid");
        lap("read");
        let _ = infer(&mut model);
        lap("infer");
        for pass in [LOWER_WITHOUT_NOOPS, ELIMINATE_NOOP_CONVERTS] {
            run(&mut model, pass).expect("the graph stays valid");
        }
        lap("lower");
        let text = write(&model, WriteOptions::default());
        lap("write");
        times.entry("conversion").or_default().push(begin.elapsed().as_secs_f64() * 1e3);
        black_box(text);
    }
    let medians = times.into_iter().map(|(phase, times)| (phase.to_owned(), median(times.into_iter())));
    medians.chain(peak_memory().map(|peak| ("peak memory".to_owned(), peak))).collect()
}

/// The median time of `typelift convert` in milliseconds, from the start of the process to its end, with a new file each time.
fn whole_process(program: &OsStr, model: &Path, out: &Path, runs: usize) -> f64 {
    median((0..runs).map(|_| {
        let _ = std::fs::remove_file(out);
        let begin = Instant::now();
        let command = &mut Command::new(program);
        let command = command.args(["convert", "--weights", "none"]).arg(model).arg("-o").arg(out);
        let output = command.output().expect("the program runs");
        let taken = begin.elapsed().as_secs_f64() * 1e3;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        taken
    }))
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<_> = times.collect();
    let middle = times.len() / 2;
    *times.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The most memory this process ever had, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1e3)
}

/// What both sides take for a model, this library first.
fn both(program: &OsStr, model: &Path, runs: usize) -> [Phases; 2] {
    let own = std::env::current_exe().expect("the program has a path");
    [own.as_os_str(), program].map(|program| {
        let output = Command::new(program).arg(model).arg(runs.to_string()).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("the program prints JSON")
    })
}

/// Every model of `testdata/models`, or of the folder `MODELS`, that is not small and has something to lower.
fn real_models() -> Vec<PathBuf> {
    let folder = std::env::var_os("MODELS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models"), PathBuf::from);
    let entries = std::fs::read_dir(folder).expect("the folder has models");
    let mut models: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    models.retain(|path| {
        path.extension().is_some_and(|extension| extension == "xml")
            && path.metadata().is_ok_and(|found| found.len() >= SMALLEST)
            && std::fs::read_to_string(path).is_ok_and(|text| text.contains("type=\"ConvertPromoteTypes\""))
    });
    models.sort();
    models
}

/// A row for each phase: both sides on the large graph, and how many times ours OpenVINO takes, there and on the real ones.
fn table(large: &[Phases; 2], real: &[[Phases; 2]]) -> String {
    let rows =
        ["read", "infer", "lower", "write", "conversion", WHOLE_PROCESS, BOTH_COLD, "peak memory"].map(|phase| {
            let ratio = |[ours, theirs]: &[Phases; 2]| Some(theirs.get(phase)? / ours.get(phase)?);
            let ratios: Vec<_> = real.iter().filter_map(ratio).collect();
            let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let unit = if phase == "peak memory" { "MB" } else { "ms" };
            let number = |value: Option<&f64>| value.map_or("?".to_owned(), |value| format!("{value:.1} {unit}"));
            let [ours, theirs] = large.each_ref().map(|phases| number(phases.get(phase)));
            let ratio = ratio(large).map_or("?".to_owned(), |ratio| format!("{ratio:.1}"));
            format!("| {phase} | {ours} | {theirs} | {ratio} | {mean:.1} |")
        });
    let head = format!(
        "| phase | typelift, chain | OpenVINO, chain | ratio | ratio on {} real models |\n|---|---:|---:|---:|---:|",
        real.len()
    );
    [head].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}
