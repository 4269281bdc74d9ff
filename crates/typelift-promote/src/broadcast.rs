//! Broadcasting of shapes in element-wise operations, one dimension at a time.
//!
//! Nothing in this module allocates. The caller chooses the collection that holds the result, such as an `ArrayVec`.

use core::fmt;

use crate::Dim;

/// Reason why shapes do not broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Two dimensions have no length in common, and the one that differs may not be stretched from 1.
    Dims {
        /// The axis of the result, counted from 0.
        axis: usize,
        /// The dimension of the shapes before it.
        left: Dim,
        /// The dimension of the shape that does not fit.
        right: Dim,
    },
    /// Two dimensions differ although they must be equal.
    Differ {
        /// The axis, counted from 0.
        axis: usize,
        /// The dimension of the shapes before it.
        left: Dim,
        /// The dimension of the shape that differs.
        right: Dim,
    },
    /// The ranks differ although they must be equal.
    Ranks {
        /// The rank of the first shape.
        left: usize,
        /// The rank of the shape that differs.
        right: usize,
    },
    /// The second shape does not fit onto the first from an axis on.
    Placement {
        /// The rank of the first shape.
        left: usize,
        /// The rank of the second shape.
        right: usize,
        /// The first axis; -1 aligns the last axes.
        axis: i64,
    },
    /// The result does not have the shape of the first operand, in which it is to be stored.
    Grows {
        /// The axis of the result, counted from 0.
        axis: usize,
        /// The dimension of the first operand; 1 if the operand has no such axis.
        left: Dim,
        /// The dim of the result.
        right: Dim,
    },
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dims { axis, left, right } => write!(f, "axis {axis}: {left} and {right} do not broadcast"),
            Self::Differ { axis, left, right } => write!(f, "axis {axis}: {left} and {right} differ"),
            Self::Ranks { left, right } => write!(f, "ranks {left} and {right} differ"),
            Self::Placement { left, right, axis: -1 } => write!(f, "rank {right} does not fit into rank {left}"),
            Self::Placement { left, right, axis } => {
                write!(f, "rank {right} does not fit into rank {left} from axis {axis} on")
            }
            Self::Grows { axis, left, right } => {
                write!(
                    f,
                    "axis {axis}: the result has {right} where the first operand, which is to take it, has {left}"
                )
            }
        }
    }
}

impl core::error::Error for Clash {}

/// Returns the shape of operands that must all have one shape.
///
/// # Errors
/// [`Clash::Ranks`] if the ranks differ, or [`Clash::Differ`] with the first axis on which the shapes differ.
pub fn equal<'a, C: FromIterator<Dim>>(mut shapes: impl Iterator<Item = &'a [Dim]> + Clone) -> Result<C, Clash> {
    let first = shapes.next().unwrap_or_default();
    if let Some(other) = shapes.clone().find(|other| other.len() != first.len()) {
        return Err(Clash::Ranks { left: first.len(), right: other.len() });
    }
    let dims = first.iter().enumerate().map(|(axis, &first)| {
        let mut others = shapes.clone().filter_map(|shape| shape.get(axis));
        others.try_fold(first, |left, &right| (left & right).ok_or(Clash::Differ { axis, left, right }))
    });
    dims.collect()
}

/// Returns the shape of any number of operands by NumPy's rule, which PyTorch, JAX and Paddle share. Shapes are aligned
/// at the last axis. A length of 1 or a missing axis takes the length of the other operands.
///
/// ```
/// use typelift_promote::{Dim, broadcast};
/// let fixed = |lengths: &[i64]| lengths.iter().map(|&length| Dim::fixed(length)).collect::<Vec<_>>();
/// let shapes = [fixed(&[2, 1, 4]), fixed(&[3, 1]), fixed(&[])];
/// let all = broadcast::numpy(shapes.iter().map(Vec::as_slice));
/// assert_eq!(all, Ok(fixed(&[2, 3, 4])));
/// let clash = broadcast::numpy::<Vec<_>>([&fixed(&[2, 3])[..], &fixed(&[4])].into_iter()).unwrap_err();
/// assert_eq!(clash.to_string(), "axis 1: 3 and 4 do not broadcast");
/// ```
///
/// # Errors
/// [`Clash::Dims`] with the first axis on which the shapes do not broadcast.
pub fn numpy<'a, C: FromIterator<Dim>>(shapes: impl Iterator<Item = &'a [Dim]> + Clone) -> Result<C, Clash> {
    let rank = shapes.clone().map(<[Dim]>::len).max().unwrap_or(0);
    let dims = (0..rank).map(|axis| {
        let mut here = shapes.clone().filter_map(|shape| shape.get((axis + shape.len()).checked_sub(rank)?));
        let first = here.next().copied().unwrap_or(Dim::ONE);
        here.try_fold(first, |left, &right| left.broadcast(right).ok_or(Clash::Dims { axis, left, right }))
    });
    dims.collect()
}

/// Returns the shape of two operands by PaddlePaddle's former rule, `pdpd` in OpenVINO. The second shape is aligned
/// with the first from `axis` on, where -1 aligns the last axes. Only the second shape is stretched.
///
/// # Errors
/// [`Clash::Placement`] if the second shape does not fit; [`Clash::Dims`] with the first axis on which the shapes do
/// not broadcast.
pub fn pdpd<C: FromIterator<Dim>>(left: &[Dim], right: &[Dim], axis: i64) -> Result<C, Clash> {
    let room = left.len().checked_sub(right.len());
    let start = if axis == -1 { room } else { usize::try_from(axis).ok() };
    let Some(start) = start.filter(|start| room.is_some_and(|room| *start <= room)) else {
        return Err(Clash::Placement { left: left.len(), right: right.len(), axis });
    };
    let stretched = left.iter().enumerate().map(|(axis, &left)| {
        let Some(&right) = axis.checked_sub(start).and_then(|axis| right.get(axis)) else { return Ok(left) };
        let stretched = match (left.value(), right.value()) {
            (Some(l), Some(r)) if r > l => None,
            _ => left.broadcast(right),
        };
        stretched.ok_or(Clash::Dims { axis, left, right })
    });
    stretched.collect()
}

/// Returns the shape of the first operand, in which the result of an in-place operation is stored. The other operands
/// must broadcast to it.
///
/// # Errors
/// The errors of [`numpy`], and [`Clash::Grows`] if the result would be larger than the first operand.
pub fn in_place<'a, C: FromIterator<Dim>>(shapes: impl Iterator<Item = &'a [Dim]> + Clone) -> Result<C, Clash> {
    let first = shapes.clone().next().unwrap_or_default();
    let others = shapes.clone().skip(1);
    let rank = shapes.clone().map(<[Dim]>::len).max().unwrap_or(0);
    // Shapes that do not broadcast at all are reported first.
    numpy::<Nothing>(shapes)?;
    let dim = |axis: usize| {
        let at = |shape: &[Dim]| (axis + shape.len()).checked_sub(rank).and_then(|axis| shape.get(axis).copied());
        let own = at(first);
        let left = own.unwrap_or(Dim::ONE);
        match others.clone().filter_map(at).find(|&right| own.is_none() || left == Dim::ONE && !right.contains(1)) {
            Some(right) => Err(Clash::Grows { axis, left, right }),
            None => Ok(left),
        }
    };
    (0..rank).map(dim).collect()
}

/// A collection that discards its items.
struct Nothing;

impl FromIterator<Dim> for Nothing {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Self {
        dims.into_iter().for_each(drop);
        Self
    }
}
