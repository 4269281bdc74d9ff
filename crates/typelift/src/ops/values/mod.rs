//! Values of constants: small arrays for computing shapes, and conversions between element types.
//!
//! In come bytes with an element type, out go numbers or bytes of another type, with a count of what the conversion lost.
//!
//! Worked example: an f32 constant `[1e-8, 100000]` as f16 has the bytes of `[0, inf]`, and its audit counts one value that
//! became zero and one that overflowed.

pub(crate) mod array;
pub mod conversion;
