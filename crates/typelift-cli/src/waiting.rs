//! Progress of a long run on one model, on standard error if that is a terminal.

use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use typelift::host::progress::watch;

use crate::failure::Failure;

/// The time after which a run shows its progress.
const PATIENCE: Duration = Duration::from_millis(800);

/// Runs work on one model, and shows its progress if it takes long.
///
/// # Errors
/// The work was stopped, which the progress itself never does.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    if !stderr().is_terminal() {
        return Ok(work());
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}: {percent} %") {
        bar.set_style(style);
    }
    let (start, shown) = (Instant::now(), bar.clone());
    let done = watch(
        move |progress| {
            if start.elapsed() > PATIENCE && progress.total > 0 {
                if shown.is_hidden() {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                }
                shown.set_message(progress.stage);
                shown.set_length(progress.total);
                shown.set_position(progress.done);
            }
            ControlFlow::Continue(())
        },
        work,
    );
    bar.finish_and_clear();
    done.map_err(|stopped| Failure::new(stopped.to_string()))
}
