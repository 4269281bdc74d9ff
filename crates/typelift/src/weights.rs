//! The bytes of constants: positioned, bounded reads from the `.bin`, which is never read whole.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Where the bytes of a model's constants are.
#[derive(Clone, Debug, Default)]
pub enum Weights {
    /// Nowhere: types and shapes are known all the same, values are not.
    #[default]
    None,
    /// In an open file of this many bytes.
    File(Arc<File>, u64),
    /// In memory.
    Memory(Arc<[u8]>),
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
    /// It exists and cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok(Self::File(Arc::new(file), length))
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
            Self::File(_, length) => Some(*length),
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
            Self::File(file, _) => {
                let mut bytes = vec![0; length];
                read_exact_at(file, &mut bytes, offset).ok()?;
                Some(bytes)
            }
        }
    }
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
