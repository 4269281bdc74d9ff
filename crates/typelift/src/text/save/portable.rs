//! The directory in which files are prepared, for systems without descriptors of directories.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the part of the name that distinguishes this user's directory; only the system knows it.
pub(super) fn user() -> String {
    "user".to_owned()
}

/// A directory.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens or creates a directory. The flag is true if it was created.
    pub(super) fn make(path: &Path) -> io::Result<(Self, bool)> {
        let made = match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            made => made.map(|()| true)?,
        };
        Ok((Self { path: path.to_owned() }, made))
    }

    /// Opens a directory; `None` if there is none.
    ///
    /// # Errors
    /// A link, or something other than a directory.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => Ok(Some(Self { path: path.to_owned() })),
            Ok(_) => Err(io::Error::other(format!("`{}` is in the way; remove it", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the lock file. If `made` is true, creates it.
    pub(super) fn lock(&self, name: &str, made: bool) -> io::Result<File> {
        File::options().read(true).write(true).create(made).truncate(false).open(self.path.join(name))
    }

    pub(super) fn is_at(&self, name: &str, _file: &File) -> bool {
        self.has(name)
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        File::create_new(self.path.join(name))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path.join(name)).is_ok()
    }

    pub(super) fn has_file(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path.join(name)).is_ok_and(|found| found.is_file())
    }

    /// Moves a file out of the directory, replacing the destination.
    pub(super) fn give(&self, name: &str, to: &Path) -> io::Result<()> {
        fs::rename(self.path.join(name), to)
    }

    /// Moves a file into the directory.
    pub(super) fn take(&self, from: &Path, name: &str) -> io::Result<()> {
        fs::rename(from, self.path.join(name))
    }

    pub(super) fn link(&self, from: &Path, name: &str) -> io::Result<()> {
        fs::hard_link(from, self.path.join(name))
    }

    /// Removes a file or a link.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        Ok(fs::read_dir(&self.path)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Waits until the names in the directory are on the disk, if the system can.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
