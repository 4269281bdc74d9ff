//! Tensor with values for exchange with the runtime.

use typelift::promote::ElementType;
use typelift::shape::Shape;
use typelift::values::Array;

/// A tensor with its values: row-major, in the layout of a `.bin`.
///
/// The bytes of strings are those of each text in UTF-8, after its length as 4 bytes, little-endian.
///
/// # Examples
/// ```
/// use typelift::promote::ElementType;
/// use typelift_run::verify::Tensor;
/// let tensor = Tensor::new(ElementType::U8, vec![2], vec![1, 255]);
/// assert_eq!(tensor.to_string(), "u8[2]");
/// assert_eq!(tensor.floats(), Some(vec![1.0, 255.0]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The type of its elements.
    pub element_type: ElementType,
    /// The lengths of its axes.
    pub dims: Vec<usize>,
    /// The values.
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// Creates a tensor of this type and shape with these bytes.
    pub fn new(element_type: ElementType, dims: Vec<usize>, bytes: Vec<u8>) -> Self {
        Self { element_type, dims, bytes }
    }

    /// Returns its values as numbers; `None` for strings and if bytes are missing. Integers beyond 2^53 are rounded.
    pub fn floats(&self) -> Option<Vec<f64>> {
        if self.element_type == ElementType::F32 {
            let (values, _) = self.bytes.as_chunks();
            let values = values.get(..self.count())?;
            return Some(values.iter().map(|&value| f32::from_le_bytes(value).into()).collect());
        }
        Some(self.array()?.to_floats().into_vec())
    }

    /// The values of the tensor; `None` for strings and if bytes are missing.
    pub(super) fn array(&self) -> Option<Array> {
        Array::decode_all(self.element_type, self.dims.iter().copied().collect(), &self.bytes)
    }

    /// The same values in another type; `None` if one of the types is not numeric.
    pub(super) fn as_type(&self, ty: ElementType) -> Option<Self> {
        if ty == self.element_type || ty == ElementType::Dynamic {
            return Some(self.clone());
        }
        Some(Self::new(ty, self.dims.clone(), self.array()?.converted(ty)?.encode()?))
    }

    pub(super) fn for_numpy(&self) -> Self {
        let ty = match self.element_type {
            ElementType::Bf16 => ElementType::F32,
            ty if ty.is_float() && ty.bits() < 16 => ElementType::F32,
            ty if ty.is_integer() && ty.bits() < 8 => ElementType::I32,
            ty => ty,
        };
        self.as_type(ty).unwrap_or_else(|| self.clone())
    }

    /// Returns the number of its elements.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns its shape.
    pub fn shape(&self) -> Shape {
        Shape::fixed(self.dims.iter().map(|&dim| dim as i64))
    }
}

/// Formats element type and shape: `f32[2,3]`.
impl std::fmt::Display for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.element_type, self.shape())
    }
}
