//! Detection of execution graphs, which look like models and are reported with one finding.

use memchr::memmem;

use crate::findings::{Code, Diagnostic};

/// Number of bytes at the start of a file in which the first layers are searched.
const HEAD: usize = 1 << 14;

pub(super) fn refusal(source: &str) -> Option<Diagnostic> {
    is_execution(source).then(|| {
        let message = "this is an execution graph, which a device writes, not a model";
        Diagnostic::new(Code::ExecutionGraph, message).help("open the .xml of the model instead")
    })
}

/// True for an execution graph: its layers have an order of execution, and no operation set.
pub fn is_execution(source: &str) -> bool {
    let head = &source.as_bytes()[..source.len().min(HEAD)];
    let Some(layer) = memmem::find(head, b"<layer ") else { return false };
    let tag = &head[layer..];
    let tag = &tag[..memchr::memchr(b'>', tag).unwrap_or(tag.len())];
    memmem::find(tag, b" version=").is_none() && memmem::find(head, b" execOrder=\"").is_some()
}
