//! What conversions really do to the values of constants.

use std::fmt;

use serde::Serialize;
use smallvec::smallvec;
use typelift_promote::{ElementType, Kind, fidelity};

use crate::array::{self, Array, Data};
use crate::graph::Layer;
use crate::weights::{Weights, byte_size, stored_size};

/// The number of values read from the weights at a time: a multiple of what any type packs into whole bytes.
pub(crate) const CHUNK: u64 = 1 << 16;

/// Whether every value of a constant is the same number in another type.
pub(crate) fn survives(constant: &Layer, weights: &Weights, to: ElementType) -> bool {
    let from = constant.attribute("element_type").and_then(ElementType::from_name);
    let is_exact = from.and_then(|from| fidelity(from, to)).is_some_and(|fidelity| fidelity.is_exact());
    is_exact || Audit::of(constant, weights, to).is_some_and(|audit| audit.changed() == 0)
}

/// What a conversion does to the values of a constant, counted.
///
/// A value that changes is counted once, by the first of these that applies: it overflows, wraps, collapses, loses its
/// fraction, vanishes, is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Audit {
    /// How many values there are.
    pub values: u64,
    /// How many become the nearest number of the type.
    pub rounded: u64,
    /// How many lie beyond the largest number of a float type, and become infinite, NaN, or that number.
    pub overflowed: u64,
    /// How many lie beyond an integer type, and keep their low bits or become anything.
    pub wrapped: u64,
    /// How many lose the digits after the point.
    pub truncated: u64,
    /// How many become true, and are not 1.
    pub collapsed: u64,
    /// How many are so small that they become zero.
    pub vanished: u64,
    /// The largest difference between a value and what becomes of it, those apart that become infinite or NaN.
    pub worst_absolute_error: f64,
    /// The largest such difference in relation to the value, which is not zero.
    pub worst_relative_error: f64,
    /// Whether they are integers, of which one that is rounded is another one.
    #[serde(skip)]
    are_integers: bool,
}

impl Audit {
    /// How many values come out changed.
    #[must_use]
    pub fn changed(&self) -> u64 {
        self.rounded + self.overflowed + self.wrapped + self.truncated + self.collapsed + self.vanished
    }

    /// How many values are lost: those that change by more than the precision of the type, and every integer that changes.
    #[must_use]
    pub fn lost(&self) -> u64 {
        if self.are_integers { self.changed() } else { self.changed() - self.rounded }
    }

    /// How many values become something quite different: they overflow or wrap.
    #[must_use]
    pub fn destroyed(&self) -> u64 {
        self.overflowed + self.wrapped
    }

    /// Counts the values of a constant that a conversion to `to` changes; `None` where they cannot be read, or the
    /// conversion keeps every value there is.
    pub(crate) fn of(constant: &Layer, weights: &Weights, to: ElementType) -> Option<Self> {
        let from = ElementType::from_name(constant.attribute("element_type")?)?;
        if fidelity(from, to)?.is_exact() {
            return None;
        }
        let count = constant.outputs.first()?.shape.element_count()?;
        let offset: u64 = constant.attribute("offset")?.trim().parse().ok()?;
        let mut audit = Self { values: count, are_integers: !from.is_float(), ..Self::default() };
        for start in (0..count).step_by(CHUNK as usize) {
            let length = CHUNK.min(count - start);
            let at = offset.checked_add(u64::try_from(byte_size(from, start)?).ok()?)?;
            let bytes = weights.read(at, usize::try_from(stored_size(from, length)?).ok()?)?;
            match Array::decode(from, smallvec![usize::try_from(length).ok()?], &bytes)?.data {
                Data::Ints(values) => values.iter().for_each(|value| audit.count_integer(value, to)),
                Data::Floats(values) => values.into_iter().for_each(|value| audit.count_float(value, to)),
            }
        }
        Some(audit)
    }

    fn count_integer(&mut self, value: i128, to: ElementType) {
        let number = value as f64;
        match to.kind() {
            Kind::Boolean if ![0, 1].contains(&value) => self.count(|audit| &mut audit.collapsed, number, 1.0),
            Kind::Signed | Kind::Unsigned => {
                let wrapped = array::wrap(to, value);
                if wrapped != value {
                    self.count(|audit| &mut audit.wrapped, number, wrapped as f64);
                }
            }
            Kind::Float => {
                let nearest = array::round(to, number);
                if !nearest.is_finite() {
                    self.count(|audit| &mut audit.overflowed, number, nearest);
                } else if nearest != number || number as i128 != value {
                    let error = (nearest as i128).abs_diff(value) as f64;
                    self.count(|audit| &mut audit.rounded, number, number + error);
                }
            }
            _ => {}
        }
    }

    fn count_float(&mut self, value: f64, to: ElementType) {
        match to.kind() {
            Kind::Boolean if value != 0.0 && value != 1.0 => self.count(|audit| &mut audit.collapsed, value, 1.0),
            Kind::Signed | Kind::Unsigned => {
                let whole = array::truncate(to, value) as f64;
                if !value.is_finite() || whole != value.trunc() {
                    self.count(|audit| &mut audit.wrapped, value, whole);
                } else if whole != value {
                    self.count(|audit| &mut audit.truncated, value, whole);
                }
            }
            Kind::Float => {
                let nearest = array::round(to, value);
                if nearest.is_nan() != value.is_nan() || nearest.is_infinite() != value.is_infinite() {
                    self.count(|audit| &mut audit.overflowed, value, nearest);
                } else if nearest == 0.0 && value != 0.0 {
                    self.count(|audit| &mut audit.vanished, value, nearest);
                } else if nearest != value && !value.is_nan() {
                    self.count(|audit| &mut audit.rounded, value, nearest);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, what: fn(&mut Self) -> &mut u64, value: f64, becomes: f64) {
        *what(self) += 1;
        let error = (becomes - value).abs();
        if error.is_finite() {
            self.worst_absolute_error = self.worst_absolute_error.max(error);
            if value != 0.0 {
                self.worst_relative_error = self.worst_relative_error.max(error / value.abs());
            }
        }
    }
}

/// `3 of 8 values change: 1 overflows, 2 are rounded; off by up to 0.5 (10 %)`.
impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = self.changed();
        let change = if changed == 1 { "changes" } else { "change" };
        write!(f, "{changed} of {} values {change}", self.values)?;
        let kinds = [
            (self.overflowed, "overflows", "overflow"),
            (self.wrapped, "wraps around", "wrap around"),
            (self.collapsed, "becomes true", "become true"),
            (self.truncated, "loses its fraction", "lose their fractions"),
            (self.vanished, "becomes zero", "become zero"),
            (self.rounded, "is rounded", "are rounded"),
        ];
        let mut separator = ": ";
        for (count, one, more) in kinds.into_iter().filter(|(count, ..)| *count > 0) {
            write!(f, "{separator}{count} {}", if count == 1 { one } else { more })?;
            separator = ", ";
        }
        if self.worst_absolute_error > 0.0 {
            let percent = Significant(self.worst_relative_error * 100.0);
            write!(f, "; off by up to {} ({percent} %)", Significant(self.worst_absolute_error))?;
        }
        Ok(())
    }
}

/// A number with three significant digits.
struct Significant(f64);

impl fmt::Display for Significant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exponent = self.0.abs().log10().floor();
        match exponent {
            -4.0..=2.0 => {
                let text = format!("{:.*}", (2.0 - exponent) as usize, self.0);
                f.write_str(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
            }
            3.0..15.0 => write!(f, "{:.0}", self.0),
            _ => write!(f, "{:.2e}", self.0),
        }
    }
}
