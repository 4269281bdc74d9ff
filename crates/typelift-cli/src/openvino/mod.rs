//! An installed OpenVINO, run by a process of Python.

mod child;

use std::path::{Path, PathBuf};

use child::{Reply, Running};
use serde_json::{Value, json};
use typelift_run::verify::{Bytes, RunError, Runner, Runtime, Setting, Source, Tensor};

/// The script that runs models. The Python package has it too.
pub(crate) const SCRIPT: &str = include_str!("runner.py");

/// The environment variable that names a Python.
const VARIABLE: &str = "TYPELIFT_PYTHON";

/// How to find an installed OpenVINO
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PythonArgs {
    /// The Python that has openvino installed. Without it TYPELIFT_PYTHON, else python3
    #[arg(long, value_name = "PYTHON")]
    pub(crate) python: Option<PathBuf>,
}

impl PythonArgs {
    /// Returns a runner that starts this Python when it is needed. A reply may take `seconds`.
    pub(crate) fn runner(&self, seconds: u64) -> Process {
        let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = self.python.clone().or(variable);
        let pythons = named.map_or_else(|| vec!["python3".into(), "python".into()], |python| vec![python]);
        Process { pythons, seconds, running: None, next: 0 }
    }
}

/// OpenVINO in a process of its own.
pub(crate) struct Process {
    pythons: Vec<PathBuf>,
    seconds: u64,
    running: Option<Running>,
    /// The key of the next model.
    next: u64,
}

impl Process {
    /// Asks for something that belongs to a running process; starts one where there is none.
    fn ask(&mut self, head: Value, blobs: &[&[u8]]) -> Result<Reply, RunError> {
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        let running = self.running.as_mut().ok_or_else(|| RunError::Broken("the runtime did not start".to_owned()))?;
        let asked = running.ask(head, blobs, self.seconds);
        if asked.is_err() {
            // The models that the process had loaded are lost.
            self.running = None;
        }
        let reply = asked?;
        match reply.text("error") {
            Some(text) => Err(RunError::Refused(short(text))),
            None => Ok(reply),
        }
    }

    /// Starts the first Python that has OpenVINO.
    fn start(&self) -> Result<Running, RunError> {
        let mut tried = Vec::new();
        for python in &self.pythons {
            match self.started(python) {
                Ok(running) => return Ok(running),
                Err(reason) => tried.push(format!("`{}` ({reason})", python.display())),
            }
        }
        Err(RunError::Missing(format!("no Python with OpenVINO was found: tried {}", tried.join(" and "))))
    }

    /// Starts a Python and waits until it has imported OpenVINO. The error is the reason in a few words.
    fn started(&self, python: &Path) -> Result<Running, String> {
        let mut running = Running::start(python).map_err(|error| typelift::findings::reason(&error))?;
        let reply = running.ask(json!({ "do": "hello" }), &[], self.seconds).map_err(|error| match error {
            RunError::Crashed(reason) => format!("it ended, {reason}"),
            error => error.to_string(),
        })?;
        match reply.text("missing").or_else(|| reply.text("error")) {
            Some(reason) => Err(reason.to_owned()),
            None => Ok(running),
        }
    }
}

/// Returns the text of an error of OpenVINO without the places in its source code.
fn short(text: &str) -> String {
    let is_place = |line: &&str| !line.starts_with("Exception from src/") && !line.trim().is_empty();
    let lines: Vec<&str> = text.lines().filter(is_place).collect();
    if lines.is_empty() { text.trim().to_owned() } else { lines.join("\n") }
}

impl Runner for Process {
    fn describe(&mut self, device: &str) -> Result<Runtime, RunError> {
        let reply = self.ask(json!({ "do": "describe", "device": device }), &[])?;
        let version = reply.text("version").unwrap_or_default().to_owned();
        Ok(Runtime { version, device: device.to_owned(), full_name: reply.text("device").map(str::to_owned) })
    }

    fn load(&mut self, source: &Source, setting: &Setting) -> Result<u64, RunError> {
        self.next += 1;
        // A path is sent as bytes, because it need not be text.
        let (is_path, weights) = match &source.weights {
            Bytes::File(path) => (true, path.as_os_str().as_encoded_bytes()),
            Bytes::Memory(bytes) => (false, &bytes[..]),
        };
        let mut config = json!({});
        if let Some(hint) = &setting.hint {
            config["INFERENCE_PRECISION_HINT"] = hint.as_str().into();
        }
        let head = json!({
            "do": "load", "key": self.next, "is_path": is_path, "device": setting.device, "config": config,
            "extension": source.needs_extension,
        });
        self.ask(head, &[source.text.as_bytes(), weights])?;
        Ok(self.next)
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
        if self.running.is_none() {
            return Err(RunError::Broken("the process that had the model ended".to_owned()));
        }
        let described: Vec<Value> =
            inputs.iter().map(|tensor| json!({ "type": tensor.element_type.name(), "shape": tensor.dims })).collect();
        let blobs: Vec<&[u8]> = inputs.iter().map(|tensor| tensor.bytes.as_slice()).collect();
        let reply = self.ask(json!({ "do": "run", "key": key, "inputs": described, "first": is_first }), &blobs)?;
        Ok(reply.tensors()?.into_iter().map(|(_, tensor)| tensor).collect())
    }

    fn release(&mut self, key: u64) {
        if self.running.is_some() {
            let _released = self.ask(json!({ "do": "drop", "key": key }), &[]);
        }
    }

    fn arrays(&mut self, path: &Path) -> Result<Vec<(String, Tensor)>, RunError> {
        self.ask(json!({ "do": "arrays" }), &[path.as_os_str().as_encoded_bytes()])?.tensors()
    }
}
