//! A directory beside a file in which what takes its place is made: `.typelift-HASH.tmp`, found by the name of the file.
//!
//! Its `lock` is held as long as its process runs, so that the next run knows what was left behind. `new.xml` in it says that
//! everything in it is whole and on the disk; until then the graph is called `half.xml`.

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
    /// Whether the next run needs it to complete the pair.
    needed: bool,
    _lock: File,
}

impl Stage {
    /// A new stage for a graph and its weights, beside the graph; waits where another process has one. Completes or removes
    /// what a killed run has left of it, and removes what others have left in the directory.
    pub(super) fn new(xml: &Path, bin: &Path) -> io::Result<Self> {
        let path = place(xml);
        sweep(directory(xml));
        loop {
            if let Some(mut stage) = Self::make_new(&path, &names(xml, bin)?)? {
                stage.replaces = xml.exists() || bin.exists();
                return Ok(stage);
            }
            recover(xml)?;
        }
    }

    /// `None` where there is such a stage already, or another process took the new one for an abandoned one.
    fn make_new(path: &Path, names: &[u8]) -> io::Result<Option<Self>> {
        let _uninterrupted = uninterrupted()?;
        step()?;
        match make_directory(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            made => made?,
        }
        let Some(lock) = lock_new(path, names)? else { return Ok(None) };
        running().stages.insert(path.to_owned());
        Ok(Some(Self { path: path.to_owned(), replaces: true, needed: false, _lock: lock }))
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
        let mut file = File::create_new(self.path.join(name))?;
        write(&mut file)?;
        attributes::keep(old, &file)?;
        step()?;
        if self.replaces { file.sync_all() } else { Ok(()) }
    }

    /// Puts what was made in the place of a file.
    pub(super) fn replace(self, path: &Path) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        step()?;
        let existed = path.exists();
        fs::rename(self.path.join(HALF), path)?;
        sync(existed, directory(path))
    }

    /// Puts the graph and the weights in the places of two files.
    pub(super) fn replace_both(mut self, xml: &Path, bin: &Path) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        let replacing = xml.exists() || bin.exists();
        step()?;
        fs::rename(self.path.join(HALF), self.path.join(XML))?;
        sync(replacing, &self.path)?;
        sync(replacing, directory(xml))?;
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
        sync(replacing, directory(bin))?;
        step()?;
        fs::rename(self.path.join(XML), xml)?;
        self.needed = false;
        running().stages.insert(self.path.clone());
        sync(replacing, directory(xml))
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
    match fs::symlink_metadata(&stage) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Ok(found) if !found.is_dir() => return fs::remove_file(&stage).map(|()| false),
        found => found?,
    };
    let lock = open_lock(&stage)?;
    if let Some(lock) = &lock {
        lock.lock().or_else(unsupported)?;
        // Its owner may have finished with it.
        if !FileId::is_at(lock, &stage.join(LOCK)) {
            return Ok(false);
        }
    }
    let completed = is_awaited(&stage, xml) && complete(&stage, xml)?;
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
    for name in [XML, HALF, BIN, OLD, LOCK] {
        match fs::remove_file(stage.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => step()?,
        }
    }
    match fs::remove_dir(stage) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
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
    let found = fs::symlink_metadata(stage)?;
    if !found.is_dir() {
        let running = found.is_file() && is_locked(&File::open(stage)?)?;
        return if running { Ok(()) } else { fs::remove_file(stage) };
    }
    let lock = open_lock(stage)?;
    if lock.as_ref().map_or(Ok(false), is_locked)? {
        return Ok(());
    }
    let names = fs::read(stage.join(LOCK)).unwrap_or_default();
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

/// Makes and takes the lock of a new stage; `None` where another process took the stage for an abandoned one meanwhile.
fn lock_new(stage: &Path, names: &[u8]) -> io::Result<Option<File>> {
    step()?;
    let path = stage.join(LOCK);
    let mut lock = match File::options().read(true).write(true).create_new(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    lock.lock().or_else(unsupported)?;
    let written = lock.write_all(names);
    if written.is_err() {
        remove(stage)?;
    }
    written?;
    Ok(FileId::is_at(&lock, &path).then_some(lock))
}

/// The lock of a stage; `None` where it was left without one.
fn open_lock(stage: &Path) -> io::Result<Option<File>> {
    let path = stage.join(LOCK);
    if !is_file(&path) {
        return Ok(None);
    }
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        lock => lock.map(Some),
    }
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
