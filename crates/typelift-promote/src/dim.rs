//! Dimensions of tensors as intervals.

use core::fmt;
use core::ops::{Add, BitAnd, Mul, Sub};

/// The upper end of an interval without one. OpenVINO uses the same value, so a length of `i64::MAX` means "no upper
/// end".
const INFINITE: i64 = i64::MAX;

/// The interval of lengths that one dimension may have.
///
/// The arithmetic is that of OpenVINO's `Dimension`. Lengths are never negative, and results saturate at 0 and at "no
/// upper end". An interval without any length is a value as well: a file may contain `5..2`, and a division may leave a
/// remainder. Such an [empty](Dim::is_empty) interval prints as `?`, but is compatible with nothing.
///
/// ```
/// use typelift_promote::Dim;
/// let rows = Dim::between(1, 5) + Dim::fixed(3);
/// assert_eq!(rows.to_string(), "4..8");
/// assert_eq!((rows & Dim::at_least(8)).unwrap().value(), Some(8));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim {
    lower: i64,
    upper: i64,
}

impl Dim {
    /// Any length: `?`.
    pub const ANY: Self = Self { lower: 0, upper: INFINITE };
    /// The length 1, which broadcasts.
    pub const ONE: Self = Self::fixed(1);

    const EMPTY: Self = Self { lower: INFINITE, upper: INFINITE };

    /// Returns exactly `length`; a negative length counts as 0. The [`From<i64>`] conversion reads `-1` as any length.
    pub const fn fixed(length: i64) -> Self {
        Self::between(length, length)
    }

    /// Returns the interval from `lower` to `upper`, both included. The interval is [empty](Dim::is_empty) if `upper`
    /// is smaller. Negative ends count as 0, and `i64::MAX` means no upper end.
    pub const fn between(lower: i64, upper: i64) -> Self {
        if upper < lower {
            return Self::EMPTY;
        }
        Self { lower: if lower < 0 { 0 } else { lower }, upper: if upper < 0 { 0 } else { upper } }
    }

    /// Returns the interval of `lower` or more.
    pub const fn at_least(lower: i64) -> Self {
        Self::between(lower, INFINITE)
    }

    /// Returns the length if only one is possible.
    #[must_use]
    pub const fn value(self) -> Option<i64> {
        if self.is_fixed() { Some(self.lower) } else { None }
    }

    /// Returns the smallest possible length.
    #[must_use]
    pub const fn lower(self) -> i64 {
        self.lower
    }

    /// Returns the greatest possible length; `None` without an upper end.
    #[must_use]
    pub const fn upper(self) -> Option<i64> {
        if self.upper == INFINITE { None } else { Some(self.upper) }
    }

    /// True if only one length is possible.
    #[must_use]
    pub const fn is_fixed(self) -> bool {
        self.lower == self.upper && !self.is_empty()
    }

    /// True if no length is possible at all.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.lower == INFINITE
    }

    /// True if `length` is possible.
    #[must_use]
    pub const fn contains(self, length: i64) -> bool {
        self.lower <= length && length <= self.upper
    }

    /// True if some length is possible for both.
    #[must_use]
    pub fn is_compatible(self, other: Self) -> bool {
        (self & other).is_some()
    }

    /// True if every length of `other` is possible here.
    #[must_use]
    pub const fn relaxes(self, other: Self) -> bool {
        self.contains(other.lower) && self.contains(other.upper)
    }

    /// Returns the smallest interval that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) },
        }
    }

    /// Returns the length that two dimensions broadcast to, or `None` if they do not broadcast. A length of 1 takes the
    /// length of the other side.
    ///
    /// If only one side may be 1, the result is the other side unchanged. If both may be 1, it is their
    /// [hull](Dim::hull). Both rules are OpenVINO's.
    #[must_use]
    pub fn broadcast(self, other: Self) -> Option<Self> {
        match (self.contains(1), other.contains(1)) {
            (true, true) => Some(self.hull(other)),
            (true, false) => Some(other),
            (false, true) => Some(self),
            (false, false) => self & other,
        }
    }

    /// Returns the lengths that give a length of this interval when multiplied by `divisor`. The result is
    /// [empty](Dim::is_empty) if there are none, and `None` if the divisor is not positive.
    ///
    /// OpenVINO divides in floating point and treats "no upper end" as a number, unless the dimension is `?` or the
    /// divisor is 1. This function does the same: `1..` divided by 2 is `1..4611686018427387904`.
    ///
    /// ```
    /// use typelift_promote::Dim;
    /// assert_eq!(Dim::between(12, 16).checked_div(6), Some(Dim::fixed(2)));
    /// assert!(Dim::fixed(7).checked_div(2).unwrap().is_empty());
    /// ```
    #[must_use]
    pub fn checked_div(self, divisor: i64) -> Option<Self> {
        if divisor < 1 {
            return None;
        }
        if divisor == 1 || self == Self::ANY {
            return Some(self);
        }
        let by = divisor as f64;
        let (lower, upper) = (self.lower as f64 / by, self.upper as f64 / by);
        // Truncation equals the floor, because the value is never negative.
        let ceiling = lower as i64 + i64::from((lower as i64 as f64) < lower);
        Some(Self::between(ceiling, upper as i64))
    }

    /// Combines both ends, unless one of the intervals is empty: then the result is empty as well.
    fn combine(self, other: Self, ends: impl FnOnce() -> (i64, i64)) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::EMPTY;
        }
        let (lower, upper) = ends();
        Self::between(lower, upper)
    }
}

/// Reads one number as OpenVINO does: `-1` is any length, any other number is that length.
impl From<i64> for Dim {
    fn from(length: i64) -> Self {
        if length == -1 { Self::ANY } else { Self::fixed(length) }
    }
}

/// Adds lengths, as concatenation does.
impl Add for Dim {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, || (self.lower.saturating_add(other.lower), self.upper.saturating_add(other.upper)))
    }
}

/// Subtracts lengths, as cropping does; the result is never less than 0.
impl Sub for Dim {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let minus = |a: i64, b: i64| match a {
            _ if a <= b => 0,
            INFINITE => INFINITE,
            _ => a - b,
        };
        self.combine(other, || (minus(self.lower, other.upper), minus(self.upper, other.lower)))
    }
}

/// Multiplies lengths, as flattening two dimensions does.
impl Mul for Dim {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.combine(other, || (self.lower.saturating_mul(other.lower), self.upper.saturating_mul(other.upper)))
    }
}

/// Returns the intersection: the lengths possible for both, or `None` if there is none.
impl BitAnd for Dim {
    type Output = Option<Self>;

    fn bitand(self, other: Self) -> Option<Self> {
        let both = Self::between(self.lower.max(other.lower), self.upper.min(other.upper));
        (!both.is_empty()).then_some(both)
    }
}

/// Formats a dimension as OpenVINO prints it: `3`, `?`, `2..5`, `2..`, `..5`.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.lower, self.upper()) {
            (INFINITE, _) | (0, None) => f.write_str("?"),
            (lower, Some(upper)) if lower == upper => write!(f, "{lower}"),
            (0, Some(upper)) => write!(f, "..{upper}"),
            (lower, None) => write!(f, "{lower}.."),
            (lower, Some(upper)) => write!(f, "{lower}..{upper}"),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { f.write_str("empty") } else { fmt::Display::fmt(self, f) }
    }
}
