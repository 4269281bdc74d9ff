//! Normalizations, and softmax.

use smallvec::smallvec;

use super::common::{as_data, attribute_axis, check_rank, check_type, checked_axis, dim, merge_dims};
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::Dim;

pub(super) const ROWS: &[Operation] = &[
    batch(0, |cx| normalize_batch(cx, 2, [0, 1, 3, 4])).until(4),
    batch(5, |cx| normalize_batch(cx, 0, [1, 2, 3, 4])),
    Operation::new("GroupNormalization", 12, group_norm)
        .requires(&["num_groups", "epsilon"])
        .inputs(3, 3)
        .ties(Ties::All)
        .tied_when_run()
        .attributes(&[Attr::new("num_groups", AttrKind::Int).default("0"), EPSILON]),
    Operation::new("GRN", 0, |cx| check_rank(cx, 0, "data", &[2, 3, 4]).and_then(|_| as_data(cx)))
        .attributes(&[Attr::new("bias", AttrKind::Float).default("1")]),
    Operation::new("LRN", 0, lrn).requires(&["alpha", "beta", "bias", "size"]).inputs(2, 2).attributes(&[
        Attr::new("alpha", AttrKind::Float).default("0"),
        Attr::new("beta", AttrKind::Float).default("0"),
        Attr::new("bias", AttrKind::Float).default("0"),
        Attr::new("size", AttrKind::Unsigned).default("0"),
    ]),
    Operation::new("MVN", 0, as_data).spreads_on(&[Spread::Kept]).wraps().since(2).until(5).attributes(&[
        EPS,
        Attr::new("across_channels", AttrKind::Bool).default("false"),
        NORMALIZE_VARIANCE,
        Attr::new("reduction_axes", AttrKind::Ints).default(""),
    ]),
    Operation::new("MVN", 6, mvn)
        .spreads_on(&[Spread::Kept])
        .wraps()
        .evaluate(Exact(evaluate::mvn))
        .inputs(2, 2)
        .attributes(&[
            EPS,
            NORMALIZE_VARIANCE,
            Attr::new("eps_mode", AttrKind::Enum(&["inside_sqrt", "outside_sqrt"])).default("inside_sqrt"),
        ]),
    Operation::new("NormalizeL2", 0, normalize_l2)
        .spreads_on(&[Spread::Kept])
        .wraps()
        .requires(&["eps", "eps_mode"])
        .inputs(2, 2)
        .attributes(&[EPS, Attr::new("eps_mode", AttrKind::Enum(&["add", "max"])).default("add")]),
    Operation::new("LogSoftmax", 5, softmax).attributes(&[AXIS]),
    Operation::new("Softmax", 1, softmax_from_start)
        .evaluate(Exact(evaluate::softmax))
        .until(7)
        .attributes(&[Attr::new("axis", AttrKind::Unsigned).default("0")]),
    Operation::new("Softmax", 8, softmax).evaluate(Exact(evaluate::softmax)).attributes(&[AXIS]),
];

const fn batch(revision: u8, infer: fn(&mut Context) -> Result<(), Fault>) -> Operation {
    let row = Operation::new("BatchNormInference", revision, infer).inputs(5, 5).requires(&["epsilon"]);
    row.ties(Ties::All).accepts(Accepts::Real).attributes(&[EPSILON])
}

const AXIS: Attr = Attr::new("axis", AttrKind::Int).default("1");
const EPSILON: Attr = Attr::new("epsilon", AttrKind::Float).default("0");
const EPS: Attr = Attr::new("eps", AttrKind::Float).default("0");
const NORMALIZE_VARIANCE: Attr = Attr::new("normalize_variance", AttrKind::Bool).default("true");

fn normalize_batch(cx: &mut Context, data: usize, parameters: [usize; 4]) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1, 2, 3, 4])?;
    cx.check_accepted(data, element_type)?;
    let epsilon = cx.float("epsilon")?;
    if epsilon < 0.0 {
        return Err(Fault::attribute("epsilon", message!("`epsilon` is {}, less than 0"; epsilon)));
    }
    let mut channels = Dim::ANY;
    for input in parameters {
        check_rank(cx, input, "parameters", &[1])?;
        channels =
            merge_dims(&parameters, "length of gamma, beta, mean and variance", channels, dim(cx.shape(input), 0))?;
    }
    let mut shape = cx.shape(data).clone();
    if shape.rank().is_some_and(|rank| rank < 2) {
        let message = message!("the data of `{}` must have channels on axis 1, but has shape {}"; cx.ty(), shape);
        return Err(Fault::shapes(&[data], message));
    }
    let inputs = [data, parameters[0]];
    channels = merge_dims(&inputs, "number of channels of the data and of the parameters", dim(&shape, 1), channels)?;
    if channels.value() == Some(0) {
        return Err(Fault::shapes(&inputs, message!("`{}` has no channels"; cx.ty())));
    }
    if let Some([_, axis, ..]) = shape.dims_mut() {
        *axis = channels;
    }
    cx.finish(element_type, shape)
}

fn group_norm(cx: &mut Context) -> Result<(), Fault> {
    let groups = cx.int("num_groups")?;
    if groups <= 0 {
        return Err(Fault::attribute("num_groups", message!("`num_groups` is {}, but must be 1 or more"; groups)));
    }
    check_rank(cx, 1, "scale", &[1])?;
    check_rank(cx, 2, "bias", &[1])?;
    let [data, scale, bias] = [0, 1, 2].map(|input| cx.shape(input));
    if let Some(dims) = data.dims() {
        let Some(&channels) = dims.get(1) else {
            let message = message!("the data of `{}` must have channels on axis 1, but has shape {}"; cx.ty(), data);
            return Err(Fault::shapes(&[0], message));
        };
        merge_dims(&[0, 1], "number of channels of data and scale", channels, dim(scale, 0))?;
        merge_dims(&[0, 2], "number of channels of data and bias", channels, dim(bias, 0))?;
        if channels.value().is_some_and(|channels| groups > channels || channels % groups != 0) {
            let message = message!("{} channels cannot be divided into {} equal groups"; channels, groups);
            return Err(Fault::attribute("num_groups", message));
        }
    }
    merge_dims(&[1, 2], "length of scale and bias", dim(scale, 0), dim(bias, 0))?;
    cx.finish(cx.element_type(0), data.clone())
}

fn lrn(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 1, "axes", Accepts::Integer)?;
    check_axis_count(cx)?;
    if let Some(rank) = cx.shape(0).rank() {
        // OpenVINO uses the channel axis if axes are unknown, and axis 0 for negative ones.
        let axes = cx.integers(1).unwrap_or_else(|| smallvec![1]);
        if let Some(axis) = axes.iter().find(|&&axis| axis >= rank as i64) {
            return Err(Fault::value(&[0, 1], message!("`LRN` has no axis {}: its data has rank {}"; axis, rank)));
        }
    }
    as_data(cx)
}

/// An error if axes are not a list, or more than the data has. OpenVINO checks this only for static shapes.
fn check_axis_count(cx: &Context) -> Result<(), Fault> {
    let (data, axes) = (cx.shape(0), cx.shape(1));
    if !axes.is_static() {
        return Ok(());
    }
    check_rank(cx, 1, "axes", &[1])?;
    match (data.rank(), dim(axes, 0).value()) {
        (Some(rank), Some(count)) if count > rank as i64 => {
            Err(Fault::shapes(&[0, 1], message!("`{}` has {} axes, but its data has rank {}"; cx.ty(), count, rank)))
        }
        _ => Ok(()),
    }
}

fn mvn(cx: &mut Context) -> Result<(), Fault> {
    check_axis_count(cx)?;
    as_data(cx)
}

fn normalize_l2(cx: &mut Context) -> Result<(), Fault> {
    check_rank(cx, 1, "axes", &[0, 1])?;
    if let (Some(axes), Some(rank)) = (cx.numbers(1)?, cx.shape(0).rank()) {
        for axis in axes {
            if checked_axis(cx, 1, axis, rank)? >= rank {
                return Err(Fault::shapes(&[0], "the data of `NormalizeL2` is a scalar, which has no axes"));
            }
        }
    }
    as_data(cx)
}

fn softmax_from_start(cx: &mut Context) -> Result<(), Fault> {
    let axis = cx.unsigned("axis")?;
    match cx.shape(0).rank() {
        Some(rank) if axis >= rank.max(1) as u64 => {
            let fault = Fault::attribute(
                "axis",
                message!("`axis` is {}, which is not an axis of the input of rank {}"; axis, rank),
            );
            Err(fault)
        }
        _ => as_data(cx),
    }
}

fn softmax(cx: &mut Context) -> Result<(), Fault> {
    if let Some(rank) = cx.shape(0).rank() {
        attribute_axis(cx, "axis", cx.int("axis")?, rank.max(1))?;
    }
    as_data(cx)
}
