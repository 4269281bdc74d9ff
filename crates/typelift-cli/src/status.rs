//! Exit statuses.

/// Result of a run, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Done,
    /// The model has errors, and they were printed.
    Faulty,
    /// A model could not be read or written, and that was printed.
    Failed,
}

impl Status {
    pub(crate) fn of(faulty: bool) -> Self {
        if faulty { Self::Faulty } else { Self::Done }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Faulty => 1,
            Self::Failed => 2,
        }
    }
}
