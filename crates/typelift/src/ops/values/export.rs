//! Constants as files of other programs: `.npy` and `.safetensors`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};

use thiserror::Error;
use typelift_promote::ElementType;

use super::array::{Array, npy, safetensors};
use crate::model::graph::{Layer, Model};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::ops;
use crate::ops::values::conversion::Stored;

/// Constants of a model as a file of another program. Values are read when it is written.
#[derive(Debug)]
pub struct Export<'m> {
    head: Vec<u8>,
    parts: Vec<TensorBytes>,
    weights: &'m Weights,
}

#[derive(Debug)]
enum TensorBytes {
    /// Bytes of the weights, by offset and length.
    Stored(u64, u64),
    Computed(Vec<u8>),
}

/// Reason why constants cannot be written for another program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The format lacks the element type.
    #[error(
        "`{name}` has {element_type}, which a {format} file cannot have; {}",
        if *in_safetensors { "a .safetensors file can" } else { "only the .bin of a model can" }
    )]
    Lacks {
        /// The layer.
        name: String,
        /// The element type of the constant.
        element_type: ElementType,
        /// The ending of the format.
        format: &'static str,
        /// True if `.safetensors` has the type.
        in_safetensors: bool,
    },
    /// The values are unknown.
    #[error("{0}")]
    Unknown(String),
}

impl ExportError {
    fn lacks(layer: &Layer, element_type: ElementType, format: &'static str) -> Self {
        let in_safetensors = safetensors::dtype(element_type).is_some();
        Self::Lacks { name: layer.name().to_owned(), element_type, format, in_safetensors }
    }
}

impl<'m> Export<'m> {
    /// Creates a `.safetensors` file of all constants of a model and its bodies, in the types in which they are stored.
    /// A constant has the path of its layer as its name, and the path with its id if another one has the same path.
    ///
    /// # Errors
    /// [`ExportError`] for the first constant that the format lacks, or whose bytes are missing.
    ///
    /// # Examples
    /// ```
    /// use typelift::values::Export;
    /// let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let mut file = Vec::new();
    /// Export::safetensors(&model)?.write(&mut file)?;
    /// let header = r#"{"scale":{"data_offsets":[0,4],"dtype":"F32","shape":[]}}"#;
    /// assert!(file[8..].starts_with(header.as_bytes()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn safetensors(model: &'m Model) -> Result<Self, ExportError> {
        let (mut found, mut names) = (Vec::new(), BTreeSet::new());
        for (place, graph) in model.walk() {
            for layer in graph.layers().filter(|layer| ops::is_constant(layer)) {
                let (element_type, dims, offset, size) = stored(layer, model.weights())?;
                let dtype = safetensors::dtype(element_type);
                let dtype = dtype.ok_or_else(|| ExportError::lacks(layer, element_type, ".safetensors"))?;
                let mut name = place.path_to(layer.name());
                if !names.insert(name.clone()) {
                    name = place.path_to(format_args!("id:{}", layer.id()));
                }
                found.push((Reverse(element_type.bits()), (name, dtype, dims, size), offset));
            }
        }
        // Wide types come first, so that each value has a place that is a multiple of its size.
        found.sort_by(|a, b| (a.0, &a.1.0).cmp(&(b.0, &b.1.0)));
        let parts = found.iter().map(|(_, (.., size), offset)| TensorBytes::Stored(*offset, *size)).collect();
        let head = safetensors::head(found.into_iter().map(|(_, tensor, _)| tensor));
        Ok(Self { head, parts, weights: model.weights() })
    }

    pub(crate) fn npy_stored(layer: &Layer, weights: &'m Weights) -> Result<Self, ExportError> {
        let (element_type, dims, offset, size) = stored(layer, weights)?;
        Ok(Self {
            head: npy_head(layer, element_type, &dims)?,
            parts: vec![TensorBytes::Stored(offset, size)],
            weights,
        })
    }

    pub(crate) fn npy_of(layer: &Layer, values: &Array, weights: &'m Weights) -> Result<Self, ExportError> {
        let head = npy_head(layer, values.element_type, &values.dims)?;
        Ok(Self { head, parts: vec![TensorBytes::Computed(values.encode().unwrap_or_default())], weights })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Bytes that cannot be read or written.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.head)?;
        self.parts.iter().try_for_each(|part| match part {
            TensorBytes::Stored(offset, size) => {
                self.weights.each_piece(*offset, *size, &mut |bytes| to.write_all(bytes))
            }
            TensorBytes::Computed(bytes) => to.write_all(bytes),
        })
    }
}

fn npy_head(layer: &Layer, element_type: ElementType, dims: &[usize]) -> Result<Vec<u8>, ExportError> {
    npy::head(element_type, dims).ok_or_else(|| ExportError::lacks(layer, element_type, ".npy"))
}

fn stored(layer: &Layer, weights: &Weights) -> Result<(ElementType, Vec<usize>, u64, u64), ExportError> {
    let found = Stored::of(layer).and_then(|stored| {
        let shape: Shape = layer.attribute("shape")?.parse().ok()?;
        let dims = shape.dims()?.iter().map(|dim| usize::try_from(dim.value()?).ok()).collect::<Option<_>>()?;
        let size = stored.size()?;
        let is_there = size == 0 || weights.len().is_some_and(|length| stored.offset.saturating_add(size) <= length);
        is_there.then_some((stored.element_type, dims, stored.offset, size))
    });
    found.ok_or_else(|| ExportError::Unknown(format!("the values of `{}` are not in the weights", layer.name())))
}
