//! Printing of a text by two threads, chunk by chunk in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::STACK;

/// Maximum number of finished chunks that wait for an earlier one. It bounds memory if one chunk is slow.
const WAITING: usize = 4;

/// Prints each chunk with `print` and passes the texts to `sink`, in order. With `two_threads`, each thread takes the
/// next chunk when it has finished one.
pub(super) fn print_in_order<P: Sync, E>(
    parts: &[P],
    two_threads: bool,
    print: impl Fn(&P, &mut String) + Sync,
    mut sink: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        parts.get(at).map(|part| (at, part))
    };
    let (sender, texts) = mpsc::sync_channel(WAITING);
    thread::scope(|scope| {
        if two_threads {
            // If the second thread cannot be started, this thread prints all chunks.
            let _started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                let sender = sender;
                while let Some((_, part)) = take() {
                    let mut text = String::new();
                    print(part, &mut text);
                    // The receiver is closed after the sink has failed.
                    if sender.send(text).is_err() {
                        break;
                    }
                }
            });
        }
        let texts = texts;
        let (mut own, mut done) = (String::new(), 0);
        loop {
            let taken = take();
            if let Some((_, part)) = taken {
                own.clear();
                print(part, &mut own);
            }
            // The other thread took all chunks in between.
            let until = taken.map_or(parts.len(), |(at, _)| at);
            for _ in done..until {
                sink(&texts.recv().unwrap_or_default())?;
            }
            if taken.is_none() {
                return Ok(());
            }
            sink(&own)?;
            done = until + 1;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_until_the_sink_fails() {
        let parts: Vec<_> = (0..1000).map(|part| part.to_string()).collect();
        for two_threads in [false, true] {
            for most in [0, 1, 500, parts.len()] {
                let mut seen = Vec::new();
                let sink = |text: &str| {
                    let is_room = seen.len() < most;
                    is_room.then(|| seen.push(text.to_owned())).ok_or(())
                };
                let handed = print_in_order(&parts, two_threads, |part, out| out.push_str(part), sink);
                assert_eq!(handed.is_ok(), most == parts.len());
                assert_eq!(seen, parts[..most]);
            }
        }
    }
}
