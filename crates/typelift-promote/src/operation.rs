//! Operations of the rule sets, as their tables describe them.

/// Operation of a rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The name of the system's function. `operator +` and similar names are Python's operators, which accept a number
    /// on either side.
    pub name: &'static str,
    /// The smallest number of operands.
    pub least: usize,
    /// The largest number of operands.
    pub most: usize,
    /// The rule for the shape of the result.
    pub shape: ShapeRule,
    /// True if the result is always boolean.
    pub is_test: bool,
}

/// Rule for the shape of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShapeRule {
    /// The operation is not element-wise, or does not return a tensor.
    Other,
    /// The shapes broadcast.
    Broadcast,
    /// The shapes must be equal.
    Equal,
    /// The second shape is aligned with the last axis of the first: OpenVINO's `auto_broadcast="pdpd"`.
    Pdpd,
    /// The shapes broadcast to the shape of the first operand, in which the result is stored.
    InPlace,
}

/// No limit on the number of operands.
pub(crate) const MANY: usize = usize::MAX;

impl Operation {
    /// True if it accepts this number of operands.
    pub fn takes(&self, operands: usize) -> bool {
        (self.least..=self.most).contains(&operands)
    }
}
