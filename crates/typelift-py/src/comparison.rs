//! Two models run on the `openvino` module of this process.

use std::cell::RefCell;
use std::ffi::CString;
use std::path::Path;

use pyo3::exceptions::{PyImportError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyModule};
use typelift::promote::ElementType;
use typelift_cli::report;
use typelift_run::verify::{
    Bytes, Loaded, RunError, Runner, Runtime, Setting, Source, Tensor, Verification, VerifyError,
};

use crate::failure::{self, Failure};
use crate::model::Model;

/// Runs two models and returns the report as JSON and as text.
pub(crate) fn verify(
    py: Python<'_>,
    a: &Bound<'_, Model>,
    b: Option<&Bound<'_, Model>>,
    options: &str,
) -> PyResult<(String, String)> {
    let (a, b) = (a.get().state(), b.map(|b| b.get().state()));
    let verification = Verification::from_options(options).map_err(|error| Failure::Value(error).raise(py))?;
    let others = Box::new(report::installations(SECONDS));
    let mut runner = Module { module: None, next: 0, others, raised: RefCell::new(None) };
    let report = verification.run(&a.model, b.as_ref().map(|b| &b.model), &mut runner);
    if let Some(raised) = runner.raised.take() {
        return Err(raised);
    }
    let report = report.map_err(|error| match error {
        VerifyError::Runtime(RunError::Missing(reason)) => {
            PyImportError::new_err(format!("{reason}; install it with `pip install openvino`"))
        }
        VerifyError::NothingDiffers => {
            let help = "give b, expect, or an option for one side, such as config_b";
            Failure::Value(format!("{error}; {help}")).raise(py)
        }
        VerifyError::Run { error: RunError::Unknown { ref help, .. }, .. } => {
            Failure::Fault(format!("{error}\nhelp: {help}")).raise(py)
        }
        VerifyError::Inputs(_)
        | VerifyError::Unpaired(_)
        | VerifyError::Lengths { .. }
        | VerifyError::NoShapes
        | VerifyError::NotTested { .. }
        | VerifyError::NotTaken { .. } => Failure::Value(error.to_string()).raise(py),
        error => Failure::Fault(error.to_string()).raise(py),
    })?;
    let json = failure::json(&report).map_err(|failure| failure.raise(py))?;
    Ok((json, report::verify_text(&report)))
}

/// Seconds that a process may take for a reply.
const SECONDS: u64 = 600;
/// Mark of the keys of models that another installation has.
const OTHER: u64 = 1 << 63;

/// The `openvino` module behind the runner script that the program starts as a process. Other installations have a process.
struct Module {
    module: Option<Py<PyAny>>,
    next: u64,
    others: Box<dyn Runner>,
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
        match error.value(py).getattr("help").and_then(|help| help.extract()) {
            Ok(help) => RunError::Unknown { reason: text, help },
            Err(_) => RunError::Refused(text),
        }
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
    fn describe(&mut self, setting: &Setting) -> Result<Runtime, RunError> {
        if setting.python.is_some() {
            return self.others.describe(setting);
        }
        let described = self.call(|_, runner| {
            let names = runner.call_method1("describe", (&setting.device,))?;
            Ok((names.get_item("version")?.extract()?, names.get_item("device")?.extract()?))
        });
        let (version, full_name) = described?;
        let mut runtime = Runtime::default();
        runtime.version = version;
        runtime.full_name = full_name;
        Ok(runtime)
    }

    fn load(&mut self, source: &Source, setting: &Setting) -> Result<Loaded, RunError> {
        if setting.python.is_some() {
            let loaded = self.others.load(source, setting)?;
            return Ok(Loaded { key: loaded.key | OTHER, ..loaded });
        }
        self.next += 1;
        let key = self.next;
        let config = self.call(|py, runner| {
            let weights = match &source.weights {
                Bytes::File(path) => path.as_os_str().into_pyobject(py)?.into_any(),
                Bytes::Memory(bytes) => PyBytes::new(py, bytes).into_any(),
            };
            let text = PyBytes::new(py, source.text.as_bytes());
            let Setting { device, config, defaults, .. } = setting;
            let arguments = (key, text, weights, device, config, defaults, source.needs_extension);
            runner.call_method1("load", arguments)?.extract()
        })?;
        Ok(Loaded { key, config })
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
        if key & OTHER != 0 {
            return self.others.run(key & !OTHER, inputs, is_first);
        }
        let values = self.call(|py, runner| {
            let value =
                |tensor: &Tensor| (tensor.element_type.name(), tensor.dims.clone(), PyBytes::new(py, &tensor.bytes));
            let inputs: Vec<_> = inputs.iter().map(value).collect();
            runner.call_method1("run", (key, inputs, is_first))?.extract()
        })?;
        tensors(values)
    }

    fn release(&mut self, key: u64) {
        if key & OTHER != 0 {
            return self.others.release(key & !OTHER);
        }
        // A model that cannot be released is released with the runner.
        let _released = self.call(|_, runner| runner.call_method1("drop", (key,)).map(drop));
    }

    fn arrays(&mut self, path: &Path, most: u64) -> Result<Vec<(String, Tensor)>, RunError> {
        let values: Vec<(String, String, Vec<usize>, Vec<u8>)> =
            self.call(|_, runner| runner.call_method1("arrays", (path.as_os_str(), most))?.extract())?;
        let (names, values): (Vec<_>, Vec<_>) =
            values.into_iter().map(|(name, ty, dims, bytes)| (name, (ty, dims, bytes))).unzip();
        Ok(names.into_iter().zip(tensors(values)?).collect())
    }
}
