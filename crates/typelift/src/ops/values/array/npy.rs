//! Arrays in NumPy's `.npy` files.

use std::iter;

use typelift_promote::ElementType;

use super::{Array, Data, Few};

/// Reads an array that `numpy.save` wrote: numbers and booleans, in either byte order and axis order.
///
/// # Errors
/// A description of the invalid part.
pub(crate) fn read(bytes: &[u8]) -> Result<Array, String> {
    let (header, values) = split(bytes).ok_or("it is not a .npy file")?;
    let (element_type, is_big) = element_type(value_of(header, "descr").ok_or("its header has no type")?)?;
    let dims = value_of(header, "shape").and_then(dims_of).ok_or("its header has no shape")?;
    let is_fortran = value_of(header, "fortran_order").is_some_and(|value| value.starts_with("True"));
    let width = element_type.bits() as usize / 8;
    let swapped = |value: &[u8]| value.iter().rev().copied().collect::<Vec<_>>();
    let swapped: Option<Vec<u8>> = is_big.then(|| values.chunks_exact(width).flat_map(swapped).collect());
    let values = swapped.as_deref().unwrap_or(values);
    let stored: Few<usize> = if is_fortran { dims.iter().rev().copied().collect() } else { dims.clone() };
    let array = Array::decode_all(element_type, stored, values);
    let array = array.ok_or_else(|| format!("it has fewer values than its shape {dims:?}"))?;
    Ok(if is_fortran { array.with_axes_reversed() } else { array })
}

/// Splits a file into the header and the values.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let (&version, rest) = (rest.first()?, rest.get(2..)?);
    let (length, rest) = if version == 1 {
        let (length, rest) = rest.split_first_chunk()?;
        (usize::from(u16::from_le_bytes(*length)), rest)
    } else {
        let (length, rest) = rest.split_first_chunk()?;
        (usize::try_from(u32::from_le_bytes(*length)).ok()?, rest)
    };
    let (header, values) = rest.split_at_checked(length)?;
    Some((str::from_utf8(header).ok()?, values))
}

/// Returns the text after a key of the header.
fn value_of<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// Parses the element type in `'<f4', …`. The flag is true for big-endian values.
fn element_type(descr: &str) -> Result<(ElementType, bool), String> {
    let text = descr.strip_prefix('\'').and_then(|rest| rest.split('\'').next()).unwrap_or_default();
    let ty = match text.trim_start_matches(['<', '>', '|', '=']) {
        "b1" => ElementType::Boolean,
        "i1" => ElementType::I8,
        "i2" => ElementType::I16,
        "i4" => ElementType::I32,
        "i8" => ElementType::I64,
        "u1" => ElementType::U8,
        "u2" => ElementType::U16,
        "u4" => ElementType::U32,
        "u8" => ElementType::U64,
        "f2" => ElementType::F16,
        "f4" => ElementType::F32,
        "f8" => ElementType::F64,
        _ => return Err(format!("its type `{text}` is not numeric; save it with a type such as float32")),
    };
    Ok((ty, text.starts_with('>')))
}

/// Parses the shape in `(3, 4), …`.
fn dims_of(text: &str) -> Option<Few<usize>> {
    let inside = text.strip_prefix('(')?.split(')').next()?;
    inside.split(',').map(str::trim).filter(|dim| !dim.is_empty()).map(|dim| dim.parse().ok()).collect()
}

impl Array {
    /// Returns the same values with the last axis first.
    fn with_axes_reversed(&self) -> Self {
        let dims: Few<usize> = self.dims.iter().rev().copied().collect();
        let own = super::strides(&self.dims);
        let mut at = vec![0; dims.len()];
        let next = || {
            let place: usize = at.iter().rev().zip(&own).map(|(at, stride)| at * stride).sum();
            for (at, dim) in at.iter_mut().zip(&dims).rev() {
                *at += 1;
                if *at < *dim {
                    break;
                }
                *at = 0;
            }
            place
        };
        let places = iter::repeat_with(next).take(self.len()).collect::<Vec<_>>().into_iter();
        let data = match &self.data {
            Data::Ints(values) => Data::Ints(places.filter_map(|place| values.get(place)).collect()),
            Data::Floats(values) => Data::Floats(places.filter_map(|place| values.get(place).copied()).collect()),
        };
        Self { element_type: self.element_type, dims, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a file with this header, padded as NumPy does.
    fn file(header: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{header:<117}\n");
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), values].concat()
    }

    #[test]
    fn what_numpy_saves_is_read() {
        let floats: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let array = read(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", &floats)).unwrap();
        assert_eq!((array.element_type, &array.dims[..]), (ElementType::F32, &[2, 3][..]));
        assert_eq!(array.to_floats()[..], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let array = read(&file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", &floats)).unwrap();
        assert_eq!(array.to_floats()[..], [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        let big = [0, 0, 0, 7, 255, 255, 255, 255];
        let array = read(&file("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", &big)).unwrap();
        assert_eq!(array.to_integers()[..], [7, -1]);
        let array = read(&file("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", &[9, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(array.unwrap().dims.len(), 0);
    }

    #[test]
    fn what_is_not_an_array_of_numbers_is_refused() {
        assert_eq!(read(b"PK"), Err("it is not a .npy file".to_owned()));
        let text = file("{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", &[0; 12]);
        assert!(read(&text).unwrap_err().contains("`<U3`"));
        let short = file("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", &[0; 12]);
        assert!(read(&short).unwrap_err().contains("fewer values"));
        let huge = file("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", &[]);
        read(&huge).unwrap_err();
    }
}
