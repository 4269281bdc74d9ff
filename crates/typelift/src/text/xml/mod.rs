//! Reading and writing the XML of a model.
//!
//! [`parse`] records the position of each layer in the text. [`write()`] copies unchanged parts and prints the rest.

mod canonical;
mod execution;
mod in_order;
mod locate;
mod metadata;
mod read;
mod splice;
mod tokens;

use std::convert::Infallible;
use std::io::{self, Read};
use std::path::Path;
use std::string::FromUtf8Error;
use std::sync::Arc;
use std::thread;

pub use execution::is_execution;
pub(crate) use locate::{
    Tag, declared_dims, declares, locate, locate_back_edge, locate_entry, locate_joint, locate_joint_with, locate_port,
    matches_dims, means, tags,
};
pub(crate) use metadata::{
    entries, leaves, names_of, value_at, value_of, with_entry, with_missing, with_value, without_entry, without_value,
};
pub(crate) use read::metadata_attribute;
pub use read::{Reading, parse};

use thiserror::Error;

use crate::base::file::{open_regular, other_format};
use crate::base::progress::Stage;
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, Diagnostics, Message, Text, message};
use crate::model::graph::{Layer, Model};
use crate::model::weights::Weights;

/// Error of reading a file as a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An error of the file system.
    #[error("cannot read {file}")]
    Io {
        /// The file.
        file: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file is not a model, or not one that OpenVINO accepts.
    #[error(transparent)]
    Model(#[from] Box<Diagnostics>),
}

impl From<Diagnostics> for ReadError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Model(Box::new(diagnostics))
    }
}

impl ReadError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { file: path.display().to_string(), source }
    }
}

impl Model {
    /// Reads a model, and opens its weights if the `.bin` of the same name exists next to it.
    ///
    /// # Errors
    /// [`ReadError::Io`] if the file cannot be read, [`ReadError::Model`] with all errors if it is not a valid model.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let source = Arc::new(load(path)?);
        let reading = parse(source.clone());
        let mut diagnostics = Diagnostics::new(path, source);
        diagnostics.list = reading.diagnostics;
        match reading.model {
            Some(mut model) if !diagnostics.has_errors() => {
                model.weights =
                    Weights::beside(path).map_err(|error| ReadError::io(&path.with_extension("bin"), error))?;
                Ok(model)
            }
            _ => Err(diagnostics.into()),
        }
    }

    /// Reads a model from text. The model has no weights until [`weights`](Self::weights) is set.
    ///
    /// # Errors
    /// All errors of the text. Warnings are not errors; [`parse`] returns them too.
    ///
    /// # Examples
    /// ```
    /// let model = typelift::Model::from_xml(r#"<net name="empty" version="11"><layers/></net>"#)?;
    /// assert_eq!(model.name(), "empty");
    /// # Ok::<(), typelift::findings::Diagnostics>(())
    /// ```
    pub fn from_xml(source: impl Into<String>) -> Result<Self, Diagnostics> {
        let source = Arc::new(source.into());
        let reading = parse(source.clone());
        match reading.model {
            Some(model) if !reading.diagnostics.iter().any(Diagnostic::is_error) => Ok(model),
            _ => Err(Diagnostics { list: reading.diagnostics, ..Diagnostics::new("<memory>", source) }),
        }
    }
}

/// Reads the text of a file.
///
/// # Errors
/// [`ReadError::Io`]; [`ReadError::Model`] if the file is not UTF-8.
pub fn load(path: &Path) -> Result<String, ReadError> {
    let read = open_regular(path).and_then(|file| read_bytes(&file, file.metadata()?.len()));
    let bytes = read.map_err(|error| ReadError::io(path, error))?;
    decode_utf8(bytes).map_err(|diagnostic| {
        let mut diagnostics = Diagnostics::new(path, Arc::default());
        diagnostics.list.push(*diagnostic);
        diagnostics.into()
    })
}

/// The largest text that is read, because positions in it have 32 bits.
const MAX_LENGTH: u64 = u32::MAX as u64 - 1;

/// Reads the bytes of a text. Reading stops early if the bytes do not begin like XML, so that an endless device or a
/// large file of another kind is not read completely. Parsing then reports an error. `expected` is the number of
/// bytes, as far as it is known.
///
/// # Errors
/// The errors of `source`, and [`io::ErrorKind::FileTooLarge`] for 4 GiB and more.
pub fn read_bytes(mut source: impl Read, expected: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(START);
    source.by_ref().take(START as u64).read_to_end(&mut bytes)?;
    if begins_as_xml(&bytes) && expected <= MAX_LENGTH {
        let expected = usize::try_from(expected).unwrap_or(0);
        bytes.try_reserve_exact(expected.saturating_sub(bytes.len()))?;
        // No XML has a zero, and the hole of a sparse file consists of them.
        while bytes.len() < expected && bytes.last() != Some(&0) {
            let part = PART.min((expected - bytes.len()) as u64);
            if (source.by_ref().take(part).read_to_end(&mut bytes)? as u64) < part {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if bytes.len() >= expected {
            source.take(MAX_LENGTH - bytes.len() as u64 + 1).read_to_end(&mut bytes)?;
        }
    }
    if expected.max(bytes.len() as u64) > MAX_LENGTH { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Number of bytes at the start that are checked before the rest is read.
const START: usize = 4096;
/// Number of bytes that are read at a time.
const PART: u64 = 16 << 20;

fn begins_as_xml(start: &[u8]) -> bool {
    let white = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xef | 0xbb | 0xbf | 0xfe | 0xff);
    let first = start.iter().position(|byte| !white(byte)).unwrap_or(0);
    // In big-endian UTF-16 the first byte is zero. OpenVINO ignores text before the first tag.
    let is_later = || memchr::memmem::find(start, b"<net").is_some();
    matches!(start[first..], [] | [b'<', ..] | [0, b'<', ..]) || start.iter().all(white) || is_later()
}

fn not_a_model(bytes: &[u8]) -> Option<Diagnostic> {
    let (name, help) = other_format(bytes).filter(|_| !bytes.trim_ascii_start().starts_with(b"<"))?;
    Some(Diagnostic::new(Code::NotAnIr, message!("the file is {}, not the XML of a model"; name)).help(help))
}

/// Converts bytes to text.
///
/// # Errors
/// A diagnostic that names the first byte that is not UTF-8, or the kind of file.
pub fn decode_utf8(bytes: Vec<u8>) -> Result<String, Box<Diagnostic>> {
    if let Some(refusal) = not_a_model(&bytes).or_else(|| wide(&bytes)) {
        return Err(refusal.into());
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(&error).into())
}

/// The finding for a text of wide characters, with or without a byte order mark.
fn wide(bytes: &[u8]) -> Option<Diagnostic> {
    let name = match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => "UTF-32",
        [b'<', 0, 0, 0, ..] => "UTF-32LE",
        [0, 0, 0, b'<', ..] => "UTF-32BE",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16",
        [b'<', 0, ..] => "UTF-16LE",
        [0, b'<', ..] => "UTF-16BE",
        _ => return None,
    };
    Some(of_encoding(message!("the text is {}: OpenVINO reads that, Typelift reads UTF-8 only"; Text(name)), name))
}

fn of_encoding(message: Message, name: &str) -> Diagnostic {
    let help = message!("convert the file to UTF-8: `iconv -f {} -t UTF-8 FILE > OUT.xml`"; Text(name));
    Diagnostic::new(Code::XmlSyntax, message).help(help)
}

/// The finding for bytes that are not UTF-8: a text in an older encoding, or no text.
fn not_utf8(error: &FromUtf8Error) -> Diagnostic {
    let bytes = error.as_bytes();
    let at = error.utf8_error().valid_up_to();
    let line = bytes[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
    let message = message!("byte {}, in line {}, is not UTF-8, and Typelift reads UTF-8 only"; at, line);
    let head = String::from_utf8_lossy(&bytes[..at.min(START)]);
    let declared = head.split_once("encoding=").and_then(|(_, rest)| rest.split(['"', '\'']).nth(1));
    let is_name = |name: &&str| !name.to_uppercase().starts_with("UTF") && name.bytes().all(|it| it.is_ascii_graphic());
    match bytes.trim_ascii_start() {
        [b'<' | 0xEF, ..] => of_encoding(message, declared.filter(is_name).unwrap_or("LATIN1")),
        _ => Diagnostic::new(Code::XmlSyntax, message).help("the file is no text: give the .xml of the model"),
    }
}

/// Returns the position of a layer's name in the text of `model`; empty for an added layer.
#[must_use]
pub fn name_span(model: &Model, layer: &Layer) -> Span {
    layer.span().map_or(Span::default(), |span| locate(&model.source, span, "layer", "name"))
}

/// Options for writing a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Print the whole model anew with the elements, order and indentation of OpenVINO's serializer. Comments and
    /// elements that the format does not define are dropped. The attributes of a layer keep their order and their
    /// texts: no default is added, and no list is reformatted.
    pub canonical: bool,
    /// Update the type and dimensions of every port, not only of changed layers.
    pub refresh_ports: bool,
    /// Print on this thread only. By default a text of several megabytes is printed on two threads, if there are two
    /// cores.
    pub on_one_thread: bool,
}

/// Writes a model as text.
///
/// Without [`canonical`](WriteOptions::canonical), unchanged parts are copied from the source byte for byte.
#[must_use]
pub fn write(model: &Model, options: WriteOptions) -> String {
    let mut text = String::with_capacity(model.source.len());
    let Ok(()) = write_to(model, options, |piece| {
        text.push_str(piece);
        Ok::<_, Infallible>(())
    });
    text
}

/// Passes a model's text to `sink` in pieces, which needs much less memory than the whole text.
///
/// # Errors
/// The error of `sink`, after which it is not called again.
///
/// # Examples
/// ```
/// use std::io::Write;
/// use typelift::xml::{write_to, WriteOptions};
/// let model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers/></net>"#)?;
/// let mut file = tempfile::tempfile()?;
/// write_to(&model, WriteOptions::default(), |piece| file.write_all(piece.as_bytes()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_to<E>(model: &Model, options: WriteOptions, mut sink: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let mut held = model.constraints.opening.then(String::new);
    let (stage, mut written) = (Stage::new("write", model.source.len() as u64), 0);
    let mut hand = |piece: &str| {
        written += piece.len();
        stage.at(written.min(model.source.len()) as u64);
        let Some(text) = &mut held else { return sink(piece) };
        text.push_str(piece);
        if text.trim_end().len() <= OPENING { Ok(()) } else { sink(&held.take().unwrap_or_default()) }
    };
    if options.canonical || model.source.is_empty() {
        hand(&canonical::model(model))?;
    } else {
        splice::model(model, options, &mut hand)?;
    }
    let Some(text) = held else { return Ok(()) };
    let text = text.trim_end();
    let (text, end) = text.split_at(text.rfind("</").unwrap_or(text.len()));
    sink(&format!("{text}{}{end}\n", " ".repeat(OPENING + 1 - text.len() - end.len())))
}

/// The stack of a second thread, sufficient for the deepest nesting of bodies. It equals the usual stack of the main
/// thread.
const STACK: usize = 8 << 20;

fn is_worth_two_threads(length: usize) -> bool {
    const LONG: usize = 4 << 20;
    length >= LONG && thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// The number of bytes in which older releases look for the whole `<net …>` tag. These releases require more text after
/// them.
pub(crate) const OPENING: usize = 512;

pub(crate) const DECLARATION: &str = "<?xml version=\"1.0\"?>\n";

pub(crate) fn is_source(model: &Model, options: WriteOptions) -> bool {
    let mut rest: &str = model.source();
    let same = write_to(model, WriteOptions { on_one_thread: true, ..options }, |piece| {
        rest = rest.strip_prefix(piece).ok_or(())?;
        Ok::<_, ()>(())
    });
    same.is_ok() && rest.is_empty()
}
