//! Limit on memory and work for computing the values of constants.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of one element of a tensor whose values are computed.
const ELEMENT: u64 = 8;
/// Memory for values, in bytes, that every model may use regardless of its size.
const ALWAYS: u64 = 64 << 20;
/// Default memory for values, in bytes for each byte of the weights: enough to compute every int8 constant.
const FOR_EACH_BYTE: u64 = 8;
/// Limit on all computed values together, as a multiple of the memory limit.
const ROUNDS: u64 = 16;

/// Limit on the memory for values of a model, shared by its copies. Sizes are checked before memory is allocated.
#[derive(Clone, Default)]
pub(super) struct Budget {
    /// Bytes that values may take at one time; the default follows the size of the weights.
    limit: Option<u64>,
    /// Bytes of all values that were computed so far.
    computed: Arc<AtomicU64>,
}

/// Error of values that need more memory than permitted. `Display` writes a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    needed: u64,
    limit: u64,
}

impl Budget {
    pub(super) fn of(limit: u64) -> Self {
        Self { limit: Some(limit), computed: Arc::default() }
    }

    pub(super) fn limit(&self, stored: u64) -> u64 {
        self.limit.unwrap_or_else(|| ALWAYS.saturating_add(stored.saturating_mul(FOR_EACH_BYTE)))
    }

    /// Fails if `elements` values need too much memory in addition to `kept` bytes that are in use. `stored` is the
    /// size of the weights.
    pub(super) fn hold(&self, elements: u64, kept: u64, stored: u64) -> Result<(), TooLarge> {
        self.reserve(elements.saturating_mul(ELEMENT), kept, stored)
    }

    /// Fails if that many bytes do not fit into memory, next to values of `kept` bytes. The weights have `stored` bytes.
    pub(super) fn reserve(&self, needed: u64, kept: u64, stored: u64) -> Result<(), TooLarge> {
        let limit = self.limit(stored);
        if needed.saturating_add(kept) > limit { Err(TooLarge { needed, limit }) } else { Ok(()) }
    }

    /// Fails like [`hold`](Self::hold), and if the values computed so far exceed the limit on all values.
    pub(super) fn compute(&self, elements: u64, kept: u64, stored: u64) -> Result<(), TooLarge> {
        self.hold(elements, kept, stored)?;
        let needed = elements.saturating_mul(ELEMENT);
        let all = self.limit(stored).saturating_mul(ROUNDS);
        let computed =
            self.computed.fetch_update(Relaxed, Relaxed, |so_far| so_far.checked_add(needed).filter(|&it| it <= all));
        computed.map(drop).map_err(|_| TooLarge { needed, limit: 0 })
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, limit } = self;
        match limit {
            0 => write!(f, "it needs {}, and the limit on all computed values is reached", Size(*needed)),
            _ => write!(f, "it needs {}, and the memory limit for values is {}", Size(*needed), Size(*limit)),
        }
    }
}

/// A number of bytes, in the largest unit that has at least one digit before the point.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.into_iter().find(|(bits, _)| self.0 >> bits > 0) {
            Some((bits, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1_u64 << bits) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_a_limit_that_follows_the_weights_and_all_together_too() {
        let budget = Budget::default();
        assert_eq!(budget.hold(8 << 20, 0, 0), Ok(()));
        let refused = budget.hold(4_000_000_000, 0, 1 << 20).unwrap_err().to_string();
        assert_eq!(refused, "it needs 29.8 GiB, and the memory limit for values is 72.0 MiB");
        assert!(budget.hold(8 << 20, 1, 0).is_err() && budget.hold(u64::MAX, 0, u64::MAX).is_ok());
        let small = Budget::of(80);
        assert_eq!((0..).take_while(|_| small.clone().compute(10, 0, 0).is_ok()).count() as u64, ROUNDS);
        assert_eq!(small.hold(10, 0, 0), Ok(()));
    }
}
