//! Destinations of models: which files a run will write, and checks that it can and may.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use typelift::findings::{Diagnostic, Message, Text, grouped};
use typelift::host::{self, FileId};
use typelift::values::{Export, ExportError};
use typelift::xml::{self, WriteOptions};
use typelift::{Model, SaveError, SaveOptions, WeightsMode};

use crate::failure::Failure;
use crate::gate::Form;
use crate::input::{Input, ReadFrom, directory, is_stdout};
use crate::interrupt::uninterrupted;
use crate::not_a_model;
use crate::noted;
use crate::terminal::{Page, Terminal};

/// Destination of the model.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the model to this file, or - for standard output. Its name ends in .xml. A name without an ending or with a
    /// slash after it is a directory, which is created if it does not exist; several models need one
    #[arg(short, long, value_name = "OUT.xml")]
    pub(crate) output: Option<PathBuf>,
    /// Replace IN. Where IN or its .bin is a symbolic link, the link is replaced
    #[arg(long, conflicts_with = "output")]
    pub(crate) in_place: bool,
    /// Write the whole file anew with the elements, order and indentation of OpenVINO's serializer, without comments
    /// and unknown elements; the values of attributes are unchanged
    #[arg(long)]
    pub(crate) canonical: bool,
    /// Way in which OUT gets its .bin
    #[arg(long, value_name = "WEIGHTS", value_parser = weights(), default_value = "copy")]
    weights: WeightsMode,
    /// Refuse to write a .bin that is more than this many times as large as the one of IN. Constants that overlap in IN
    /// may need bytes of their own. A .bin of up to 1 MB is always written
    #[arg(long, value_name = "TIMES", default_value_t = 16)]
    max_growth: u64,
    /// True if `output` is a directory, computed on demand.
    #[arg(skip)]
    is_directory: OnceLock<bool>,
}

fn weights() -> impl TypedValueParser<Value = WeightsMode> {
    let modes = [
        (
            "copy",
            "A copy, which shares its blocks with the original if the file system can. If constants are added or removed, \
             the others keep their offsets, unless compacting saves at least 1 % or 64 KB",
        ),
        (
            "link",
            "A hard link, or a symbolic one across file systems: do not modify either file through another program",
        ),
        ("none", "No .bin"),
        ("compact", "A file with the bytes that constants use and no others, equal bytes once"),
    ];
    let values = modes.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<WeightsMode>())
}

/// Fewer bytes than this are written within milliseconds.
const SHORT: u64 = 1 << 20;
/// The time that a pipe may wait for its reader.
const READER_COMES: Duration = Duration::from_secs(2);

pub(crate) enum Target {
    Stdout,
    /// A pipe or device, written to directly.
    Stream(PathBuf),
    File(Destination),
}

pub(crate) struct Destination {
    pub(crate) path: PathBuf,
    pub(crate) in_place: bool,
    pub(crate) weights: WeightsMode,
    /// Limit of the size of the weights, in sizes of those of the input.
    max_growth: u64,
    /// The weights of the input.
    bin: Option<PathBuf>,
    is_member: bool,
}

impl OutputArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.in_place || self.output.is_some()
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_deref().is_some_and(is_stdout)
    }

    /// The directory of the models; `None` if they go to a file or stay in place.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *self.is_directory.get_or_init(|| is_directory(path)))
    }

    pub(crate) fn text(&self, input: &Input, refresh_ports: bool) -> WriteOptions {
        WriteOptions { canonical: self.canonical, refresh_ports, on_one_thread: input.on_one_thread }
    }

    fn path(&self, input: &Input) -> Option<PathBuf> {
        match (&self.output, &input.member) {
            (Some(directory), Some(member)) => Some(directory.join(&member.place)),
            (Some(path), None) if self.directory().is_some() => {
                let name = input.file.file_name().filter(|_| !input.is_stdin());
                Some(path.join(name.unwrap_or("model.xml".as_ref())))
            }
            (Some(path), None) => Some(path.clone()),
            (None, _) => self.in_place.then(|| input.file.clone()),
        }
    }
}

/// True for the root directory, as in `$OUT/` with an unset variable.
fn is_root(path: &Path) -> bool {
    path.has_root() && path.parent().is_none()
}

/// True for the path of a directory, which need not exist.
fn is_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let named_so =
        bytes.last().is_some_and(|last| std::path::is_separator(char::from(*last))) || path.extension().is_none();
    !is_stdout(path) && (path.is_dir() || named_so && !path.exists())
}

impl Target {
    /// Opens the destination. Recovers an interrupted earlier write first.
    pub(crate) fn new(args: &OutputArgs, input: &Input) -> Result<Option<Self>, Failure> {
        let target = Self::plan(args, input)?;
        match &target {
            Some(Self::File(place)) if place.in_place && !place.path.exists() => {
                host::recover(&place.path).map_err(|error| Failure::io("write", &place.path, &error))?;
                Self::plan(args, input)
            }
            _ => Ok(target),
        }
    }

    /// The destination, without opening it.
    pub(crate) fn plan(args: &OutputArgs, input: &Input) -> Result<Option<Self>, Failure> {
        if args.in_place && input.is_stdin() {
            return Err(Failure::new("standard input cannot be written in place").help("give -o OUT.xml, or -o -"));
        }
        let Some(path) = args.path(input) else { return Ok(None) };
        if is_stdout(&path) {
            return Ok(Some(Self::Stdout));
        }
        if let Some(root) = args.output.as_deref().filter(|output| is_root(output)) {
            let help = format!("give a directory below it, or the file `{}` if that is meant", path.display());
            return Err(refused(root, "it is the root of the file system").help(help));
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Err(refused(&path, "it is a directory")),
            Ok(_) if is_stream(&path) => return Ok(Some(Self::Stream(path))),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Failure::io("write", &path, &error)),
            _ => {}
        }
        if !args.in_place && !input.is_stdin() && same_file(&path, &input.file) {
            return Err(refused(&path, "it is the model to read").help("use --in-place to replace it"));
        }
        Ok(Some(Self::File(Destination {
            path,
            in_place: args.in_place,
            weights: args.weights,
            max_growth: args.max_growth,
            bin: input.weights(),
            is_member: input.member.is_some(),
        })))
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "<stdout>".to_owned(),
            Self::Stream(path) | Self::File(Destination { path, .. }) => path.display().to_string(),
        }
    }

    pub(crate) fn has_weights(&self) -> bool {
        matches!(self, Self::File(Destination { weights, .. }) if *weights != WeightsMode::None)
    }

    /// Names the files that were written: `wrote out.xml and out.bin`; `None` for a stream.
    pub(crate) fn written(&self) -> Option<String> {
        let Self::File(Destination { path, in_place: false, weights, .. }) = self else { return None };
        let bin = path.with_extension("bin");
        let bin = Some(bin).filter(|bin| *weights != WeightsMode::None && bin.exists());
        let bin = bin.map(|bin| format!(" and {}", bin.display())).unwrap_or_default();
        Some(format!("wrote {}{bin}", path.display()))
    }

    pub(crate) fn objection(&self, model: &Model, input: &Input) -> Option<Diagnostic> {
        match self {
            Self::File(place) if !place.in_place && place.weights != WeightsMode::None => {
                let wanted = match input.weights() {
                    Some(path) => Message::new("`{}` does not exist", &[&Text(path.display())]),
                    None => "standard input brings no weights along".into(),
                };
                let help =
                    "put the .bin of the model there, name it with --bin, or write the graph alone with --weights none";
                host::missing_weights(model).map(|refusal| refusal.note(wanted).help(help))
            }
            _ => None,
        }
    }

    /// Writes a model and its weights, unless `read_from` has changed since the model was read from it.
    pub(crate) fn write(
        &self,
        model: &Model,
        read_from: &ReadFrom,
        options: WriteOptions,
        page: &mut Page,
    ) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                page.form = Form::Product;
                let Ok(()) = xml::write_to(model, options, |piece| {
                    page.printed += piece;
                    Ok::<_, Infallible>(())
                });
                Ok(())
            }
            Self::Stream(path) => {
                let mut file = open_stream(path)?;
                let written = xml::write_to(model, options, |piece| file.write_all(piece.as_bytes()));
                written.map_err(|error| Failure::io("write", path, &error))
            }
            Self::File(place) => {
                let links = place.links();
                place.write(model, read_from, options)?;
                page.said += &place.weights_beside(model).unwrap_or_default();
                page.said += &place.growth().unwrap_or_default();
                page.said.extend(links.iter().filter(|(link, _)| !link.is_symlink()).map(replaced));
                Ok(())
            }
        }
    }
}

impl Destination {
    /// A note for a graph that was written without its weights next to a .bin that may belong to another model.
    fn weights_beside(&self, model: &Model) -> Option<String> {
        let beside = self.path.with_extension("bin");
        let needs_weights = !model.weights().is_empty() || host::missing_weights(model).is_some();
        if self.weights != WeightsMode::None || !needs_weights || !beside.exists() {
            return None;
        }
        let own = match self.bin.as_deref().filter(|own| own.exists()) {
            Some(own) if same_file(own, &beside) => return None,
            Some(own) => format!("the weights of this model are in `{}`", own.display()),
            None => "nothing shows that it has the weights of this model".to_owned(),
        };
        Some(format!("`{}` was there before and stays as it is; {own}\n", beside.display()))
    }

    /// A line that says how much larger the new weights are, if they are more than twice as large as those of the input.
    fn growth(&self) -> Option<String> {
        let before = fs::metadata(self.bin.as_deref()?).ok()?.len();
        let after = fs::metadata(self.path.with_extension("bin")).ok()?.len();
        let (old, new) = (grouped(before), grouped(after));
        (before > 0 && after / 2 > before)
            .then(|| format!("the .bin has {new} bytes, and the one of the input {old}\n"))
    }

    fn links(&self) -> Vec<(PathBuf, PathBuf)> {
        let files = [self.path.clone(), self.path.with_extension("bin")];
        files.into_iter().filter_map(|file| fs::read_link(&file).ok().map(|target| (file, target))).collect()
    }

    fn write(&self, model: &Model, read_from: &ReadFrom, text: WriteOptions) -> Result<(), Failure> {
        let path = &self.path;
        let mut options = SaveOptions::default();
        options.text = text;
        options.weights = self.weights;
        options.in_place = self.in_place;
        options.max_growth = self.max_growth;
        options.read_from.clone_from(read_from);
        let is_written = matches!(self.weights, WeightsMode::Copy | WeightsMode::Compact);
        let weights = if is_written { model.weights().len().unwrap_or(0) } else { 0 };
        let short = !self.is_member && model.source().len() as u64 + weights < SHORT;
        uninterrupted(short, || {
            // Calling `create_dir` for an existing directory would lock out others that write next to it.
            if !directory(path).is_dir() {
                fs::create_dir_all(directory(path)).map_err(|error| Failure::io("write", path, &error))?;
            }
            model.save_with(path, options).map_err(|error| self.failure(&error))
        })
    }

    fn failure(&self, error: &SaveError) -> Failure {
        match error {
            SaveError::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
                Failure::new("the .bin of the model ends before the bytes of a constant; nothing was written")
                    .help("`typelift check` says what is wrong with the .bin")
            }
            SaveError::Io { path, source } => Failure::io("write", path, source),
            SaveError::Changed(path) => {
                Failure::new(error.to_string()).of(path).help("nothing was written; run it again")
            }
            SaveError::Grown { .. } => Failure::new(error.to_string())
                .of(&self.path)
                .help("give --max-growth a larger number if that is meant"),
            SaveError::AddedConstants => {
                Failure::new(error.to_string()).help("leave --weights out, and the .bin is copied")
            }
            _ => Failure::new(error.to_string()),
        }
    }
}

fn replaced((link, target): &(PathBuf, PathBuf)) -> String {
    format!("`{}` was a link to `{}`, which stays as it is; now it is a file\n", link.display(), target.display())
}

pub(crate) fn check_ending(path: &Path, ending: &str, what: &str) -> Result<(), Failure> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending)) {
        return Ok(());
    }
    let given = path.extension().unwrap_or_default().to_string_lossy();
    let reason = match &*given {
        "" => format!("its name does not end in .{ending}"),
        _ => format!("typelift writes {what}, not .{given}"),
    };
    let (wrong, near) = (path.to_string_lossy(), path.with_extension(ending));
    if not_a_model::is_other_format(&wrong) {
        return Err(refused(path, &reason).help("no program converts IR to another format: export from the framework"));
    }
    Err(refused(path, &reason).help(format!("give `{}`", near.display())).slipped(&wrong, &near.to_string_lossy()))
}

/// Writes the reports of models as JSON, an array for several.
pub(crate) fn write_reports(
    path: &Path,
    reports: Vec<String>,
    are_several: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let text = if are_several { format!("[\n{}]\n", reports.join(",\n")) } else { reports.concat() };
    if is_stdout(path) { terminal.print(&text) } else { write_report(path, &text) }
}

/// Writes a report, replacing an old one as a whole.
pub(crate) fn write_report(path: &Path, report: impl AsRef<[u8]>) -> Result<(), Failure> {
    let report = report.as_ref();
    write_document(path, (report.len() as u64) < SHORT, |file| file.write_all(report))
}

/// Writes constants as a file of another program, replacing an old one as a whole.
pub(crate) fn write_export(path: &Path, export: &Export<'_>) -> Result<(), Failure> {
    write_document(path, false, |file| export.write(file))
}

fn write_document(
    path: &Path,
    is_short: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if noted::all().contains(&FileId::of(path)) {
        return Err(refused(path, noted::TEXT).help(noted::ANOTHER));
    }
    if is_stream(path) {
        // Writing to a pipe takes as long as its reader.
        return write(&mut open_stream(path)?).map_err(|error| Failure::io("write", path, &error));
    }
    uninterrupted(is_short, || {
        host::replace(path, |file| write(file)).map_err(|error| Failure::io("write", path, &error))
    })
}

/// Opens a pipe or device. The reader of a pipe may start a moment later.
fn open_stream(path: &Path) -> Result<File, Failure> {
    let begin = Instant::now();
    loop {
        match open_now(path) {
            Err(error) if has_no_reader(&error) && begin.elapsed() < READER_COMES => thread::sleep(READER_COMES / 100),
            Err(error) if has_no_reader(&error) => {
                return Err(
                    refused(path, "nothing reads from this pipe").help("start its reader first, or give a file")
                );
            }
            opened => return opened.map_err(|error| Failure::io("write", path, &error)),
        }
    }
}

#[cfg(unix)]
fn open_now(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
    // Without this flag the call blocks until the pipe has a reader; with it, writes can be partial.
    let file = open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file.into())
}

#[cfg(not(unix))]
fn open_now(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

#[cfg(unix)]
fn has_no_reader(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NXIO)
}

#[cfg(not(unix))]
fn has_no_reader(_: &io::Error) -> bool {
    false
}

/// True if a path is one of a pipe or device. The names of the streams of this process count, even if they lead to a file;
/// files in memory do not.
pub(crate) fn is_stream(path: &Path) -> bool {
    let is_device = path.starts_with("/proc") || path.starts_with("/dev") && !path.starts_with("/dev/shm");
    if cfg!(windows) && path.as_os_str().eq_ignore_ascii_case("NUL") {
        return true;
    }
    fs::metadata(path).is_ok_and(|found| !found.is_dir() && (is_device || !found.is_file()))
}

/// Removes an old report that does not belong to this run.
pub(crate) fn forget_report(path: &Path) {
    if fs::metadata(path).is_ok_and(|found| found.is_file()) {
        // The path was checked to be writable. If the removal fails nevertheless, the exit status tells the result.
        let _stays = fs::remove_file(path);
    }
}

pub(crate) fn not_exported(error: &ExportError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ExportError::Lacks { in_safetensors: true, .. } => {
            failure.help("`typelift convert --save-weights FILE.safetensors` writes all constants")
        }
        ExportError::Lacks { element_type, .. } if (1..8).contains(&element_type.bits()) => {
            failure.help("`typelift convert --dequantize` stores the values in a type that it can have")
        }
        _ => failure,
    }
}

pub(crate) fn refused(path: &Path, reason: &str) -> Failure {
    Failure::new(format!("cannot write `{}`: {reason}", path.display())).of(path)
}

pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    FileId::of(a) == FileId::of(b)
}
