//! State of a model between two edits, shared by the classes of the module.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use typelift::convert::{Conversion, ConvertError, Converted};
use typelift::edit::inputs_outputs::InterfaceError;
use typelift::findings::{Code, Diagnostic, Diagnostics, Known, Lines};
use typelift::graph::Names;
use typelift::host::Stamp;
use typelift::ops::Release;
use typelift::xml::{self, WriteOptions};
use typelift::{Checking, LayerId, NeedForWeights, Shapes, Weights};

use crate::arrays::Keeper;
use crate::failure::Failure;

/// State of a model between two edits, with inferred types and shapes.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) model: typelift::Model,
    /// The name of the file in messages.
    pub(crate) file: String,
    pub(crate) path: Option<PathBuf>,
    /// State of that file when the model was read from it, or last written to it.
    pub(crate) stamp: Arc<Mutex<Option<Stamp>>>,
    pub(crate) read: Vec<Diagnostic>,
    /// Findings of inference.
    pub(crate) inferred: Vec<Diagnostic>,
    /// True if the ports that the file declares are out of date.
    pub(crate) refresh_ports: bool,
    /// True if the state differs from the file.
    pub(crate) edited: bool,
    /// The owner of its weights in memory.
    pub(crate) keeper: Arc<Keeper>,
    lines: OnceLock<Lines>,
    names: OnceLock<Names>,
    shapes: OnceLock<Arc<Shapes>>,
}

impl State {
    /// Reads a text, opens its weights unless it has errors, and infers types and shapes.
    pub(crate) fn read(
        file: String,
        path: Option<PathBuf>,
        text: String,
        weights: impl FnOnce() -> Result<(Weights, Arc<Keeper>), Failure>,
    ) -> Result<Self, Failure> {
        let source = Arc::new(text);
        let reading = xml::parse(source.clone());
        let diagnostics = Diagnostics { file, source, list: reading.diagnostics };
        let (Some(mut model), false) = (reading.model, diagnostics.has_errors()) else {
            return Err(Failure::model(&diagnostics));
        };
        let (weights, keeper) = weights()?;
        model.set_weights(weights);
        let mut state = Self::of(model, diagnostics.file, path, diagnostics.list);
        state.keeper = keeper;
        Ok(state)
    }

    pub(crate) fn of(mut model: typelift::Model, file: String, path: Option<PathBuf>, read: Vec<Diagnostic>) -> Self {
        let inferred = typelift::infer(&mut model);
        let (lines, names, shapes) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (keeper, stamp) = (Arc::default(), Arc::default());
        let edited = false;
        Self { model, file, path, stamp, read, inferred, refresh_ports: false, edited, keeper, lines, names, shapes }
    }

    /// Records that the state differs from the file, and drops the name index.
    pub(crate) fn was_edited(&mut self) {
        self.edited = true;
        self.names = OnceLock::new();
        self.shapes = OnceLock::new();
    }

    /// The open lengths of the current state.
    pub(crate) fn shapes(&self) -> &Shapes {
        self.shapes.get_or_init(|| Arc::new(typelift::shapes(&self.model)))
    }

    pub(crate) fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::new(self.model.source().clone()))
    }

    pub(crate) fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::of(&self.model))
    }

    pub(crate) fn diagnostics(&self, list: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics { file: self.file.clone(), source: self.model.source().clone(), list }
    }

    pub(crate) fn check(&self, target: Option<Release>) -> Diagnostics {
        let found = self.read.iter().chain(&self.inferred).cloned().collect();
        let weights = self.path.as_deref().map_or(NeedForWeights::Optional, NeedForWeights::of);
        let checking = Checking { target, weights, ..Checking::default() };
        let mut found = checking.check_inferred(&self.model, None, found, !self.edited);
        if self.refresh_ports {
            // The ports of the old text are not written again.
            found.retain(|it| it.code != Code::StalePort);
        }
        self.diagnostics(found)
    }

    /// Infers types and shapes after an edit, and fails if the edit causes new errors.
    pub(crate) fn infer(&mut self, changed: &[LayerId]) -> Result<(), Failure> {
        let mut found = typelift::infer(&mut self.model);
        typelift::edit::inputs_outputs::trace_changes(self.model.graph(), changed, &mut found);
        let new: Vec<_> = Known::errors(&self.inferred).compare(&found).new.into_iter().cloned().collect();
        if !new.is_empty() {
            return Err(Failure::model(&self.diagnostics(new)));
        }
        self.inferred = found;
        Ok(())
    }

    pub(crate) fn options(&self, canonical: bool) -> WriteOptions {
        WriteOptions { canonical, refresh_ports: self.refresh_ports, ..WriteOptions::default() }
    }

    pub(crate) fn convert(&mut self, conversion: &Conversion) -> Result<Converted, Failure> {
        let found = self.read.iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect();
        let converted = match conversion.run_after(&mut self.model, found) {
            Ok(converted) => converted,
            Err(ConvertError::Refused(mut found)) => {
                found.retain(Diagnostic::is_error);
                return Err(Failure::model(&self.diagnostics(found)));
            }
            Err(ConvertError::Interface(error)) => {
                let name = match &error {
                    InterfaceError::Unknown { name, .. } => name.clone(),
                    _ => String::new(),
                };
                return Err(refused(self, &name, error));
            }
            Err(error) => return Err(error.into()),
        };
        self.refresh_ports |= converted.refresh_ports;
        self.inferred = typelift::infer(&mut self.model);
        Ok(converted)
    }
}

/// The failure for an input or output that cannot be changed, with a similar name if there is one.
pub(crate) fn refused(state: &State, name: &str, error: InterfaceError) -> Failure {
    match error {
        InterfaceError::Unknown { .. } => Failure::unknown(&state.model, name, &error),
        error => error.into(),
    }
}
