//! Cost of a rewrite relative to a plain conversion of the same file, each a whole process that reads and writes files.
//!
//! `cargo bench -p typelift-cli --bench rewrite` prints the table; with `UPDATE_DOCS=1` it writes it into the
//! documents.
#![allow(clippy::print_stdout, reason = "what is measured is for reading")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{deep, update_document, uses};

/// The time of a process, and its peak memory in bytes, if the system reports it.
type Cost = (Duration, Option<f64>);

fn main() {
    // `cargo test` runs benches too, to check that they work.
    let scale = if std::env::args().any(|argument| argument == "--bench") { 1 } else { 1_000 };
    let folder = tempfile::tempdir().expect("a directory for models");
    let (chain, hub) = (folder.path().join("chain.xml"), folder.path().join("hub.xml"));
    fs::write(&chain, deep(200_000 / scale)).expect("the model can be written");
    fs::write(&hub, uses(66_000 / scale)).expect("the model can be written");
    let cases = [
        ("chain, 200,000 layers", &chain, "ReLU(ReLU(x)) => Elu(x) {alpha=1}", "100,000"),
        ("chain, 200,000 layers", &chain, "ReLU(x) => Elu(x) {alpha=1}", "200,000"),
        ("chain, 200,000 layers", &chain, "ReLU(ReLU(x)) => Maximum(x, 0)", "100,000"),
        ("chain, 200,000 layers", &chain, "ReLU(ReLU(Sigmoid(x))) => x", "0"),
        ("one tensor, 66,000 uses", &hub, "ReLU(x) => Elu(x) {alpha=1}", "66,000"),
        ("one tensor, 66,000 uses", &hub, "ReLU(x) => Maximum(x, 0)", "66,000"),
        ("one tensor, 66,000 uses", &hub, "ReLU(x: f16) => x", "0"),
    ];
    let mut table = String::from(
        "| graph | rule | places | conversion | rewrite | conversions | memory, times the file |\n|---|---|--:|--:|--:|--:|--:|\n",
    );
    for (name, model, rule, places) in cases {
        let out = folder.path().join("out.xml");
        let (conversion, _) = cost(&["convert"], model, &out);
        let (rewrite, peak) = cost(&["rewrite", "-e", rule], model, &out);
        let ratio = rewrite.as_secs_f64() / conversion.as_secs_f64();
        let size = fs::metadata(model).expect("the model is there").len() as f64;
        let memory = peak.map_or_else(|| "-".to_owned(), |peak| format!("{:.2}", peak / size));
        table +=
            &format!("| {name} | `{rule}` | {places} | {conversion:.2?} | {rewrite:.2?} | {ratio:.2} | {memory} |\n");
    }
    println!("{table}");
    if scale == 1 && std::env::var_os("UPDATE_DOCS").is_some() {
        update_document("rewrites", &table);
    }
}

/// Returns the fastest of five runs, and the highest peak memory.
fn cost(verb: &[&str], model: &Path, out: &Path) -> Cost {
    let runs: Vec<_> = (0..5).map(|_| run(verb, model, out)).collect();
    let fastest = runs.iter().map(|run| run.0).min().unwrap_or_default();
    (fastest, runs.iter().filter_map(|run| run.1).max_by(f64::total_cmp))
}

fn run(verb: &[&str], model: &Path, out: &Path) -> Cost {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    command.args(verb).arg(model).arg("-o").arg(out).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    loop {
        // The peak only grows, so the last reading covers all but the very end.
        peak = peak_memory(&status).or(peak);
        if let Some(status) = child.try_wait().expect("the program can be waited for") {
            assert!(status.success(), "{verb:?} {status}");
            return (start.elapsed(), peak);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn peak_memory(status: &str) -> Option<f64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}
