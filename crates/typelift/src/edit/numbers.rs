//! Reading of constants' values as numbers.

use typelift_promote::ElementType;

use crate::edit::Edit;
use crate::model::graph::{Layer, Output};
use crate::model::weights::{Weights, stored_size};
use crate::ops;
use crate::ops::values::array::{Array, Data, Few};

/// Values in a run of a sample. Those of every element type fill whole bytes.
pub(crate) const RUN: usize = 64;

pub(crate) fn element_count(dims: &[usize]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim as u64))
}

/// `None` if these are all values.
pub(crate) fn runs(count: u64, most: usize) -> Option<impl Iterator<Item = u64>> {
    let (runs, every) = (most.div_ceil(RUN).max(1) as u64, count.div_ceil(RUN as u64));
    // The last run ends before the end, so that it is whole.
    (runs < every).then(|| (0..runs).map(move |at| at * (every - 1) / runs))
}

impl Edit<'_> {
    /// Returns the values of a constant's tensor, as [`Layer::numbers`] does.
    pub fn numbers(&self, tensor: Output) -> Option<Vec<f64>> {
        self.layer(tensor.layer).filter(|_| tensor.port == 0)?.numbers(self.weights())
    }
}

impl Layer {
    /// Returns the values of a constant in the order of storage; `None` for other layers, for strings, and for missing
    /// weights. Integers beyond 2^53 are rounded.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scale = model.graph().layer(model.graph().find("scale")?).unwrap();
    /// assert_eq!(scale.numbers(model.weights()), Some(vec![2.0]));
    /// assert_eq!(scale.sample(model.weights(), 1000), Some(vec![2.0]));
    /// assert_eq!(scale.bytes(model.weights()), Some(2_f32.to_le_bytes().to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn numbers(&self, weights: &Weights) -> Option<Vec<f64>> {
        let (element_type, dims) = self.stored_as()?;
        Some(self.values(weights, element_type, dims)?.to_floats().into_vec())
    }

    /// Returns about `most` values of a constant in runs that are spread evenly over it, or all values if they are no
    /// more; `None` for other layers, for strings, and for missing weights.
    pub fn sample(&self, weights: &Weights, most: usize) -> Option<Vec<f64>> {
        Some(self.sampled(weights, most)?.iter().flat_map(|part| part.to_floats().into_vec()).collect())
    }

    /// Returns the values of [`sample`](Self::sample) as integers, none of them rounded; `None` for floats.
    pub fn sample_integers(&self, weights: &Weights, most: usize) -> Option<Vec<i128>> {
        let parts = self.sampled(weights, most)?;
        let integers = |part: &Array| match &part.data {
            Data::Ints(integers) => Some(integers.iter().collect::<Vec<_>>()),
            Data::Floats(_) => None,
        };
        Some(parts.iter().map(integers).collect::<Option<Vec<_>>>()?.concat())
    }

    fn sampled(&self, weights: &Weights, most: usize) -> Option<Vec<Array>> {
        let (element_type, dims) = self.stored_as()?;
        let Some(runs) = runs(element_count(&dims)?, most) else {
            return Some(vec![self.values(weights, element_type, dims)?]);
        };
        let (offset, run) = (self.byte_count("offset")?, stored_size(element_type, RUN as u64)? as u64);
        let parts = runs.map(|start| {
            let bytes = weights.read(offset.checked_add(start.checked_mul(run)?)?, usize::try_from(run).ok()?)?;
            Array::decode_all(element_type, std::iter::once(RUN).collect(), &bytes)
        });
        parts.collect()
    }

    /// Returns the stored bytes of a constant of any element type; `None` for other layers and for missing weights.
    pub fn bytes(&self, weights: &Weights) -> Option<Vec<u8>> {
        let (offset, size) = (self.byte_count("offset").filter(|_| ops::is_constant(self))?, self.byte_count("size")?);
        weights.read(offset, usize::try_from(size).ok()?)
    }

    pub(crate) fn stored_as(&self) -> Option<(ElementType, Few<usize>)> {
        let shape = self.attribute("shape").filter(|_| ops::is_constant(self))?;
        let element_type = self.named_type("element_type")?;
        let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty()).map(str::parse);
        Some((element_type, dims.collect::<Result<_, _>>().ok()?))
    }

    pub(crate) fn values(&self, weights: &Weights, element_type: ElementType, dims: Few<usize>) -> Option<Array> {
        let count = element_count(&dims)?;
        weights.hold(count).ok()?;
        let length = usize::try_from(stored_size(element_type, count)?).ok()?;
        let bytes = weights.read(self.byte_count("offset")?, length)?;
        Array::decode_all(element_type, dims, &bytes)
    }
}
