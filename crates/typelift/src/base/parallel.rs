//! Parallel loops over constants.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::base::progress::Stage;

/// Maximum number of threads; more of them would only wait for memory and the disk.
const MOST: usize = 4;

/// Calls `work` for each number below `count`, on several threads or on one, and reports the progress. Each thread
/// takes the next number when it has finished one. Each has its own state; all states are returned. A failure or a
/// stop ends the loop.
pub(crate) fn share<S: Default + Send, E: Send>(
    stage: &'static str,
    count: u64,
    on_one_thread: bool,
    work: impl Fn(&mut S, u64) -> Result<(), E> + Sync,
) -> Result<Vec<S>, E> {
    let next = AtomicU64::new(0);
    let run = || {
        let _others_end = LoopGuard { next: &next, count };
        let stage = Stage::new(stage, count);
        let mut state = S::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            stage.at(at.min(count));
            if at >= count {
                return Ok(state);
            }
            work(&mut state, at)?;
        }
    };
    let is_shared = !on_one_thread && count > 1;
    let threads = if is_shared { thread::available_parallelism().map_or(1, |it| it.get().min(MOST) as u64) } else { 1 };
    thread::scope(|scope| {
        // If a thread cannot be started, the others do its work.
        let helpers = (1..threads.min(count)).map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok());
        let helpers: Vec<_> = helpers.collect();
        let own = run();
        let others = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        [own].into_iter().chain(others).collect()
    })
}

/// Guard that ends the loop of all threads when it is dropped, for example by a panic.
struct LoopGuard<'a> {
    next: &'a AtomicU64,
    count: u64,
}

impl Drop for LoopGuard<'_> {
    fn drop(&mut self) {
        self.next.store(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::base::progress::{Stopped, watch};

    #[test]
    fn a_stop_ends_all_threads() {
        let worked = AtomicU64::new(0);
        let stopped = watch(
            |_: &_| ControlFlow::Break(()),
            || {
                share("values", 1 << 24, false, |_: &mut (), _| {
                    worked.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    Ok::<_, ()>(())
                })
            },
        );
        assert_eq!(stopped, Err(Stopped));
        assert!(worked.into_inner() < 1 << 24);
    }

    #[test]
    fn each_number_is_worked_on_once_until_one_fails() {
        for on_one_thread in [false, true] {
            for count in [0, 1, 2, 1000] {
                let seen = share("values", count, on_one_thread, |seen: &mut Vec<u64>, at| {
                    seen.push(at);
                    Ok::<_, ()>(())
                });
                let mut seen = seen.unwrap().concat();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
            let failed =
                share("values", 1000, on_one_thread, |_: &mut (), at| if at == 500 { Err(at) } else { Ok(()) });
            assert_eq!(failed, Err(500));
        }
    }
}
