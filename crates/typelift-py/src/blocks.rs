//! Blocks of a model for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use typelift::explain::blocks::{self, Block};

use crate::failure;
use crate::layer::Layer;
use crate::state::State;

/// The blocks of one state of a model. A block is named by the positions that lead to it in the tree.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Blocks {
    state: Arc<State>,
    found: blocks::Blocks,
}

impl Blocks {
    pub(crate) fn new(state: Arc<State>) -> Self {
        let found = blocks::Blocks::new(&state.model);
        Self { state, found }
    }

    fn at(&self, path: &[usize]) -> Option<&Block> {
        let (first, inner) = path.split_first()?;
        inner.iter().try_fold(self.found.list.get(*first)?, |block, &at| block.blocks.get(at))
    }
}

#[pymethods]
impl Blocks {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        failure::json(&self.found).map_err(|failure| failure.raise(py))
    }

    fn layers(&self, path: Vec<usize>) -> Vec<Layer> {
        let layers = |block: &Block| block.layers.iter().map(|&id| Layer::new(&self.state, &block.place, id)).collect();
        self.at(&path).map(layers).unwrap_or_default()
    }

    fn border(&self, paths: Vec<Vec<usize>>) -> [Vec<(Layer, usize)>; 2] {
        let chosen: Vec<&Block> = paths.iter().filter_map(|path| self.at(path)).collect();
        let (enter, leave) = blocks::border(&self.state.model, chosen.iter().copied());
        let place = chosen.first().map(|block| block.place.clone()).unwrap_or_default();
        [enter, leave]
            .map(|tensors| tensors.into_iter().map(|it| (Layer::new(&self.state, &place, it.layer), it.port)).collect())
    }
}
