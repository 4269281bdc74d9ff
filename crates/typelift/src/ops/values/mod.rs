//! Values of constants: small arrays for computing shapes, and conversions between element types.
//!
//! The input are bytes with an element type. The result are numbers, or bytes of another type with counts of the
//! losses.
//!
//! Worked example: an f32 constant `[1e-8, 100000]` as f16 has the bytes of `[0, inf]`, and its audit counts one value that
//! became zero and one that overflowed.

pub(crate) mod array;
pub(crate) mod conversion;
pub(crate) mod export;
