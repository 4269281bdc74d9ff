//! Possible losses of a conversion between two element types, computed from the value sets of both.
//!
//! The conversion is OpenVINO's `Convert`. To a float it rounds to nearest; values out of range become infinite, or NaN
//! in types without infinities. To an integer it cuts off the fraction and keeps the low bits. To `boolean` it compares
//! with zero.

use core::fmt;

use crate::ElementType::{self, *};
use crate::{Kind, Specials};

/// A kind of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// Values are rounded to the nearest value of the type; tiny values become zero.
    Rounds,
    /// Values beyond the largest float become infinite, NaN, or the largest float.
    Overflows,
    /// Integers out of range keep their low bits. Infinities, NaN and floats out of range give undefined results.
    Wraps,
    /// Values lose their fraction.
    Truncates,
    /// All values except zero become true.
    Collapses,
    /// Complex numbers lose their imaginary part.
    DropsImaginary,
}

impl Loss {
    const ALL: [Self; 6] =
        [Self::Rounds, Self::Overflows, Self::Wraps, Self::Truncates, Self::Collapses, Self::DropsImaginary];

    /// Returns a stable word: `rounds`, `overflows`, `wraps`, `truncates`, `collapses`, `drops-imaginary`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rounds => "rounds",
            Self::Overflows => "overflows",
            Self::Wraps => "wraps",
            Self::Truncates => "truncates",
            Self::Collapses => "collapses",
            Self::DropsImaginary => "drops-imaginary",
        }
    }
}

/// Set of the [`Loss`]es of a conversion, empty if every value is kept.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Fidelity(u8);

impl Fidelity {
    /// True if every value is preserved.
    pub fn is_exact(self) -> bool {
        self.0 == 0
    }

    /// True if this kind of loss is possible.
    pub fn can(self, loss: Loss) -> bool {
        self.0 & 1 << loss as u8 != 0
    }

    /// Returns the possible kinds of loss.
    pub fn losses(self) -> impl Iterator<Item = Loss> {
        Loss::ALL.into_iter().filter(move |&loss| self.can(loss))
    }

    fn with(self, loss: Loss, happens: bool) -> Self {
        if happens { Self(self.0 | 1 << loss as u8) } else { self }
    }
}

impl FromIterator<Loss> for Fidelity {
    fn from_iter<I: IntoIterator<Item = Loss>>(losses: I) -> Self {
        losses.into_iter().fold(Self::default(), |all, loss| all.with(loss, true))
    }
}

/// Formats as `exact`, or as a list of losses: `rounds, overflows`.
impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() {
            return f.write_str("exact");
        }
        for (i, loss) in self.losses().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, loss.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Value set of an integer type.
struct Integer {
    min: i128,
    max: i128,
}

/// Value set of a float type: numbers of `precision` significant bits, multiples of `2^lowest`, up to `max`.
struct Float {
    precision: u32,
    lowest: i32,
    max: Max,
    infinity: bool,
    nan: bool,
    zero_and_below: bool,
}

/// A number in the form `mantissa * 2^exponent`.
#[derive(Clone, Copy)]
struct Max {
    mantissa: u64,
    exponent: i32,
}

impl Max {
    fn magnitude(self) -> i32 {
        63 - self.mantissa.leading_zeros() as i32 + self.exponent
    }

    fn exceeds(self, other: Self) -> bool {
        let aligned = [self, other].map(|max| max.mantissa.unbounded_shl(max.mantissa.leading_zeros()));
        (self.magnitude(), aligned[0]) > (other.magnitude(), aligned[1])
    }

    fn truncated(self) -> Self {
        if self.exponent < 0 { Self { mantissa: self.mantissa >> -self.exponent, exponent: 0 } } else { self }
    }

    fn of_integer(max: i128) -> Self {
        Self { mantissa: u64::try_from(max).unwrap_or(u64::MAX), exponent: 0 }
    }
}

enum Numbers {
    Integer(Integer),
    Float(Float),
}

fn numbers(ty: ElementType) -> Option<Numbers> {
    let float = |precision, lowest, mantissa, exponent, infinity, nan| {
        let max = Max { mantissa, exponent };
        Some(Numbers::Float(Float { precision, lowest, max, infinity, nan, zero_and_below: ty != F8E8M0 }))
    };
    if let Some(format) = ty.float_format() {
        let (mantissa, exponent) = format.largest();
        let (infinity, nan) = (format.specials == Specials::Infinities, format.specials != Specials::None);
        return float(u32::from(format.mantissa) + 1, format.lowest(), mantissa, exponent, infinity, nan);
    }
    match ty {
        Boolean => Some(Numbers::Integer(Integer { min: 0, max: 1 })),
        F8E4M3Fnuz => float(4, -10, 15, 4, false, true),
        F8E5M2Fnuz => float(3, -17, 7, 13, false, true),
        F8E4M3B11Fnuz => float(4, -13, 15, 1, false, true),
        F8E4M3Ieee => float(4, -9, 15, 4, true, true),
        F8E3M4 => float(5, -6, 31, -1, true, true),
        F6E2M3 => float(4, -3, 15, -1, false, false),
        F6E3M2 => float(3, -4, 7, 2, false, false),
        LongDouble => float(64, -16445, u64::MAX, 16320, true, true),
        F8E8M0 => float(1, -127, 1, 127, false, true),
        // The sixteen values lie between -1 and 1 and are stored in f32, so keeping them requires f32's precision.
        Nf4 => float(24, -27, 1, 0, false, false),
        _ => match ty.kind() {
            Kind::Signed => {
                Some(Numbers::Integer(Integer { min: -(1 << (ty.bits() - 1)), max: (1 << (ty.bits() - 1)) - 1 }))
            }
            Kind::Unsigned => Some(Numbers::Integer(Integer { min: 0, max: (1 << ty.bits()) - 1 })),
            _ => None,
        },
    }
}

/// Returns the possible losses of a conversion. `None` if OpenVINO defines no conversion: `dynamic`, `string`, and
/// PyTorch's storage types.
///
/// Two conversions in a row equal the second one alone if the first is exact.
///
/// ```
/// use typelift_promote::{ElementType::*, Loss, fidelity};
/// assert!(fidelity(F16, F32).unwrap().is_exact());
/// assert_eq!(fidelity(I64, F16).unwrap().to_string(), "rounds, overflows");
/// assert!(fidelity(F32, U8).unwrap().can(Loss::Truncates));
/// ```
pub fn fidelity(from: ElementType, to: ElementType) -> Option<Fidelity> {
    if from == to && numbers(from.real()).is_some() {
        return Some(Fidelity::default());
    }
    let lost = Fidelity::default().with(
        Loss::DropsImaginary,
        from.kind() == Kind::Complex && !matches!(to.kind(), Kind::Complex | Kind::Boolean),
    );
    Some(match (numbers(from.real())?, numbers(to.real())?) {
        (Numbers::Integer(from), _) if to == Boolean => lost.with(Loss::Collapses, from.min < 0 || from.max > 1),
        (Numbers::Float(_), _) if to == Boolean => lost.with(Loss::Collapses, true),
        (Numbers::Integer(from), Numbers::Integer(to)) => {
            lost.with(Loss::Wraps, from.min < to.min || from.max > to.max)
        }
        (Numbers::Float(from), Numbers::Integer(to)) => {
            let fits = !from.infinity
                && !from.nan
                && !from.max.truncated().exceeds(Max::of_integer(to.max))
                && (!from.zero_and_below || to.min < 0 && !from.max.truncated().exceeds(Max::of_integer(-to.min)));
            lost.with(Loss::Truncates, from.lowest < 0).with(Loss::Wraps, !fits)
        }
        // nf4 contains the integers -1, 0 and 1, and shares no fraction with other types.
        (Numbers::Integer(from), Numbers::Float(_)) if to == Nf4 => {
            let beyond = from.min < -1 || from.max > 1;
            lost.with(Loss::Overflows, beyond)
        }
        (Numbers::Float(_), Numbers::Float(_)) if to == Nf4 => {
            lost.with(Loss::Rounds, true).with(Loss::Overflows, true)
        }
        (Numbers::Integer(from), Numbers::Float(to)) => {
            let most = Max::of_integer(from.max.max(-from.min));
            // The largest number of a signed type is one short of a power of two.
            let significant = Max::of_integer(from.max).magnitude().min(to.max.magnitude()) + 1;
            lost.with(Loss::Rounds, significant > to.precision as i32)
                .with(Loss::Overflows, most.exceeds(to.max) || !to.zero_and_below)
        }
        (Numbers::Float(from), Numbers::Float(to)) => {
            let beyond = from.max.exceeds(to.max)
                || from.infinity && !to.infinity
                || from.nan && !to.nan
                || from.zero_and_below && !to.zero_and_below;
            lost.with(Loss::Rounds, from.precision > to.precision || from.lowest < to.lowest)
                .with(Loss::Overflows, beyond)
        }
    })
}
