//! Measurement of quantization errors of a constant.

use serde::Serialize;

use super::numbers::{Bounds, Scale};
use super::source::Source;

/// Loss of a constant's values by quantization. A row is a set of values that share a scale. Errors are relative to
/// the range of the row, zero included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QuantizationLoss {
    /// The number of rows.
    pub rows: u64,
    /// The root mean square of the errors.
    pub rms: f64,
    /// The largest error.
    pub largest: f64,
    /// The number of rows that contain only zeros.
    pub zero_rows: u64,
    /// The number of rows whose scale is the smallest or the largest possible, so that values are lost.
    pub at_limit: u64,
}

impl QuantizationLoss {
    /// Measures the loss of a constant; `None` if its values cannot be read.
    pub(super) fn of(source: &Source) -> Option<Self> {
        let bounds = source.bounds()?;
        let scales = source.scales_for(&bounds);
        let errors = source.errors(&scales, true)?;
        let mut loss = Self { rows: bounds.len() as u64, ..Self::default() };
        let mut squares = 0.0;
        for ((row, scale), error) in bounds.iter().zip(&scales).zip(errors) {
            if row.width() == 0.0 {
                loss.zero_rows += 1;
                continue;
            }
            loss.at_limit += u64::from(is_at_limit(source, *row, *scale));
            let width = f64::from(row.width());
            squares += error.squares / (width * width);
            loss.largest = loss.largest.max(f64::from(error.largest) / width);
        }
        loss.rms = (squares / source.grid.len().max(1) as f64).sqrt();
        Some(loss)
    }
}

fn is_at_limit(source: &Source, row: Bounds, scale: Scale) -> bool {
    let stored = scale.stored(source.mode);
    let is_smallest = scale.step == f32::EPSILON && row.width() < f32::EPSILON * 4.0;
    stored.is_infinite() || stored == 0.0 || is_smallest
}
