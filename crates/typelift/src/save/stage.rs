//! What takes the place of files is made beside them in `.typelift-HASH.tmp`, found by the name of the graph: a directory for a
//! pair, and for a single file the file itself.
//!
//! The `lock` in the directory, or the file, is locked as long as its process runs, so that the next run knows what was left
//! behind. `new.xml` in a directory says that everything in it is whole and on the disk; until then the graph is called
//! `half.xml`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::attributes;
use crate::file::{FileId, directory};

const LOCK: &str = "lock";
const HALF: &str = "half.xml";
const XML: &str = "new.xml";
const BIN: &str = "new.bin";
const OLD: &str = "old.xml";

/// Whether saves are to end. Whoever begins one, replaces files or cleans up holds it to read, so that many can at a time.
static INTERRUPTED: RwLock<bool> = RwLock::new(false);

/// What this process is writing.
#[derive(Default)]
struct Running {
    stages: HashSet<PathBuf>,
    /// Directories that were searched for what killed runs have left.
    swept: HashSet<PathBuf>,
}

static RUNNING: LazyLock<Mutex<Running>> = LazyLock::new(Mutex::default);

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what unfinished saves of this process have written so far, and lets no other begin or finish; one that is
/// replacing files at this moment is waited for. For handlers of signals that end the process.
pub fn interrupt() {
    *INTERRUPTED.write().unwrap_or_else(PoisonError::into_inner) = true;
    for stage in running().stages.drain() {
        let _left_for_the_next_run = remove(&stage);
    }
}

pub(super) struct Stage {
    path: PathBuf,
    /// Whether a file is there whose place is taken, so that what takes it must be on the disk first.
    replaces: bool,
    /// Whether it is not to be removed: the next run needs it to complete the pair, or it has become the new file.
    needed: bool,
    lock: File,
}

impl Stage {
    /// A new stage for a graph and its weights, beside the graph; waits where another process has one. Completes or removes
    /// what a killed run has left of it, and removes what others have left in the directory.
    pub(super) fn new(xml: &Path, bin: &Path) -> io::Result<Self> {
        let names = names(xml, bin)?;
        let mut stage = Self::begin(xml, |path| {
            make_directory(path)?;
            let lock = new_lock(&path.join(LOCK), false);
            let Some(mut lock) = absent(lock)? else { return Ok(None) };
            let written = lock.write_all(&names);
            if written.is_err() {
                remove(path)?;
            }
            written?;
            Ok(FileId::is_at(&lock, &path.join(LOCK)).then_some(lock))
        })?;
        stage.replaces = xml.exists() || bin.exists();
        Ok(stage)
    }

    /// A new stage for one file, as [`new`](Self::new) makes one for a pair.
    pub(super) fn of_one(file: &Path) -> io::Result<Self> {
        let mut stage = Self::begin(file, |path| {
            // What takes the place of a file is for its owner alone until it has the permissions of that file.
            let lock = new_lock(path, file.exists())?;
            Ok(FileId::is_at(&lock, path).then_some(lock))
        })?;
        stage.replaces = file.exists();
        Ok(stage)
    }

    fn begin(file: &Path, make: impl Fn(&Path) -> io::Result<Option<File>>) -> io::Result<Self> {
        let path = place(file);
        sweep(directory(file));
        loop {
            if let Some(lock) = Self::try_to_begin(&path, &make)? {
                return Ok(Self { path, replaces: true, needed: false, lock });
            }
            recover(file)?;
        }
    }

    /// `None` where there is such a stage already, or another process took the new one for an abandoned one.
    fn try_to_begin(path: &Path, make: impl Fn(&Path) -> io::Result<Option<File>>) -> io::Result<Option<File>> {
        let _uninterrupted = uninterrupted()?;
        step()?;
        let made = match make(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            made => made?,
        };
        if made.is_some() {
            running().stages.insert(path.to_owned());
        }
        Ok(made)
    }

    /// Makes the one file that is to take the place of `old`.
    pub(super) fn write_one(&mut self, old: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        step()?;
        Self::fill(&mut self.lock, self.replaces, old, write)
    }

    /// Makes what is to take the place of the file `old`.
    pub(super) fn write(&mut self, old: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.make(HALF, old, write)
    }

    /// Makes the weights that are to take the place of the file `old`.
    pub(super) fn write_weights(&self, old: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.make(BIN, old, write)
    }

    /// Makes the weights a link to the file `from`: a hard one, or a symbolic one to another file system.
    pub(super) fn link_weights(&self, from: &Path) -> io::Result<()> {
        step()?;
        let new = self.path.join(BIN);
        let from = fs::canonicalize(from)?;
        fs::hard_link(&from, &new).or_else(|refused| symbolic_link(&from, &new, refused))
    }

    fn make(&self, name: &str, old: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        step()?;
        Self::fill(&mut File::create_new(self.path.join(name))?, self.replaces, old, write)
    }

    fn fill(
        file: &mut File,
        replaces: bool,
        old: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        write(file)?;
        step()?;
        if replaces {
            attributes::keep(old, file)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Puts the one file that was made in the place of another.
    pub(super) fn replace_one(mut self, path: &Path) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        step()?;
        fs::rename(&self.path, path)?;
        self.keep();
        sync(self.replaces, directory(path))
    }

    /// Puts the graph and the weights in the places of two files.
    pub(super) fn replace_both(mut self, xml: &Path, bin: &Path) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        step()?;
        fs::rename(self.path.join(HALF), self.path.join(XML))?;
        sync(self.replaces, &self.path)?;
        sync(self.replaces, directory(xml))?;
        let old = self.path.join(OLD);
        step()?;
        let had_old = match fs::rename(xml, &old) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            moved => moved.map(|()| true)?,
        };
        if let Err(error) = self.replace_weights(bin, had_old, directory(xml)) {
            // The old weights are still there, and so the old graph goes back to them.
            if had_old && fs::rename(&old, xml).is_err() {
                self.keep();
            }
            return Err(error);
        }
        self.keep();
        sync(self.replaces, directory(bin))?;
        step()?;
        fs::rename(self.path.join(XML), xml)?;
        self.needed = false;
        running().stages.insert(self.path.clone());
        sync(self.replaces, directory(xml))
    }

    /// Puts the weights in their place, once it is certain that the old graph is gone from its own.
    fn replace_weights(&self, bin: &Path, had_old: bool, directory: &Path) -> io::Result<()> {
        sync(had_old, directory)?;
        step()?;
        fs::rename(self.path.join(BIN), bin)
    }

    /// Leaves the stage to the next run.
    fn keep(&mut self) {
        self.needed = true;
        running().stages.remove(&self.path);
    }
}

/// Keeps [`interrupt`] away until what is returned is dropped.
fn uninterrupted() -> io::Result<RwLockReadGuard<'static, bool>> {
    let interrupted = INTERRUPTED.read().unwrap_or_else(PoisonError::into_inner);
    if *interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(interrupted) }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A signal must not end the process between the two.
        let _interrupted_or_not = INTERRUPTED.read();
        running().stages.remove(&self.path);
        if !self.needed {
            // What cannot be removed now is removed by the next run.
            let _left = step().and_then(|()| remove(&self.path));
        }
    }
}

/// Completes or removes what a killed run has left of the replacement of `xml`, once no process is at it any more. Whether it
/// was completed.
pub(super) fn recover(xml: &Path) -> io::Result<bool> {
    let stage = place(xml);
    let is_pair = match absent(fs::symlink_metadata(&stage))? {
        Some(found) => found.is_dir(),
        None => return Ok(false),
    };
    let path = if is_pair { stage.join(LOCK) } else { stage.clone() };
    let lock = open_lock(&path)?;
    if let Some(lock) = &lock {
        lock.lock().or_else(unsupported)?;
        // Its owner may have finished with it.
        if !FileId::is_at(lock, &path) {
            return Ok(false);
        }
    }
    let completed = is_pair && is_awaited(&stage, xml) && complete(&stage, xml)?;
    remove(&stage)?;
    Ok(completed)
}

/// Whether a stage is all that there is of a graph.
fn is_awaited(stage: &Path, xml: &Path) -> bool {
    !xml.exists() && is_file(&stage.join(XML))
}

/// Does what a killed run had still to do.
fn complete(stage: &Path, xml: &Path) -> io::Result<bool> {
    let names = fs::read(stage.join(LOCK))?;
    let Some((_, bin)) = split_names(&names) else { return Ok(false) };
    if is_file(&stage.join(BIN)) {
        step()?;
        fs::rename(stage.join(BIN), directory(xml).join(bin))?;
        sync(true, directory(xml))?;
    }
    step()?;
    fs::rename(stage.join(XML), xml)?;
    sync(true, directory(xml))?;
    Ok(true)
}

/// Removes a stage; `new.xml` goes first, because without it the rest counts for nothing.
fn remove(stage: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(stage).is_ok_and(|found| found.is_dir()) {
        return absent(fs::remove_file(stage)).map(drop);
    }
    for name in [XML, HALF, BIN, OLD, LOCK] {
        absent(fs::remove_file(stage.join(name)))?;
        step()?;
    }
    absent(fs::remove_dir(stage)).map(drop)
}

/// `None` where nothing is there.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Removes what killed runs have left in a directory, once in the life of this process: it costs as much as the directory is
/// long. What cannot be removed harms nobody.
fn sweep(directory: &Path) {
    if !running().swept.insert(directory.to_owned()) {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(b".typelift-") && name.ends_with(b".tmp") {
            let _harmless = remove_abandoned(&entry.path());
        }
    }
}

/// Lets every directory be searched again.
#[cfg(test)]
pub(super) fn forget_sweeps() {
    running().swept.clear();
}

fn remove_abandoned(stage: &Path) -> io::Result<()> {
    let is_pair = fs::symlink_metadata(stage)?.is_dir();
    let path = if is_pair { stage.join(LOCK) } else { stage.to_owned() };
    let lock = open_lock(&path)?;
    if let Some(lock) = &lock
        && (is_locked(lock)? || !FileId::is_at(lock, &path))
    {
        return Ok(());
    }
    let names = if is_pair { fs::read(&path).unwrap_or_default() } else { Vec::new() };
    let awaited = split_names(&names).is_some_and(|(xml, _)| is_awaited(stage, &directory(stage).join(xml)));
    if awaited { Ok(()) } else { remove(stage) }
}

/// Whether another process holds a lock; takes it where none does.
fn is_locked(lock: &File) -> io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => unsupported(error).map(|()| false),
    }
}

/// The stage of a graph.
fn place(xml: &Path) -> PathBuf {
    // FNV-1a: the same in every release, and as short for the longest name that a file can have.
    let name = xml.file_name().unwrap_or_default().as_encoded_bytes();
    let hash = name
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    directory(xml).join(format!(".typelift-{hash:016x}.tmp"))
}

/// What the lock says: the name of the graph, and that of the weights or their path where they are elsewhere.
fn names(xml: &Path, bin: &Path) -> io::Result<Vec<u8>> {
    let together = directory(xml) == directory(bin);
    let bin = bin.file_name().filter(|_| together).unwrap_or(bin.as_os_str());
    let name = xml.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok([name.as_encoded_bytes(), b"\0", bin.as_encoded_bytes()].concat())
}

fn split_names(names: &[u8]) -> Option<(&OsStr, &OsStr)> {
    let end = names.iter().position(|byte| *byte == 0)?;
    Some((os_str(&names[..end])?, os_str(&names[end + 1..])?))
}

#[cfg(unix)]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    std::str::from_utf8(bytes).ok().map(OsStr::new)
}

/// A directory that nobody else may look into: its files get their permissions only when they are whole.
fn make_directory(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a file and locks it; one that is `private` is for its owner only.
fn new_lock(path: &Path, private: bool) -> io::Result<File> {
    step()?;
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    let lock = options.open(path)?;
    lock.lock().or_else(unsupported)?;
    Ok(lock)
}

/// The lock of a stage; `None` where it was left without one.
fn open_lock(path: &Path) -> io::Result<Option<File>> {
    if is_file(path) { absent(File::open(path)) } else { Ok(None) }
}

/// Whether there is a file, and not a link to one.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Some file systems have no locks. Two runs that write one model at a time are not kept apart there.
fn unsupported(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Unsupported { Ok(()) } else { Err(error) }
}

#[cfg(unix)]
fn symbolic_link(from: &Path, new: &Path, _refused: io::Error) -> io::Result<()> {
    std::os::unix::fs::symlink(from, new)
}

#[cfg(not(unix))]
fn symbolic_link(_from: &Path, _new: &Path, refused: io::Error) -> io::Result<()> {
    Err(refused)
}

/// Waits until a directory is on the disk, where it is `wanted` and the system can.
fn sync(wanted: bool, directory: &Path) -> io::Result<()> {
    step()?;
    if wanted && cfg!(unix) {
        match File::open(directory)?.sync_all() {
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Where tests let the process die or the disk fail; see `tests.rs`.
fn step() -> io::Result<()> {
    #[cfg(test)]
    super::tests::step()?;
    Ok(())
}
