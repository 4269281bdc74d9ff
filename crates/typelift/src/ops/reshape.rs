//! Operations that keep the elements and change the axes: Reshape, Squeeze, Unsqueeze, Transpose.

use smallvec::SmallVec;

use super::common::{check_rank, check_type, checked_axis, dim_between, shape_of_length};
use super::evaluate::{DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, evaluate};
use crate::findings::{Message, Text, message};
use crate::model::shape::{Dim, Shape};
use crate::ops::values::array::Few;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Reshape", 1, reshape)
        .spreads_on(&[Spread::Kept, Spread::Quantized, Spread::Range])
        .shaped_by(&[1])
        .evaluate(Evaluate::Ends(DATA, evaluate::reshape))
        .inputs(2, 2)
        .attributes(&[Attr::new("special_zero", AttrKind::Bool).default("false")]),
    Operation::new("Squeeze", 0, squeeze)
        .spreads_on(&[Spread::Kept, Spread::Quantized, Spread::Range])
        .evaluate(Evaluate::Ends(DATA, evaluate::reshape))
        .until(14)
        .inputs(1, 2),
    Operation::new("Squeeze", 15, squeeze)
        .evaluate(Evaluate::Ends(DATA, evaluate::reshape))
        .inputs(1, 2)
        .attributes(&[Attr::new("allow_axis_skip", AttrKind::Bool).default("false")]),
    Operation::new("Transpose", 1, transpose)
        .spreads_on(&[Spread::Quantized])
        .evaluate(Evaluate::Ends(DATA, evaluate::transpose))
        .inputs(2, 2),
    Operation::new("Unsqueeze", 0, unsqueeze)
        .spreads_on(&[Spread::Kept, Spread::Quantized, Spread::Range])
        .evaluate(Evaluate::Ends(DATA, evaluate::reshape))
        .inputs(2, 2),
];

fn reshape(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "target shape", Accepts::Integer)?;
    check_rank(cx, 1, "target shape", &[1])?;
    let special_zero = cx.bool("special_zero")?;
    let target = cx.ends(1)?;
    let data = cx.shape(0);
    let shape = match target {
        Some(target) => TargetPattern::new(&target)?.apply(data, special_zero)?,
        None => shape_of_length(cx.shape(1)),
    };
    cx.finish(cx.element_type(0), shape)
}

/// Target shape of a Reshape.
struct TargetPattern {
    dims: SmallVec<[Dim; 6]>,
    /// Position of the -1, if there is one.
    rest: Option<usize>,
}

impl TargetPattern {
    fn new(ends: &[(i64, i64)]) -> Result<Self, Fault> {
        let mut pattern = Self { dims: SmallVec::with_capacity(ends.len()), rest: None };
        for (position, &(lower, upper)) in ends.iter().enumerate() {
            if (lower, upper) == (-1, -1)
                && let Some(first) = pattern.rest.replace(position)
            {
                let message = message!("the target shape has -1 twice, at positions {} and {}"; first, position);
                return Err(Fault::value(&[1], message).rule("only one dimension can be computed from the others"));
            }
            pattern.dims.push(match (lower, upper) {
                ends if ends >= (-1, -1) => dim_between(lower, upper),
                // If one bound is unknown, OpenVINO ignores the other too.
                (_, 0..) => Dim::ANY,
                _ => {
                    let message = message!(
                        "dimension {} of the target shape is {}, which is not a valid length";
                        position, lower
                    );
                    return Err(Fault::value(&[1], message)
                        .rule("a dimension must be 0 or more, or -1 for the remaining elements"));
                }
            });
        }
        Ok(pattern)
    }

    fn apply(&self, data: &Shape, special_zero: bool) -> Result<Shape, Fault> {
        let zero = Dim::fixed(0);
        let mut products = Products::default();
        let mut shape: SmallVec<[Dim; 6]> = SmallVec::with_capacity(self.dims.len());
        for (position, &dim) in self.dims.iter().enumerate() {
            let source = data.dims().map(|dims| dims.get(position).copied());
            let copied = special_zero && dim == zero;
            shape.push(match (copied, source) {
                (true, None) => {
                    products.copies_unknown = true;
                    Dim::ANY
                }
                (true, Some(None)) => {
                    let message = message!(
                        "dimension {} of the target shape is 0, but the data {} has no dimension {} to copy";
                        position, data, position
                    );
                    return Err(Fault::value(&[0, 1], message)
                        .rule("with special_zero=\"true\", 0 copies the dimension of the data"));
                }
                (true, Some(Some(source))) => source,
                (false, _) => {
                    // If the rank of the data is dynamic, OpenVINO includes -1 in the product.
                    if self.rest != Some(position) || source.is_none() {
                        products.outs.push(dim);
                    }
                    dim
                }
            });
            if !copied {
                products.ins.extend(source.flatten());
            }
        }
        products.ins.extend(data.dims().into_iter().flat_map(|dims| dims.iter().skip(self.dims.len()).copied()));
        let quotient = products.calculate();
        if let Some(rest) = self.rest.and_then(|rest| shape.get_mut(rest)) {
            *rest =
                quotient.rest().filter(|rest| quotient.out_static == zero || !rest.is_empty()).ok_or_else(|| {
                    let message =
                        message!(
                            "the number of elements of {} is not a multiple of the product of the target's other dimensions, so -1 has no value";
                            data
                        );
                    let fault = Fault::shapes(&[0, 1], message);
                    match fitting(data, self) {
                        Some(lengths) => fault.rule(lengths),
                        None => fault,
                    }
                })?;
            if quotient.out_static == zero && quotient.in_static != zero {
                let message =
                    message!("the target shape contains 0 and -1, so it cannot hold the elements of {}"; data);
                return Err(Fault::shapes(&[0, 1], message));
            }
        }
        let shape: Shape = shape.into_iter().collect();
        let decided = self.rest.is_some() || special_zero && self.dims.contains(&zero);
        if !decided && data.is_static() && shape.is_static() && quotient.in_static != quotient.out_static {
            let count = |shape: &Shape| shape.element_count().map_or("too many".to_owned(), |count| count.to_string());
            let message = message!(
                "the data {} has {} elements, but the target shape {} has {}";
                data, Text(count(data)), shape, Text(count(&shape))
            );
            return Err(Fault::shapes(&[0, 1], message));
        }
        Ok(shape)
    }
}

/// Describes the lengths of each axis that fit a target shape with -1, if the other axes stay: `axis 2 must be a multiple
/// of 4`.
fn fitting(data: &Shape, target: &TargetPattern) -> Option<Message> {
    let lengths = data.to_static()?;
    let others = target.dims.iter().enumerate().filter(|&(position, _)| target.rest != Some(position));
    let unit = others.map(|(_, dim)| dim.value()).try_fold(1_i64, |unit, length| unit.checked_mul(length?))?;
    if unit < 1 || lengths.iter().any(|&length| length < 1) {
        return None;
    }
    let count = lengths.iter().try_fold(1_i64, |count, &length| count.checked_mul(length))?;
    let multiples = lengths.iter().map(|length| unit / gcd(unit, count / length));
    let axes = multiples.enumerate().filter(|&(_, multiple)| multiple > 1);
    let axes: Vec<_> = axes.map(|(axis, multiple)| format!("axis {axis} a multiple of {multiple}")).collect();
    Some(message!("it fits if one axis has another length: {}"; Text(axes.join(", or "))))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Dimensions of data and target shape of a Reshape, whose products must be equal.
#[derive(Default)]
struct Products {
    ins: SmallVec<[Dim; 6]>,
    outs: SmallVec<[Dim; 6]>,
    /// True if the target copies a dimension from data of dynamic rank.
    copies_unknown: bool,
}

/// Products of both shapes of a Reshape, after equal fixed dimensions were removed.
struct Quotient {
    in_static: Dim,
    out_static: Dim,
    in_dynamic: Dim,
    out_dynamic: Dim,
}

impl Products {
    fn calculate(mut self) -> Quotient {
        let start = if self.copies_unknown { Dim::ANY } else { Dim::ONE };
        let mut product = Quotient { in_static: Dim::ONE, out_static: Dim::ONE, in_dynamic: start, out_dynamic: start };
        for dim in self.ins {
            if let Some(position) = self.outs.iter().position(|out| *out == dim && dim.is_fixed() && dim.lower() != 0) {
                self.outs.swap_remove(position);
            } else if dim.is_fixed() {
                product.in_static = dim * product.in_static;
            } else {
                product.in_dynamic = dim * product.in_dynamic;
            }
        }
        for dim in self.outs {
            if dim.is_fixed() {
                product.out_static = dim * product.out_static;
            } else {
                product.out_dynamic = dim * product.out_dynamic;
            }
        }
        if product.in_static != product.out_static {
            product.in_dynamic = product.in_dynamic * product.in_static;
            product.out_dynamic = product.out_dynamic * product.out_static;
        }
        product
    }
}

impl Quotient {
    /// `None` after a division by 0.
    fn rest(&self) -> Option<Dim> {
        let (ins, outs) = (self.in_dynamic, self.out_dynamic);
        if let (true, Some(divisor)) = (ins.is_fixed(), outs.value()) {
            return ins.checked_div(divisor);
        }
        let upper = match ins.upper() {
            Some(upper) if outs.lower() != 0 => upper / outs.lower(),
            _ => i64::MAX,
        };
        let lower = match outs.upper() {
            Some(0) => ins.lower(),
            divisor => (ins.lower() as u64).div_ceil(divisor.unwrap_or(i64::MAX) as u64) as i64,
        };
        Some(Dim::between(lower, upper))
    }
}

fn squeeze(cx: &mut Context) -> Result<(), Fault> {
    let data = cx.shape(0);
    let shape = match (data.dims(), cx.try_shape(1)) {
        (Some(dims), None) => without_ones(dims),
        // OpenVINO checks axes only if their number is known.
        (dims, Some(axes)) if axes.is_static() => {
            check_rank(cx, 1, "axes", &[0, 1])?;
            match dims {
                None => Shape::dynamic(),
                Some(dims) => match cx.numbers(1)? {
                    Some(axes) => squeezed(cx, dims, &axes)?,
                    None => some_axis_squeezed(cx, data, dims),
                },
            }
        }
        _ => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn may_be_one(dim: Dim) -> bool {
    !dim.is_fixed() && dim.contains(1)
}

fn without_ones(dims: &[Dim]) -> Shape {
    if dims.iter().any(|&dim| may_be_one(dim)) {
        return Shape::dynamic();
    }
    dims.iter().copied().filter(|dim| !dim.contains(1)).collect()
}

fn squeezed(cx: &Context, dims: &[Dim], axes: &[i64]) -> Result<Shape, Fault> {
    let mut chosen = SmallVec::<[bool; 8]>::from_elem(false, dims.len());
    for &axis in axes {
        // A scalar has no axis 0.
        if let Some(chosen) = chosen.get_mut(checked_axis(cx, 1, axis, dims.len())?) {
            *chosen = true;
        }
    }
    let pairs = dims.iter().copied().zip(chosen.iter().copied());
    let skips = cx.operation.revision == 15 && cx.bool("allow_axis_skip")?;
    Ok(match axes {
        [] => without_ones(dims),
        _ if skips && pairs.clone().any(|(dim, chosen)| chosen && may_be_one(dim)) => Shape::dynamic(),
        _ => pairs.filter(|&(dim, chosen)| !(chosen && dim.contains(1))).map(|(dim, _)| dim).collect(),
    })
}

/// Infers a Squeeze of unknown axes. The rank is known only if exactly one axis is removed.
fn some_axis_squeezed(cx: &Context, data: &Shape, dims: &[Dim]) -> Shape {
    if dims.is_empty() || cx.shape(1).element_count() != Some(1) {
        Shape::dynamic()
    } else if !dims.iter().any(|dim| dim.contains(1)) {
        data.clone()
    } else if cx.operation.revision == 15 {
        Shape::dynamic()
    } else {
        Shape::of_rank(dims.len() - 1)
    }
}

fn unsqueeze(cx: &mut Context) -> Result<(), Fault> {
    check_rank(cx, 1, "axes", &[0, 1])?;
    let axes = cx.numbers(1)?;
    let shape = match (cx.shape(0).dims(), axes) {
        (Some(dims), Some(axes)) => unsqueezed(cx, dims, axes)?,
        _ => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn unsqueezed(cx: &Context, dims: &[Dim], mut axes: Few<i64>) -> Result<Shape, Fault> {
    if axes.is_empty() {
        return Err(Fault::value(&[1], "`Unsqueeze` needs at least one axis, but its list of axes is empty"));
    }
    // A duplicate axis is used once. If an axis is given as positive and as negative number, OpenVINO counts negative
    // axes from a higher rank.
    axes.sort_unstable();
    axes.dedup();
    let rank = dims.len() + axes.len();
    let axes = axes.into_iter().map(|axis| checked_axis(cx, 1, axis, rank));
    let mut axes = axes.collect::<Result<SmallVec<[usize; 6]>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    let mut dims = dims.iter().copied();
    let mut shape: SmallVec<[Dim; 6]> = SmallVec::with_capacity(rank);
    for axis in axes {
        while shape.len() < axis
            && let Some(dim) = dims.next()
        {
            shape.push(dim);
        }
        shape.push(Dim::ONE);
    }
    shape.extend(dims);
    Ok(shape.into_iter().collect())
}

fn transpose(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "order", Accepts::Integer)?;
    check_rank(cx, 1, "order", &[1])?;
    let data = cx.shape(0);
    let length = cx.shape(1).dims().and_then(|dims| dims.first().copied()).unwrap_or(Dim::ANY);
    if let Some(rank) = data.rank()
        && !length.contains(rank as i64)
        && length.value() != Some(0)
    {
        let message = message!("the order of `Transpose` has {} axes, but the data {} has {}"; length, data, rank);
        return Err(
            Fault::shapes(&[0, 1], message).rule("the order must contain every axis once, or be empty to reverse them")
        );
    }
    let order = cx.numbers(1)?;
    let shape = match (data.dims(), order) {
        (Some(dims), Some(order)) if order.is_empty() => dims.iter().rev().copied().collect(),
        (Some(dims), Some(order)) => permuted(dims, &order).ok_or_else(|| not_a_permutation(&order))?,
        (Some(dims), None) => Shape::of_rank(dims.len()),
        (None, Some(order)) => Shape::of_rank(order.len()),
        (None, None) => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn permuted(dims: &[Dim], order: &[i64]) -> Option<Shape> {
    let mut sorted: SmallVec<[i64; 8]> = order.into();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..dims.len() as i64) {
        return None;
    }
    order.iter().map(|&axis| usize::try_from(axis).ok().and_then(|axis| dims.get(axis).copied())).collect()
}

fn not_a_permutation(order: &[i64]) -> Fault {
    let order = order.iter().take(16).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let message = message!("the order of `Transpose` is {}, which does not contain every axis once"; Text(order));
    Fault::value(&[1], message).rule("the axis must not be negative")
}
