//! Search for repetitions in a sequence of tokens.

use std::cell::Cell;

use super::membership::LEAST;
use crate::base::hash;

/// Minimum number of layers of a block that occurs only twice.
const LEAST_OF_TWO: usize = 8;

/// Range in which the tokens repeat with a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) period: usize,
}

impl Repeat {
    /// Finds the repetition with the most complete blocks; of equal ones, the one with the smallest period.
    pub(super) fn find(tokens: &[u32]) -> Option<Self> {
        Self::find_in(&Sequence::new(tokens))
    }

    fn find_in(sequence: &Sequence<'_>) -> Option<Self> {
        let tokens = sequence.tokens;
        let mut best: Option<Self> = None;
        for period in LEAST..=tokens.len() / 2 {
            // A sufficiently long range contains a multiple of the period, so only multiples are tried.
            let mut at = 0;
            while at < tokens.len() - period {
                if tokens[at] != tokens[at + period] {
                    at += period;
                    continue;
                }
                let start = at - longest(at, |length| sequence.is_equal(at - length, at + period - length, length));
                at += longest(tokens.len() - period - at, |length| sequence.is_equal(at, at + period, length));
                let found = Self { start, length: at - start + period, period };
                let is_better = best.is_none_or(|best| found.covers() > best.covers());
                if at - start >= period && is_better && found.is_block(sequence) {
                    best = Some(found);
                }
                at = at.next_multiple_of(period);
            }
        }
        best
    }

    fn covers(&self) -> usize {
        self.length / self.period * self.period
    }

    fn is_block(&self, sequence: &Sequence<'_>) -> bool {
        (self.period >= LEAST_OF_TWO || self.length >= 3 * self.period)
            && !(1..LEAST).any(|part| {
                self.period.is_multiple_of(part) && sequence.is_equal(self.start, self.start + part, self.period - part)
            })
    }
}

/// Tokens with a hash of each prefix, so that ranges of any length are compared in one step.
struct Sequence<'t> {
    tokens: &'t [u32],
    /// Hash of each prefix, as a polynomial over the tokens.
    hashes: Vec<u64>,
    /// Powers of the polynomial's variable.
    powers: Vec<u64>,
    /// Number of comparisons so far.
    compared: Cell<usize>,
}

/// Prime modulus of the hashes, 2^61 - 1.
const MODULUS: u64 = (1 << 61) - 1;
/// Number of tokens that are compared one by one before hashes are used.
const ONE_BY_ONE: usize = 4;

impl<'t> Sequence<'t> {
    fn new(tokens: &'t [u32]) -> Self {
        // The variable differs from run to run, so that no file can contain ranges with equal hashes.
        let variable = hash::of("token") % MODULUS;
        let (mut hashes, mut powers) = (vec![0], vec![1]);
        let (mut hash, mut power) = (0, 1);
        for &token in tokens {
            hash = (product(hash, variable) + u64::from(token) + 1) % MODULUS;
            power = product(power, variable);
            hashes.push(hash);
            powers.push(power);
        }
        Self { tokens, hashes, powers, compared: Cell::new(0) }
    }

    fn hash(&self, start: usize, length: usize) -> u64 {
        let before = product(self.hashes[start], self.powers[length]);
        (self.hashes[start + length] + MODULUS - before) % MODULUS
    }

    fn is_equal(&self, one: usize, two: usize, length: usize) -> bool {
        self.compared.set(self.compared.get() + 1);
        if length <= ONE_BY_ONE {
            return self.tokens[one..one + length] == self.tokens[two..two + length];
        }
        self.hash(one, length) == self.hash(two, length)
    }
}

fn product(one: u64, two: u64) -> u64 {
    let wide = u128::from(one) * u128::from(two);
    let sum = (wide as u64 & MODULUS) + (wide >> 61) as u64;
    if sum < MODULUS { sum } else { sum - MODULUS }
}

/// The greatest length up to `most` for which a condition holds that holds for all shorter lengths too. The number of
/// steps grows with the logarithm of the result.
fn longest(most: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut good, mut step) = (0, 1);
    while good < most && holds(most.min(good + step)) {
        good = most.min(good + step);
        step *= 2;
    }
    let mut bad = most.min(good + step);
    while good + 1 < bad {
        let middle = good.midpoint(bad);
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_found_with_its_period() {
        // The tokens are two items, three blocks of five, and the first two items of a fourth block.
        let tokens = [9, 8, 0, 1, 2, 3, 1, 0, 1, 2, 3, 1, 0, 1, 2, 3, 1, 0, 1, 7];
        assert_eq!(Repeat::find(&tokens), Some(Repeat { start: 2, length: 17, period: 5 }));
        // A repetition of pairs is not a block.
        assert_eq!(Repeat::find(&[0, 1].repeat(20)), None);
        assert_eq!(Repeat::find(&[0, 1, 2, 3, 0, 1, 2, 3]), None);
        assert_eq!(Repeat::find(&[]), None);
        // The blocks begin and end with runs of the same token, and the sequence begins with more of it.
        let block = [0, 0, 0, 0, 0, 0, 1, 2, 0, 0];
        let tokens = [&[0; 9][..], &block.repeat(3)].concat();
        assert_eq!(Repeat::find(&tokens), Some(Repeat { start: 7, length: 32, period: 10 }));
        assert_eq!(Repeat::find(&[0; 200_000]), None);
    }

    #[test]
    fn the_longest_length_is_found() {
        for most in 0..40 {
            for length in 0..=most {
                assert_eq!(longest(most, |tried| tried <= length), length, "of {most}");
            }
        }
    }

    /// Pairs of layers on one tensor repeat with each even period, which took quadratic time.
    #[test]
    fn comparisons_grow_no_faster_than_tokens() {
        let compared = |tokens: &[u32]| {
            let sequence = Sequence::new(tokens);
            Repeat::find_in(&sequence);
            sequence.compared.get()
        };
        for part in [&[0, 1][..], &[0, 0, 1], &[0, 1, 2, 3, 4]] {
            let (small, large) = (compared(&part.repeat(1000)), compared(&part.repeat(8000)));
            assert!(large < 16 * small, "{small} and {large} comparisons for {part:?}");
        }
    }
}
