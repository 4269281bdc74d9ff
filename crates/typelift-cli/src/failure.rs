//! Failures caused by files and usage, not by the model.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use typelift::findings::{FileName, reason};

use crate::document;
use crate::render::{self, Remark};
use crate::status::Status;

/// Failure of a run. In a batch it ends only the work on one model.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// A wrong word of the command, and what is probably meant.
    slip: Option<Box<(String, String)>>,
    file: Option<PathBuf>,
    /// True if that file could not be read.
    is_unread: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The run ends with exit status 2.
    Failed,
    /// A refusal or a bug of this program, which ends the run with status 1.
    Faulty,
    /// A file found in a directory is not a model, for the reason in the message.
    NoModel,
    /// Standard output was closed, which ends the run silently.
    BrokenPipe,
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::of_kind(Kind::Failed, message)
    }

    pub(crate) fn of_kind(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None, slip: None, file: None, is_unread: false }
    }

    pub(crate) fn status(&self) -> Status {
        match self.kind {
            Kind::Failed => Status::Failed,
            Kind::Faulty => Status::Faulty,
            Kind::NoModel | Kind::BrokenPipe => Status::Done,
        }
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help.get_or_insert_with(|| text.into());
        self
    }

    pub(crate) fn did_you_mean(self, wrong: &str, near: &str) -> Self {
        match self.help {
            None => self.help(format!("did you mean `{near}`?")).slipped(wrong, near),
            Some(_) => self,
        }
    }

    /// Says which word of the command is wrong, and what is probably meant.
    pub(crate) fn slipped(self, wrong: &str, near: &str) -> Self {
        Self { slip: Some(Box::new((wrong.to_owned(), near.to_owned()))), ..self }
    }

    pub(crate) fn helped(self, text: String) -> Self {
        Self { help: Some(text), ..self }
    }

    pub(crate) fn slip(&self) -> Option<(&str, &str)> {
        self.slip.as_ref().map(|slip| (&*slip.0, &*slip.1))
    }

    pub(crate) fn of(self, path: &Path) -> Self {
        Self { file: Some(path.to_owned()), ..self }
    }

    pub(crate) fn at(mut self, place: &str) -> Self {
        if self.kind != Kind::NoModel && self.file.as_deref() != Some(Path::new(place)) {
            self.message = format!("{place}: {}", self.message);
        }
        self
    }

    /// The file that could not be read.
    pub(crate) fn unread(&self) -> Option<&Path> {
        self.file.as_deref().filter(|_| self.is_unread)
    }

    /// True if a file could not be read or written.
    pub(crate) fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// Formats the failure in colours; empty if the output was closed.
    pub(crate) fn text(self) -> String {
        match self.kind {
            Kind::BrokenPipe => String::new(),
            Kind::NoModel => format!("{}; skipped\n", self.message),
            _ => render::error(None, &self.message, self.help.map(Remark::Help).into_iter()),
        }
    }

    pub(crate) fn json(&self, file: Option<&str>) -> Result<String, Self> {
        if self.kind == Kind::BrokenPipe {
            return Ok(String::new());
        }
        let mut document = json!({ "error": { "message": self.message, "help": self.help } });
        if let Some(file) = file {
            document["file"] = json!(FileName(file));
        }
        Ok(document::text(&document)?)
    }

    pub(crate) fn io(verb: &str, path: &Path, error: &io::Error) -> Self {
        // Windows denies access to a directory that is opened as a file.
        let is_directory = cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied && path.is_dir();
        let reason = if is_directory { "is a directory".to_owned() } else { reason(error) };
        let failure = Self::of_access(verb, path, &reason);
        match path.ancestors().skip(1).find(|above| verb == "write" && above.is_file()) {
            Some(file) => failure.help(format!("`{}` is a file: name another folder", file.display())),
            None => failure,
        }
    }

    /// The failure for a file that does not exist.
    pub(crate) fn no_file(path: &Path) -> Self {
        Self::of_access("read", path, "no such file or directory")
    }

    fn of_access(verb: &str, path: &Path, reason: &str) -> Self {
        let failure = Self::new(format!("cannot {verb} `{}`: {reason}", path.display())).of(path);
        Self { is_unread: verb == "read", ..failure }
    }

    pub(crate) fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::of_kind(Kind::BrokenPipe, "standard output is closed"),
            _ => Self::new(format!("cannot write to standard output: {}", reason(&error))),
        }
    }
}
