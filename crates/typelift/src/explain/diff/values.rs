//! Comparison of constants' values.

use std::fmt;

use serde::Serialize;
use smallvec::smallvec;
use typelift_promote::ElementType;

use crate::base::progress::poll;
use crate::explain::shown::{FEW, digits};
use crate::findings::{grouped, short};
use crate::model::graph::{Layer, OutputPort};
use crate::model::weights::{Weights, byte_size, stored_size};
use crate::ops::values::array::{Array, Data, clamp, largest_finite};
use crate::ops::values::conversion::CHUNK;
use crate::precision::schemes::Rows;

/// Difference between the values of two constants with the same shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueChange {
    /// The number of values that differ.
    pub changed: u64,
    /// The number of values.
    pub of: u64,
    /// The largest absolute difference, without infinite and undefined values.
    pub largest: f64,
    /// The largest relative difference of a value that is not zero.
    #[serde(skip)]
    pub relative: f64,
    /// The number of values that the type of the second constant cannot hold.
    #[serde(skip_serializing_if = "is_zero")]
    pub out_of_range: u64,
    /// The eight values with the largest differences, the largest first: `[0,5]: 0.5 → 0.25`.
    pub worst: Vec<String>,
    /// The least and the greatest factor of a changed value that was not zero, and the number of these values.
    #[serde(skip)]
    factors: Option<(f64, f64, u64)>,
    /// The number of values of the first constant that are zero.
    #[serde(skip)]
    zeros: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Error of a constant's values after they were stored in another type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueError {
    /// The largest absolute difference, without infinite and undefined values.
    pub max_absolute: f64,
    /// The largest relative error of a value that is not zero.
    pub max_relative: f64,
    /// For a quantized constant: the largest difference relative to the range of its row, zero included. A row is a
    /// set of values that share a scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_of_range: Option<f64>,
}

impl ValueError {
    /// Returns the figure by which errors of constants are compared: relative to the range of a row, or to the value.
    pub fn size(&self) -> f64 {
        self.max_of_range.unwrap_or(self.max_relative)
    }
}

/// Formats the error: `worst relative 4.88e-4`, or `exact`.
impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max_of_range {
            _ if self.max_absolute == 0.0 => f.write_str("exact"),
            Some(part) => write!(f, "worst error {} % of a row's range", short(part * 100.0)),
            None => write!(f, "worst relative {}", short(self.max_relative)),
        }
    }
}

/// Formats the difference: `3 of 1,024 values, at most 0.01`.
impl fmt::Display for ValueChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = if self.of == 1 { "value" } else { "values" };
        write!(f, "{} of {} {values}", grouped(self.changed), grouped(self.of))?;
        if let Some(factor) = self.factor() {
            write!(f, " (all times {factor})")?;
        }
        if self.largest > 0.0 {
            write!(f, ", at most {}", short(self.largest))?;
        }
        if self.out_of_range > 0 { write!(f, ", {} out of range", grouped(self.out_of_range)) } else { Ok(()) }
    }
}

/// Relative difference of factors that are the same but for rounding.
const SAME_FACTOR: f64 = 2e-3;

pub(super) fn bytes_of(constant: &Layer, weights: &Weights) -> Option<Vec<u8>> {
    if let Some(text) = constant.attribute("value") {
        return Some(text.as_bytes().to_vec());
    }
    let number = |name| constant.attribute(name)?.trim().parse::<u64>().ok();
    weights.read(number("offset")?, usize::try_from(number("size")?).ok()?)
}

/// Compares two constants with the same number of values, given their bytes; `None` if they are not numeric.
pub(super) fn compare(before: (&Layer, &[u8]), after: (&Layer, &[u8])) -> Option<ValueChange> {
    let (a, b) = (before.0.outputs().first()?, after.0.outputs().first()?);
    let of = a.shape().element_count().filter(|&count| Some(count) == b.shape().element_count())?;
    let mut change = ValueChange { of, ..ValueChange::default() };
    let mut worst = Vec::new();
    for start in (0..of).step_by(CHUNK as usize) {
        poll();
        let length = CHUNK.min(of - start);
        let arrays =
            (chunk(a.element_type(), before.1, start, length)?, chunk(b.element_type(), after.1, start, length)?);
        change.add(&arrays.0, &arrays.1, start, &mut worst);
    }
    change.worst = worst.iter().filter_map(|it| it.text(a, b)).collect();
    Some(change)
}

struct Differing {
    /// The position in the constant.
    at: u64,
    before: f64,
    after: f64,
}

impl Differing {
    /// The absolute difference; infinite if one of the values is infinite or not a number.
    fn size(&self) -> f64 {
        let size = (self.before - self.after).abs();
        if size.is_finite() { size } else { f64::INFINITY }
    }

    /// Describes the value: `[0,5]: 0.5 → 0.25`.
    fn text(&self, before: &OutputPort, after: &OutputPort) -> Option<String> {
        let mut left = self.at;
        let mut index: Vec<String> = Vec::new();
        for dim in after.shape().dims()?.iter().rev() {
            let length = u64::try_from(dim.value()?).ok()?;
            index.insert(0, (left % length).to_string());
            left /= length;
        }
        let place = if index.is_empty() { String::new() } else { format!("[{}]: ", index.join(",")) };
        let (old, new) = (digits(self.before, before.element_type()), digits(self.after, after.element_type()));
        Some(format!("{place}{old} → {new}"))
    }
}

fn exceeds(value: f64, element_type: ElementType) -> bool {
    let is_too_large = match element_type.is_float() {
        true => value.abs() > largest_finite(element_type),
        false => clamp(element_type, value as i128) != value as i128,
    };
    value.is_finite() && is_too_large
}

pub(super) fn error_of_range(rows: &Rows, before: (&Layer, &[u8]), after: (&Layer, &[u8])) -> Option<f64> {
    let (a, b) = (before.0.outputs().first()?, after.0.outputs().first()?);
    let count = a.shape().element_count().filter(|&count| Some(count) == b.shape().element_count())?;
    let mut found = vec![(0.0_f64, 0.0_f64, 0.0_f64); rows.count];
    for start in (0..count).step_by(CHUNK as usize) {
        poll();
        let length = CHUNK.min(count - start);
        let numbers = |element_type, bytes: &[u8]| Some(chunk(element_type, bytes, start, length)?.to_floats());
        let (old, new) = (numbers(a.element_type(), before.1)?, numbers(b.element_type(), after.1)?);
        for (nth, (old, new)) in old.into_iter().zip(new).enumerate() {
            let (lowest, highest, error) = found.get_mut(rows.of(start as usize + nth))?;
            (*lowest, *highest) = (lowest.min(old), highest.max(old));
            *error = error.max((old - new).abs());
        }
    }
    let parts = found.into_iter().filter(|(lowest, highest, _)| highest > lowest);
    Some(parts.map(|(lowest, highest, error)| error / (highest - lowest)).fold(0.0, f64::max))
}

fn chunk(element_type: ElementType, bytes: &[u8], start: u64, length: u64) -> Option<Array> {
    let first = usize::try_from(byte_size(element_type, start)?).ok()?;
    let size = usize::try_from(stored_size(element_type, length)?).ok()?;
    let bytes = bytes.get(first..first.checked_add(size)?)?;
    Array::decode(element_type, smallvec![usize::try_from(length).ok()?], bytes)
}

impl ValueChange {
    /// The factor of all values of a constant that has several, `4` or `0`; `None` if they have none in common.
    pub(super) fn factor(&self) -> Option<String> {
        let (least, most, count) = self.factors?;
        let is_common = count == self.changed
            && count + self.zeros == self.of
            && count > 1
            && most - least <= most.abs() * SAME_FACTOR;
        // There is no factor -0.
        (is_common && (least - 1.0).abs() > SAME_FACTOR).then(|| short(least.midpoint(most) + 0.0))
    }

    pub(super) fn error(&self) -> ValueError {
        ValueError { max_absolute: self.largest, max_relative: self.relative, max_of_range: None }
    }

    /// `start` is the position of the arrays in the constant.
    fn add(&mut self, before: &Array, after: &Array, start: u64, worst: &mut Vec<Differing>) {
        self.zeros += before.to_floats().iter().filter(|value| **value == 0.0).count() as u64;
        let mut add = |at: usize, difference: f64, before: f64, now: f64| {
            self.changed += 1;
            self.out_of_range += u64::from(exceeds(before, after.element_type));
            if difference.is_finite() {
                self.largest = self.largest.max(difference.abs());
                if before != 0.0 {
                    self.relative = self.relative.max((difference / before).abs());
                    let (least, most, count) = self.factors.unwrap_or((f64::INFINITY, f64::NEG_INFINITY, 0));
                    self.factors = Some((least.min(now / before), most.max(now / before), count + 1));
                }
            }
            let it = Differing { at: start + at as u64, before, after: now };
            let place = worst.iter().rposition(|known| known.size() >= it.size()).map_or(0, |place| place + 1);
            if place < FEW as usize {
                worst.truncate(FEW as usize - 1);
                worst.insert(place, it);
            }
        };
        match (&before.data, &after.data) {
            (Data::Ints(before), Data::Ints(after)) => {
                let pairs = before.iter().zip(after.iter()).enumerate().filter(|(_, (before, after))| before != after);
                pairs.for_each(|(at, (before, after))| add(at, (before - after) as f64, before as f64, after as f64));
            }
            _ => {
                let pairs = before.to_floats().into_iter().zip(after.to_floats()).enumerate();
                let pairs = pairs.filter(|(_, (before, after))| before.to_bits() != after.to_bits());
                pairs.for_each(|(at, (before, after))| add(at, before - after, before, after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let change = |changed, of, largest| ValueChange { changed, of, largest, ..Default::default() }.to_string();
        assert_eq!(change(3, 1024, 0.010_000_001), "3 of 1,024 values, at most 0.01");
        assert_eq!(change(1, 1, 0.0), "1 of 1 value");
        assert_eq!(change(1_234_567, 1_234_567, 1e-12), "1,234,567 of 1,234,567 values, at most 1e-12");
    }
}
