//! Returns the known bounds of a tensor's values.

use typelift_promote::ElementType;

use super::converted;
use crate::ops::values::array::Array;

/// Lower and upper ends of a tensor's values, element by element. Ends are found by evaluation, so the lower need not
/// be the smaller one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: Array,
    /// `None` if it equals `lower`: the values are known exactly.
    pub(crate) upper: Option<Box<Array>>,
}

impl Bounds {
    pub(crate) fn new(lower: Array, upper: Array) -> Self {
        Self { upper: (upper != lower).then(|| Box::new(upper)), lower }
    }

    /// Returns bounds for values that are known exactly.
    pub(crate) fn exactly(values: Array) -> Self {
        Self { lower: values, upper: None }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.upper.is_none()
    }

    pub(crate) fn upper(&self) -> &Array {
        self.upper.as_deref().unwrap_or(&self.lower)
    }

    /// Returns the bounds after a conversion.
    pub(crate) fn converted(&self, to: ElementType) -> Option<Self> {
        let lower = converted(&self.lower, to)?;
        match &self.upper {
            None => Some(Self::exactly(lower)),
            Some(upper) => Some(Self::new(lower, converted(upper, to)?)),
        }
    }

    /// Returns the values, if they are known exactly.
    pub(crate) fn exact(&self) -> Option<&Array> {
        self.is_exact().then_some(&self.lower)
    }
}
