//! Reasons for which a rule set refuses operands.

use core::fmt;

use crate::{ElementType, Spelling};

/// Reason of a refusal, as a rule set states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Reason {
    /// Returns a stable word for the reason.
    pub code: &'static str,
    /// A sentence in which `{a}` and `{b}` stand for the types and `{rules}` for the system.
    pub message: &'static str,
}

impl Reason {
    pub(crate) const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message }
    }
}

/// Reasons that several rule sets share.
impl Reason {
    /// The system has no such type.
    pub const UNKNOWN_TYPE: Self = Self::new("unsupported-type", "{rules} has no type {a}");
    /// The rule set has no operation with that name.
    pub const UNKNOWN_OPERATION: Self = Self::new("unknown-operation", "{rules} has no operation of that name");
    /// Too few or too many operands.
    pub const ARITY: Self = Self::new("arity", "wrong number of operands");
    /// A Python number where the operation accepts only a tensor.
    pub const NUMBER: Self = Self::new("not-a-tensor", "the operation takes a tensor where a Python number is given");
    /// The operation does not promote: its operands must have the same type.
    pub const SAME_TYPE: Self = Self::new("same-type", "{a} and {b} differ, and the operation does not promote");
    /// An 8-bit float does not promote.
    pub const FLOAT8: Self =
        Self::new("float8", "{a} and {b} have no common type: {rules} does not promote 8-bit floats");
    /// The result cannot be stored in the first operand.
    pub const CAST: Self = Self::new("cast", "the result is {b}, which {rules} does not store in the {a} operand");
    /// A rank that the operation does not accept.
    pub const RANK: Self = Self::new("rank", "the operation does not take operands of these ranks");
    /// The answer depends on an unknown rank.
    pub const UNKNOWN_RANK: Self =
        Self::new("unknown-rank", "the common type of {a} and {b} depends on ranks that are not known");
}

/// A system that promotes types, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct System {
    /// The name in prose, such as `PyTorch`.
    pub title: &'static str,
    /// The spelling of its types.
    pub spelling: Spelling,
}

impl System {
    pub(crate) const fn refuse(self, reason: Reason, a: ElementType, b: ElementType) -> Refusal {
        Refusal { reason, types: [a, b], system: self }
    }
}

/// Error of a promotion that a rule set refuses. `Display` says in one sentence which types do not fit and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// The types that do not fit together; the same type twice if one operand alone is the reason.
    pub types: [ElementType; 2],
    /// The system that refuses.
    pub system: System,
}

impl Refusal {
    /// Returns a stable word for the reason.
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
