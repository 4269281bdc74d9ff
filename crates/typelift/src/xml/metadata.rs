//! The `<rt_info>` of a layer or a port.

use super::tokens::{Tokens, decode};
use crate::span::Span;

/// An entry of an `<rt_info>`.
pub(crate) struct Entry<'a> {
    /// The name of an `<attribute>` in the version that OpenVINO knows, 0; empty for any other element.
    pub(crate) name: String,
    /// The `value` of the attribute.
    pub(crate) value: Option<String>,
    /// The whole element.
    pub(crate) text: &'a str,
}

/// The entries of an `<rt_info>`, up to the first one that is not whole.
pub(crate) fn entries(rt_info: &str) -> Vec<Entry<'_>> {
    let mut tokens = Tokens::new(rt_info, Span::new(0, rt_info.len()));
    let mut found = Vec::new();
    let Ok(Some(root)) = tokens.child(None) else { return found };
    while let Ok(Some(child)) = tokens.child(Some(&root)) {
        let written = |wanted: &str| {
            let mut attributes = Tokens::attributes(&child).flatten();
            attributes.find(|(name, _)| *name == wanted).map(|(_, value)| decode(value).into_owned())
        };
        let is_known = child.name() == "attribute" && written("version").as_deref() == Some("0");
        let name = written("name").filter(|_| is_known).unwrap_or_default();
        let value = written("value");
        let Ok(span) = tokens.skip(&child) else { break };
        found.push(Entry { name, value, text: span.text(rt_info) });
    }
    found
}
