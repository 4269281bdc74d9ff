//! Shapes: what is known of the dimensions of a tensor, and how shapes combine.
//!
//! A [`Shape`] is OpenVINO's partial shape. Its rank may be unknown, and each [`Dim`] is an interval of lengths. Nothing
//! here knows of layers or files; the rules are those of OpenVINO 2026.4.1, taken by running it.

mod broadcast;
mod parse;

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;
use thiserror::Error;

pub use broadcast::{AutoBroadcast, BroadcastMode, ListInput, SelectMismatch, paddle_broadcast};
pub use parse::{Oddity, OddityKind, ParseShapeError, ShapeFault};
pub use typelift_promote::Dim;
use typelift_promote::ElementType;

/// What is known of the shape of a tensor: its dimensions, or not even how many there are.
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
    /// `None`: the rank is dynamic. Shared, because most tensors of a model have the shape of another one.
    dims: Option<Arc<[Dim]>>,
}

/// What a tensor is, but for its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The type of its elements.
    pub element_type: ElementType,
    /// Its shape, as far as it is known.
    pub shape: Shape,
}

impl TensorType {
    /// A tensor of which nothing is known.
    #[must_use]
    pub fn dynamic() -> Self {
        Self::new(ElementType::Dynamic, Shape::dynamic())
    }

    /// A tensor of this element type and shape.
    #[must_use]
    pub fn new(element_type: ElementType, shape: Shape) -> Self {
        Self { element_type, shape }
    }
}

/// Element type and shape: `f32[?,3]`.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element_type, self.shape)
    }
}

/// Why two shapes do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShapeMismatch {
    /// The shapes should be the same, but their ranks are not.
    #[error("ranks {left} and {right} differ")]
    Ranks {
        /// The rank of the first shape.
        left: usize,
        /// The rank of the second shape.
        right: usize,
    },
    /// The shapes should be the same, but two dimensions have no length in common.
    #[error("axis {axis}: {left} and {right} differ")]
    Dims {
        /// The axis, counted from 0.
        axis: usize,
        /// The dimension of the first shape.
        left: Dim,
        /// The dimension of the second shape.
        right: Dim,
    },
    /// Two dimensions neither have a length in common, nor may that be stretched which is 1.
    #[error("axis {axis}: {left} and {right} do not broadcast")]
    Broadcast {
        /// The axis of the resulting shape, counted from 0.
        axis: usize,
        /// The dimension of the first shape.
        left: Dim,
        /// The dimension of the second shape.
        right: Dim,
    },
    /// One shape cannot be laid over another from an axis on.
    #[error("rank {right} does not fit into rank {left}{}", if *axis == -1 { String::new() } else { format!(" from axis {axis} on") })]
    Placement {
        /// The rank of the shape laid over.
        right: usize,
        /// The rank of the shape beneath.
        left: usize,
        /// The first axis; -1 aligns the last axes.
        axis: i64,
    },
    /// The mapping of axes has not one for each axis of the data.
    #[error("{axes} axes are mapped, but the data has rank {rank}")]
    AxisCount {
        /// The number of axes mapped.
        axes: i64,
        /// The rank of the data.
        rank: usize,
    },
    /// An axis is not one of the target.
    #[error("axis {axis} is outside of the target's rank {rank}")]
    AxisRange {
        /// The axis as given.
        axis: i64,
        /// The rank of the target.
        rank: usize,
    },
    /// The mapping of axes would transpose the data.
    #[error("axes are mapped out of order")]
    AxisOrder,
}

impl Shape {
    /// A rank above this is never worth building from a number alone, see [`Shape::of_rank`].
    pub const MAX_RANK: usize = 1024;

    /// The shape of a single value: `[]`.
    #[must_use]
    pub fn scalar() -> Self {
        Self { dims: Some(Arc::default()) }
    }

    /// Nothing known, not even the rank: `[...]`.
    #[must_use]
    pub fn dynamic() -> Self {
        Self { dims: None }
    }

    /// `rank` dimensions of any length. Beyond [`Shape::MAX_RANK`] the rank counts as dynamic: the number may come from
    /// a file, and no tensor has that many dimensions.
    #[must_use]
    pub fn of_rank(rank: usize) -> Self {
        if rank <= Self::MAX_RANK { std::iter::repeat_n(Dim::ANY, rank).collect() } else { Self::dynamic() }
    }

    /// Dimensions of exactly these lengths; see [`Dim::fixed`].
    #[must_use]
    pub fn fixed(lengths: impl IntoIterator<Item = i64>) -> Self {
        lengths.into_iter().map(Dim::fixed).collect()
    }

    /// The number of dimensions, if known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.dims().map(<[Dim]>::len)
    }

    /// The dimensions, if their number is known.
    #[must_use]
    pub fn dims(&self) -> Option<&[Dim]> {
        self.dims.as_deref()
    }

    /// The dimensions, to be changed in place.
    #[must_use]
    pub fn dims_mut(&mut self) -> Option<&mut [Dim]> {
        self.dims.as_mut().map(Arc::make_mut)
    }

    /// Whether every length is known.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.dims().is_some_and(|dims| dims.iter().all(|dim| dim.is_fixed()))
    }

    /// The lengths, if all are known.
    #[must_use]
    pub fn to_static(&self) -> Option<Vec<i64>> {
        self.dims()?.iter().map(|dim| dim.value()).collect()
    }

    /// The number of elements, if it is known and fits.
    #[must_use]
    pub fn element_count(&self) -> Option<u64> {
        if !self.is_static() {
            return None;
        }
        let mut lengths = self.dims()?.iter().map(|dim| dim.lower().unsigned_abs());
        if lengths.clone().any(|length| length == 0) { Some(0) } else { lengths.try_fold(1, u64::checked_mul) }
    }

    /// What is known when both shapes are true of one tensor: each dimension the intersection, a dynamic rank giving way
    /// to the other shape. OpenVINO's `merge_into`.
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

    /// Whether some tensor can have both shapes.
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.all_dims(other, Dim::is_compatible).unwrap_or(true)
    }

    /// Whether every tensor of shape `other` also has this one.
    #[must_use]
    pub fn relaxes(&self, other: &Self) -> bool {
        self.all_dims(other, Dim::relaxes).unwrap_or(self.dims.is_none())
    }

    /// Whether every tensor of this shape also has the shape `other`.
    #[must_use]
    pub fn refines(&self, other: &Self) -> bool {
        other.relaxes(self)
    }

    /// Whether the ranks are equal and `holds` for each pair of dimensions; `None` if a rank is dynamic.
    fn all_dims(&self, other: &Self, holds: impl Fn(Dim, Dim) -> bool) -> Option<bool> {
        let (left, right) = (self.dims()?, other.dims()?);
        Some(left.len() == right.len() && left.iter().zip(right).all(|(&a, &b)| holds(a, b)))
    }

    /// The text of a `shape` attribute, as OpenVINO's writer prints it: no brackets, `...` for a dynamic rank, and
    /// nothing at all for rank 0.
    ///
    /// ```
    /// # use typelift::shape::Shape;
    /// assert_eq!(Shape::fixed([2, 3]).to_attribute().to_string(), "2,3");
    /// ```
    #[must_use]
    pub fn to_attribute(&self) -> impl fmt::Display + '_ {
        Attribute(self)
    }
}

struct Attribute<'a>(&'a Shape);

impl fmt::Display for Attribute<'_> {
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

/// `base` with the dimensions from axis `start` on combined, each with one of `over`, by `rule`; where it gives nothing,
/// the error is that which `clash` makes of the axis and both dimensions.
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
        // Few tensors have more dimensions, so that nothing but what is shared is allocated.
        let dims: SmallVec<[Dim; 8]> = dims.into_iter().collect();
        Self { dims: Some(if dims.is_empty() { Arc::default() } else { Arc::from(&dims[..]) }) }
    }
}

/// As OpenVINO prints a partial shape: `[1,?,3..5]`, `[]`, `[...]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        Attribute(self).fmt(f)?;
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
