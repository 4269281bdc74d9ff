//! Reductions along axes.

use typelift_promote::ElementType::{Bf16, Boolean, F16, F32, I8, I32, I64, U8};

use super::common::{check_rank, check_type, checked_axis};
use super::evaluate::{DATA, Evaluate};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    reduction("ReduceL1", 4).wraps().evaluate(Evaluate::Exact(|e, x| {
        evaluate::reduce(
            e,
            x,
            &[&[Bf16, F16, F32, I32, I64]],
            |v| Some(v.iter().map(|v| v.abs()).sum()),
            |v| Some(v.iter().map(|v| v.abs()).sum()),
        )
    })),
    reduction("ReduceL2", 4).wraps().evaluate(Evaluate::Exact(|e, x| {
        evaluate::reduce(e, x, &[&[Bf16, F16, F32]], |_| None, |v| Some(v.iter().map(|v| v * v).sum::<f64>().sqrt()))
    })),
    reduction("ReduceLogicalAnd", 1)
        .evaluate(Evaluate::Exact(|e, x| {
            evaluate::reduce(e, x, &[&[Boolean]], |v| Some(v.iter().all(|&v| v != 0).into()), |_| None)
        }))
        .accepts(Accepts::Boolean),
    reduction("ReduceLogicalOr", 1)
        .evaluate(Evaluate::Exact(|e, x| {
            evaluate::reduce(e, x, &[&[Boolean]], |v| Some(v.iter().any(|&v| v != 0).into()), |_| None)
        }))
        .accepts(Accepts::Boolean),
    reduction("ReduceMax", 1).spreads_on(&[Spread::Quantized]).evaluate(Evaluate::Ends(DATA, |e, x| {
        evaluate::reduce(
            e,
            x,
            &[evaluate::COMMON, &[I8, U8]],
            |v| v.iter().copied().max(),
            |v| v.iter().copied().reduce(f64::max),
        )
    })),
    reduction("ReduceMean", 1).spreads_on(&[Spread::Kept]).wraps().evaluate(Evaluate::Exact(|e, x| {
        evaluate::reduce(
            e,
            x,
            &[evaluate::COMMON],
            |v| v.iter().sum::<i128>().checked_div(v.len() as i128),
            |v| Some(v.iter().sum::<f64>() / v.len() as f64),
        )
    })),
    reduction("ReduceMin", 1).spreads_on(&[Spread::Quantized]).evaluate(Evaluate::Ends(DATA, |e, x| {
        evaluate::reduce(
            e,
            x,
            &[evaluate::COMMON, &[I8, U8]],
            |v| v.iter().copied().min(),
            |v| v.iter().copied().reduce(f64::min),
        )
    })),
    reduction("ReduceProd", 1).wraps().evaluate(Evaluate::FromBounds(evaluate::reduce_prod, evaluate::product_bounds)),
    reduction("ReduceSum", 1).spreads_on(&[Spread::Kept]).wraps().evaluate(Evaluate::Exact(|e, x| {
        evaluate::reduce(e, x, &[evaluate::COMMON], |v| Some(v.iter().sum()), |v| Some(v.iter().sum()))
    })),
];

const KEEP_DIMS: &[Attr] = &[Attr::new("keep_dims", AttrKind::Bool).default("false")];

const fn reduction(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, reduce).inputs(2, 2).accepts(Accepts::NotBoolean).attributes(KEEP_DIMS)
}

fn reduce(cx: &mut Context) -> Result<(), Fault> {
    cx.check_accepted(0, cx.element_type(0))?;
    check_type(cx, 1, "axes", Accepts::Integer)?;
    check_rank(cx, 1, "axes", &[0, 1])?;
    let keep_dims = cx.bool("keep_dims")?;
    let axes = cx.numbers(1)?;
    let data = cx.shape(0);
    let shape = match (data.dims(), axes) {
        (Some(dims), Some(axes)) => {
            let rank = dims.len();
            let axes = axes.into_iter().map(|axis| checked_axis(cx, 1, axis, rank));
            let axes = axes.collect::<Result<Vec<_>, _>>()?;
            if rank == 0 && keep_dims && !axes.is_empty() {
                let message = message!("`{}` has keep_dims, but its data is a scalar and has no axis to keep"; cx.ty());
                return Err(Fault::value(&[0, 1], message).help("remove `keep_dims`, or use no axes"));
            }
            reduced(dims, &axes, keep_dims)
        }
        (Some(dims), None) if keep_dims => Shape::of_rank(dims.len()),
        // A single axis cannot be duplicated; of several unknown axes some could be equal.
        (Some(dims), None) if cx.shape(1).element_count() == Some(1) => Shape::of_rank(dims.len().saturating_sub(1)),
        _ => Shape::dynamic(),
    };
    cx.finish(cx.element_type(0), shape)
}

fn reduced(dims: &[Dim], axes: &[usize], keep_dims: bool) -> Shape {
    let mut gone = smallvec::SmallVec::<[bool; 8]>::from_elem(false, dims.len());
    for &axis in axes {
        // A scalar has no axis 0.
        if let Some(gone) = gone.get_mut(axis) {
            *gone = true;
        }
    }
    let dims = dims.iter().zip(gone);
    dims.filter(|&(_, gone)| keep_dims || !gone).map(|(&dim, gone)| if gone { Dim::ONE } else { dim }).collect()
}
