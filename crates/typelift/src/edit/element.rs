//! Rust types for the values of constants.

use half::{bf16, f16};
use typelift_promote::ElementType;

/// Rust type whose values a constant can store.
pub trait Element: Copy {
    /// The element type of a constant with these values.
    const TYPE: ElementType;

    /// Appends the bytes of the value in OpenVINO's format.
    fn write(self, bytes: &mut Vec<u8>);
}

macro_rules! elements {
    ($($number:ty => $ty:ident),*) => {$(
        impl Element for $number {
            const TYPE: ElementType = ElementType::$ty;

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
        }
    )*};
}

elements!(
    f32 => F32, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64
);

impl Element for bool {
    const TYPE: ElementType = ElementType::Boolean;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
}

/// Value of type `f16`, which Rust lacks. [`from`](From) rounds an `f32` to the nearest value.
///
/// ```
/// # use typelift::edit::F16;
/// assert_eq!(f32::from(F16::from(0.1)), 0.099975586);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct F16(f16);

/// Value of type `bf16`, which Rust lacks. [`from`](From) rounds an `f32` to the nearest value.
///
/// ```
/// # use typelift::edit::Bf16;
/// assert_eq!(f32::from(Bf16::from(0.1)), 0.100097656);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bf16(bf16);

macro_rules! halves {
    ($($half:ident($inner:ident) => $ty:ident),*) => {$(
        impl From<f32> for $half {
            #[inline]
            fn from(number: f32) -> Self {
                Self($inner::from_f32(number))
            }
        }

        impl From<$half> for f32 {
            #[inline]
            fn from(number: $half) -> Self {
                number.0.to_f32()
            }
        }

        impl Element for $half {
            const TYPE: ElementType = ElementType::$ty;

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.0.to_le_bytes());
            }
        }
    )*};
}

halves!(F16(f16) => F16, Bf16(bf16) => Bf16);
