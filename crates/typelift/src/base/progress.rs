//! Progress reports of long work, and a way to stop it.
//!
//! Long loops report their position. On a thread that nobody [watches](watch) this costs one check of a flag.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Progress of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The stage: `read`, `infer`, `check`, `match`, `rewrite`, `values`, `compare`, `run` or `write`; empty before the
    /// first stage.
    pub stage: &'static str,
    /// The amount done, in layers, bytes or blocks of values.
    pub done: u64,
    /// The total amount.
    pub total: u64,
}

/// Error of work that was stopped. The data that it was changing may be incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was stopped")]
pub struct Stopped;

type Hook = Box<dyn FnMut(&Progress) -> ControlFlow<()>>;

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    /// The outermost stage that is running.
    static STAGE: Cell<Option<Progress>> = const { Cell::new(None) };
}

/// Runs work, and calls `hook` often with its progress: for each layer, and for each block of values. If the hook
/// returns [`ControlFlow::Break`], the work stops. A file that was being written is left as it was.
///
/// A stage inside another one is not reported. Only the calling thread reports; the other threads of the work stop
/// with it.
///
/// # Errors
/// [`Stopped`].
///
/// # Examples
/// ```
/// use std::ops::ControlFlow;
/// use typelift::host::progress::{watch, Stopped};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml");
/// let all = watch(|_| ControlFlow::Continue(()), || typelift::Model::open(path));
/// assert_eq!(all.unwrap()?.graph().len(), 5);
///
/// let some = watch(|progress| if progress.stage == "read" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) },
///     || typelift::Model::open(path));
/// assert_eq!(some.unwrap_err(), Stopped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn watch<T>(
    hook: impl FnMut(&Progress) -> ControlFlow<()> + 'static,
    work: impl FnOnce() -> T,
) -> Result<T, Stopped> {
    let outer = (HOOK.replace(Some(Box::new(hook))), IS_WATCHED.replace(true), STAGE.take());
    let done = catch_unwind(AssertUnwindSafe(work));
    HOOK.set(outer.0);
    IS_WATCHED.set(outer.1);
    STAGE.set(outer.2);
    done.or_else(|reason| if reason.is::<Stopped>() { Err(Stopped) } else { resume_unwind(reason) })
}

/// Ends the current work if the user stopped it. Long code that is not a stage calls this.
pub fn poll() {
    if IS_WATCHED.get() {
        tell();
    }
}

fn tell() {
    let progress = STAGE.get().unwrap_or(Progress { stage: "", done: 0, total: 0 });
    // The hook is borrowed while it runs, so work inside it is not reported.
    let told = HOOK.with(|hook| Some(hook.try_borrow_mut().ok()?.as_mut()?(&progress)));
    if told == Some(ControlFlow::Break(())) {
        resume_unwind(Box::new(Stopped));
    }
}

/// A running stage; dropping it ends the stage.
pub(crate) struct Stage {
    /// True if the stage is reported: a hook is set, and no other stage surrounds this one.
    is_told: bool,
}

impl Stage {
    pub(crate) fn new(stage: &'static str, total: u64) -> Self {
        let is_told = IS_WATCHED.get() && STAGE.get().is_none();
        if is_told {
            STAGE.set(Some(Progress { stage, done: 0, total }));
        }
        Self { is_told }
    }

    /// Reports the amount of work done so far.
    pub(crate) fn at(&self, done: u64) {
        if self.is_told {
            STAGE.set(STAGE.get().map(|stage| Progress { done, ..stage }));
        }
        poll();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.is_told {
            STAGE.set(None);
        }
    }
}

/// Iterates over `items` and reports each step as progress of a stage.
pub fn each<I: IntoIterator<IntoIter: ExactSizeIterator>>(
    stage: &'static str,
    items: I,
) -> impl Iterator<Item = I::Item> {
    let items = items.into_iter();
    let total = items.len() as u64;
    let stage = Stage::new(stage, total);
    let end = std::iter::once(None);
    items.map(Some).chain(end).enumerate().map_while(move |(at, item)| {
        stage.at(at as u64);
        item
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Returns the progress reports of `work`, which is stopped at the report `last`.
    fn told(last: Option<(&str, u64)>, work: impl FnOnce()) -> (Vec<(&'static str, u64, u64)>, bool) {
        let last = last.map(|(stage, done)| (stage.to_owned(), done));
        let told = Rc::new(RefCell::new(Vec::new()));
        let list = told.clone();
        let hook = move |progress: &Progress| {
            list.borrow_mut().push((progress.stage, progress.done, progress.total));
            let is_last =
                last.as_ref().is_some_and(|(stage, done)| (stage.as_str(), *done) == (progress.stage, progress.done));
            if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let ended = watch(hook, work);
        (told.take(), ended.is_ok())
    }

    #[test]
    fn stages_are_told_from_start_to_end_and_those_inside_poll() {
        let work = || {
            poll();
            for _ in each("outer", [1, 2]) {
                each("inner", [1, 2, 3]).for_each(drop);
            }
            each("last", [(); 0]).for_each(drop);
        };
        let outer = |done| std::iter::repeat_n(("outer", done, 2), 5);
        let all: Vec<_> =
            [("", 0, 0)].into_iter().chain(outer(0)).chain(outer(1)).chain([("outer", 2, 2), ("last", 0, 0)]).collect();
        assert_eq!(told(None, work), (all.clone(), true));
        assert_eq!(told(Some(("outer", 1)), work), (all[..7].to_vec(), false));
    }

    #[test]
    fn nothing_is_left_of_work_that_was_stopped() {
        let stopped = told(Some(("outer", 1)), || each("outer", [1, 2]).for_each(drop));
        assert!(!stopped.1);
        // Without [`watch`] nothing is reported, and nothing stops.
        each("outer", [1, 2]).for_each(drop);
        assert_eq!(STAGE.get(), None);
        assert_eq!(told(None, || each("next", [(); 1]).for_each(drop)), (vec![("next", 0, 1), ("next", 1, 1)], true));
    }

    #[test]
    fn a_hook_may_work_itself() {
        let hook = |_: &Progress| {
            each("of the hook", [1, 2]).for_each(drop);
            ControlFlow::Continue(())
        };
        assert_eq!(watch(hook, || each("outer", [1, 2, 3]).count()), Ok(3));
    }
}
