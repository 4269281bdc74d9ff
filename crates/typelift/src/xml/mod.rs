//! Reading and writing the XML of a model.
//!
//! [`parse`] keeps where each layer stands in the text; [`write()`] copies what nobody touched and prints the rest.

mod canonical;
mod read;
mod splice;
mod tokens;

use std::io;
use std::ops::Range;
use std::path::Path;

use thiserror::Error;

pub use read::{Reading, parse};
pub(crate) use read::{declared_dims, declares, locate, locate_port, matches_dims};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::graph::{Layer, Model};

/// Why a file could not be read as a model.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file system said no.
    #[error("cannot read {file}")]
    Io {
        /// The file.
        file: String,
        /// What the file system said.
        source: io::Error,
    },
    /// The file is no model, or not one that OpenVINO takes.
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

/// Reads the text of a file.
///
/// # Errors
/// [`ReadError::Io`]; [`ReadError::Model`] where the file is not UTF-8.
pub fn load(path: &Path) -> Result<String, ReadError> {
    let bytes = std::fs::read(path).map_err(|error| ReadError::io(path, error))?;
    decode_utf8(bytes).map_err(|diagnostic| {
        let mut diagnostics = Diagnostics::new(path, "".into());
        diagnostics.list.push(diagnostic);
        diagnostics.into()
    })
}

/// Takes bytes as text.
///
/// # Errors
/// A diagnostic that names the first byte that is no UTF-8.
pub fn decode_utf8(bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Diagnostic::new(Code::XmlSyntax, format!("byte {at} is not UTF-8, the encoding of every IR"))
            .help("convert the file to UTF-8 first, or take the .xml of the model, not its .bin")
    })
}

/// Where the name of a layer of `model` stands in its text; empty for a layer that was added.
#[must_use]
pub fn name_span(model: &Model, layer: &Layer) -> Span {
    layer.span().map_or(Span::default(), |span| locate(&model.source, span, "layer", "name"))
}

/// How to write a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Print everything afresh in the style of OpenVINO's serializer; what the graph does not hold, such as comments and
    /// elements the format does not have, is left out.
    pub canonical: bool,
    /// Bring every port's type and dims up to what the graph holds, not only those of layers that were changed.
    pub refresh_ports: bool,
}

/// Writes a model as text.
///
/// Without [`canonical`](WriteOptions::canonical), what nobody changed is copied from the source byte for byte.
#[must_use]
pub fn write(model: &Model, options: WriteOptions) -> String {
    render(model, options).into()
}

/// Writes a model in pieces, which takes much less memory than the whole text.
///
/// # Examples
/// ```
/// use typelift::xml::{WriteOptions, render};
/// let model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers/></net>"#)?;
/// let written = render(&model, WriteOptions::default());
/// assert!(written.is_source());
/// assert_eq!(written.pieces().collect::<String>(), **model.source());
/// # Ok::<(), typelift::Diagnostics>(())
/// ```
#[must_use]
pub fn render(model: &Model, options: WriteOptions) -> Written<'_> {
    if options.canonical || model.source.is_empty() {
        let new = canonical::model(model);
        Written { source: &model.source, edits: vec![(Span::new(0, model.source.len()), 0..new.len())], new }
    } else {
        splice::model(model, options.refresh_ports)
    }
}

/// The text of a model: its source, and what is new in it.
#[derive(Clone, Debug)]
pub struct Written<'a> {
    source: &'a str,
    /// What to write in place of which bytes, as a range of `new`, from the top to the end.
    edits: Vec<(Span, Range<usize>)>,
    new: String,
}

impl Written<'_> {
    /// Whether it is the text that the model was read from.
    #[must_use]
    pub fn is_source(&self) -> bool {
        self.edits.iter().all(|(span, new)| span.text(self.source) == &self.new[new.clone()])
    }

    /// The text that the model was read from; empty where it was not.
    #[must_use]
    pub fn source(&self) -> &str {
        self.source
    }

    /// The text, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let mut at = 0;
        let edits = self.edits.iter().flat_map(move |(span, new)| {
            let kept = self.source.get(at..span.start as usize).unwrap_or_default();
            at = at.max(span.end as usize);
            [kept, &self.new[new.clone()]]
        });
        let end = self.edits.iter().map(|(span, _)| span.end as usize).max().unwrap_or(0);
        edits.chain(self.source.get(end..))
    }
}

impl From<Written<'_>> for String {
    fn from(written: Written) -> Self {
        let mut text = Self::with_capacity(written.source.len() + written.new.len());
        text.extend(written.pieces());
        text
    }
}
