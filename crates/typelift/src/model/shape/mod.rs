//! Shapes: the known dimensions of a tensor, and the rules that combine shapes.
//!
//! A [`Shape`] is OpenVINO's partial shape: its rank may be unknown, and each [`Dim`] is an interval of lengths. The
//! module is independent of layers and files. The rules were recorded from OpenVINO 2026.4.1.

pub(crate) mod broadcast;
pub(crate) mod parse;

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;
use thiserror::Error;

pub(crate) use broadcast::{AutoBroadcast, BroadcastMode, ListInput};
pub(crate) use parse::{Oddity, ParseShapeError, pairs};
pub(crate) use typelift_promote::Dim;
use typelift_promote::ElementType;

/// Partial shape of a tensor: its dimensions, or an unknown rank.
///
/// ```
/// use typelift::shape::{Dim, Shape};
/// let shape: Shape = "1,?,3..5".parse().unwrap();
/// assert_eq!(shape.rank(), Some(3));
/// assert_eq!(shape.merge(&Shape::from_iter([Dim::ANY, Dim::fixed(8), Dim::fixed(4)])).unwrap().to_string(), "[1,8,4]");
/// assert_eq!(Shape::dynamic().to_string(), "[...]");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// `None` for a dynamic rank. Shared, because most tensors of a model have the same shape as another one.
    dims: Option<Arc<[Dim]>>,
}

/// Type of a tensor: element type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The type of its elements.
    pub element_type: ElementType,
    /// The shape, as far as it is known.
    pub shape: Shape,
}

impl TensorType {
    /// Returns a tensor type with nothing known.
    pub fn dynamic() -> Self {
        Self::new(ElementType::Dynamic, Shape::dynamic())
    }

    pub(crate) fn new(element_type: ElementType, shape: Shape) -> Self {
        Self { element_type, shape }
    }
}

/// Formats element type and shape: `f32[?,3]`.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element_type, self.shape)
    }
}

/// Reason why two shapes do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShapeMismatch {
    /// The ranks differ although the shapes must be equal.
    #[error("ranks {left} and {right} differ")]
    Ranks {
        /// The rank of the first shape.
        left: usize,
        /// The rank of the second shape.
        right: usize,
    },
    /// Two dimensions have no length in common although the shapes must be equal.
    #[error("axis {axis}: {left} and {right} differ")]
    Dims {
        /// The axis, counted from 0.
        axis: usize,
        /// The dimension of the first shape.
        left: Dim,
        /// The dimension of the second shape.
        right: Dim,
    },
    /// Two dimensions differ, and neither is 1, so that they cannot be broadcast.
    #[error("axis {axis}: {left} and {right} do not broadcast")]
    Broadcast {
        /// The axis of the resulting shape, counted from 0.
        axis: usize,
        /// The dimension of the first shape.
        left: Dim,
        /// The dimension of the second shape.
        right: Dim,
    },
    /// The second shape has too many dimensions to be aligned with the first from an axis on.
    #[error("rank {right} does not fit into rank {left}{}", if *axis == -1 { String::new() } else { format!(" from axis {axis} on") })]
    Placement {
        /// The rank of the second shape.
        right: usize,
        /// The rank of the first shape.
        left: usize,
        /// The first aligned axis; -1 aligns the last axes.
        axis: i64,
    },
    /// The axes mapping does not have one entry for each axis of the data.
    #[error("{axes} axes are mapped, but the data has rank {rank}")]
    AxisCount {
        /// The number of entries.
        axes: i64,
        /// The rank of the data.
        rank: usize,
    },
    /// An axis of the mapping does not exist in the target.
    #[error("axis {axis} does not exist in the target, which has rank {rank}")]
    AxisRange {
        /// The axis as given.
        axis: i64,
        /// The rank of the target.
        rank: usize,
    },
    /// The axes mapping would transpose the data.
    #[error("the mapped axes are not in ascending order")]
    AxisOrder,
}

impl Shape {
    /// Largest rank that a shape is created with from a number alone, see [`Shape::of_rank`].
    pub const MAX_RANK: usize = 1024;

    /// The shape of a single value: `[]`.
    pub(crate) fn scalar() -> Self {
        Self { dims: Some(Arc::default()) }
    }

    /// Returns the shape of unknown rank: `[...]`.
    pub fn dynamic() -> Self {
        Self { dims: None }
    }

    /// Returns `rank` dimensions of any length. Beyond [`Shape::MAX_RANK`] the rank counts as dynamic, because the
    /// number may come from a damaged file.
    pub fn of_rank(rank: usize) -> Self {
        if rank <= Self::MAX_RANK { std::iter::repeat_n(Dim::ANY, rank).collect() } else { Self::dynamic() }
    }

    /// Returns dimensions of exactly these lengths; see [`Dim::fixed`].
    pub fn fixed(lengths: impl IntoIterator<Item = i64>) -> Self {
        lengths.into_iter().map(Dim::fixed).collect()
    }

    /// Returns the number of dimensions, if known.
    pub fn rank(&self) -> Option<usize> {
        self.dims().map(<[Dim]>::len)
    }

    /// Returns the dimensions, if their number is known.
    pub fn dims(&self) -> Option<&[Dim]> {
        self.dims.as_deref()
    }

    /// Returns the dimensions for changes in place.
    #[must_use]
    pub fn dims_mut(&mut self) -> Option<&mut [Dim]> {
        self.dims.as_mut().map(Arc::make_mut)
    }

    /// True if every length is known.
    pub fn is_static(&self) -> bool {
        self.dims().is_some_and(|dims| dims.iter().all(|dim| dim.is_fixed()))
    }

    /// Returns the lengths, if all are known.
    pub fn to_static(&self) -> Option<Vec<i64>> {
        self.dims()?.iter().map(|dim| dim.value()).collect()
    }

    /// Returns the number of elements, if it is known and fits.
    pub fn element_count(&self) -> Option<u64> {
        if !self.is_static() {
            return None;
        }
        let mut lengths = self.dims()?.iter().map(|dim| dim.lower().unsigned_abs());
        if lengths.clone().any(|length| length == 0) { Some(0) } else { lengths.try_fold(1, u64::checked_mul) }
    }

    /// Merges two shapes of one tensor as OpenVINO's `merge_into` does: each dimension is the intersection, and a
    /// dynamic rank yields to the other shape.
    ///
    /// # Errors
    /// [`ShapeMismatch`] with the first axis on which they contradict each other.
    pub fn merge(&self, other: &Self) -> Result<Self, ShapeMismatch> {
        let (left, right) = match (self.dims(), other.dims()) {
            (None, _) => return Ok(other.clone()),
            (_, None) => return Ok(self.clone()),
            (Some(left), Some(right)) => (left, right),
        };
        if left.len() != right.len() {
            return Err(ShapeMismatch::Ranks { left: left.len(), right: right.len() });
        }
        overlay(self, 0, right, |a, b| a & b, |axis, left, right| ShapeMismatch::Dims { axis, left, right })
    }

    /// True if a tensor of one shape may also have the other: no dimension contradicts.
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.all_dims(other, Dim::is_compatible).unwrap_or(true)
    }

    /// True if every tensor of shape `other` also has this one.
    pub fn relaxes(&self, other: &Self) -> bool {
        self.all_dims(other, Dim::relaxes).unwrap_or(self.dims.is_none())
    }

    /// True if every tensor of this shape also has the shape `other`.
    pub fn refines(&self, other: &Self) -> bool {
        other.relaxes(self)
    }

    /// `None` if a rank is dynamic.
    fn all_dims(&self, other: &Self, holds: impl Fn(Dim, Dim) -> bool) -> Option<bool> {
        let (left, right) = (self.dims()?, other.dims()?);
        Some(left.len() == right.len() && left.iter().zip(right).all(|(&a, &b)| holds(a, b)))
    }

    /// Returns the text of a `shape` attribute as OpenVINO writes it: no brackets, `...` for a dynamic rank, and an
    /// empty text for rank 0.
    ///
    /// ```
    /// # use typelift::shape::Shape;
    /// assert_eq!(Shape::fixed([2, 3]).to_attribute().to_string(), "2,3");
    /// ```
    pub fn to_attribute(&self) -> impl fmt::Display + '_ {
        ShapeAttribute(self)
    }
}

struct ShapeAttribute<'a>(&'a Shape);

impl fmt::Display for ShapeAttribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = self.0.dims() else { return f.write_str("...") };
        for (axis, dim) in dims.iter().enumerate() {
            if axis > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

/// Combines the dimensions of `base` from axis `start` on with those of `over` by `rule`. If `rule` returns `None`, the
/// error is `clash` of the axis and both dimensions.
fn overlay<E>(
    base: &Shape,
    start: usize,
    over: &[Dim],
    rule: impl Fn(Dim, Dim) -> Option<Dim>,
    clash: impl FnOnce(usize, Dim, Dim) -> E,
) -> Result<Shape, E> {
    let mut shape = base.clone();
    let beneath = base.dims().unwrap_or_default().iter().enumerate().skip(start);
    for ((axis, &dim), &over) in beneath.zip(over) {
        match rule(dim, over) {
            Some(same) if same == dim => {}
            Some(result) => shape.dims_mut().unwrap_or_default()[axis] = result,
            None => return Err(clash(axis, dim, over)),
        }
    }
    Ok(shape)
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Self {
        // Inline storage for 8 dimensions, so that usually only the shared result is allocated.
        let dims: SmallVec<[Dim; 8]> = dims.into_iter().collect();
        Self { dims: Some(if dims.is_empty() { Arc::default() } else { Arc::from(&dims[..]) }) }
    }
}

/// Formats a partial shape as OpenVINO prints it: `[1,?,3..5]`, `[]`, `[...]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        ShapeAttribute(self).fmt(f)?;
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dims() {
            Some(dims) => dims.fmt(f),
            None => f.write_str("[...]"),
        }
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_counted_without_overflow() {
        let count = |text: &str| text.parse::<Shape>().unwrap().element_count();
        assert_eq!(count("2,3,4"), Some(24));
        assert_eq!(count(""), Some(1));
        assert_eq!(count("2,?"), None);
        assert_eq!(count("..."), None);
        assert_eq!(count("5..2"), None);
        assert_eq!(count("4294967296,4294967295"), Some(18_446_744_069_414_584_320));
        assert_eq!(count("4294967296,4294967296"), None);
        assert_eq!(count("4294967296,4294967296,0"), Some(0));
    }

    #[test]
    fn clones_share_their_dimensions_until_one_changes() {
        assert!(size_of::<Shape>() <= 16);
        let shape = Shape::fixed([2, 3]);
        let mut other = shape.clone();
        assert!(std::ptr::eq(shape.dims().unwrap(), other.dims().unwrap()));
        other.dims_mut().unwrap()[0] = Dim::ANY;
        assert_eq!((shape, other), (Shape::fixed([2, 3]), "?,3".parse().unwrap()));
    }

    #[test]
    fn a_rank_from_a_file_cannot_exhaust_memory() {
        assert_eq!(Shape::of_rank(Shape::MAX_RANK).rank(), Some(Shape::MAX_RANK));
        assert_eq!(Shape::of_rank(usize::MAX), Shape::dynamic());
    }

    #[test]
    fn shapes_serialize_as_they_print() {
        let shapes = [Shape::scalar(), Shape::dynamic(), "1,?,3..5,..4,7..".parse().unwrap()];
        assert_eq!(serde_json::to_string(&shapes).unwrap(), r#"["[]","[...]","[1,?,3..5,..4,7..]"]"#);
        let attributes = shapes.map(|shape| shape.to_attribute().to_string());
        assert_eq!(attributes, ["", "...", "1,?,3..5,..4,7.."]);
    }

    #[test]
    fn a_clash_names_the_axis_of_the_result_and_both_sides_in_order() {
        let (long, short) = (Shape::fixed([2, 5, 3]), Shape::fixed([4, 3]));
        let told = |left, right| AutoBroadcast::Numpy.combine(left, right).unwrap_err().to_string();
        assert_eq!(told(&long, &short), "axis 1: 5 and 4 do not broadcast");
        assert_eq!(told(&short, &long), "axis 1: 4 and 5 do not broadcast");
        assert_eq!(long.merge(&short).unwrap_err().to_string(), "ranks 3 and 2 differ");
        let target = BroadcastMode::Numpy.combine(&short, ListInput::Values(&long)).unwrap_err().to_string();
        assert_eq!(target, "axis 1: 4 and 5 do not broadcast");
        let target = BroadcastMode::Numpy.combine(&long, ListInput::Values(&short)).unwrap_err().to_string();
        assert_eq!(target, "rank 3 does not fit into rank 2");
        let pdpd = AutoBroadcast::Pdpd { axis: 2 }.combine(&long, &short).unwrap_err().to_string();
        assert_eq!(pdpd, "rank 2 does not fit into rank 3 from axis 2 on");
        let select = AutoBroadcast::Numpy.select(&short, &Shape::scalar(), &long).unwrap_err().to_string();
        assert_eq!(select, "input 0: axis 1: 5 and 4 do not broadcast");
    }
}
