//! What is known of the values of a tensor.

use typelift_promote::ElementType;

use super::converted;
use crate::ops::values::array::Array;

/// The two ends of what the values of a tensor can be, element by element. As ends are found by evaluating, the lower
/// need not be the smaller one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: Array,
    /// `None` where it is the same as `lower`: the values are known exactly.
    pub(crate) upper: Option<Box<Array>>,
}

impl Bounds {
    pub(crate) fn new(lower: Array, upper: Array) -> Self {
        Self { upper: (upper != lower).then(|| Box::new(upper)), lower }
    }

    /// Values that are known exactly.
    pub(crate) fn exactly(values: Array) -> Self {
        Self { lower: values, upper: None }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.upper.is_none()
    }

    pub(crate) fn upper(&self) -> &Array {
        self.upper.as_deref().unwrap_or(&self.lower)
    }

    /// What is known of them after a conversion.
    pub(crate) fn converted(&self, to: ElementType) -> Option<Self> {
        let lower = converted(&self.lower, to)?;
        match &self.upper {
            None => Some(Self::exactly(lower)),
            Some(upper) => Some(Self::new(lower, converted(upper, to)?)),
        }
    }

    /// The values, where they are known exactly.
    pub(crate) fn exact(&self) -> Option<&Array> {
        self.is_exact().then_some(&self.lower)
    }
}
