//! How element-wise operations bring shapes together, dim by dim.
//!
//! Nothing here allocates: the result is collected into what the caller names, an array list or a shape of its own.

use core::fmt;

use crate::Dim;

/// Why shapes do not broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Two dims neither have a length in common, nor may the one be stretched that is 1.
    Dims {
        /// The axis of the result, counted from 0.
        axis: usize,
        /// The dim of the shapes before.
        left: Dim,
        /// The dim of the shape that does not fit.
        right: Dim,
    },
    /// Two dims that must be equal are not.
    Differ {
        /// The axis, counted from 0.
        axis: usize,
        /// The dim of the shapes before.
        left: Dim,
        /// The dim of the shape that differs.
        right: Dim,
    },
    /// The ranks differ, and must not.
    Ranks {
        /// The rank of the first shape.
        left: usize,
        /// The rank of the shape that differs.
        right: usize,
    },
    /// The second shape cannot be laid over the first from an axis on.
    Placement {
        /// The rank of the first shape.
        left: usize,
        /// The rank of the second shape.
        right: usize,
        /// The first axis; -1 aligns the last axes.
        axis: i64,
    },
    /// The result does not have the shape of the first operand, which is to take it.
    Grows {
        /// The axis of the result, counted from 0.
        axis: usize,
        /// The dim of the first operand; 1 where it has none.
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

/// The shape of operands that must have one shape.
///
/// # Errors
/// [`Clash::Ranks`], or [`Clash::Differ`] with the first axis on which they do.
pub fn equal<'a, C: FromIterator<Dim>>(mut shapes: impl Iterator<Item = &'a [Dim]> + Clone) -> Result<C, Clash> {
    let first = shapes.next().unwrap_or_default();
    if let Some(other) = shapes.clone().find(|other| other.len() != first.len()) {
        return Err(Clash::Ranks { left: first.len(), right: other.len() });
    }
    let dim = |(axis, &first): (usize, &Dim)| {
        let mut others = shapes.clone().filter_map(|shape| shape.get(axis));
        others.try_fold(first, |left, &right| (left & right).ok_or(Clash::Differ { axis, left, right }))
    };
    first.iter().enumerate().map(dim).collect()
}

/// The shape of any number of operands by the rule of NumPy, which PyTorch, JAX and Paddle share: aligned at the last
/// axis; a length of 1, or a missing axis, takes the length of the others.
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
/// [`Clash::Dims`] with the first axis of the result that cannot be.
pub fn numpy<'a, C: FromIterator<Dim>>(shapes: impl Iterator<Item = &'a [Dim]> + Clone) -> Result<C, Clash> {
    let rank = shapes.clone().map(<[Dim]>::len).max().unwrap_or(0);
    let dim = |axis: usize| {
        let mut here = shapes.clone().filter_map(|shape| shape.get((axis + shape.len()).checked_sub(rank)?));
        let first = here.next().copied().unwrap_or(Dim::ONE);
        here.try_fold(first, |left, &right| left.broadcast(right).ok_or(Clash::Dims { axis, left, right }))
    };
    (0..rank).map(dim).collect()
}

/// The shape of two operands by PaddlePaddle's former rule, `pdpd` in OpenVINO: the second shape is laid over the first
/// from `axis` on (-1 aligns the last axes), and only it is stretched.
///
/// # Errors
/// [`Clash::Placement`] if it does not fit; [`Clash::Dims`] with the first axis of the result that cannot be.
pub fn pdpd<C: FromIterator<Dim>>(left: &[Dim], right: &[Dim], axis: i64) -> Result<C, Clash> {
    let room = left.len().checked_sub(right.len());
    let start = if axis == -1 { room } else { usize::try_from(axis).ok() };
    let Some(start) = start.filter(|start| room.is_some_and(|room| *start <= room)) else {
        return Err(Clash::Placement { left: left.len(), right: right.len(), axis });
    };
    let stretch = |(axis, &left): (usize, &Dim)| {
        let Some(&right) = axis.checked_sub(start).and_then(|axis| right.get(axis)) else { return Ok(left) };
        let stretched = match (left.value(), right.value()) {
            (Some(l), Some(r)) if r > l => None,
            _ => left.broadcast(right),
        };
        stretched.ok_or(Clash::Dims { axis, left, right })
    };
    left.iter().enumerate().map(stretch).collect()
}

/// The shape of the first operand, which takes the result of an operation in place; the others must broadcast to it.
///
/// # Errors
/// As [`numpy`]; [`Clash::Grows`] where the result would be larger than the first operand.
pub fn in_place<'a, C: FromIterator<Dim>>(shapes: impl Iterator<Item = &'a [Dim]> + Clone) -> Result<C, Clash> {
    let first = shapes.clone().next().unwrap_or_default();
    let others = shapes.clone().skip(1);
    let rank = shapes.clone().map(<[Dim]>::len).max().unwrap_or(0);
    // Where the shapes do not broadcast at all, that is what is wrong.
    numpy::<Nothing>(shapes)?;
    let dim = |axis: usize| {
        let at = |shape: &[Dim]| (axis + shape.len()).checked_sub(rank).and_then(|axis| shape.get(axis).copied());
        let own = at(first);
        let left = own.unwrap_or(Dim::ONE);
        let grows = |&right: &Dim| own.is_none() || left == Dim::ONE && !right.contains(1);
        match others.clone().filter_map(at).find(grows) {
            Some(right) => Err(Clash::Grows { axis, left, right }),
            None => Ok(left),
        }
    };
    (0..rank).map(dim).collect()
}

/// Collects nothing.
struct Nothing;

impl FromIterator<Dim> for Nothing {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Self {
        dims.into_iter().for_each(drop);
        Self
    }
}
