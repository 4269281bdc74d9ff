//! The one gate through which words enter findings, so that a test can put others in their place.

#[cfg(test)]
std::thread_local! {
    /// Whether findings of this thread get other words than they are given.
    static GARBLED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The words as a finding says them.
pub(super) fn said(words: String) -> String {
    #[cfg(test)]
    if GARBLED.get() {
        return words.chars().rev().collect::<String>().to_uppercase();
    }
    words
}

/// What `work` gives where no finding says what it is meant to say.
#[cfg(test)]
pub(super) fn garbled<T>(work: impl FnOnce() -> T) -> T {
    GARBLED.set(true);
    let result = work();
    GARBLED.set(false);
    result
}
