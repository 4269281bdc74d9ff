//! Known bounds of a tensor's values.

use ElementType::{Bf16, Boolean, F4E2M1, F8E8M0, F16, F32, Nf4};
use typelift_promote::ElementType;

use super::values::array::{self, Array};

/// Bounds of a tensor's values, element by element. Both are computed by the operation, so `lower` may exceed `upper`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: Array,
    /// `None` if all values are known exactly, and equal `lower`.
    pub(crate) upper: Option<Box<Array>>,
}

impl Bounds {
    pub(crate) fn new(lower: Array, upper: Array) -> Self {
        Self { upper: (upper != lower).then(|| Box::new(upper)), lower }
    }

    pub(crate) fn exactly(values: Array) -> Self {
        Self { lower: values, upper: None }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.upper.is_none()
    }

    pub(crate) fn upper(&self) -> &Array {
        self.upper.as_deref().unwrap_or(&self.lower)
    }

    pub(crate) fn converted(&self, to: ElementType) -> Option<Self> {
        let lower = converted(&self.lower, to)?;
        match &self.upper {
            None => Some(Self::exactly(lower)),
            Some(upper) => Some(Self::new(lower, converted(upper, to)?)),
        }
    }

    pub(crate) fn exact(&self) -> Option<&Array> {
        self.is_exact().then_some(&self.lower)
    }
}

pub(super) fn is_converted(from: ElementType, to: ElementType) -> bool {
    from == to || matches!((from, to), (Nf4, F16 | Bf16 | F32)) || !matches!(from, Nf4 | F4E2M1 | F8E8M0)
}

/// Conversion of an end of bounds. "No upper end" is kept, unless one of the types is an integer of 16 bits or less.
pub(super) fn converted(x: &Array, to: ElementType) -> Option<Array> {
    let converted = x.converted(to).filter(|_| is_converted(x.element_type, to))?;
    if x.element_type == to || matches!((x.element_type, to), (Nf4, _) | (F16, Nf4)) {
        return Some(converted);
    }
    let is_narrow = [x.element_type, to].iter().any(|&ty| (ty.is_integer() || ty == Boolean) && ty.bits() <= 16);
    if is_narrow || x.len() == 0 {
        return Some(converted);
    }
    array::largest(x.element_type)?;
    Some(converted.masked(&x.is_open(), &array::largest(to)?))
}
