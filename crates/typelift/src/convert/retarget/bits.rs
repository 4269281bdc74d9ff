//! Bitwise operations on integers for older releases, expressed by arithmetic.

use typelift_promote::{ElementType, Kind};

use super::facts::{Written, list};
use crate::rewrite::Match;

/// Number of bits that are computed together. Plugins divide integers in `f32`, which is exact up to 24 bits.
const DIGIT: u32 = 16;

/// Combines the bits of `a` and `b`. `each` writes the combination of two bits, which are given as numbers 0 and 1.
pub(super) fn bitwise(m: &Match, each: impl Fn(&str, &str) -> String) -> Written {
    if !["numpy", "none"].contains(&m.attribute("b")?.to_ascii_lowercase().as_str()) {
        return Err(format!("auto_broadcast={} cannot be combined with additional dimensions", m.attribute("b")?));
    }
    let ty = m.element_type("a").unwrap_or(ElementType::Dynamic);
    let signed = match ty.kind() {
        Kind::Signed => true,
        Kind::Unsigned => false,
        _ => return Err(format!("older releases have no arithmetic that gives the bits of {ty}")),
    };
    let bits = ty.bits();
    let work = if bits + u32::from(!signed) <= 32 { ElementType::I32 } else { ElementType::I64 };
    let [a, b] = ["a", "b"].map(|x| digits(&format!("Convert({x}) {{destination_type={work}}}"), work, bits));
    let count = a.len();
    let width = bits.min(DIGIT);
    let powers = list((0..width).map(|bit| 1_i64 << bit));
    let combined = a.iter().zip(&b).enumerate().map(|(at, (a, b))| {
        let signed = signed && at + 1 == count;
        let places = list((0..width).map(|bit| (if signed && bit + 1 == width { -1 } else { 1_i64 }) << bit));
        let each_bit = |digit: &str| {
            let digit = if signed { unsigned(digit, work, width) } else { digit.to_owned() };
            format!("FloorMod(Divide(Unsqueeze({digit}, [-1]), {powers}) {{m_pythondiv=true}}, 2)")
        };
        format!("ReduceSum(Multiply({}, {places}), [-1]) {{keep_dims=false}}", each(&each_bit(a), &each_bit(b)))
    });
    let whole = combined.rev().reduce(|high, low| format!("Add(Multiply({high}, {}), {low})", 1 << DIGIT));
    Ok(format!("Convert({}) {{destination_type={ty}}}", whole.unwrap_or_default()))
}

/// Converts a negative number to the unsigned number with the same bits.
fn unsigned(digit: &str, ty: ElementType, width: u32) -> String {
    let negative = format!("Convert(Less({digit}, 0)) {{destination_type={ty}}}");
    format!("Add({digit}, Multiply({negative}, {}))", 1 << width)
}

/// Splits a number into digits of some bits each, the lowest first. The last digit has the sign.
fn digits(number: &str, ty: ElementType, bits: u32) -> Vec<String> {
    let (mut rest, mut digits) = (number.to_owned(), Vec::new());
    let base = (1 << DIGIT).to_string();
    for _ in 1..bits.div_ceil(DIGIT) {
        let quotient = quotient(&rest, &base, ty);
        digits.push(format!("Subtract({rest}, Multiply({quotient}, {base}))"));
        rest = quotient;
    }
    digits.push(rest);
    digits
}

/// Writes an integer division that rounds down. Plugins may round the operands to `f32`, or the quotient towards zero,
/// so the remainder is used to correct the quotient.
fn quotient(number: &str, by: &str, ty: ElementType) -> String {
    let divide = |number: &str| format!("Divide({number}, {by}) {{m_pythondiv=true}}");
    let left = |number: &str| format!("Subtract({number}, Multiply({}, {by}))", divide(number));
    let first = left(number);
    let below = format!("Convert(Less({}, 0)) {{destination_type={ty}}}", left(&first));
    format!("Subtract(Add({}, {}), {below})", divide(number), divide(&first))
}

/// Writes a shift to the right as a division by a power of two.
pub(super) fn right_shift(m: &Match) -> Written {
    let ty = m.element_type("x").unwrap_or(ElementType::Dynamic);
    match ty.kind() {
        Kind::Signed | Kind::Unsigned if ty.bits() < 32 => {
            // Plugins round quotients of these types, so the division is done in a wider type.
            let wide = |name: &str| format!("Convert({name}) {{destination_type=i32}}");
            let shifted = quotient(&wide("x"), &format!("Power(2, {})", wide("s")), ElementType::I32);
            Ok(format!("Convert({shifted}) {{destination_type={ty}}}"))
        }
        Kind::Signed => Ok(quotient("x", "Power(2, s)", ty)),
        _ => Err(format!("older releases cannot compute shifts of {ty}")),
    }
}
