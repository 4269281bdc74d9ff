//! An installed OpenVINO, run by a process of Python.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use typelift::promote::ElementType;
use typelift_run::verify::{Bytes, RunError, Runner, Runtime, Setting, Source, Tensor};

/// The script that runs models. The Python package has it too.
pub(crate) const SCRIPT: &str = include_str!("runner.py");

/// The environment variable that names a Python.
const VARIABLE: &str = "TYPELIFT_PYTHON";
/// The largest header of a reply, in bytes.
const MOST_HEAD: u64 = 1 << 28;

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

struct Running {
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<io::Result<Reply>>,
    /// The end of its standard error.
    said: Arc<Mutex<VecDeque<u8>>>,
}

struct Reply {
    head: Value,
    blobs: Vec<Vec<u8>>,
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

/// Variables with folders in which a program, a module or a library is looked for.
const SEARCH_PATHS: [&str; 4] = ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// Returns the command that runs the script, with no code from the current folder: it may be somebody else's.
///
/// Python 3.11 leaves that folder out of its search path by `PYTHONSAFEPATH`. Older versions put it there as an empty
/// part, which is removed before anything is imported. The parts of the variables are read before that.
fn python_command(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg("-c").arg(format!("import sys; sys.path[:] = filter(None, sys.path)\n{SCRIPT}"));
    command.env("PYTHONSAFEPATH", "1");
    for variable in SEARCH_PATHS {
        let Some(value) = std::env::var_os(variable) else { continue };
        match std::env::join_paths(std::env::split_paths(&value).filter(|part| part.is_absolute())) {
            Ok(parts) if !parts.is_empty() => command.env(variable, parts),
            _ => command.env_remove(variable),
        };
    }
    command
}

impl Running {
    fn start(python: &Path) -> io::Result<Self> {
        let mut command = python_command(python);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (requests, replies, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, receiver) = channel();
        if let Some(mut replies) = replies {
            thread::Builder::new().spawn(move || {
                loop {
                    let reply = read_reply(&mut replies);
                    let is_over = reply.is_err();
                    if sender.send(reply).is_err() || is_over {
                        break;
                    }
                }
            })?;
        }
        if let Some(errors) = errors {
            let said = said.clone();
            thread::Builder::new().spawn(move || keep_end(errors, &said))?;
        }
        Ok(Self { child, requests, replies: receiver, said })
    }

    fn ask(&mut self, mut head: Value, blobs: &[&[u8]], seconds: u64) -> Result<Reply, RunError> {
        head["blobs"] = blobs.iter().map(|blob| blob.len()).collect();
        let text = head.to_string();
        let mut write = || -> io::Result<()> {
            let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            requests.write_all(&(text.len() as u64).to_le_bytes())?;
            requests.write_all(text.as_bytes())?;
            blobs.iter().try_for_each(|blob| requests.write_all(blob))?;
            requests.flush()
        };
        // A process that ended says why when its reply is read.
        let written = write();
        match self.replies.recv_timeout(Duration::from_secs(seconds)) {
            Ok(Ok(reply)) => written.map(|()| reply).map_err(|error| RunError::Broken(error.to_string())),
            Err(RecvTimeoutError::Timeout) => Err(RunError::TimedOut(seconds)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(RunError::Crashed(self.reason())),
        }
    }

    /// Returns why the process ended, with the last lines that it printed.
    fn reason(&mut self) -> String {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let said = self.said.lock().map(|said| said.iter().copied().collect::<Vec<u8>>()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("; ");
        if last.is_empty() { status } else { format!("{status}: {last}") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests = None;
        // A process that is busy does not see that its input ended.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Keeps the last bytes of a stream.
fn keep_end(mut stream: impl Read, said: &Mutex<VecDeque<u8>>) {
    const MOST: usize = 4096;
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if let Ok(mut said) = said.lock() {
            said.extend(&buffer[..count]);
            let extra = said.len().saturating_sub(MOST);
            said.drain(..extra);
        }
    }
}

fn read_reply(stream: &mut impl Read) -> io::Result<Reply> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST_HEAD {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let head: Value = serde_json::from_slice(&exactly(stream, length)?)?;
    let sizes = head.get("blobs").and_then(Value::as_array).cloned().unwrap_or_default();
    let blobs =
        sizes.iter().map(|size| exactly(stream, size.as_u64().unwrap_or_default())).collect::<io::Result<_>>()?;
    Ok(Reply { head, blobs })
}

fn exactly(stream: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

impl Reply {
    fn text(&self, name: &str) -> Option<&str> {
        self.head.get(name).and_then(Value::as_str)
    }

    /// Returns the tensors of a reply, each with its name if it has one.
    fn tensors(self) -> Result<Vec<(String, Tensor)>, RunError> {
        let described = self.head.get("outputs").and_then(Value::as_array).cloned().unwrap_or_default();
        let tensor = |(value, bytes): (Value, Vec<u8>)| {
            let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let ty = value.get("type").and_then(Value::as_str).unwrap_or_default();
            let ty = ElementType::from_name(ty)
                .ok_or_else(|| RunError::Broken(format!("the runtime gave a tensor of `{ty}`")))?;
            let dims = value.get("shape").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let dims = dims.iter().map(|dim| dim.as_u64().unwrap_or_default() as usize).collect();
            Ok((name, Tensor::new(ty, dims, bytes)))
        };
        described.into_iter().zip(self.blobs).map(tensor).collect()
    }
}

impl Runner for Process {
    fn describe(&mut self, device: &str) -> Result<Runtime, RunError> {
        let reply = self.ask(json!({ "do": "describe", "device": device }), &[])?;
        let version = reply.text("version").unwrap_or_default().to_owned();
        Ok(Runtime { version, device: device.to_owned(), full_name: reply.text("device").map(str::to_owned) })
    }

    fn load(&mut self, source: &Source, setting: &Setting) -> Result<u64, RunError> {
        self.next += 1;
        let (path, bytes): (_, &[u8]) = match &source.weights {
            Bytes::File(path) => (path.to_str(), &[]),
            Bytes::Memory(bytes) => (None, bytes),
        };
        let mut config = json!({});
        if let Some(hint) = &setting.hint {
            config["INFERENCE_PRECISION_HINT"] = hint.as_str().into();
        }
        let head = json!({
            "do": "load", "key": self.next, "weights": path, "device": setting.device, "config": config,
            "extension": source.needs_extension,
        });
        self.ask(head, &[source.text.as_bytes(), bytes])?;
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
        self.ask(json!({ "do": "arrays", "path": path }), &[])?.tensors()
    }
}
