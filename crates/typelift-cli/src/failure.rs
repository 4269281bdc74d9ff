//! Failures caused by files and usage, not by the model.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use typelift::findings::{FileName, reason};

use crate::document;
use crate::render::{self, Remark};
use crate::status::Status;

/// Failure of a run. It ends the run with exit status 2, with 1 for a bug of this program, or silently. In a batch it
/// ends only the work on one model.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Standard output was closed.
    BrokenPipe,
    /// A file found in a directory is not a model, for this reason.
    NoModel(String),
    Other {
        message: String,
        help: Option<String>,
        /// A wrong word of the command, and what is probably meant.
        slip: Option<(String, String)>,
        status: Status,
        file: Option<PathBuf>,
        /// True if that file could not be read.
        is_unread: bool,
    },
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Other {
            message: message.into(),
            help: None,
            slip: None,
            status: Status::Failed,
            file: None,
            is_unread: false,
        }
    }

    pub(crate) fn internal(message: String, help: String) -> Self {
        Self::Other { message, help: Some(help), slip: None, status: Status::Faulty, file: None, is_unread: false }
    }

    pub(crate) fn refusal(message: String) -> Self {
        Self::Other { message, help: None, slip: None, status: Status::Faulty, file: None, is_unread: false }
    }

    pub(crate) fn status(&self) -> Status {
        match self {
            Self::BrokenPipe | Self::NoModel(_) => Status::Done,
            Self::Other { status, .. } => *status,
        }
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        if let Self::Other { help, .. } = &mut self {
            help.get_or_insert_with(|| text.into());
        }
        self
    }

    pub(crate) fn did_you_mean(self, wrong: &str, near: &str) -> Self {
        match &self {
            Self::Other { help: None, .. } => self.help(format!("did you mean `{near}`?")).slipped(wrong, near),
            _ => self,
        }
    }

    /// Says which word of the command is wrong, and what is probably meant.
    pub(crate) fn slipped(mut self, wrong: &str, near: &str) -> Self {
        if let Self::Other { slip, .. } = &mut self {
            *slip = Some((wrong.to_owned(), near.to_owned()));
        }
        self
    }

    pub(crate) fn helped(mut self, text: String) -> Self {
        if let Self::Other { help, .. } = &mut self {
            *help = Some(text);
        }
        self
    }

    pub(crate) fn slip(&self) -> Option<(&str, &str)> {
        match self {
            Self::Other { slip: Some((wrong, near)), .. } => Some((wrong, near)),
            _ => None,
        }
    }

    pub(crate) fn of(mut self, path: &Path) -> Self {
        if let Self::Other { file, .. } = &mut self {
            *file = Some(path.to_owned());
        }
        self
    }

    pub(crate) fn at(mut self, place: &str) -> Self {
        if let Self::Other { message, file, .. } = &mut self
            && file.as_deref() != Some(Path::new(place))
        {
            *message = format!("{place}: {message}");
        }
        self
    }

    /// The file that could not be read.
    pub(crate) fn unread(&self) -> Option<&Path> {
        match self {
            Self::Other { file, is_unread: true, .. } => file.as_deref(),
            _ => None,
        }
    }

    /// True if a file could not be read or written.
    pub(crate) fn is_of_file(&self) -> bool {
        matches!(self, Self::Other { file: Some(_), .. })
    }

    pub(crate) fn message(self) -> String {
        match self {
            Self::BrokenPipe => String::new(),
            Self::NoModel(reason) => reason,
            Self::Other { message, .. } => message,
        }
    }

    /// Formats the failure in colours; empty if the output was closed.
    pub(crate) fn text(self) -> String {
        match self {
            Self::BrokenPipe => String::new(),
            Self::NoModel(reason) => format!("{reason}; skipped\n"),
            Self::Other { message, help, .. } => render::error(None, &message, help.map(Remark::Help).into_iter()),
        }
    }

    pub(crate) fn json(&self, file: Option<&str>) -> Result<String, Self> {
        let (message, help) = match self {
            Self::BrokenPipe => return Ok(String::new()),
            Self::NoModel(reason) => (reason, None),
            Self::Other { message, help, .. } => (message, help.as_deref()),
        };
        let mut document = json!({ "error": { "message": message, "help": help } });
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
        let mut failure = Self::new(format!("cannot {verb} `{}`: {reason}", path.display())).of(path);
        if let Self::Other { is_unread, .. } = &mut failure {
            *is_unread = verb == "read";
        }
        failure
    }

    pub(crate) fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::new(format!("cannot write to standard output: {}", reason(&error))),
        }
    }
}
