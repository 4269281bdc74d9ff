//! The numbers of Rust that constants hold.

use smallvec::SmallVec;
use typelift_promote::ElementType;

/// A number that a constant can hold as it is.
pub trait Element: Copy {
    /// The element type of a constant of such numbers.
    const TYPE: ElementType;

    /// Its bytes, as OpenVINO stores them.
    fn bytes(self) -> SmallVec<[u8; 8]>;
}

macro_rules! elements {
    ($($number:ty => $ty:ident),*) => {$(
        impl Element for $number {
            const TYPE: ElementType = ElementType::$ty;

            fn bytes(self) -> SmallVec<[u8; 8]> {
                SmallVec::from_slice(&self.to_le_bytes())
            }
        }
    )*};
}

elements!(
    f32 => F32, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64
);

impl Element for bool {
    const TYPE: ElementType = ElementType::Boolean;

    fn bytes(self) -> SmallVec<[u8; 8]> {
        SmallVec::from_slice(&[u8::from(self)])
    }
}
