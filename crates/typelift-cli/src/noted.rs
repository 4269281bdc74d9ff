//! Files that this process has read besides models: nothing is written over them.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use typelift::host::FileId;

/// Why such a file is not written.
pub(crate) const TEXT: &str = "a text is read from it";
pub(crate) const ANOTHER: &str = "give another file";

static NOTED: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

pub(crate) fn note_read(path: &Path) {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner).push(FileId::of(path));
}

/// The files that were read until now.
pub(crate) fn all() -> Vec<FileId> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
