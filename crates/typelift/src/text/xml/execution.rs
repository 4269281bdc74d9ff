//! Execution graphs, which look like models: recognized so that they are refused with one finding.

use memchr::memmem;

use crate::findings::{Code, Diagnostic};

/// Limit on the bytes in which the first layers are searched.
const HEAD: usize = 1 << 14;

/// Returns the finding that a text is an execution graph where a model was expected; `None` if it is not one.
pub(super) fn refusal(source: &str) -> Option<Diagnostic> {
    is_execution(source).then(|| {
        let message = "this is an execution graph, which a device ran, not a model";
        Diagnostic::new(Code::ExecutionGraph, message).help("give it together with its model")
    })
}

/// True for an execution graph: its layers have an order of execution, and no operation set.
pub(crate) fn is_execution(source: &str) -> bool {
    let head = &source.as_bytes()[..source.len().min(HEAD)];
    let Some(layer) = memmem::find(head, b"<layer ") else { return false };
    let tag = &head[layer..];
    let tag = &tag[..memchr::memchr(b'>', tag).unwrap_or(tag.len())];
    memmem::find(tag, b" version=").is_none() && memmem::find(head, b" execOrder=\"").is_some()
}
