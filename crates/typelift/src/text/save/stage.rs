//! Replacements of files are prepared next to them, in the directory `.typelift-USER.tmp`, under names that begin with
//! a hash of the file's name.
//!
//! `HASH.lock` is locked while its process runs, so files without a locked `HASH.lock` belong to a killed process. The
//! existing files show which step it had reached: `HASH.bin` is created before `HASH.xml`, and both are complete
//! before the old graph becomes `HASH.old`.
//!
//! Windows replaces no file that is open. The old file first becomes `HASH.gone` there, which returns if the process is
//! killed before the new one, `HASH.bin` or `HASH.new`, has its place.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use super::attributes;
use super::folder::{self, Folder};
use crate::base::file::directory;

/// The new graph of a pair.
const GRAPH: &str = "xml";
/// The new weights of a pair.
const WEIGHTS: &str = "bin";
/// The graph that is replaced.
const OLD: &str = "old";
/// Replacement of one file.
const NEW: &str = "new";
/// The file that another one is replacing now, where the system replaces no file that is open.
const GONE: &str = "gone";
const LOCK: &str = "lock";
/// Suffixes of all files of one replacement, in the order of removal.
const ENDINGS: [&str; 5] = [GRAPH, WEIGHTS, OLD, NEW, GONE];

/// True after an interrupt, when no save may continue. Each save holds a read lock in its critical sections.
static INTERRUPTED: RwLock<bool> = RwLock::new(false);

/// Files that this process is writing now.
#[derive(Default)]
struct Running {
    /// The lock of each replacement, by its directory and the hash of the file's name.
    places: HashMap<(PathBuf, String), File>,
    /// Directories that were searched for files of killed processes.
    swept: HashSet<PathBuf>,
}

static RUNNING: LazyLock<Mutex<Running>> = LazyLock::new(Mutex::default);

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

static ON_WAIT: OnceLock<fn(&Path)> = OnceLock::new();

/// Registers a function that is called with the path of a file before this process waits for another one that is
/// writing it. The first registration is used.
pub fn on_wait(tell: fn(&Path)) {
    let _first = ON_WAIT.set(tell);
}

/// Removes the files of unfinished saves of this process, and prevents others from beginning or finishing. A save that
/// is replacing files finishes first. For handlers of signals that end the process.
pub fn interrupt() {
    *INTERRUPTED.write().unwrap_or_else(PoisonError::into_inner) = true;
    for ((path, hash), lock) in running().places.drain() {
        if let Ok(Some(folder)) = Folder::open(&path) {
            let _left_for_the_next_run = vacate(&folder, &hash, &ENDINGS, lock);
        }
    }
}

/// Blocks [`interrupt`] until the result is dropped.
fn uninterrupted() -> io::Result<RwLockReadGuard<'static, bool>> {
    let interrupted = INTERRUPTED.read().unwrap_or_else(PoisonError::into_inner);
    if *interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(interrupted) }
}

/// Preparation of the replacement of one file; its lock excludes other processes.
struct StagedFile {
    folder: Folder,
    hash: String,
    /// The suffixes of the files that may exist, in the order of removal: the graph of a pair before its weights.
    has: Vec<&'static str>,
    /// True if the files are kept at the end of this process, because the next one needs them.
    stays: bool,
    /// The lock, until [`Running`] has it.
    lock: Option<File>,
}

impl StagedFile {
    /// Starts a replacement of a file; waits if another process is replacing it. `settle` deals with the remains of a
    /// killed run. An interrupt waits for it: it would remove these remains, which the pair may need.
    fn new(file: &Path, settle: impl Fn(&mut Self) -> io::Result<()>) -> io::Result<Self> {
        loop {
            if let Some(place) = Self::try_new(file, &settle)? {
                return Ok(place);
            }
        }
    }

    /// Returns `None` if another process is replacing the file, or removed the directory.
    fn try_new(file: &Path, settle: impl Fn(&mut Self) -> io::Result<()>) -> io::Result<Option<Self>> {
        let uninterrupted = uninterrupted()?;
        step()?;
        let (folder, made) = Folder::make(&folder_of(file))?;
        if !made && sweep(&folder) {
            return Ok(None);
        }
        let hash = hash(file);
        step()?;
        let Some(lock) = absent(folder.lock(&name(&hash, LOCK), true))? else { return Ok(None) };
        step()?;
        let is_locked = is_locked(&lock)?;
        if !is_locked && folder.is_at(&name(&hash, LOCK), &lock) {
            let has = if made { Vec::new() } else { ENDINGS.to_vec() };
            let mut place = Self { folder, hash, has, stays: false, lock: Some(lock) };
            settle(&mut place)?;
            if let Some(lock) = place.lock.take() {
                running().places.insert(place.key(), lock);
            }
            drop(uninterrupted);
            return Ok(Some(place));
        }
        drop(uninterrupted);
        if is_locked {
            wait(&lock, file)?;
        }
        Ok(None)
    }

    /// Takes over the replacement that a killed process left behind; `None` if there is none. Waits for its lock.
    fn left(folder: Folder, file: &Path) -> io::Result<Option<Self>> {
        let hash = hash(file);
        let Some(lock) = absent(folder.lock(&name(&hash, LOCK), false))? else { return Ok(None) };
        if is_locked(&lock)? {
            wait(&lock, file)?;
        }
        let is_there = folder.is_at(&name(&hash, LOCK), &lock);
        // The result is created only if the files exist. Otherwise dropping it could remove files of another thread.
        Ok(is_there.then(|| Self { folder, hash, has: ENDINGS.to_vec(), stays: true, lock: Some(lock) }))
    }

    fn key(&self) -> (PathBuf, String) {
        (self.folder.path().to_owned(), self.hash.clone())
    }

    fn name(&self, ending: &str) -> String {
        name(&self.hash, ending)
    }

    /// A file with content as [`fill`](Self::fill) does. Between an interrupt and the end of the process no file
    /// is created, because nothing would remove it.
    fn make(
        &mut self,
        ending: &'static str,
        replaced: Option<&Path>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let uninterrupted = uninterrupted()?;
        let file = self.create(ending)?;
        drop(uninterrupted);
        Self::fill(file, replaced, write)
    }

    fn create(&mut self, ending: &'static str) -> io::Result<File> {
        step()?;
        self.has.insert(0, ending);
        self.folder.create(&self.name(ending))
    }

    /// Writes the content of a file. If it replaces another one, it is synced and gets that file's attributes.
    fn fill(
        mut file: File,
        replaced: Option<&Path>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        write(&mut file)?;
        step()?;
        if let Some(old) = replaced {
            attributes::keep(old, &file)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Moves a prepared file to its destination, replacing the old one.
    fn give(&mut self, ending: &str, to: &Path) -> io::Result<()> {
        step()?;
        let given = self.folder.give(&self.name(ending), to, &self.name(GONE));
        if cfg!(not(unix)) && self.folder.has(&self.name(GONE)) {
            // After an error the old file could not return. The next run tries again.
            self.stays |= given.is_err();
            self.has.push(GONE);
        }
        given?;
        self.has.retain(|has| *has != ending);
        Ok(())
    }

    fn give_new(&mut self, file: &Path, replaces: bool) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        self.give(NEW, file)?;
        if replaces { sync(directory(file)) } else { Ok(()) }
    }

    /// Removes the files of a killed process, except the lock.
    fn clear(&mut self) -> io::Result<()> {
        remove(&self.folder, &self.hash, &self.has)?;
        self.has.clear();
        Ok(())
    }

    /// Removes all its files, and the directory if it is empty then.
    fn vacate(&self, lock: File) -> io::Result<()> {
        vacate(&self.folder, &self.hash, &self.has, lock)
    }

    /// The graph that a killed process did not rename yet: the new one if the weights are new, otherwise the
    /// old one. `None` if the graph exists.
    fn left_to_do(&self, xml: &Path) -> Option<&'static str> {
        if fs::symlink_metadata(xml).is_ok() {
            return None;
        }
        let has = |ending| self.folder.has(&self.name(ending));
        let ending = if has(WEIGHTS) {
            OLD
        } else if has(NEW) {
            GONE
        } else {
            GRAPH
        };
        self.folder.has_file(&self.name(ending)).then_some(ending)
    }

    fn restore(&mut self, ending: &str, file: &Path) -> io::Result<()> {
        let is_gone = self.folder.has(&self.name(ending)) && self.folder.has_file(&self.name(GONE));
        if is_gone && fs::symlink_metadata(file).is_err() { self.give(GONE, file) } else { Ok(()) }
    }

    /// Completes the work of a killed process. Returns true if any was left.
    fn settle(&mut self, xml: &Path, bin: &Path) -> io::Result<bool> {
        self.restore(WEIGHTS, bin)?;
        let Some(ending) = self.left_to_do(xml) else { return Ok(false) };
        self.give(ending, xml)?;
        sync(directory(xml))?;
        Ok(true)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // The lock prevents that a signal ends the process between the two steps.
        let _interrupted_or_not = INTERRUPTED.read();
        let lock = running().places.remove(&self.key());
        if let Some(lock) = lock.filter(|_| !self.stays) {
            // Files that cannot be removed now are removed by the next run.
            let _left = self.vacate(lock);
        }
    }
}

/// Replacement of one file.
pub(super) struct Single {
    place: StagedFile,
    replaces: bool,
}

impl Single {
    /// Begins to replace a file; waits if another process is replacing it.
    pub(super) fn new(file: &Path) -> io::Result<Self> {
        let place = StagedFile::new(file, |place| {
            place.restore(NEW, file)?;
            place.clear()
        })?;
        Ok(Self { place, replaces: file.exists() })
    }

    pub(super) fn write(&mut self, file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.place.make(NEW, self.replaces.then_some(file), write)
    }

    pub(super) fn replace(mut self, file: &Path) -> io::Result<()> {
        self.place.give_new(file, self.replaces)
    }
}

/// Replacement of a graph, with or without its weights.
pub(super) struct Pair<'a> {
    xml: &'a Path,
    bin: &'a Path,
    place: StagedFile,
    /// True if an existing file is replaced, so that the replacement must be synced first.
    replaces: bool,
}

impl<'a> Pair<'a> {
    /// Begins to replace a pair; waits if another process is replacing it. Completes or removes the remains of a killed
    /// run.
    pub(super) fn new(xml: &'a Path, bin: &'a Path) -> io::Result<Self> {
        let place = StagedFile::new(xml, |place| {
            place.settle(xml, bin)?;
            place.clear()
        })?;
        Ok(Self { xml, bin, place, replaces: xml.exists() || bin.exists() })
    }

    /// Writes the weights, which come first.
    pub(super) fn write_weights(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.place.make(WEIGHTS, self.replaces.then_some(self.bin), write)
    }

    /// Makes the weights a link to the file `from`: a hard one, or a symbolic one across file systems.
    pub(super) fn link_weights(&mut self, from: &Path) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        step()?;
        self.place.has.insert(0, WEIGHTS);
        self.place.folder.link(&fs::canonicalize(from)?, &self.place.name(WEIGHTS))
    }

    /// Writes the graph, after the weights.
    pub(super) fn write_graph(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let ending = if self.has_weights() { GRAPH } else { NEW };
        self.place.make(ending, self.replaces.then_some(self.xml), write)
    }

    fn has_weights(&self) -> bool {
        self.place.has.contains(&WEIGHTS)
    }

    pub(super) fn replace(mut self) -> io::Result<()> {
        if !self.has_weights() {
            return self.place.give_new(self.xml, self.replaces);
        }
        let _uninterrupted = uninterrupted()?;
        self.sync_all()?;
        let had_old = self.take_old()?;
        if let Err(error) = self.replace_weights(had_old) {
            // The old weights still exist, so the old graph is restored.
            let is_back = !self.place.stays && (!had_old || self.place.give(OLD, self.xml).is_ok());
            self.place.stays = !is_back;
            return Err(error);
        }
        self.place.stays = true;
        self.sync()?;
        self.place.give(GRAPH, self.xml)?;
        self.place.stays = false;
        self.sync()
    }

    /// Moves the old graph to the directory of prepared files. Returns true if there was one.
    ///
    /// A link is kept as a copy of the file that it leads to: recovery moves regular files only.
    fn take_old(&mut self) -> io::Result<bool> {
        let is_link = fs::symlink_metadata(self.xml).is_ok_and(|found| found.is_symlink());
        if let (true, Ok(mut old)) = (is_link, File::open(self.xml)) {
            let copy = self.place.create(OLD)?;
            StagedFile::fill(copy, Some(self.xml), |copy| io::copy(&mut old, copy).map(drop))?;
            step()?;
            return fs::remove_file(self.xml).map(|()| true);
        }
        step()?;
        match self.place.folder.take(self.xml, &self.place.name(OLD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            taken => {
                self.place.has.insert(0, OLD);
                taken.map(|()| true)
            }
        }
    }

    /// Moves the weights to their destination, once the removal of the old graph is certain.
    fn replace_weights(&mut self, had_old: bool) -> io::Result<()> {
        if had_old {
            sync(directory(self.xml))?;
        }
        self.place.give(WEIGHTS, self.bin)
    }

    /// Waits until the names of the prepared files are on the disk.
    fn sync_all(&self) -> io::Result<()> {
        step()?;
        if !self.replaces {
            return Ok(());
        }
        self.place.folder.sync().or_else(unsupported)?;
        sync(directory(self.xml))
    }

    /// Waits until the names of the pair are on the disk, if it replaces something.
    fn sync(&self) -> io::Result<()> {
        if self.replaces { sync(directory(self.xml)) } else { Ok(()) }
    }
}

/// Completes the pair that a killed process left unfinished, or removes its files. Waits for other processes first.
/// Returns true if the pair was completed.
pub(super) fn recover(xml: &Path) -> io::Result<bool> {
    let Some(folder) = Folder::open(&folder_of(xml))? else { return Ok(false) };
    sweep(&folder);
    let Some(mut place) = StagedFile::left(folder, xml)? else { return Ok(false) };
    let _uninterrupted = uninterrupted()?;
    let completed = place.settle(xml, &xml.with_extension("bin"))?;
    if let Some(lock) = place.lock.take() {
        place.vacate(lock)?;
    }
    Ok(completed)
}

/// True if a killed process left a pair without its graph. Waits while another process is replacing it.
pub(super) fn is_half_written(xml: &Path) -> io::Result<bool> {
    let Some(folder) = Folder::open(&folder_of(xml))? else { return Ok(false) };
    Ok(StagedFile::left(folder, xml)?.is_some_and(|place| place.left_to_do(xml).is_some()))
}

fn remove(folder: &Folder, hash: &str, endings: &[&str]) -> io::Result<()> {
    for ending in endings {
        step()?;
        absent(folder.remove(&name(hash, ending)))?;
    }
    Ok(())
}

/// Removes all files of a replacement, and the directory if it is empty then.
fn vacate(folder: &Folder, hash: &str, endings: &[&str], lock: File) -> io::Result<()> {
    remove(folder, hash, endings)?;
    step()?;
    absent(folder.unlock(&name(hash, LOCK), lock))?;
    remove_empty(folder)
}

fn remove_empty(folder: &Folder) -> io::Result<()> {
    step()?;
    match folder::patiently(|| fs::remove_dir(folder.path())) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => absent(removed).map(drop),
    }
}

/// Returns `None` if the file does not exist.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Removes files of killed processes that wrote other models, once per process, and the directory if it is empty then.
/// Returns true if this call did it. Files that cannot be removed do no harm.
fn sweep(folder: &Folder) -> bool {
    if !running().swept.insert(folder.path().to_owned()) {
        return false;
    }
    for name in folder.names().unwrap_or_default() {
        if let Some(hash) = name.strip_suffix(".lock") {
            let _harmless = remove_abandoned(folder, hash);
        }
    }
    let _harmless = remove_empty(folder);
    true
}

#[cfg(test)]
pub(super) fn forget_sweeps() {
    running().swept.clear();
}

/// Removes the files of a process that has ended, unless a pair still needs them.
fn remove_abandoned(folder: &Folder, hash: &str) -> io::Result<()> {
    let lock = folder.lock(&name(hash, LOCK), false)?;
    let is_abandoned = lock.try_lock().is_ok() && folder.is_at(&name(hash, LOCK), &lock);
    let has = |ending| folder.has(&name(hash, ending));
    let is_awaited = has(GRAPH) && (has(OLD) || !has(WEIGHTS)) || has(GONE) && (has(WEIGHTS) || has(NEW));
    if is_abandoned && !is_awaited { vacate(folder, hash, &ENDINGS, lock) } else { Ok(()) }
}

/// True if another process holds a lock; otherwise takes the lock. On file systems without locks, two processes can
/// write the same model at the same time.
fn is_locked(lock: &File) -> io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => unsupported(error).map(|()| false),
    }
}

/// Waits until no other process holds the lock of a file, and takes it.
fn wait(lock: &File, file: &Path) -> io::Result<()> {
    if let Some(tell) = ON_WAIT.get() {
        tell(file);
    }
    lock.lock().or_else(unsupported)
}

pub(super) fn folder_of(file: &Path) -> PathBuf {
    directory(file).join(format!(".typelift-{}.tmp", folder::user()))
}

/// The FNV-1a hash of a file's name: the same in every release, and short for any name. On Windows, names that
/// differ in case are those of one file.
pub(super) fn hash(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    let name = if cfg!(windows) { name.to_string_lossy().to_lowercase().into() } else { name.to_owned() };
    let hash = name
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

fn name(hash: &str, ending: &str) -> String {
    format!("{hash}.{ending}")
}

fn unsupported(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    }
}

/// Waits until a directory is on the disk, if the system can.
fn sync(directory: &Path) -> io::Result<()> {
    step()?;
    if cfg!(unix) { File::open(directory)?.sync_all().or_else(unsupported) } else { Ok(()) }
}

/// Hook at which tests simulate a kill or a disk error; see `tests`.
pub(super) fn step() -> io::Result<()> {
    #[cfg(test)]
    super::tests::step()?;
    Ok(())
}
