//! Arrays in NumPy's `.npy` files.

use std::fs::File;

use typelift_promote::ElementType;

use super::stored::{Stored, bytes_at, dims_of};

/// Maximum length of a header in bytes. NumPy refuses more than 10,000 in a file that the caller does not trust.
const LONGEST_HEADER: u64 = 1 << 20;

/// Element types of arrays, by the code of NumPy.
const TYPES: [(&str, ElementType); 12] = [
    ("b1", ElementType::Boolean),
    ("i1", ElementType::I8),
    ("i2", ElementType::I16),
    ("i4", ElementType::I32),
    ("i8", ElementType::I64),
    ("u1", ElementType::U8),
    ("u2", ElementType::U16),
    ("u4", ElementType::U32),
    ("u8", ElementType::U64),
    ("f2", ElementType::F16),
    ("f4", ElementType::F32),
    ("f8", ElementType::F64),
];

/// The bytes before the values of an array; `None` if the format lacks the type.
pub(in crate::ops::values) fn head(element_type: ElementType, dims: &[usize]) -> Option<Vec<u8>> {
    let (code, _) = TYPES.iter().find(|(_, ty)| *ty == element_type)?;
    let order = if element_type.bits() > 8 { '<' } else { '|' };
    let dims: String = dims.iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({}), }}", dims.trim_end());
    // The values begin at a multiple of 64 bytes, after 10 bytes, the header and the end of its line.
    let size = (header.len() + 11).next_multiple_of(64) - 10;
    let length = u16::try_from(size).ok()?.to_le_bytes();
    let header = format!("{header:<0$}\n", size - 1);
    Some([b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat())
}

/// Reads the description of an array that `numpy.save` wrote: numbers and booleans, in either byte order and axis
/// order. `None` if a file of this length has another format.
///
/// # Errors
/// A description of the invalid part.
pub(super) fn describe(file: &File, length: u64) -> Result<Option<Stored>, String> {
    let begin = bytes_at(file, length, 0..12).unwrap_or_default();
    let [0x93, b'N', b'U', b'M', b'P', b'Y', version, _, sizes @ ..] = &begin[..] else { return Ok(None) };
    let (start, size) = match (version, sizes) {
        (1, &[a, b, ..]) => (10, u32::from(u16::from_le_bytes([a, b]))),
        (_, &[a, b, c, d]) => (12, u32::from_le_bytes([a, b, c, d])),
        _ => return Ok(None),
    };
    let end = start + u64::from(size);
    let header = Some(start..end).filter(|_| u64::from(size) <= LONGEST_HEADER);
    let header = header.and_then(|header| String::from_utf8(bytes_at(file, length, header)?).ok());
    let header = header.ok_or("its header is not one of NumPy")?;
    let (element_type, is_big_endian) = element_type(value_of(&header, "descr").ok_or("its header has no type")?)?;
    let dims = value_of(&header, "shape").and_then(dims_of).ok_or("its header has no shape")?;
    let is_reversed = value_of(&header, "fortran_order").is_some_and(|value| value.starts_with("True"));
    let stored = Stored::new(element_type, dims, end..length)?;
    let dims = if is_reversed { stored.dims.iter().rev().copied().collect() } else { stored.dims };
    Ok(Some(Stored { dims, is_reversed, is_big_endian, ..stored }))
}

fn value_of<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// Parses the element type in `'<f4', …`. The flag is true for big-endian values.
fn element_type(descr: &str) -> Result<(ElementType, bool), String> {
    let text = descr.strip_prefix('\'').and_then(|rest| rest.split('\'').next()).unwrap_or_default();
    let code = text.trim_start_matches(['<', '>', '|', '=']);
    let ty = TYPES.iter().find(|(known, _)| *known == code).map(|(_, ty)| *ty);
    let ty = ty.ok_or_else(|| format!("its type `{text}` is not numeric; save it with a type such as float32"))?;
    Ok((ty, text.starts_with('>')))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Array;
    use super::super::file::tests::opened;
    use super::*;
    use crate::model::weights::Weights;

    pub(crate) fn file(header: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{header:<117}\n");
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), values].concat()
    }

    fn read(bytes: &[u8]) -> Result<Array, String> {
        let arrays = opened(bytes)?;
        arrays.read(arrays.find(None)?, &Weights::none())
    }

    #[test]
    fn what_numpy_saves_is_read() {
        let floats: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let array = read(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", &floats)).unwrap();
        assert_eq!((array.element_type, &array.dims[..]), (ElementType::F32, &[2, 3][..]));
        assert_eq!(array.to_floats()[..], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let array = read(&file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 3), }", &floats)).unwrap();
        assert_eq!((&array.dims[..], &array.to_floats()[..]), (&[2, 1, 3][..], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0][..]));
        let big = [0, 0, 0, 7, 255, 255, 255, 255];
        let array = read(&file("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", &big)).unwrap();
        assert_eq!(array.to_integers()[..], [7, -1]);
        let array = read(&file("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", &[9, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(array.unwrap().dims.len(), 0);
    }

    #[test]
    fn what_is_not_an_array_of_numbers_is_refused() {
        assert_eq!(opened(b"PK").unwrap_err(), "it is neither a .npy nor a .safetensors file");
        let text = file("{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", &[0; 12]);
        assert!(read(&text).unwrap_err().contains("`<U3`"));
        let short = file("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", &[0; 12]);
        assert!(read(&short).unwrap_err().contains("fewer values"));
        let huge = file("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", &[]);
        read(&huge).unwrap_err();
        let axes =
            file(&format!("{{'descr': '|u1', 'fortran_order': True, 'shape': ({}), }}", "1,".repeat(9999)), &[0]);
        assert_eq!(read(&axes).unwrap_err(), "it has more than 1024 axes");
        let long = [b"\x93NUMPY\x02\x00", &u32::MAX.to_le_bytes()[..], b"{}"].concat();
        assert_eq!(read(&long).unwrap_err(), "its header is not one of NumPy");
    }
}
