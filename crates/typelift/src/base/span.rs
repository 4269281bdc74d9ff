//! Positions in the source text: byte ranges, lines and columns.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

/// Range of bytes of the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The position after the last byte.
    pub end: u32,
}

impl Span {
    /// Sources are below 4 GiB, so larger positions saturate.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let [start, end] = [start, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self { start, end }
    }

    pub(crate) fn of(part: &str, source: &str) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(source.as_ptr() as usize);
        Self::new(start, start + part.len())
    }

    /// The given byte range of the span, if the source has `text` there; `None` otherwise, for example if it contains
    /// an escape.
    pub(crate) fn part(self, bytes: Range<usize>, text: &str) -> Option<Self> {
        let start = self.start as usize;
        (self.end as usize - start == text.len()).then(|| Self::new(start + bytes.start, start + bytes.end))
    }

    /// Returns the covered text; empty if `source` is not the text that the span belongs to.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns line and column of its first byte, both from 1; columns count characters. For many spans of one text,
    /// use [`Lines`].
    pub fn line_column(self, source: &str) -> (usize, usize) {
        let before = source.get(..self.start as usize).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// Index of a text's lines, for converting many spans to line and column.
///
/// ```
/// use typelift::findings::{Lines, Span};
/// let lines = Lines::new("<a>\n  <ä/><b/>\n</a>".to_owned().into());
/// let span = Span { start: 11, end: 15 };
/// assert_eq!(span.text(lines.source()), "<b/>");
/// assert_eq!((lines.line_at(span.start), lines.line_column(span.start)), (2, (2, 7)));
/// assert_eq!(lines.line(2).text(lines.source()), "  <ä/><b/>");
/// ```
#[derive(Clone, Debug)]
pub struct Lines {
    source: Arc<String>,
    index: OnceLock<BlockCounts>,
}

/// Counts of line ends and characters before each block of the text. Blocks keep a query fast even if each line is a
/// byte, or one line is the whole text.
#[derive(Clone, Debug)]
struct BlockCounts {
    ends: Vec<usize>,
    all_ends: usize,
    /// Characters before each block; empty if the text is ASCII.
    characters: Vec<usize>,
}

impl Lines {
    const BLOCK: usize = 1024;

    /// Creates the index. The text is read once, on the first query.
    pub fn new(source: Arc<String>) -> Self {
        Self { source, index: OnceLock::new() }
    }

    fn index(&self) -> &BlockCounts {
        self.index.get_or_init(|| {
            let bytes = self.source.as_bytes();
            let before = |bytes: &[u8], count: fn(&[u8]) -> usize| {
                let (mut all, mut sums) = (0, Vec::new());
                for block in bytes.chunks(Self::BLOCK) {
                    sums.push(all);
                    all += count(block);
                }
                (sums, all)
            };
            let (ends, all_ends) = before(bytes, ends);
            let (characters, _) = before(if bytes.is_ascii() { &[] } else { bytes }, characters);
            BlockCounts { ends, all_ends, characters }
        })
    }

    /// Returns the text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns line and column of a byte, both from 1; columns count characters.
    pub fn line_column(&self, at: u32) -> (usize, usize) {
        let line = self.line_at(at);
        let start = self.start(line).unwrap_or_default();
        (line, self.characters_before(at as usize) - self.characters_before(start) + 1)
    }

    /// Returns the line of a byte, from 1, which is faster than with its column.
    pub fn line_at(&self, at: u32) -> usize {
        self.before(at as usize, &self.index().ends, ends) + 1
    }

    /// Returns the bytes of a line without its end; lines count from 1.
    pub fn line(&self, line: usize) -> Span {
        let length = self.source.len();
        let begin = self.start(line).unwrap_or(length);
        let text = self.source.get(begin..self.start(line + 1).unwrap_or(length)).unwrap_or_default();
        Span::new(begin, begin + text.trim_end_matches(['\r', '\n']).len())
    }

    fn start(&self, line: usize) -> Option<usize> {
        let Some(end) = line.checked_sub(2) else { return (line == 1).then_some(0) };
        let BlockCounts { ends: before, all_ends, .. } = self.index();
        // The rest of the text is not searched for a line that it does not have.
        if end >= *all_ends {
            return None;
        }
        let block = before.partition_point(|&ends| ends <= end).checked_sub(1)?;
        let start = block * Self::BLOCK;
        let mut ends = memchr::memchr_iter(b'\n', &self.source.as_bytes()[start..]);
        ends.nth(end - before[block]).map(|at| start + at + 1)
    }

    fn characters_before(&self, at: usize) -> usize {
        match &self.index().characters[..] {
            [] => at.min(self.source.len()),
            before => self.before(at, before, characters),
        }
    }

    fn before(&self, at: usize, before: &[usize], count: fn(&[u8]) -> usize) -> usize {
        let at = at.min(self.source.len());
        // The last block also covers the end of the text.
        let block = (at / Self::BLOCK).min(before.len().saturating_sub(1));
        before.get(block).copied().unwrap_or_default() + count(&self.source.as_bytes()[block * Self::BLOCK..at])
    }
}

/// Counts the line ends among these bytes of a text.
fn ends(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Counts the characters that begin among these bytes of a text.
fn characters(bytes: &[u8]) -> usize {
    // Continuation bytes of a character are 10xxxxxx.
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_as_by_going_through_the_text() {
        let long = format!("{}\n\n{}\r\nx", "é".repeat(3000), "b".repeat(3000));
        for text in [String::new(), "a\n".repeat(2048), "ä".repeat(2048), long] {
            let lines = Lines::new(Arc::new(text.clone()));
            for at in (0..=text.len()).step_by(16).chain([text.len()]) {
                let span = Span::new(at, at);
                let (line, column) = span.line_column(&text);
                assert_eq!((lines.line_at(span.start), lines.line_column(span.start)), (line, (line, column)), "{at}");
                let bytes = lines.line(line);
                let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
                assert_eq!(
                    (bytes.start as usize, bytes.text(&text)),
                    (start, text[start..].lines().next().unwrap_or(""))
                );
            }
            assert_eq!(lines.line(text.lines().count() + 2).text(&text), "");
        }
    }
}
