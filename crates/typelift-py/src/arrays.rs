//! Bytes of constants for Python. They are not copied if the file or the caller's own buffer holds them.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use typelift::ops::{LayerKind, kind};
use typelift::{Layer, Weights};

/// Owner of a model's weights in memory, shared by all views that are not copies.
#[derive(Default)]
pub(crate) struct Keeper {
    /// The weights that the model was read with, if they were in memory.
    given: Option<Py<PyBytes>>,
    /// The file of the weights, mapped into memory.
    mapped: OnceLock<Py<PyAny>>,
}

/// Location of a constant's bytes.
pub(crate) enum Held {
    /// In the file, or in the bytes that the model was read with.
    Base { offset: usize, size: usize },
    /// Only here.
    Own(Vec<u8>),
}

/// An object with Python's buffer protocol, the offset of the bytes in it, and their length.
pub(crate) type Buffer = (Py<PyAny>, usize, usize);

/// Copies bytes into a Python object.
pub(crate) fn copy(py: Python<'_>, bytes: &[u8]) -> Buffer {
    (PyBytes::new(py, bytes).into_any().unbind(), 0, bytes.len())
}

impl Held {
    /// `None` for other layers, and for bytes that the weights lack.
    pub(crate) fn of(layer: &Layer, weights: &Weights) -> Option<Self> {
        if kind(layer) != LayerKind::Constant {
            return None;
        }
        let number = |name| layer.attribute(name)?.parse::<usize>().ok();
        let (offset, size) = (number("offset")?, number("size")?);
        let base = match (weights.file(), weights.in_memory()) {
            (Some((_, length)), _) if cfg!(unix) => usize::try_from(length).unwrap_or(usize::MAX),
            (_, Some(bytes)) => bytes.len(),
            _ => 0,
        };
        if size > 0 && offset.checked_add(size).is_some_and(|end| end <= base) {
            return Some(Self::Base { offset, size });
        }
        weights.read(offset as u64, size).map(Self::Own)
    }
}

impl Keeper {
    pub(crate) fn of(given: Py<PyBytes>) -> Self {
        Self { given: Some(given), mapped: OnceLock::new() }
    }

    pub(crate) fn buffer(&self, py: Python<'_>, weights: &Weights, held: Held) -> PyResult<Buffer> {
        let (offset, size) = match held {
            Held::Base { offset, size } => (offset, size),
            Held::Own(bytes) => return Ok(copy(py, &bytes)),
        };
        if let Some(mapped) = self.mapped(py, weights)? {
            return Ok((mapped, offset, size));
        }
        if let Some(given) = self.given(py, weights) {
            return Ok((given.into_any().unbind(), offset, size));
        }
        Ok(copy(py, &weights.read(offset as u64, size).unwrap_or_default()))
    }

    /// The bytes that the model was read with, if its weights begin with them.
    pub(crate) fn given<'py>(&self, py: Python<'py>, weights: &Weights) -> Option<Bound<'py, PyBytes>> {
        let given = self.given.as_ref()?.bind(py);
        let is_same = weights.in_memory().is_some_and(|bytes| std::ptr::eq(bytes, given.as_bytes()));
        is_same.then(|| given.clone())
    }

    /// The file is mapped once and read on access.
    fn mapped(&self, py: Python<'_>, weights: &Weights) -> PyResult<Option<Py<PyAny>>> {
        if let Some(mapped) = self.mapped.get() {
            return Ok(weights.file().map(|_| mapped.clone_ref(py)));
        }
        let Some((file, length)) = weights.file() else { return Ok(None) };
        let Some(descriptor) = descriptor(file) else { return Ok(None) };
        let mmap = py.import("mmap")?;
        let access = PyDict::new(py);
        access.set_item("access", mmap.getattr("ACCESS_READ")?)?;
        let mapped = mmap.getattr("mmap")?.call((descriptor, length), Some(&access))?.unbind();
        Ok(Some(self.mapped.get_or_init(|| mapped).clone_ref(py)))
    }
}

#[cfg(unix)]
fn descriptor(file: &std::fs::File) -> Option<std::os::fd::RawFd> {
    Some(std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(not(unix))]
fn descriptor(_file: &std::fs::File) -> Option<i32> {
    None
}
