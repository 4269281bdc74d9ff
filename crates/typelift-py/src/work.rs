//! Work on a thread of its own, while the one that asked for it listens for Ctrl-C and calls what is Python's.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::failure::Failure;

/// How long a Ctrl-C waits at most.
const POLL: Duration = Duration::from_millis(50);

/// As much as the main thread of a program has.
const STACK: usize = 8 << 20;

type Call = Box<dyn FnOnce(Python<'_>) + Send>;

/// The thread that waits for the work, which calls what is Python's.
#[derive(Clone)]
pub(crate) struct Caller(Sender<Call>);

impl Caller {
    /// Has something called. If the work was given up, it is dropped instead.
    pub(crate) fn ask(&self, call: impl FnOnce(Python<'_>) + Send + 'static) {
        let _given_up = self.0.send(Box::new(call));
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

/// Does work without the interpreter lock. After a Ctrl-C nobody waits for it: it goes on to its end, and what it returns is
/// dropped.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Caller) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (calls, mut asked) = mpsc::channel();
    let (answer, answered) = mpsc::sync_channel(1);
    let worker = thread::Builder::new().name("typelift".to_owned()).stack_size(STACK).spawn(move || {
        let caller = Caller(calls);
        let _given_up = answer.send(work(&caller));
    });
    worker.map_err(|error| Failure::Fault(format!("no thread can be started: {error}")).raise(py))?;
    loop {
        let asked = &mut asked;
        match py.detach(move || asked.recv_timeout(POLL)) {
            Ok(call) => call(py),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let done = answered.try_recv();
    done.map_err(|_| Failure::Fault("the work ended with a panic, which is a fault of typelift".to_owned()))
        .and_then(|done| done)
        .map_err(|failure| failure.raise(py))
}
