//! Comparison of two tensors that should be equal.

use serde::Serialize;
use typelift::values::Data;

use super::Tensor;
use super::tolerance::Tolerance;

/// Maximum number of positions that are kept for a tensor.
const SHOWN: usize = 3;

/// Difference between two tensors that should be equal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// True if they are equal within the tolerance.
    pub same: bool,
    /// The largest absolute difference of two finite values.
    pub max_absolute: f64,
    /// The largest absolute difference, relative to the largest finite value of A. Infinite if that is 0.
    pub max_relative: f64,
    /// The cosine similarity of both as vectors; 1 if all values are zero.
    pub cosine: f64,
    /// The number of values that are not exactly equal.
    pub changed: u64,
    /// The number of values.
    pub of: u64,
    /// The number of positions where one tensor has NaN or infinity, and the other has another value.
    pub not_finite: u64,
    /// The number of positions where both have NaN, which counts as equal.
    pub nan: u64,
    /// The shapes of both, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes: Option<[String; 2]>,
    /// The positions with the largest differences, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<Place>,
}

/// Position in two tensors, with the value of each.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// The index along each axis.
    pub index: Vec<usize>,
    /// The value in A; `null` in JSON if it is not finite.
    pub a: f64,
    /// The value in B; `null` in JSON if it is not finite.
    pub b: f64,
}

impl Difference {
    /// Compares two tensors. Integers and booleans must be equal. Values of different types are compared as numbers.
    pub fn between(a: &Tensor, b: &Tensor, tolerance: Tolerance) -> Self {
        let of = a.count().max(b.count()) as u64;
        if a.dims != b.dims {
            let shapes = Some([a.shape().to_string(), b.shape().to_string()]);
            return Self { shapes, changed: of, of, max_relative: f64::INFINITY, ..Self::default() };
        }
        if a == b && !a.element_type.is_float() {
            return Self { same: true, cosine: 1.0, of, ..Self::default() };
        }
        let Some((x, y)) = a.floats().zip(b.floats()) else {
            // Strings are equal or not.
            let (changed, max_relative) = if a == b { (0, 0.0) } else { (1, f64::INFINITY) };
            return Self { same: a == b, changed, of, max_relative, ..Self::default() };
        };
        let mut found = Self::of_numbers(&x, &y, &a.dims);
        if a.element_type.is_float() || b.element_type.is_float() {
            let limit = tolerance.absolute + tolerance.relative * scale(&x);
            found.same = found.not_finite == 0 && found.max_absolute <= limit;
        } else {
            found.changed = exact_changes(a, b).unwrap_or(found.changed);
            found.same = found.changed == 0;
        }
        found
    }

    fn of_numbers(x: &[f64], y: &[f64], dims: &[usize]) -> Self {
        let mut found = Self { of: x.len() as u64, ..Self::default() };
        let (mut dot, mut xx, mut yy) = (0.0, 0.0, 0.0);
        // Positions sorted by difference; one with NaN or infinity is worse than any other.
        let mut worst: Vec<(f64, usize)> = Vec::new();
        for (at, (&a, &b)) in x.iter().zip(y).enumerate() {
            if a.is_finite() && b.is_finite() {
                dot += a * b;
                xx += a * a;
                yy += b * b;
            }
            if a == b || a.is_nan() && b.is_nan() {
                found.nan += u64::from(a.is_nan());
                continue;
            }
            found.changed += 1;
            let distance = (a - b).abs();
            if distance.is_finite() {
                found.max_absolute = found.max_absolute.max(distance);
            } else {
                found.not_finite += 1;
            }
            let distance = if distance.is_finite() { distance } else { f64::INFINITY };
            if worst.len() < SHOWN || worst.last().is_some_and(|last| distance > last.0) {
                worst.push((distance, at));
                worst.sort_by(|a, b| b.0.total_cmp(&a.0));
                worst.truncate(SHOWN);
            }
        }
        found.max_relative = relative(found.max_absolute, scale(x));
        found.cosine = if found.changed == 0 || xx == 0.0 && yy == 0.0 { 1.0 } else { dot / (xx.sqrt() * yy.sqrt()) };
        if !found.cosine.is_finite() {
            found.cosine = 0.0;
        }
        found.worst = worst.iter().map(|&(_, at)| Place { index: index_of(at, dims), a: x[at], b: y[at] }).collect();
        found
    }

    /// The size of the difference for sorting: infinite if values are not finite, or shapes differ.
    pub(super) fn size(&self) -> f64 {
        if self.not_finite > 0 || self.shapes.is_some() { f64::INFINITY } else { self.max_relative }
    }

    /// True if the values of floats differ by more than a tolerance, which may not be the one they were compared with.
    pub(super) fn exceeds(&self, tolerance: Tolerance) -> bool {
        self.max_absolute > tolerance.absolute + tolerance.relative * (self.max_absolute / self.max_relative)
    }

    pub(super) fn or_worse(self, other: Self) -> Self {
        if (other.same, self.size()) < (self.same, other.size()) && (!other.same || self.same) { other } else { self }
    }
}

fn scale(values: &[f64]) -> f64 {
    values.iter().filter(|value| value.is_finite()).fold(0.0, |scale, value| value.abs().max(scale))
}

fn relative(distance: f64, scale: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { distance / scale }
}

/// The number of integers that differ; `None` if the values are not integers.
fn exact_changes(a: &Tensor, b: &Tensor) -> Option<u64> {
    match (a.array()?.data, b.array()?.data) {
        (Data::Ints(a), Data::Ints(b)) => Some(a.iter().zip(b.iter()).filter(|(a, b)| a != b).count() as u64),
        _ => None,
    }
}

fn index_of(mut at: usize, dims: &[usize]) -> Vec<usize> {
    let index = dims.iter().rev().map(|&dim| {
        let index = at % dim.max(1);
        at /= dim.max(1);
        index
    });
    let mut index: Vec<usize> = index.collect();
    index.reverse();
    index
}

/// True if all values are finite, as strings and integers always are.
pub(super) fn is_finite(tensor: &Tensor) -> bool {
    !tensor.element_type.is_float() || tensor.floats().is_none_or(|values| values.iter().all(|value| value.is_finite()))
}
