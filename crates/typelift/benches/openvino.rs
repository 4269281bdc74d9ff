//! Cost of a conversion relative to OpenVINO's, phase by phase, on the same graphs. It also measures whole processes,
//! compared with other tools and with the least that any program needs.
//!
//! `openvino.sh` builds the program of OpenVINO's side and runs this one with `OPENVINO_PHASES` naming it. `TYPELIFT`
//! names the program whose whole process is measured, and `PYTHON` one that may have the packages which `peers.py`
//! imports. Each side is a separate process for every graph, so that its peak memory is known. This library's side is
//! this program, called with a model and a number of runs.
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

/// The row of the time that a user waits: `typelift convert`, cold, compared with OpenVINO's conversion in a running
/// process.
const WHOLE_PROCESS: &str = "whole process";

/// The same, compared with the first conversion in an OpenVINO process, without its start.
const BOTH_COLD: &str = "whole process, both cold";

/// A model of `testdata/models` that represents the small ones.
const SMALL: &str = "bert.promote.xml";

/// The size in bytes from which real graphs are measured.
const SMALLEST: u64 = 100_000;

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == NOTHING) {
        return;
    }
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
    // A quick run checks that everything works.
    let is_quick = std::env::var_os("QUICK").is_some();
    let (blocks, few, many) = if is_quick { (100, 1, 1) } else { (10_000, 9, 25) };
    std::fs::write(&large, chain(blocks)).expect("the chain can be written");
    let measured = |model: &Path, runs| {
        let [mut our, mut their] = both(&theirs, model, runs);
        let whole = whole_process(&ours, model, &scratch.path().join("out.xml"), runs);
        our.extend([WHOLE_PROCESS, BOTH_COLD].map(|row| (row.to_owned(), whole)));
        their.insert(WHOLE_PROCESS.to_owned(), their["conversion"]);
        their.insert(BOTH_COLD.to_owned(), their["first conversion"]);
        [our, their]
    };
    let small = models().join(SMALL);
    let mut beside = Beside { theirs: &theirs, ours: &ours, scratch: scratch.path(), missing: Vec::new() };
    let columns = [beside.column(&large, few), beside.column(&small, many)];
    let peers = peers_table(&columns, &beside.missing);
    println!("{peers}\n");
    let large = measured(&large, few);
    let real: Vec<_> = real_models().iter().map(|model| measured(model, many)).collect();
    let system = std::env::var("FILE_SYSTEM").unwrap_or_else(|_| "an unknown file system".to_owned());
    let table = format!("{}\n\nWhole processes wrote new files to {system}, and synced none.", table(&large, &real));
    println!("{table}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        update_document("beside OpenVINO", &table);
        update_document("beside others", &peers);
    }
}

/// The median of each phase in milliseconds, and the peak memory of the process in megabytes.
type Phases = BTreeMap<String, f64>;

/// Measures this library.
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

/// Returns the median time of `typelift convert` in milliseconds, from the start of the process to its end, with a new
/// file each time.
fn whole_process(program: &OsStr, model: &Path, out: &Path, runs: usize) -> f64 {
    median((0..runs).map(|_| {
        let _ = std::fs::remove_file(out);
        time(&mut convert(program, model, out))
    }))
}

fn convert(program: &OsStr, model: &Path, out: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["convert", "--weights", "none"]).arg(model).arg("-o").arg(out);
    command
}

/// Returns the time of a process in milliseconds.
fn time(command: &mut Command) -> f64 {
    let begin = Instant::now();
    let output = command.output().expect("the program runs");
    let taken = begin.elapsed().as_secs_f64() * 1e3;
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    taken
}

/// The argument with which this program does nothing.
const NOTHING: &str = "nothing";

/// Measurement of whole processes next to `typelift convert`.
struct Beside<'a> {
    theirs: &'a OsStr,
    ours: &'a OsStr,
    scratch: &'a Path,
    /// The programs that are not installed, and so not measured.
    missing: Vec<String>,
}

/// The times of each row for one model in milliseconds, ours first.
struct Column {
    model: String,
    rows: Vec<(&'static str, f64)>,
}

impl Beside<'_> {
    fn column(&mut self, model: &Path, runs: usize) -> Column {
        let bytes = std::fs::read(model).expect("the model can be read");
        let out = self.scratch.join("out");
        let mut rows = self.processes(model, &out, bytes.len(), runs);
        let mut copy = vec![0; bytes.len()];
        let mut row = |name, work: &mut dyn FnMut()| {
            let times = (0..runs).map(|_| {
                let _ = std::fs::remove_file(&out);
                let begin = Instant::now();
                work();
                begin.elapsed().as_secs_f64() * 1e3
            });
            rows.push((name, median(times)));
        };
        row("to read the file", &mut || drop(black_box(std::fs::read(model))));
        row("to look at each byte once (memchr)", &mut || assert_eq!(memchr::memchr(0, black_box(&bytes)), None));
        row("to copy its bytes (memcpy)", &mut || copy.copy_from_slice(black_box(&bytes)));
        row("to write them to a new file", &mut || std::fs::write(&out, &bytes).expect("a file can be written"));
        let name = model.file_stem().unwrap_or_default().to_string_lossy();
        Column { model: format!("{name}, {:.1} MB", bytes.len() as f64 / 1e6), rows }
    }

    /// Runs whole processes in turn, so that a slower machine slows all of them.
    fn processes(&mut self, model: &Path, out: &Path, length: usize, runs: usize) -> Vec<(&'static str, f64)> {
        let own = std::env::current_exe().expect("the program has a path");
        let command = |program: &OsStr, arguments: &[&OsStr]| {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        };
        let mut commands = vec![
            ("typelift convert", convert(self.ours, model, &out.with_extension("xml"))),
            ("a process that does nothing", command(own.as_os_str(), &[NOTHING.as_ref()])),
            ("cp", command("cp".as_ref(), &[model.as_ref(), out.as_ref()])),
            ("OpenVINO, one conversion", command(self.theirs, &[model.as_ref(), "1".as_ref()])),
        ];
        if let Some(other) = std::env::var_os("OTHER") {
            commands.push(("another build of it", convert(&other, model, &out.with_extension("xml"))));
        }
        let xmllint = command("xmllint".as_ref(), &["--stream".as_ref(), "--noout".as_ref(), model.as_ref()]);
        if self.has("xmllint", &mut command("xmllint".as_ref(), &["--version".as_ref()])) {
            commands.push(("xmllint --stream", xmllint));
        }
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers.py");
        // A layer of the chain has this many bytes.
        let (onnx, count) = (out.with_extension("onnx"), (length / 672).to_string());
        let mut made = false;
        for (name, module, verb) in [
            ("Python, OpenVINO", "openvino", "openvino"),
            ("Python, onnx-ir", "onnx_ir", "onnx-ir"),
            ("Python, onnxscript", "onnxscript", "onnxscript"),
        ] {
            let import = format!("import {module}");
            if !self.has(name, &mut command(&python, &["-c".as_ref(), import.as_ref()])) {
                continue;
            }
            if verb != "openvino" && !std::mem::replace(&mut made, true) {
                time(&mut command(&python, &[script.as_ref(), "make".as_ref(), count.as_ref(), onnx.as_ref()]));
            }
            let (from, to) = if verb == "openvino" { (model, "py.xml") } else { (onnx.as_path(), "py.onnx") };
            let to = self.scratch.join(to);
            commands.push((name, command(&python, &[script.as_ref(), verb.as_ref(), from.as_ref(), to.as_ref()])));
        }
        let mut times = vec![Vec::new(); commands.len()];
        // The first turn only warms the file system.
        for turn in 0..=runs {
            for ((_, command), times) in commands.iter_mut().zip(&mut times) {
                for file in
                    ["", "xml", "onnx"].map(|ending| out.with_extension(ending)).iter().filter(|it| **it != onnx)
                {
                    let _ = std::fs::remove_file(file);
                }
                let taken = time(command);
                times.extend((turn > 0).then_some(taken));
            }
        }
        let names = commands.iter().map(|(name, _)| *name);
        names.zip(times).map(|(name, times)| (name, median(times.into_iter()))).collect()
    }

    /// True if a process runs; otherwise it is recorded as missing.
    fn has(&mut self, name: &str, command: &mut Command) -> bool {
        let has = command.output().is_ok_and(|output| output.status.success());
        if !has && !self.missing.iter().any(|missing| missing == name) {
            self.missing.push(name.to_owned());
        }
        has
    }
}

/// Returns a row for each process and each lower bound: its time, and the ratio to ours.
fn peers_table(columns: &[Column], missing: &[String]) -> String {
    let mut table = String::from("| |");
    for column in columns {
        table += &format!(" {} | times ours |", column.model);
    }
    table += &format!("\n|---|{}", "---:|---:|".repeat(columns.len()));
    for (at, (name, _)) in columns[0].rows.iter().enumerate() {
        table += &format!("\n| {name} |");
        for column in columns {
            let (ours, taken) = (column.rows[0].1, column.rows[at].1);
            table += &format!(" {taken:.2} ms | {:.2} |", taken / ours);
        }
    }
    if !missing.is_empty() {
        table += &format!("\n\nNot here, and not measured: {}.", missing.join(", "));
    }
    table
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<_> = times.collect();
    let middle = times.len() / 2;
    *times.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Returns the peak memory of this process, if the system reports it.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1e3)
}

/// Measures both sides on a model, this library first.
fn both(program: &OsStr, model: &Path, runs: usize) -> [Phases; 2] {
    let own = std::env::current_exe().expect("the program has a path");
    [own.as_os_str(), program].map(|program| {
        let output = Command::new(program).arg(model).arg(runs.to_string()).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("the program prints JSON")
    })
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models")
}

/// Returns every model of `testdata/models`, or of the folder `MODELS`, that is large enough and has something to
/// lower.
fn real_models() -> Vec<PathBuf> {
    let folder = std::env::var_os("MODELS").map_or_else(models, PathBuf::from);
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

/// Returns a row for each phase: both sides on the large graph, and OpenVINO's ratio to ours there and on the real
/// ones.
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
