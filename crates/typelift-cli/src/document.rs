//! JSON documents as the program writes them.

use serde::Serialize;

/// The version of the form of JSON documents. It rises when a name goes or changes its meaning; names can come at any time.
const FORMAT: u32 = 1;

/// A JSON document that says which form it has.
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

/// A document and the end of its last line.
pub(crate) fn text(document: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Versioned::new(document)).map(|text| text + "\n")
}
