//! Models as Python sees them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use typelift::convert::{Conversion, Unneeded};
use typelift::graph::Place;
use typelift::map::PrecisionMap;
use typelift::passes::Align;
use typelift::precision::{Like, Storage, TypeMap, TypeMapError};
use typelift::promote::{ElementType, RuleSet, openvino};
use typelift::rewrite::{Rule, Script, library};
use typelift::save::FileId;
use typelift::shape::Shape;
use typelift::xml;
use typelift::{Diagnostics, LayerId, SaveOptions, Weights, WeightsMode};
use typelift_cli::report;

use crate::failure::{self, Failure};
use crate::layer::Layer;
use crate::state::{State, refused};
use crate::types::{element_type, release, shape};

/// What becomes of the element types of a model: `f64=f32,i64=i32`.
fn type_map(text: Option<&str>) -> Result<TypeMap, Failure> {
    let map = text.map(str::parse).transpose();
    map.map(Option::unwrap_or_default).map_err(|error: TypeMapError| Failure::Value(error.to_string()))
}

/// Storing constants in a type, by OpenVINO's rules.
fn compression(to: &str) -> Result<Storage, Failure> {
    Ok(Storage::Compress { to: element_type(to)?, like: Like::default() })
}

/// A model. An edit makes a new state and swaps it in, or fails and changes nothing; a reader sees one state or the other. So
/// threads can share a model.
#[pyclass(frozen, module = "typelift._typelift")]
pub(crate) struct Model {
    state: Mutex<Arc<State>>,
    /// Held while a new state is made, so that no edit is lost.
    editing: Mutex<()>,
}

impl Model {
    fn new(state: State) -> Self {
        Self { state: Mutex::new(Arc::new(state)), editing: Mutex::new(()) }
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a new state, or none.
    fn edit<T: Send>(&self, py: Python<'_>, edit: impl FnOnce(&mut State) -> Result<T, Failure> + Send) -> PyResult<T> {
        py.detach(|| {
            let _editing = self.editing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state = (*self.state()).clone();
            let done = edit(&mut state)?;
            state.was_edited();
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
            Ok(done)
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// Makes a new state of the one that a batch of edits began with.
    pub(crate) fn replace(
        &self,
        py: Python<'_>,
        before: &Arc<State>,
        edit: impl FnOnce(&mut State) -> Result<(), Failure> + Send,
    ) -> PyResult<()> {
        let before = before.clone();
        self.edit(py, |state| {
            if !Arc::ptr_eq(&before, &self.state()) {
                return Err(Failure::Value("the model was edited otherwise while this batch was open".to_owned()));
            }
            edit(state)
        })
    }

    /// Gives an input another type or shape, which the computation follows.
    fn set_input(
        &self,
        py: Python<'_>,
        name: &str,
        element_type: Option<ElementType>,
        shape: Option<&Shape>,
    ) -> PyResult<()> {
        self.edit(py, |state| {
            let changed =
                state.model.set_input(name, element_type, shape).map_err(|error| refused(state, name, error))?;
            state.refresh_ports = true;
            state.infer(&[changed])
        })
    }
}

/// What a conversion aligns by.
fn align(name: &str, attributes: openvino::Options) -> Result<Option<Align>, Failure> {
    let names = || ["declared", "off"].into_iter().chain(RuleSet::for_models().map(|rules| rules.name()));
    match name {
        "off" => Ok(None),
        name if names().any(|known| known == name) => Ok(Align::named(name, attributes)),
        name => {
            let names = names().collect::<Vec<_>>().join(", ");
            Err(Failure::Value(format!("align is one of {names}, and not `{name}`")))
        }
    }
}

/// The value with this name.
fn one_of<T: Copy>(option: &str, name: &str, values: &[(&str, T)]) -> Result<T, Failure> {
    let names = || values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    value.ok_or_else(|| Failure::Value(format!("{option} is one of {}, not `{name}`", names())))
}

/// Names with element types.
type Types = Vec<(String, String)>;

fn types(pairs: Types) -> Result<Vec<(String, ElementType)>, Failure> {
    pairs.into_iter().map(|(name, ty)| Ok((name, element_type(&ty)?))).collect()
}

#[pymethods]
impl Model {
    /// Reads a model; its weights are those given, or in the file beside it.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, weights: Option<PathBuf>) -> PyResult<Self> {
        py.detach(|| {
            let text = xml::load(&path)?;
            let bin = weights.clone().unwrap_or_else(|| path.with_extension("bin"));
            let open =
                || {
                    let io = |source| Failure::Io { file: bin.display().to_string(), source };
                    let found = Weights::open(&bin).map_err(io)?;
                    if weights.is_some() && found.len().is_none() {
                        // Those beside a model may be missing; those that are named may not.
                        Err(std::fs::File::open(&bin).map(|_| found).map_err(io).err().unwrap_or_else(|| {
                            Failure::File(format!("`{}` appeared while it was read", bin.display()))
                        }))
                    } else {
                        Ok(found)
                    }
                };
            State::read(path.display().to_string(), Some(path.clone()), text, open).map(Self::new)
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// Reads a model from text and weights in memory.
    #[staticmethod]
    fn loads(py: Python<'_>, text: Vec<u8>, weights: Option<&[u8]>) -> PyResult<Self> {
        let weights = weights.map_or_else(Weights::none, Weights::from_bytes);
        py.detach(|| {
            let file = "<memory>".to_owned();
            let text = xml::decode_utf8(text).map_err(|refusal| {
                Failure::model(&Diagnostics { file: file.clone(), list: vec![*refusal], ..Diagnostics::default() })
            })?;
            State::read(file, None, text, || Ok(weights)).map(Self::new)
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// Reads a listing in the notation that `show` prints.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Self> {
        py.detach(|| {
            let model = typelift::Model::from_text(text)?;
            Ok(Self::new(State::of(model, "<memory>".to_owned(), None, Vec::new())))
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// Puts another model after this one.
    fn join(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
        joints: Vec<(String, String)>,
        prefix: &str,
    ) -> PyResult<()> {
        let other = other.get().state();
        self.edit(py, |state| {
            let joints: Vec<_> = joints.iter().map(|(output, input)| (output.as_str(), input.as_str())).collect();
            state.model.join(&other.model, &joints, prefix).map_err(|error| refused(state, "", error))?;
            state.refresh_ports = true;
            state.infer(&[])
        })
    }

    /// A value in the metadata of the model.
    fn rt_info(&self, path: &str) -> Option<String> {
        self.state().model.rt_info(path)
    }

    fn set_rt_info(&self, py: Python<'_>, path: &str, value: &str) -> PyResult<()> {
        self.edit(py, |state| state.model.set_rt_info(path, value).map_err(|error| Failure::Value(error.to_string())))
    }

    /// The same model, whose edits are its own.
    fn copy(&self) -> Self {
        Self { state: Mutex::new(self.state()), editing: Mutex::new(()) }
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

    /// The layer with this name, tensor name, path or id.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Layer> {
        let state = self.state();
        let found = state.names().find(&state.model, name);
        let (place, id) = found.map_err(|error| Failure::find(&state.model, name, &error).raise(py))?;
        Ok(Layer::new(&state, &place, id))
    }

    /// The layer with this id outside of bodies.
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

    /// Every finding: as JSON, and as text with the source.
    fn check(&self, py: Python<'_>, target: Option<&str>) -> PyResult<(String, String)> {
        let target = target.map(release).transpose().map_err(|failure| failure.raise(py))?;
        let state = self.state();
        py.detach(|| {
            let diagnostics = state.check(target);
            let read = state.path.as_deref().filter(|_| !state.edited).map(|path| (&state.model, path));
            let json = report::findings_json(&diagnostics, read).map_err(|refusal| Failure::Fault(refusal.message))?;
            Ok((json, report::findings_text(&diagnostics)))
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// Writes the ports as inferred, and returns what inference finds.
    fn infer(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.edit(py, |state| {
            state.inferred = typelift::infer(&mut state.model);
            state.refresh_ports = true;
            let diagnostics = state.diagnostics(state.inferred.clone());
            let json = report::findings_json(&diagnostics, None).map_err(|refusal| Failure::Fault(refusal.message))?;
            Ok((json, report::findings_text(&diagnostics)))
        })
    }

    /// Converts the model: the plan as text and JSON, and warnings as JSON.
    #[expect(clippy::too_many_arguments, reason = "the package has them as keywords")]
    fn convert(
        &self,
        py: Python<'_>,
        align: &str,
        unneeded: &str,
        set_types: Types,
        set_shapes: Vec<(String, String)>,
        input_types: Types,
        output_types: Types,
        types: Option<&str>,
        compress: Option<&str>,
        keep: Vec<String>,
        keep_io: bool,
        mark_keeps: bool,
        promote_unsafe: bool,
        pytorch_scalar_promotion: bool,
        u64_integer_promotion_target: &str,
        target: Option<&str>,
    ) -> PyResult<(String, String, String)> {
        self.edit(py, |state| {
            let attributes = openvino::Options {
                promote_unsafe,
                pytorch_scalar_promotion,
                u64_integer_promotion_target: element_type(u64_integer_promotion_target)?,
            };
            let set_shapes = set_shapes.into_iter().map(|(name, text)| Ok((name, shape(&text)?)));
            let mut conversion = Conversion::default();
            conversion.align = self::align(align, attributes)?;
            conversion.unneeded = one_of(
                "unneeded",
                unneeded,
                &[("kept", Unneeded::Kept), ("noops", Unneeded::Noops), ("redundant", Unneeded::Redundant)],
            )?;
            conversion.set_types = self::types(set_types)?;
            conversion.set_shapes = set_shapes.collect::<Result<_, Failure>>()?;
            conversion.input_types = self::types(input_types)?;
            conversion.output_types = self::types(output_types)?;
            conversion.types = type_map(types)?;
            conversion.storage = compress.map(compression).transpose()?;
            conversion.keep = keep.iter().map(|pattern| pattern.as_str().into()).collect();
            conversion.keep_io = keep_io;
            conversion.mark_keeps = mark_keeps;
            conversion.target = target.map(release).transpose()?;
            state.convert(&conversion)
        })
    }

    fn set_type(&self, py: Python<'_>, name: &str, element_type: &str) -> PyResult<()> {
        let element_type = self::element_type(element_type).map_err(|failure| failure.raise(py))?;
        self.set_input(py, name, Some(element_type), None)
    }

    fn set_shape(&self, py: Python<'_>, name: &str, shape: &str) -> PyResult<()> {
        let shape = self::shape(shape).map_err(|failure| failure.raise(py))?;
        self.set_input(py, name, None, Some(&shape))
    }

    fn set_input_type(&self, py: Python<'_>, name: &str, element_type: &str) -> PyResult<()> {
        self.edit(py, |state| {
            let element_type = self::element_type(element_type)?;
            state.model.convert_input(name, element_type).map_err(|error| refused(state, name, error))?;
            state.refresh_ports = true;
            state.infer(&[])
        })
    }

    fn set_output_type(&self, py: Python<'_>, name: &str, element_type: &str) -> PyResult<()> {
        self.edit(py, |state| {
            let element_type = self::element_type(element_type)?;
            state.model.convert_output(name, element_type).map_err(|error| refused(state, name, error))?;
            state.refresh_ports = true;
            state.infer(&[])
        })
    }

    /// Applies statements and shipped rules, and returns the report as JSON.
    fn rewrite(&self, py: Python<'_>, statements: &str, sets: Vec<String>) -> PyResult<String> {
        self.edit(py, |state| {
            let script: Script = statements.parse()?;
            let mut rules = Vec::new();
            for name in &sets {
                let known = || library::SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", ");
                let set = library::get(name)
                    .ok_or_else(|| Failure::Value(format!("no rules are called `{name}`; there are {}", known())))?;
                rules.extend(set.rules());
            }
            let script = script.with_rules(rules);
            let (model, report) = script.run(state.model.clone())?;
            state.model = model;
            state.refresh_ports |= script.edits_interface();
            state.inferred = typelift::infer(&mut state.model);
            failure::json(&report)
        })
    }

    /// Why a rule matches at a layer or not.
    fn explain(&self, py: Python<'_>, rule: &str, layer: Option<&str>) -> PyResult<String> {
        let state = self.state();
        py.detach(|| {
            let rule: Rule = rule.parse()?;
            let explanation = state.model.explain(&rule, layer);
            let explanation =
                explanation.map_err(|error| Failure::find(&state.model, layer.unwrap_or_default(), &error))?;
            Ok(explanation.to_string())
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// How a tensor came to its type: as text, as text with every step, and as JSON.
    fn why(&self, py: Python<'_>, name: &str) -> PyResult<(String, String, String)> {
        let state = self.state();
        py.detach(|| {
            let derivation =
                typelift::why(&state.model, name).map_err(|error| Failure::why(&state.model, name, &error))?;
            let text = |all| report::why_text(&derivation, all);
            Ok((text(false), text(true), failure::json(&derivation)?))
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// What the model consists of: as text and as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let state = self.state();
        py.detach(|| {
            let stats = typelift::stats(&state.model);
            let found: Vec<_> = state.read.iter().chain(&state.inferred).cloned().collect();
            let map = PrecisionMap::new(&state.model, &found);
            let text = report::stats_text(&state.file, &stats, &map);
            Ok((text, failure::json(&(&stats, &map.rows))?))
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// The page that `typelift view` draws, with how the model differs from another one.
    fn page(&self, py: Python<'_>, before: Option<&Bound<'_, Self>>) -> PyResult<String> {
        let (state, before) = (self.state(), before.map(|before| before.get().state()));
        py.detach(|| {
            let before = before.map(|before| (before.file.clone(), typelift::diff(&before.model, &state.model)));
            report::page(&state.model, state.path.as_deref(), before, &state.check(None).list)
                .map_err(|refusal| Failure::Fault(refusal.message))
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// The listing that `typelift show` prints, or its picture for Graphviz.
    fn listing(
        &self,
        py: Python<'_>,
        around: Option<String>,
        depth: usize,
        only: Vec<String>,
        fold_constants: bool,
        dot: bool,
    ) -> PyResult<String> {
        let state = self.state();
        let shown = report::SelectionArgs { around, depth, only, fold_constants };
        py.detach(|| {
            let print = if dot { report::dot } else { report::listing };
            print(&state.model, &shown).map_err(|refusal| Failure::Unknown(refusal.to_string()))
        })
        .map_err(|failure: Failure| failure.raise(py))
    }

    /// The graph and the weights as files would hold them.
    fn to_bytes<'py>(&self, py: Python<'py>, canonical: bool) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let state = self.state();
        let (text, weights) = py
            .detach(|| {
                if let Some(missing) = typelift::save::missing_weights(&state.model) {
                    return Err(Failure::model(&state.diagnostics(vec![missing])));
                }
                let weights = state.model.weights().to_bytes();
                let weights = weights.map_err(|source| Failure::Io { file: state.file.clone(), source })?;
                Ok((xml::write(&state.model, state.options(canonical)), weights))
            })
            .map_err(|failure: Failure| failure.raise(py))?;
        Ok((PyBytes::new(py, text.as_bytes()), PyBytes::new(py, &weights)))
    }

    /// Writes the pair of files.
    fn save(&self, py: Python<'_>, path: PathBuf, canonical: bool, weights: &str) -> PyResult<()> {
        let state = self.state();
        py.detach(|| {
            let mut options = SaveOptions::default();
            options.text = state.options(canonical);
            options.weights = one_of(
                "weights",
                weights,
                &[("copy", WeightsMode::Copy), ("link", WeightsMode::Link), ("none", WeightsMode::None)],
            )?;
            options.in_place = state.path.as_ref().is_some_and(|own| FileId::of(own) == FileId::of(&path));
            Ok(state.model.save_with(&path, options)?)
        })
        .map_err(|failure: Failure| failure.raise(py))
    }
}
