//! Counts of the losses in conversions of constants.

use std::fmt;

use serde::Serialize;
use typelift_promote::{ElementType, Fidelity, Kind, Loss, fidelity};

use super::Stored;
use crate::model::graph::{Graph, Layer};
use crate::model::weights::Weights;
use crate::ops::values::array::{self, Array, Data};

pub(crate) fn survives(constant: &Layer, weights: &Weights, to: ElementType) -> bool {
    let from = constant.attribute("element_type").and_then(ElementType::from_name);
    let is_exact = from.and_then(|from| fidelity(from, to)).is_some_and(|fidelity| fidelity.is_exact());
    is_exact || Audit::of(constant, weights, to).is_some_and(|audit| audit.changed() == 0)
}

/// Counts of a constant's values, by the effect of a conversion.
///
/// A changed value is counted once, by the first of these that applies: it overflows, wraps, saturates, collapses, loses its
/// fraction, vanishes, is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Audit {
    /// The total number of values.
    pub values: u64,
    /// The number of values that are rounded to the nearest number of the type.
    pub rounded: u64,
    /// The number of values that exceed the largest number of a floating-point type. They become infinite, NaN, or
    /// that number.
    pub overflowed: u64,
    /// The number of values outside the range of an integer type. They keep their low bits or become undefined.
    pub wrapped: u64,
    /// The number beyond the range of an integer type, which become the nearest limit of the type.
    pub saturated: u64,
    /// The number of values that lose their fraction.
    pub truncated: u64,
    /// The number of values other than 1 that become true.
    pub collapsed: u64,
    /// The number of values that become zero because they are too small.
    pub vanished: u64,
    /// The largest absolute error, except for values that become infinite or NaN.
    pub worst_absolute_error: f64,
    /// The largest relative error of a value that is not zero.
    pub worst_relative_error: f64,
    /// The number of values that become subnormal, and so lose precision.
    #[serde(skip)]
    pub subnormal: u64,
    /// The number of values that are NaN.
    #[serde(skip)]
    pub nan: u64,
    /// True for integer types, where each rounding is a loss.
    #[serde(skip)]
    pub(super) are_integers: bool,
    /// The number of values beyond the largest number of the type.
    #[serde(skip)]
    pub(crate) beyond: u64,
    /// The number of values between zero and the smallest positive number of the type.
    #[serde(skip)]
    pub(crate) tiny: u64,
    /// The number of other values with a larger error than rounding at full precision causes.
    #[serde(skip)]
    pub(crate) inexact: u64,
    /// The largest error of the values that do not overflow.
    #[serde(skip)]
    pub(crate) worst_within: f64,
    /// True if a value becomes infinite or NaN.
    #[serde(skip)]
    pub(super) is_unbounded: bool,
}

impl Audit {
    /// Returns the number of changed values.
    pub fn changed(&self) -> u64 {
        self.rounded + self.overflowed + self.wrapped + self.saturated + self.truncated + self.collapsed + self.vanished
    }

    /// Returns the number of lost values: those that change by more than the precision of the type, and every integer
    /// that changes.
    pub fn lost(&self) -> u64 {
        if self.are_integers { self.changed() } else { self.changed() - self.rounded }
    }

    /// Returns the number of values that overflow, wrap or saturate.
    pub fn destroyed(&self) -> u64 {
        self.overflowed + self.wrapped + self.saturated
    }

    pub(crate) fn losses(self) -> Fidelity {
        let counts = [
            (Loss::Rounds, self.rounded + self.vanished),
            (Loss::Overflows, self.overflowed),
            (Loss::Wraps, self.wrapped + self.saturated),
            (Loss::Truncates, self.truncated),
            (Loss::Collapses, self.collapsed),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0).map(|(loss, _)| loss).collect()
    }

    /// Counts the values of a constant that change if it is stored in another type; `None` if they cannot be read. A
    /// bound of a slice that stays out of range does not change what the model computes, so it is not counted.
    pub(crate) fn stored(graph: &Graph, constant: &Layer, weights: &Weights, to: ElementType) -> Option<Self> {
        let stored = Stored::of(constant)?;
        let audit = stored.audit(to, weights)?;
        let stays_out_of_range = audit.changed() == audit.saturated && is_slice_bound(graph, constant);
        Some(if stays_out_of_range { Self::new(stored.element_type, audit.values) } else { audit })
    }

    pub(super) fn new(from: ElementType, values: u64) -> Self {
        Self { values, are_integers: !from.is_float(), ..Self::default() }
    }

    /// Counts the values of a constant that a `Convert` to `to` changes; `None` if they cannot be read, or if the
    /// conversion never changes values.
    pub(crate) fn of(constant: &Layer, weights: &Weights, to: ElementType) -> Option<Self> {
        let stored = Stored::of(constant)?;
        if fidelity(stored.element_type, to)?.is_exact() {
            return None;
        }
        stored.audit_converted(to, weights)
    }

    pub(super) fn add_counts(&mut self, other: &Self) {
        let sums: [Counter; 12] = [
            |audit| &mut audit.rounded,
            |audit| &mut audit.overflowed,
            |audit| &mut audit.wrapped,
            |audit| &mut audit.saturated,
            |audit| &mut audit.truncated,
            |audit| &mut audit.collapsed,
            |audit| &mut audit.vanished,
            |audit| &mut audit.subnormal,
            |audit| &mut audit.nan,
            |audit| &mut audit.beyond,
            |audit| &mut audit.tiny,
            |audit| &mut audit.inexact,
        ];
        let mut other = *other;
        sums.iter().for_each(|count| *count(self) += *count(&mut other));
        self.worst_absolute_error = self.worst_absolute_error.max(other.worst_absolute_error);
        self.worst_relative_error = self.worst_relative_error.max(other.worst_relative_error);
        self.worst_within = self.worst_within.max(other.worst_within);
        self.is_unbounded |= other.is_unbounded;
    }

    pub(super) fn add(&mut self, values: &Array, become_of: &Array) {
        let to = become_of.element_type;
        match (&values.data, &become_of.data) {
            (Data::Ints(values), Data::Ints(become_of)) => {
                values.iter().zip(become_of.iter()).for_each(|pair| self.add_integer(pair, to));
            }
            (Data::Ints(values), Data::Floats(become_of)) => {
                values.iter().zip(become_of).for_each(|(value, &becomes)| self.add_integer_as_float(value, becomes));
            }
            (Data::Floats(values), Data::Ints(become_of)) => {
                values
                    .iter()
                    .zip(become_of.iter())
                    .for_each(|(&value, becomes)| self.add_truncated(value, becomes, to));
            }
            (Data::Floats(from), Data::Floats(become_of)) => {
                let range = Range::of(values.element_type, to);
                from.iter().zip(become_of).for_each(|(&value, &becomes)| self.add_float(value, becomes, &range));
            }
        }
    }

    fn add_integer(&mut self, (value, becomes): (i128, i128), to: ElementType) {
        if becomes != value {
            let what: Counter = match to.kind() {
                Kind::Boolean => |audit| &mut audit.collapsed,
                _ if becomes == array::clamp(to, value) => |audit| &mut audit.saturated,
                _ => |audit| &mut audit.wrapped,
            };
            self.count(what, value as f64, becomes as f64);
        }
    }

    fn add_integer_as_float(&mut self, value: i128, becomes: f64) {
        let number = value as f64;
        if !becomes.is_finite() {
            self.count(|audit| &mut audit.overflowed, number, becomes);
        } else if becomes != number || becomes as i128 != value {
            let error = (becomes as i128).abs_diff(value) as f64;
            self.count(|audit| &mut audit.rounded, number, number + error);
        }
    }

    fn add_truncated(&mut self, value: f64, becomes: i128, to: ElementType) {
        let whole = becomes as f64;
        if to.kind() == Kind::Boolean {
            if whole != value {
                self.count(|audit| &mut audit.collapsed, value, whole);
            }
        } else if !value.is_finite() || whole != value.trunc() {
            let saturates = !value.is_nan() && becomes == array::clamp(to, value as i128);
            let what: Counter = if saturates { |audit| &mut audit.saturated } else { |audit| &mut audit.wrapped };
            self.count(what, value, whole);
        } else if whole != value {
            self.count(|audit| &mut audit.truncated, value, whole);
        }
    }

    fn add_float(&mut self, value: f64, becomes: f64, to: &Range) {
        let (size, error) = (value.abs(), (becomes - value).abs());
        let overflows = becomes.is_nan() != value.is_nan()
            || becomes.is_infinite() != value.is_infinite()
            || (to.overflow..f64::INFINITY).contains(&size);
        if overflows {
            self.count(|audit| &mut audit.overflowed, value, becomes);
        } else if becomes == 0.0 && value != 0.0 {
            self.count(|audit| &mut audit.vanished, value, becomes);
        } else if becomes != value && !value.is_nan() {
            self.count(|audit| &mut audit.rounded, value, becomes);
        }
        self.nan += u64::from(value.is_nan());
        self.subnormal += u64::from(becomes != 0.0 && becomes.abs() < to.normal);
        if size > to.largest || value.is_nan() && to.counts_nan {
            self.beyond += 1;
        } else if size < to.least && value != 0.0 {
            self.tiny += 1;
        } else if error > to.inexact * size {
            self.inexact += 1;
        }
        if size <= to.largest {
            self.worst_within = self.worst_within.max(error);
        }
    }

    fn count(&mut self, what: Counter, value: f64, becomes: f64) {
        *what(self) += 1;
        let error = (becomes - value).abs();
        self.is_unbounded |= !error.is_finite();
        if error.is_finite() {
            self.worst_absolute_error = self.worst_absolute_error.max(error);
            if value != 0.0 {
                self.worst_relative_error = self.worst_relative_error.max(error / value.abs());
            }
        }
    }
}

fn is_slice_bound(graph: &Graph, constant: &Layer) -> bool {
    let mut uses = graph.consumers(constant.id().output(0)).peekable();
    uses.peek().is_some()
        && uses.all(|to| {
            let name = graph.layer(to.layer).and_then(Layer::operation).map_or("", |row| row.name);
            ["Slice", "StridedSlice"].contains(&name) && (1..=2).contains(&to.port)
        })
}

type Counter = fn(&mut Audit) -> &mut u64;

/// Limits of a floating-point type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) largest: f64,
    /// Smallest value that would be rounded beyond the largest number.
    pub(super) overflow: f64,
    /// Smallest positive number with the full precision of the type.
    pub(super) normal: f64,
    /// Smallest positive number.
    pub(super) least: f64,
    /// Maximum relative error of rounding at full precision.
    pub(super) inexact: f64,
    /// True if NaN is counted as overflow.
    counts_nan: bool,
}

impl Range {
    /// OpenVINO's criteria for compressed constants are those of f16, whose rounding error they permit twice; the
    /// limits of other types are in proportion.
    pub(super) fn of(from: ElementType, to: ElementType) -> Self {
        let largest = array::largest_finite(to);
        let (normal, least, step, inexact) = match to.float_format().filter(|_| to != ElementType::F64) {
            Some(format) => {
                let inexact = match to {
                    ElementType::F16 => 1e-3,
                    ElementType::Bf16 => 8e-3,
                    ElementType::F32 => 1e-7,
                    _ => 2_f64.powi(-i32::from(format.mantissa)),
                };
                let half_unit = 2_f64.powi(format.largest().1 - 1);
                (2_f64.powi(1 - format.bias()), 2_f64.powi(format.lowest()), half_unit, inexact)
            }
            None => (0.0, 0.0, 0.0, 1.0),
        };
        Self { largest, overflow: largest + step, normal, least, inexact, counts_nan: from != ElementType::F64 }
    }
}

/// Writes a summary: `3 of 8 values change: 1 overflows, 2 are rounded; off by up to 0.5 (10 %)`.
impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = self.changed();
        let change = if changed == 1 { "changes" } else { "change" };
        write!(f, "{changed} of {} values {change}", self.values)?;
        let kinds = [
            (self.overflowed, "overflows", "overflow"),
            (self.wrapped, "wraps around", "wrap around"),
            (self.saturated, "becomes the limit of its type", "become the limit of their type"),
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
            let others = if self.is_unbounded { "the others are off" } else { "off" };
            write!(f, "; {others} by up to {} ({percent} %)", Significant(self.worst_absolute_error))?;
        }
        Ok(())
    }
}

/// Number that is formatted with three significant digits.
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
