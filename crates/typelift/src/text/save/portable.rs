//! The directory in which files are prepared, for systems without descriptors of directories. Of these, Windows differs
//! most: a file that is open keeps its name until it is closed, and no other file can take the name. It can be renamed if
//! whoever opened it allows that, as this library does.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::stage::step;

/// The part of the name that distinguishes this user's directory; only the system knows it.
pub(super) fn user() -> String {
    "user".to_owned()
}

pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens or creates a directory. The flag is true if it was created.
    pub(super) fn make(path: &Path) -> io::Result<(Self, bool)> {
        let made = patiently(|| match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        })?;
        if made {
            return Ok((Self { path: path.to_owned() }, true));
        }
        // Another process may have removed the directory while it was empty. Its lock is missing then.
        Ok((Self::open(path)?.unwrap_or_else(|| Self { path: path.to_owned() }), false))
    }

    /// Opens a directory; `None` if there is none.
    ///
    /// # Errors
    /// A link, or something other than a directory.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match patiently(|| fs::symlink_metadata(path)) {
            Ok(found) if found.is_dir() => Ok(Some(Self { path: path.to_owned() })),
            Ok(_) => Err(io::Error::other(format!("`{}` is in the way; remove it", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the lock file. If `made` is true, creates it. Nobody can remove it while it is open.
    pub(super) fn lock(&self, name: &str, made: bool) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true).create(made).truncate(false);
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, SHARE_READ | SHARE_WRITE);
        patiently(|| options.open(self.path.join(name)))
    }

    /// Releases the lock, then removes its file, unless another process has opened it.
    pub(super) fn unlock(&self, name: &str, lock: File) -> io::Result<()> {
        drop(lock);
        match fs::remove_file(self.path.join(name)) {
            Err(error) if is_busy(&error) => Ok(()),
            removed => removed,
        }
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

    /// Moves a file out of the directory, replacing the destination. One that is open is moved into the directory before,
    /// as `gone`, and removed afterwards. It returns if the file cannot be moved.
    pub(super) fn give(&self, name: &str, to: &Path, gone: &str) -> io::Result<()> {
        let from = self.path.join(name);
        match fs::rename(&from, to) {
            Err(error) if is_busy(&error) && name != gone => {}
            given => return given,
        }
        self.take(to, gone)?;
        let given = step().and_then(|()| patiently(|| fs::rename(&from, to)));
        if given.is_err() {
            self.give(gone, to, gone)?;
            return given;
        }
        // The next run removes what stays.
        let _left = step().and_then(|()| self.remove(gone));
        Ok(())
    }

    /// Removes a file or a link, which may be open. Its name is given back when it is closed, which must not keep the
    /// directory from being removed. So it first moves next to the directory.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let (inside, outside) = (self.path.join(name), self.path.with_file_name(format!(".typelift-{name}")));
        let moved = fs::rename(&inside, &outside);
        let removed = make_writable(&outside).and_then(|()| fs::remove_file(&outside));
        if removed.is_err() && moved.is_ok() {
            fs::rename(&outside, &inside)?;
        }
        moved.and(removed)
    }

    /// Moves a file into the directory.
    pub(super) fn take(&self, from: &Path, name: &str) -> io::Result<()> {
        patiently(|| fs::rename(from, self.path.join(name))).map_err(|error| {
            if !is_busy(&error) || error.raw_os_error() == Some(BUSY[0]) {
                return error;
            }
            let name = from.file_name().unwrap_or_default().display();
            let reason = format!("another program has `{name}` open, and must close it first");
            io::Error::new(io::ErrorKind::ResourceBusy, reason)
        })
    }

    /// A hard link to a file, or a symbolic one across file systems.
    pub(super) fn link(&self, from: &Path, name: &str) -> io::Result<()> {
        let linked = fs::hard_link(from, self.path.join(name));
        #[cfg(windows)]
        let linked =
            linked.or_else(|error| std::os::windows::fs::symlink_file(from, self.path.join(name)).map_err(|_| error));
        linked
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

/// Clears the attribute that keeps a file from being removed on Windows.
fn make_writable(path: &Path) -> io::Result<()> {
    let mut permissions = fs::symlink_metadata(path)?.permissions();
    if cfg!(windows) && permissions.readonly() {
        #[allow(clippy::permissions_set_readonly_false, reason = "Windows has one such attribute for all users")]
        permissions.set_readonly(false);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

#[cfg(windows)]
const SHARE_READ: u32 = 1;
#[cfg(windows)]
const SHARE_WRITE: u32 = 2;

/// Errors of Windows for a file that another process has open: access denied, two of sharing, and a mapped file.
const BUSY: [i32; 4] = [5, 32, 33, 1224];

fn is_busy(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error().is_some_and(|code| BUSY.contains(&code))
}

/// Tries for half a second where another process has a file open: scanners for viruses and indexes do, for a moment.
pub(super) fn patiently<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for pause in (0..9).map(|doublings| Duration::from_millis(1 << doublings)) {
        match act() {
            Err(error) if is_busy(&error) => sleep(pause),
            done => return done,
        }
    }
    act()
}
