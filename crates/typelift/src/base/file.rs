//! File identity, detection of later changes, and recognition of other file formats.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Identity of a file: equal for all paths that lead to it, including symbolic and hard links.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileId(Id);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Id {
    /// An existing file, by the numbers of its device and of the file on it.
    #[cfg(any(unix, windows))]
    Inode { device: u64, inode: u64 },
    /// A file that does not exist yet, by the identity of its directory and its name.
    Missing { directory: Box<Id>, name: OsString },
    /// A path with symbolic links resolved, where the system gives no file numbers.
    Path(PathBuf),
}

impl FileId {
    /// Returns the identity of the file that `path` leads to. The file need not exist.
    pub fn of(path: &Path) -> Self {
        let path = match look(path) {
            (Some(id), _) => return Self(id),
            (None, path) => path,
        };
        if let (Some(id), Some(name)) = (id_at(directory(&path)), path.file_name()) {
            let name = if cfg!(windows) { name.to_string_lossy().to_lowercase().into() } else { name.to_owned() };
            return Self(Id::Missing { directory: Box::new(id), name });
        }
        Self(Id::Path(std::path::absolute(&path).unwrap_or(path)))
    }

    pub(crate) fn is_at(file: &File, path: &Path) -> bool {
        id_of(file).is_some_and(|id| id_at(path) == Some(id))
    }
}

#[cfg(unix)]
fn inode(found: &Metadata) -> Id {
    use std::os::unix::fs::MetadataExt;
    Id::Inode { device: found.dev(), inode: found.ino() }
}

#[cfg(unix)]
fn id_of(file: &File) -> Option<Id> {
    file.metadata().ok().map(|found| inode(&found))
}

#[cfg(windows)]
fn id_of(file: impl winapi_util::AsHandleRef) -> Option<Id> {
    let found = winapi_util::file::information(file).ok()?;
    Some(Id::Inode { device: found.volume_serial_number(), inode: found.file_index() })
}

#[cfg(not(any(unix, windows)))]
fn id_of(_: &File) -> Option<Id> {
    None
}

#[cfg(not(windows))]
fn id_at(path: &Path) -> Option<Id> {
    #[cfg(unix)]
    return fs::metadata(path).ok().map(|found| inode(&found));
    #[cfg(not(unix))]
    return fs::canonicalize(path).ok().map(Id::Path);
}

#[cfg(windows)]
fn id_at(path: &Path) -> Option<Id> {
    id_of(winapi_util::Handle::from_path_any(path).ok()?)
}

/// Returns how many names a file has.
///
/// # Errors
/// An error of the system, and [`Unsupported`](io::ErrorKind::Unsupported) where it does not count them.
pub fn count_names(path: &Path) -> io::Result<u64> {
    #[cfg(unix)]
    return fs::metadata(path).map(|found| std::os::unix::fs::MetadataExt::nlink(&found));
    #[cfg(windows)]
    return winapi_util::file::information(winapi_util::Handle::from_path_any(path)?)
        .map(|found| found.number_of_links());
    #[cfg(not(any(unix, windows)))]
    return Err(io::Error::new(io::ErrorKind::Unsupported, path.display().to_string()));
}

/// State of a file when it was read, for detecting later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    id: Option<Id>,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// Returns the current state of an open file.
    ///
    /// # Errors
    /// An error of the system.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self::new(&found, || id_of(file)))
    }

    /// Returns the current state of the file at `path`.
    ///
    /// # Errors
    /// An error of the system.
    pub fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|found| Self::new(&found, || id_at(path)))
    }

    /// Returns the length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// True if `path` still leads to this file and the file is unchanged.
    pub fn holds_at(&self, path: &Path) -> bool {
        Self::at(path).is_ok_and(|found| found == *self)
    }

    #[cfg(unix)]
    fn new(found: &Metadata, _: impl Fn() -> Option<Id>) -> Self {
        Self { id: Some(inode(found)), length: found.len(), modified: found.modified().ok() }
    }

    #[cfg(not(unix))]
    fn new(found: &Metadata, id: impl Fn() -> Option<Id>) -> Self {
        let id = id();
        Self { id, length: found.len(), modified: found.modified().ok() }
    }
}

/// Limit on symbolic links that are followed, equal to that of Linux.
const MAX_LINKS: usize = 40;

/// The identity at a path, `None` if nothing is there, and the path with symbolic links resolved. A path without links
/// needs one system call.
#[cfg(unix)]
fn look(path: &Path) -> (Option<Id>, PathBuf) {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => (id_at(path), follow_links(path)),
        found => (found.ok().map(|found| inode(&found)), path.to_owned()),
    }
}

#[cfg(not(unix))]
fn look(path: &Path) -> (Option<Id>, PathBuf) {
    (id_at(path), follow_links(path))
}

fn follow_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = directory(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

/// Opens a file to read it.
///
/// # Errors
/// Errors of the system, and an error for a file that is not regular: reading from a pipe or a device may never end.
///
/// # Examples
/// ```
/// # #[cfg(unix)]
/// assert!(typelift::host::open_regular("/dev/zero".as_ref()).is_err());
/// ```
pub fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() { File::open(path) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Reads bytes at an offset, without a position that several threads would share.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
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
pub(crate) fn read_exact_at(_file: &File, _bytes: &mut [u8], _offset: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Bytes at the start that show which kind of archive a file is.
const START: usize = 256;
const TORCH: &str = "convert the model with `openvino.convert_model` first";

/// Signatures of file formats that users pass by mistake: offset, bytes, name of the format, and how to convert it.
const FORMATS: &[(usize, &[u8], &str, &str)] = &[
    (0, b"\x1f\x8b", "compressed with gzip", "decompress it first: `gunzip < FILE > OUT.xml`"),
    (0, b"\xfd7zXZ\0", "compressed with xz", "decompress it first: `unxz < FILE > OUT.xml`"),
    (0, b"BZh", "compressed with bzip2", "decompress it first: `bunzip2 < FILE > OUT.xml`"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it first: `unzstd < FILE > OUT.xml`"),
    (0, b"7z\xbc\xaf", "a 7-Zip archive", "unpack it first"),
    (257, b"ustar", "a tar archive", "unpack it with `tar -xf` first"),
    (0, b"\x7fELF", "a program or a library", "give the .xml of the model"),
    (0, b"%PDF", "a PDF document", "give the .xml of the model"),
    (0, b"\xff\xd8\xff", "a JPEG image", "give the .xml of the model"),
    (0, b"\x93NUMPY", "an array of NumPy", "give the .xml of the model"),
    (0, b"\x89HDF", "an HDF5 file, such as a Keras model", "convert it with `ovc` first"),
    (0, b"\x80\x02", "a Python pickle, such as a PyTorch checkpoint", TORCH),
    (0, b"\x80\x04", "a Python pickle, such as a PyTorch checkpoint", TORCH),
    (0, b"\x08\x01\x12", "a TensorFlow SavedModel", "convert the folder that it is in with `ovc` first"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it first: `ovc model.tflite`"),
    (
        6,
        b"\0\0{\"",
        "a safetensors file",
        "convert the model with `openvino.convert_model` or `optimum-cli export openvino` first",
    ),
    (0, b"GGUF", "a GGUF file", "convert the model with `optimum-cli export openvino` first"),
    (0, b"\x89PNG", "a PNG image", "give the .xml of the model"),
    (0, b"PK\x03\x04", "a ZIP archive", "unpack it, or convert the model in it with `ovc`"),
];

/// Recognizes another file format by its first bytes. Returns its name and how to convert the file.
pub(crate) fn other_format(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    if let [8, 3..=12, ..] = bytes {
        // The first field of an ONNX file is the version of its format.
        return Some(("an ONNX model", "name it .onnx and convert it: `ovc model.onnx` writes the .xml and the .bin"));
    }
    if bytes.starts_with(b"PK") && memchr::memmem::find(&bytes[..bytes.len().min(START)], b"/data.pkl").is_some() {
        return Some(("a PyTorch checkpoint", TORCH));
    }
    if bytes.starts_with(b"PK") && memchr::memmem::find(&bytes[..bytes.len().min(START)], b".npy").is_some() {
        return Some(("a .npz archive, which `unzip` divides into .npy files", "give the .xml of the model"));
    }
    let found = FORMATS.iter().find(|(at, magic, ..)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
    found.map(|&(.., name, help)| (name, help))
}
