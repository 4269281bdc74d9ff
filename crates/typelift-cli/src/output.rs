//! Writing models so that whoever looks at any moment sees the old file or the new one, whole.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use typelift::diagnostic::{Code, Diagnostic, LayerRef, Severity};
use typelift::ops::{self, LayerKind};
use typelift::xml::{self, WriteOptions};
use typelift::{Graph, Layer, Model};

use crate::failure::Failure;
use crate::input::{Input, is_dash};
use crate::terminal::Page;

/// Where the model goes.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the model to this file, or - for standard output; the same file as IN means --in-place. Of several models, the
    /// directory for them, which is made where there is none
    #[arg(short, long, value_name = "OUT.xml")]
    pub(crate) output: Option<PathBuf>,
    /// Write the model over IN; its weights stay as they are
    #[arg(long, conflicts_with = "output")]
    pub(crate) in_place: bool,
    /// Print the whole file afresh in OpenVINO's own style, without comments and unknown elements
    #[arg(long)]
    pub(crate) canonical: bool,
    /// How OUT gets its .bin
    #[arg(long, value_enum, default_value_t = WeightsMode::Copy)]
    weights: WeightsMode,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WeightsMode {
    /// A copy, sharing its blocks with the original where the file system can
    Copy,
    /// A hard link, or a symbolic one to another file system: never write to either through another program
    Link,
    /// Not at all
    None,
}

/// A place to write to that was looked at.
pub(crate) enum Target {
    Stdout,
    /// A pipe or device, written to directly.
    Stream(PathBuf),
    File {
        /// The file itself, symbolic links followed.
        xml: PathBuf,
        weights: Option<WeightsPlan>,
    },
}

pub(crate) struct WeightsPlan {
    from: Option<PathBuf>,
    to: PathBuf,
    mode: WeightsMode,
}

impl OutputArgs {
    /// Whether there is a place to write to.
    pub(crate) fn is_given(&self) -> bool {
        self.in_place || self.output.is_some()
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.output.as_deref().is_some_and(is_dash)
    }
}

impl Target {
    /// Looks at where the model is to go, before any work is done for it.
    pub(crate) fn new(args: &OutputArgs, input: &Input) -> Result<Option<Self>, Failure> {
        if args.in_place && input.is_stdin() {
            return Err(Failure::new("standard input cannot be written in place").help("give -o OUT.xml, or -o -"));
        }
        let path = &match (&args.output, &input.member) {
            (Some(directory), Some(member)) => directory.join(&member.place),
            (Some(path), None) if is_dash(path) => return Ok(Some(Self::Stdout)),
            (Some(path), None) => path.clone(),
            (None, _) if args.in_place => input.file.clone(),
            (None, _) => return Ok(None),
        };
        let refused = |message: String| Failure::new(format!("cannot write `{}`: {message}", path.display()));
        let xml = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                let name = input.file.file_name().map(Path::new).filter(|_| !input.is_stdin());
                let file = path.join(name.unwrap_or(Path::new("model.xml")));
                return Err(
                    refused("it is a directory".into()).help(format!("give a file, such as `{}`", file.display()))
                );
            }
            Ok(found) if !found.is_file() => return Ok(Some(Self::Stream(path.clone()))),
            Ok(_) => {
                // Renaming onto a file asks nobody whether the file may be written.
                File::options().append(true).open(path).map_err(|error| Failure::io("write", path, &error))?;
                resolve(path)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = directory(path);
                if input.member.is_none() && !parent.is_dir() {
                    return Err(refused(format!("there is no directory `{}`", parent.display())));
                }
                path.clone()
            }
            Err(error) => return Err(Failure::io("write", path, &error)),
        };
        let to = path.with_extension("bin");
        if to == *path {
            return Err(refused("that is the name of weights".into()).help("give the graph a name that ends in .xml"));
        }
        let from = input.weights().filter(|from| from.exists());
        let stays = args.in_place
            || args.weights == WeightsMode::None
            || same_file(path, &input.file)
            || from.as_deref().is_some_and(|from| same_file(from, &to));
        let weights = (!stays).then_some(WeightsPlan { from, to, mode: args.weights });
        Ok(Some(Self::File { xml, weights }))
    }

    /// What keeps the model from being written: weights that are needed and missing.
    pub(crate) fn objection(&self, model: &Model, input: &Input) -> Option<Diagnostic> {
        match self {
            Self::File { weights: Some(WeightsPlan { from: None, .. }), .. } => missing_weights(model, input),
            _ => None,
        }
    }

    /// Writes a model, and its weights before it.
    pub(crate) fn write(&self, model: &Model, options: WriteOptions, page: &mut Page) -> Result<(), Failure> {
        let (file, weights) = match self {
            Self::Stdout => {
                let Ok(()) = xml::write_to(model, options, |piece| {
                    page.printed += piece;
                    Ok::<_, Infallible>(())
                });
                return Ok(());
            }
            Self::Stream(path) => {
                let write = || write_file(model, options, File::options().write(true).open(path)?);
                return write().map_err(|error| Failure::io("write", path, &error));
            }
            Self::File { xml, weights } => (xml, weights),
        };
        fs::create_dir_all(directory(file)).map_err(|error| Failure::io("write", file, &error))?;
        if let Some(WeightsPlan { from: Some(from), to, mode }) = weights {
            let to = resolve(to);
            replace(&to, |new| mode.make(from, new, &to)).map_err(|error| Failure::io("write", &to, &error))?;
        }
        // A file that stays as it is keeps its time.
        let source = model.source().as_bytes();
        if xml::is_source(model, options) && fs::read(file).is_ok_and(|old| old == source) {
            return Ok(());
        }
        let make = |new: &Path| {
            write_file(model, options, File::create_new(new)?)?;
            finish(new, file)
        };
        replace(file, make).map_err(|error| Failure::io("write", file, &error))
    }
}

fn write_file(model: &Model, options: WriteOptions, file: File) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, file);
    xml::write_to(model, options, |piece| file.write_all(piece.as_bytes()))?;
    file.flush()
}

impl WeightsMode {
    fn make(self, from: &Path, new: &Path, old: &Path) -> io::Result<()> {
        match self {
            // The system's own copy shares blocks where it can.
            Self::Copy => fs::copy(from, new).and_then(|_| finish(new, old)),
            Self::Link => {
                fs::hard_link(from, new).or_else(|refused| symbolic_link(&fs::canonicalize(from)?, new, refused))
            }
            Self::None => Ok(()),
        }
    }
}

#[cfg(unix)]
fn symbolic_link(from: &Path, new: &Path, _refused: io::Error) -> io::Result<()> {
    std::os::unix::fs::symlink(from, new)
}

#[cfg(not(unix))]
fn symbolic_link(_from: &Path, _new: &Path, refused: io::Error) -> io::Result<()> {
    Err(refused)
}

/// Puts a file that `make` makes in the place of `path` in one step.
fn replace(path: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = tempfile::Builder::new().prefix(".typelift-").suffix(".tmp").make_in(directory(path), |new| {
        make(new).inspect_err(|error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                let _ = fs::remove_file(new);
            }
        })
    })?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Gives a new file the permissions of the `old` one whose place it takes, and waits until it is on the disk.
fn finish(new: &Path, old: &Path) -> io::Result<()> {
    if let Ok(old) = fs::metadata(old) {
        fs::set_permissions(new, old.permissions())?;
    }
    File::open(new)?.sync_all()
}

/// The file behind symbolic links, or the path as it is where there is none yet.
fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether two paths lead to one file or directory.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// The refusal of a model with constants whose bytes are nowhere; `None` where every constant has them.
fn missing_weights(model: &Model, input: &Input) -> Option<Diagnostic> {
    if model.weights().len().is_some() {
        return None;
    }
    let mut path = Vec::new();
    let constant = first_constant(model.graph(), &mut path)?;
    let layer = LayerRef { id: constant.id(), name: constant.name().to_owned(), path: path.join("/") };
    let message = format!("the constant `{}` has its bytes in a file that is not there", constant.name());
    let wanted = match input.weights() {
        Some(path) => format!("`{}` does not exist", path.display()),
        None => "standard input brings no weights along".to_owned(),
    };
    let refusal = Diagnostic::new(Code::MissingWeights, message)
        .at(xml::name_span(model, constant), "the first of them")
        .note(wanted)
        .help("put the .bin of the model there, name it with --bin, or write the graph alone with --weights none");
    Some(Diagnostic { severity: Severity::Error, layer: Some(layer), ..refusal })
}

/// The first constant that lies in the weights file.
fn first_constant<'a>(graph: &'a Graph, path: &mut Vec<String>) -> Option<&'a Layer> {
    for layer in graph.layers() {
        if ops::kind(layer) == LayerKind::Constant
            && layer.attribute("offset").is_some()
            && layer.attribute("size") != Some("0")
        {
            return Some(layer);
        }
        for body in layer.bodies() {
            path.push(format!("{}/{}", layer.name(), body.name()));
            if let Some(constant) = first_constant(body.graph(), path) {
                return Some(constant);
            }
            path.pop();
        }
    }
    None
}
