//! A batch of edits as Python sees it.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use typelift::graph::{EditError, Names, NewLayer};
use typelift::ops;
use typelift::promote::ElementType;
use typelift::{Batch, Edit, Input, LayerId, Output, convert_values};

use crate::failure::Failure;
use crate::model::Model;
use crate::state::State;
use crate::types::element_type;

/// A tensor: the id of its layer, and which output of it.
type Tensor = (u64, usize);

/// What a layer that is added is: its operation, its operation set, its name, its attributes.
type Kind = (String, Option<String>, Option<String>, Vec<(String, String)>);

/// The graph of a model while it is edited. The model gets the edits when the batch ends.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Graph {
    model: Py<Model>,
    work: Mutex<Option<Work>>,
}

struct Work {
    /// The model as it was.
    before: Arc<State>,
    batch: Batch,
    names: Names,
}

fn output((id, port): Tensor) -> Output {
    LayerId(id).output(port)
}

fn outputs(tensors: Vec<Tensor>) -> Vec<Output> {
    tensors.into_iter().map(output).collect()
}

fn tensor(output: Output) -> Tensor {
    (output.layer.0, output.port)
}

/// The layers to try, the best first: of an operation without a revision, the oldest that takes what it gets.
fn new_layers((ty, version, name, attributes): Kind) -> Result<Vec<NewLayer>, Failure> {
    let (ty, versions) = match (version, ty.rsplit_once('-')) {
        (Some(version), _) => (ty.as_str(), vec![version]),
        (None, Some((ty, opset))) if opset.bytes().all(|byte| byte.is_ascii_digit()) => {
            (ty, vec![format!("opset{opset}")])
        }
        (None, _) => {
            let revisions = ops::all().filter(|operation| operation.name() == ty);
            (
                ty.as_str(),
                revisions.filter_map(|operation| Some(format!("opset{}", operation.opsets().next()?))).collect(),
            )
        }
    };
    if versions.is_empty() {
        return Err(Failure::Value(format!("no operation is called `{ty}`; one of an extension needs its version=")));
    }
    let layers = versions.into_iter().map(|version| {
        let new = NewLayer::new(ty, &version);
        let new = attributes.iter().fold(new, |new, (name, value)| new.with_attribute(name, value));
        name.iter().fold(new, |new, name| new.named(name))
    });
    Ok(layers.collect())
}

/// Does an edit with the first of several layers that is not refused.
fn first_of<T>(layers: Vec<NewLayer>, mut edit: impl FnMut(NewLayer) -> Result<T, EditError>) -> Result<T, EditError> {
    let mut refusal = None;
    for layer in layers {
        match edit(layer) {
            Err(error @ EditError::Refused { .. }) => refusal = refusal.or(Some(error)),
            done => return done,
        }
    }
    Err(refusal.unwrap_or_else(|| EditError::Other("there is nothing to add".to_owned())))
}

impl Graph {
    /// Begins a batch of edits.
    pub(crate) fn begin(model: &Bound<'_, Model>) -> Self {
        let (model, before) = (model.clone().unbind(), model.get().state());
        let names = Names::of(&before.model);
        let work = Work { batch: Batch::new(before.model.clone()), names, before };
        Self { model, work: Mutex::new(Some(work)) }
    }

    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut Work) -> Result<T, Failure>) -> PyResult<T> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || {
            Failure::Value("the batch of edits has ended; begin another one: `with model.edit() as graph`".to_owned())
        };
        work.as_mut().ok_or_else(ended).and_then(act).map_err(|failure| failure.raise(py))
    }

    fn edit<T>(&self, py: Python<'_>, edit: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> PyResult<T> {
        self.with(py, |work| edit(&mut work.batch.edit()).map_err(|error| Failure::Value(error.to_string())))
    }

    fn layer<T>(&self, py: Python<'_>, id: u64, look: impl FnOnce(&typelift::Layer) -> T) -> PyResult<T> {
        self.with(py, |work| {
            let gone = || Failure::Unknown(format!("no layer has the id {id}"));
            work.batch.model().graph().layer(LayerId(id)).map(look).ok_or_else(gone)
        })
    }
}

#[pymethods]
impl Graph {
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |work| Ok(work.batch.model().graph().layers().map(|layer| layer.id().0).collect()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |work| Ok(work.batch.model().graph().len()))
    }

    fn has(&self, py: Python<'_>, id: u64) -> PyResult<bool> {
        self.with(py, |work| Ok(work.batch.model().graph().layer(LayerId(id)).is_some()))
    }

    /// The layer with this name, or that makes the tensor with this name.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        self.with(py, |work| {
            let model = work.batch.model();
            work.names.update(model);
            match work.names.find(model, name) {
                Ok((place, id)) if place.steps().is_empty() => Ok(id.0),
                Ok(_) => Err(Failure::Unknown(format!("`{name}` is in a body, which this batch does not edit"))),
                Err(error) => Err(Failure::find(model, name, &error)),
            }
        })
    }

    fn find_tensor(&self, py: Python<'_>, name: &str) -> PyResult<Tensor> {
        self.with(py, |work| {
            let model = work.batch.model();
            work.names.update(model);
            work.names.tensor(model, name).map(tensor).map_err(|error| Failure::find(model, name, &error))
        })
    }

    fn name(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        self.layer(py, id, |layer| layer.name().to_owned())
    }

    fn operation(&self, py: Python<'_>, id: u64) -> PyResult<(String, String)> {
        self.layer(py, id, |layer| (layer.ty().to_owned(), layer.version().to_owned()))
    }

    fn attributes(&self, py: Python<'_>, id: u64) -> PyResult<Vec<(String, String)>> {
        let pair = |attribute: &typelift::graph::Attribute| (attribute.name().to_owned(), attribute.value().to_owned());
        self.layer(py, id, |layer| layer.attributes().iter().map(pair).collect())
    }

    fn producers(&self, py: Python<'_>, id: u64) -> PyResult<Vec<Option<Tensor>>> {
        self.with(py, |work| {
            let producers = work.batch.model().graph().producers(LayerId(id)).into_iter();
            Ok(producers.map(|output| output.map(tensor)).collect())
        })
    }

    fn consumers(&self, py: Python<'_>, of: Tensor) -> PyResult<Vec<(u64, usize)>> {
        self.with(py, |work| {
            Ok(work.batch.model().graph().consumers(output(of)).map(|input| (input.layer.0, input.port)).collect())
        })
    }

    /// Element type, shape and names of each output.
    fn outputs(&self, py: Python<'_>, id: u64) -> PyResult<Vec<(&'static str, String, Vec<String>)>> {
        self.layer(py, id, |layer| {
            let ports = layer.outputs().iter();
            ports.map(|port| (port.element_type().name(), port.shape().to_string(), port.names())).collect()
        })
    }

    fn rt_info(&self, py: Python<'_>, id: u64, name: &str) -> PyResult<Option<String>> {
        self.layer(py, id, |layer| layer.rt_info(name))
    }

    fn set_rt_info(&self, py: Python<'_>, id: u64, name: &str, value: &str) -> PyResult<()> {
        self.edit(py, |edit| edit.set_rt_info(LayerId(id), name, value))
    }

    /// The values of a constant as bytes of an element type.
    fn values<'py>(&self, py: Python<'py>, id: u64, to: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let to = element_type(to).map_err(|failure| failure.raise(py))?;
        let bytes = self.with(py, |work| {
            let model = work.batch.model();
            Ok(model.graph().layer(LayerId(id)).and_then(|layer| layer.bytes_as(to, model.weights())))
        })?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn add(&self, py: Python<'_>, kind: Kind, inputs: Vec<Tensor>) -> PyResult<u64> {
        let (new, inputs) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(inputs));
        self.edit(py, |edit| first_of(new, |new| edit.add(new, &inputs)).map(|id| id.0))
    }

    fn morph(&self, py: Python<'_>, id: u64, kind: Kind, inputs: Vec<Tensor>) -> PyResult<()> {
        let (new, inputs) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(inputs));
        self.edit(py, |edit| first_of(new, |new| edit.morph(LayerId(id), new, &inputs)))
    }

    fn insert_after(&self, py: Python<'_>, of: Tensor, kind: Kind, others: Vec<Tensor>) -> PyResult<u64> {
        let (new, others) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(others));
        self.edit(py, |edit| first_of(new, |new| edit.insert_after(output(of), new, &others)).map(|id| id.0))
    }

    fn insert_before(&self, py: Python<'_>, to: (u64, usize), kind: Kind, others: Vec<Tensor>) -> PyResult<u64> {
        let (new, others) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(others));
        let input = Input { layer: LayerId(to.0), port: to.1 };
        self.edit(py, |edit| first_of(new, |new| edit.insert_before(input, new, &others)).map(|id| id.0))
    }

    fn connect(&self, py: Python<'_>, from: Tensor, to: (u64, usize)) -> PyResult<()> {
        self.edit(py, |edit| edit.connect(output(from), Input { layer: LayerId(to.0), port: to.1 }))
    }

    fn replace_uses(&self, py: Python<'_>, old: Tensor, new: Tensor) -> PyResult<()> {
        self.edit(py, |edit| edit.replace_uses(output(old), output(new)))
    }

    fn remove(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<()> {
        let layers: Vec<_> = ids.into_iter().map(LayerId).collect();
        self.edit(py, |edit| edit.remove_all(&layers))
    }

    fn remove_unused(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<Vec<u64>> {
        let removed = self.edit(py, |edit| edit.remove_unused(ids.into_iter().map(LayerId)))?;
        Ok(removed.into_iter().map(|id| id.0).collect())
    }

    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.edit(py, |edit| edit.rename(old, new))
    }

    fn set_name(&self, py: Python<'_>, id: u64, name: &str) -> PyResult<()> {
        self.edit(py, |edit| edit.set_name(LayerId(id), name))
    }

    fn set_names(&self, py: Python<'_>, of: Tensor, names: Vec<String>) -> PyResult<()> {
        self.edit(py, |edit| edit.set_names(output(of), names))
    }

    fn set_attribute(&self, py: Python<'_>, id: u64, name: &str, value: &str) -> PyResult<()> {
        self.edit(py, |edit| edit.set_attribute(LayerId(id), name, value))
    }

    /// Adds a constant, or gives one other values: `bytes` are of one element type, and stored in another.
    #[expect(clippy::too_many_arguments, reason = "it is what a constant consists of")]
    fn constant(
        &self,
        py: Python<'_>,
        id: Option<u64>,
        from: &str,
        to: &str,
        dims: Vec<i64>,
        bytes: &[u8],
        name: Option<&str>,
    ) -> PyResult<Tensor> {
        let types = element_type(from).and_then(|from| Ok((from, element_type(to)?)));
        let (from, to): (ElementType, ElementType) = types.map_err(|failure| failure.raise(py))?;
        let count = dims.iter().map(|&dim| u64::try_from(dim).unwrap_or(0)).product();
        let converted = if from == to { None } else { convert_values(bytes, count, from, to) };
        let bytes = converted.as_deref().unwrap_or(bytes);
        self.edit(py, |edit| match id {
            Some(id) => edit.set_constant(LayerId(id), to, &dims, bytes).map(|()| (id, 0)),
            None => {
                let made = edit.constant(to, &dims, bytes)?;
                name.map_or(Ok(()), |name| edit.set_name(made.layer, name))?;
                Ok(tensor(made))
            }
        })
    }

    fn tap(&self, py: Python<'_>, of: Tensor, name: Option<&str>) -> PyResult<u64> {
        self.edit(py, |edit| edit.tap(output(of), name).map(|id| id.0))
    }

    fn cut(&self, py: Python<'_>, of: Tensor) -> PyResult<u64> {
        self.edit(py, |edit| edit.cut(output(of)).map(|id| id.0))
    }

    fn extract(&self, py: Python<'_>, from: Vec<Tensor>, to: Vec<Tensor>) -> PyResult<()> {
        self.edit(py, |edit| edit.extract(&outputs(from), &outputs(to)))
    }

    fn inline(&self, py: Python<'_>, id: u64, at: usize) -> PyResult<()> {
        self.edit(py, |edit| edit.inline(LayerId(id), at))
    }

    /// Takes over another model; gives the new id of each of its layers.
    fn graft(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Model>,
        feeds: Vec<(String, Tensor)>,
        prefix: &str,
    ) -> PyResult<Vec<(u64, u64)>> {
        let other = other.get().state();
        let found = feeds.into_iter().map(|(name, tensor)| {
            let input = other.model.find_input(&name).map_err(|error| Failure::unknown(&other.model, &name, &error))?;
            Ok((input, output(tensor)))
        });
        let feeds = found.collect::<Result<Vec<_>, Failure>>().map_err(|failure| failure.raise(py))?;
        let moved = self.edit(py, |edit| edit.graft(&other.model, &feeds, prefix))?;
        Ok(moved.into_iter().map(|(old, new)| (old.0, new.0)).collect())
    }

    /// Infers types and shapes of the graph as it is so far.
    fn infer(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |work| {
            // What is wrong with it by now may be right when the batch ends.
            let _later = work.batch.infer();
            Ok(())
        })
    }

    /// Ends the batch: the model gets the edits, or nothing.
    fn finish(&self, py: Python<'_>, keep: bool) -> PyResult<()> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Work { before, batch, .. }) = work.filter(|_| keep) else { return Ok(()) };
        self.model.get().replace(py, &before, move |state| {
            state.model = batch.finish().map_err(|error| Failure::Value(error.to_string()))?;
            state.refresh_ports = true;
            state.infer(&[])
        })
    }
}
