//! Edits of the text of a file that were tried, and what they do in words.

use serde::Serialize;

use super::words::describe_edits;
use crate::base::span::Span;

/// A replacement in the text of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes that go; none where something is only added.
    pub span: Span,
    /// What takes their place.
    pub text: String,
}

impl TextEdit {
    /// Another text in place of these bytes.
    pub(crate) fn new(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// The text with these edits made. Edits that overlap an earlier one are left out.
    #[must_use]
    pub fn apply(edits: &[Self], source: &str) -> String {
        let mut sorted: Vec<_> = edits.iter().collect();
        sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut text = String::with_capacity(source.len() + 64);
        let mut at = 0;
        for edit in sorted {
            let Some(before) = source.get(at..edit.span.start as usize) else { continue };
            text += before;
            text += &edit.text;
            at = edit.span.end as usize;
        }
        text + source.get(at..).unwrap_or_default()
    }
}

/// Edits of the text that were tried: with them the finding is gone, nothing new is wrong, and no port deviates from what the
/// file declares that did not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// What changes in the text.
    pub edits: Vec<TextEdit>,
    /// Whether the file proves it and nothing else that was tried does as well.
    pub certain: bool,
    /// The proof, where it is certain.
    pub proof: Option<Proof>,
    /// The edits in words.
    pub(crate) words: String,
}

/// Proof that an edit is what was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Proof {
    /// Kind of the proof, in words.
    pub kind: String,
    /// Other edits that were tried and fail: `axis="2"`.
    pub rivals: Vec<String>,
}

impl Proof {
    /// A proof without rivals.
    pub(crate) fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), rivals: Vec::new() }
    }
}

impl Mend {
    /// Edits of this text, said of the layer at `home`.
    pub(crate) fn new(source: &str, home: Option<Span>, edits: Vec<TextEdit>, proof: Option<Proof>) -> Self {
        let words = describe_edits(source, home, &edits);
        Self { edits, certain: proof.is_some(), proof, words }
    }
}
