//! Bytes of constants: those of the `.bin`, which is never read completely, followed by added ones.

pub(crate) mod budget;
mod compact;
mod kept;

use std::cmp::Reverse;
use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use typelift_promote::ElementType;

use self::budget::Budget;
pub(crate) use self::budget::TooLarge;
use crate::base::file::{FileId, Stamp, open_regular, read_exact_at};
use crate::base::hash::{self, HashMap};
use crate::base::parallel::share;
use crate::base::progress::{Stage, each};

/// Bytes of a model's constants: the base, in a file or in memory, followed by added constants.
///
/// Constants are identified by their offset. Offsets in the base never change.
///
/// ```
/// # use typelift::Weights;
/// let weights = Weights::from_bytes([1, 2, 3, 4]);
/// assert_eq!(weights.read(2, 2), Some(vec![3, 4]));
/// assert_eq!(weights.read(2, 3), None);
/// assert_eq!(Weights::none().len(), None);
/// static BYTES: [u8; 2] = [1, 2];
/// let weights = Weights::from_owner(&BYTES).on_one_thread();
/// let mut copy = [0; 2];
/// weights.copy_to(&mut copy)?;
/// assert_eq!((copy, weights.to_bytes()?), (BYTES, vec![1, 2]));
/// assert_eq!((weights.in_memory(), weights.memory()), (Some(&BYTES[..]), (64 << 20) + 16));
/// assert_eq!(weights.with_memory(1 << 30).read(1, 1), Some(vec![2]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Weights {
    base: Base,
    tail: Tail,
    pub(crate) on_one_thread: bool,
    budget: Budget,
    /// Number of bytes that were copied from the weights of other models.
    copied: u64,
}

#[derive(Clone, Default)]
enum Base {
    /// The weights are absent: types and shapes are known, values are not.
    #[default]
    None,
    File(Arc<Bin>),
    Memory(MemoryOwner),
    Laid(Arc<Composition>),
}

type MemoryOwner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Weights composed of byte ranges of other weights.
struct Composition {
    of: Weights,
    /// The ranges in order, without gaps.
    parts: Vec<ByteRange>,
}

/// Range of bytes of other weights.
#[derive(Clone, Copy)]
struct ByteRange {
    /// The offset in the composed weights.
    start: u64,
    /// The offset in the other weights; `None` for zeros.
    offset: Option<u64>,
    length: u64,
}

/// The byte ranges of constants, as offset and length.
pub(crate) struct Ranges {
    all: Vec<(u64, u64)>,
    /// For each range, the index of the first one with equal bytes.
    same: Vec<usize>,
}

impl Ranges {
    pub(crate) fn all(&self) -> &[(u64, u64)] {
        &self.all
    }
}

impl Composition {
    fn len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.length)
    }

    /// The offset of a range in the other weights; `None` if the range crosses sections.
    fn find(&self, range: Range<u64>) -> Option<u64> {
        let at = self.parts.partition_point(|part| part.start <= range.start).checked_sub(1)?;
        let part = self.parts.get(at)?;
        let offset = part.offset.filter(|_| range.end <= part.start + part.length)?;
        Some(offset + (range.start - part.start))
    }

    /// Passes the bytes of a range to `look`, in order and in chunks.
    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let first = self.parts.partition_point(|part| part.start + part.length <= range.start);
        let parts = self.parts[first..].iter().take_while(|part| part.start < range.end);
        parts.into_iter().try_for_each(|part| {
            let (start, end) = (range.start.max(part.start), range.end.min(part.start + part.length));
            match part.offset {
                Some(offset) => self.of.each_piece(offset + (start - part.start), end - start, look),
                None => zeros(end - start, look),
            }
        })
    }

    fn stays(&self, range: &Range<u64>) -> bool {
        self.find(range.clone()) == Some(range.start)
    }

    /// Copies the file of the other weights, if most offsets are the same. Returns the number of copied bytes.
    fn copy_base(&self, new: &mut File) -> io::Result<u64> {
        let Base::File(source) = &self.of.base else { return Ok(0) };
        let inside = self.parts.iter().filter(|part| part.start + part.length <= source.length);
        let kept: u64 = inside.filter(|part| part.offset == Some(part.start)).map(|part| part.length).sum();
        let length = if kept > self.len() / 2 { source.length.min(self.len()) } else { 0 };
        copy(&source.file, length, new).map(|()| length)
    }

    /// Writes all bytes to a new file. Each thread composes one block at a time.
    fn write_to(&self, new: &mut File, on_one_thread: bool) -> io::Result<()> {
        let (length, size) = (self.len(), CHUNK as u64);
        let copied = self.copy_base(new)?;
        let new = &*new;
        let written = share("write", length.div_ceil(size), on_one_thread, |bytes: &mut Vec<u8>, block| {
            let range = block * size..length.min((block + 1) * size);
            if range.end <= copied && self.stays(&range) {
                return Ok(());
            }
            bytes.clear();
            self.read(range.clone(), &mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })?;
            write_all_at(new, bytes, range.start)
        });
        written.map(drop)
    }
}

struct Bin {
    file: File,
    path: PathBuf,
    length: u64,
    /// The state of the file when it was opened.
    stamp: Stamp,
    window: Mutex<PageCache>,
}

/// Cache of the pages of a file around the last small constants that were read. The next constant is usually near.
#[derive(Default)]
struct PageCache {
    /// Pages of the file; page `n` is at index `n` modulo the length.
    pages: [Page; PageCache::PAGES],
}

#[derive(Default)]
struct Page {
    start: u64,
    bytes: Vec<u8>,
}

impl PageCache {
    const PAGES: usize = 16;
    const PAGE: u64 = 4 << 10;
}

/// Bytes that are computed when they are read, always with the same result.
pub(crate) trait Content: Send + Sync {
    fn len(&self) -> u64;

    /// Passes the bytes of a range to `look`, in order and in chunks.
    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

/// Constants added after the base. Equal constants are stored once.
#[derive(Clone, Default)]
struct Tail {
    /// The constants in order, each at a multiple of [`ALIGNMENT`] from the start of the tail.
    pieces: Arc<Vec<AddedConstant>>,
    /// The bytes of all stored constants.
    bytes: Arc<Vec<u8>>,
    /// The stored constants by the hash of their bytes.
    known: Arc<HashMap<u64, Vec<usize>>>,
}

#[derive(Clone)]
struct AddedConstant {
    /// The offset in the tail.
    start: u64,
    source: PieceSource,
}

#[derive(Clone)]
enum PieceSource {
    Stored(Range<usize>),
    Made(Arc<dyn Content>),
}

impl AddedConstant {
    fn end(&self) -> u64 {
        self.start
            + match &self.source {
                PieceSource::Stored(range) => range.len() as u64,
                PieceSource::Made(content) => content.len(),
            }
    }
}

impl Tail {
    fn len(&self) -> u64 {
        self.pieces.last().map_or(0, AddedConstant::end)
    }

    fn push(&mut self, source: PieceSource) -> u64 {
        let start = self.len().next_multiple_of(ALIGNMENT);
        Arc::make_mut(&mut self.pieces).push(AddedConstant { start, source });
        start
    }

    /// Adds bytes, unless equal ones were added before. Returns their offset.
    fn add(&mut self, bytes: &[u8]) -> u64 {
        let hash = hash::of(bytes);
        for piece in self.known.get(&hash).into_iter().flatten().filter_map(|&at| self.pieces.get(at)) {
            if let PieceSource::Stored(range) = &piece.source
                && self.bytes.get(range.clone()) == Some(bytes)
            {
                return piece.start;
            }
        }
        Arc::make_mut(&mut self.known).entry(hash).or_default().push(self.pieces.len());
        let stored = Arc::make_mut(&mut self.bytes);
        let start = stored.len();
        stored.extend_from_slice(bytes);
        let range = start..stored.len();
        self.push(PieceSource::Stored(range))
    }

    fn shorten(&mut self, length: u64) {
        let pieces = Arc::make_mut(&mut self.pieces);
        pieces.truncate(pieces.partition_point(|piece| piece.start < length));
        let stored = pieces.iter().rev().find_map(|piece| match &piece.source {
            PieceSource::Stored(range) => Some(range.end),
            PieceSource::Made(_) => None,
        });
        Arc::make_mut(&mut self.bytes).truncate(stored.unwrap_or(0));
        let count = pieces.len();
        Arc::make_mut(&mut self.known).retain(|_, known| {
            known.retain(|&at| at < count);
            !known.is_empty()
        });
    }

    /// Calls `look` with a range of bytes; `None` if the range crosses constants.
    fn with<T>(&self, range: Range<u64>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let (source, within) = self.find(range)?;
        match source {
            PieceSource::Stored(stored) => self.stored(stored, within).map(look),
            PieceSource::Made(content) => {
                let mut bytes = Vec::with_capacity((within.end - within.start) as usize);
                let read = content.read(within, &mut |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                });
                read.ok().map(|()| look(&bytes))
            }
        }
    }

    /// Passes the bytes of a range to `look`, in order and in chunks; `None` if the range crosses constants.
    fn read(&self, range: Range<u64>, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Option<io::Result<()>> {
        let (source, within) = self.find(range)?;
        match source {
            PieceSource::Stored(stored) => self.stored(stored, within).map(look),
            PieceSource::Made(content) => Some(content.read(within, look)),
        }
    }

    /// The source of a range's bytes and their position in it; `None` if the range crosses constants.
    fn find(&self, range: Range<u64>) -> Option<(&PieceSource, Range<u64>)> {
        let at = self.pieces.partition_point(|piece| piece.start <= range.start).checked_sub(1)?;
        let piece = self.pieces.get(at).filter(|piece| range.end <= piece.end())?;
        Some((&piece.source, range.start - piece.start..range.end - piece.start))
    }

    fn stored(&self, stored: &Range<usize>, within: Range<u64>) -> Option<&[u8]> {
        self.bytes.get(stored.start + within.start as usize..stored.start + within.end as usize)
    }

    /// Writes all constants, each at its offset, with zeros between.
    fn write_to(&self, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut end = 0;
        for piece in each("write", self.pieces.iter()) {
            write(&[0; ALIGNMENT as usize][..(piece.start - end) as usize])?;
            match &piece.source {
                PieceSource::Stored(range) => write(self.bytes.get(range.clone()).unwrap_or_default())?,
                PieceSource::Made(content) => content.read(0..content.len(), write)?,
            }
            end = piece.end();
        }
        Ok(())
    }
}

/// Alignment of added constants: a cache line, enough for every element type.
const ALIGNMENT: u64 = 64;

impl Weights {
    /// Creates empty weights: types and shapes are known, values are not.
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates weights in memory.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::from_owner(bytes.into())
    }

    /// Creates weights from memory that another object owns, without copying.
    pub fn from_owner(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self { base: Base::Memory(Arc::new(bytes)), ..Self::default() }
    }

    /// Restricts work on the weights to one thread. Use this for memory that other threads must not access.
    #[must_use]
    pub fn on_one_thread(self) -> Self {
        Self { on_one_thread: true, ..self }
    }

    /// Opens the `.bin` of the same name next to a model's `.xml`; [`none`](Self::none) if there is none.
    ///
    /// # Errors
    /// A file that exists and cannot be opened.
    pub fn beside(xml: &Path) -> io::Result<Self> {
        Self::open(&xml.with_extension("bin"))
    }

    /// Opens a weights file; [`none`](Self::none) if it does not exist.
    ///
    /// # Errors
    /// A file that exists and cannot be opened, or is not a regular file: reading from a pipe could block forever.
    pub fn open(path: &Path) -> io::Result<Self> {
        let open = || {
            let file = open_regular(path)?;
            let stamp = Stamp::of(&file)?;
            let source = Bin { file, path: path.to_owned(), length: stamp.length(), stamp, window: Mutex::default() };
            Ok(Self { base: Base::File(Arc::new(source)), ..Self::default() })
        };
        match open() {
            Err(error) if io::Error::kind(&error) == io::ErrorKind::NotFound => Ok(Self::none()),
            result => result,
        }
    }

    /// Returns the number of bytes; `None` without weights.
    pub fn len(&self) -> Option<u64> {
        match (self.base_len(), self.len_of_tail()) {
            (None, 0) => None,
            (None, _) => Some(self.len_of_tail()),
            (Some(base), 0) => Some(base),
            (Some(base), tail) => Some(base.next_multiple_of(ALIGNMENT) + tail),
        }
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len().unwrap_or(0) == 0
    }

    /// Reads `length` bytes at `offset`; `None` if some are missing.
    pub fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        self.with(offset, length, <[u8]>::to_vec)
    }

    /// Calls `look` with `length` bytes at `offset`; `None` if some are missing.
    pub(crate) fn with<T>(&self, offset: u64, length: usize, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let end = offset.checked_add(length as u64)?;
        let base = self.base_len().unwrap_or(0);
        if end > base {
            let start = offset.checked_sub(base.next_multiple_of(ALIGNMENT))?;
            return self.tail.with(start..start.checked_add(length as u64)?, look);
        }
        match &self.base {
            Base::None => (length == 0).then(|| look(&[])),
            Base::Memory(bytes) => {
                let range = usize::try_from(offset).ok()?..usize::try_from(end).ok()?;
                (**bytes).as_ref().get(range).map(look)
            }
            Base::File(source) => source.with(offset, length, look),
            Base::Laid(layout) => layout.of.with(layout.find(offset..end)?, length, look),
        }
    }

    /// Returns all bytes in one piece.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.len().unwrap_or(0)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = vec![0; length];
        self.copy_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes all bytes to a slice of their length.
    ///
    /// # Errors
    /// A file that cannot be read, or a slice that is too short.
    pub fn copy_to(&self, bytes: &mut [u8]) -> io::Result<()> {
        let base = usize::try_from(self.base_len().unwrap_or(0)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let (mut first, rest) = bytes.split_at_mut_checked(base).ok_or(io::ErrorKind::WriteZero)?;
        match &self.base {
            Base::None => {}
            Base::Memory(bytes) => first.copy_from_slice((**bytes).as_ref()),
            Base::File(source) => read_exact_at(&source.file, first, 0)?,
            Base::Laid(layout) => layout.read(0..layout.len(), &mut |piece| first.write_all(piece))?,
        }
        if self.len_of_tail() > 0 {
            let gap = base.next_multiple_of(ALIGNMENT as usize) - base;
            let (gap, mut rest) = rest.split_at_mut_checked(gap).ok_or(io::ErrorKind::WriteZero)?;
            gap.fill(0);
            self.tail.write_to(&mut |part| rest.write_all(part))?;
        }
        Ok(())
    }

    /// Returns the file of the base and its length. An offset in the file is an offset in the weights.
    pub fn file(&self) -> Option<(&File, u64)> {
        match &self.base {
            Base::File(source) => Some((&source.file, source.length)),
            Base::None | Base::Memory(_) | Base::Laid(_) => None,
        }
    }

    /// Returns the base, if it is in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.base {
            Base::Memory(bytes) => Some((**bytes).as_ref()),
            Base::None | Base::File(_) | Base::Laid(_) => None,
        }
    }

    /// Adds bytes, unless equal ones were added before. Returns their offset.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> u64 {
        if bytes.is_empty() {
            // An empty constant at offset 0 is within all weights, even empty ones.
            return 0;
        }
        self.start_of_tail() + self.tail.add(bytes)
    }

    pub(crate) fn add_made(&mut self, content: Arc<dyn Content>) -> u64 {
        self.start_of_tail() + self.tail.push(PieceSource::Made(content))
    }

    /// Passes `length` bytes at `offset` to `look`, in order and in chunks.
    pub(crate) fn each_piece(
        &self,
        offset: u64,
        length: u64,
        look: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(start) = offset.checked_sub(self.start_of_tail()).filter(|_| length > 0) {
            return self.tail.read(start..start + length, look).unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        for start in (0..length).step_by(CHUNK) {
            let count = (length - start).min(CHUNK as u64) as usize;
            self.with(offset + start, count, &mut *look).ok_or(io::ErrorKind::UnexpectedEof)??;
        }
        Ok(())
    }

    /// For each range of offset and length, the index of the first one with equal bytes; `None` if bytes are
    /// missing.
    pub(crate) fn first_equal(&self, ranges: &[(u64, u64)]) -> Option<Vec<usize>> {
        compact::first_equal(self, ranges).ok()
    }

    /// Finds equal bytes among the ranges of constants, each given as offset and length.
    ///
    /// # Errors
    /// Bytes that are missing.
    pub(crate) fn ranges(&self, all: Vec<(u64, u64)>) -> io::Result<Ranges> {
        let end = self.len().unwrap_or(0);
        if all.iter().any(|&(offset, length)| offset.checked_add(length).is_none_or(|it| it > end)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let same = compact::first_equal(self, &all)?;
        Ok(Ranges { all, same })
    }

    /// Weights with exactly the bytes of these ranges, and the new offset of each range. Equal ranges are
    /// stored once, without gaps. Each starts at a multiple of the largest power of two, up to [`ALIGNMENT`], that
    /// divides its length.
    pub(crate) fn compacted(&self, ranges: &Ranges) -> (Self, Vec<u64>) {
        let Ranges { all, same } = ranges;
        // Of ranges with the same offset, only the longest is stored.
        let mut longest: HashMap<u64, usize> = HashMap::default();
        for at in (0..all.len()).filter(|&at| same[at] == at) {
            let known = longest.entry(all[at].0).or_insert(at);
            *known = if all[at].1 > all[*known].1 { at } else { *known };
        }
        let mut order: Vec<_> =
            (0..all.len()).filter(|&at| same[at] == at && longest.get(&all[at].0) == Some(&at)).collect();
        order.sort_by_key(|&at| Reverse(kept::alignment(all[at].1)));
        let (mut parts, mut starts, mut start) = (Vec::with_capacity(order.len()), vec![0; all.len()], 0);
        for at in order {
            let (offset, length) = all[at];
            parts.push(ByteRange { start, offset: Some(offset), length });
            starts[at] = start;
            start += length;
        }
        let starts = same.iter().map(|first| starts[longest.get(&all[*first].0).copied().unwrap_or(*first)]).collect();
        (self.laid_out(parts), starts)
    }

    /// Weights in which the ranges of the base keep their offsets, and the offset of each range. The other
    /// ranges fill bytes of `lost` or are appended.
    pub(crate) fn kept(&self, ranges: &Ranges, lost: &[(u64, u64)]) -> (Self, Vec<u64>) {
        let (parts, starts) = kept::parts(self.base_len().unwrap_or(0), ranges, lost);
        (self.laid_out(parts), starts)
    }

    /// Creates weights that replace those of a file. They are written even if the model is saved over its own file.
    pub(crate) fn in_place_of_file(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self::from_bytes(bytes).laid_out(vec![ByteRange { start: 0, offset: Some(0), length }])
    }

    /// Returns the same weights with another limit on the memory that the values of constants may take, in bytes.
    ///
    /// The default is 64 MiB plus eight times the size of the weights. Constants that need more are not computed, and
    /// are reported.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        Self { budget: Budget::of(bytes), ..self }
    }

    /// Returns the limit on the memory that the values of constants may take, in bytes.
    pub fn memory(&self) -> u64 {
        self.budget.limit(self.base_len().unwrap_or(0))
    }

    /// Fails if a tensor of that many elements exceeds the memory limit.
    pub fn hold(&self, elements: u64) -> Result<(), TooLarge> {
        self.budget.hold(elements, self.tail.bytes.len() as u64, self.base_len().unwrap_or(0))
    }

    /// Fails if there is no memory for that many bytes.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), TooLarge> {
        self.budget.reserve(bytes, self.tail.bytes.len() as u64, self.base_len().unwrap_or(0))
    }

    /// Fails if a tensor of that many elements exceeds the memory limit, or the limit on all computed values. Code
    /// that computes values must call this first.
    pub(crate) fn compute(&self, elements: u64) -> Result<(), TooLarge> {
        self.budget.compute(elements, self.tail.bytes.len() as u64, self.base_len().unwrap_or(0))
    }

    fn laid_out(&self, parts: Vec<ByteRange>) -> Self {
        let base = Base::Laid(Arc::new(Composition { of: self.clone(), parts }));
        Self { base, tail: Tail::default(), ..self.clone() }
    }

    fn start_of_tail(&self) -> u64 {
        self.base_len().unwrap_or(0).next_multiple_of(ALIGNMENT)
    }

    fn source(&self) -> Option<&Bin> {
        match &self.base {
            Base::File(source) => Some(source),
            Base::Laid(layout) => layout.of.source(),
            Base::None | Base::Memory(_) => None,
        }
    }

    /// Returns the path of their file.
    pub fn path(&self) -> Option<&Path> {
        self.source().map(|source| source.path.as_path())
    }

    /// True if the weights contain bytes that their file lacks.
    pub fn has_added(&self) -> bool {
        self.len_of_tail() > 0 || matches!(self.base, Base::Laid(_))
    }

    pub(crate) fn is_file_at(&self, path: &Path) -> bool {
        !self.has_added() && self.source().is_some_and(|source| FileId::is_at(&source.file, path))
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        self.source().is_none_or(|source| Stamp::of(&source.file).is_ok_and(|stamp| stamp == source.stamp))
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.source().is_none_or(|source| source.stamp.holds_at(&source.path))
    }

    /// Writes all bytes to a new file. The file shares blocks with the old one if the file system supports it.
    pub(crate) fn write_to(&self, new: &mut File) -> io::Result<()> {
        match &self.base {
            Base::None => {}
            Base::Memory(bytes) => new.write_all((**bytes).as_ref())?,
            Base::File(source) => copy(&source.file, source.length, new)?,
            Base::Laid(layout) => {
                layout.write_to(new, self.on_one_thread)?;
                new.seek(SeekFrom::End(0))?;
            }
        }
        if self.len_of_tail() > 0 {
            let base = self.base_len().unwrap_or(0);
            let gap = [0; ALIGNMENT as usize];
            new.write_all(&gap[..(base.next_multiple_of(ALIGNMENT) - base) as usize])?;
            self.tail.write_to(&mut |part| new.write_all(part))?;
        }
        Ok(())
    }

    fn base_len(&self) -> Option<u64> {
        match &self.base {
            Base::None => None,
            Base::File(source) => Some(source.length),
            Base::Memory(bytes) => Some((**bytes).as_ref().len() as u64),
            Base::Laid(layout) => Some(layout.len()),
        }
    }

    /// The number of bytes that are stored here or in other models from which they are copied, without those that
    /// are computed when they are read.
    pub(crate) fn given_len(&self) -> u64 {
        self.base_len().unwrap_or(0) + self.tail.bytes.len() as u64 + self.copied
    }

    /// Adds content that is copied from the weights of another model, and returns its offset.
    pub(crate) fn add_copied(&mut self, content: Arc<dyn Content>) -> u64 {
        self.copied += content.len();
        self.add_made(content)
    }

    pub(crate) fn len_of_tail(&self) -> u64 {
        self.tail.len()
    }

    pub(crate) fn shorten_tail(&mut self, length: u64) {
        if length < self.len_of_tail() {
            self.tail.shorten(length);
        }
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.base {
            Base::None => "none",
            Base::File(_) => "file",
            Base::Memory(_) => "memory",
            Base::Laid(_) => "laid out",
        };
        write!(f, "Weights({kind}, {} bytes, {} added)", self.base_len().unwrap_or(0), self.len_of_tail())
    }
}

impl Bin {
    fn with<T>(&self, offset: u64, length: usize, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let start = offset - offset % PageCache::PAGE;
        let within = (offset - start) as usize;
        if within + length > PageCache::PAGE as usize {
            let mut bytes = vec![0; length];
            read_exact_at(&self.file, &mut bytes, offset).ok()?;
            return Some(look(&bytes));
        }
        let mut window = self.window.lock().ok()?;
        let page = &mut window.pages[(start / PageCache::PAGE) as usize % PageCache::PAGES];
        if page.start != start || page.bytes.is_empty() {
            page.bytes.resize((self.length - start).min(PageCache::PAGE) as usize, 0);
            page.start = start;
            if read_exact_at(&self.file, &mut page.bytes, start).is_err() {
                page.bytes.clear();
                return None;
            }
        }
        page.bytes.get(within..within + length).map(look)
    }
}

/// Passes this number of zeros to `look`, in chunks.
fn zeros(count: u64, look: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    const PIECE: u64 = 1 << 12;
    for start in (0..count).step_by(PIECE as usize) {
        look(&[0; PIECE as usize][..(count - start).min(PIECE) as usize])?;
    }
    Ok(())
}

/// Chunk size in bytes for copying.
const CHUNK: usize = 1 << 20;

/// Copies the first bytes of a file. Its cursor is not moved, because others may use it.
fn copy(from: &File, length: u64, to: &mut File) -> io::Result<()> {
    let stage = Stage::new("write", length);
    let mut done = copy_in_system(from, length, to, &stage);
    let mut buffer = vec![0; if done < length { CHUNK } else { 0 }];
    while done < length {
        let wanted = usize::try_from(length - done).map_or(CHUNK, |left| left.min(CHUNK));
        read_exact_at(from, &mut buffer[..wanted], done)?;
        to.write_all(&buffer[..wanted])?;
        done += wanted as u64;
        stage.at(done);
    }
    Ok(())
}

/// Copies by a system call, which can share blocks. Returns the number of copied bytes.
#[cfg(target_os = "linux")]
fn copy_in_system(from: &File, length: u64, to: &File, stage: &Stage) -> u64 {
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from(length - done).unwrap_or(usize::MAX).min(1 << 28);
        match rustix::fs::copy_file_range(from, Some(&mut done), to, None, wanted) {
            Ok(1..) => stage.at(done),
            // The remaining bytes are copied by reading and writing, which reports any error.
            Ok(0) | Err(_) => break,
        }
    }
    done
}

#[cfg(not(target_os = "linux"))]
fn copy_in_system(_from: &File, _length: u64, _to: &File, _stage: &Stage) -> u64 {
    0
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
        }
    }
    Ok(())
}

#[cfg(not(any(unix, windows)))]
fn write_all_at(_file: &File, _bytes: &[u8], _offset: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn byte_size(element_type: ElementType, count: u64) -> Option<u128> {
    let bits = u128::from(count).checked_mul(element_type.bits().into())?;
    Some(bits.div_ceil(8))
}

/// Returns the number of bytes of `count` values: those of 3 and 6 bits are stored in groups of 3 bytes.
pub fn stored_size(element_type: ElementType, count: u64) -> Option<u128> {
    let size = byte_size(element_type, count)?;
    Some(if [3, 6].contains(&element_type.bits()) { size.next_multiple_of(3) } else { size })
}
