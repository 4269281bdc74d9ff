//! Runs work on its own thread. Meanwhile the calling thread listens for Ctrl-C and calls Python functions: those of
//! rules, and those that receive progress.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use typelift::host::progress::{self, Progress};

use crate::failure::Failure;

/// The longest delay of a Ctrl-C, and the interval between two progress reports.
const POLL: Duration = Duration::from_millis(50);

/// The stack size of a program's main thread.
const STACK: usize = 8 << 20;

type Call = Box<dyn FnOnce(Python<'_>) + Send>;

/// A request to the thread that waits for the work.
enum Asked {
    Call(Call),
    Tell(Progress),
}

/// The thread that waits for the work and calls Python functions.
#[derive(Clone)]
pub(crate) struct Caller(Sender<Asked>);

impl Caller {
    /// Requests a call. If the work was given up, the request is dropped.
    pub(crate) fn ask(&self, call: impl FnOnce(Python<'_>) + Send + 'static) {
        let _given_up = self.0.send(Asked::Call(Box::new(call)));
    }

    /// Requests a call, and waits for its result; `None` if the work was given up.
    pub(crate) fn call<T: Send + 'static>(&self, call: impl FnOnce(Python<'_>) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.ask(move |py| {
            let _given_up = answer.send(call(py));
        });
        answered.recv().ok()
    }
}

/// Does work without the interpreter lock, and reports progress to the function that the calling thread
/// [registered](watch). After a Ctrl-C, or an exception of that function, the caller does not wait: the work ends at
/// its next progress report.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    run_and(py, Stopped::Left, work)
}

/// Does the same as [`run`], but waits for stopped work to end, so that nothing changes after the return.
pub(crate) fn run_to_end<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    run_and(py, Stopped::Awaited, work)
}

/// Behaviour for work that was stopped and has not ended.
enum Stopped {
    Left,
    Awaited,
}

thread_local! {
    /// The Python function that receives the progress of this thread's work.
    static WATCHER: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Registers a function for the progress of this thread's work, and returns the previous one.
#[pyfunction]
pub(crate) fn watch(watcher: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    WATCHER.replace(watcher)
}

fn run_and<T: Send + 'static>(
    py: Python<'_>,
    stopped: Stopped,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    // Work started by the function itself is not reported to it.
    let watcher = WATCHER.take();
    let (calls, mut asked) = mpsc::channel();
    let (answer, answered) = mpsc::sync_channel(1);
    let told = Told { calls: calls.clone(), is_watched: watcher.is_some(), last: Instant::now(), stage: "" };
    let is_stopped = Arc::new(AtomicBool::new(false));
    let hook = told.hook(is_stopped.clone());
    let worker = thread::Builder::new().name("typelift".to_owned()).stack_size(STACK).spawn(move || {
        let caller = Caller(calls);
        if let Ok(done) = progress::watch(hook, || work(&caller)) {
            let _given_up = answer.send(done);
        }
    });
    let worker = worker.map_err(|error| Failure::Fault(format!("no thread can be started: {error}")).raise(py))?;
    let mut wait = || loop {
        let asked = &mut asked;
        match py.detach(move || asked.recv_timeout(POLL)) {
            Ok(Asked::Call(call)) => call(py),
            Ok(Asked::Tell(Progress { stage, done, total, .. })) => {
                if let Some(watcher) = &watcher {
                    watcher.call1(py, (stage, done, total))?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        py.check_signals()?;
    };
    let waited: PyResult<()> = wait();
    WATCHER.set(watcher);
    if waited.is_err() {
        is_stopped.store(true, Ordering::Relaxed);
        // Requests that arrive now are not answered.
        drop(asked);
        if matches!(stopped, Stopped::Awaited) {
            let _ended_or_panicked = py.detach(|| worker.join());
        }
    }
    waited?;
    let done = answered.try_recv();
    done.map_err(|_| Failure::Fault("the work ended with a panic, which is a bug in typelift".to_owned()))
        .and_then(|done| done)
        .map_err(|failure| failure.raise(py))
}

/// The progress that was reported.
struct Told {
    calls: Sender<Asked>,
    is_watched: bool,
    last: Instant,
    stage: &'static str,
}

impl Told {
    /// Reports progress at intervals, and the end of each stage that was reported before.
    fn hook(mut self, is_stopped: Arc<AtomicBool>) -> impl FnMut(&Progress) -> ControlFlow<()> {
        move |progress| {
            if is_stopped.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if self.is_watched && !progress.stage.is_empty() {
                self.tell(*progress);
            }
            ControlFlow::Continue(())
        }
    }

    fn tell(&mut self, progress: Progress) {
        let ends = progress.done == progress.total && progress.stage == self.stage;
        if ends || self.last.elapsed() >= POLL {
            self.last = Instant::now();
            self.stage = if ends { "" } else { progress.stage };
            let _given_up = self.calls.send(Asked::Tell(progress));
        }
    }
}
