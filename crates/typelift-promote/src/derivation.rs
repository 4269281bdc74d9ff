//! How a common type came to be, step by step.

use core::fmt;

use crate::{ElementType, Spelling};

/// One step of a derivation: an operand's type is changed, or two types meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Step {
    /// The type at hand.
    pub from: ElementType,
    /// The type it meets, if the step has two sides.
    pub with: Option<ElementType>,
    /// What comes of it.
    pub to: ElementType,
    /// Why, as a clause.
    pub rule: &'static str,
}

impl Step {
    /// `i32 with f16 gives f16: …`, types spelled as a system does.
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

/// As [`Step::spelled`], types as OpenVINO spells them.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spelled(Spelling::OpenVino).fmt(f)
    }
}

/// Takes the steps of a derivation as they are made.
pub(crate) type Trace<'a> = &'a mut dyn FnMut(Step);

/// Records that two types meet, and returns what they give.
pub(crate) fn meet(
    (to, rule): (ElementType, &'static str),
    from: ElementType,
    with: ElementType,
    trace: Trace,
) -> ElementType {
    trace(Step { from, with: Some(with), to, rule });
    to
}

/// Records that a type becomes another, unless it is that already.
pub(crate) fn change(from: ElementType, to: ElementType, rule: &'static str, trace: Trace) -> ElementType {
    if from != to {
        trace(Step { from, with: None, to, rule });
    }
    to
}
