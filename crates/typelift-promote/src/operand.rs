//! What a rule set is asked about, and what it answers.

use crate::{ElementType, Kind};

/// How much say an operand has in a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Category {
    /// A tensor of rank 1 or more.
    Dimensioned,
    /// A tensor of rank 0.
    ZeroDim,
    /// A Python number, or a constant that is used as one.
    Number,
    /// A tensor whose rank is not known.
    UnknownRank,
    /// An array that JAX types weakly, because it came from Python numbers alone. To the other rule sets a tensor whose
    /// rank is not known.
    Weak,
}

/// One operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Operand {
    /// Its element type. Of a [`Category::Number`] the kind counts: `boolean`, any integer, any float, any complex.
    pub element_type: ElementType,
    /// What it is.
    pub category: Category,
}

impl Operand {
    /// A tensor of rank 1 or more.
    pub const fn dimensioned(element_type: ElementType) -> Self {
        Self { element_type, category: Category::Dimensioned }
    }

    /// A tensor of rank 0.
    pub const fn zero_dim(element_type: ElementType) -> Self {
        Self { element_type, category: Category::ZeroDim }
    }

    /// A number of the kind of `element_type`.
    pub const fn number(element_type: ElementType) -> Self {
        Self { element_type, category: Category::Number }
    }

    /// The Python number that a text is: a word, `int`, `float`, `complex`, or a literal, `True`, `-1`, `0x10`, `1e-3`,
    /// `2j`. (`bool` is the tensor type.)
    ///
    /// ```
    /// use typelift_promote::{ElementType, Operand};
    /// assert_eq!(Operand::from_number("int"), Some(Operand::number(ElementType::I64)));
    /// assert_eq!(Operand::from_number("-2.5e3"), Some(Operand::number(ElementType::F64)));
    /// assert_eq!(Operand::from_number("bool"), None);
    /// ```
    pub fn from_number(text: &str) -> Option<Self> {
        let real = |text: &str| match text.strip_prefix(['-', '+']).unwrap_or(text) {
            text if is_integer(text) => Some(ElementType::I64),
            text if is_float(text) => Some(ElementType::F64),
            _ => None,
        };
        Some(Self::number(match text {
            "True" | "False" => ElementType::Boolean,
            "int" => ElementType::I64,
            "float" | "inf" | "-inf" | "nan" => ElementType::F64,
            "complex" => ElementType::C128,
            _ => match text.strip_suffix(['j', 'J']) {
                None => real(text)?,
                Some(part) => real(part).map(|_| ElementType::C128)?,
            },
        }))
    }

    /// The word for a Python number: `True`, `int`, `float`, `complex`; `None` for a tensor.
    pub fn number_name(self) -> Option<&'static str> {
        self.is_number().then(|| match self.element_type.kind() {
            Kind::Boolean => "True",
            Kind::Float => "float",
            Kind::Complex => "complex",
            _ => "int",
        })
    }

    /// Whether it is a Python number.
    pub fn is_number(self) -> bool {
        self.category == Category::Number
    }
}

/// Digits, single underscores between them.
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
    let digits = |text| is_digits(text, char::is_ascii_digit);
    let (mantissa, exponent) = text
        .split_once(['e', 'E'])
        .map_or((text, "0"), |(mantissa, exponent)| (mantissa, exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let is_mantissa = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some((whole, "")) => digits(whole),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
    };
    is_mantissa && digits(exponent)
}

/// The types an operation works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Promotion {
    /// What the operands are converted to.
    pub common: ElementType,
    /// What the operation gives.
    pub result: ElementType,
    /// Whether the result is weakly typed, which only JAX's are.
    pub is_weak: bool,
}

impl Promotion {
    pub(crate) const fn new(common: ElementType, result: ElementType) -> Self {
        Self { common, result, is_weak: false }
    }
}

/// Operands of an operation. Where the rule set goes by ranks, one is chosen for each that is not known.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    given: &'a [Operand],
    /// A set bit makes the next operand of unknown rank zero-dim; `None` leaves ranks unknown.
    ranks: Option<u32>,
}

impl<'a> Operands<'a> {
    pub(crate) const fn new(given: &'a [Operand], ranks: Option<u32>) -> Self {
        Self { given, ranks }
    }

    /// The operands in their order.
    pub fn iter(self) -> impl Iterator<Item = Operand> + Clone + 'a {
        let mut ranks = self.ranks;
        self.given.iter().map(move |&operand| {
            let (Category::UnknownRank, Some(choices)) = (operand.category, &mut ranks) else { return operand };
            let category = if *choices & 1 == 1 { Category::ZeroDim } else { Category::Dimensioned };
            *choices >>= 1;
            Operand { category, ..operand }
        })
    }

    /// How many there are: at least one.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(self) -> usize {
        self.given.len()
    }

    /// The first one.
    pub fn first(self) -> Operand {
        self.iter().next().unwrap_or(Operand::dimensioned(ElementType::Dynamic))
    }

    /// The last one.
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

/// Ranks for [`Operands`] under which `decide` gives what it gives under any other choice, choices that it refuses for
/// the ranks themselves left aside. `None` when the answer depends on ranks that are not known, or there are too many.
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
