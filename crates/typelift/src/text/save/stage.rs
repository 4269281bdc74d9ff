//! What takes the place of files is made beside them, in the directory `.typelift-USER.tmp`, under names that begin with a hash of
//! the name of the file.
//!
//! `HASH.lock` is locked as long as its process runs, so that the next run knows what was left behind. What a pair has tells how far
//! it came, because `HASH.bin` is there before `HASH.xml`, and both are whole before the old graph becomes `HASH.old`.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use super::attributes;
use super::folder::{self, Folder};
use crate::base::file::directory;

/// The new graph of a pair.
const GRAPH: &str = "xml";
/// Its new weights.
const WEIGHTS: &str = "bin";
/// The graph that is replaced.
const OLD: &str = "old";
/// What takes the place of one file.
const NEW: &str = "new";
const LOCK: &str = "lock";
/// What a place can have, in the order in which it is removed.
const ENDINGS: [&str; 4] = [GRAPH, WEIGHTS, OLD, NEW];

/// Whether saves are to end. Whoever begins one, replaces files or cleans up holds it to read, so that many can at a time.
static INTERRUPTED: RwLock<bool> = RwLock::new(false);

/// What this process is writing.
#[derive(Default)]
struct Running {
    /// The directory and the hash of each place.
    places: HashSet<(PathBuf, String)>,
    /// Directories that were searched for what killed runs have left.
    swept: HashSet<PathBuf>,
}

static RUNNING: LazyLock<Mutex<Running>> = LazyLock::new(Mutex::default);

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

static ON_WAIT: OnceLock<fn(&Path)> = OnceLock::new();

/// Has `tell` called with the path of a file before this process waits for another one that is writing it. The first call counts.
pub fn on_wait(tell: fn(&Path)) {
    let _first = ON_WAIT.set(tell);
}

/// Removes what unfinished saves of this process have written so far, and lets no other begin or finish; one that is
/// replacing files at this moment is waited for. For handlers of signals that end the process.
pub fn interrupt() {
    *INTERRUPTED.write().unwrap_or_else(PoisonError::into_inner) = true;
    for (path, hash) in running().places.drain() {
        if let Ok(Some(folder)) = Folder::open(&path) {
            let _left_for_the_next_run = vacate(&folder, &hash, &ENDINGS);
        }
    }
}

/// Keeps [`interrupt`] away until what is returned is dropped.
fn uninterrupted() -> io::Result<RwLockReadGuard<'static, bool>> {
    let interrupted = INTERRUPTED.read().unwrap_or_else(PoisonError::into_inner);
    if *interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(interrupted) }
}

/// Where what replaces one file is made; nobody else is at it while its lock is held.
struct Place {
    folder: Folder,
    hash: String,
    /// What it may have, in the order in which it is removed: the graph of a pair goes before its weights.
    has: Vec<&'static str>,
    /// Whether it stays when this process is done with it: the next run needs it.
    stays: bool,
    _lock: File,
}

impl Place {
    /// The place of a file; waits where another process has it.
    fn new(file: &Path) -> io::Result<Self> {
        loop {
            if let Some(place) = Self::try_new(file)? {
                return Ok(place);
            }
        }
    }

    /// `None` where another process had the place, or removed the directory.
    fn try_new(file: &Path) -> io::Result<Option<Self>> {
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
            running().places.insert((folder.path().to_owned(), hash.clone()));
            let has = if made { Vec::new() } else { ENDINGS.to_vec() };
            return Ok(Some(Self { folder, hash, has, stays: false, _lock: lock }));
        }
        drop(uninterrupted);
        if is_locked {
            wait(&lock, file)?;
        }
        Ok(None)
    }

    /// The place that a killed run has left of a file, once no process is at it; `None` where there is none.
    fn left(folder: Folder, file: &Path) -> io::Result<Option<Self>> {
        let hash = hash(file);
        let Some(lock) = absent(folder.lock(&name(&hash, LOCK), false))? else { return Ok(None) };
        if is_locked(&lock)? {
            wait(&lock, file)?;
        }
        let is_there = folder.is_at(&name(&hash, LOCK), &lock);
        // Only a place that is there is dropped: another thread may have the next one of this name.
        Ok(is_there.then(|| Self { folder, hash, has: ENDINGS.to_vec(), stays: true, _lock: lock }))
    }

    fn name(&self, ending: &str) -> String {
        name(&self.hash, ending)
    }

    /// Makes a file; where one is replaced, it is on the disk then, and has what that one has.
    fn make(
        &mut self,
        ending: &'static str,
        replaced: Option<&Path>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        step()?;
        self.has.insert(0, ending);
        let mut file = self.folder.create(&self.name(ending))?;
        write(&mut file)?;
        step()?;
        if let Some(old) = replaced {
            attributes::keep(old, &file)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Moves a file out of the place, over what is there.
    fn give(&mut self, ending: &str, to: &Path) -> io::Result<()> {
        step()?;
        self.folder.give(&self.name(ending), to)?;
        self.has.retain(|has| *has != ending);
        Ok(())
    }

    /// Removes what a killed run has left, but for the lock.
    fn clear(&mut self) -> io::Result<()> {
        remove(&self.folder, &self.hash, &self.has)?;
        self.has.clear();
        Ok(())
    }

    /// Removes what there is, and the directory where nothing else is in it.
    fn vacate(&self) -> io::Result<()> {
        vacate(&self.folder, &self.hash, &self.has)
    }

    /// What a killed run had still to put in the place of a graph: the new one where the weights are new, else the old one.
    /// `None` where that is there.
    fn left_to_do(&self, xml: &Path) -> Option<&'static str> {
        if fs::symlink_metadata(xml).is_ok() {
            return None;
        }
        let ending = if self.folder.has(&self.name(WEIGHTS)) { OLD } else { GRAPH };
        self.folder.has_file(&self.name(ending)).then_some(ending)
    }

    /// Does what a killed run had still to do. Whether there was anything.
    fn settle(&mut self, xml: &Path) -> io::Result<bool> {
        let Some(ending) = self.left_to_do(xml) else { return Ok(false) };
        self.give(ending, xml)?;
        sync(directory(xml))?;
        Ok(true)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A signal must not end the process between the two.
        let _interrupted_or_not = INTERRUPTED.read();
        let is_own = running().places.remove(&(self.folder.path().to_owned(), self.hash.clone()));
        if is_own && !self.stays {
            // What cannot be removed now is removed by the next run.
            let _left = self.vacate();
        }
    }
}

/// What takes the place of one file.
pub(super) struct Single {
    place: Place,
    replaces: bool,
}

impl Single {
    /// Begins to replace a file; waits where another process does.
    pub(super) fn new(file: &Path) -> io::Result<Self> {
        let mut place = Place::new(file)?;
        place.clear()?;
        Ok(Self { place, replaces: file.exists() })
    }

    /// Makes what is to take the place of the file.
    pub(super) fn write(&mut self, file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.place.make(NEW, self.replaces.then_some(file), write)
    }

    /// Puts it there.
    pub(super) fn replace(mut self, file: &Path) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        self.place.give(NEW, file)?;
        if self.replaces { sync(directory(file)) } else { Ok(()) }
    }
}

/// What takes the place of a graph and its weights.
pub(super) struct Pair<'a> {
    xml: &'a Path,
    bin: &'a Path,
    place: Place,
    /// Whether a file is there whose place is taken, so that what takes it must be on the disk first.
    replaces: bool,
}

impl<'a> Pair<'a> {
    /// Begins to replace a pair; waits where another process does. Completes or removes what a killed run has left of it.
    pub(super) fn new(xml: &'a Path, bin: &'a Path) -> io::Result<Self> {
        let mut place = Place::new(xml)?;
        place.settle(xml)?;
        place.clear()?;
        Ok(Self { xml, bin, place, replaces: xml.exists() || bin.exists() })
    }

    /// Makes the weights, which come first.
    pub(super) fn write_weights(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.place.make(WEIGHTS, self.replaces.then_some(self.bin), write)
    }

    /// Makes the weights a link to the file `from`: a hard one, or a symbolic one to another file system.
    pub(super) fn link_weights(&mut self, from: &Path) -> io::Result<()> {
        step()?;
        self.place.has.insert(0, WEIGHTS);
        self.place.folder.link(&fs::canonicalize(from)?, &self.place.name(WEIGHTS))
    }

    /// Makes the graph.
    pub(super) fn write_graph(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        self.place.make(GRAPH, self.replaces.then_some(self.xml), write)
    }

    /// Puts both in their places.
    pub(super) fn replace(mut self) -> io::Result<()> {
        let _uninterrupted = uninterrupted()?;
        self.sync_all()?;
        let had_old = self.take_old()?;
        if let Err(error) = self.replace_weights(had_old) {
            // The old weights are still there, and so the old graph goes back to them.
            let is_back = !had_old || self.place.give(OLD, self.xml).is_ok();
            self.place.stays = !is_back;
            return Err(error);
        }
        self.place.stays = true;
        self.sync()?;
        self.place.give(GRAPH, self.xml)?;
        self.place.stays = false;
        self.sync()
    }

    /// Removes the old graph from its path and keeps it in the place. Returns true if there was one.
    ///
    /// A link is kept as a copy of the file that it leads to: recovery moves regular files only.
    fn take_old(&mut self) -> io::Result<bool> {
        let is_link = fs::symlink_metadata(self.xml).is_ok_and(|found| found.is_symlink());
        if let (true, Ok(mut old)) = (is_link, File::open(self.xml)) {
            self.place.make(OLD, Some(self.xml), |copy| io::copy(&mut old, copy).map(drop))?;
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

    /// Puts the weights in their place, once it is certain that the old graph is gone from its own.
    fn replace_weights(&mut self, had_old: bool) -> io::Result<()> {
        if had_old {
            sync(directory(self.xml))?;
        }
        self.place.give(WEIGHTS, self.bin)
    }

    /// Waits until the names of what was made are on the disk.
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

/// Completes or removes what a killed run has left of a pair, once no process is at it any more. Returns true if it was
/// completed.
pub(super) fn recover(xml: &Path) -> io::Result<bool> {
    let Some(folder) = Folder::open(&folder_of(xml))? else { return Ok(false) };
    sweep(&folder);
    let Some(mut place) = Place::left(folder, xml)? else { return Ok(false) };
    let _uninterrupted = uninterrupted()?;
    let completed = place.settle(xml)?;
    place.vacate()?;
    Ok(completed)
}

/// True if a killed run has left a pair without its graph. Waits where a process is replacing it.
pub(super) fn is_half_written(xml: &Path) -> io::Result<bool> {
    let Some(folder) = Folder::open(&folder_of(xml))? else { return Ok(false) };
    Ok(Place::left(folder, xml)?.is_some_and(|place| place.left_to_do(xml).is_some()))
}

/// Removes files of a place.
fn remove(folder: &Folder, hash: &str, endings: &[&str]) -> io::Result<()> {
    for ending in endings {
        step()?;
        absent(folder.remove(&name(hash, ending)))?;
    }
    Ok(())
}

/// Removes a place that has these files, and the directory where nothing else is in it.
fn vacate(folder: &Folder, hash: &str, endings: &[&str]) -> io::Result<()> {
    remove(folder, hash, endings)?;
    remove(folder, hash, &[LOCK])?;
    remove_empty(folder)
}

fn remove_empty(folder: &Folder) -> io::Result<()> {
    step()?;
    match fs::remove_dir(folder.path()) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => absent(removed).map(drop),
    }
}

/// `None` where nothing is there.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Removes what killed runs have left of other files, once in the life of this process, and the directory where it is empty then.
/// Whether it was the time to do it. What cannot be removed harms nobody.
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

/// Forgets which directories were searched.
#[cfg(test)]
pub(super) fn forget_sweeps() {
    running().swept.clear();
}

/// Removes a place whose process is gone, unless a pair waits for it.
fn remove_abandoned(folder: &Folder, hash: &str) -> io::Result<()> {
    let lock = folder.lock(&name(hash, LOCK), false)?;
    let is_abandoned = lock.try_lock().is_ok() && folder.is_at(&name(hash, LOCK), &lock);
    let has = |ending| folder.has(&name(hash, ending));
    let is_awaited = has(GRAPH) && (has(OLD) || !has(WEIGHTS));
    if is_abandoned && !is_awaited { vacate(folder, hash, &ENDINGS) } else { Ok(()) }
}

/// Whether another process holds a lock; takes it where none does. Some file systems have no locks: two runs that write one model
/// at a time are not kept apart there.
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

/// The directory in which what replaces a file is made.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    directory(file).join(format!(".typelift-{}.tmp", folder::user()))
}

/// FNV-1a of the name of a file: the same in every release, and as short for the longest name that a file can have.
pub(super) fn hash(file: &Path) -> String {
    let bytes = file.file_name().unwrap_or_default().as_encoded_bytes();
    let hash = bytes
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

/// Waits until a directory is on the disk, where the system can.
fn sync(directory: &Path) -> io::Result<()> {
    step()?;
    if cfg!(unix) { File::open(directory)?.sync_all().or_else(unsupported) } else { Ok(()) }
}

/// Where tests let the process die or the disk fail; see `tests`.
fn step() -> io::Result<()> {
    #[cfg(test)]
    super::tests::step()?;
    Ok(())
}
