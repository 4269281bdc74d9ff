//! Evaluation of operations on the small tensors from which shapes are computed.
//!
//! Each function returns the result of OpenVINO's own evaluation, for the element types that OpenVINO evaluates. `None`
//! means that the result is unknown.

mod elementwise;
mod generate;
mod movement;
mod network;
mod reduction;

pub(crate) use super::bounds::Bounds;
pub(crate) use elementwise::*;
pub(crate) use generate::*;
pub(crate) use movement::*;
pub(crate) use network::*;
pub(crate) use reduction::*;

use std::cell::RefCell;
use std::ops::Deref;

use ElementType::{Bf16, F16, F32, I32, I64, U32, U64};
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::common::normalize_axis;
use super::{Attributes, Fault};
use crate::model::graph::{Graph, OutputPort};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::ops::values::array::{self, Array, Few};
use crate::text::xml;

/// Method of computing an output of an operation from its inputs. If an input is unknown, so is the output.
#[derive(Clone, Copy)]
pub(crate) enum Evaluate {
    Never,
    /// The output follows from attributes and input shapes, without input values.
    Source(fn(&Evaluation) -> Option<Bounds>),
    /// All input values must be known exactly.
    Exact(Evaluator),
    /// As `Exact`, but bounds are enough for the inputs in this bit set. The function is then called once for the
    /// lower and once for the upper bounds.
    Ends(u32, Evaluator),
    /// Element-wise function of two inputs. For bounds, the result is the smallest and largest value over all
    /// combinations.
    Interval(Evaluator),
    /// The first function is for inputs that are known exactly, the second for bounds.
    FromBounds(Evaluator, fn(&Evaluation, &[&Bounds]) -> Option<Bounds>),
}

impl Evaluate {
    pub(crate) fn apply(self, evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
        let lowers = || known.iter().map(|bounds| &bounds.lower).collect::<SmallVec<[_; 4]>>();
        match self {
            Self::Never => None,
            Self::Source(by) => by(evaluation),
            Self::FromBounds(_, by) => by(evaluation, known),
            // The largest number of a type means unlimited, even if the value is known exactly.
            Self::Interval(by) if known.iter().any(|bounds| bounds.lower.is_open().contains(&true)) => {
                interval(evaluation, known, by)
            }
            Self::Exact(by) | Self::Ends(_, by) | Self::Interval(by)
                if known.iter().all(|bounds| bounds.is_exact()) =>
            {
                by(evaluation, &lowers()).map(Bounds::exactly)
            }
            Self::Exact(_) => None,
            Self::Interval(by) => interval(evaluation, known, by),
            Self::Ends(set, by) => {
                let inexact = known.iter().enumerate().filter(|(_, bounds)| !bounds.is_exact());
                let in_set = inexact.map(|(input, _)| input).all(|input| set >> input.min(31) & 1 == 1);
                if in_set { ends(evaluation, known, by) } else { None }
            }
        }
    }

    /// Computes an output from exactly known inputs as a device does. Unlike in [`apply`](Self::apply), the largest
    /// number of a type is an ordinary number. `None` also if devices differ.
    pub(crate) fn exact(self, evaluation: &Evaluation, inputs: &[&Array]) -> Option<Array> {
        match self {
            Self::Never => None,
            Self::Source(by) => by(evaluation)?.exact().cloned(),
            Self::Exact(by) | Self::Ends(_, by) | Self::Interval(by) | Self::FromBounds(by, _) => {
                by(evaluation, inputs).filter(|found| is_certain(evaluation.operation.name, inputs, found))
            }
        }
    }

    /// Computes an output as [`exact`](Self::exact) does, also from bounds of values that the operation moves.
    pub(crate) fn exact_bounds(self, evaluation: &Evaluation, known: &[&Bounds]) -> Option<Bounds> {
        match self {
            Self::Source(by) => by(evaluation),
            Self::Ends(..) if moves_values(evaluation.operation.name) && !known.iter().all(|it| it.is_exact()) => {
                self.apply(evaluation, known)
            }
            _ => {
                let exact: SmallVec<[_; 4]> = known.iter().map(|bounds| bounds.exact()).collect::<Option<_>>()?;
                self.exact(evaluation, &exact).map(Bounds::exactly)
            }
        }
    }
}

/// Operations that only move values or change their type, so that all devices give the same results.
const MOVES: [&str; 23] = [
    "Broadcast",
    "Concat",
    "Convert",
    "ConvertLike",
    "DepthToSpace",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Pad",
    "Reshape",
    "Roll",
    "Select",
    "ShapeOf",
    "ShuffleChannels",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

/// Functions of real numbers. For integers their results depend on a device's rounding.
const REAL: [&str; 17] = [
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Log",
    "ReduceMean",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
];

pub(crate) fn moves_values(operation: &str) -> bool {
    MOVES.contains(&operation)
}

/// True if every OpenVINO device computes these values. Devices differ in bf16, for infinities, NaN and overflow, and
/// for functions of real numbers on integers.
fn is_certain(operation: &str, inputs: &[&Array], found: &Array) -> bool {
    let is_finite = |array: &Array| array.to_floats().iter().all(|value| value.is_finite());
    let is_converted = operation == "Convert";
    if moves_values(operation) && !is_converted {
        return true;
    }
    if is_converted && inputs.iter().all(|input| input.element_type.is_float()) && found.element_type.is_float() {
        return found.element_type != Bf16 || inputs.iter().any(|input| input.to_floats() == found.to_floats());
    }
    let all_finite = is_finite(found) && inputs.iter().all(|input| is_finite(input));
    let is_exact =
        !found.element_type.is_integer() || !REAL.contains(&operation) && is_exact_remainder(operation, inputs);
    all_finite && is_exact && found.element_type != Bf16
}

/// False for a FloorMod by zero, or of integers whose intermediate sums overflow.
fn is_exact_remainder(operation: &str, inputs: &[&Array]) -> bool {
    let of_small =
        inputs.iter().all(|input| input.to_floats().iter().all(|value| value.abs() < f64::from(1_u32 << 30)));
    let by_zero = inputs.get(1).is_some_and(|divisor| divisor.truths().contains(&false));
    operation != "FloorMod" || of_small && !by_zero
}

pub(crate) type Evaluator = fn(&Evaluation, &[&Array]) -> Option<Array>;

/// Bit set of the first input, for [`Evaluate::Ends`].
pub(crate) const DATA: u32 = 1;
/// Bit set of all inputs, for [`Evaluate::Ends`].
pub(crate) const ALL: u32 = !0;

pub(crate) struct Evaluation<'a> {
    attributes: Attributes<'a>,
    graph: &'a Graph,
    pub(crate) port: usize,
    pub(crate) weights: &'a Weights,
    /// The reason why OpenVINO does not accept the model, if the computation found one.
    pub(crate) fault: RefCell<Option<Box<Fault>>>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(attributes: Attributes<'a>, graph: &'a Graph, port: usize, weights: &'a Weights) -> Self {
        Self { attributes, graph, port, weights, fault: RefCell::default() }
    }

    pub(crate) fn input(&self) -> Option<&'a OutputPort> {
        self.graph.feeds(self.layer.id()).into_iter().flatten().find_map(|(layer, port)| layer.outputs().get(port))
    }

    pub(crate) fn element_type(&self) -> ElementType {
        self.layer.outputs().get(self.port).map_or(ElementType::Dynamic, OutputPort::element_type)
    }

    /// OpenVINO does not use its values to compute shapes.
    pub(crate) fn is_decompression(&self) -> bool {
        let rt_info = self.layer.rt_info.as_deref();
        rt_info.is_some_and(|text| xml::entries(text).iter().any(|entry| entry.name == "decompression"))
    }

    /// Records that OpenVINO does not accept the model, because it cannot compute this value.
    pub(crate) fn refuse(&self, fault: Fault) -> Option<Array> {
        *self.fault.borrow_mut() = Some(Box::new(fault));
        None
    }
}

impl<'a> Deref for Evaluation<'a> {
    type Target = Attributes<'a>;

    fn deref(&self) -> &Self::Target {
        &self.attributes
    }
}

/// Calls a function with the lower bounds and with the upper bounds.
pub(crate) fn ends(evaluation: &Evaluation, known: &[&Bounds], by: Evaluator) -> Option<Bounds> {
    let lower: SmallVec<[_; 4]> = known.iter().map(|bounds| &bounds.lower).collect();
    let upper: SmallVec<[_; 4]> = known.iter().map(|bounds| bounds.upper()).collect();
    Some(Bounds::new(by(evaluation, &lower)?, by(evaluation, &upper)?))
}

/// Element types for which OpenVINO computes most arithmetic.
pub(super) const COMMON: &[ElementType] = &[Bf16, F16, F32, I32, I64, U32, U64];

/// A negative axis counts from the end.
fn axis(axis: i64, rank: usize) -> Option<usize> {
    normalize_axis(axis, rank).filter(|&axis| axis < rank)
}

/// A negative index counts from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < length)
}

/// The dimensions of a fixed shape, if the tensor is not too large.
fn dims_of(shape: &Shape) -> Option<Few<usize>> {
    let dims: Few<_> = shape.dims()?.iter().map(|dim| usize::try_from(dim.value()?).ok()).collect::<Option<_>>()?;
    array::count(&dims).map(|_| dims)
}

/// The inferred shape of the output, if all dimensions are known.
fn inferred_dims(evaluation: &Evaluation) -> Option<Few<usize>> {
    dims_of(evaluation.layer.outputs().get(evaluation.port)?.shape())
}

fn of_type<'a>(array: &'a Array, types: &[&[ElementType]]) -> Option<&'a Array> {
    types.iter().any(|types| types.contains(&array.element_type)).then_some(array)
}
