//! Checks the fidelity table against actual values: every value of types of up to 16 bits, and selected values of wider
//! types.
#![allow(clippy::panic, clippy::unwrap_used, reason = "test helpers fail by panicking")]

use typelift_promote::ElementType::{self, *};
use typelift_promote::{Fidelity, Kind, Loss, fidelity};

/// Returns numbers that a type holds: all of them, or for wide types those near limits and steps of precision.
fn values(ty: ElementType) -> Vec<f64> {
    match ty {
        Boolean => vec![0., 1.],
        F64 => vec![f64::MAX, -f64::MAX, 1. / 3., 0.5, -0.5, 0., 1., -1., 5e-324, f64::INFINITY, f64::NAN],
        F32 => {
            let values = [f32::MAX, -f32::MAX, 1. / 3., 0.5, -0.5, 0., 1., -1., 1e-45, f32::INFINITY, f32::NAN];
            values.map(f64::from).to_vec()
        }
        Nf4 => [
            -1.0f32,
            -0.696_192_8,
            -0.525_073_05,
            -0.394_917_5,
            -0.284_441_38,
            -0.184_773_43,
            -0.091_050_036,
            0.0,
            0.079_580_3,
            0.160_930_2,
            0.246_112_3,
            0.337_915_24,
            0.440_709_83,
            0.562_617,
            0.722_956_84,
            1.0,
        ]
        .map(f64::from)
        .to_vec(),
        Bf16 => (0..=u16::MAX).map(|bits| f32::from_bits(u32::from(bits) << 16).into()).collect(),
        F16 => (0..=u16::MAX).map(|bits| decode(bits, 5, 10, 15, true)).collect(),
        // The 8-bit formats differ in bias and in the codes that are not numbers.
        F8E4M3 => {
            (0..=0xff).map(|bits| if bits & 0x7f == 0x7f { f64::NAN } else { decode(bits, 4, 3, 7, false) }).collect()
        }
        F8E5M2 => (0..=0xff).map(|bits| decode(bits, 5, 2, 15, true)).collect(),
        F8E4M3Fnuz => {
            (0..=0xff).map(|bits| if bits == 0x80 { f64::NAN } else { decode(bits, 4, 3, 8, false) }).collect()
        }
        F8E5M2Fnuz => {
            (0..=0xff).map(|bits| if bits == 0x80 { f64::NAN } else { decode(bits, 5, 2, 16, false) }).collect()
        }
        F8E8M0 => (0..=0xff).map(|bits| if bits == 0xff { f64::NAN } else { 2f64.powi(bits - 127) }).collect(),
        F8E4M3B11Fnuz => {
            (0..=0xff).map(|bits| if bits == 0x80 { f64::NAN } else { decode(bits, 4, 3, 11, false) }).collect()
        }
        F8E4M3Ieee => (0..=0xff).map(|bits| decode(bits, 4, 3, 7, true)).collect(),
        F8E3M4 => (0..=0xff).map(|bits| decode(bits, 3, 4, 3, true)).collect(),
        F6E2M3 => (0..64).map(|bits| decode(bits, 2, 3, 1, false)).collect(),
        F6E3M2 => (0..64).map(|bits| decode(bits, 3, 2, 3, false)).collect(),
        F4E2M1 => (0..16).map(|bits| decode(bits, 2, 1, 1, false)).collect(),
        _ => {
            let (min, max) = range(ty);
            if ty.bits() <= 16 {
                (min as i64..=max as i64).map(|value| value as f64).collect()
            } else {
                // Odd numbers of every width reveal too few significant bits.
                let odd = (1..ty.bits()).map(|bits| (1u64 << bits) as f64 - 1.).filter(|&value| value <= max);
                odd.chain([min, 0., 1., 5., 17., max]).collect()
            }
        }
    }
}

fn range(ty: ElementType) -> (f64, f64) {
    let two = |bits: u32| 2f64.powi(bits as i32);
    if ty.kind() == Kind::Signed { (-two(ty.bits() - 1), two(ty.bits() - 1) - 1.) } else { (0., two(ty.bits()) - 1.) }
}

/// Decodes a float of sign, exponent and mantissa. `ieee` is true if the top exponent stands for infinity and NaN.
fn decode(bits: u16, exponent_bits: u32, mantissa_bits: u32, bias: i32, ieee: bool) -> f64 {
    let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1)) / 2f64.powi(mantissa_bits as i32);
    let exponent = i32::from(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
    let sign = if bits >> (exponent_bits + mantissa_bits) & 1 == 1 { -1. } else { 1. };
    sign * match exponent {
        0 => mantissa * 2f64.powi(1 - bias),
        top if ieee && top == (1 << exponent_bits) - 1 => {
            if mantissa == 0. {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1. + mantissa) * 2f64.powi(exponent - bias),
    }
}

/// Values of a type in order. Zero has no sign.
struct Values {
    ty: ElementType,
    ordered: Vec<f64>,
}

impl Values {
    fn of(ty: ElementType) -> Self {
        let mut ordered: Vec<_> =
            values(ty).into_iter().map(|value| if value.is_nan() { f64::NAN } else { value + 0. }).collect();
        ordered.sort_by(f64::total_cmp);
        ordered.dedup_by(|a, b| a.total_cmp(b).is_eq());
        Self { ty, ordered }
    }

    fn has(&self, value: f64) -> bool {
        match self.ty {
            F64 => true,
            F32 => value.is_nan() || f64::from(value as f32) == value,
            _ => self.ordered.binary_search_by(|held| held.total_cmp(&value)).is_ok(),
        }
    }

    fn is_within(&self, value: f64) -> bool {
        let finite = || self.ordered.iter().filter(|held| held.is_finite());
        let (low, high) = (finite().next(), finite().next_back());
        value.is_finite()
            && low.is_some_and(|&low| value >= low || value > 0.)
            && high.is_some_and(|&high| value <= high)
    }

    /// Returns the loss of a value stored as this type.
    fn loss(&self, value: f64) -> Option<Loss> {
        match self.ty.kind() {
            Kind::Boolean => (value != 0. && value != 1.).then_some(Loss::Collapses),
            Kind::Float if self.has(value) => None,
            Kind::Float => Some(if self.is_within(value) { Loss::Rounds } else { Loss::Overflows }),
            _ => {
                let (min, max) = range(self.ty);
                let fits = value.trunc() >= min && value.trunc() <= max;
                if fits { (value.fract() != 0.).then_some(Loss::Truncates) } else { Some(Loss::Wraps) }
            }
        }
    }
}

fn real_types() -> impl Iterator<Item = ElementType> {
    // `longdouble` has values that do not fit f64, in which this test computes.
    ElementType::all().filter(|&ty| fidelity(ty, F64).is_some() && ty.kind() != Kind::Complex && ty != LongDouble)
}

#[test]
fn every_pair_loses_what_its_values_lose() {
    let sets: Vec<_> = real_types().map(Values::of).collect();
    let mut compared = 0;
    for from in &sets {
        for to in &sets {
            let mut seen: Vec<_> = from.ordered.iter().filter_map(|&value| to.loss(value)).collect();
            seen.sort();
            seen.dedup();
            let (from, to) = (from.ty, to.ty);
            if matches!((from, to), (I64 | U64, F64)) {
                // The values do not fit f64, in which this test computes.
                seen = vec![Loss::Rounds];
            }
            assert_eq!(seen, fidelity(from, to).unwrap().losses().collect::<Vec<_>>(), "{from} to {to}");
            compared += 1;
        }
    }
    assert_eq!(compared, 39 * 39);
}

#[test]
fn openvino_loses_what_the_table_says() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/openvino/convert.txt"))
            .unwrap();
    let conversions: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let (pair, values) = line.strip_suffix(']')?.split_once(" [")?;
            let (from, to) = pair.split_once(" -> ")?;
            let values: Vec<f64> = values.split(", ").map(|value| value.parse().unwrap()).collect();
            Some((ElementType::from_name(from).unwrap(), ElementType::from_name(to).unwrap(), values))
        })
        .collect();
    let mut compared = 0;
    for (from, to, outputs) in &conversions {
        let (_, _, inputs) = conversions.iter().find(|(a, b, _)| a == from && b == from).unwrap();
        let (fidelity, target) = (fidelity(*from, *to).unwrap(), Values::of(*to));
        assert_eq!(outputs.len(), inputs.len());
        for (&value, &output) in inputs.iter().zip(outputs) {
            if from.is_integer() && value.abs() > 2f64.powi(53) {
                // The value is not the one that was converted, because this test computes in f64.
                continue;
            }
            let kept = value == output || value.is_nan() && output.is_nan();
            match target.loss(value) {
                None => assert!(kept, "{from} to {to}: {value} became {output}"),
                Some(loss) => assert!(fidelity.can(loss), "{from} to {to}: {value} became {output}, {loss:?}"),
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 1373);
}

#[test]
fn a_type_converts_to_itself_exactly_and_exact_conversions_chain() {
    let exact = |from, to| fidelity(from, to).is_some_and(Fidelity::is_exact);
    let numbers: Vec<_> = ElementType::all().filter(|&ty| fidelity(ty, F64).is_some()).collect();
    for &a in &numbers {
        assert!(exact(a, a), "{a}");
        for &b in &numbers {
            assert!(
                !exact(a, b) || !exact(b, a) || a == b || [a, b].contains(&Boolean),
                "{a} and {b} hold the same values"
            );
            for &c in &numbers {
                assert!(!exact(a, b) || !exact(b, c) || exact(a, c), "{a} to {b} to {c}");
            }
        }
    }
}

#[test]
fn what_has_no_numbers_has_no_fidelity() {
    for ty in [Dynamic, String, Bits8, F4E2M1x2] {
        assert_eq!((fidelity(ty, F32), fidelity(F32, ty), fidelity(ty, ty)), (None, None, None), "{ty}");
    }
}

#[test]
fn complex_numbers_go_by_their_parts() {
    assert_eq!(fidelity(C64, C32).unwrap().to_string(), "rounds, overflows");
    assert_eq!(fidelity(C32, F32).unwrap().to_string(), "drops-imaginary");
    assert!(fidelity(I8, C32).unwrap().is_exact());
}

#[test]
fn the_whole_table() {
    let types: Vec<_> = ElementType::all().filter(|&ty| fidelity(ty, F64).is_some()).collect();
    let mut table =
        "r rounds, o overflows, w wraps, t truncates, c collapses, d drops-imaginary; . exact\n\n".to_owned();
    table += &format!("{:>10} ", "to:");
    for to in &types {
        table += &format!(" {:>5}", to.name().chars().take(5).collect::<std::string::String>());
    }
    for &from in &types {
        table += &format!("\n{:>10} ", from.name());
        for &to in &types {
            let losses: std::string::String =
                fidelity(from, to).unwrap().losses().map(|loss| loss.name().chars().next().unwrap()).collect();
            table += &format!(" {:>5}", if losses.is_empty() { "." } else { &losses });
        }
    }
    insta::assert_snapshot!(table);
}
