//! Work on a thread of its own, while the one that asked for it listens for Ctrl-C and calls what is Python's: functions of rules, and
//! those that are told how far the work is.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use typelift::progress::{self, Progress};

use crate::failure::Failure;

/// How long a Ctrl-C waits at most, and how far apart a function is told how far work is.
const POLL: Duration = Duration::from_millis(50);

/// As much as the main thread of a program has.
const STACK: usize = 8 << 20;

type Call = Box<dyn FnOnce(Python<'_>) + Send>;

/// What the thread that waits for the work is asked to do.
enum Asked {
    Call(Call),
    Tell(Progress),
}

/// The thread that waits for the work, which calls what is Python's.
#[derive(Clone)]
pub(crate) struct Caller(Sender<Asked>);

impl Caller {
    /// Has something called. If the work was given up, it is dropped instead.
    pub(crate) fn ask(&self, call: impl FnOnce(Python<'_>) + Send + 'static) {
        let _given_up = self.0.send(Asked::Call(Box::new(call)));
    }

    /// Calls something, and waits for what it returns; `None` if the work was given up.
    pub(crate) fn call<T: Send + 'static>(&self, call: impl FnOnce(Python<'_>) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.ask(move |py| {
            let _given_up = answer.send(call(py));
        });
        answered.recv().ok()
    }
}

/// Does work without the interpreter lock, and tells the function that the calling thread [watches](watch) it by how far it is.
/// After a Ctrl-C, or an exception of that function, nobody waits for it: it ends when it next says how far it is.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    run_and(py, Stopped::Left, work)
}

/// As [`run`], but work that was stopped is waited for: when this returns it changes nothing any more.
pub(crate) fn run_to_end<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    run_and(py, Stopped::Awaited, work)
}

/// What becomes of work that was stopped and has not ended.
enum Stopped {
    Left,
    Awaited,
}

thread_local! {
    /// The function of Python's that is told how far the work is that this thread waits for.
    static WATCHER: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Has a function told how far the work of this thread is; gives the one that was.
#[pyfunction]
pub(crate) fn watch(watcher: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    WATCHER.replace(watcher)
}

fn run_and<T: Send + 'static>(
    py: Python<'_>,
    stopped: Stopped,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    // It is not told of work of its own.
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
        // What it asks for now is not answered.
        drop(asked);
        if matches!(stopped, Stopped::Awaited) {
            let _ended_or_panicked = py.detach(|| worker.join());
        }
    }
    waited?;
    let done = answered.try_recv();
    done.map_err(|_| Failure::Fault("the work ended with a panic, which is a fault of typelift".to_owned()))
        .and_then(|done| done)
        .map_err(|failure| failure.raise(py))
}

/// What was told of the work.
struct Told {
    calls: Sender<Asked>,
    is_watched: bool,
    last: Instant,
    stage: &'static str,
}

impl Told {
    /// Tells now and then how far the work is, and the end of each stage of which anything was told.
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
