//! Arrays in files of other programs: `.npy` and `.safetensors`.
//!
//! Nothing that a file says is believed. Opening one reads the descriptions of its arrays, whose places must lie in the
//! file. Values are read when they are needed, and only if they fit into the memory limit of the model that needs them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::stored::Stored;
use super::{Array, npy, safetensors};
use crate::base::file::{open_regular, read_exact_at};
use crate::base::names::nearest;
use crate::findings::reason;
use crate::model::weights::Weights;

/// Array in a file that a rule names. The file is read once, when the values are first needed.
#[derive(Debug)]
pub(crate) struct ArrayFile {
    path: PathBuf,
    /// The name of the array in a `.safetensors` file.
    entry: Option<String>,
    opened: OnceLock<Result<Arrays, String>>,
    read: OnceLock<Array>,
}

impl ArrayFile {
    pub(crate) fn new(path: PathBuf, entry: Option<String>) -> Self {
        Self { path, entry, opened: OnceLock::new(), read: OnceLock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same array of another file or with another name, as `new` changes both texts.
    ///
    /// # Errors
    /// The error of `new`.
    pub(crate) fn renamed(&self, new: impl Fn(&str) -> Result<String, String>) -> Result<Self, String> {
        let path = match self.path.to_str() {
            Some(path) => new(path)?.into(),
            None => self.path.clone(),
        };
        Ok(Self::new(path, self.entry.as_deref().map(&new).transpose()?))
    }

    /// # Errors
    /// The file cannot be read or does not have the array, or its values exceed the memory limit of the model.
    pub(crate) fn read(&self, weights: &Weights) -> Result<&Array, String> {
        let read = || {
            if let Some(array) = self.read.get() {
                return Ok(array);
            }
            let arrays = self.opened.get_or_init(|| Arrays::open(&self.path)).as_ref().map_err(Clone::clone)?;
            // A refusal is not kept: another model may have a larger limit.
            let array = arrays.read(arrays.find(self.entry.as_deref())?, weights)?;
            Ok(self.read.get_or_init(|| array))
        };
        read().map_err(|reason: String| format!("cannot read `{}`: {reason}", self.path.display()))
    }
}

/// An open file of arrays.
#[derive(Debug)]
pub(crate) struct Arrays {
    file: File,
    /// The arrays by name. The array of a `.npy` file has the empty name.
    pub(crate) found: BTreeMap<String, Stored>,
}

impl Arrays {
    /// Opens a file and reads the descriptions of its arrays.
    ///
    /// # Errors
    /// The file is not regular, has another format, or is smaller than its descriptions say.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let open = || {
            let file = open_regular(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error| reason(&error))?;
        let found = match npy::describe(&file, length)? {
            Some(array) => BTreeMap::from([(String::new(), array)]),
            None => safetensors::describe(&file, length)?,
        };
        Ok(Self { file, found })
    }

    /// Finds an array by its name. A `.npy` file has only one, without a name.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&Stored, String> {
        let is_npy = self.found.contains_key("");
        match (name, is_npy) {
            (None, false) => return Err("it is not a .npy file".to_owned()),
            (Some(_), true) => return Err("it is not a .safetensors file".to_owned()),
            _ => {}
        }
        let name = name.unwrap_or_default();
        self.found.get(name).ok_or_else(|| match nearest(name, self.found.keys().map(String::as_str)) {
            Some(near) => format!("it has no tensor `{name}`; did you mean `{near}`?"),
            None => format!("it has no tensor `{name}`"),
        })
    }

    /// Reads the values of an array, if the memory limit of the model that needs them permits it.
    pub(crate) fn read(&self, array: &Stored, weights: &Weights) -> Result<Array, String> {
        weights.compute(array.len()).map_err(|reason| reason.to_string())?;
        let mut bytes = vec![0; (array.place.end - array.place.start) as usize];
        read_exact_at(&self.file, &mut bytes, array.place.start).map_err(|error| reason(&error))?;
        if array.is_big_endian {
            bytes.chunks_exact_mut(array.element_type.bits() as usize / 8).for_each(<[u8]>::reverse);
        }
        let decoded = Array::decode_all(array.element_type, array.dims.clone(), &bytes);
        let rank = array.dims.len();
        let decoded = decoded.and_then(|it| if array.is_reversed { it.transposed((0..rank).rev()) } else { Some(it) });
        decoded.ok_or_else(|| format!("{} has no numbers", array.element_type))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use super::*;

    pub(crate) fn opened(bytes: &[u8]) -> Result<Arrays, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Arrays::open(file.path())
    }

    #[test]
    fn values_beyond_the_memory_limit_are_refused_and_another_model_may_have_more() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&npy::tests::file("{'descr': '|u1', 'fortran_order': False, 'shape': (100,), }", &[7; 100]))
            .unwrap();
        let array = ArrayFile::new(file.path().to_owned(), None);
        let refused = array.read(&Weights::none().with_memory(799)).unwrap_err();
        assert!(refused.ends_with("it needs 800 bytes, and the memory limit for values is 799 bytes"), "{refused}");
        assert_eq!(array.read(&Weights::none().with_memory(800)).unwrap().len(), 100);
        assert_eq!(array.read(&Weights::none().with_memory(1)).unwrap().len(), 100);
    }

    /// A file of 1 GiB, nearly all of it a hole, has only four values.
    #[test]
    fn only_the_bytes_of_an_array_are_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&npy::tests::file("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", &[0; 16]))
            .unwrap();
        file.as_file().set_len(1 << 30).unwrap();
        let array = ArrayFile::new(file.path().to_owned(), None);
        assert_eq!(array.read(&Weights::none().with_memory(32)).unwrap().len(), 4);
    }

    /// Values take no more memory than the limit, and their bytes are in the file, whatever a byte of the file becomes.
    #[test]
    fn damaged_files_are_refused_or_read_within_the_limit() {
        let header = r#"{"w": {"dtype": "F16", "shape": [3, 2], "data_offsets": [0, 12]}}"#;
        let tensors = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[7; 12]].concat();
        let array = npy::tests::file("{'descr': '>f4', 'fortran_order': True, 'shape': (3, 1), }", &[7; 12]);
        for whole in [tensors, array] {
            for at in 0..whole.len() {
                for byte in [0, 9, b'0', b'9', b'-', b',', b'"', b'\'', b'(', 0x7f, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] = byte;
                    let Ok(arrays) = opened(&damaged) else { continue };
                    for stored in arrays.found.values() {
                        let read = arrays.read(stored, &Weights::none().with_memory(64));
                        assert!(
                            read.is_ok_and(|array| array.len() <= 8)
                                || stored.len() > 8
                                || stored.element_type.bits() == 0
                        );
                    }
                }
                assert!(opened(&whole[..at]).is_err(), "{at}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        assert_eq!(Arrays::open("/dev/zero".as_ref()).unwrap_err(), "it is not a regular file");
    }
}
