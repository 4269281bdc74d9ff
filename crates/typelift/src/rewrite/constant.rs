//! Arithmetic on constants.

use smallvec::smallvec;
use typelift_promote::{ElementType, Kind};

use super::losses::Losses;
use super::term::Function;
use crate::model::weights::Weights;
use crate::ops::values::array::{Array, Data, Few, round};

/// Computes a function of constants in the type of the first one, to which numbers of the rule are converted. Counts
/// lost values.
///
/// # Errors
/// The reason why it cannot be computed, for example the memory limit.
pub(super) fn compute(
    weights: &Weights,
    function: Function,
    of: &[Array],
    losses: &mut Losses,
) -> Result<Array, String> {
    weights.compute(elements(function, of)).map_err(|reason| reason.to_string())?;
    let found = computed(function, of, losses)?;
    match (function, of) {
        (Function::Convert(Some(_)), [x]) => *losses += Losses::of_conversion(x, &found),
        (Function::Sqrt | Function::Exp | Function::Product | Function::MatMul, of)
            if found.element_type.is_float() =>
        {
            let is_finite = of.iter().all(|x| x.to_floats().iter().all(|value| value.is_finite()));
            let lost = found.to_floats().iter().filter(|value| !value.is_finite()).count();
            losses.non_finite += if is_finite { lost } else { 0 };
        }
        _ => {}
    }
    Ok(found)
}

fn computed(function: Function, of: &[Array], losses: &mut Losses) -> Result<Array, String> {
    match (function, of) {
        (Function::Negate, [x]) => Ok(x.map(|v| -v, |v| -v)),
        (Function::Sqrt, [x]) => floats(x, "sqrt").map(|x| x.map(|v| v, f64::sqrt)),
        (Function::Exp, [x]) => floats(x, "exp").map(|x| x.map(|v| v, f64::exp)),
        (Function::Convert(Some(to)), [x]) => {
            rounded(x, to).ok_or_else(|| format!("{} cannot be converted to {to}", x.element_type))
        }
        (Function::Convert(None), [x]) => Ok(x.clone()),
        (Function::Transpose, [x]) => transpose(x, &(0..x.dims.len()).rev().collect::<Vec<_>>()),
        (Function::Transpose, [x, order]) => {
            let order = order.to_integers().into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
            transpose(x, &order.map_err(|_| "the order of axes must not be negative".to_owned())?)
        }
        (Function::Reshape, [x, dims]) => reshape(x, &dims.to_integers()),
        (Function::Gather, [x, indices]) => pick(x, 0, indices.to_integers().into_iter()),
        (Function::Slice(axis), [x, from, to @ ..]) => slice(x, axis, from.first_integer(), to.first()),
        (Function::Round, [x]) => Ok(x.map(|v| v, f64::round_ties_even)),
        (Function::Abs, [x]) => Ok(x.map(i128::abs, f64::abs)),
        (Function::Min | Function::Max, [x]) => extreme(x, function == Function::Max),
        (Function::Min, [x, y]) => between(x, None, Some(y)),
        (Function::Max, [x, y]) => between(x, Some(y), None),
        (Function::Clamp, [x, least, most]) => between(x, Some(least), Some(most)),
        (Function::Join(axis), all) => join(all, axis),
        (Function::Product, [x]) => Ok(Array::scalar(x.element_type, x.to_floats().iter().product())),
        (Function::Without, [x, places]) => {
            let length = x.dims.first().map_or(0, |&length| length as i64);
            let left_out: Vec<_> =
                places.to_integers().iter().map(|&at| if at < 0 { at + length } else { at }).collect();
            pick(x, 0, (0..length).filter(|at| !left_out.contains(at)))
        }
        (Function::Concat, all) => concat(all),
        (Function::MatMul, [x, y]) => matmul(x, y),
        (Function::Power, [x, y]) if x.element_type.is_float() => elementwise(function, x, y, losses),
        (Function::Power, [x, _]) => Err(format!("a power of {} may not be exact", x.element_type)),
        (
            Function::Equal
            | Function::NotEqual
            | Function::Less
            | Function::LessEqual
            | Function::Greater
            | Function::GreaterEqual,
            [x, y],
        ) => compare(function, x, y),
        (Function::Same, [x, y]) => Ok(Array::booleans(Few::new(), [is_same(x, y)])),
        (_, [x, y]) => elementwise(function, x, y, losses),
        _ => Err("the operands are not valid".to_owned()),
    }
}

fn elements(function: Function, of: &[Array]) -> u64 {
    let product = |dims: &[usize]| dims.iter().fold(1_u64, |count, &dim| count.saturating_mul(dim as u64));
    let given = of.iter().map(|array| array.len() as u64).sum();
    match (function, of) {
        (Function::MatMul, [x, y]) => {
            let [rows, columns] = [x.dims.first(), y.dims.last()].map(|dim| dim.map_or(1, |&dim| dim as u64));
            rows.saturating_mul(columns).saturating_add(given)
        }
        (Function::Gather, [x, indices]) => {
            product(x.dims.get(1..).unwrap_or_default()).saturating_mul(indices.len() as u64)
        }
        (_, [x, y]) => broadcast(&x.dims, &y.dims).map_or(given, |dims| product(&dims).saturating_mul(3)),
        _ => given,
    }
}

fn floats<'a>(x: &'a Array, name: &str) -> Result<&'a Array, String> {
    let is_float = x.element_type.kind() == Kind::Float;
    is_float.then_some(x).ok_or_else(|| format!("{name} of {} is not a whole number", x.element_type))
}

/// Converts values to another type: rounds to the nearest number, ties to even, and saturates.
fn rounded(x: &Array, to: ElementType) -> Option<Array> {
    if to.is_integer() { x.map(|v| v, f64::round_ties_even).saturated(to) } else { x.saturated(to) }
}

fn elementwise(function: Function, x: &Array, y: &Array, losses: &mut Losses) -> Result<Array, String> {
    if x.element_type != y.element_type {
        return Err(format!("the types {} and {} differ; write convert(c, TYPE)", x.element_type, y.element_type));
    }
    let (x, y) = aligned(x, y)?;
    let ty = x.element_type;
    let float = |a: f64, b: f64| match function {
        Function::Add => a + b,
        Function::Subtract => a - b,
        Function::Multiply => a * b,
        Function::Power => a.powf(b),
        _ => a / b,
    };
    let int = |a: i128, b: i128| match function {
        Function::Add => a.checked_add(b),
        Function::Subtract => a.checked_sub(b),
        Function::Multiply => a.checked_mul(b),
        _ => a.checked_rem(b).filter(|rest| *rest == 0).and_then(|_| a.checked_div(b)),
    };
    let computed =
        x.zip(&y, |a, b| int(a, b).filter(|&value| crate::ops::values::array::wrap(ty, value) == value), float);
    let computed =
        computed.ok_or_else(|| format!("the result is not exact in {ty}; ask for floating point, `c: const f32`"))?;
    if let (Data::Floats(x), Data::Floats(y), Data::Floats(results)) = (&x.data, &y.data, &computed.data) {
        let can_cancel = matches!(function, Function::Add | Function::Subtract);
        for ((&a, &b), &result) in x.iter().zip(y).zip(results) {
            losses.count(ty, &[a, b], result, can_cancel);
        }
    }
    Ok(computed)
}

/// Negative ones count from its end.
fn pick(x: &Array, axis: usize, indices: impl Iterator<Item = i64>) -> Result<Array, String> {
    let length = *x.dims.get(axis).ok_or_else(|| match axis {
        0 => "a single number has no elements".to_owned(),
        _ => format!("{:?} has no axis {axis}", x.dims),
    })?;
    let places = indices.map(|index| usize::try_from(if index < 0 { index + length as i64 } else { index }).ok());
    let places = places.collect::<Option<Vec<_>>>();
    let found = places.and_then(|places| x.take(axis, places.into_iter()));
    found.ok_or_else(|| format!("an index is out of range for {length} elements"))
}

/// Computes `x[from:to]` along an axis. Without `to`, returns the element at `from` and removes the axis.
fn slice(x: &Array, axis: usize, from: Option<i64>, to: Option<&Array>) -> Result<Array, String> {
    let from = from.unwrap_or(0);
    let Some(to) = to else {
        let picked = pick(x, axis, from..from + 1)?;
        let dims = picked.dims.iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, &dim)| dim).collect();
        return Ok(picked.reshaped(dims).unwrap_or(picked));
    };
    let length = x.dims.get(axis).map_or(0, |&length| length as i64);
    let place = |at: i64| (if at < 0 { at + length } else { at }).clamp(0, length);
    pick(x, axis, place(from)..place(to.first_integer().unwrap_or(length)))
}

fn extreme(x: &Array, is_largest: bool) -> Result<Array, String> {
    let values = x.to_floats();
    let found = values.iter().copied().reduce(|a, b| if is_largest { a.max(b) } else { a.min(b) });
    found.map(|value| Array::scalar(x.element_type, value)).ok_or_else(|| "there are no elements".to_owned())
}

fn between(x: &Array, least: Option<&Array>, most: Option<&Array>) -> Result<Array, String> {
    let mut found = x.clone();
    for (limit, is_least) in [(least, true), (most, false)] {
        let Some(limit) = limit else { continue };
        if limit.element_type != found.element_type {
            return Err(format!("the types {} and {} differ", found.element_type, limit.element_type));
        }
        let (x, limit) = aligned(&found, limit)?;
        let int = |a: i128, b: i128| Some(if is_least { a.max(b) } else { a.min(b) });
        let float = |a: f64, b: f64| if is_least { a.max(b) } else { a.min(b) };
        found = x.zip(&limit, int, float).ok_or("the limits have another kind of type")?;
    }
    Ok(found)
}

fn join(all: &[Array], axis: i64) -> Result<Array, String> {
    let first = all.first().ok_or("there are no arrays to join")?;
    let rank = first.dims.len();
    let at = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|&at| at < rank);
    let at = at.ok_or_else(|| format!("there are {rank} axes"))?;
    if let Some(other) = all.iter().find(|x| x.element_type != first.element_type || !first.is_alike_but(x, at)) {
        let of = |x: &Array| format!("{}{}", x.element_type, x.shape());
        return Err(format!("{} and {} cannot be joined along axis {axis}", of(first), of(other)));
    }
    Array::joined(all, at).ok_or_else(|| format!("there are {rank} axes"))
}

fn concat(all: &[Array]) -> Result<Array, String> {
    let ty = all.first().map_or(ElementType::I64, |first| first.element_type);
    if all.iter().any(|part| part.dims.len() > 1 || part.element_type != ty) {
        return Err("only lists with the same element type can be joined".to_owned());
    }
    let lists: Vec<_> = all.iter().map(|part| Array { dims: smallvec![part.len()], ..part.clone() }).collect();
    Ok(Array::joined(&lists, 0).unwrap_or_else(|| Array::ints(ty, smallvec![0], [])))
}

fn matmul(x: &Array, y: &Array) -> Result<Array, String> {
    let ([rows, inner], [other, columns]) = (&x.dims[..], &y.dims[..]) else {
        return Err(format!("{:?} and {:?} are not two matrices", x.dims, y.dims));
    };
    if inner != other || x.element_type != y.element_type {
        let of = |array: &Array| format!("{}{}", array.element_type, array.shape());
        return Err(format!("the matrices {} and {} cannot be multiplied", of(x), of(y)));
    }
    let (a, b) = (floats(x, "matmul")?.to_floats(), y.to_floats());
    let mut product = vec![0.0; rows * columns];
    for (row, sums) in product.chunks_exact_mut((*columns).max(1)).enumerate() {
        for (at, &factor) in a[row * inner..][..*inner].iter().enumerate() {
            sums.iter_mut().zip(&b[at * columns..]).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    let ty = x.element_type;
    let product = product.into_iter().map(|value| round(ty, value)).collect();
    Ok(Array::floats(ty, [*rows, *columns].into_iter().collect(), product))
}

fn compare(function: Function, x: &Array, y: &Array) -> Result<Array, String> {
    let is_alone = x.len() == 1 || y.len() == 1;
    let dims = broadcast(&x.dims, &y.dims).filter(|_| x.len() == y.len() || is_alone);
    let dims =
        dims.ok_or_else(|| format!("a list of {} elements cannot be compared with one of {}", x.len(), y.len()))?;
    let (x, y) = (stretch(x, &dims), stretch(y, &dims));
    let by = |a: f64, b: f64| match function {
        Function::Equal => a == b,
        Function::NotEqual => a != b,
        Function::Less => a < b,
        Function::LessEqual => a <= b,
        Function::Greater => a > b,
        _ => a >= b,
    };
    let all: Vec<_> = x.to_floats().iter().zip(y.to_floats()).map(|(&a, b)| by(a, b)).collect();
    Ok(Array::booleans(dims, all))
}

pub(super) fn is_same(x: &Array, y: &Array) -> bool {
    x.len() == y.len() && x.to_floats() == y.to_floats()
}

fn broadcast(x: &[usize], y: &[usize]) -> Option<Few<usize>> {
    let rank = x.len().max(y.len());
    let dim = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|axis| match (dim(x, axis), dim(y, axis)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        })
        .collect()
}

/// Broadcasts both operands to one shape.
fn aligned(x: &Array, y: &Array) -> Result<(Array, Array), String> {
    let dims = broadcast(&x.dims, &y.dims);
    let dims = dims.ok_or_else(|| format!("the shapes {:?} and {:?} cannot be broadcast", x.dims, y.dims))?;
    Ok((stretch(x, &dims), stretch(y, &dims)))
}

/// Broadcasts values to a larger shape.
pub(super) fn stretch(x: &Array, dims: &[usize]) -> Array {
    x.broadcast(dims, dims.len() - x.dims.len()..).unwrap_or_else(|| x.clone())
}

/// Reshapes an array; one dimension may be -1.
fn reshape(x: &Array, wanted: &[i64]) -> Result<Array, String> {
    let refusal = || format!("{} values do not fill {wanted:?}", x.len());
    let known = wanted.iter().filter(|&&dim| dim != -1).try_fold(1_i64, |count, &dim| count.checked_mul(dim));
    let left = known.filter(|&known| known > 0).map_or(0, |known| x.len() as i64 / known);
    let dims = wanted.iter().map(|&dim| usize::try_from(if dim == -1 { left } else { dim }));
    let dims = dims.collect::<Result<Few<_>, _>>().map_err(|_| refusal())?;
    let fits = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim)) == Some(x.len());
    if fits { Ok(Array { dims, ..x.clone() }) } else { Err(refusal()) }
}

fn transpose(x: &Array, order: &[usize]) -> Result<Array, String> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().ne(0..x.dims.len()) {
        return Err(format!("{order:?} is not a valid order of {} axes", x.dims.len()));
    }
    x.transposed(order.iter().copied()).ok_or_else(|| "the values are incomplete".to_owned())
}

/// The element type of a number that is not combined with other values.
pub(super) fn default_type(whole: bool) -> ElementType {
    if whole { ElementType::I64 } else { ElementType::F32 }
}
