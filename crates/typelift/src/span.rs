//! Places in the source text: byte ranges, lines and columns.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

/// A range of bytes of the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from byte `start` up to, not including, byte `end`. Sources are below 4 GiB, so larger positions saturate.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end) }
    }

    /// Where `part`, a slice of `source`, is in it.
    pub(crate) fn of(part: &str, source: &str) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(source.as_ptr() as usize);
        Self::new(start, start + part.len())
    }

    /// These bytes of the text it covers, which says `text`; `None` where it says something else, such as an escape.
    pub(crate) fn part(self, bytes: Range<usize>, text: &str) -> Option<Self> {
        let start = self.start as usize;
        (self.end as usize - start == text.len()).then(|| Self::new(start + bytes.start, start + bytes.end))
    }

    /// The text it covers; empty where `source` is another text than the one it was made from.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Line and column of its first byte, both from 1; columns count characters. For many spans of one text, ask
    /// [`Lines`].
    pub fn line_column(self, source: &str) -> (usize, usize) {
        let before = source.get(..self.start as usize).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// Where the lines of a text are, so that many spans find line and column without going through the text each time.
///
/// ```
/// use typelift::span::{Lines, Span};
/// let lines = Lines::new("<a>\n  <ä/><b/>\n</a>".to_owned().into());
/// let span = Span { start: 11, end: 15 };
/// assert_eq!(span.text(lines.source()), "<b/>");
/// assert_eq!(lines.line_column(span.start), (2, 7));
/// assert_eq!(lines.line(2).text(lines.source()), "  <ä/><b/>");
/// ```
#[derive(Clone, Debug)]
pub struct Lines {
    source: Arc<String>,
    index: OnceLock<Index>,
}

#[derive(Clone, Debug)]
struct Index {
    /// The first byte of each line.
    starts: Vec<u32>,
    /// The number of characters before each block of bytes: a line can be as long as the text. Empty where each byte is one.
    characters: Vec<u32>,
}

impl Lines {
    const BLOCK: usize = 4096;

    /// Goes through the text once, when a line is asked for.
    pub fn new(source: Arc<String>) -> Self {
        Self { source, index: OnceLock::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let bytes = self.source.as_bytes();
            let ends = memchr::memchr_iter(b'\n', bytes).map(|at| Span::new(at + 1, at + 1).start);
            let starts = std::iter::once(0).chain(ends).collect();
            let blocks = if bytes.is_ascii() { &[] } else { bytes }.chunks(Self::BLOCK);
            let characters = blocks.scan(0, |count, block| Some(std::mem::replace(count, *count + characters(block))));
            Index { starts, characters: characters.collect() }
        })
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Line and column of a byte, both from 1; columns count characters.
    pub fn line_column(&self, at: u32) -> (usize, usize) {
        let starts = &self.index().starts;
        let line = starts.partition_point(|&start| start <= at);
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        (line, (self.before(at) - self.before(start)) as usize + 1)
    }

    /// The bytes of a line, its end left out; lines count from 1.
    pub fn line(&self, line: usize) -> Span {
        let length = Span::new(self.source.len(), self.source.len()).start;
        let start = |line: usize| self.index().starts.get(line).copied();
        let begin = line.checked_sub(1).and_then(start).unwrap_or(length);
        let text = Span { start: begin, end: start(line).unwrap_or(length) }.text(&self.source);
        Span { start: begin, end: begin + text.trim_end_matches(['\r', '\n']).len() as u32 }
    }

    /// The number of characters before a byte.
    fn before(&self, at: u32) -> u32 {
        let at = (at as usize).min(self.source.len());
        let block = at / Self::BLOCK;
        let characters_before = &self.index().characters;
        if characters_before.is_empty() {
            return at as u32;
        }
        let counted = characters_before.get(block).copied();
        let rest = self.source.as_bytes().get(block * Self::BLOCK..at).unwrap_or_default();
        counted.or(characters_before.last().copied()).unwrap_or_default() + characters(rest)
    }
}

/// The number of characters that begin among these bytes of a text.
fn characters(bytes: &[u8]) -> u32 {
    // Bytes that go on with a character are 10xxxxxx.
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32
}
