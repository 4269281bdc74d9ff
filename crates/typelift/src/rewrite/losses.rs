//! Counts of values that new constants lose.

use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;

use serde::Serialize;
use typelift_promote::ElementType;

use crate::ops::values::array::{Array, Data};

/// Counts of values in new constants that became infinite, zero or rounded, although the constants they depend on have
/// exact values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Losses {
    /// Values that are infinite or NaN although their operands are finite.
    #[serde(skip_serializing_if = "is_zero")]
    pub non_finite: usize,
    /// Values that are zero or subnormal although their operands are not.
    #[serde(skip_serializing_if = "is_zero")]
    pub vanished: usize,
    /// Values that were saturated to a limit of their type.
    #[serde(skip_serializing_if = "is_zero")]
    pub saturated: usize,
    /// Values that were rounded by a conversion to a narrower type.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounded: usize,
}

// The signature is required by serde.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.non_finite += other.non_finite;
        self.vanished += other.vanished;
        self.saturated += other.saturated;
        self.rounded += other.rounded;
    }
}

impl Losses {
    /// True if nothing is lost.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The number of values in each kind of loss, with words for that kind.
    pub fn counts(&self) -> [(usize, &'static str); 4] {
        [
            (self.non_finite, "infinite or not a number"),
            (self.vanished, "zero or subnormal"),
            (self.saturated, "saturated to a limit of the type"),
            (self.rounded, "rounded"),
        ]
    }

    pub(super) fn leaves_range(self) -> bool {
        self.non_finite + self.vanished > 0
    }

    /// The error for a rule whose new constants overflow or underflow.
    pub(super) fn refusal(self) -> String {
        let (count, what) = match self {
            Self { non_finite: 0, vanished, .. } => (vanished, "zero or subnormal"),
            Self { non_finite, .. } => (non_finite, "infinite or not a number"),
        };
        format!("{} {what}, unlike those from which it is computed; `allow overflow` lifts that", values_are(count))
    }

    pub(super) fn count(&mut self, ty: ElementType, operands: &[f64], result: f64, can_cancel: bool) {
        let is_normal = |value: f64| value.is_finite() && value.abs() >= least_normal(ty);
        if operands.iter().all(|operand| operand.is_finite()) && !result.is_finite() {
            self.non_finite += 1;
        } else if !can_cancel && operands.iter().all(|&operand| is_normal(operand)) && !is_normal(result) {
            self.vanished += 1;
        }
    }

    pub(super) fn of_conversion(from: &Array, to: &Array) -> Self {
        let mut losses = Self::default();
        match (&from.data, &to.data) {
            (Data::Ints(from), Data::Ints(to)) => {
                losses.saturated = from.iter().zip(to.iter()).filter(|(from, to)| from != to).count();
            }
            (Data::Floats(from), Data::Ints(_)) => {
                let whole = to.to_floats();
                for (&from, &to) in from.iter().zip(&whole) {
                    losses.saturated += usize::from(from.is_nan() || (from - to).abs() >= 1.0);
                    losses.rounded += usize::from((from - to).abs() < 1.0 && from != to);
                }
            }
            (_, Data::Floats(values)) => {
                let largest = crate::ops::values::array::largest_finite(to.element_type);
                for (from, &to) in from.to_floats().into_iter().zip(values) {
                    let (beyond, zero) = (from.abs() > largest || from.is_nan(), from != 0.0 && to == 0.0);
                    losses.saturated += usize::from(beyond && from != to && !to.is_nan());
                    losses.vanished += usize::from(zero);
                    losses.rounded += usize::from(!beyond && !zero && from != to);
                }
            }
        }
        losses
    }
}

impl Display for Losses {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let lost = self.counts().into_iter().filter(|(count, _)| *count > 0);
        let texts: Vec<_> = lost.map(|(count, what)| format!("{} {what}", values_are(count))).collect();
        f.write_str(&texts.join(", "))
    }
}

/// Begins a sentence on the values of new constants.
#[must_use]
pub fn values_are(count: usize) -> String {
    if count == 1 { "1 value of a new constant is".to_owned() } else { format!("{count} values of new constants are") }
}

fn least_normal(ty: ElementType) -> f64 {
    match ty {
        ElementType::F64 => f64::MIN_POSITIVE,
        ElementType::F32 | ElementType::Bf16 => f32::MIN_POSITIVE.into(),
        ElementType::F16 => half::f16::MIN_POSITIVE.to_f64(),
        _ => 0.0,
    }
}
