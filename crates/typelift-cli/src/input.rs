//! Reading of models: files, standard input, and common substitutes for them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use typelift::edit::inputs_outputs::{End, InterfaceError, LayoutChange};
use typelift::findings::{Code, Diagnostic, Diagnostics, FixAction, Message, Text, shell_word};
use typelift::host::{self, Stamp, named_element_type};
use typelift::promote::ElementType;
use typelift::shape::{Dim, Shape};
use typelift::{Layer, LayerId, Model, Weights, xml};

use crate::failure::{Failure, Kind};
use crate::not_a_model;
use crate::parts::by_parts;
use crate::render::STAND_IN;

/// The model to read.
#[derive(Clone, clap::Args)]
pub(crate) struct Input {
    /// The model's .xml, or - for standard input
    #[arg(value_name = "IN.xml")]
    pub(crate) file: PathBuf,
    /// The weights, if they are not in the .bin next to it
    #[arg(long, value_name = "FILE")]
    pub(crate) bin: Option<PathBuf>,
    /// Facts about a model in a batch.
    #[arg(skip)]
    pub(crate) member: Option<Member>,
    /// True if one thread must be used, because other threads are busy or unwanted.
    #[arg(skip)]
    pub(crate) on_one_thread: bool,
}

/// A model in a batch.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The destination in the output directory.
    pub(crate) place: PathBuf,
    /// True if it was found in a directory, and not named.
    pub(crate) found: bool,
}

/// Changes to the model's inputs.
#[derive(Clone, clap::Args)]
pub(crate) struct InputChanges {
    /// Change the type of an input and of the computation after it. Such as x=f16; repeatable. In names of
    /// inputs and outputs, * is any text and ? any character. With convert, also the type of a constant, whose values
    /// are converted
    #[arg(long, value_name = "NAME=TYPE", value_parser = parse_type)]
    pub(crate) set_type: Vec<(String, ElementType)>,
    /// Change the shape of an input, such as x=[1,3,?,1..224]; repeatable
    #[arg(long, value_name = "NAME=SHAPE", value_parser = parse_shape)]
    pub(crate) set_shape: Vec<(String, Shape)>,
    /// Fix an open length on all its axes, such as seq=128, or limit it, such as seq=1..128, which an NPU needs;
    /// repeatable. A length is named as in `infer --shapes`: by its name, its id (s1), a pattern (*_seq), or an
    /// axis of an input (input_ids[1])
    #[arg(long, value_name = "NAME=N", value_parser = parse_length)]
    pub(crate) set_length: Vec<(String, Dim)>,
}

/// Inputs and outputs that get other types with the computation unchanged.
#[derive(Clone, clap::Args)]
pub(crate) struct InterfaceChanges {
    /// Change an input's type by a Convert, as image=u8. The computation stays: the Convert is inserted after
    /// the input, as OpenVINO's PrePostProcessor does; repeatable
    #[arg(long, value_name = "NAME=TYPE", value_parser = parse_type)]
    pub(crate) input_type: Vec<(String, ElementType)>,
    /// Change the type of an output, such as scores=f16, by a Convert. The computation stays: the Convert is inserted
    /// before the output, which keeps its name; repeatable
    #[arg(long, value_name = "NAME=TYPE", value_parser = parse_type)]
    pub(crate) output_type: Vec<(String, ElementType)>,
    /// Make the model take an input in another layout, such as image=NHWC, by one Transpose after it. If the file does
    /// not say which layout it has, write image=NCHW:NHWC; --set-shape speaks of the shape before; repeatable
    #[arg(long, value_name = "NAME=LAYOUT", value_parser = parse_layout)]
    pub(crate) input_layout: Vec<(String, LayoutChange)>,
    /// Make the model give an output in another layout, by one Transpose before it; repeatable
    #[arg(long, value_name = "NAME=LAYOUT", value_parser = parse_layout)]
    pub(crate) output_layout: Vec<(String, LayoutChange)>,
}

fn parse_layout(text: &str) -> Result<(String, LayoutChange), String> {
    let (name, layout) = split(text, "image=NHWC")?;
    Ok((name.to_owned(), layout.parse()?))
}

/// Splits `NAME=VALUE`. `example` is a correct value of the option.
fn split<'t>(text: &'t str, example: &str) -> Result<(&'t str, &'t str), String> {
    match text.rsplit_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(format!("expected a name, `=` and a value, such as {example}")),
    }
}

pub(crate) fn parse_length(text: &str) -> Result<(String, Dim), String> {
    let (name, length) = split(text, "seq=128")?;
    if name.split_once('=').is_some_and(|(_, rest)| rest.contains(',')) {
        return Err("give the option once for each length, such as --set-length batch=1 --set-length seq=16".to_owned());
    }
    let (least, most) = length.split_once("..").unwrap_or((length, length));
    let numbers = [if least.is_empty() { "1" } else { least }, most].map(|text| text.trim().parse().unwrap_or(0));
    let [least, most]: [i64; 2] = numbers;
    let dim = (1 <= least && least <= most).then(|| Dim::between(least, most));
    let dim = dim.ok_or("a length is a number of at least 1, such as seq=128, or a range, such as seq=1..128")?;
    Ok((name.to_owned(), dim))
}

/// A length to compute at, which may be 0, such as that of an empty cache.
pub(crate) fn parse_at(text: &str) -> Result<(String, Dim), String> {
    match text.trim_end().strip_suffix("=0") {
        Some(name) if !name.contains('=') => Ok((name.trim().to_owned(), Dim::between(0, 0))),
        _ => parse_length(text),
    }
}

fn parse_type(text: &str) -> Result<(String, ElementType), String> {
    let (name, value) = split(text, "image=f16")?;
    match name.rsplit_once('=') {
        // A name may contain `=`, so only a type before a comma shows that a list is meant.
        Some((_, first)) if first.split_once(',').is_some_and(|(ty, _)| element_type(ty).is_ok()) => {
            Err("give the option once for each name, such as image=f16".to_owned())
        }
        _ => Ok((name.to_owned(), element_type(value)?)),
    }
}

/// A parser of these names. Those of element types are also understood in the spelling of other programs.
pub(crate) fn names(known: &[&'static str]) -> PossibleValuesParser {
    let others = ["float16", "fp16", "half", "bfloat16", "float32", "fp32", "float", "single", "int32"];
    let others = others.map(|other| (other, named_element_type(other)));
    let values = known.iter().map(|name| {
        let same = others.iter().filter(|(_, ty)| ty.is_some_and(|ty| ty.name() == *name)).map(|&(other, _)| other);
        PossibleValue::new(*name).aliases(same)
    });
    values.collect::<Vec<_>>().into()
}

pub(crate) fn parsed<T>(texts: &[&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(texts).try_map(|text| text.parse::<T>())
}

/// Names of element types in other programs, which a misspelling may resemble.
const LONG_NAMES: [&str; 13] = [
    "bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32",
    "uint64", "uint8",
];

/// Reads an element type in the spelling of any program.
pub(crate) fn element_type(text: &str) -> Result<ElementType, String> {
    let known = named_element_type(text).filter(|ty| ty.port_name().is_some());
    known.ok_or_else(|| {
        let names = ElementType::all().filter(|ty| ty.port_name().is_some()).map(ElementType::name);
        let near = typelift::near(text, names.chain(LONG_NAMES)).and_then(|near| named_element_type(&near));
        let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        format!("`{text}` is not an element type such as f32, f16, bf16, i64, i32, u8 or boolean{near}")
    })
}

pub(crate) fn parse_shape(text: &str) -> Result<(String, Shape), String> {
    let (name, value) = split(text, "image=[1,3,224,224]")?;
    let (shape, oddities) = Shape::parse_lenient(value)
        .map_err(|error| format!("{error}; a shape is written as [1,3,224,224] or [?,3,?,1..224]"))?;
    match oddities.first() {
        Some(oddity) => Err(oddity.kind.to_string()),
        None => Ok((name.to_owned(), shape)),
    }
}

/// Limit on the files of a directory that are listed.
const MOST_FILES: usize = 10_000;

/// Finds the file of a kind in the same directory whose name is most like that of a missing file.
pub(crate) fn near_file(path: &Path, is_kind: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        // The file is in a folder of a similar name, or here.
        let near = near_file(directory, (|_| true) as fn(&str) -> bool).filter(|near| near.is_dir());
        let path = near.unwrap_or_default().join(path.file_name()?);
        return if path.exists() { Some(path) } else { near_file(&path, is_kind) };
    }
    let names = std::fs::read_dir(directory)
        .ok()?
        .take(MOST_FILES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let name = path.file_name()?.to_str()?;
    let files: Vec<_> = names.filter(|file| is_kind(file) || file.starts_with(&format!("{name}."))).collect();
    let near = typelift::near(name, files.iter().map(String::as_str)).filter(|near| near != name)?;
    Some(path.with_file_name(near))
}

/// The file that a text was read from, and its state then; `None` for standard input, pipes and devices.
pub(crate) type ReadFrom = Option<(PathBuf, Stamp)>;

pub(crate) struct Loaded {
    /// The model, as far as it could be read; `None` if the text is not an IR at all.
    pub(crate) model: Option<Model>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) read_from: ReadFrom,
    /// True if the process ends after this model.
    is_last: bool,
}

impl Drop for Loaded {
    /// A process that ends frees its memory at once; freeing it layer by layer before would only take time.
    fn drop(&mut self) {
        if self.is_last {
            mem::forget(self.model.take());
        }
    }
}

/// Limit on the memory for computed values of one model, in bytes, where one is given.
pub(crate) static MEMORY: OnceLock<Option<u64>> = OnceLock::new();

/// Parses a number of bytes, such as `512M` or `2G`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let bits = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let size = number.zip(bits).and_then(|(number, bits)| number.checked_mul(1 << bits));
    size.ok_or_else(|| "expected a number of bytes, such as 512M or 2G".to_owned())
}

pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub(crate) fn is_stdout(path: &Path) -> bool {
    is_dash(path) || ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

impl Input {
    /// A model named alone, with its weights next to it.
    pub(crate) fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), bin: None, member: None, on_one_thread: false }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        is_dash(&self.file)
    }

    /// The file for a command, if it needs nothing else to read the model: [`STAND_IN`] for standard input.
    pub(crate) fn as_argument(&self) -> Option<&Path> {
        let file = if self.is_stdin() { Path::new(STAND_IN) } else { &self.file };
        self.bin.is_none().then_some(file)
    }

    /// The file of the weights, which need not exist; `None` if there cannot be one.
    pub(crate) fn weights(&self) -> Option<PathBuf> {
        match &self.bin {
            Some(bin) => Some(bin.clone()),
            None if self.is_stdin() => None,
            None => Some(self.file.with_extension("bin")),
        }
    }

    pub(crate) fn read(&self) -> Result<Loaded, Failure> {
        let name = if self.is_stdin() { Path::new("<stdin>") } else { &self.file };
        let diagnostics = Diagnostics::new(name, Arc::default());
        let (bytes, read_from) = self.bytes()?;
        let mut loaded = Loaded { model: None, diagnostics, read_from, is_last: self.member.is_none() };
        let diagnostics = &mut loaded.diagnostics;
        match xml::decode_utf8(bytes) {
            Ok(text) => diagnostics.source = Arc::new(text),
            Err(refusal) => {
                let mut refusal = *refusal;
                if !self.is_stdin() {
                    refusal.fixes.iter_mut().for_each(|fix| fix.action = named(&fix.action, &self.file));
                }
                diagnostics.list.push(refusal);
                return Ok(loaded);
            }
        }
        let reading = xml::parse(diagnostics.source.clone());
        diagnostics.list = reading.diagnostics;
        loaded.model = reading.model;
        match &mut loaded.model {
            Some(model) => model.set_weights(self.open_weights()?),
            None => self.skip(diagnostics)?,
        }
        // Otherwise the weights could be those of another model.
        if loaded.read_from.as_ref().is_some_and(|(file, stamp)| !stamp.holds_at(file)) {
            let message = format!("`{}` was changed or replaced while it was read", self.file.display());
            return Err(Failure::new(message).of(&self.file).help("run it again"));
        }
        Ok(loaded)
    }

    /// Names the file with exactly the bytes that the model needs, in findings that weights are missing or wrong, and
    /// that no edit repairs.
    pub(crate) fn name_weights(&self, model: &Model, found: &mut [Diagnostic]) {
        let mut found = found.iter_mut().filter(|found| lacks_weights(found)).peekable();
        if found.peek().is_none() {
            return;
        }
        let needed = host::needed_weights(model);
        if needed == 0 || model.weights().len() == Some(needed) {
            return;
        }
        let folders = [Some(&self.file), self.bin.as_ref()].into_iter().flatten().map(|file| directory(file));
        let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flat_map(|it| it.take(MOST_FILES));
        let files = files.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| is_bin_of_none(file));
        let fits = files.filter(|file| file.metadata().is_ok_and(|it| it.is_file() && it.len() == needed));
        let mut fits: Vec<_> = fits.map(|file| file.strip_prefix(".").unwrap_or(&file).display().to_string()).collect();
        let own = self.weights().unwrap_or_default().display().to_string();
        fits.sort_unstable();
        fits.dedup();
        let near = typelift::near(&own, fits.iter().map(String::as_str));
        if let Some(file) = near.or_else(|| fits.pop().filter(|_| fits.is_empty())) {
            let advice = "`--bin {}` names a file of exactly the {} bytes that the model needs";
            let advice = Message::new(advice, &[&Text(shell_word(&file)), &needed]);
            found.for_each(|found| found.fixes = vec![advice.clone().into()]);
        }
    }

    /// Reads the model and infers its types and shapes.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let mut loaded = self.read()?;
        if let Some(model) = &mut loaded.model {
            infer(model, &mut loaded.diagnostics, &[]);
            self.name_weights(model, &mut loaded.diagnostics.list);
        }
        Ok(loaded)
    }

    /// Skips XML of another kind that was found in a directory. An empty file counts as a model.
    fn skip(&self, diagnostics: &Diagnostics) -> Result<(), Failure> {
        let found = self.member.as_ref().is_some_and(|member| member.found);
        let refusal = diagnostics.list.iter().find(|diagnostic| diagnostic.code == Code::NotAnIr);
        match refusal {
            Some(refusal) if found && !diagnostics.source.trim().is_empty() => {
                Err(Failure::of_kind(Kind::NoModel, format!("{}: {}", diagnostics.file, refusal.message)))
            }
            _ => Ok(()),
        }
    }

    /// Opens the weights, if the model has a file of them.
    pub(crate) fn open_weights(&self) -> Result<Weights, Failure> {
        let Some(path) = self.weights() else { return Ok(Weights::none()) };
        match Weights::open(&path) {
            Ok(_) if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml")) => {
                Err(Failure::new(format!("`{}` is a graph, not weights", path.display()))
                    .help("give the .bin to --bin"))
            }
            Ok(weights) if weights.len().is_none() && self.bin.is_some() => Err(Failure::no_file(&path)),
            Ok(weights) => {
                let weights = if self.on_one_thread { weights.on_one_thread() } else { weights };
                Ok(match MEMORY.get() {
                    Some(&Some(limit)) => weights.with_memory(limit),
                    _ => weights,
                })
            }
            Err(error) => Err(Failure::io("read", &path, &error)),
        }
    }

    fn too_long(&self) -> Failure {
        Failure::new(format!("`{}` is 4 GiB or longer, and no IR is", self.file.display())).of(&self.file)
    }

    fn bytes(&self) -> Result<(Vec<u8>, ReadFrom), Failure> {
        let path = &self.file;
        if self.is_stdin() {
            let bytes = xml::read_bytes(io::stdin().lock(), 0).map_err(|error| match error.kind() {
                ErrorKind::FileTooLarge => self.too_long(),
                _ => Failure::io("read", Path::new("standard input"), &error),
            });
            return Ok((bytes?, None));
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bin")) {
            let xml = path.with_extension("xml");
            let failure = Failure::new(format!("`{}` holds weights, not a graph", path.display())).of(path);
            return Err(if xml.is_file() {
                failure.help(format!("give `{}`; its weights are found next to it", xml.display()))
            } else {
                failure.help("give the .xml of the model; its weights are found next to it")
            });
        }
        if let Some(advice) = not_a_model::file(&path.to_string_lossy()).filter(|_| !may_be_xml(path)) {
            return Err(Failure::new(format!("`{}` is not OpenVINO IR", path.display())).help(advice).of(path));
        }
        let mut found = read(path);
        // While another run replaces a pair, its .xml is missing.
        if found.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            if host::is_half_written(path).unwrap_or(false) {
                return Err(half_written(path));
            }
            found = read(path);
        }
        found.map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => self.too_long(),
            _ if let Some(advice) = path
                .ancestors()
                .skip(1)
                .filter(|file| file.is_file())
                .find_map(|file| not_a_model::file(&file.to_string_lossy())) =>
            {
                self.refused(&error).help(advice)
            }
            _ if error.kind() != ErrorKind::NotFound && path.is_symlink() && std::fs::metadata(path).is_err() => {
                self.refused(&error).help("the link leads to no file: remove it, and give the file itself")
            }
            ErrorKind::NotFound if let Ok(end) = std::fs::read_link(path) => self
                .refused(&error)
                .help(format!("it is a link to `{}`, which does not exist: give the file itself", end.display())),
            ErrorKind::NotFound => match near_file(path, is_xml) {
                Some(near) => self.refused(&error).did_you_mean(&path.to_string_lossy(), &near.to_string_lossy()),
                None if path.starts_with("file:") => self.refused(&error).help("write the path without file://"),
                None if path.to_string_lossy().contains("://") => {
                    self.refused(&error).help("download the .xml and its .bin first: typelift reads files only")
                }
                None if path.starts_with("~") => {
                    self.refused(&error).help("write ~ without quotes, so that the shell replaces it")
                }
                None if path.extension().is_some_and(|ending| ending == "html") => {
                    self.refused(&error).help("`typelift view` writes a page with -o OUT.html")
                }
                None => match not_a_model::file(&path.to_string_lossy()) {
                    Some(advice) => self.refused(&error).help(advice),
                    None => self.refused(&error),
                },
            },
            _ => self.refused(&error),
        })
    }

    /// The failure for a file that could not be read, with a similar name if there is one.
    fn refused(&self, error: &io::Error) -> Failure {
        let path = &self.file;
        if path.is_dir() {
            let failure = Failure::new(format!("`{}` is a directory", path.display())).of(path);
            let files = walkdir::WalkDir::new(path).max_depth(DEPTH).sort_by_file_name().into_iter().flatten();
            let mut models: Vec<_> = files.map(walkdir::DirEntry::into_path).collect();
            models.retain(|file| file.extension().is_some_and(|extension| extension == "xml"));
            let help = match &models[..] {
                [] => return failure.help("give the .xml of a model"),
                [model] => {
                    let help = format!("give the model in it: `{}`", model.display());
                    return failure.help(help).slipped(&path.to_string_lossy(), &model.to_string_lossy());
                }
                [model, ..] => format!("give one of the {} models in it, such as `{}`", models.len(), model.display()),
            };
            return failure.help(help);
        }
        let failure = Failure::io("read", path, error);
        let mut xml = path.clone().into_os_string();
        xml.push(".xml");
        let xml = PathBuf::from(xml);
        if xml.is_file() { failure.did_you_mean(&path.to_string_lossy(), &xml.to_string_lossy()) } else { failure }
    }
}

fn read(path: &Path) -> io::Result<(Vec<u8>, ReadFrom)> {
    let file = File::open(path).map_err(|error| match error.kind() {
        // A name that Windows does not allow is the name of no file.
        ErrorKind::InvalidFilename if cfg!(windows) => ErrorKind::NotFound.into(),
        _ => error,
    })?;
    let stamp = Stamp::of(&file)?;
    let is_file = file.metadata()?.is_file();
    let bytes = xml::read_bytes(&file, stamp.length())?;
    Ok((bytes, is_file.then(|| (path.to_owned(), stamp))))
}

/// Names the file in the command of an advice. What the command writes gets the name that its weights have.
fn named(action: &FixAction, file: &Path) -> FixAction {
    let FixAction::Advise(advice) = action else { return action.clone() };
    let advice = advice.to_string();
    let [from, to] = [file, &file.with_extension("new.xml")].map(|path| path.display().to_string());
    match advice.split_once("FILE > OUT.xml") {
        Some((before, after)) => {
            let [from, to] = [shell_word(&from), shell_word(&to)];
            let files = format!("{from} > {to} && mv {to} {from}");
            FixAction::Advise(Message::new("{}{}{}", &[&Text(before), &Text(files), &Text(after)]))
        }
        None => action.clone(),
    }
}

fn is_wrong_shape(found: &Diagnostic) -> bool {
    found.is_error() && found.code == Code::ShapeMismatch
}

fn lacks_weights(found: &Diagnostic) -> bool {
    [Code::MissingWeights, Code::WrongWeights, Code::InvalidConstant].contains(&found.code) && found.edits().is_none()
}

/// A file next to its own model is not that of another one.
fn is_bin_of_none(file: &Path) -> bool {
    file.to_string_lossy().to_ascii_lowercase().contains(".bin") && !file.with_extension("xml").exists()
}

pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// True if a file begins like XML, or cannot be read as a regular file.
fn may_be_xml(path: &Path) -> bool {
    let mut start = [0; 64];
    let read = path.is_file().then(|| File::open(path).and_then(|mut file| io::Read::read(&mut file, &mut start)));
    !read.is_some_and(|read| read.is_ok_and(|length| !start[..length].trim_ascii_start().starts_with(b"<")))
}

/// The failure for a pair without its graph: a killed run left it, and only a run that writes there may
/// complete it.
fn half_written(path: &Path) -> Failure {
    let completes = format!("typelift infer --in-place {}", shell_word(&path.display().to_string()));
    Failure::new(format!("`{}` is half written: a run that was replacing it was killed", path.display()))
        .of(path)
        .help(format!("`{completes}` completes it, and so does the command that was killed"))
}

impl InputChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.set_type.is_empty() && self.set_shape.is_empty() && self.set_length.is_empty()
    }

    pub(crate) fn shapes(&self, model: &Model) -> Result<Vec<(String, Shape)>, Failure> {
        let mut shapes = self.set_shape.clone();
        if self.set_length.is_empty() {
            return Ok(shapes);
        }
        let mut copy = model.clone();
        copy.set_inputs(&[], &shapes).map_err(|error| refused_name(model, &error))?;
        let _ = typelift::infer(&mut copy);
        let known = typelift::shapes(&copy);
        for (name, length) in &self.set_length {
            let found = known.symbols_of(name);
            if found.is_empty() {
                let names: Vec<&str> = known.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
                return Err(no_length(name, &names));
            }
            for &(id, axis) in found.iter().flat_map(|symbol| &symbol.axes) {
                let Some(layer) = copy.graph().layer(id) else { continue };
                let input = copy.end_name(layer);
                let own = layer.outputs().first().map_or_else(Shape::dynamic, |port| port.shape().clone());
                let known = shapes.iter().rev().find(|(name, _)| *name == input);
                let mut shape = known.map_or(own, |(_, shape)| shape.clone());
                if let Some(dim) = shape.dims_mut().and_then(|dims| dims.get_mut(axis)) {
                    *dim = *length;
                }
                shapes.push((input, shape));
            }
        }
        Ok(shapes)
    }

    /// Warns of inputs that get another rank, which layers that broadcast accept.
    pub(crate) fn other_ranks(&self, model: &Model, file: &str) -> String {
        let found = self.set_shape.iter().filter_map(|(name, shape)| {
            let layer = model.graph().layer(model.find_input(name).ok()?)?;
            let old = layer.outputs().first()?.shape().rank()?;
            let new = shape.rank().filter(|&new| new != old)?;
            Some(format!("warning: {file}: the input `{name}` had rank {old}, and gets rank {new} of {shape}\n"))
        });
        found.collect()
    }

    /// Names the lengths that stay open after `--set-length`.
    pub(crate) fn left_open(&self, model: &Model) -> Option<String> {
        if self.set_length.is_empty() {
            return None;
        }
        let shapes = typelift::shapes(model);
        let open = shapes.symbols.iter().filter(|symbol| !symbol.is_bounded());
        let open: Vec<String> = open.map(|it| format!("{} (`{}`)", &it.name, it.axis())).collect();
        Some(match open.len() {
            0 => "no length of an input stays open".to_owned(),
            1..=4 => format!("{} stays open", open.join(", ")),
            count => format!("{} and {} more lengths stay open", open[..3].join(", "), count - 3),
        })
    }

    /// Why requested lengths do not fit, with lengths that do. `original` is the model before the change.
    fn refusals(&self, mut original: Model) -> Vec<Diagnostic> {
        if typelift::infer(&mut original).iter().any(Diagnostic::is_error) {
            return Vec::new();
        }
        let Ok(shapes) = self.shapes(&original) else { return Vec::new() };
        let asked =
            shapes.into_iter().rev().filter_map(|(name, shape)| Some((original.find_input(&name).ok()?, shape)));
        typelift::shapes(&original).refusals(&original, &asked.collect::<Vec<_>>())
    }

    /// Replaces errors about shapes by the requested lengths that do not fit, with the layer that is the reason.
    pub(crate) fn say_what_fits(&self, input: &Input, diagnostics: &mut Diagnostics) {
        let asked = !self.set_shape.is_empty() || !self.set_length.is_empty();
        if !asked || !diagnostics.list.iter().any(is_wrong_shape) {
            return;
        }
        let original = input.read().ok().and_then(|mut loaded| loaded.model.take());
        let mut refusals = original.map(|original| self.refusals(original)).unwrap_or_default();
        if !refusals.is_empty() {
            diagnostics.list.retain(|found| !is_wrong_shape(found));
            refusals.append(&mut diagnostics.list);
            diagnostics.list = refusals;
        }
    }

    pub(crate) fn apply(&self, model: &mut Model) -> Result<Vec<LayerId>, Failure> {
        model.set_inputs(&self.set_type, &self.shapes(model)?).map_err(|error| refused_name(model, &error))
    }
}

impl InterfaceChanges {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { input_type, output_type, input_layout, output_layout } = self;
        input_type.is_empty() && output_type.is_empty() && input_layout.is_empty() && output_layout.is_empty()
    }
}

/// The number of folders below one another in which models are looked for.
const DEPTH: usize = 4;

pub(crate) fn is_xml(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"))
}

/// The failure for an open length that is not there, with a similar name or all names.
pub(crate) fn no_length(name: &str, names: &[&str]) -> Failure {
    let failure = Failure::new(format!("the model has no open length `{name}`"));
    match by_parts(name, names.iter().copied()) {
        _ if names.is_empty() => failure.help("no length of its inputs is open"),
        Some(near) => failure.did_you_mean(name, &near),
        None => failure.help(format!("its open lengths are {}", names.join(", "))),
    }
}

/// The failure for an input or output that could not be changed, with a similar name if there is one.
pub(crate) fn refused_name(model: &Model, error: &InterfaceError) -> Failure {
    let failure = Failure::new(error.to_string());
    let InterfaceError::Unknown { end, name, .. } = error else { return failure };
    let ends: Vec<_> = if *end == End::Input { model.inputs().collect() } else { model.outputs().collect() };
    let is_family = ends.iter().filter(|layer| model.end_name(layer).starts_with(&format!("{name}."))).count() > 1;
    let near = match &ends[..] {
        // Another layer of this name is meant otherwise.
        [end] if model.find(name).is_err() => Some(model.end_name(end)),
        _ if is_family => Some(format!("{name}.*")),
        _ => closest(ends.into_iter(), name),
    };
    match near {
        Some(near) => failure.did_you_mean(name, &near),
        None => failure,
    }
}

pub(crate) fn with_nearest(failure: Failure, model: &Model, word: &str) -> Failure {
    match model.nearest_name(word) {
        Some(near) => failure.did_you_mean(word, &near),
        None => failure.help("`typelift show` lists the layers"),
    }
}

/// A note on a number that is the name of one layer and the id of another; nothing for other words.
pub(crate) fn other_meaning(model: &Model, word: &str) -> String {
    let other = model.other_meaning(word);
    other.map_or(String::new(), |layer| {
        format!("note: `{word}` is a name; `id:{word}` is the layer `{}`\n", layer.name())
    })
}

fn closest<'a>(layers: impl Iterator<Item = &'a Layer>, name: &str) -> Option<String> {
    let names = layers.flat_map(|layer| {
        let tensors = layer.outputs().iter().flat_map(|port| port.names());
        std::iter::once(layer.name().to_owned()).chain(tensors)
    });
    let names: Vec<_> = names.collect();
    typelift::near(name, names.iter().map(String::as_str))
}

/// Infers types and shapes. If reading found errors, layers with unconnected inputs are skipped.
pub(crate) fn infer(model: &mut Model, diagnostics: &mut Diagnostics, changed: &[LayerId]) {
    let damaged = diagnostics.has_errors();
    let mut found = typelift::infer(model);
    if damaged {
        found.retain(|diagnostic: &Diagnostic| diagnostic.code != Code::WrongInputCount);
    }
    typelift::edit::inputs_outputs::trace_changes(model.graph(), changed, &mut found);
    diagnostics.list.append(&mut found);
}
