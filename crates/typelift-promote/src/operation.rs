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

pub(crate) struct Row<R> {
    pub(crate) operation: Operation,
    pub(crate) rule: R,
}

/// Type of the results of an operation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Gives {
    Boolean,
    /// The type that the rule set decides.
    Type,
}

/// Declares the table of a rule set. A row has names, the numbers of operands, the rule for shapes, the results, and the
/// rule for types.
macro_rules! operations {
    ($(#[$doc:meta])* $vis:vis const $rows:ident: $type_of_rules:ty; $($($name:literal)+: $least:tt..$most:tt $shape:ident -> $gives:ident, $rule:expr;)*) => {
        $(#[$doc])* $vis const $rows: &[crate::operation::Row<$type_of_rules>] = &[$($(crate::operation::Row {
            operation: crate::Operation {
                name: $name,
                least: $least,
                most: $most,
                shape: crate::ShapeRule::$shape,
                is_test: matches!(crate::operation::Gives::$gives, crate::operation::Gives::Boolean),
            },
            rule: $rule,
        },)+)*];
    };
}

pub(crate) use operations;

/// No limit on the number of operands.
pub(crate) const MANY: usize = usize::MAX;

impl Operation {
    /// True if it accepts this number of operands.
    pub fn takes(&self, operands: usize) -> bool {
        (self.least..=self.most).contains(&operands)
    }
}
