//! Conditions that a candidate of a reduction must meet.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use regex_lite::Regex;
use typelift::findings::Code;
use typelift::xml::{self, WriteOptions};
use typelift::{Checking, LayerId, Model, SaveOptions, WeightsMode};
use typelift_run::verify::{RunError, Runner, Setting, Source, Verification, VerifyError};

use super::{Asked, is_asked};
use crate::failure::Failure;
use crate::openvino::Installations;
use crate::process::{Group, Output, Part};
use crate::verify::{self, no_runtime};

/// Limit on the output of a command that is kept, in bytes.
const MOST_OUTPUT: usize = 1 << 24;

/// Reason why a reduction ends before it is done.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// Ctrl-C.
    Asked,
    /// A command or a runtime cannot be started.
    Failed(String),
    NoRuntime(String),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Missing(reason) => Self::NoRuntime(reason),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Stop {
    pub(super) fn failure(self) -> Failure {
        match self {
            Self::Asked => Failure::new("stopped before the first run ended"),
            Self::Failed(message) => Failure::new(message),
            Self::NoRuntime(reason) => no_runtime(reason),
        }
    }
}

/// A condition that the original meets.
pub(super) trait Wanted: Sync {
    /// Sees how the original behaves. Returns why it cannot be reduced, if so.
    fn learn(&self, original: &Model) -> Result<Option<String>, Failure>;

    fn is_interesting(&self, candidate: &Model) -> Result<bool, Stop>;

    fn succeeds(&self) -> bool {
        false
    }

    fn other_for(&self, _candidate: &Model) -> Option<Model> {
        None
    }

    fn is_interesting_with(&self, candidate: &Model, _other: &Model) -> Result<bool, Stop> {
        self.is_interesting(candidate)
    }
}

/// Writes a model in the style of OpenVINO, with the constants that it uses.
pub(super) fn save(model: &Model, path: &Path) -> Result<(), Failure> {
    let mut options = SaveOptions::default();
    options.text = style();
    options.weights = WeightsMode::Compact;
    model.save_with(path, options).map_err(|error| Failure::new(error.to_string()).of(path))
}

fn style() -> WriteOptions {
    WriteOptions { canonical: true, refresh_ports: true, ..WriteOptions::default() }
}

pub(super) struct Finding {
    pub(super) code: Code,
    pub(super) stop: Asked,
}

impl Wanted for Finding {
    fn learn(&self, original: &Model) -> Result<Option<String>, Failure> {
        let codes = codes(original);
        if codes.contains(&self.code) {
            return Ok(None);
        }
        let codes: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
        let others = if codes.is_empty() { String::new() } else { format!("; it has {}", codes.join(", ")) };
        Ok(Some(format!("the model has no finding `{}`{others}", self.code)))
    }

    fn is_interesting(&self, candidate: &Model) -> Result<bool, Stop> {
        if is_asked(&self.stop) { Err(Stop::Asked) } else { Ok(codes(candidate).contains(&self.code)) }
    }
}

fn codes(model: &Model) -> BTreeSet<Code> {
    let text = Arc::new(xml::write(model, style()));
    Checking::default().run(&text, model.weights()).findings.iter().map(|finding| finding.code).collect()
}

/// A command with its exit status, and what it prints.
pub(super) struct Command {
    parts: Vec<OsString>,
    matches: Option<Regex>,
    seconds: u64,
    stop: Asked,
    expected: OnceLock<ExitStatus>,
}

enum Ended {
    With(ExitStatus, Vec<u8>),
    TooLate,
}

impl Command {
    pub(super) fn new(parts: &[OsString], matches: Option<Regex>, seconds: u64, stop: Asked) -> Self {
        Self { parts: parts.to_vec(), matches, seconds, stop, expected: OnceLock::new() }
    }

    /// Runs the command on a candidate in a folder of its own.
    fn run(&self, candidate: &Model) -> Result<Ended, Stop> {
        if is_asked(&self.stop) {
            return Err(Stop::Asked);
        }
        let folder = private_folder()?;
        let path = folder.path().join("model.xml");
        save(candidate, &path).map_err(|failure| Stop::Failed(failure.text()))?;
        let (printed, out) = std::io::pipe()?;
        let err = out.try_clone()?;
        let mut parts = self.parts.iter().map(|part| with_path(part, &path));
        let program = parts.next().unwrap_or_default();
        let mut command = std::process::Command::new(&program);
        command.args(parts).stdin(Stdio::null()).stdout(out).stderr(err);
        let mut group = Group::start(&mut command).map_err(|error| {
            Stop::Failed(format!("cannot run `{}`: {}", program.to_string_lossy(), typelift::findings::reason(&error)))
        })?;
        // The command owns the other end of the pipe.
        drop(command);
        let printed = Output::of(printed, Part::First(MOST_OUTPUT))?;
        let (begin, limit) = (Instant::now(), Duration::from_secs(self.seconds));
        let ended = group.wait(|| begin.elapsed() > limit || is_asked(&self.stop))?;
        match ended {
            Some(status) => Ok(Ended::With(status, printed.text())),
            None if is_asked(&self.stop) => Err(Stop::Asked),
            None => Ok(Ended::TooLate),
        }
    }

    fn fits(&self, text: &[u8]) -> bool {
        self.matches.as_ref().is_none_or(|matches| matches.is_match(&String::from_utf8_lossy(text)))
    }
}

impl Wanted for Command {
    fn learn(&self, original: &Model) -> Result<Option<String>, Failure> {
        match self.run(original).map_err(Stop::failure)? {
            Ended::TooLate => Ok(Some(format!("COMMAND does not end within {} s on the original", self.seconds))),
            Ended::With(status, text) if is_not_started(&self.parts, status, &text) => {
                let text = String::from_utf8_lossy(&text);
                let reason = text.lines().find(|line| is_absence(line)).or(text.lines().last()).unwrap_or_default();
                Err(Failure::new(format!("COMMAND did not start: {reason}")).help("correct the command after --"))
            }
            Ended::With(_, text) if !self.fits(&text) => {
                Ok(Some("what COMMAND prints on the original does not match --match".to_owned()))
            }
            Ended::With(status, _) => {
                let _first = self.expected.set(status);
                Ok(None)
            }
        }
    }

    fn succeeds(&self) -> bool {
        self.expected.get().is_some_and(ExitStatus::success)
    }

    fn is_interesting(&self, candidate: &Model) -> Result<bool, Stop> {
        match self.run(candidate)? {
            Ended::TooLate => Ok(false),
            Ended::With(status, text) => Ok(self.expected.get() == Some(&status) && self.fits(&text)),
        }
    }
}

/// True if a line says that a script is not there.
fn is_absence(line: &str) -> bool {
    ["can't open", "cannot open", "Cannot find module", "not found"].iter().any(|words| line.contains(words))
}

/// True if a shell did not find the command, or an interpreter did not find its script.
fn is_not_started(parts: &[OsString], status: ExitStatus, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let is_absent = |part: &OsString| {
        part.to_str().is_some_and(|part: &str| part.len() > 2 && !part.contains("{}") && text.contains(part))
            && !Path::new(part).exists()
    };
    matches!(status.code(), Some(126 | 127))
        || !status.success() && is_absence(&text) && parts[1..].iter().any(is_absent)
}

/// Replaces `{}` by a path.
fn with_path(part: &OsString, path: &Path) -> OsString {
    match part.to_str() {
        Some("{}") => path.into(),
        Some(text) => text.replace("{}", &path.to_string_lossy()).into(),
        None => part.clone(),
    }
}

fn private_folder() -> std::io::Result<tempfile::TempDir> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has permissions to set"))]
    let mut folder = tempfile::Builder::new();
    #[cfg(unix)]
    folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    folder.tempdir()
}

/// Runtimes, one for each thread that asks at a time.
struct Pool<R> {
    start: Box<dyn Fn() -> R + Send + Sync>,
    free: Mutex<Vec<R>>,
}

impl<R> Pool<R> {
    fn new(start: impl Fn() -> R + Send + Sync + 'static) -> Self {
        Self { start: Box::new(start), free: Mutex::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut R) -> T) -> T {
        let free = self.free.lock().ok().and_then(|mut free| free.pop());
        let mut runtime = free.unwrap_or_else(|| (self.start)());
        let done = work(&mut runtime);
        if let Ok(mut free) = self.free.lock() {
            free.push(runtime);
        }
        done
    }
}

/// A refusal of OpenVINO to read or compile the model.
pub(super) struct Refused {
    setting: Setting,
    pool: Pool<Installations>,
    stop: Asked,
    expected: OnceLock<String>,
}

impl Refused {
    pub(super) fn new(setting: Setting, seconds: u64, stop: Asked) -> Self {
        Self { setting, pool: Pool::new(move || Installations::new(seconds)), stop, expected: OnceLock::new() }
    }

    /// The first line of the refusal; `None` if OpenVINO compiles the model.
    fn refusal(&self, model: &Model) -> Result<Option<String>, Stop> {
        if is_asked(&self.stop) {
            return Err(Stop::Asked);
        }
        let source = Source::of(model).map_err(|error| Stop::Failed(error.to_string()))?;
        self.pool.with(|process| match process.load(&source, &self.setting) {
            Ok(loaded) => {
                process.release(loaded.key);
                Ok(None)
            }
            Err(error) if error.is_of_model() => Ok(Some(first_line(&error))),
            Err(error) => Err(error.into()),
        })
    }
}

/// The first line of an error without the names in it.
fn first_line(error: &RunError) -> String {
    let text = match error {
        RunError::Crashed(reason) => return reason.split(':').take(2).collect::<Vec<_>>().join(":"),
        error => error.to_string(),
    };
    let line = text.lines().next().unwrap_or_default();
    // Names and numbers of layers, in whatever quotes, differ from candidate to candidate.
    let mut kept = String::new();
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' | '"' | '`' => is_quoted = !is_quoted,
            c if !is_quoted && !c.is_ascii_digit() => kept.push(c),
            _ => {}
        }
    }
    let words = kept.split_whitespace();
    words.filter(|word| !word.contains(['_', '/', '.', '[', ']'])).collect::<Vec<_>>().join(" ")
}

impl Wanted for Refused {
    fn learn(&self, original: &Model) -> Result<Option<String>, Failure> {
        let refusal = self.refusal(original).map_err(Stop::failure)?;
        let is_compiled = refusal.is_none();
        refusal.into_iter().for_each(|refusal| drop(self.expected.set(refusal)));
        Ok(is_compiled.then(|| "OpenVINO compiles the model".to_owned()))
    }

    fn is_interesting(&self, candidate: &Model) -> Result<bool, Stop> {
        Ok(self.refusal(candidate)?.as_ref() == self.expected.get())
    }
}

/// A difference from another model, which is cut like the candidate, or between two runs of the candidate.
pub(super) struct Differs<R> {
    other: Option<Other>,
    verification: Verification,
    pool: Pool<R>,
    stop: Asked,
}

struct Other {
    model: Model,
    /// The number of layers of the original.
    whole: usize,
    /// The layers of the other model, by those of the original.
    pairs: HashMap<LayerId, LayerId>,
}

impl<R: Runner> Differs<R> {
    pub(super) fn new(
        original: &Model,
        other: Option<Model>,
        mut verification: Verification,
        start: impl Fn() -> R + Send + Sync + 'static,
        stop: Asked,
    ) -> Self {
        let other = other.map(|model| Other {
            whole: typelift_run::reduce::layers(original),
            pairs: typelift::matched_layers(original, &model).into_iter().collect(),
            model,
        });
        verification.locates = false;
        Self { other, verification, pool: Pool::new(start), stop }
    }

    /// True if a candidate differs from its part of the other model. The inner error is that of a candidate that
    /// cannot be compared.
    fn compare(&self, candidate: &Model, other: Option<&Model>) -> Result<Result<bool, VerifyError>, Stop> {
        if is_asked(&self.stop) {
            return Err(Stop::Asked);
        }
        let mut verification = self.verification.clone();
        // A candidate may lack inputs of the original.
        verification.shapes.retain(|(name, _)| candidate.find_input(name).is_ok());
        match self.pool.with(|process| verification.run(candidate, other, process)) {
            Ok(report) => Ok(Ok(!report.same)),
            Err(VerifyError::Runtime(error)) => Err(error.into()),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl<R: Runner + Send> Wanted for Differs<R> {
    fn learn(&self, original: &Model) -> Result<Option<String>, Failure> {
        let compared = self.compare(original, self.other.as_ref().map(|other| &other.model)).map_err(Stop::failure)?;
        let who = if self.other.is_some() { "the models agree" } else { "both runs agree" };
        Ok((!compared.map_err(verify::failure)?).then(|| who.to_owned()))
    }

    fn is_interesting(&self, candidate: &Model) -> Result<bool, Stop> {
        let other = self.other_for(candidate);
        if self.other.is_some() && other.is_none() {
            return Ok(false);
        }
        Ok(self.compare(candidate, other.as_ref())?.unwrap_or(false))
    }

    fn is_interesting_with(&self, candidate: &Model, other: &Model) -> Result<bool, Stop> {
        Ok(self.compare(candidate, Some(other))?.unwrap_or(false))
    }

    fn other_for(&self, candidate: &Model) -> Option<Model> {
        let Other { model, whole, pairs } = self.other.as_ref()?;
        // A part has other outputs than the whole.
        if typelift_run::reduce::layers(candidate) == *whole {
            return Some(model.clone());
        }
        let mut part = typelift_run::reduce::part_like(model, candidate, pairs)?;
        let errors = typelift::infer(&mut part);
        errors.iter().all(|found| !found.is_error()).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use typelift::promote::ElementType;
    use typelift_run::reduce::Reduction;
    use typelift_run::verify::{Loaded, Runtime, Tensor};

    use super::*;

    /// A runtime in which each output of a model is the number of its layers of type Elu.
    #[derive(Default)]
    struct Counter(Vec<(f32, usize)>);

    impl Runner for Counter {
        fn describe(&mut self, _: &Setting) -> Result<Runtime, RunError> {
            Ok(Runtime::default())
        }

        fn load(&mut self, source: &Source, _: &Setting) -> Result<Loaded, RunError> {
            let model = Model::from_xml(source.text.clone()).map_err(|error| RunError::Refused(error.to_string()))?;
            let count = model.graph().layers().filter(|layer| layer.ty() == "Elu").count();
            self.0.push((count as f32, model.outputs().count()));
            Ok(Loaded { key: self.0.len() as u64 - 1, ..Loaded::default() })
        }

        fn run(&mut self, key: u64, _: &[Tensor], _: bool) -> Result<Vec<Tensor>, RunError> {
            let (value, outputs) = self.0[key as usize];
            let bytes = [value.to_le_bytes(); 2].concat();
            Ok(vec![Tensor::new(ElementType::F32, vec![2], bytes); outputs])
        }

        fn release(&mut self, _: u64) {}

        fn arrays(&mut self, _: &Path, _: u64) -> Result<Vec<(String, Tensor)>, RunError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn the_other_model_is_cut_like_the_candidate() {
        let model = |third: &str| {
            let text =
                format!("x = Parameter : f32[2]\na = Exp(x)\nb = {third}(a)\nc = Tanh(b)\nd = Abs(c)\nr = Result(d)\n");
            let mut model = Model::from_text(&text).unwrap();
            assert_eq!(typelift::infer(&mut model), []);
            model
        };
        let (one, other) = (model("ReLU"), model("Elu"));
        let differs = Differs::new(&one, Some(other), Verification::default(), Counter::default, Asked::default());
        assert_eq!(differs.learn(&one).map_err(|failure| failure.text()), Ok(None));
        let judge = |candidate: &Model| Ok::<_, Infallible>(differs.is_interesting(candidate).unwrap());
        let reduced = Reduction::default().run(&one, &judge).unwrap();
        assert_eq!(reduced.layers_after, 3, "Parameter, ReLU, Result: {}", reduced.model);
        let part = differs.other_for(&reduced.model).unwrap();
        assert!(part.graph().layers().any(|layer| layer.ty() == "Elu") && part.graph().len() == 3, "{part}");
        let same = Differs::new(&one, Some(one.clone()), Verification::default(), Counter::default, Asked::default());
        assert!(same.learn(&one).unwrap().is_some(), "models that agree are not reduced");
    }
}
