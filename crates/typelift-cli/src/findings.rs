//! Findings as documents of the library, with the commands of this program in them.

use typelift::findings::{Diagnostics, Document};

use crate::failure::Failure;
use crate::remedy::Fixes;
use crate::terminal;

/// The findings of a file.
pub(crate) fn document<'a>(diagnostics: &'a Diagnostics, fixes: &Fixes) -> Document<'a> {
    Document::with(diagnostics, |at, diagnostic| fixes.advice(at, diagnostic))
}

/// The document of a model that is refused, whatever was asked about it: what is wrong with it.
pub(crate) fn refused(diagnostics: &Diagnostics) -> Result<String, Failure> {
    terminal::json(&document(diagnostics, &Fixes::default()))
}
