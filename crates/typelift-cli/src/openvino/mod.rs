//! An installed OpenVINO, run by a process of Python.

mod child;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use child::{Reply, Running};
use serde_json::{Value, json};
use typelift_run::verify::{Bytes, Loaded, RunError, Runner, Runtime, Setting, Source, Tensor};

/// The script that runs models. The Python package has it too.
pub(crate) const SCRIPT: &str = include_str!("runner.py");

const VARIABLE: &str = "TYPELIFT_PYTHON";

/// Installations of OpenVINO, each with a process that is started when it is needed.
pub(crate) struct Installations {
    /// Seconds that a reply may take.
    seconds: u64,
    /// The processes, by the Python that was named for a side.
    processes: Vec<(Option<PathBuf>, Process)>,
    /// The process of each model, by the key of the model.
    models: HashMap<u64, usize>,
    /// The key of the next model.
    next: u64,
}

impl Installations {
    pub(crate) fn new(seconds: u64) -> Self {
        Self { seconds, processes: Vec::new(), models: HashMap::new(), next: 0 }
    }

    fn of(&mut self, python: Option<&Path>) -> usize {
        let known = self.processes.iter().position(|(known, _)| known.as_deref() == python);
        known.unwrap_or_else(|| {
            let process = Process { pythons: pythons(python), seconds: self.seconds, running: None };
            self.processes.push((python.map(Path::to_path_buf), process));
            self.processes.len() - 1
        })
    }

    fn any(&mut self) -> &mut Process {
        let at = if self.processes.is_empty() { self.of(None) } else { 0 };
        &mut self.processes[at].1
    }

    pub(crate) fn pack(&mut self, arrays: &[(String, Tensor)]) -> Result<Vec<u8>, RunError> {
        let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
        let tensors: Vec<Value> = arrays.iter().map(|(_, tensor)| described(tensor)).collect();
        let blobs: Vec<&[u8]> = arrays.iter().map(|(_, tensor)| tensor.bytes.as_slice()).collect();
        let reply = self.any().ask(json!({ "do": "pack", "names": names, "inputs": tensors }), &blobs)?;
        Ok(reply.blobs.into_iter().next().unwrap_or_default())
    }
}

/// The Pythons that are tried: the one that was named, else that of the variable, else those on the path.
fn pythons(named: Option<&Path>) -> Vec<PathBuf> {
    let named = named.map(Path::to_path_buf).or_else(|| crate::process::variable(VARIABLE));
    named.map_or_else(|| vec!["python3".into(), "python".into()], |python| vec![python])
}

struct Process {
    pythons: Vec<PathBuf>,
    seconds: u64,
    running: Option<Running>,
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
        match (reply.text("error").map(short), reply.text("help")) {
            (Some(reason), Some(help)) => Err(RunError::Unknown { reason, help: help.to_owned() }),
            (Some(reason), None) => Err(RunError::Refused(reason)),
            (None, _) => Ok(reply),
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
        let near = self
            .pythons
            .iter()
            .filter(|it| it.components().count() > 1)
            .find_map(|it| crate::input::near_file(it, |_| true));
        let near = near.map_or(String::new(), |near| format!("; did you mean `{}`?", near.display()));
        Err(RunError::Missing(format!("no Python with OpenVINO was found: tried {}{near}", tried.join(" and "))))
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

/// The text of an error of OpenVINO without the places in its source code.
fn short(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("Exception from src/") && !line.trim().is_empty()).collect();
    if lines.is_empty() { text.trim().to_owned() } else { lines.join("\n") }
}

fn described(tensor: &Tensor) -> Value {
    json!({ "type": tensor.element_type.name(), "shape": tensor.dims })
}

impl Runner for Installations {
    fn describe(&mut self, setting: &Setting) -> Result<Runtime, RunError> {
        let at = self.of(setting.python.as_deref());
        let reply = self.processes[at].1.ask(json!({ "do": "describe", "device": setting.device }), &[])?;
        let version = reply.text("version").unwrap_or_default().to_owned();
        Ok(Runtime { version, full_name: reply.text("device").map(str::to_owned) })
    }

    fn load(&mut self, source: &Source, setting: &Setting) -> Result<Loaded, RunError> {
        let at = self.of(setting.python.as_deref());
        self.next += 1;
        let key = self.next;
        // A path is sent as bytes, because it need not be text.
        let (is_path, weights) = match &source.weights {
            Bytes::File(path) => (true, path.as_os_str().as_encoded_bytes()),
            Bytes::Memory(bytes) => (false, &bytes[..]),
        };
        let head = json!({
            "do": "load", "key": key, "is_path": is_path, "device": setting.device, "config": setting.config,
            "defaults": setting.defaults, "extension": source.needs_extension,
        });
        let reply = self.processes[at].1.ask(head, &[source.text.as_bytes(), weights])?;
        self.models.insert(key, at);
        let config = reply.head.get("config").cloned().unwrap_or_default();
        let config = serde_json::from_value(config).map_err(|error| RunError::Broken(error.to_string()))?;
        Ok(Loaded { key, config })
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
        let process = self.models.get(&key).map(|&at| &mut self.processes[at].1);
        let Some(process) = process.filter(|process| process.running.is_some()) else {
            return Err(RunError::Broken("the process that had the model ended".to_owned()));
        };
        let tensors: Vec<Value> = inputs.iter().map(described).collect();
        let blobs: Vec<&[u8]> = inputs.iter().map(|tensor| tensor.bytes.as_slice()).collect();
        let reply = process.ask(json!({ "do": "run", "key": key, "inputs": tensors, "first": is_first }), &blobs)?;
        Ok(reply.tensors()?.into_iter().map(|(_, tensor)| tensor).collect())
    }

    fn release(&mut self, key: u64) {
        let process = self.models.remove(&key).map(|at| &mut self.processes[at].1);
        if let Some(process) = process.filter(|process| process.running.is_some()) {
            let _released = process.ask(json!({ "do": "drop", "key": key }), &[]);
        }
    }

    fn arrays(&mut self, path: &Path, most: u64) -> Result<Vec<(String, Tensor)>, RunError> {
        self.any().ask(json!({ "do": "arrays", "most": most }), &[path.as_os_str().as_encoded_bytes()])?.tensors()
    }
}
