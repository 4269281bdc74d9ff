//! Progress of a long run, on standard error if that is a terminal.

use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use typelift::host::progress::watch;

use crate::failure::Failure;

/// The time after which a run shows its progress.
const PATIENCE: Duration = Duration::from_millis(500);

/// The interval at which the time of a run is drawn, so that a step without reports does not seem to hang.
const TICK: Duration = Duration::from_millis(200);

/// The stages of a run in their usual order. Each takes one part of the bar.
const STAGES: [&str; 9] = ["read", "infer", "check", "match", "rewrite", "values", "compare", "run", "write"];

/// The length of a part of the bar.
const PART: u64 = 100;

/// Runs a whole job, and shows one bar for it if it takes long. The bar never goes back: a stage that is repeated leaves it
/// where it is.
///
/// # Errors
/// The work was stopped, which the progress itself never does.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    if !stderr().is_terminal() {
        return Ok(work());
    }
    let bar = ProgressBar::with_draw_target(Some(STAGES.len() as u64 * PART), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    let (ended, end) = channel::<()>();
    let (late, told) = (bar.clone(), bar.clone());
    let drawing = thread::spawn(move || {
        if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            late.set_draw_target(ProgressDrawTarget::stderr());
            late.enable_steady_tick(TICK);
        }
    });
    let done = watch(
        move |progress| {
            if let Some(stage) = STAGES.iter().position(|stage| *stage == progress.stage) {
                let part = progress.done.saturating_mul(PART).checked_div(progress.total).unwrap_or(PART).min(PART);
                told.set_position(told.position().max(stage as u64 * PART + part));
                told.set_message(progress.stage);
            }
            ControlFlow::Continue(())
        },
        work,
    );
    drop(ended);
    let _joined = drawing.join();
    bar.finish_and_clear();
    done.map_err(|stopped| Failure::new(stopped.to_string()))
}
