//! Descriptions of arrays in files, checked against the size of the file.

use std::fs::File;
use std::ops::Range;

use typelift_promote::ElementType;

use super::Few;
use crate::base::file::read_exact_at;
use crate::model::shape::Shape;
use crate::model::weights::stored_size;

/// Description of an array in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) element_type: ElementType,
    /// The dimensions in the order of the axes in the file.
    pub(crate) dims: Few<usize>,
    /// The place of the values in the file, in bytes.
    pub(super) place: Range<u64>,
    /// True if the last axis is stored first, as Fortran does.
    pub(super) is_reversed: bool,
    pub(super) is_big_endian: bool,
}

impl Stored {
    /// Describes an array in row-major order whose values are at `place`.
    ///
    /// # Errors
    /// The array has too many axes, or its values do not fit into the place.
    pub(super) fn new(element_type: ElementType, dims: Few<usize>, place: Range<u64>) -> Result<Self, String> {
        if dims.len() > Shape::MAX_RANK {
            return Err(format!("it has more than {} axes", Shape::MAX_RANK));
        }
        let count = dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim as u64));
        let size = count.and_then(|count| stored_size(element_type, count)).and_then(|size| u64::try_from(size).ok());
        let end = size.and_then(|size| place.start.checked_add(size)).filter(|&end| end <= place.end);
        let end = end.ok_or_else(|| format!("it has fewer values than its shape {dims:?}"))?;
        let place = place.start..end;
        Ok(Self { element_type, dims, place, is_reversed: false, is_big_endian: false })
    }

    /// The number of elements, whose bytes are in the file.
    pub(crate) fn len(&self) -> u64 {
        self.dims.iter().map(|&dim| dim as u64).product()
    }
}

/// Parses the dimensions in `(3, 4), …` or `[3,4]`, as many as are supported and one more.
pub(super) fn dims_of(text: &str) -> Option<Few<usize>> {
    let inside = text.strip_prefix(['(', '['])?.split([')', ']']).next()?;
    let dims = inside.split(',').map(str::trim).filter(|dim| !dim.is_empty()).take(Shape::MAX_RANK + 1);
    dims.map(|dim| dim.parse().ok()).collect()
}

/// Reads bytes of a file of this length; `None` if it ends before.
pub(super) fn bytes_at(file: &File, length: u64, range: Range<u64>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start).filter(|_| range.end <= length)?).ok()?];
    read_exact_at(file, &mut bytes, range.start).ok().map(|()| bytes)
}
