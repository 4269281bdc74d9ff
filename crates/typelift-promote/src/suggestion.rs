//! Changes after which a rule set accepts operands that it refused. Each change has been tried before it is returned.

use core::fmt;

use crate::{Category, ElementType, Kind, Operand, Reason, RuleSet, Spelling, fidelity};

/// Change after which the rule set has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Suggestion {
    /// Set a flag of the rule set.
    Flag {
        /// The name of the flag.
        name: &'static str,
        /// The result with the flag set.
        result: ElementType,
    },
    /// Use another operation of the same meaning.
    Operation(&'static str),
    /// Use a tensor of rank 0 in place of a number.
    Tensor {
        /// The position of the operand, from 0.
        operand: usize,
        /// The type of the tensor.
        to: ElementType,
    },
    /// Make the rank known.
    Rank {
        /// The position of the operand, from 0.
        operand: usize,
        /// True if the rank must be 0.
        is_zero: bool,
    },
    /// Convert one operand.
    Convert {
        /// The position of the operand, from 0.
        operand: usize,
        /// The destination type.
        to: ElementType,
    },
    /// Convert all operands; numbers become tensors with dimensions.
    ConvertAll(ElementType),
}

/// Python's operators, and the functions that they call.
const OPERATORS: &[(&str, &[&str])] = &[
    ("operator +", &["add"]),
    ("operator -", &["sub", "subtract", "rsub"]),
    ("operator *", &["mul", "multiply"]),
    ("operator /", &["div", "divide", "true_divide"]),
    ("operator //", &["floor_divide"]),
    ("operator %", &["remainder", "mod", "floor_mod"]),
    ("operator **", &["pow"]),
    ("operator ==", &["eq", "equal"]),
    ("operator !=", &["ne", "not_equal"]),
    ("operator <", &["lt", "less_than"]),
    ("operator <=", &["le", "less_equal"]),
    ("operator >", &["gt", "greater_than"]),
    ("operator >=", &["ge", "greater_equal"]),
    ("operator &", &["bitwise_and"]),
    ("operator |", &["bitwise_or"]),
    ("operator ^", &["bitwise_xor"]),
];

/// Largest number of operands for which a change is searched.
const MOST: usize = 16;

impl RuleSet {
    /// Returns the smallest change after which the operation accepts the operands; `None` if none is known.
    ///
    /// ```
    /// use typelift_promote::RuleSet;
    /// let rules = RuleSet::from_name("paddle").unwrap();
    /// let operands = ["i32[2]", "1.5"].map(|text| rules.operand(text).unwrap());
    /// let suggestion = rules.suggestion("add", &operands).unwrap();
    /// let words = rules.describe_suggestion(suggestion, Default::default()).to_string();
    /// assert_eq!(words, "`operator +` accepts these operands");
    /// ```
    pub fn suggestion(&self, operation: &str, operands: &[Operand]) -> Option<Suggestion> {
        self.operation(operation).filter(|row| row.takes(operands.len()))?;
        self.flag(operation, operands)
            .or_else(|| self.other_operation(operation, operands))
            .or_else(|| self.other_operand(operation, operands))
            .or_else(|| {
                let found = [ElementType::F32, ElementType::I64].into_iter().find(|&ty| {
                    with(operands, |_, operand| as_tensor(operand, ty), |all| self.promote(operation, all).is_ok())
                });
                found.map(Suggestion::ConvertAll)
            })
    }

    fn flag(&self, operation: &str, operands: &[Operand]) -> Option<Suggestion> {
        self.settings().iter().filter(|setting| setting.is_laxer).find_map(|setting| {
            let mut laxer = *self;
            laxer.set(setting.name, "");
            let result = laxer.promote(operation, operands).ok()?.result;
            Some(Suggestion::Flag { name: setting.name, result })
        })
    }

    fn other_operation(&self, operation: &str, operands: &[Operand]) -> Option<Suggestion> {
        let operator = OPERATORS.iter().find(|(_, functions)| functions.contains(&operation)).map(|row| row.0);
        let others = [operation.strip_suffix('_'), operator].into_iter().flatten();
        let mut others = others.filter_map(|name| self.operation(name));
        others.find(|other| self.promote(other.name, operands).is_ok()).map(|other| Suggestion::Operation(other.name))
    }

    /// Searches a change of one operand. Changes of its category are tried before its type, and types that hold its
    /// values before others.
    fn other_operand(&self, operation: &str, operands: &[Operand]) -> Option<Suggestion> {
        let accepts = |at: usize, changed: Operand| {
            let change = |place, operand| if place == at { changed } else { operand };
            with(operands, change, |all| self.promote(operation, all).is_ok())
        };
        let number = |(at, operand): (usize, &Operand)| {
            let to = number_type(*operand)?;
            accepts(at, Operand::zero_dim(to)).then_some(Suggestion::Tensor { operand: at, to })
        };
        let refusal = self.promote(operation, operands).err()?;
        let is_about_rank = [Reason::RANK, Reason::UNKNOWN_RANK].contains(&refusal.reason);
        let rank = |(at, operand): (usize, &Operand)| {
            let ranks = [(Category::Dimensioned, false), (Category::ZeroDim, true)];
            let (_, is_zero) = ranks
                .into_iter()
                .filter(|_| is_about_rank && !operand.is_number())
                .find(|&(category, _)| category != operand.category && accepts(at, Operand { category, ..*operand }))?;
            Some(Suggestion::Rank { operand: at, is_zero })
        };
        let convert = |exactly: bool| {
            // Nobody means a complex number where all others are real.
            let is_complex = |ty: ElementType| ty.kind() == Kind::Complex;
            let has_complex = operands.iter().any(|operand| is_complex(operand.element_type));
            let others = || operands.iter().map(|other| other.element_type).chain(self.types());
            let others = || others().filter(|&ty| has_complex || !is_complex(ty));
            operands.iter().enumerate().filter(|(_, operand)| !operand.is_number()).find_map(|(at, operand)| {
                let mut found = others().filter(|&to| {
                    to != operand.element_type
                        && (!exactly || fidelity(operand.element_type, to).is_some_and(|lost| lost.is_exact()))
                });
                let to = found.find(|&to| accepts(at, Operand { element_type: to, ..*operand }))?;
                Some(Suggestion::Convert { operand: at, to })
            })
        };
        let each = || operands.iter().enumerate();
        each().find_map(number).or_else(|| each().find_map(rank)).or_else(|| convert(true)).or_else(|| convert(false))
    }

    /// Describes a change as a clause, with flags spelled for their users.
    pub fn describe_suggestion(&self, suggestion: Suggestion, flags: FlagSpelling) -> impl fmt::Display {
        Described { suggestion, spelling: self.spelling(), flags }
    }
}

/// Only a zero-dimensional tensor stays without dimensions.
fn as_tensor(operand: Operand, element_type: ElementType) -> Operand {
    let category = if operand.is_number() { Category::Dimensioned } else { operand.category };
    Operand::new(element_type, category)
}

/// Calls `accepts` with changed operands.
fn with(
    operands: &[Operand],
    change: impl Fn(usize, Operand) -> Operand,
    accepts: impl Fn(&[Operand]) -> bool,
) -> bool {
    let mut changed = [Operand::number(ElementType::Dynamic); MOST];
    let Some(changed) = changed.get_mut(..operands.len()) else { return false };
    for (at, (place, &operand)) in changed.iter_mut().zip(operands).enumerate() {
        *place = change(at, operand);
    }
    accepts(changed)
}

fn number_type(operand: Operand) -> Option<ElementType> {
    Some(match operand.number_name()? {
        "True" => ElementType::Boolean,
        "float" => ElementType::F32,
        "complex" => ElementType::C64,
        _ => ElementType::I64,
    })
}

/// Spelling of a flag in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlagSpelling {
    /// An option of a program: `--promote-unsafe`.
    #[default]
    Option,
    /// An argument in Python: `promote_unsafe=True`.
    Argument,
}

impl FlagSpelling {
    fn write(self, flag: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option => write!(f, "--{flag}"),
            Self::Argument => {
                for (at, word) in flag.split('-').enumerate() {
                    f.write_str(if at == 0 { "" } else { "_" })?;
                    f.write_str(word)?;
                }
                f.write_str("=True")
            }
        }
    }
}

struct Described {
    suggestion: Suggestion,
    spelling: Spelling,
    flags: FlagSpelling,
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |ty| self.spelling.name(ty);
        match self.suggestion {
            Suggestion::Flag { name: flag, result } => {
                self.flags.write(flag, f)?;
                write!(f, " allows it; the result would be {}", name(result))
            }
            Suggestion::Operation(other) => write!(f, "`{other}` accepts these operands"),
            Suggestion::Tensor { operand, to } => {
                write!(f, "give a tensor, such as {}[], as operand {}", name(to), operand + 1)
            }
            Suggestion::Rank { operand, is_zero: true } => write!(f, "give operand {} rank 0", operand + 1),
            Suggestion::Rank { operand, is_zero: false } => {
                write!(f, "give operand {} a known rank of 1 or more", operand + 1)
            }
            Suggestion::Convert { operand, to } => write!(f, "convert operand {} to {}", operand + 1, name(to)),
            Suggestion::ConvertAll(to) => write!(f, "convert the operands to tensors of {}", name(to)),
        }
    }
}
