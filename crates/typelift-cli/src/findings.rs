//! Findings as documents of the library, with the commands of this program in them.

use typelift::findings::{Diagnostics, Document, Voice};

use crate::failure::Failure;
use crate::terminal;

/// The document of a model that is refused, whatever was asked about it: what is wrong with it.
pub(crate) fn refused(diagnostics: &Diagnostics) -> Result<String, Failure> {
    terminal::json(&Document::with(diagnostics, Voice::Shell(None)))
}
