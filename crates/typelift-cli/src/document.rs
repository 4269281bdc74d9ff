//! JSON documents of the program.

use serde::Serialize;

/// The version of the JSON format. It increases when a name is removed or changes its meaning; names can be added at
/// any time.
const FORMAT: u32 = 1;

/// A JSON document with its format version.
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

/// Returns a document and a line end.
pub(crate) fn text(document: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Versioned::new(document)).map(|text| text + "\n")
}
