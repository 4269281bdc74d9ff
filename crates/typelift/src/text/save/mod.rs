//! Saves a model so that a reader finds the old pair of `.xml` and `.bin`, the new pair, or no `.xml`: never one of each.
//! This holds after a kill and on a full disk.
//!
//! Two renames cannot happen at once. While a pair is replaced, the `.xml` is missing, which every reader notices. The files
//! needed to finish lie next to it, in the directory `.typelift-USER.tmp`. For `out.xml` and `out.bin`, with `HASH` made from
//! the name `out.xml`:
//!
//! | step | state | a kill after this step |
//! |---|---|---|
//! | 1. create the directory and lock `HASH.lock` in it | old pair | the next run removes the files, because nobody holds the lock |
//! | 2. write `HASH.bin`, then `HASH.xml`; sync both if they replace a file | old pair | the same |
//! | 3. rename `out.xml` to `HASH.old` | old `out.bin` alone | `HASH.bin` exists: the next run restores `HASH.old` |
//! | 4. rename `HASH.bin` to `out.bin` | new `out.bin` alone | `HASH.bin` is missing: the next run continues with step 5 |
//! | 5. rename `HASH.xml` to `out.xml` | new pair | the next run removes the rest |
//! | 6. remove `HASH.old`, `HASH.lock` and the empty directory | new pair | the same |
//!
//! The directory is synced between the steps if something is replaced, so a power cut cannot reorder them. A new pair is not
//! synced: a power cut can lose it. Names follow from the `.xml` and the user alone. Nothing is read from the lock. A second
//! process that writes the same model waits for the lock and says so. Once it has the lock, it looks again at what it read:
//! if the graph or the weights have changed, nothing is written.
//!
//! A command that writes `out.xml` completes an interrupted pair first. A command that only reads reports it and changes
//! nothing. If step 4 fails, `out.xml` is restored. If step 5 fails, the files stay for the next run. If the `.bin` does not
//! change, one file `HASH.new` is written under the same lock and renamed. An interrupt waits for steps 3 to 6.

mod attributes;
#[cfg(unix)]
mod folder;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod folder;
pub(crate) mod stage;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::base::options::one_of;
use crate::findings::{Code, Diagnostic, LayerRef, Severity, message};
use crate::model::graph::{Layer, Model};
use crate::model::weights::Weights;
use crate::text::xml::{self, WriteOptions};

pub(crate) use crate::base::file::Stamp;
use stage::{Pair, Single};

/// Method by which a model gets its `.bin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightsMode {
    /// A copy, which shares disk blocks with the original if the file system supports it. If constants were added or
    /// removed, the others keep their offsets, unless [`Compact`](Self::Compact) saves at least 64 KiB or 1 %.
    #[default]
    Copy,
    /// A hard link, or a symbolic one across file systems. The model must have no added constants.
    Link,
    /// No file is written; an existing `.bin` is kept.
    None,
    /// A file with exactly the bytes that constants use, equal bytes once.
    Compact,
}

impl FromStr for WeightsMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(text, &[("copy", Self::Copy), ("link", Self::Link), ("none", Self::None), ("compact", Self::Compact)])
    }
}

/// Options for saving a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveOptions {
    /// The format of the graph.
    pub text: WriteOptions,
    /// The method by which the model gets its `.bin`.
    pub weights: WeightsMode,
    /// True if the model replaces the file that it was read from: its `.bin` is then kept, unless constants were added.
    pub in_place: bool,
    /// Maximum size of the new weights, as a multiple of the old weights and the added values. Constants that overlap
    /// in the old file need separate bytes after a change of type.
    pub max_growth: u64,
    /// The file of the graph, and its state when the model was read from it. If the file has changed since, nothing is
    /// written: the result would undo what another process wrote.
    pub read_from: Option<(PathBuf, Stamp)>,
}

impl Default for SaveOptions {
    fn default() -> Self {
        let (text, weights) = (WriteOptions::default(), WeightsMode::default());
        Self { text, weights, in_place: false, max_growth: MAX_GROWTH, read_from: None }
    }
}

/// Default of [`SaveOptions::max_growth`]: enough for a change from a type of 4 bits to one of 64.
const MAX_GROWTH: u64 = 16;
/// Size in bytes up to which weights are always permitted.
const ALWAYS_ALLOWED: u64 = 1 << 20;

/// Reason why a model was not saved. Nothing was replaced, with one exception: an [`Io`](Self::Io) error between the
/// two files, after which [`recover`] completes the pair.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// A file or directory could not be written or read.
    #[error("cannot write `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is that of the weights.
    #[error("cannot write `{}`: the name of a graph does not end in .bin", .0.display())]
    NamedAsWeights(PathBuf),
    /// Something other than a file is at the path.
    #[error("cannot write `{}`: it is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The model has constants whose bytes are unknown.
    #[error("{}", .0.message)]
    MissingWeights(Box<Diagnostic>),
    /// Constants were added to the model, which therefore needs its own `.bin`.
    #[error("constants were added to the model, so its .bin cannot be left out, nor be a link to the original")]
    AddedConstants,
    /// The new weights would be much larger than the old ones.
    #[error(
        "the .bin would grow from {before} to {after} bytes, because constants that share bytes get bytes of their own"
    )]
    Grown {
        /// Size of the old weights in bytes.
        before: u64,
        /// Size of the new weights in bytes.
        after: u64,
    },
    /// The graph or the weights have changed since the model was read.
    #[error("`{}` was changed or replaced after the model was read", .0.display())]
    Changed(PathBuf),
}

impl SaveError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

impl Model {
    /// Writes the model to `path`, and its weights to the file of the same name that ends in `.bin`.
    ///
    /// Nothing is written through a symbolic link. A link at one of the two paths is replaced by a file, and the file it leads
    /// to stays as it is.
    ///
    /// Unchanged parts are copied from the text that the model was read from. Both files are written completely and
    /// replaced together. If a run is killed between the two, the next [`save`](Self::save) or [`recover`] completes
    /// the pair.
    ///
    /// # Errors
    /// [`SaveError`]; the old pair still exists then.
    ///
    /// # Examples
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// let model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers/></net>"#)?;
    /// model.save(folder.path().join("n.xml"))?;
    /// assert_eq!(typelift::Model::open(folder.path().join("n.xml"))?.name(), "n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SaveError> {
        self.save_with(path, SaveOptions::default())
    }

    /// Writes the model as [`save`](Self::save) does, with options.
    ///
    /// If no constants were added or removed, the `.bin` keeps its bytes.
    ///
    /// # Errors
    /// [`SaveError`]; the old pair still exists then.
    pub fn save_with(&self, path: impl AsRef<Path>, options: SaveOptions) -> Result<(), SaveError> {
        let path = path.as_ref();
        let arranged = self.arranged(options.weights).map_err(SaveError::io(path))?;
        let (before, after) = (self.weights.given_len(), arranged.weights.len().unwrap_or(0));
        if matches!(arranged, Cow::Owned(_)) && after > before.saturating_mul(options.max_growth).max(ALWAYS_ALLOWED) {
            return Err(SaveError::Grown { before, after });
        }
        arranged.write_pair(path, &options)
    }

    /// Returns the model with its weights as [`save_with`](Self::save_with) writes them.
    ///
    /// # Errors
    /// Bytes of a constant that are missing.
    pub fn arranged(&self, weights: WeightsMode) -> io::Result<Cow<'_, Self>> {
        let has_changed = self.weights.has_added() || self.weights.len().is_some() && self.has_lost_constants();
        match weights {
            WeightsMode::Compact if self.weights.len().is_some() => self.compacted().map(Cow::Owned),
            WeightsMode::Copy if has_changed => self.rearranged().map(Cow::Owned),
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    fn write_pair(&self, path: &Path, options: &SaveOptions) -> Result<(), SaveError> {
        let destination = Destination::new(path)?;
        let failed = || SaveError::io(destination.xml);
        stage::recover(destination.xml).map_err(failed())?;
        if !self.weights_to_write(&destination, options)? && self.is_text_at(destination.xml, options.text) {
            return Ok(());
        }
        let mut pair = Pair::new(destination.xml, &destination.bin).map_err(failed())?;
        // Until the pair was locked, other processes could replace it and the files that the model was read from.
        if self.weights_to_write(&destination, options)? {
            self.make_weights(&mut pair, &destination, options.weights)?;
        }
        pair.write_graph(|file| xml::write_to(self, options.text, |piece| file.write_all(piece.as_bytes())))
            .map_err(failed())?;
        pair.replace().map_err(failed())
    }

    /// An unchanged file is not rewritten, so it keeps its modification time.
    fn is_text_at(&self, xml: &Path, text: WriteOptions) -> bool {
        let source = self.source().as_bytes();
        // The text is compared only if the lengths are equal.
        fs::metadata(xml).is_ok_and(|old| old.len() == source.len() as u64)
            && xml::is_source(self, text)
            && fs::read(xml).is_ok_and(|old| old == source)
    }

    /// True if the `.bin` must be written. Fails if a file has changed since the model was read from it.
    fn weights_to_write(&self, destination: &Destination<'_>, options: &SaveOptions) -> Result<bool, SaveError> {
        if let Some((path, _)) = options.read_from.as_ref().filter(|(path, stamp)| !stamp.holds_at(path)) {
            return Err(SaveError::Changed(path.clone()));
        }
        let added = self.weights.has_added();
        if added && matches!(options.weights, WeightsMode::Link | WeightsMode::None) {
            return Err(SaveError::AddedConstants);
        }
        if !added
            && (options.in_place || options.weights == WeightsMode::None || self.weights.is_file_at(&destination.bin))
        {
            return self.weights_as_read(Weights::is_in_place).map(|()| false);
        }
        match self.weights.len() {
            Some(_) => Ok(true),
            None => {
                missing_weights(self).map_or(Ok(false), |missing| Err(SaveError::MissingWeights(Box::new(missing))))
            }
        }
    }

    fn make_weights(
        &self,
        pair: &mut Pair<'_>,
        destination: &Destination<'_>,
        mode: WeightsMode,
    ) -> Result<(), SaveError> {
        match (mode, self.weights.path()) {
            (WeightsMode::Link, Some(from)) => {
                self.weights_as_read(Weights::is_in_place)?;
                pair.link_weights(from).map_err(SaveError::io(&destination.bin))
            }
            _ => {
                let made = pair.write_weights(|file| self.weights.write_to(file));
                self.weights_as_read(Weights::is_unchanged)?;
                made.map_err(SaveError::io(&destination.bin))
            }
        }
    }

    /// Fails if the weights have changed since the model was read.
    fn weights_as_read(&self, are_so: impl Fn(&Weights) -> bool) -> Result<(), SaveError> {
        match self.weights.path() {
            Some(path) if !are_so(&self.weights) => Err(SaveError::Changed(path.to_owned())),
            _ => Ok(()),
        }
    }
}

/// Completes a pair if a process was killed after it replaced only one file. Also removes other files that killed
/// processes left behind. Returns true if a pair was completed.
///
/// If the weights are new, the new graph is installed; otherwise the old one is restored. Saving to `path` does this
/// first. Call it before writing; a reader calls [`is_half_written`].
///
/// # Errors
/// An error of the system, or files of another user in the directory.
pub fn recover(path: &Path) -> io::Result<bool> {
    stage::recover(path)
}

/// True if a killed process left the pair without its `.xml`, so that [`recover`] must complete it. Does not write.
///
/// If another process is replacing the pair, waits until it has finished.
///
/// # Errors
/// The errors of [`recover`].
///
/// # Examples
/// ```
/// let folder = tempfile::tempdir()?;
/// assert!(!typelift::host::is_half_written(&folder.path().join("absent.xml"))?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_half_written(path: &Path) -> io::Result<bool> {
    stage::is_half_written(path)
}

/// Replaces one file atomically: `write` writes a new file, which is then renamed. It keeps the old permissions and
/// extended attributes. A symbolic link is replaced too, and the file it leads to stays as it is.
///
/// # Errors
/// The error of `write`, or of the system; the old file still exists then.
///
/// # Examples
/// ```
/// use std::io::Write;
/// let folder = tempfile::tempdir()?;
/// let report = folder.path().join("report.json");
/// typelift::host::replace(&report, |file| file.write_all(b"{}"))?;
/// assert_eq!(std::fs::read(report)?, b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut single = Single::new(path)?;
    single.write(path, write)?;
    single.replace(path)
}

/// The two files of a model.
struct Destination<'a> {
    xml: &'a Path,
    bin: PathBuf,
}

impl<'a> Destination<'a> {
    /// # Errors
    /// An output is a directory, a pipe or a device, or a link to one.
    fn new(xml: &'a Path) -> Result<Self, SaveError> {
        let bin = xml.with_extension("bin");
        if bin == xml {
            return Err(SaveError::NamedAsWeights(bin));
        }
        for path in [xml, &bin] {
            if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
                return Err(SaveError::NotAFile(path.to_owned()));
            }
        }
        Ok(Self { xml, bin })
    }
}

/// Returns the error for a model that cannot be saved because the bytes of a constant are unknown; `None` if all are
/// known.
#[must_use]
pub fn missing_weights(model: &Model) -> Option<Diagnostic> {
    if model.weights().len().is_some() {
        return None;
    }
    for (place, graph) in model.walk() {
        if graph.unordered().any(is_stored)
            && let Some(constant) = graph.layers().find(|layer| is_stored(layer))
        {
            let layer = LayerRef::of(&place, constant);
            let message = message!("the constant `{}` has its bytes in a file that is not there"; constant.name());
            let refusal =
                Diagnostic::new(Code::MissingWeights, message).at(xml::name_span(model, constant), "the first of them");
            return Some(Diagnostic { severity: Severity::Error, layer: Some(layer), ..refusal });
        }
    }
    None
}

/// True for a constant that is stored in the weights.
fn is_stored(layer: &Layer) -> bool {
    layer.attribute("offset").is_some()
        && layer.attribute("size") != Some("0")
        && layer.operation().is_some_and(|operation| operation.name == "Constant")
}
