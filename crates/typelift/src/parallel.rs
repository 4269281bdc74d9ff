//! Work on constants that several threads share.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// More threads would wait for memory and for the disk.
const MOST: usize = 4;

/// Does `work` for each number below `count`, on several threads unless one is asked for. Each thread takes the next number
/// as soon as it is done with one, and has a state of its own; all states are returned. A failure ends it.
pub(crate) fn share<S: Default + Send, E: Send>(
    count: u64,
    on_one_thread: bool,
    work: impl Fn(&mut S, u64) -> Result<(), E> + Sync,
) -> Result<Vec<S>, E> {
    let next = AtomicU64::new(0);
    let run = || {
        let mut state = S::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(state);
            }
            work(&mut state, at).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
        }
    };
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    let threads = if on_one_thread || count < 2 { 1 } else { cores() as u64 };
    thread::scope(|scope| {
        // Where one cannot be started, the others do its part.
        let helpers = (1..threads.min(count)).map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok());
        let helpers: Vec<_> = helpers.collect();
        let own = run();
        let others = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        [own].into_iter().chain(others).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_worked_on_once_until_one_fails() {
        for on_one_thread in [false, true] {
            for count in [0, 1, 2, 1000] {
                let seen = share(count, on_one_thread, |seen: &mut Vec<u64>, at| {
                    seen.push(at);
                    Ok::<_, ()>(())
                });
                let mut seen = seen.unwrap().concat();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
            let failed = share(1000, on_one_thread, |_: &mut (), at| if at == 500 { Err(at) } else { Ok(()) });
            assert_eq!(failed, Err(500));
        }
    }
}
