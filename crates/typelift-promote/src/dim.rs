//! Dimensions of tensors as intervals.

use core::fmt;
use core::ops::{Add, BitAnd, Mul, Sub};

/// The upper end of an interval without one. OpenVINO uses the same value, so a length of `i64::MAX` is taken for it.
const INFINITE: i64 = i64::MAX;

/// What is known of one dimension: the interval of the lengths it may have.
///
/// The arithmetic is that of OpenVINO's `Dimension`: lengths are never negative, results saturate at 0 and at "no upper
/// end", and an interval without any length (`5..2` in a file, or a division that leaves a remainder) is a value as
/// well. That [empty](Dim::is_empty) interval prints as `?`, yet is compatible with nothing.
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

    /// Exactly `length`; a negative length counts as 0. (`-1` for "any" is the [`From<i64>`] conversion.)
    #[must_use]
    pub const fn fixed(length: i64) -> Self {
        Self::between(length, length)
    }

    /// From `lower` to `upper`, both included; [empty](Dim::is_empty) if `upper` is the smaller one. Negative ends count
    /// as 0, and `i64::MAX` as no upper end.
    #[must_use]
    pub const fn between(lower: i64, upper: i64) -> Self {
        if upper < lower {
            return Self::EMPTY;
        }
        Self { lower: if lower < 0 { 0 } else { lower }, upper: if upper < 0 { 0 } else { upper } }
    }

    /// `lower` or more.
    #[must_use]
    pub const fn at_least(lower: i64) -> Self {
        Self::between(lower, INFINITE)
    }

    /// The length, if it is the only one possible.
    #[must_use]
    pub const fn value(self) -> Option<i64> {
        if self.is_fixed() { Some(self.lower) } else { None }
    }

    /// The smallest length possible.
    #[must_use]
    pub const fn lower(self) -> i64 {
        self.lower
    }

    /// The greatest length possible; `None` without upper end.
    #[must_use]
    pub const fn upper(self) -> Option<i64> {
        if self.upper == INFINITE { None } else { Some(self.upper) }
    }

    /// Whether only one length is possible.
    #[must_use]
    pub const fn is_fixed(self) -> bool {
        self.lower == self.upper && !self.is_empty()
    }

    /// Whether no length is possible at all.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.lower == INFINITE
    }

    /// Whether `length` is possible.
    #[must_use]
    pub const fn contains(self, length: i64) -> bool {
        self.lower <= length && length <= self.upper
    }

    /// Whether some length is possible for both.
    #[must_use]
    pub fn is_compatible(self, other: Self) -> bool {
        (self & other).is_some()
    }

    /// Whether every length of `other` is possible here.
    #[must_use]
    pub const fn relaxes(self, other: Self) -> bool {
        self.contains(other.lower) && self.contains(other.upper)
    }

    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) },
        }
    }

    /// The lengths of two dimensions that broadcast to each other: a length of 1 takes that of the other side. `None` if
    /// they cannot.
    ///
    /// Where only one side may be 1, OpenVINO takes the other side as it is; where both may be, their
    /// [hull](Dim::hull).
    #[must_use]
    pub fn broadcast(self, other: Self) -> Option<Self> {
        match (self.contains(1), other.contains(1)) {
            (true, true) => Some(self.hull(other)),
            (true, false) => Some(other),
            (false, true) => Some(self),
            (false, false) => self & other,
        }
    }

    /// The lengths that, times `divisor`, give a length of this interval; [empty](Dim::is_empty) if there is none, and
    /// `None` if the divisor is not positive.
    ///
    /// OpenVINO divides in floating point and takes "no upper end" for a number, unless the dimension is `?` or the
    /// divisor 1. Both are kept: `1..` divided by 2 is `1..4611686018427387904`.
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
        // Truncation is the floor of what is never negative.
        let ceiling = lower as i64 + i64::from((lower as i64 as f64) < lower);
        Some(Self::between(ceiling, upper as i64))
    }

    /// Both ends combined, unless one of the intervals is empty: then so is the result.
    fn combine(self, other: Self, ends: impl FnOnce() -> (i64, i64)) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::EMPTY;
        }
        let (lower, upper) = ends();
        Self::between(lower, upper)
    }
}

/// OpenVINO's reading of one number: `-1` is any length, anything else that very length.
impl From<i64> for Dim {
    fn from(length: i64) -> Self {
        if length == -1 { Self::ANY } else { Self::fixed(length) }
    }
}

/// The lengths of two pieces laid end to end.
impl Add for Dim {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, || (self.lower.saturating_add(other.lower), self.upper.saturating_add(other.upper)))
    }
}

/// What is left after a piece is cut off; never less than 0.
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

/// The lengths of two dimensions laid out as one.
impl Mul for Dim {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.combine(other, || (self.lower.saturating_mul(other.lower), self.upper.saturating_mul(other.upper)))
    }
}

/// The intersection: the lengths possible for both, `None` if there is none.
impl BitAnd for Dim {
    type Output = Option<Self>;

    fn bitand(self, other: Self) -> Option<Self> {
        let both = Self::between(self.lower.max(other.lower), self.upper.min(other.upper));
        (!both.is_empty()).then_some(both)
    }
}

/// As OpenVINO prints a dimension: `3`, `?`, `2..5`, `2..`, `..5`.
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
