//! Batches of edits for Python.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use typelift::edit::{Batch, Edit, StatePair};
use typelift::graph::{EditError, Names, NewLayer, Place};
use typelift::promote::ElementType;
use typelift::values::convert_values;
use typelift::{Input, LayerId, Output};

use crate::arrays::{Buffer, Held, copy};
use crate::failure::Failure;
use crate::model::Model;
use crate::state::State;
use crate::types::element_type;

/// A tensor: the id of its layer, and the output.
pub(crate) type Tensor = (u64, usize);

/// Description of a layer to add: operation, operation set, name, attributes.
type Kind = (String, Option<String>, Option<String>, Vec<(String, String)>);

/// A graph that is being edited: the model's own, or that of a body.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Graph {
    editor: Arc<Editor>,
    place: Place,
}

/// The target of the edits.
enum Editor {
    /// A batch of edits, applied to the model when it ends.
    Batch(Py<Model>, Box<Mutex<Option<Work>>>),
    /// The thread that applies a rule, until the replacement of a match is complete.
    Lent(Sender<Task>),
}

struct Work {
    /// The model before the batch.
    before: Arc<State>,
    batch: Batch,
    names: Names,
}

/// A request to the thread that applies a rule.
pub(crate) enum Task {
    /// Edit the graph in which the pattern matched.
    Edit(Box<dyn FnOnce(&mut Edit<'_>) + Send>),
    /// Continue after the replacement.
    End,
}

fn ended() -> Failure {
    Failure::Value("the batch of edits has ended; begin another one: `with model.edit() as graph`".to_owned())
}

pub(crate) fn output((id, port): Tensor) -> Output {
    LayerId(id).output(port)
}

fn outputs(tensors: Vec<Tensor>) -> Vec<Output> {
    tensors.into_iter().map(output).collect()
}

pub(crate) fn tensor(output: Output) -> Tensor {
    (output.layer.0, output.port)
}

/// Converts the error of an edit to a Python failure.
fn refused(error: EditError) -> Failure {
    Failure::Value(error.to_string())
}

/// The layers to try, the best first: of an operation without a version, the oldest revision that has the attributes.
fn new_layers((ty, version, name, attributes): Kind) -> Result<Vec<NewLayer>, Failure> {
    let attributes: Vec<_> = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let layers = typelift::edit::revisions(&ty, version.as_deref(), &attributes).map_err(refused)?;
    Ok(layers.into_iter().map(|new| name.iter().fold(new, |new, name| new.named(name))).collect())
}

/// Applies an edit with the first of several layers that is not refused.
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
        Self { editor: Arc::new(Editor::Batch(model, Box::new(Mutex::new(Some(work))))), place: Place::default() }
    }

    pub(crate) fn lent(tasks: Sender<Task>) -> Self {
        Self { editor: Arc::new(Editor::Lent(tasks)), place: Place::default() }
    }

    fn at(&self, place: Place) -> Self {
        Self { editor: self.editor.clone(), place }
    }

    /// `None` while a rule is applied.
    fn work(&self) -> Option<MutexGuard<'_, Option<Work>>> {
        match &*self.editor {
            Editor::Batch(_, work) => Some(work.lock().unwrap_or_else(PoisonError::into_inner)),
            Editor::Lent(_) => None,
        }
    }

    /// Runs a function on the graph.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let place = self.place.clone();
        let act = move |edit: &mut Edit<'_>| {
            if place.steps().is_empty() { act(edit) } else { act(&mut edit.at(&place).map_err(refused)?) }
        };
        let done = match &*self.editor {
            Editor::Batch(..) => match self.work().as_deref_mut() {
                Some(Some(work)) => act(&mut work.batch.edit()),
                _ => Err(ended()),
            },
            Editor::Lent(tasks) => {
                let (answer, mut answered) = mpsc::channel();
                let task = Task::Edit(Box::new(move |edit| {
                    let _given_up = answer.send(act(edit));
                }));
                let asked = tasks.send(task).ok();
                let answered = &mut answered;
                asked.and_then(|()| py.detach(move || answered.recv().ok())).unwrap_or_else(|| Err(ended()))
            }
        };
        done.map_err(|failure| failure.raise(py))
    }

    fn edit<T: Send + 'static>(
        &self,
        py: Python<'_>,
        edit: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError> + Send + 'static,
    ) -> PyResult<T> {
        self.with(py, |graph| edit(graph).map_err(|error| Failure::Value(error.describe(graph))))
    }

    fn layer<T: Send + 'static>(
        &self,
        py: Python<'_>,
        id: u64,
        look: impl FnOnce(&typelift::Layer) -> T + Send + 'static,
    ) -> PyResult<T> {
        let gone = move || Failure::Unknown(format!("no layer has the id {id}"));
        self.with(py, move |edit| edit.layer(LayerId(id)).map(look).ok_or_else(gone))
    }

    /// Runs a function on the model's own graph in a batch, with its name index; `None` elsewhere.
    fn looked_up<T>(
        &self,
        find: impl FnOnce(&Names, &typelift::Model) -> Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        let mut work = self.work().filter(|_| self.place.steps().is_empty())?;
        let Some(work) = &mut *work else { return Some(Err(ended())) };
        let model = work.batch.model();
        work.names.update(model);
        Some(find(&work.names, model))
    }
}

#[pymethods]
impl Graph {
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.editor, &other.editor) && self.place == other.place
    }

    fn body(&self, py: Python<'_>, id: u64, at: usize) -> PyResult<Self> {
        self.with(py, move |edit| edit.body(LayerId(id), at).map(drop).map_err(refused))?;
        Ok(self.at(self.place.body(LayerId(id), at)))
    }

    fn bodies(&self, py: Python<'_>, id: u64) -> PyResult<Vec<String>> {
        self.layer(py, id, |layer| layer.bodies().iter().map(|body| body.name().to_owned()).collect())
    }

    fn ids(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |edit| Ok(edit.layers().map(|layer| layer.id().0).collect()))
    }

    fn owners(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |edit| {
            Ok(edit.layers().filter(|layer| !layer.bodies().is_empty()).map(|layer| layer.id().0).collect())
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |edit| Ok(edit.len()))
    }

    fn has(&self, py: Python<'_>, id: u64) -> PyResult<bool> {
        self.with(py, move |edit| Ok(edit.layer(LayerId(id)).is_some()))
    }

    fn find(&self, py: Python<'_>, name: String) -> PyResult<(Self, u64)> {
        let found = self
            .looked_up(|names, model| names.find(model, &name).map_err(|error| Failure::find(model, &name, &error)));
        let found = found.map(|found| found.map_err(|failure| failure.raise(py))).unwrap_or_else(|| {
            self.with(py, move |edit| {
                edit.find(&name).map(|id| (Place::default(), id)).map_err(|error| Failure::Unknown(error.to_string()))
            })
            .map(|(_, id)| (self.place.clone(), id))
        });
        found.map(|(place, id)| (self.at(place), id.0))
    }

    fn find_tensor(&self, py: Python<'_>, name: String) -> PyResult<Tensor> {
        let found = self
            .looked_up(|names, model| names.tensor(model, &name).map_err(|error| Failure::find(model, &name, &error)));
        let found = found.map(|found| found.map_err(|failure| failure.raise(py))).unwrap_or_else(|| {
            self.with(py, move |edit| edit.tensor(&name).map_err(|error| Failure::Unknown(error.to_string())))
        });
        found.map(tensor)
    }

    fn name(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        self.layer(py, id, |layer| layer.name().to_owned())
    }

    fn operation(&self, py: Python<'_>, id: u64) -> PyResult<(String, String)> {
        self.layer(py, id, |layer| (layer.ty().to_owned(), layer.version().to_owned()))
    }

    fn attributes(&self, py: Python<'_>, id: u64) -> PyResult<Vec<(String, String)>> {
        let pair = |attribute: &typelift::graph::Attribute| (attribute.name().to_owned(), attribute.value().to_owned());
        self.layer(py, id, move |layer| layer.attributes().iter().map(pair).collect())
    }

    fn producers(&self, py: Python<'_>, id: u64) -> PyResult<Vec<Option<Tensor>>> {
        self.with(py, move |edit| {
            Ok(edit.producers(LayerId(id)).into_iter().map(|output| output.map(tensor)).collect())
        })
    }

    fn consumers(&self, py: Python<'_>, of: Tensor) -> PyResult<Vec<(u64, usize)>> {
        self.with(py, move |edit| Ok(edit.consumers(output(of)).map(|input| (input.layer.0, input.port)).collect()))
    }

    fn outputs(&self, py: Python<'_>, id: u64) -> PyResult<Vec<(&'static str, String, Vec<String>)>> {
        self.layer(py, id, |layer| {
            let ports = layer.outputs().iter();
            ports.map(|port| (port.element_type().name(), port.shape().to_string(), port.names())).collect()
        })
    }

    fn rt_info(&self, py: Python<'_>, id: u64) -> PyResult<Vec<(String, String)>> {
        self.layer(py, id, |layer| {
            let names = layer.rt_info_names().into_iter();
            names.filter_map(|name| layer.rt_info(&name).map(|value| (name, value))).collect()
        })
    }

    fn set_rt_info(&self, py: Python<'_>, id: u64, name: String, value: String) -> PyResult<()> {
        self.edit(py, move |edit| edit.set_rt_info(LayerId(id), &name, &value))
    }

    fn remove_rt_info(&self, py: Python<'_>, id: u64, name: String) -> PyResult<()> {
        self.edit(py, move |edit| edit.remove_rt_info(LayerId(id), &name))
    }

    fn data(&self, py: Python<'_>, id: u64) -> PyResult<Option<Buffer>> {
        let held =
            self.with(py, move |edit| Ok(edit.layer(LayerId(id)).and_then(|of| Held::of(of, edit.weights()))))?;
        let Some(held) = held else { return Ok(None) };
        let before = self.work().and_then(|work| work.as_ref().map(|work| work.before.clone()));
        match (held, before) {
            (held, Some(before)) => before.keeper.buffer(py, before.model.weights(), held).map(Some),
            (Held::Own(bytes), None) => Ok(Some(copy(py, &bytes))),
            (Held::Base { offset, size }, None) => {
                let bytes = self.with(py, move |edit| Ok(edit.weights().read(offset as u64, size)))?;
                Ok(bytes.map(|bytes| copy(py, &bytes)))
            }
        }
    }

    fn values<'py>(&self, py: Python<'py>, id: u64, to: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let to = element_type(to).map_err(|failure| failure.raise(py))?;
        let bytes = self
            .with(py, move |edit| Ok(edit.layer(LayerId(id)).and_then(|layer| layer.bytes_as(to, edit.weights()))))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn add(&self, py: Python<'_>, kind: Kind, inputs: Vec<Tensor>) -> PyResult<u64> {
        let (new, inputs) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(inputs));
        self.edit(py, move |edit| first_of(new, |new| edit.add(new, &inputs)).map(|id| id.0))
    }

    fn replace_in_place(&self, py: Python<'_>, id: u64, kind: Kind, inputs: Vec<Tensor>) -> PyResult<()> {
        let (new, inputs) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(inputs));
        self.edit(py, move |edit| first_of(new, |new| edit.replace_in_place(LayerId(id), new, &inputs)))
    }

    fn insert_after(&self, py: Python<'_>, of: Tensor, kind: Kind, others: Vec<Tensor>) -> PyResult<u64> {
        let (new, others) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(others));
        self.edit(py, move |edit| first_of(new, |new| edit.insert_after(output(of), new, &others)).map(|id| id.0))
    }

    fn insert_before(&self, py: Python<'_>, to: (u64, usize), kind: Kind, others: Vec<Tensor>) -> PyResult<u64> {
        let (new, others) = (new_layers(kind).map_err(|failure| failure.raise(py))?, outputs(others));
        let input = Input { layer: LayerId(to.0), port: to.1 };
        self.edit(py, move |edit| first_of(new, |new| edit.insert_before(input, new, &others)).map(|id| id.0))
    }

    fn connect(&self, py: Python<'_>, from: Tensor, to: (u64, usize)) -> PyResult<()> {
        self.edit(py, move |edit| edit.connect(output(from), Input { layer: LayerId(to.0), port: to.1 }))
    }

    fn replace_uses(&self, py: Python<'_>, old: Tensor, new: Tensor) -> PyResult<()> {
        self.edit(py, move |edit| edit.replace_uses(output(old), output(new)))
    }

    fn remove(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<()> {
        let layers: Vec<_> = ids.into_iter().map(LayerId).collect();
        self.edit(py, move |edit| edit.remove_all(&layers))
    }

    fn remove_unused(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<(Vec<u64>, Vec<(String, String)>)> {
        let removed = self.edit(py, move |edit| edit.remove_unused(ids.into_iter().map(LayerId)))?;
        let kept = removed.kept.into_iter().map(|kept| (kept.name, kept.reason.to_string()));
        Ok((removed.layers.into_iter().map(|id| id.0).collect(), kept.collect()))
    }

    fn redirect(&self, py: Python<'_>, old: Tensor, new: Tensor) -> PyResult<Vec<u64>> {
        let removed = self.edit(py, move |edit| edit.redirect(output(old), output(new)))?;
        Ok(removed.into_iter().map(|id| id.0).collect())
    }

    fn remove_outputs(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<Vec<u64>> {
        let results: Vec<_> = ids.into_iter().map(LayerId).collect();
        let removed = self.edit(py, move |edit| edit.remove_outputs(&results))?;
        Ok(removed.into_iter().map(|id| id.0).collect())
    }

    fn order(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<()> {
        let ends: Vec<_> = ids.into_iter().map(LayerId).collect();
        self.edit(py, move |edit| edit.order(&ends))
    }

    fn make_stateful(&self, py: Python<'_>, pairs: Vec<(u64, u64, String)>, beam: Option<Tensor>) -> PyResult<()> {
        let pair = |(past, present, variable)| StatePair { past: LayerId(past), present: LayerId(present), variable };
        let pairs: Vec<_> = pairs.into_iter().map(pair).collect();
        self.edit(py, move |edit| edit.make_stateful(&pairs, beam.map(output)).map(drop))
    }

    fn make_stateless(&self, py: Python<'_>, variable: String, past: String, present: String) -> PyResult<()> {
        self.edit(py, move |edit| edit.make_stateless(&variable, &past, &present))
    }

    fn rename(&self, py: Python<'_>, old: String, new: String) -> PyResult<()> {
        self.edit(py, move |edit| edit.rename(&old, &new))
    }

    fn set_name(&self, py: Python<'_>, id: u64, name: String) -> PyResult<()> {
        self.edit(py, move |edit| edit.set_name(LayerId(id), &name))
    }

    fn set_names(&self, py: Python<'_>, of: Tensor, names: Vec<String>) -> PyResult<()> {
        self.edit(py, move |edit| edit.set_names(output(of), names))
    }

    fn set_attribute(&self, py: Python<'_>, id: u64, name: String, value: String) -> PyResult<()> {
        self.edit(py, move |edit| edit.set_attribute(LayerId(id), &name, value))
    }

    /// `bytes` have one element type and are stored in another.
    #[expect(clippy::too_many_arguments, reason = "it is what a constant consists of")]
    fn constant(
        &self,
        py: Python<'_>,
        id: Option<u64>,
        from: &str,
        to: &str,
        dims: Vec<i64>,
        bytes: PyBackedBytes,
        name: Option<String>,
    ) -> PyResult<Tensor> {
        let types = element_type(from).and_then(|from| Ok((from, element_type(to)?)));
        let (from, to): (ElementType, ElementType) = types.map_err(|failure| failure.raise(py))?;
        self.edit(py, move |edit| {
            let count = dims.iter().map(|&dim| u64::try_from(dim).unwrap_or(0)).product();
            let converted = if from == to { None } else { convert_values(&bytes, count, from, to) };
            let bytes = converted.as_deref().unwrap_or(&bytes);
            match id {
                Some(id) => edit.set_constant(LayerId(id), to, &dims, bytes).map(|()| (id, 0)),
                None => {
                    let made = edit.constant(to, &dims, bytes)?;
                    name.map_or(Ok(()), |name| edit.set_name(made.layer, &name))?;
                    Ok(tensor(made))
                }
            }
        })
    }

    fn expose(&self, py: Python<'_>, of: Tensor, name: Option<String>) -> PyResult<u64> {
        self.edit(py, move |edit| edit.expose(output(of), name.as_deref()).map(|id| id.0))
    }

    fn cut(&self, py: Python<'_>, of: Tensor) -> PyResult<u64> {
        self.edit(py, move |edit| edit.cut(output(of)).map(|id| id.0))
    }

    fn extract(&self, py: Python<'_>, from: Vec<Tensor>, to: Vec<Tensor>) -> PyResult<()> {
        self.edit(py, move |edit| edit.extract(&outputs(from), &outputs(to)))
    }

    fn inline(&self, py: Python<'_>, id: u64, at: usize) -> PyResult<()> {
        self.edit(py, move |edit| edit.inline(LayerId(id), at))
    }

    /// Inlines another model, and returns the new id of each of its layers.
    fn inline_model(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Model>,
        feeds: Vec<(String, Tensor)>,
        prefix: String,
    ) -> PyResult<Vec<(u64, u64)>> {
        let other = other.get().state();
        let found = feeds.into_iter().map(|(name, tensor)| {
            let input = other.model.find_input(&name).map_err(|error| Failure::unknown(&other.model, &name, &error))?;
            Ok((input, output(tensor)))
        });
        let feeds = found.collect::<Result<Vec<_>, Failure>>().map_err(|failure| failure.raise(py))?;
        let moved = self.edit(py, move |edit| edit.inline_model(&other.model, &feeds, &prefix))?;
        Ok(moved.into_iter().map(|(old, new)| (old.0, new.0)).collect())
    }

    /// Infers types and shapes of the current state. While a rule is applied, those of added layers are known already.
    fn infer(&self, py: Python<'_>) -> PyResult<()> {
        match self.work().as_deref_mut() {
            None => Ok(()),
            Some(None) => Err(ended().raise(py)),
            Some(Some(work)) => {
                // Errors are ignored here, because the batch may fix them before it ends.
                let _later = work.batch.infer();
                Ok(())
            }
        }
    }

    /// Ends the batch: applies all edits to the model, or none.
    fn finish(&self, py: Python<'_>, keep: bool) -> PyResult<()> {
        let Editor::Batch(model, work) = &*self.editor else { return Ok(()) };
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Work { before, batch, .. }) = work.filter(|_| keep) else { return Ok(()) };
        model.get().replace(py, before, move |state| {
            state.model = batch.finish().map_err(refused)?;
            state.refresh_ports = true;
            state.infer(&[])
        })
    }
}
