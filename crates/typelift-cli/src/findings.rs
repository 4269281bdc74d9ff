//! Findings as documents of the library, with commands of this program.

use typelift::findings::{Diagnostics, Document, Voice};

use crate::failure::Failure;
use crate::terminal;

pub(crate) fn refused(diagnostics: &Diagnostics) -> Result<String, Failure> {
    terminal::json(&Document::with(diagnostics, Voice::Shell(None)))
}
