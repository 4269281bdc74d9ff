//! What the rules of PyTorch and Paddle are asked about.

use crate::ElementType;

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

    pub(crate) fn is_number(self) -> bool {
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
