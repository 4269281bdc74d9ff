//! Number of edges and layers that searches visit. Tests of this crate count them; otherwise nothing is counted.

use petgraph::stable_graph::EdgeReference;

use super::Wire;

pub(super) fn note(_: &EdgeReference<'_, Wire>) {
    #[cfg(test)]
    tests::VISITED.set(tests::VISITED.get() + 1);
}

/// Counts a layer in a search through all of them.
pub(super) fn note_layer() {
    #[cfg(test)]
    tests::VISITED.set(tests::VISITED.get() + 1);
}

#[cfg(test)]
mod tests;
