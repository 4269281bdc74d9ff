//! Two models run on the `openvino` module of this process.

use std::cell::RefCell;
use std::ffi::CString;
use std::path::Path;

use pyo3::exceptions::{PyImportError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyModule};
use typelift::promote::ElementType;
use typelift_run::verify::{Bytes, RunError, Runner, Runtime, Setting, Source, Tensor, Verification, VerifyError};
use typelift_cli::report;

use crate::failure::{self, Failure};
use crate::model::Model;

/// Runs two models and returns the report as JSON and as text.
pub(crate) fn verify(
    py: Python<'_>,
    a: &Bound<'_, Model>,
    b: &Bound<'_, Model>,
    options: &str,
) -> PyResult<(String, String)> {
    let (a, b) = (a.get().state(), b.get().state());
    let verification = Verification::from_options(options).map_err(|error| Failure::Value(error).raise(py))?;
    let mut runner = Module { module: None, next: 0, raised: RefCell::new(None) };
    let report = verification.run(&a.model, &b.model, &mut runner);
    if let Some(raised) = runner.raised.take() {
        return Err(raised);
    }
    let report = report.map_err(|error| match error {
        VerifyError::Runtime(RunError::Missing(reason)) => {
            PyImportError::new_err(format!("{reason}; install it with `pip install openvino`"))
        }
        VerifyError::Inputs(_) | VerifyError::Unpaired(_) | VerifyError::NoShapes => {
            Failure::Value(error.to_string()).raise(py)
        }
        error => Failure::Fault(error.to_string()).raise(py),
    })?;
    let json = failure::json(&report).map_err(|failure| failure.raise(py))?;
    Ok((json, report::verify_text(&report)))
}

/// The `openvino` module behind the runner script that the program starts as a process.
struct Module {
    module: Option<Py<PyAny>>,
    next: u64,
    /// A Ctrl-C, which is raised once the work has ended.
    raised: RefCell<Option<PyErr>>,
}

impl Module {
    fn call<T>(&mut self, work: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, RunError> {
        Python::attach(|py| {
            let runner = self.runner(py).map_err(|error| self.refusal(py, error))?;
            work(py, &runner).map_err(|error| self.refusal(py, error))
        })
    }

    fn runner<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(known) = &self.module {
            return Ok(known.bind(py).clone());
        }
        let code = CString::new(report::RUNNER)?;
        let module = PyModule::from_code(py, &code, c"typelift/_runner.py", c"typelift._runner")?;
        let runner = module.getattr("Runner")?.call0()?;
        self.module = Some(runner.clone().unbind());
        Ok(runner)
    }

    fn refusal(&self, py: Python<'_>, error: PyErr) -> RunError {
        let text = error.value(py).to_string();
        if error.is_instance_of::<PyImportError>(py) {
            return RunError::Missing(text);
        }
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            *self.raised.borrow_mut() = Some(error);
            return RunError::Broken(text);
        }
        RunError::Refused(text)
    }
}

fn tensors(values: Vec<(String, Vec<usize>, Vec<u8>)>) -> Result<Vec<Tensor>, RunError> {
    let of = |(ty, dims, bytes): (String, Vec<usize>, Vec<u8>)| {
        let ty =
            ElementType::from_name(&ty).ok_or_else(|| RunError::Broken(format!("openvino gave a tensor of `{ty}`")))?;
        Ok(Tensor::new(ty, dims, bytes))
    };
    values.into_iter().map(of).collect()
}

impl Runner for Module {
    fn describe(&mut self, device: &str) -> Result<Runtime, RunError> {
        let described = self.call(|_, runner| {
            let names = runner.call_method1("describe", (device,))?;
            Ok((names.get_item("version")?.extract()?, names.get_item("device")?.extract()?))
        });
        let (version, full_name) = described?;
        let mut runtime = Runtime::default();
        runtime.version = version;
        device.clone_into(&mut runtime.device);
        runtime.full_name = full_name;
        Ok(runtime)
    }

    fn load(&mut self, source: &Source, setting: &Setting) -> Result<u64, RunError> {
        self.next += 1;
        let key = self.next;
        self.call(|py, runner| {
            let config = PyDict::new(py);
            if let Some(hint) = &setting.hint {
                config.set_item("INFERENCE_PRECISION_HINT", hint)?;
            }
            let weights = match &source.weights {
                Bytes::File(path) => path.to_string_lossy().into_owned().into_pyobject(py)?.into_any(),
                Bytes::Memory(bytes) => PyBytes::new(py, bytes).into_any(),
            };
            let text = PyBytes::new(py, source.text.as_bytes());
            let arguments = (key, text, weights, &setting.device, config, source.needs_extension);
            runner.call_method1("load", arguments).map(drop)
        })?;
        Ok(key)
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
        let values = self.call(|py, runner| {
            let value =
                |tensor: &Tensor| (tensor.element_type.name(), tensor.dims.clone(), PyBytes::new(py, &tensor.bytes));
            let inputs: Vec<_> = inputs.iter().map(value).collect();
            runner.call_method1("run", (key, inputs, is_first))?.extract()
        })?;
        tensors(values)
    }

    fn release(&mut self, key: u64) {
        // A model that cannot be released is released with the runner.
        let _released = self.call(|_, runner| runner.call_method1("drop", (key,)).map(drop));
    }

    fn arrays(&mut self, path: &Path) -> Result<Vec<(String, Tensor)>, RunError> {
        let values: Vec<(String, String, Vec<usize>, Vec<u8>)> =
            self.call(|_, runner| runner.call_method1("arrays", (path.to_string_lossy(),))?.extract())?;
        let (names, values): (Vec<_>, Vec<_>) =
            values.into_iter().map(|(name, ty, dims, bytes)| (name, (ty, dims, bytes))).unzip();
        Ok(names.into_iter().zip(tensors(values)?).collect())
    }
}
