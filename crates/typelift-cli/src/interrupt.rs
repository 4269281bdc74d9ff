//! What becomes of unfinished files when a signal ends the process.

use crate::failure::Failure;

/// Removes unfinished files before Ctrl-C or a request to terminate ends the process, and lets a file that grows beyond the
/// limit of the shell be an error like any other. To be called before the first file is written: what reads and infers is faster
/// in a process of one thread.
#[cfg(unix)]
pub(crate) fn clean_up_on_signals() -> Result<(), Failure> {
    use std::sync::OnceLock;

    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let started = STARTED.get_or_init(|| start_cleaner().map_err(|error| format!("cannot handle signals: {error}")));
    started.clone().map_err(Failure::new)
}

#[cfg(unix)]
fn start_cleaner() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let mut signals = Signals::new([SIGINT, SIGTERM, SIGXFSZ])?;
    let handle = move || {
        for signal in signals.forever().filter(|signal| *signal != SIGXFSZ) {
            typelift::save::interrupt();
            // The signal ends the process, and whoever started it sees that.
            let _ended = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().spawn(handle).map(drop)
}

#[cfg(not(unix))]
pub(crate) fn clean_up_on_signals() -> Result<(), Failure> {
    Ok(())
}
