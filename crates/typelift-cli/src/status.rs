//! How runs end.

/// How a run ended that did not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Done,
    /// The model has errors, and they were printed.
    Faulty,
    /// One of several models could not be read or written, and that was printed.
    Failed,
}

impl Status {
    pub(crate) fn of(faulty: bool) -> Self {
        if faulty { Self::Faulty } else { Self::Done }
    }
}
