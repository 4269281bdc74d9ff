//! Models for Python.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use typelift::convert::Conversion;
use typelift::edit::inputs_outputs::InterfaceError;
use typelift::findings::Diagnostics;
use typelift::graph::Place;
use typelift::host::{FileId, Stamp};
use typelift::ops::{LayerKind, kind};
use typelift::{Checking, LayerId, SaveOptions, Weights, xml};
use typelift_cli::report;

use crate::answer::Answer;
use crate::arrays::Keeper;
use crate::blocks::Blocks;
use crate::failure::Failure;
use crate::layer::Layer;
use crate::report::Report;
use crate::state::{State, refused};
use crate::types::{element_type, release, shape};
use crate::work::{self, Caller};

/// A model that threads can share. An edit creates a new state and swaps it in, or fails and changes nothing. A reader
/// sees one state or the other.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Model(Arc<Shared>);

struct Shared {
    state: Mutex<Arc<State>>,
    /// True while a new state is being made. Other edits wait, so that none is lost.
    is_edited: Mutex<bool>,
    edit_ended: Condvar,
}

/// The exclusive right to edit a model, until it is dropped.
struct Permit(Arc<Shared>);

impl Permit {
    fn wait(shared: &Arc<Shared>) -> Self {
        let mut is_edited = shared.is_edited.lock().unwrap_or_else(PoisonError::into_inner);
        while *is_edited {
            is_edited = shared.edit_ended.wait(is_edited).unwrap_or_else(PoisonError::into_inner);
        }
        *is_edited = true;
        Self(shared.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.is_edited.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.edit_ended.notify_one();
    }
}

impl Shared {
    fn state(&self) -> Arc<State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces a state by the new state that was made from it.
    fn swap(&self, before: &Arc<State>, state: Arc<State>) -> Result<(), Failure> {
        let mut known = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(before, &known) {
            return Err(Failure::Value("the model was edited otherwise while this batch was open".to_owned()));
        }
        *known = state;
        Ok(())
    }
}

impl Model {
    fn new(state: State) -> Self {
        Self::of(Arc::new(state))
    }

    fn of(state: Arc<State>) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(state), is_edited: Mutex::new(false), edit_ended: Condvar::new() }))
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.0.state()
    }

    /// Creates a new state and returns it, or fails without a change.
    pub(crate) fn edit_to<T: Send + 'static>(
        &self,
        py: Python<'_>,
        edit: impl FnOnce(&mut State, &Caller) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<(T, Arc<State>)> {
        let shared = self.0.clone();
        let (before, state, done, _permit) = work::run(py, move |caller| {
            let permit = Permit::wait(&shared);
            let before = shared.state();
            let (state, done) = edited(&before, |state| edit(state, caller))?;
            Ok((before, state, done, permit))
        })?;
        self.0.swap(&before, state.clone()).map_err(|failure| failure.raise(py))?;
        Ok((done, state))
    }

    /// Creates a new state, or fails without a change.
    fn edit<T: Send + 'static>(
        &self,
        py: Python<'_>,
        edit: impl FnOnce(&mut State) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        self.edit_to(py, |state, _| edit(state)).map(|(done, _)| done)
    }

    /// Creates a new state from an earlier one, and fails if the model has changed in the meantime. Unlike
    /// [`edit`](Self::edit), it allows other edits while it runs, because Python callbacks may make them.
    pub(crate) fn edit_from<T: Send + 'static>(
        &self,
        py: Python<'_>,
        before: Arc<State>,
        edit: impl FnOnce(&mut State, &Caller) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let (before, state, done) = work::run(py, move |caller| {
            let (state, done) = edited(&before, |state| edit(state, caller))?;
            Ok((before, state, done))
        })?;
        self.0.swap(&before, state).map_err(|failure| failure.raise(py))?;
        Ok(done)
    }

    pub(crate) fn replace(
        &self,
        py: Python<'_>,
        before: Arc<State>,
        edit: impl FnOnce(&mut State) -> Result<(), Failure> + Send + 'static,
    ) -> PyResult<()> {
        self.edit_from(py, before, |state, _| edit(state))
    }

    /// Runs a function that reads the model and can take long.
    fn look<T: Send + 'static>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&State) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let state = self.state();
        work::run(py, move |_| look(&state))
    }

    /// Changes what has a name. Types and shapes after the layers that `change` returns are recomputed; without any, all.
    fn change(
        &self,
        py: Python<'_>,
        name: String,
        change: impl FnOnce(&mut typelift::Model, &str) -> Result<Vec<LayerId>, InterfaceError> + Send + 'static,
    ) -> PyResult<()> {
        self.edit(py, move |state| {
            let changed = change(&mut state.model, &name).map_err(|error| refused(state, &name, error))?;
            state.refresh_ports = true;
            state.infer(&changed)
        })
    }
}

fn edited<T>(
    before: &Arc<State>,
    edit: impl FnOnce(&mut State) -> Result<T, Failure>,
) -> Result<(Arc<State>, T), Failure> {
    let mut state = (**before).clone();
    let done = edit(&mut state)?;
    state.was_edited();
    Ok((Arc::new(state), done))
}

/// The weights with a limit on the memory of computed values, if there is one.
fn limited(weights: Weights, max_memory: Option<u64>) -> Weights {
    max_memory.into_iter().fold(weights, Weights::with_memory)
}

#[pymethods]
impl Model {
    /// Reads a model. The weights are those given, or the `.bin` next to the file. Values that are computed take at most
    /// `max_memory` bytes.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, weights: Option<PathBuf>, max_memory: Option<u64>) -> PyResult<Self> {
        let read = move |_: &Caller| {
            let stamp = Stamp::at(&path).ok();
            let text = xml::load(&path)?;
            let bin = weights.clone().unwrap_or_else(|| path.with_extension("bin"));
            let open =
                || {
                    let io = |source| Failure::Io { file: bin.display().to_string(), source };
                    let found = Weights::open(&bin).map_err(io)?;
                    if weights.is_some() && found.len().is_none() {
                        // A missing `.bin` next to the model is allowed; a missing file that was named is not.
                        Err(std::fs::File::open(&bin).map(|_| found).map_err(io).err().unwrap_or_else(|| {
                            Failure::File(format!("`{}` appeared while it was read", bin.display()))
                        }))
                    } else {
                        Ok((limited(found, max_memory), Arc::default()))
                    }
                };
            let mut state = State::read(path.display().to_string(), Some(path.clone()), text, open)?;
            state.stamp = Arc::new(Mutex::new(stamp));
            Ok(state)
        };
        work::run(py, read).map(Self::new)
    }

    /// Reads a model from text and weights in memory. The weights are not copied.
    #[staticmethod]
    fn loads(
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        weights: Option<Bound<'_, PyBytes>>,
        max_memory: Option<u64>,
    ) -> PyResult<Self> {
        // The text is copied once, and the model keeps the copy.
        let text = match text.extract::<String>() {
            Ok(text) => Ok(text),
            Err(_) => Err(text.cast::<PyBytes>()?.as_bytes().to_vec()),
        };
        let given = weights.map(|weights| (PyBackedBytes::from(weights.clone()), weights.unbind()));
        let read = move |_: &Caller| {
            let file = "<memory>".to_owned();
            let text = text.or_else(xml::decode_utf8).map_err(|refusal| {
                Failure::model(&Diagnostics { file: file.clone(), list: vec![*refusal], ..Diagnostics::default() })
            })?;
            State::read(file, None, text, || {
                Ok(match given {
                    Some((bytes, given)) => {
                        (limited(Weights::from_owner(bytes), max_memory), Arc::new(Keeper::of(given)))
                    }
                    None => (limited(Weights::none(), max_memory), Arc::default()),
                })
            })
        };
        work::run(py, read).map(Self::new)
    }

    /// Reads a listing in the notation of `show`.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: String) -> PyResult<Self> {
        let read = move |_: &Caller| {
            Ok(State::of(typelift::Model::from_text(&text)?, "<memory>".to_owned(), None, Vec::new()))
        };
        work::run(py, read).map(Self::new)
    }

    /// Appends another model to this one.
    fn join(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
        joints: Vec<(String, String)>,
        prefix: String,
    ) -> PyResult<()> {
        let other = other.get().state();
        self.change(py, String::new(), move |model, _| {
            let joints: Vec<_> = joints.iter().map(|(output, input)| (output.as_str(), input.as_str())).collect();
            model.join(&other.model, &joints, &prefix).map(|_| Vec::new())
        })
    }

    fn rt_info(&self, path: &str) -> Option<String> {
        self.state().model.rt_info(path)
    }

    fn set_rt_info(&self, py: Python<'_>, path: String, value: String) -> PyResult<()> {
        self.edit(py, move |state| {
            state.model.set_rt_info(&path, &value).map_err(|error| Failure::Value(error.to_string()))
        })
    }

    fn remove_rt_info(&self, py: Python<'_>, path: String) -> PyResult<bool> {
        self.edit(py, move |state| Ok(state.model.remove_rt_info(&path)))
    }

    fn rt_info_entries(&self) -> Vec<(String, String)> {
        self.state().model.rt_info_entries()
    }

    fn copy(&self) -> Self {
        Self::of(self.state())
    }

    #[getter]
    fn name(&self) -> String {
        self.state().model.name().to_owned()
    }

    #[getter]
    fn version(&self) -> u8 {
        self.state().model.version().number()
    }

    #[getter]
    fn file(&self) -> String {
        self.state().file.clone()
    }

    fn __len__(&self) -> usize {
        self.state().model.graph().len()
    }

    #[getter]
    fn layers(&self) -> Vec<Layer> {
        let state = self.state();
        let layer = |layer: &typelift::Layer| Layer::new(&state, &Place::default(), layer.id());
        state.model.graph().layers().map(layer).collect()
    }

    /// The first layers in the order of the file.
    fn first(&self, most: usize) -> Vec<Layer> {
        let state = self.state();
        let layer = |layer: &typelift::Layer| Layer::new(&state, &Place::default(), layer.id());
        state.model.graph().layers().take(most).map(layer).collect()
    }

    #[getter]
    fn inputs(&self) -> Vec<Layer> {
        let state = self.state();
        state.model.inputs().map(|layer| Layer::new(&state, &Place::default(), layer.id())).collect()
    }

    #[getter]
    fn outputs(&self) -> Vec<Layer> {
        let state = self.state();
        state.model.outputs().map(|layer| Layer::new(&state, &Place::default(), layer.id())).collect()
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Layer> {
        let state = self.state();
        let found = state.names().find(&state.model, name);
        let (place, id) = found.map_err(|error| Failure::find(&state.model, name, &error).raise(py))?;
        Ok(Layer::new(&state, &place, id))
    }

    fn layer(&self, id: u64) -> Option<Layer> {
        let state = self.state();
        state.model.graph().layer(LayerId(id))?;
        Some(Layer::new(&state, &Place::default(), LayerId(id)))
    }

    fn find_input(&self, py: Python<'_>, name: &str) -> PyResult<Layer> {
        let state = self.state();
        let id = state.model.find_input(name).map_err(|error| refused(&state, name, error).raise(py))?;
        Ok(Layer::new(&state, &Place::default(), id))
    }

    fn find_output(&self, py: Python<'_>, name: &str) -> PyResult<Layer> {
        let state = self.state();
        let id = state.model.find_output(name).map_err(|error| refused(&state, name, error).raise(py))?;
        Ok(Layer::new(&state, &Place::default(), id))
    }

    fn check(&self, py: Python<'_>, target: Option<&str>) -> PyResult<(String, String)> {
        let target = target.map(release).transpose().map_err(|failure| failure.raise(py))?;
        self.look(py, move |state| {
            let diagnostics = state.check(target);
            let file = state.path.as_deref().filter(|_| !state.edited);
            printed(&diagnostics, file)
        })
    }

    /// Applies the safe fixes of the text, as `check --fix` does, and returns the findings that they fix.
    fn fix(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.edit(py, |state| {
            let options = state.options(false);
            let text =
                if state.edited { Arc::new(xml::write(&state.model, options)) } else { state.model.source().clone() };
            let checked = Checking { fix: true, ..Checking::default() }.run(&text, state.model.weights());
            let removed = Diagnostics { file: state.file.clone(), source: text, list: checked.fixed };
            if !removed.list.is_empty() {
                let (weights, keeper) = (state.model.weights().clone(), state.keeper.clone());
                let path = state.path.clone();
                let text = Arc::unwrap_or_clone(checked.text);
                *state = State::read(state.file.clone(), path, text, || Ok((weights, keeper)))?;
            }
            printed(&removed, None)
        })
    }

    /// Writes the ports as inferred, and returns the findings of inference.
    fn infer(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.edit(py, |state| {
            state.inferred = typelift::infer(&mut state.model);
            state.refresh_ports = true;
            printed(&state.diagnostics(state.inferred.clone()), None)
        })
    }

    /// Converts the model with options as a JSON object.
    fn convert(&self, py: Python<'_>, options: String) -> PyResult<Report> {
        let done = self.edit_to(py, move |state, _| {
            let conversion = Conversion::from_options(&options).map_err(|error| Failure::Value(error.to_string()))?;
            state.convert(&conversion)
        });
        done.map(|(converted, state)| Report::new(converted, state))
    }

    fn set_type(&self, py: Python<'_>, name: String, element_type: &str) -> PyResult<()> {
        let element_type = self::element_type(element_type).map_err(|failure| failure.raise(py))?;
        let state = self.state();
        let found = state.names().find(&state.model, &name).ok();
        let found = found.and_then(|(place, id)| state.model.graph_at(&place)?.layer(id));
        if found.is_none_or(|layer| kind(layer) != LayerKind::Constant) {
            return self.change(py, name, move |model, name| {
                model.set_input(name, Some(element_type), None).map(|id| vec![id])
            });
        }
        self.change(py, name, move |model, name| model.convert_constant(name, element_type).map(|_| Vec::new()))
    }

    fn set_shape(&self, py: Python<'_>, name: String, shape: &str) -> PyResult<()> {
        let shape = self::shape(shape).map_err(|failure| failure.raise(py))?;
        self.change(py, name, move |model, name| model.set_input(name, None, Some(&shape)).map(|id| vec![id]))
    }

    fn set_input_type(&self, py: Python<'_>, name: String, element_type: &str) -> PyResult<()> {
        let element_type = self::element_type(element_type).map_err(|failure| failure.raise(py))?;
        self.change(py, name, move |model, name| model.convert_input(name, element_type).map(|_| Vec::new()))
    }

    fn set_output_type(&self, py: Python<'_>, name: String, element_type: &str) -> PyResult<()> {
        let element_type = self::element_type(element_type).map_err(|failure| failure.raise(py))?;
        self.change(py, name, move |model, name| model.convert_output(name, element_type).map(|_| Vec::new()))
    }

    /// Explains the element type of a tensor.
    fn why(&self, py: Python<'_>, name: String) -> PyResult<Answer> {
        let derivation = self.look(py, move |state| {
            typelift::why(&state.model, &name).map_err(|error| Failure::find(&state.model, &name, &error))
        });
        derivation.map(Answer::new)
    }

    fn blocks(&self, py: Python<'_>) -> PyResult<Blocks> {
        let state = self.state();
        work::run(py, move |_| Ok(Blocks::new(state)))
    }

    /// The answer of a command without options, as text and as JSON.
    fn answer(&self, py: Python<'_>, command: String) -> PyResult<(String, String)> {
        self.look(py, move |state| {
            let found: Vec<_> = state.read.iter().chain(&state.inferred).cloned().collect();
            report::answer(&command, &state.file, &state.model, &found)
                .map_err(|refusal| Failure::Fault(refusal.message))
        })
    }

    /// The page of `typelift view`, with the differences from another model if one is given. A page with more data than
    /// `most_bytes` shows runs of layers.
    fn page(&self, py: Python<'_>, before: Option<&Bound<'_, Self>>, most_bytes: Option<usize>) -> PyResult<String> {
        let before = before.map(|before| before.get().state());
        self.look(py, move |state| {
            let diff = before.as_ref().map(|before| typelift::diff(&before.model, &state.model));
            let before = before.as_ref().zip(diff.as_ref());
            let before = before.map(|(before, diff)| report::Before { file: &before.file, model: &before.model, diff });
            report::page(&state.model, state.path.as_deref(), before, &state.check(None).list, most_bytes)
                .map_err(|refusal| Failure::Fault(refusal.message))
        })
    }

    fn listing(
        &self,
        py: Python<'_>,
        around: Option<String>,
        depth: usize,
        only: Vec<String>,
        fold_constants: bool,
        dot: bool,
    ) -> PyResult<String> {
        let shown = report::SelectionArgs { around, depth, only, fold_constants };
        self.look(py, move |state| {
            let print = if dot { report::dot } else { report::listing };
            print(&state.model, &shown).map_err(|refusal| Failure::Unknown(refusal.to_string()))
        })
    }

    fn to_bytes<'py>(&self, py: Python<'py>, canonical: bool) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let state = self.state();
        let text = self.look(py, move |state| {
            if let Some(missing) = typelift::host::missing_weights(&state.model) {
                return Err(Failure::model(&state.diagnostics(vec![missing])));
            }
            Ok(xml::write(&state.model, state.options(canonical)))
        })?;
        let weights = state.model.weights();
        let length = weights.len().unwrap_or(0);
        let given = state.keeper.given(py, weights).filter(|given| given.as_bytes().len() as u64 == length);
        let weights = match given {
            Some(given) => given,
            None => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let io = |source| Failure::Io { file: state.file.clone(), source };
                // The bytes are written directly into the Python object, without another copy.
                PyBytes::new_with(py, length, |bytes| {
                    py.detach(|| weights.copy_to(bytes)).map_err(|source| io(source).raise(py))
                })?
            }
        };
        Ok((PyBytes::new(py, text.as_bytes()), weights))
    }

    /// Writes the pair of files.
    fn save(&self, py: Python<'_>, path: PathBuf, canonical: bool, weights: String) -> PyResult<()> {
        let state = self.state();
        // The write runs to its end after a Ctrl-C, so that it never replaces files later on.
        work::run_to_end(py, move |_| {
            let mut options = SaveOptions::default();
            options.text = state.options(canonical);
            options.weights = weights.parse().map_err(|reason| Failure::Value(format!("weights: {reason}")))?;
            options.in_place = state.path.as_ref().is_some_and(|own| FileId::of(own) == FileId::of(&path));
            let mut stamp = state.stamp.lock().unwrap_or_else(PoisonError::into_inner);
            if options.in_place {
                options.read_from = stamp.clone().map(|stamp| (path.clone(), stamp));
            }
            let is_in_place = options.in_place;
            state.model.save_with(&path, options)?;
            if is_in_place {
                *stamp = Stamp::at(&path).ok();
            }
            Ok(())
        })
    }
}

/// Applies the safe fixes of a text, and returns the text and the findings that were fixed.
#[pyfunction]
pub(crate) fn fix(py: Python<'_>, text: Vec<u8>, weights: Option<PyBackedBytes>) -> PyResult<(String, String, String)> {
    work::run(py, move |_| {
        let file = "<memory>".to_owned();
        let text = xml::decode_utf8(text).map_err(|refusal| {
            Failure::model(&Diagnostics { file: file.clone(), list: vec![*refusal], ..Diagnostics::default() })
        })?;
        let (text, weights) = (Arc::new(text), weights.map_or_else(Weights::none, Weights::from_owner));
        let checked = Checking { fix: true, ..Checking::default() }.run(&text, &weights);
        let (json, words) = printed(&Diagnostics { file, source: text, list: checked.fixed }, None)?;
        Ok((Arc::unwrap_or_clone(checked.text), json, words))
    })
}

fn printed(diagnostics: &Diagnostics, file: Option<&std::path::Path>) -> Result<(String, String), Failure> {
    let json = report::findings_json(diagnostics, file).map_err(|refusal| Failure::Fault(refusal.message))?;
    Ok((json, report::findings_text(diagnostics)))
}
