//! Why a rule set refuses.

use core::fmt;

use crate::{ElementType, Spelling};

/// The reason of a refusal, as a rule set states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Reason {
    /// A stable word.
    pub code: &'static str,
    /// A sentence in which `{a}` and `{b}` are the types, and `{rules}` is the system.
    pub message: &'static str,
}

impl Reason {
    pub(crate) const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message }
    }
}

/// The reasons that several rule sets have.
impl Reason {
    /// The system has no such type.
    pub const UNKNOWN_TYPE: Self = Self::new("unsupported-type", "{rules} has no type {a}");
    /// The rule set has no operation of that name.
    pub const UNKNOWN_OPERATION: Self = Self::new("unknown-operation", "{rules} has no operation of that name");
    /// Too few or too many operands.
    pub const ARITY: Self = Self::new("arity", "wrong number of operands");
    /// A Python number where the operation takes only a tensor.
    pub const NUMBER: Self = Self::new("not-a-tensor", "the operation takes a tensor where a Python number is given");
    /// The operation does not promote: its operands must have one type.
    pub const SAME_TYPE: Self = Self::new("same-type", "{a} and {b} differ, and the operation does not promote");
    /// An 8-bit float promotes to nothing.
    pub const FLOAT8: Self =
        Self::new("float8", "{a} and {b} have no common type: {rules} does not promote 8-bit floats");
    /// The result cannot be stored in the first operand.
    pub const CAST: Self = Self::new("cast", "the result is {b}, which {rules} does not store in the {a} operand");
    /// A rank that the operation does not take.
    pub const RANK: Self = Self::new("rank", "the operation does not take operands of these ranks");
    /// The answer depends on a rank that is not known.
    pub const UNKNOWN_RANK: Self =
        Self::new("unknown-rank", "the common type of {a} and {b} depends on ranks that are not known");
}

/// A system that promotes, as messages name it and its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct System {
    /// Its name in prose: `PyTorch`.
    pub title: &'static str,
    /// How it spells types.
    pub spelling: Spelling,
}

impl System {
    pub(crate) const fn refuse(self, reason: Reason, a: ElementType, b: ElementType) -> Refusal {
        Refusal { reason, types: [a, b], system: self }
    }
}

/// A promotion that a rule set refuses. `Display` says in one sentence what does not go together and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The types that do not go together; one type twice where one operand alone is the reason.
    pub types: [ElementType; 2],
    /// Who refuses.
    pub system: System,
}

impl Refusal {
    /// A stable word for the reason.
    pub fn code(&self) -> &'static str {
        self.reason.code
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.reason.message;
        while let Some((text, after)) = rest.split_once('{') {
            let (place, tail) = after.split_once('}').unwrap_or((after, ""));
            f.write_str(text)?;
            f.write_str(match place {
                "a" => self.system.spelling.name(self.types[0]),
                "b" => self.system.spelling.name(self.types[1]),
                _ => self.system.title,
            })?;
            rest = tail;
        }
        f.write_str(rest)
    }
}

impl core::error::Error for Refusal {}
