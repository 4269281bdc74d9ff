//! Names as slices of a shared text, without copies.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::base::span::Span;

/// Slice of a shared text. Names from a file take no memory of their own, and a clone allocates nothing.
#[derive(Clone, Default)]
pub(crate) struct Text {
    whole: Arc<String>,
    span: Span,
}

impl Text {
    pub(crate) fn of(part: &str, whole: &Arc<String>) -> Self {
        Self { whole: whole.clone(), span: Span::of(part, whole) }
    }

    pub(crate) fn place_in(&self, whole: &Arc<String>) -> Option<Span> {
        Arc::ptr_eq(&self.whole, whole).then_some(self.span)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.span.text(&self.whole)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { span: Span::new(0, text.len()), whole: Arc::new(text) }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
