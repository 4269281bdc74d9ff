//! JSON documents of the program.

use serde::Serialize;
use typelift::Model;
use typelift::findings::Diagnostic;

/// The version of the JSON format. It increases when a name is removed or changes its meaning; names can be added at
/// any time.
const FORMAT: u32 = 1;

#[derive(Serialize)]
pub(crate) struct Versioned<'a, T> {
    format: u32,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T> Versioned<'a, T> {
    pub(crate) fn new(document: &'a T) -> Self {
        Self { format: FORMAT, document }
    }
}

pub(crate) fn text(document: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Versioned::new(document)).map(|text| text + "\n")
}

/// Model in memory that a command of another language's package asks about.
pub(crate) struct Asked<'a> {
    /// The name of its file in texts.
    pub(crate) file: &'a str,
    pub(crate) model: &'a Model,
    /// The findings of the reader and of inference.
    pub(crate) found: &'a [Diagnostic],
}
