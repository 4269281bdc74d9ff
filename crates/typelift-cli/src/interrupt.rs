//! What becomes of unfinished files when a signal ends the process.

use crate::failure::Failure;

/// Removes unfinished files before Ctrl-C or a request to terminate ends the process, and lets a file that grows beyond the
/// limit of the shell be an error like any other.
#[cfg(unix)]
pub(crate) fn clean_up_on_signals() -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGXFSZ]).map_err(failed)?;
    let handle = move || {
        for signal in signals.forever().filter(|signal| *signal != SIGXFSZ) {
            typelift::save::interrupt();
            // The signal ends the process, and whoever started it sees that.
            let _ended = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().spawn(handle).map(drop).map_err(failed)
}

#[cfg(not(unix))]
pub(crate) fn clean_up_on_signals() -> Result<(), Failure> {
    Ok(())
}
