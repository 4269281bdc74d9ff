//! Layers for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use typelift::graph::Place;
use typelift::ops::{LayerKind, kind};
use typelift::{Graph, LayerId};

use crate::arrays::{Buffer, Held};
use crate::failure::Failure;
use crate::state::State;
use crate::types::element_type;

/// A layer of one state of a model. Later edits create new states, which this layer does not see.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Layer {
    state: Arc<State>,
    place: Place,
    id: LayerId,
}

/// A tensor: its element type, its shape as text, its names.
type Tensor = (&'static str, String, Vec<String>);

impl Layer {
    pub(crate) fn new(state: &Arc<State>, place: &Place, id: LayerId) -> Self {
        Self { state: state.clone(), place: place.clone(), id }
    }

    /// A state never changes, so the graph exists.
    fn graph(&self) -> PyResult<&Graph> {
        self.state.model.graph_at(&self.place).ok_or_else(gone)
    }

    fn layer(&self) -> PyResult<&typelift::Layer> {
        self.graph()?.layer(self.id).ok_or_else(gone)
    }

    fn beside(&self, id: LayerId) -> Self {
        Self::new(&self.state, &self.place, id)
    }
}

fn gone() -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err("the layer is not in its model")
}

#[pymethods]
impl Layer {
    #[getter]
    fn id(&self) -> u64 {
        self.id.0
    }

    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.layer()?.name())
    }

    #[getter]
    fn path(&self) -> PyResult<String> {
        let mut graph = self.state.model.graph();
        let mut path = String::new();
        for &(id, at) in self.place.steps() {
            let layer = graph.layer(id).ok_or_else(gone)?;
            let body = layer.bodies().get(at).ok_or_else(gone)?;
            path += &format!("{}/{}/", layer.name(), body.name());
            graph = &body.graph;
        }
        Ok(path + self.layer()?.name())
    }

    #[getter]
    fn r#type(&self) -> PyResult<&str> {
        Ok(self.layer()?.ty())
    }

    #[getter]
    fn version(&self) -> PyResult<&str> {
        Ok(self.layer()?.version())
    }

    #[getter]
    fn line(&self) -> PyResult<Option<usize>> {
        Ok(self.layer()?.span().map(|span| self.state.lines().line_column(span.start).0))
    }

    #[getter]
    fn attributes(&self) -> PyResult<Vec<(&str, &str)>> {
        Ok(self.layer()?.attributes().iter().map(|attribute| (attribute.name(), attribute.value())).collect())
    }

    #[getter]
    fn producers(&self) -> PyResult<Vec<Option<(Self, usize)>>> {
        let producers = self.graph()?.producers(self.id).into_iter();
        Ok(producers.map(|output| output.map(|output| (self.beside(output.layer), output.port))).collect())
    }

    #[getter]
    fn outputs(&self) -> PyResult<Vec<Tensor>> {
        let ports = self.layer()?.outputs().iter();
        Ok(ports.map(|port| (port.element_type().name(), port.shape().to_string(), port.names())).collect())
    }

    /// The dimensions of an output with the names of open lengths; `None` in a body, or if the rank is unknown.
    fn dims(&self, output: usize) -> Option<Vec<String>> {
        let shapes = self.place.is_model().then(|| self.state.shapes())?;
        shapes.named_dims(self.id.output(output))
    }

    fn consumers(&self, output: usize) -> PyResult<Vec<(Self, usize)>> {
        let inputs = self.graph()?.consumers(self.id.output(output));
        Ok(inputs.map(|input| (self.beside(input.layer), input.port)).collect())
    }

    #[getter]
    fn bodies(&self) -> PyResult<Vec<(&str, Vec<Self>)>> {
        let bodies = self.layer()?.bodies().iter().enumerate();
        Ok(bodies
            .map(|(at, body)| {
                let place = self.place.body(self.id, at);
                (body.name(), body.graph.layers().map(|layer| Self::new(&self.state, &place, layer.id())).collect())
            })
            .collect())
    }

    /// `None` for other layers.
    fn data(&self, py: Python<'_>) -> PyResult<Option<Buffer>> {
        let (layer, weights) = (self.layer()?, self.state.model.weights());
        if kind(layer) != LayerKind::Constant {
            return Ok(None);
        }
        let missing = || Failure::Value(format!("the weights of `{}` are not there", layer.name())).raise(py);
        let held = py.detach(|| Held::of(layer, weights)).ok_or_else(missing)?;
        self.state.keeper.buffer(py, weights, held).map(Some)
    }

    /// `None` for other layers.
    fn bytes_as<'py>(&self, py: Python<'py>, to: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let layer = self.layer()?;
        let to = element_type(to).map_err(|failure| failure.raise(py))?;
        let bytes = py.detach(|| layer.bytes_as(to, self.state.model.weights()));
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn rt_info(&self) -> PyResult<Vec<(String, String)>> {
        let layer = self.layer()?;
        let names = layer.rt_info_names().into_iter();
        Ok(names.filter_map(|name| layer.rt_info(&name).map(|value| (name, value))).collect())
    }

    /// `None` for other layers.
    fn numbers(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        let layer = self.layer()?;
        Ok(py.detach(|| layer.numbers(self.state.model.weights())))
    }

    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state) && self.place == other.place && self.id == other.id
    }

    fn __hash__(&self) -> u64 {
        self.place.steps().iter().fold(self.id.0, |hash, (id, at)| hash.rotate_left(7) ^ id.0 ^ *at as u64)
    }
}
