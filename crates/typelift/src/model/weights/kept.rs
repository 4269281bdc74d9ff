//! Layout of a `.bin` in which existing constants keep their offsets, and new ones fill unused bytes.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::{ALIGNMENT, ByteRange, Ranges};

/// Number of free ranges that are tried for one new constant.
const TRIES: usize = 8;
/// Alignment of a new constant that fills unused bytes: enough for every element type.
const BETWEEN: u64 = 8;

/// Lays out the bytes of `ranges` in a new file. Ranges within the first `base` bytes keep their offsets. The others
/// fill bytes of `lost` that no range uses, or are appended. Unused bytes become zero. Returns the sections of the
/// file, and the new offset of each range.
pub(super) fn parts(base: u64, ranges: &Ranges, lost: &[(u64, u64)]) -> (Vec<ByteRange>, Vec<u64>) {
    let Ranges { all, same } = ranges;
    let is_kept = |at: usize| all[at].0 + all[at].1 <= base;
    let used = all.iter().map(|&range| span(range)).filter(|range| range.end <= base).collect();
    let mut space = Space::new(base, used, lost);
    // Equal ranges share one copy: that within the base if there is one, otherwise the first.
    let mut stands_for_all: Vec<_> = (0..all.len()).collect();
    (0..all.len()).rev().filter(|&at| is_kept(at)).for_each(|at| stands_for_all[same[at]] = at);
    let mut starts: Vec<_> = all.iter().map(|range| range.0).collect();
    let mut placed: Vec<_> = (0..all.len()).filter(|&at| same[at] == at && !is_kept(stands_for_all[at])).collect();
    placed.sort_by_key(|&at| Reverse(alignment(all[at].1)));
    placed.into_iter().for_each(|at| starts[at] = space.place(all[at]));
    for at in (0..all.len()).filter(|&at| !is_kept(at)) {
        starts[at] = starts[stands_for_all[same[at]]];
    }
    (space.parts(), starts)
}

fn span((offset, length): (u64, u64)) -> Range<u64> {
    offset..offset + length
}

pub(super) fn alignment(length: u64) -> u64 {
    1 << length.trailing_zeros().min(ALIGNMENT.trailing_zeros())
}

/// Allocation of the bytes of a new file.
struct Space {
    /// Bytes of the base that keep their offsets, in order.
    kept: Vec<Range<u64>>,
    /// Unused ranges, as length and start, so that the smallest sufficient one is found first.
    free: BTreeSet<(u64, u64)>,
    placed: Vec<ByteRange>,
    end: u64,
}

impl Space {
    fn new(base: u64, used: Vec<Range<u64>>, lost: &[(u64, u64)]) -> Self {
        let lost = merged(lost.iter().map(|&it| span(it)).filter(|range| range.end <= base).collect());
        let mut free = without(lost, &merged(used));
        let end = match free.last() {
            Some(last) if last.end == base => last.start,
            _ => base,
        };
        free.retain(|range| range.start < end);
        let kept = without((end > 0).then_some(0..end).into_iter().collect(), &free);
        let free = free.into_iter().map(|range| (range.end - range.start, range.start)).collect();
        Self { kept, free, placed: Vec::new(), end }
    }

    /// Allocates space for a new constant and returns its offset.
    fn place(&mut self, (offset, length): (u64, u64)) -> u64 {
        let align = alignment(length).min(BETWEEN);
        let mut free = self.free.range((length, 0)..).take(TRIES).copied();
        let start = match free.find(|&(room, start)| start.next_multiple_of(align) + length <= start + room) {
            Some((room, start)) => {
                let at = start.next_multiple_of(align);
                self.free.remove(&(room, start));
                for rest in [start..at, at + length..start + room] {
                    if !rest.is_empty() {
                        self.free.insert((rest.end - rest.start, rest.start));
                    }
                }
                at
            }
            None => {
                let at = self.end.next_multiple_of(alignment(length));
                self.end = at + length;
                at
            }
        };
        self.placed.push(ByteRange { start, offset: Some(offset), length });
        start
    }

    fn parts(self) -> Vec<ByteRange> {
        let kept = self.kept.into_iter();
        let kept = kept.map(|range| ByteRange {
            start: range.start,
            offset: Some(range.start),
            length: range.end - range.start,
        });
        let mut known: Vec<_> = kept.chain(self.placed).collect();
        known.sort_by_key(|part| part.start);
        let (mut parts, mut end) = (Vec::with_capacity(known.len()), 0);
        for part in known {
            if part.start > end {
                parts.push(ByteRange { start: end, offset: None, length: part.start - end });
            }
            end = part.start + part.length;
            parts.push(part);
        }
        parts
    }
}

/// Joins ranges that overlap or touch, and sorts them.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// `ranges` minus `others`. Both are sorted, without overlaps.
fn without(ranges: Vec<Range<u64>>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut next = 0;
    for range in ranges {
        let mut start = range.start;
        while let Some(other) = others.get(next).filter(|other| other.start < range.end) {
            if start < other.start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
            if other.end > range.end {
                break;
            }
            next += 1;
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::weights::Weights;

    #[test]
    fn ranges_without_others_are_what_no_other_covers() {
        let cut = |ranges: &[Range<u64>], others: &[Range<u64>]| without(ranges.to_vec(), others);
        let one = |range: Range<u64>| std::iter::once(range).collect::<Vec<_>>();
        assert_eq!(cut(&one(0..10), &[2..3, 5..6]), [0..2, 3..5, 6..10]);
        assert_eq!(cut(&[0..4, 6..10], &one(2..8)), [0..2, 8..10]);
        assert_eq!(cut(&[0..4, 6..10], &[0..1, 3..4, 9..20]), [1..3, 6..9]);
        assert_eq!(cut(&one(5..6), &[0..2, 4..8]), []);
        assert_eq!(merged(vec![4..6, 0..2, 2..3, 5..9, 7..7]), [0..3, 4..9]);
    }

    /// A new constant fills freed bytes, one that does not fit is appended, and the others keep their offsets.
    #[test]
    fn constants_of_the_base_stay_and_free_bytes_are_filled_or_zero() {
        let bytes: Vec<u8> = (1..=96).collect();
        let mut weights = Weights::from_bytes(bytes.clone());
        let (small, long, equal) = (weights.add(&[200; 4]), weights.add(&[201; 64]), weights.add(&bytes[80..84]));
        let ranges = [(0, 8), (long, 64), (24, 72), (small, 4), (equal, 4), (80, 4)].to_vec();
        let (kept, starts) = weights.kept(&weights.ranges(ranges).unwrap(), &[(8, 16), (20, 8), (0, 4)]);
        assert_eq!(starts, [0, 128, 24, 8, 80, 80]);
        let mut expected = bytes;
        expected[8..24].fill(0);
        expected[8..12].fill(200);
        expected.resize(128, 0);
        expected.extend([201; 64]);
        assert_eq!(kept.to_bytes().unwrap(), expected);
        let (short, _) = weights.kept(&weights.ranges(vec![(0, 8)]).unwrap(), &[(8, 88)]);
        assert_eq!(short.to_bytes().unwrap(), expected[..8]);
    }
}
