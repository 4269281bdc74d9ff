//! Arrays in `.safetensors` files: the length of the header, the header as JSON, and the bytes of all tensors.

use std::collections::BTreeMap;
use std::fs::File;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use typelift_promote::ElementType;

use super::stored::{Stored, bytes_at, dims_of};
use crate::base::file::other_format;

/// Maximum length of a header in bytes, which is that of the library of this format.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes that show which other kind of file it is.
const START: u64 = 512;

#[derive(Deserialize)]
struct HeaderTensor<'a> {
    dtype: Option<String>,
    #[serde(borrow)]
    shape: Option<&'a RawValue>,
    data_offsets: Option<[u64; 2]>,
}

/// Reads the descriptions of the tensors in a file of this length.
///
/// # Errors
/// A description of the invalid part.
pub(super) fn describe(file: &File, length: u64) -> Result<BTreeMap<String, Stored>, String> {
    let no_file = || {
        let start = bytes_at(file, length, 0..length.min(START)).unwrap_or_default();
        match other_format(&start) {
            Some((name, _)) => {
                format!("it is {name}: give a file that `numpy.save` or `safetensors.torch.save_file` writes")
            }
            None => "it is neither a .npy nor a .safetensors file".to_owned(),
        }
    };
    let size = bytes_at(file, length, 0..8).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
    let start = size.filter(|&size| size <= LONGEST_HEADER).map(|size| 8 + size).ok_or_else(no_file)?;
    let header = bytes_at(file, length, 8..start).ok_or_else(no_file)?;
    let mut items: BTreeMap<String, &RawValue> = serde_json::from_slice(&header).map_err(|_| no_file())?;
    items.remove("__metadata__");
    let found = items.into_iter().map(|(name, item)| {
        let item = serde_json::from_str(item.get()).map_err(|_| no_file())?;
        tensor(&name, item, start, length).map(|tensor| (name, tensor))
    });
    found.collect()
}

/// Describes a tensor. The bytes of all tensors are at `start`.
fn tensor(name: &str, item: HeaderTensor<'_>, start: u64, length: u64) -> Result<Stored, String> {
    let shape = item.shape.and_then(|shape| dims_of(shape.get()));
    let (Some(dtype), Some(shape), Some([from, to])) = (item.dtype, shape, item.data_offsets) else {
        return Err(format!("its header describes `{name}` incompletely"));
    };
    let element_type = element_type(&dtype).ok_or_else(|| format!("`{name}` is {dtype}, which is not supported"))?;
    let place = start.checked_add(from).zip(start.checked_add(to).filter(|&end| end <= length));
    let (from, to) =
        place.filter(|(from, to)| from <= to).ok_or_else(|| format!("the bytes of `{name}` are missing"))?;
    Stored::new(element_type, shape, from..to)
        .ok()
        .filter(|stored| stored.place.end == to)
        .ok_or_else(|| format!("the bytes of `{name}` do not fit its shape"))
}

const TYPES: [(&str, ElementType); 16] = [
    ("BOOL", ElementType::Boolean),
    ("U8", ElementType::U8),
    ("I8", ElementType::I8),
    ("U16", ElementType::U16),
    ("I16", ElementType::I16),
    ("U32", ElementType::U32),
    ("I32", ElementType::I32),
    ("U64", ElementType::U64),
    ("I64", ElementType::I64),
    ("F16", ElementType::F16),
    ("BF16", ElementType::Bf16),
    ("F32", ElementType::F32),
    ("F64", ElementType::F64),
    ("F8_E4M3", ElementType::F8E4M3),
    ("F8_E5M2", ElementType::F8E5M2),
    ("F8_E8M0", ElementType::F8E8M0),
];

fn element_type(dtype: &str) -> Option<ElementType> {
    TYPES.iter().find(|(name, _)| *name == dtype).map(|(_, ty)| *ty)
}

/// The name of a type in a header; `None` if the format lacks it.
pub(in crate::ops::values) fn dtype(element_type: ElementType) -> Option<&'static str> {
    TYPES.iter().find(|(_, ty)| *ty == element_type).map(|(name, _)| *name)
}

/// The bytes before the values of tensors in a file. The values follow in this order, without gaps.
pub(in crate::ops::values) fn head(tensors: impl Iterator<Item = (String, &'static str, Vec<usize>, u64)>) -> Vec<u8> {
    let mut end = 0;
    let mut header = Value::from_iter(tensors.map(|(name, dtype, shape, size)| {
        let start = end;
        end += size;
        (name, json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}))
    }))
    .to_string();
    // The values begin at a multiple of 8 bytes.
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::opened;
    use super::*;
    use crate::model::weights::Weights;

    fn file(header: &str, values: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), values].concat()
    }

    #[test]
    fn a_tensor_of_a_safetensors_file_is_found_by_its_name() {
        let header =
            r#"{"__metadata__": {"format": "pt"}, "w.weight": {"dtype": "F16", "shape": [2], "data_offsets": [2, 6]}}"#;
        let bytes = file(header, &[9, 9, 0, 0x3c, 0, 0x40]);
        let arrays = opened(&bytes).unwrap();
        let array = arrays.read(arrays.find(Some("w.weight")).unwrap(), &Weights::none()).unwrap();
        assert_eq!((array.element_type, &array.to_floats()[..]), (ElementType::F16, &[1.0, 2.0][..]));
        assert_eq!(arrays.find(Some("w.wieght")).unwrap_err(), "it has no tensor `w.wieght`; did you mean `w.weight`?");
        assert!(arrays.find(Some("__metadata__")).is_err() && opened(&bytes[..20]).is_err());
        assert_eq!(opened(&bytes[..bytes.len() - 1]).unwrap_err(), "the bytes of `w.weight` are missing");
    }

    #[test]
    fn a_header_that_says_more_than_the_file_has_is_refused() {
        let refused = |tensor: &str| opened(&file(&format!("{{\"w\": {tensor}}}"), &[0; 4])).unwrap_err();
        let ones = "1,".repeat(2000);
        for (tensor, reason) in [
            (r#"{"dtype": "F32", "shape": [18446744073709551615, 2], "data_offsets": [0, 4]}"#, "do not fit its shape"),
            (r#"{"dtype": "F32", "shape": [0], "data_offsets": [0, 4]}"#, "do not fit its shape"),
            (r#"{"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}"#, "are missing"),
            (r#"{"dtype": "F32", "shape": [1], "data_offsets": [0, 18446744073709551615]}"#, "are missing"),
            (r#"{"dtype": "F4", "shape": [1], "data_offsets": [0, 4]}"#, "which is not supported"),
            (r#"{"dtype": "F32", "data_offsets": [0, 4]}"#, "incompletely"),
            (&format!(r#"{{"dtype": "F32", "shape": [{ones}1], "data_offsets": [0, 4]}}"#), "do not fit its shape"),
        ] {
            assert!(refused(tensor).contains(reason), "{tensor}: {}", refused(tensor));
        }
        let long = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
        assert_eq!(opened(&long).unwrap_err(), "it is neither a .npy nor a .safetensors file");
    }
}
