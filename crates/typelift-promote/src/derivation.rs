//! How a common type came to be, step by step.

use core::fmt;

use crate::ElementType;

/// One step of a derivation: an operand's type is changed, or two types meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// `i32 with f16 gives f16: …`, in the short names of PyTorch and Paddle.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.from.framework_name())?;
        match self.with {
            Some(with) => write!(f, " with {} gives ", with.framework_name())?,
            None => f.write_str(" becomes ")?,
        }
        write!(f, "{}: {}", self.to.framework_name(), self.rule)
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
