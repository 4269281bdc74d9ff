//! Edits of a file's text.

mod describe;

use crate::base::span::Span;

pub(super) use self::describe::describe_edits;

/// Replacement of some bytes of a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes to replace; empty for an insertion.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl TextEdit {
    pub(crate) fn new(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }

    /// Applies edits to a text. An edit that overlaps an earlier one is skipped.
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
