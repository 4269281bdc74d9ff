//! What the tables of all rule sets say of an operation.

/// An operation of a rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its name: that of the system's function; `operator +` and its like are Python's operators, which take a number on
    /// either side.
    pub name: &'static str,
    /// The fewest operands.
    pub least: usize,
    /// The most operands.
    pub most: usize,
    /// How the shape of the result comes to be.
    pub shape: ShapeRule,
    /// Whether the result is boolean whatever the operands are.
    pub is_test: bool,
}

/// How the shape of a result comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShapeRule {
    /// The operation is not element-wise, or gives no tensor.
    Other,
    /// The shapes broadcast.
    Broadcast,
    /// The shapes must be equal.
    Equal,
    /// The second shape is laid over the first, aligned at the last axis: OpenVINO's `auto_broadcast="pdpd"`.
    Pdpd,
    /// The shapes broadcast to that of the first operand, which takes the result.
    InPlace,
}

/// No limit to the number of operands.
pub(crate) const MANY: usize = usize::MAX;

impl Operation {
    /// Whether it takes this number of operands.
    pub fn takes(&self, operands: usize) -> bool {
        (self.least..=self.most).contains(&operands)
    }
}
