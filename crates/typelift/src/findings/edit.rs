//! Edits of the text of a file.

use crate::base::span::Span;

/// A replacement in the text of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes that go; none where something is only added.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl TextEdit {
    /// Another text in place of these bytes.
    pub(crate) fn new(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Returns the text with these edits made. Edits that overlap an earlier one are left out.
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
