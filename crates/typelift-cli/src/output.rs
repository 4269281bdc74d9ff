//! Where models go: which files a run will write, and that it can and may.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use typelift::diagnostic::Diagnostic;
use typelift::save::{self, FileId, SaveError, SaveOptions, Stamp};
use typelift::xml::{self, WriteOptions};
use typelift::{Model, WeightsMode};

use crate::failure::Failure;
use crate::input::{Input, is_dash};
use crate::interrupt::clean_up_on_signals;
use crate::terminal::{Page, Terminal};

/// Where the model goes.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the model to this file, or - for standard output; the same file as IN means --in-place. A name without an
    /// ending or with a slash behind it is a directory, which is created if it does not exist; several models need one
    #[arg(short, long, value_name = "OUT.xml")]
    pub(crate) output: Option<PathBuf>,
    /// Write the model over IN
    #[arg(long, conflicts_with = "output")]
    pub(crate) in_place: bool,
    /// Print the whole file again with the elements, order and indentation of OpenVINO's serializer, without comments
    /// and unknown elements; the values of attributes stay as they are
    #[arg(long)]
    pub(crate) canonical: bool,
    /// How OUT gets its .bin
    #[arg(long, value_enum, default_value_t = Weights::Copy)]
    weights: Weights,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Weights {
    /// A copy, which shares its blocks with the original if the file system can
    Copy,
    /// A hard link, or a symbolic one to another file system: never write to either through another program
    Link,
    /// Not at all
    None,
}

impl From<Weights> for WeightsMode {
    fn from(weights: Weights) -> Self {
        match weights {
            Weights::Copy => Self::Copy,
            Weights::Link => Self::Link,
            Weights::None => Self::None,
        }
    }
}

/// A place to write to.
pub(crate) enum Target {
    Stdout,
    /// A pipe or device, written to directly.
    Stream(PathBuf),
    File(Destination),
}

/// A file to write a model to.
pub(crate) struct Destination {
    path: PathBuf,
    in_place: bool,
    weights: WeightsMode,
    /// The file of the input, and what it is like before it is read; `None` for standard input.
    source: Option<(PathBuf, Stamp)>,
}

impl OutputArgs {
    /// Whether there is a place to write to.
    pub(crate) fn is_given(&self) -> bool {
        self.in_place || self.output.is_some()
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_deref().is_some_and(is_dash)
    }

    /// The directory that models go to; `None` where they go to a file or stay in place.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| is_directory(path))
    }

    /// How the text of a model is written.
    pub(crate) fn text(&self, input: &Input, refresh_ports: bool) -> WriteOptions {
        WriteOptions { canonical: self.canonical, refresh_ports, on_one_thread: input.on_one_thread }
    }

    /// Where a model goes.
    fn path(&self, input: &Input) -> Option<PathBuf> {
        match (&self.output, &input.member) {
            (Some(directory), Some(member)) => Some(directory.join(&member.place)),
            (Some(path), None) if is_directory(path) => {
                let name = input.file.file_name().filter(|_| !input.is_stdin());
                Some(path.join(name.unwrap_or("model.xml".as_ref())))
            }
            (Some(path), None) => Some(path.clone()),
            (None, _) => self.in_place.then(|| input.file.clone()),
        }
    }
}

/// Whether a path is one of a directory, which need not be there yet.
fn is_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let named_so =
        bytes.last().is_some_and(|last| std::path::is_separator(char::from(*last))) || path.extension().is_none();
    !is_dash(path) && (path.is_dir() || named_so && !path.exists())
}

impl Target {
    /// Where the model goes. One that is written over is completed first, where a killed run has left it half written.
    pub(crate) fn new(args: &OutputArgs, input: &Input) -> Result<Option<Self>, Failure> {
        let target = Self::plan(args, input)?;
        match &target {
            Some(Self::File(place)) if place.in_place && !place.path.exists() => {
                save::recover(&place.path).map_err(|error| Failure::io("write", &place.path, &error))?;
                Self::plan(args, input)
            }
            _ => Ok(target),
        }
    }

    /// Where the model will go.
    fn plan(args: &OutputArgs, input: &Input) -> Result<Option<Self>, Failure> {
        if args.in_place && input.is_stdin() {
            return Err(Failure::new("standard input cannot be written in place").help("give -o OUT.xml, or -o -"));
        }
        let Some(path) = args.path(input) else { return Ok(None) };
        if is_dash(&path) {
            return Ok(Some(Self::Stdout));
        }
        let exists = match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Err(refused(&path, "it is a directory")),
            Ok(found) if !found.is_file() => return Ok(Some(Self::Stream(path))),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Failure::io("write", &path, &error)),
            found => found.is_ok(),
        };
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bin")) {
            return Err(refused(&path, "that is the name of weights").help("give the graph a name that ends in .xml"));
        }
        let source = (!input.is_stdin()).then(|| Some((input.file.clone(), Stamp::at(&input.file).ok()?))).flatten();
        // A file that is not there is not one that is.
        let may_be_one = !input.is_stdin() && (exists || source.is_none());
        let in_place = args.in_place || may_be_one && same_file(&path, &input.file);
        Ok(Some(Self::File(Destination { path, in_place, weights: args.weights.into(), source })))
    }

    /// What keeps the model from being written: weights that are needed and missing.
    pub(crate) fn objection(&self, model: &Model, input: &Input) -> Option<Diagnostic> {
        match self {
            Self::File(place) if !place.in_place && place.weights != WeightsMode::None => {
                let wanted = match input.weights() {
                    Some(path) => format!("`{}` does not exist", path.display()),
                    None => "standard input brings no weights along".to_owned(),
                };
                let help =
                    "put the .bin of the model there, name it with --bin, or write the graph alone with --weights none";
                save::missing_weights(model).map(|refusal| refusal.note(wanted).help(help))
            }
            _ => None,
        }
    }

    /// Writes a model, and its weights with it.
    pub(crate) fn write(&self, model: &Model, options: WriteOptions, page: &mut Page) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                let Ok(()) = xml::write_to(model, options, |piece| {
                    page.printed += piece;
                    Ok::<_, Infallible>(())
                });
                Ok(())
            }
            Self::Stream(path) => {
                let write = || {
                    let mut file = File::options().write(true).open(path)?;
                    xml::write_to(model, options, |piece| file.write_all(piece.as_bytes()))
                };
                write().map_err(|error| Failure::io("write", path, &error))
            }
            Self::File(place) => place.write(model, options),
        }
    }
}

impl Destination {
    fn write(&self, model: &Model, text: WriteOptions) -> Result<(), Failure> {
        if let Some((source, _)) = self.source.as_ref().filter(|(source, stamp)| !stamp.holds_at(source)) {
            let message = format!("`{}` was changed or replaced after it was read", source.display());
            return Err(Failure::new(message).help("nothing was written; run it again"));
        }
        let path = &self.path;
        clean_up_on_signals()?;
        // To make a directory that is there locks out all others who write beside it.
        if !directory(path).is_dir() {
            fs::create_dir_all(directory(path)).map_err(|error| Failure::io("write", path, &error))?;
        }
        let options = SaveOptions { text, weights: self.weights, in_place: self.in_place };
        model.save_with(path, options).map_err(|error| match &error {
            SaveError::Io { path, source } => Failure::io("write", path, source),
            SaveError::WeightsChanged(_) => Failure::new(error.to_string()).help("nothing was written; run it again"),
            SaveError::AddedConstants => {
                Failure::new(error.to_string()).help("leave --weights out, and the .bin is copied")
            }
            SaveError::LinkedGraph { graph, .. } => {
                Failure::new(error.to_string()).help(format!("give `{}`", graph.display()))
            }
            _ => Failure::new(error.to_string()),
        })
    }
}

/// Writes the reports of models, documents of JSON: of several an array.
pub(crate) fn write_reports(
    path: &Path,
    reports: Vec<String>,
    are_several: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let text = if are_several { format!("[\n{}]\n", reports.join(",\n")) } else { reports.concat() };
    if is_dash(path) { terminal.print(&text) } else { write_report(path, &text) }
}

/// Writes a report that takes the place of an old one as a whole.
pub(crate) fn write_report(path: &Path, report: &str) -> Result<(), Failure> {
    clean_up_on_signals()?;
    let written = match fs::metadata(path) {
        Ok(found) if !found.is_file() => fs::write(path, report),
        _ => save::replace(path, |file| file.write_all(report.as_bytes())),
    };
    written.map_err(|error| Failure::io("write", path, &error))
}

/// Removes an old report, which is not one of this run.
pub(crate) fn forget_report(path: &Path) {
    if fs::metadata(path).is_ok_and(|found| found.is_file()) {
        // It was found to be writable; where it cannot be removed all the same, the exit status says what happened.
        let _stays = fs::canonicalize(path).and_then(fs::remove_file);
    }
}

/// The files that a run reads and writes, and for what.
#[derive(Default)]
struct Files {
    read: HashMap<FileId, &'static str>,
    written: HashMap<FileId, &'static str>,
    /// What is written, in order.
    paths: Vec<PathBuf>,
}

/// Fails where a run would write over what it reads, or two things to one file, or where it could not write at all. Nothing is
/// written by then.
pub(crate) fn check_files(models: &[Input], args: &OutputArgs, report: Option<&Path>) -> Result<(), Failure> {
    let mut files = Files::default();
    for model in models.iter().filter(|model| !model.is_stdin()) {
        files.read.insert(FileId::of(&model.file), "a model is read from it");
    }
    for weights in models.iter().filter_map(Input::weights) {
        files.read.entry(FileId::of(&weights)).or_insert("weights are read from it");
    }
    for model in models {
        if let Some(Target::File(place)) = Target::plan(args, model)? {
            files.add_model(&place, model, args)?;
        }
    }
    if let Some(report) = report.filter(|report| !is_dash(report) && !is_stream(report)) {
        files.add(report, "the report")?;
    }
    let mut directories = HashSet::new();
    for path in &files.paths {
        check_writable(path, report != Some(path.as_path()) && args.directory().is_some(), &mut directories)?;
    }
    Ok(())
}

impl Files {
    fn add_model(&mut self, place: &Destination, input: &Input, args: &OutputArgs) -> Result<(), Failure> {
        let path = &place.path;
        let weights = path.with_extension("bin");
        if place.in_place {
            if args.directory().is_some() {
                return Err(refused(path, "it is the model to read").help("use --in-place to write over it"));
            }
            check_names(path)?;
            // What constants are added goes to its own weights.
            self.note(path, "a model")?;
            return self.note(&weights, "the weights");
        }
        self.add(path, "a model")?;
        let are_own = || input.weights().is_some_and(|own| same_file(&own, &weights));
        match place.weights {
            WeightsMode::None => Ok(()),
            _ if are_own() => self.note(&weights, "the weights"),
            _ => self.add(&weights, "the weights"),
        }
    }

    /// Something to be written to a file that nothing is read from.
    fn add(&mut self, path: &Path, what: &'static str) -> Result<(), Failure> {
        let id = FileId::of(path);
        match self.read.get(&id) {
            Some(read) => Err(taken(path, what, read)),
            None => self.note_id(id, path, what),
        }
    }

    fn note(&mut self, path: &Path, what: &'static str) -> Result<(), Failure> {
        self.note_id(FileId::of(path), path, what)
    }

    fn note_id(&mut self, id: FileId, path: &Path, what: &'static str) -> Result<(), Failure> {
        self.paths.push(path.to_owned());
        match self.written.insert(id, what) {
            Some(other) => Err(taken(path, what, &format!("{other} would go there too"))),
            None => Ok(()),
        }
    }
}

fn refused(path: &Path, reason: &str) -> Failure {
    Failure::new(format!("cannot write `{}`: {reason}", path.display()))
}

fn taken(path: &Path, what: &str, reason: &str) -> Failure {
    Failure::new(format!("cannot write {what} to `{}`: {reason}", path.display())).help("give another file")
}

/// Fails for a file of several names, of which only one would get the new model.
fn check_names(path: &Path) -> Result<(), Failure> {
    #[cfg(unix)]
    if let Ok(found) = fs::metadata(path) {
        let names = std::os::unix::fs::MetadataExt::nlink(&found);
        if names > 1 {
            let reason = format!("the file has {names} names (hard links), and the others would keep the old model");
            return Err(refused(path, &reason)
                .help("write to another file with -o, or put a copy in the place of the link first"));
        }
    }
    Ok(())
}

/// Fails where a file, or one beside it, could not be written. Its directory may be missing where it is `made`.
fn check_writable(path: &Path, made: bool, known: &mut HashSet<PathBuf>) -> Result<(), Failure> {
    let resolved = match File::options().append(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => opened.map(|_| fs::canonicalize(path).ok()).map_err(|error| Failure::io("write", path, &error))?,
    };
    let mut directory = directory(resolved.as_deref().unwrap_or(path));
    if !made && !directory.exists() {
        return Err(refused(path, &format!("the directory `{}` does not exist", directory.display())));
    }
    while known.insert(directory.to_owned()) {
        if directory.exists() {
            // A file without a name: nobody sees it.
            tempfile::tempfile_in(directory).map_err(|error| Failure::io("write to", directory, &error))?;
            break;
        }
        directory = self::directory(directory);
    }
    Ok(())
}

fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether two paths lead to one file or directory.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    FileId::of(a) == FileId::of(b)
}
