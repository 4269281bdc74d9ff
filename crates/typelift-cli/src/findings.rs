//! Findings as documents of the library, with the commands of this program in them.

use serde_json::value::{RawValue, to_raw_value};
use typelift::diagnostic::{Diagnostics, Document, sarif};

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

/// The findings of a file as results of a SARIF log, as text: as values they would take many times the memory of the file.
pub(crate) fn sarif_results(diagnostics: &Diagnostics, fixes: &Fixes) -> serde_json::Result<Vec<Box<RawValue>>> {
    let results = sarif::results(diagnostics, |at, diagnostic| fixes.advice(at, diagnostic));
    results.map(|result| to_raw_value(&result)).collect()
}
