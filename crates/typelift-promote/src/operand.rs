//! Operands and results of promotions.

use crate::{ElementType, Kind};

/// Category of an operand, which decides its weight in a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Category {
    /// Returns a tensor of rank 1 or more.
    Dimensioned,
    /// Returns a tensor of rank 0.
    ZeroDim,
    /// A Python number, or a constant used as one.
    Number,
    /// A tensor of unknown rank.
    UnknownRank,
    /// A weakly typed array of JAX, computed from Python numbers alone. Other rule sets treat it as a tensor of unknown
    /// rank.
    Weak,
}

/// Operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Operand {
    /// The element type. For a [`Category::Number`] only the kind counts: `boolean`, any integer, any float, any
    /// complex type.
    pub element_type: ElementType,
    /// The category.
    pub category: Category,
    /// The value of a Python number, if it is known.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub literal: Option<Literal>,
}

/// Value of a Python number, as far as rules look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Literal {
    /// An integer. Values beyond 128 bits are clamped.
    Integer(i128),
    /// The narrowest of f16, f32 and f64 in whose range a number lies.
    Float(ElementType),
    /// The narrowest of c64 and c128 in whose range both parts lie.
    Complex(ElementType),
}

impl Operand {
    /// Returns an operand of a category.
    pub const fn new(element_type: ElementType, category: Category) -> Self {
        Self { element_type, category, literal: None }
    }

    /// Returns a tensor of rank 1 or more.
    pub const fn dimensioned(element_type: ElementType) -> Self {
        Self::new(element_type, Category::Dimensioned)
    }

    /// Returns a tensor of rank 0.
    pub const fn zero_dim(element_type: ElementType) -> Self {
        Self::new(element_type, Category::ZeroDim)
    }

    /// Returns a number of the kind of `element_type`.
    pub const fn number(element_type: ElementType) -> Self {
        Self::new(element_type, Category::Number)
    }

    /// Parses a Python number: a word (`int`, `float`, `complex`) or a literal (`True`, `-1`, `0x10`, `1e-3`, `2j`).
    /// The word `bool` is not a number but the tensor type.
    ///
    /// ```
    /// use typelift_promote::{ElementType, Literal, Operand};
    /// assert_eq!(Operand::from_number("int"), Some(Operand::number(ElementType::I64)));
    /// let number = Operand::from_number("-2.5e3").unwrap();
    /// assert_eq!((number.element_type, number.literal), (ElementType::F64, Some(Literal::Float(ElementType::F16))));
    /// assert_eq!(Operand::from_number("0x100").unwrap().literal, Some(Literal::Integer(256)));
    /// assert_eq!(Operand::from_number("bool"), None);
    /// ```
    pub fn from_number(text: &str) -> Option<Self> {
        let real = |text: &str| match text.strip_prefix(['-', '+']).unwrap_or(text) {
            digits if is_integer(digits) => Some((ElementType::I64, Some(Literal::Integer(integer(text))))),
            digits if is_float(digits) => Some((ElementType::F64, Some(Literal::Float(least_float(text))))),
            _ => None,
        };
        let (element_type, literal) = match text {
            "True" | "False" => (ElementType::Boolean, None),
            "int" => (ElementType::I64, None),
            "float" | "inf" | "-inf" | "nan" => (ElementType::F64, None),
            "complex" => (ElementType::C128, None),
            _ => match text.strip_suffix(['j', 'J']) {
                None => real(text)?,
                Some(part) => {
                    real(part)?;
                    let least =
                        if least_float(part) == ElementType::F64 { ElementType::C128 } else { ElementType::C64 };
                    (ElementType::C128, Some(Literal::Complex(least)))
                }
            },
        };
        Some(Self { literal, ..Self::number(element_type) })
    }

    /// Returns the word for a Python number: `True`, `int`, `float`, `complex`; `None` for a tensor.
    pub fn number_name(self) -> Option<&'static str> {
        self.is_number().then(|| match self.element_type.kind() {
            Kind::Boolean => "True",
            Kind::Float => "float",
            Kind::Complex => "complex",
            _ => "int",
        })
    }

    /// True if it is a Python number.
    pub fn is_number(self) -> bool {
        self.category == Category::Number
    }
}

/// Parses an integer literal, which is clamped to 128 bits.
fn integer(text: &str) -> i128 {
    let digits = text.trim_start_matches(['-', '+']);
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    let value = digits
        .chars()
        .filter_map(|digit| digit.to_digit(radix))
        .fold(0_i128, |value, digit| value.saturating_mul(i128::from(radix)).saturating_add(i128::from(digit)));
    if text.starts_with('-') { -value } else { value }
}

/// The narrowest float type in whose range a literal lies, by the bounds that NumPy 1 uses.
fn least_float(text: &str) -> ElementType {
    match parse_float(text).map(f64::abs) {
        Some(value) if value < 65000.0 => ElementType::F16,
        Some(value) if value < 3.4e38 => ElementType::F32,
        _ => ElementType::F64,
    }
}

/// Parses a number that may have underscores between its digits; `None` if it is very long.
fn parse_float(text: &str) -> Option<f64> {
    let mut buffer = [0; 64];
    let mut length = 0;
    for byte in text.bytes().filter(|byte| *byte != b'_') {
        *buffer.get_mut(length)? = byte;
        length += 1;
    }
    core::str::from_utf8(buffer.get(..length)?).ok()?.parse().ok()
}

fn is_digits(text: &str, is_digit: fn(&char) -> bool) -> bool {
    text.split('_').all(|group| !group.is_empty() && group.chars().all(|digit| is_digit(&digit)))
}

fn is_integer(text: &str) -> bool {
    match text.get(..2) {
        Some("0x" | "0X") => is_digits(&text[2..], char::is_ascii_hexdigit),
        Some("0o" | "0O") => is_digits(&text[2..], |digit| ('0'..='7').contains(digit)),
        Some("0b" | "0B") => is_digits(&text[2..], |digit| ('0'..='1').contains(digit)),
        _ => is_digits(text, char::is_ascii_digit),
    }
}

fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = text
        .split_once(['e', 'E'])
        .map_or((text, "0"), |(mantissa, exponent)| (mantissa, exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let (whole, fraction) = match mantissa.split_once('.') {
        None => (mantissa, "0"),
        Some((whole, "")) => (whole, "0"),
        Some(("", fraction)) => ("0", fraction),
        Some(both) => both,
    };
    [whole, fraction, exponent].iter().all(|part| is_digits(part, char::is_ascii_digit))
}

/// Result of a promotion: the types an operation works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Promotion {
    /// Returns the type that the operands are converted to.
    pub common: ElementType,
    /// Returns the type of the result.
    pub result: ElementType,
    /// True if the result is weakly typed, which only JAX's results are.
    pub is_weak: bool,
}

impl Promotion {
    pub(crate) const fn new(common: ElementType, result: ElementType) -> Self {
        Self { common, result, is_weak: false }
    }
}

/// Operands of an operation. If ranks matter to the rule set, a rank is assumed for each operand of unknown rank.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    given: &'a [Operand],
    /// Assumed ranks: a set bit makes the next operand of unknown rank zero-dimensional. `None` leaves ranks unknown.
    ranks: Option<u32>,
}

impl<'a> Operands<'a> {
    pub(crate) const fn new(given: &'a [Operand], ranks: Option<u32>) -> Self {
        Self { given, ranks }
    }

    /// Returns the operands in their order.
    pub fn iter(self) -> impl Iterator<Item = Operand> + Clone + 'a {
        let mut ranks = self.ranks;
        self.given.iter().map(move |&operand| {
            let (Category::UnknownRank, Some(choices)) = (operand.category, &mut ranks) else { return operand };
            let category = if *choices & 1 == 1 { Category::ZeroDim } else { Category::Dimensioned };
            *choices >>= 1;
            Operand { category, ..operand }
        })
    }

    /// Returns the number of operands, at least one.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(self) -> usize {
        self.given.len()
    }

    /// Returns the first operand.
    pub fn first(self) -> Operand {
        self.iter().next().unwrap_or(Operand::dimensioned(ElementType::Dynamic))
    }

    /// Returns the last operand.
    pub fn last(self) -> Operand {
        self.iter().last().unwrap_or(self.first())
    }

    pub(crate) fn find(self, is: impl Fn(Operand) -> bool) -> Option<Operand> {
        self.iter().find(|&operand| is(operand))
    }

    pub(crate) fn any(self, is: impl Fn(Operand) -> bool) -> bool {
        self.find(is).is_some()
    }
}

/// Choices that the rule set refuses because of the ranks are ignored. `None` if the answer depends on unknown ranks,
/// or if there are too many of them.
pub(crate) fn agreeing_ranks<E>(
    operands: &[Operand],
    decide: impl Fn(u32) -> Result<Promotion, E>,
    is_about_rank: impl Fn(&E) -> bool,
) -> Option<u32> {
    let unknown = operands.iter().filter(|operand| operand.category == Category::UnknownRank).count();
    if unknown == 0 {
        return Some(0);
    }
    let mut agreed = None;
    for ranks in 0..1u32.checked_shl(unknown.try_into().ok()?).filter(|&choices| choices <= 256)? {
        let answer = match decide(ranks) {
            Err(refusal) if is_about_rank(&refusal) => continue,
            outcome => outcome.ok(),
        };
        let (_, first) = *agreed.get_or_insert((ranks, answer));
        if answer != first {
            return None;
        }
    }
    Some(agreed.map_or(0, |(ranks, _)| ranks))
}
