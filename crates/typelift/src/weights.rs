//! The bytes of constants: positioned, bounded reads from the `.bin`, which is never read whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::save::{FileId, Stamp};

/// Where the bytes of a model's constants are.
#[derive(Clone, Debug, Default)]
pub enum Weights {
    /// Nowhere: types and shapes are known all the same, values are not.
    #[default]
    None,
    /// In an open file.
    File(Arc<WeightsFile>),
    /// In memory.
    Memory(Arc<[u8]>),
}

/// An open `.bin`.
#[derive(Debug)]
pub struct WeightsFile {
    file: File,
    path: PathBuf,
    length: u64,
    /// What it was like when it was opened.
    stamp: Stamp,
}

impl Weights {
    /// Opens the `.bin` of the same name beside a model's `.xml`; [`Weights::None`] where there is none.
    ///
    /// # Errors
    /// There is one that cannot be opened.
    pub fn beside(xml: &Path) -> io::Result<Self> {
        Self::open(&xml.with_extension("bin"))
    }

    /// Opens a weights file; [`Weights::None`] where it does not exist.
    ///
    /// # Errors
    /// It exists and cannot be opened, or is not a regular file: to read from a pipe could take for ever.
    pub fn open(path: &Path) -> io::Result<Self> {
        let open = || {
            if !fs::metadata(path)?.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            let file = File::open(path)?;
            let (length, stamp) = (file.metadata()?.len(), Stamp::of(&file)?);
            Ok(Self::File(Arc::new(WeightsFile { file, path: path.to_owned(), length, stamp })))
        };
        match open() {
            Err(error) if io::Error::kind(&error) == io::ErrorKind::NotFound => Ok(Self::None),
            result => result,
        }
    }

    /// The number of bytes; `None` where there are no weights.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::File(weights) => Some(weights.length),
            Self::Memory(bytes) => Some(bytes.len() as u64),
        }
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len().unwrap_or(0) == 0
    }

    /// Reads `length` bytes at `offset`; `None` where they are not all there.
    #[must_use]
    pub fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length as u64)?;
        if end > self.len()? {
            return None;
        }
        match self {
            Self::None => None,
            Self::Memory(bytes) => {
                bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?).map(<[u8]>::to_vec)
            }
            Self::File(weights) => {
                let mut bytes = vec![0; length];
                read_exact_at(&weights.file, &mut bytes, offset).ok()?;
                Some(bytes)
            }
        }
    }

    /// The path of the file that they are in.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(weights) => Some(&weights.path),
            Self::None | Self::Memory(_) => None,
        }
    }

    /// Whether there are bytes that the file does not have.
    pub(crate) fn has_added(&self) -> bool {
        false
    }

    /// Whether the file that they are in is the one at `path`, and has all of them.
    pub(crate) fn is_file_at(&self, path: &Path) -> bool {
        matches!(self, Self::File(weights) if FileId::is_at(&weights.file, path))
    }

    /// Whether nobody has written to the file since it was opened.
    pub(crate) fn is_unchanged(&self) -> bool {
        !matches!(self, Self::File(weights) if Stamp::of(&weights.file).ok().as_ref() != Some(&weights.stamp))
    }

    /// Whether the file is unchanged, and still where it was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        !matches!(self, Self::File(weights) if !weights.stamp.holds_at(&weights.path))
    }

    /// Writes all bytes to a new file, which shares blocks with the one that they are in where the file system can.
    pub(crate) fn write_to(&self, new: &mut File) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Memory(bytes) => new.write_all(bytes),
            Self::File(weights) => copy(&weights.file, weights.length, new),
        }
    }
}

/// As much is copied at a time.
const CHUNK: usize = 1 << 20;

/// Copies the first bytes of a file whose cursor others may use.
fn copy(from: &File, length: u64, to: &mut File) -> io::Result<()> {
    let mut done = copy_in_system(from, length, to);
    let mut buffer = vec![0; if done < length { CHUNK } else { 0 }];
    while done < length {
        let wanted = usize::try_from(length - done).map_or(CHUNK, |left| left.min(CHUNK));
        read_exact_at(from, &mut buffer[..wanted], done)?;
        to.write_all(&buffer[..wanted])?;
        done += wanted as u64;
    }
    Ok(())
}

/// Lets the system copy, which can share blocks instead; how far it came.
#[cfg(target_os = "linux")]
fn copy_in_system(from: &File, length: u64, to: &File) -> u64 {
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from(length - done).unwrap_or(usize::MAX).min(1 << 30);
        match rustix::fs::copy_file_range(from, Some(&mut done), to, None, wanted) {
            Ok(1..) => {}
            // The bytes that follow are read and written, and what is wrong with them comes out then.
            Ok(0) | Err(_) => break,
        }
    }
    done
}

#[cfg(not(target_os = "linux"))]
fn copy_in_system(_from: &File, _length: u64, _to: &File) -> u64 {
    0
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(not(any(unix, windows)))]
fn read_exact_at(_file: &File, _bytes: &mut [u8], _offset: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
