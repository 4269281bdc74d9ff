//! Derivation of a common type, step by step.

use core::fmt;

use crate::{ElementType, Spelling};

/// A step of a derivation: the type of an operand changes, or two types are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Step {
    /// The type before the step.
    pub from: ElementType,
    /// The type that it is combined with, if the step has two sides.
    pub with: Option<ElementType>,
    /// The resulting type.
    pub to: ElementType,
    /// The reason, as a clause.
    pub rule: &'static str,
}

impl Step {
    /// Formats the step as `i32 with f16 gives f16: …`, with types in the spelling of a system.
    pub fn spelled(self, spelling: Spelling) -> impl fmt::Display {
        Spelled { step: self, spelling }
    }
}

struct Spelled {
    step: Step,
    spelling: Spelling,
}

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step: Step { from, with, to, rule }, spelling } = *self;
        f.write_str(spelling.name(from))?;
        match with {
            Some(with) => write!(f, " with {} gives ", spelling.name(with))?,
            None => f.write_str(" becomes ")?,
        }
        write!(f, "{}: {rule}", spelling.name(to))
    }
}

/// Formats the step with types in OpenVINO's spelling.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spelled(Spelling::OpenVino).fmt(f)
    }
}

pub(crate) type Trace<'a> = &'a mut dyn FnMut(Step);

/// Records that two types are combined, and returns the result.
pub(crate) fn meet(
    (to, rule): (ElementType, &'static str),
    from: ElementType,
    with: ElementType,
    trace: Trace,
) -> ElementType {
    trace(Step { from, with: Some(with), to, rule });
    to
}

/// Records that a type becomes another, unless both are the same.
pub(crate) fn change(from: ElementType, to: ElementType, rule: &'static str, trace: Trace) -> ElementType {
    if from != to {
        trace(Step { from, with: None, to, rule });
    }
    to
}
