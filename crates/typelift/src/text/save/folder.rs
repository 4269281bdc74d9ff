//! The directory in which files are prepared, accessed through a descriptor. Replacing it, or a link in it, cannot
//! redirect the access.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::process::geteuid;

pub(super) fn user() -> String {
    geteuid().as_raw().to_string()
}

/// A directory of this user.
pub(super) struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
    owner: u32,
}

impl Folder {
    /// Opens or creates a directory that no other user can read. The flag is true if it was created.
    pub(super) fn make(path: &Path) -> io::Result<(Self, bool)> {
        loop {
            let made = match fs::mkdir(path, Mode::RWXU) {
                Err(rustix::io::Errno::EXIST) => false,
                made => made.map(|()| true)?,
            };
            // Another process may have removed the directory while it was empty.
            if let Some(folder) = Self::find(path, made)? {
                return Ok((folder, made));
            }
        }
    }

    /// Opens a directory; `None` if there is none.
    ///
    /// # Errors
    /// A link, something other than a directory, or another user's directory.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::find(path, false)
    }

    fn find(path: &Path, made: bool) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = match fs::open(path, flags, Mode::empty()) {
            Ok(descriptor) => descriptor,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => return Err(foreign(path)),
            Err(error) => return Err(error.into()),
        };
        let owner = fs::fstat(&descriptor)?.st_uid;
        let folder = Self { path: path.to_owned(), descriptor, owner };
        if made || owner == geteuid().as_raw() || folder.gives_its_owner()? {
            Ok(Some(folder))
        } else {
            Err(foreign(path))
        }
    }

    /// True if the file system gives files the owner of the directory, as those with only one user do.
    fn gives_its_owner(&self) -> io::Result<bool> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}.probe", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let Ok(probe) = self.create(&name) else { return Ok(false) };
        self.remove(&name)?;
        Ok(fs::fstat(&probe)?.st_uid == self.owner)
    }

    /// Opens the lock file. If `made` is true, creates it.
    ///
    /// # Errors
    /// Something other than a regular file of this user with one name.
    pub(super) fn lock(&self, name: &str, made: bool) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = if made { flags | OFlags::CREATE } else { flags };
        let file = match fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR) {
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::ISDIR | rustix::io::Errno::NXIO) => {
                return Err(foreign(&self.path.join(name)));
            }
            file => File::from(file?),
        };
        let found = fs::fstat(&file)?;
        if is_file(&found) && found.st_uid == self.owner && found.st_nlink <= 1 {
            Ok(file)
        } else {
            Err(foreign(&self.path.join(name)))
        }
    }

    pub(super) fn is_at(&self, name: &str, file: &File) -> bool {
        let (Ok(open), Some(found)) = (fs::fstat(file), self.stat(name)) else { return false };
        (found.st_dev, found.st_ino) == (open.st_dev, open.st_ino)
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(fs::openat(&self.descriptor, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.stat(name).is_some()
    }

    pub(super) fn has_file(&self, name: &str) -> bool {
        self.stat(name).is_some_and(|found| is_file(&found) && found.st_uid == self.owner)
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Moves a file out of the directory, replacing the destination.
    pub(super) fn give(&self, name: &str, to: &Path, _gone: &str) -> io::Result<()> {
        Ok(fs::renameat(&self.descriptor, name, CWD, to)?)
    }

    /// Moves a file into the directory.
    pub(super) fn take(&self, from: &Path, name: &str) -> io::Result<()> {
        Ok(fs::renameat(CWD, from, &self.descriptor, name)?)
    }

    /// A hard link to a file, or a symbolic one across file systems.
    pub(super) fn link(&self, from: &Path, name: &str) -> io::Result<()> {
        fs::linkat(CWD, from, &self.descriptor, name, AtFlags::empty())
            .or_else(|_| fs::symlinkat(from, &self.descriptor, name))
            .map_err(io::Error::from)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Removes the lock file, then releases the lock.
    pub(super) fn unlock(&self, name: &str, lock: File) -> io::Result<()> {
        let removed = self.remove(name);
        drop(lock);
        removed
    }

    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let entries = Dir::read_from(&self.descriptor)?.flatten();
        Ok(entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned)).collect())
    }

    /// Waits until the names in the directory are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(fs::fsync(&self.descriptor)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Performs one action on a directory. A file that is open hinders nothing on this system.
pub(super) fn patiently<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    act()
}

fn is_file(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
}

fn foreign(path: &Path) -> io::Error {
    io::Error::other(format!("`{}` is in the way, and no run of yours made it; remove it", path.display()))
}
