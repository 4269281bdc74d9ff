//! The passage of all messages.

#[cfg(test)]
std::thread_local! {
    /// True if messages of this thread are garbled.
    static GARBLED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Returns a message unchanged. Every message passes through here, so that a test can garble all of them.
pub(super) fn said(words: String) -> String {
    #[cfg(test)]
    if GARBLED.get() {
        return words.chars().rev().collect::<String>().to_uppercase();
    }
    words
}

/// Runs `work` with garbled messages, to prove that no code depends on their text.
#[cfg(test)]
pub(super) fn garbled<T>(work: impl FnOnce() -> T) -> T {
    GARBLED.set(true);
    let result = work();
    GARBLED.set(false);
    result
}
