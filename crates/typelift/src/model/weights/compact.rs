//! Search for constants with equal bytes.

use std::hash::Hasher;
use std::io;

use super::Weights;
use crate::base::hash::{HashMap, hasher};

/// A few bytes of each are compared first. Ranges that agree there are hashed completely, and those with equal hashes
/// are compared.
///
/// # Errors
/// Bytes that are missing.
pub(super) fn first_equal(weights: &Weights, ranges: &[(u64, u64)]) -> io::Result<Vec<usize>> {
    let mut by_length: HashMap<u64, Vec<usize>> = HashMap::default();
    for (at, &(_, length)) in ranges.iter().enumerate() {
        by_length.entry(length).or_default().push(at);
    }
    let mut first: Vec<_> = (0..ranges.len()).collect();
    for group in by_length.into_values().filter(|group| group.len() > 1) {
        let mut known = DistinctRanges::default();
        for at in group {
            first[at] = known.find(weights, ranges, at)?.unwrap_or(at);
        }
    }
    Ok(first)
}

/// Distinct byte ranges of one length.
#[derive(Default)]
struct DistinctRanges {
    by_offset: HashMap<u64, usize>,
    by_sample: HashMap<u64, Vec<usize>>,
    hashes: HashMap<usize, u64>,
}

impl DistinctRanges {
    /// If there is none, adds this range.
    fn find(&mut self, weights: &Weights, ranges: &[(u64, u64)], at: usize) -> io::Result<Option<usize>> {
        let (offset, length) = ranges[at];
        if let Some(&known) = self.by_offset.get(&offset) {
            return Ok(Some(known));
        }
        let alike = self.by_sample.entry(sample(weights, offset, length)?).or_default();
        for &other in alike.iter() {
            let mut hash_of = |at: usize| -> io::Result<u64> {
                if let Some(&hash) = self.hashes.get(&at) {
                    return Ok(hash);
                }
                let found = hash(weights, [ranges[at].0], length)?;
                self.hashes.insert(at, found);
                Ok(found)
            };
            if hash_of(other)? == hash_of(at)? && are_equal(weights, [ranges[other].0, offset], length)? {
                self.by_offset.insert(offset, other);
                return Ok(Some(other));
            }
        }
        alike.push(at);
        self.by_offset.insert(offset, at);
        Ok(None)
    }
}

fn sample(weights: &Weights, offset: u64, length: u64) -> io::Result<u64> {
    const PIECE: u64 = 1 << 8;
    const PIECES: u64 = 16;
    if length <= PIECE * PIECES {
        return hash(weights, [offset], length);
    }
    hash(weights, (0..PIECES).map(|piece| offset + (length - PIECE) / (PIECES - 1) * piece), PIECE)
}

fn hash(weights: &Weights, offsets: impl IntoIterator<Item = u64>, length: u64) -> io::Result<u64> {
    let mut hasher = hasher();
    for offset in offsets {
        weights.each_piece(offset, length, &mut |bytes| {
            hasher.write(bytes);
            Ok(())
        })?;
    }
    Ok(hasher.finish())
}

fn are_equal(weights: &Weights, [a, b]: [u64; 2], length: u64) -> io::Result<bool> {
    const PIECE: u64 = 1 << 20;
    for start in (0..length).step_by(PIECE as usize) {
        let count = (length - start).min(PIECE) as usize;
        // The two reads are not nested: the inner one could wait for a lock that the outer one holds.
        let same = weights.read(a + start, count).and_then(|a| weights.with(b + start, count, |b| a == b));
        if !same.ok_or(io::ErrorKind::UnexpectedEof)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use super::*;

    #[test]
    fn equal_bytes_are_there_once_and_each_constant_is_aligned_without_gaps() {
        let mut bytes: Vec<u8> = (0..30_000_u32).flat_map(u32::to_le_bytes).collect();
        // The ranges agree in the sampled bytes and differ elsewhere.
        bytes.copy_within(0..40_000, 40_000);
        bytes[40_000 + 2_600] ^= 1;
        bytes.copy_within(0..40_000, 80_000);
        let weights = Weights::from_bytes(bytes.clone());
        let ranges = [(0, 2), (8, 8), (0, 40_000), (40_000, 40_000), (80_000, 40_000), (8, 8), (2, 3)];
        let (compact, starts) = weights.compacted(&weights.ranges(ranges.to_vec()).unwrap());
        assert_eq!(starts[2], starts[4]);
        assert_ne!(starts[2], starts[3]);
        assert_eq!(starts[1], starts[5]);
        // The first range begins at the same byte as a longer one, and shares its bytes.
        assert_eq!(starts[0], starts[2]);
        assert_eq!(compact.len(), Some(8 + 2 * 40_000 + 3));
        for (&(offset, length), start) in ranges.iter().zip(starts) {
            assert_eq!(compact.read(start, length as usize), weights.read(offset, length as usize));
            assert_eq!(start % (1 << length.trailing_zeros().min(6)), 0);
        }
        assert_eq!(compact.to_bytes().unwrap().len() as u64, compact.len().unwrap());
    }

    #[test]
    fn several_threads_write_the_file_that_one_writes() {
        let mut weights = Weights::from_bytes((0..900_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        let added = weights.add(&[7; 1_500_001]);
        let ranges = [(5, 2_000_001), (0, 4), (added, 1_500_001), (1_000_000, 2_500_000)];
        for weights in [weights.clone().on_one_thread(), weights] {
            let (compact, _) = weights.compacted(&weights.ranges(ranges.to_vec()).unwrap());
            let mut file = tempfile::tempfile().unwrap();
            compact.write_to(&mut file).unwrap();
            file.rewind().unwrap();
            let mut written = Vec::new();
            file.read_to_end(&mut written).unwrap();
            assert!(written == compact.to_bytes().unwrap() && written.len() == 6_000_006);
        }
    }
}
