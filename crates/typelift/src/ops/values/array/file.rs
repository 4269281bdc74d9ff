//! Arrays in files of other programs: `.npy` and `.safetensors`.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;
use typelift_promote::ElementType;

use super::{Array, npy};
use crate::base::file::open_regular;
use crate::findings::reason;

/// Array in a file. The file is read once, when the values are first needed.
#[derive(Debug)]
pub(crate) struct ArrayFile {
    path: PathBuf,
    /// The name of the array in a `.safetensors` file.
    entry: Option<String>,
    read: OnceLock<Result<Array, String>>,
}

impl ArrayFile {
    pub(crate) fn new(path: PathBuf, entry: Option<String>) -> Self {
        Self { path, entry, read: OnceLock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the array.
    ///
    /// # Errors
    /// The file cannot be read, or does not have the array.
    pub(crate) fn read(&self) -> Result<&Array, String> {
        let read = self.read.get_or_init(|| {
            let bytes = read_whole(&self.path).map_err(|error| reason(&error));
            let array = bytes.and_then(|bytes| match &self.entry {
                None => npy::read(&bytes),
                Some(name) => safetensors(&bytes, name),
            });
            array.map_err(|reason| format!("cannot read `{}`: {reason}", self.path.display()))
        });
        read.as_ref().map_err(Clone::clone)
    }
}

/// Maximum size of a file of arrays, which is read completely.
const LARGEST: u64 = 4 << 30;

fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    if length > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} GiB", LARGEST >> 30)));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Description of a tensor in the header of a `.safetensors` file.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// Reads a tensor of a `.safetensors` file: the length of the header, the header as JSON, and the bytes of all tensors.
fn safetensors(bytes: &[u8], name: &str) -> Result<Array, String> {
    let parts = bytes.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        rest.split_at_checked(length)
    });
    let (header, values) = parts.ok_or("it is not a .safetensors file")?;
    let header: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|_| "it is not a .safetensors file")?;
    let entry = header.get(name).filter(|_| name != "__metadata__").ok_or_else(|| {
        let names = header.keys().map(String::as_str).filter(|name| *name != "__metadata__");
        match crate::base::names::nearest(name, names) {
            Some(near) => format!("it has no tensor `{name}`; did you mean `{near}`?"),
            None => format!("it has no tensor `{name}`"),
        }
    })?;
    let Entry { dtype, shape, data_offsets: [start, end] } =
        Entry::deserialize(entry).map_err(|_| format!("its header describes `{name}` incompletely"))?;
    let element_type = element_type(&dtype).ok_or_else(|| format!("`{name}` is {dtype}, which is not supported"))?;
    let array =
        values.get(start..end).and_then(|values| Array::decode_all(element_type, shape.as_slice().into(), values));
    array.ok_or_else(|| format!("the bytes of `{name}` are missing"))
}

fn element_type(dtype: &str) -> Option<ElementType> {
    Some(match dtype {
        "BOOL" => ElementType::Boolean,
        "U8" => ElementType::U8,
        "I8" => ElementType::I8,
        "U16" => ElementType::U16,
        "I16" => ElementType::I16,
        "U32" => ElementType::U32,
        "I32" => ElementType::I32,
        "U64" => ElementType::U64,
        "I64" => ElementType::I64,
        "F16" => ElementType::F16,
        "BF16" => ElementType::Bf16,
        "F32" => ElementType::F32,
        "F64" => ElementType::F64,
        "F8_E4M3" => ElementType::F8E4M3,
        "F8_E5M2" => ElementType::F8E5M2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_of_a_safetensors_file_is_found_by_its_name() {
        let header =
            r#"{"__metadata__": {"format": "pt"}, "w.weight": {"dtype": "F16", "shape": [2], "data_offsets": [2, 6]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&[9, 9, 0, 0x3c, 0, 0x40]);
        let array = safetensors(&bytes, "w.weight").unwrap();
        assert_eq!((array.element_type, &array.to_floats()[..]), (ElementType::F16, &[1.0, 2.0][..]));
        assert_eq!(
            safetensors(&bytes, "w.wieght").unwrap_err(),
            "it has no tensor `w.wieght`; did you mean `w.weight`?"
        );
        assert!(safetensors(&bytes, "__metadata__").is_err() && safetensors(&bytes[..20], "w.weight").is_err());
        assert!(safetensors(&bytes[..bytes.len() - 1], "w.weight").is_err());
    }
}
