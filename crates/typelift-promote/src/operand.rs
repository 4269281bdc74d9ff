//! What the rules of PyTorch and Paddle are asked about.

use crate::{ElementType, Kind};

/// How much say an operand has in a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// A tensor of rank 1 or more.
    Dimensioned,
    /// A tensor of rank 0.
    ZeroDim,
    /// A Python number, or a constant that stands for one.
    Number,
    /// A tensor whose rank is not known.
    UnknownRank,
}

/// One operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// The Python number that a word names: `bool`, `int`, `float`, `complex`.
    ///
    /// ```
    /// use typelift_promote::{ElementType, Operand};
    /// assert_eq!(Operand::from_number_name("int"), Some(Operand::number(ElementType::I64)));
    /// ```
    pub fn from_number_name(word: &str) -> Option<Self> {
        Some(Self::number(match word {
            "bool" => ElementType::Boolean,
            "int" => ElementType::I64,
            "float" => ElementType::F64,
            "complex" => ElementType::C128,
            _ => return None,
        }))
    }

    /// The word for a Python number, as [`from_number_name`](Self::from_number_name) reads it; `None` for a tensor.
    pub fn number_name(self) -> Option<&'static str> {
        self.is_number().then(|| match self.element_type.kind() {
            Kind::Boolean => "bool",
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

/// The types an operation works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promotion {
    /// What the operands are converted to.
    pub common: ElementType,
    /// What the operation gives.
    pub result: ElementType,
}

/// The operands with a rank chosen for each one whose rank is not known: a set bit makes it zero-dim.
pub(crate) fn with_ranks(operands: &[Operand], mut ranks: u32) -> impl Iterator<Item = Operand> + Clone {
    operands.iter().map(move |&operand| {
        if operand.category != Category::UnknownRank {
            return operand;
        }
        let category = if ranks & 1 == 1 { Category::ZeroDim } else { Category::Dimensioned };
        ranks >>= 1;
        Operand { category, ..operand }
    })
}

/// Ranks for [`with_ranks`] under which `decide` gives what it gives under any other choice, choices that it refuses for
/// the ranks themselves left aside. `None` when the answer depends on ranks that are not known, or there are too many.
pub(crate) fn agreeing_ranks<E>(
    operands: &[Operand],
    decide: impl Fn(u32) -> Result<Promotion, E>,
    is_about_rank: impl Fn(&E) -> bool,
) -> Option<u32> {
    let unknown = operands.iter().filter(|operand| operand.category == Category::UnknownRank).count();
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
