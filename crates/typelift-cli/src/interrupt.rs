//! Unfinished files when a signal ends the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::failure::Failure;

/// Runs `write` so that neither Ctrl-C nor a request to terminate leaves an unfinished file. A file that exceeds the
/// shell's limit on sizes is an ordinary error. With `short`, a signal takes effect after the write. Otherwise a thread
/// removes unfinished files at once. A process without that thread starts and ends faster.
pub(crate) fn uninterrupted<T>(short: bool, write: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    #[cfg(unix)]
    signals::hold(short).map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
    // Elsewhere, Ctrl-C is a kill. The next run removes what it leaves.
    #[cfg(not(unix))]
    let _unused = short;
    let written = write();
    #[cfg(unix)]
    signals::release();
    written
}

/// Must be called before this process waits for another one, because the write is then no longer short.
pub(crate) fn expect_to_wait() {
    // Without the thread, a signal takes effect after the wait.
    #[cfg(unix)]
    let _started = signals::start_cleaner();
}

/// Has Ctrl-C and requests to terminate set a flag. The second one ends the process.
pub(crate) fn noticed() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::<AtomicBool>::default();
    #[cfg(unix)]
    signals::set(&flag).map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
    Ok(flag)
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::{Arc, LazyLock, OnceLock};
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::flag;
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::{emulate_default_handler, raise};

    /// Signals that ask the process to end.
    const REQUESTS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

    /// True if such a signal ends the process immediately, as if it were not handled.
    static COUNTS: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    /// The last signal that arrived.
    static CAME: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
    static CLEANER: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();

    pub(super) fn hold(short: bool) -> io::Result<()> {
        static HANDLED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
        COUNTS.store(false, SeqCst);
        (*HANDLED.get_or_init(|| handle().map_err(|error| error.kind())))?;
        if short { Ok(()) } else { start_cleaner() }
    }

    /// The requests that this process does not ignore. `nohup` has it ignore SIGHUP, and a shell in the background
    /// SIGINT.
    fn requests() -> impl Iterator<Item = i32> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored =
            status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
        let ignored = ignored.unwrap_or(0);
        REQUESTS.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0)
    }

    fn handle() -> io::Result<()> {
        for signal in requests() {
            flag::register_conditional_default(signal, COUNTS.clone())?;
            flag::register_usize(signal, CAME.clone(), signal as usize)?;
        }
        flag::register(SIGXFSZ, Arc::<AtomicBool>::default()).map(drop)
    }

    pub(super) fn set(asked: &Arc<AtomicBool>) -> io::Result<()> {
        for signal in REQUESTS {
            flag::register_conditional_default(signal, asked.clone())?;
            flag::register(signal, asked.clone())?;
        }
        Ok(())
    }

    pub(super) fn release() {
        if CLEANER.get().is_none() {
            COUNTS.store(true, SeqCst);
            end_if_asked(|signal| drop(emulate_default_handler(signal)));
        }
    }

    fn end_if_asked(end: impl Fn(i32)) {
        let came = CAME.load(SeqCst);
        REQUESTS.into_iter().filter(|&signal| signal as usize == came).for_each(end);
    }

    /// Starts the thread that removes unfinished files and ends the process, unless it runs.
    pub(super) fn start_cleaner() -> io::Result<()> {
        Ok((*CLEANER.get_or_init(|| clean().map_err(|error| error.kind())))?)
    }

    fn clean() -> io::Result<()> {
        let mut signals = Signals::new(requests())?;
        thread::Builder::new().spawn(move || {
            for signal in signals.forever() {
                typelift::host::interrupt();
                // The signal ends the process, and the parent process sees that.
                let _ended = emulate_default_handler(signal);
            }
        })?;
        // A signal that arrived before is passed to the thread too.
        end_if_asked(|signal| drop(raise(signal)));
        Ok(())
    }
}
