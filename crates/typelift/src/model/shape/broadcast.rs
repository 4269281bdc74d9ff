//! Broadcasting of shapes.

use thiserror::Error;
use typelift_promote::broadcast::{self, Clash};

use super::{Dim, Shape, ShapeMismatch, overlay};

/// Broadcasting of an element-wise operation: its attribute `auto_broadcast`. OpenVINO reads the value `explicit` as
/// [`AutoBroadcast::None`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoBroadcast {
    /// The shapes must be equal: [`Shape::merge`].
    None,
    /// The shapes are aligned at the last axis. A length of 1 or a missing axis takes the other shape's length.
    #[default]
    Numpy,
    /// PaddlePaddle's former rule: the second shape is aligned with the first from `axis` on, and only the second is
    /// stretched.
    Pdpd {
        /// The axis at which the second shape starts; -1 aligns the last axes. OpenVINO's default for an attribute that
        /// is absent from a file is 0, contrary to the specification.
        axis: i64,
    },
}

impl AutoBroadcast {
    /// Returns the shape of an operation with two operands.
    ///
    /// ```
    /// use typelift::shape::{AutoBroadcast, Shape};
    /// let (a, b): (Shape, Shape) = ("2,1,?".parse().unwrap(), "3,4..8".parse().unwrap());
    /// assert_eq!(AutoBroadcast::Numpy.combine(&a, &b).unwrap().to_string(), "[2,3,4..8]");
    /// let fault = AutoBroadcast::Numpy.combine(&Shape::fixed([2, 3]), &Shape::fixed([4])).unwrap_err();
    /// assert_eq!(fault.to_string(), "axis 1: 3 and 4 do not broadcast");
    /// ```
    ///
    /// # Errors
    /// [`ShapeMismatch`] with the first axis on which the shapes do not broadcast.
    pub fn combine(self, left: &Shape, right: &Shape) -> Result<Shape, ShapeMismatch> {
        match self {
            Self::None => left.merge(right),
            Self::Numpy => numpy(left, right),
            Self::Pdpd { axis } => pdpd(left, right, axis),
        }
    }

    /// Returns the shape of a Select. Under `Pdpd` the other two shapes are aligned with that of `then`, one after the
    /// other.
    ///
    /// # Errors
    /// [`SelectMismatch`] with the input that does not fit those before it.
    pub fn select(self, condition: &Shape, then: &Shape, otherwise: &Shape) -> Result<Shape, SelectMismatch> {
        let (first, [second, third]) = match self {
            Self::Pdpd { .. } => (then, [(2, otherwise), (0, condition)]),
            Self::None | Self::Numpy => (otherwise, [(1, then), (0, condition)]),
        };
        let add = |shape: &Shape, (input, next)| {
            self.combine(shape, next).map_err(|mismatch| SelectMismatch { input, mismatch })
        };
        add(&add(first, second)?, third)
    }
}

/// Error of a Select: the input that does not fit the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("input {input}: {mismatch}")]
#[non_exhaustive]
pub struct SelectMismatch {
    /// The input: 0 is the condition, 1 the values where it holds, 2 the values elsewhere.
    pub input: usize,
    /// The mismatch; its left side is the combined shape of the inputs before.
    pub mismatch: ShapeMismatch,
}

/// Input that an operation reads as a list of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListInput<T> {
    /// The numbers are known, at least in part.
    Values(T),
    /// Only the count is known.
    Length(Dim),
    /// Neither values nor their number are known, because the input has a dynamic rank.
    Unknown,
}

/// Alignment of the data with the target shape in a Broadcast: its attribute `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BroadcastMode<'a> {
    /// The data are broadcast to the target, aligned at the last axis.
    Numpy,
    /// Each axis of the data is mapped to an axis of the target, in ascending order.
    Explicit(
        /// The input `axes_mapping`.
        ListInput<&'a [i64]>,
    ),
    /// Data and target broadcast to each other, as two operands under [`AutoBroadcast::Numpy`].
    Bidirectional,
    /// The data are aligned with the target from `axis` on, and either is broadcast. Dimensions of the data beyond the
    /// target's end are ignored.
    Pdpd {
        /// The axis of the target at which the data start; -1 aligns the last axes.
        axis: i64,
    },
}

impl BroadcastMode<'_> {
    /// Returns the shape of a Broadcast. OpenVINO checks the data only if values of the target are known; the
    /// dimensions of `target` are the bounds of these values.
    ///
    /// ```
    /// use typelift::shape::{BroadcastMode, Dim, ListInput, Shape};
    /// let (data, target) = (Shape::fixed([3]), Shape::from_iter([Dim::ANY, Dim::fixed(3)]));
    /// let shape = BroadcastMode::Numpy.combine(&data, ListInput::Values(&target)).unwrap();
    /// assert_eq!(shape.to_string(), "[?,3]");
    /// let shape = BroadcastMode::Bidirectional.combine(&data, ListInput::Length(Dim::fixed(2))).unwrap();
    /// assert_eq!(shape.to_string(), "[?,3]");
    /// ```
    ///
    /// # Errors
    /// [`ShapeMismatch`]; data are on the left, the target on the right.
    pub fn combine(self, data: &Shape, target: ListInput<&Shape>) -> Result<Shape, ShapeMismatch> {
        let shape = match target {
            ListInput::Values(target) => target.clone(),
            ListInput::Length(length) => {
                length.value().and_then(|n| usize::try_from(n).ok()).map_or_else(Shape::dynamic, Shape::of_rank)
            }
            ListInput::Unknown => Shape::dynamic(),
        };
        let is_known = matches!(target, ListInput::Values(_));
        match self {
            Self::Bidirectional => numpy(data, &shape),
            Self::Explicit(_) if target == ListInput::Unknown => Ok(shape),
            Self::Explicit(axes) => check_axes(data, axes, is_known.then_some(&shape)).map(|()| shape),
            Self::Numpy if is_known => numpy_to_target(data, shape),
            Self::Pdpd { axis } if is_known => pdpd_to_target(data, &shape, axis),
            Self::Numpy | Self::Pdpd { .. } => Ok(shape),
        }
    }
}

/// Broadcasts two operands as PaddlePaddle 3.3.1 does: by NumPy's rule, also for a length of 0. A length of -1 in
/// Paddle is [`Dim::ANY`].
///
/// # Errors
/// [`ShapeMismatch`] with the first axis on which the shapes do not broadcast.
pub fn paddle_broadcast(left: &Shape, right: &Shape) -> Result<Shape, ShapeMismatch> {
    numpy(left, right)
}

fn numpy(left: &Shape, right: &Shape) -> Result<Shape, ShapeMismatch> {
    let (Some(l), Some(r)) = (left.dims(), right.dims()) else { return Ok(Shape::dynamic()) };
    let (longer, more, fewer) = if l.len() >= r.len() { (left, l, r) } else { (right, r, l) };
    // Fast case: the shorter shape only repeats dimensions of the longer one, or has ones.
    let mut pairs = more[more.len() - fewer.len()..].iter().zip(fewer);
    if pairs.all(|(dim, other)| *other == Dim::ONE || dim == other && dim.value().is_some()) {
        return Ok(longer.clone());
    }
    Ok(broadcast::numpy([l, r].into_iter())?)
}

fn pdpd(left: &Shape, right: &Shape, axis: i64) -> Result<Shape, ShapeMismatch> {
    let (Some(l), Some(r)) = (left.dims(), right.dims()) else { return Ok(Shape::dynamic()) };
    Ok(broadcast::pdpd(l, r, axis)?)
}

impl From<Clash> for ShapeMismatch {
    fn from(clash: Clash) -> Self {
        match clash {
            Clash::Dims { axis, left, right } => Self::Broadcast { axis, left, right },
            Clash::Placement { left, right, axis } => Self::Placement { left, right, axis },
            Clash::Differ { axis, left, right } | Clash::Grows { axis, left, right } => {
                Self::Dims { axis, left, right }
            }
            Clash::Ranks { left, right } => Self::Ranks { left, right },
        }
    }
}

fn numpy_to_target(data: &Shape, target: Shape) -> Result<Shape, ShapeMismatch> {
    let (Some(d), Some(t)) = (data.dims(), target.dims()) else { return Ok(target) };
    let Some(start) = t.len().checked_sub(d.len()) else {
        return Err(ShapeMismatch::Placement { left: t.len(), right: d.len(), axis: -1 });
    };
    let check = |target: Dim, data: Dim| match (target.value(), data.value()) {
        (Some(t), Some(d)) if d != 1 && d != t => None,
        _ => Some(target),
    };
    overlay(&target, start, d, check, |axis, right, left| ShapeMismatch::Broadcast { axis, left, right })
}

fn pdpd_to_target(data: &Shape, target: &Shape, axis: i64) -> Result<Shape, ShapeMismatch> {
    let (Some(d), Some(t)) = (data.dims(), target.dims()) else {
        return Ok(target.rank().map_or_else(Shape::dynamic, Shape::of_rank));
    };
    let start = if axis == -1 { t.len().checked_sub(d.len()) } else { usize::try_from(axis).ok() };
    let Some((start, d)) = start.and_then(|start| Some((start, d.get(..t.len().saturating_sub(start))?))) else {
        return Err(ShapeMismatch::Placement { left: t.len(), right: d.len(), axis });
    };
    let either_one = |target: Dim, data: Dim| match (target, data) {
        (target, Dim::ONE) => Some(target),
        (Dim::ONE, data) => Some(data),
        (target, data) => target & data,
    };
    overlay(target, start, d, either_one, |axis, right, left| ShapeMismatch::Broadcast { axis, left, right })
}

/// Checks that `axes` map the data to the target, as far as both are known.
fn check_axes(data: &Shape, axes: ListInput<&[i64]>, target: Option<&Shape>) -> Result<(), ShapeMismatch> {
    let Some(data) = data.dims() else { return Ok(()) };
    let count = match axes {
        ListInput::Values(axes) => i64::try_from(axes.len()).ok(),
        ListInput::Length(length) => length.value(),
        ListInput::Unknown => None,
    };
    // An axis mapping may place a scalar on one axis, whose length must then be compatible with 1.
    let rank = if data.is_empty() && count > Some(0) { 1 } else { data.len() };
    if let Some(axes) = count.filter(|count| usize::try_from(*count) != Ok(rank)) {
        return Err(ShapeMismatch::AxisCount { axes, rank });
    }
    let (ListInput::Values(axes), Some(target)) = (axes, target.and_then(Shape::dims)) else { return Ok(()) };
    let places = axes.iter().map(|&axis| {
        let place = usize::try_from(axis).ok().and_then(|index| Some((index, *target.get(index)?)));
        place.ok_or(ShapeMismatch::AxisRange { axis, rank: target.len() })
    });
    let places = places.collect::<Result<Vec<_>, _>>()?;
    if !places.is_sorted_by_key(|&(axis, _)| axis) {
        return Err(ShapeMismatch::AxisOrder);
    }
    for (position, (axis, right)) in places.into_iter().enumerate() {
        let (left, stretches) = data.get(position).map_or((Dim::ONE, false), |&dim| (dim, dim.contains(1)));
        if !stretches && !left.is_compatible(right) {
            return Err(ShapeMismatch::Broadcast { axis, left, right });
        }
    }
    Ok(())
}
