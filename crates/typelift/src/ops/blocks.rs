//! Operations that move elements between axes: DepthToSpace, BatchToSpace, ShuffleChannels, …

use super::common::{attribute_axis, check_rank, check_type, dim_between};
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Spread, Ties, evaluate};
use crate::findings::{Text, message};
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("BatchToSpace", 1, batch_to_space).shaped_by(&[1, 2, 3]).since(2).inputs(4, 4).ties(BLOCKS),
    Operation::new("DepthToSpace", 0, |cx| move_depth(cx, true))
        .spreads_on(&[Spread::Quantized])
        .requires(&["mode"])
        .evaluate(Exact(evaluate::depth_to_space))
        .attributes(DEPTH),
    Operation::new("ExtractImagePatches", 3, extract_image_patches).attributes(&[
        Attr::new("sizes", AttrKind::Ints).default(""),
        Attr::new("strides", AttrKind::Ints).default(""),
        Attr::new("rates", AttrKind::Ints).default(""),
        Attr::new("auto_pad", AttrKind::Enum(&["explicit", "same_lower", "same_upper", "valid"])).default("explicit"),
    ]),
    Operation::new("ShuffleChannels", 0, shuffle_channels)
        .spreads_on(&[Spread::Quantized])
        .evaluate(Exact(evaluate::shuffle_channels))
        .except(2)
        .attributes(&[Attr::new("axis", AttrKind::Int).default("1"), Attr::new("group", AttrKind::Int).default("1")]),
    Operation::new("SpaceToBatch", 1, space_to_batch).shaped_by(&[1, 2, 3]).since(2).inputs(4, 4),
    Operation::new("SpaceToDepth", 0, |cx| move_depth(cx, false))
        .requires(&["mode"])
        .evaluate(Exact(evaluate::space_to_depth))
        .attributes(DEPTH),
];

/// Inputs block shape and crops or pads, which must have the same type.
const BLOCKS: Ties = Ties::Inputs(&[1, 2, 3]);

const DEPTH: &[Attr] = &[
    Attr::new("block_size", AttrKind::Int).default("0"),
    Attr::new("mode", AttrKind::Enum(&["blocks_first", "depth_first"])).default("blocks_first"),
];

/// Divides a dimension, and fails if no possible length is divisible.
fn divided(cx: &Context, axis: usize, dim: Dim, divisor: i64) -> Result<Dim, Fault> {
    dim.checked_div(divisor).filter(|quotient| !quotient.is_empty()).ok_or_else(|| {
        let message = message!("`{}` cannot divide {}, on axis {}, by {}"; cx.ty(), dim, axis, divisor);
        Fault::shapes(&[0], message).rule("the dimension must be a multiple of the block size")
    })
}

/// Blocks of elements that DepthToSpace and SpaceToDepth move.
struct DepthBlocks<'a> {
    dims: &'a [Dim],
    /// The length of a block on each spatial axis.
    size: i64,
    /// The number of elements that a block has in the depth.
    elements: i64,
}

impl<'a> DepthBlocks<'a> {
    /// `None` if the rank of the data is dynamic, because OpenVINO then checks nothing.
    fn new(cx: &Context<'a>) -> Result<Option<Self>, Fault> {
        let data = cx.shape(0);
        let Some(dims) = data.dims() else { return Ok(None) };
        let Some(spatial) = dims.len().checked_sub(2).filter(|&spatial| spatial > 0) else {
            let message = message!("`{}` needs axes after batch and depth, but gets the shape {}"; cx.ty(), data);
            return Err(Fault::shapes(&[0], message));
        };
        let size = cx.int("block_size")?;
        let elements = u32::try_from(spatial).ok().and_then(|spatial| size.checked_pow(spatial));
        match elements.filter(|_| size > 0) {
            Some(elements) => Ok(Some(Self { dims, size, elements })),
            None => Err(Fault::attribute("block_size", message!("`block_size` is {}, but must be 1 or more"; size))),
        }
    }
}

fn move_depth(cx: &mut Context, to_space: bool) -> Result<(), Fault> {
    let shape = match DepthBlocks::new(cx)? {
        None => Shape::dynamic(),
        Some(DepthBlocks { dims, size, elements }) => {
            let dims = dims.iter().enumerate().map(|(axis, &dim)| match axis {
                0 => Ok(dim),
                1 if to_space => divided(cx, axis, dim, elements),
                1 => Ok(dim * Dim::fixed(elements)),
                _ if to_space => Ok(dim * Dim::fixed(size)),
                _ => divided(cx, axis, dim, size),
            });
            dims.collect::<Result<_, _>>()?
        }
    };
    cx.finish(cx.element_type(0), shape)
}

/// Checks the inputs of BatchToSpace and SpaceToBatch. Returns the dimensions of the data and the common shape of the
/// other inputs.
fn batch_blocks<'a>(cx: &Context<'a>, roles: [&'static str; 3]) -> Result<(Option<&'a [Dim]>, Shape), Fault> {
    for (input, role) in (1..).zip(roles) {
        check_type(cx, input, role, Accepts::Integer)?;
    }
    let merged = cx.shape(2).merge(cx.shape(3)).and_then(|shape| shape.merge(cx.shape(1)));
    let list = merged.map_err(|mismatch| {
        let message = message!("{} of `{}` must be equally long: {}"; Text(roles.join(", ")), cx.ty(), mismatch);
        Fault::shapes(&[1, 2, 3], message)
    })?;
    for (input, role) in (1..).zip(roles) {
        check_rank(cx, input, role, &[1])?;
    }
    let data = cx.shape(0);
    if data.rank().is_some_and(|rank| rank < 2) {
        return Err(Fault::shapes(&[0], message!("the data of `{}` needs axes after the batch"; cx.ty())));
    }
    Ok((data.dims(), list))
}

fn batch_to_space(cx: &mut Context) -> Result<(), Fault> {
    cx.merge_types(&[1, 2, 3])?;
    let (dims, list) = batch_blocks(cx, ["block_shape", "crops_begin", "crops_end"])?;
    let Some(dims) = dims else { return cx.finish(cx.element_type(0), Shape::dynamic()) };
    if let Some(&[count]) = list.to_static().as_deref()
        && count != dims.len() as i64
    {
        let message = message!("`BatchToSpace` has {} block lengths, and data of rank {}"; count, dims.len());
        return Err(Fault::shapes(&[0, 1], message));
    }
    let blocks = cx.numbers(1)?;
    if let Some(block) = blocks.iter().flatten().find(|&&block| block < 1) {
        let message = message!("the block_shape of `BatchToSpace` contains {}, but lengths must be 1 or more"; block);
        return Err(Fault::value(&[1], message));
    }
    let mut shape: Shape = dims.iter().map(|_| Dim::ANY).collect();
    let crops = cx.numbers(2)?.zip(cx.numbers(3)?);
    let out = shape.dims_mut().unwrap_or_default();
    if let (Some(out), Some(&batch), Some(blocks)) = (out.first_mut(), dims.first(), &blocks) {
        *out = divided(cx, 0, batch, blocks.iter().fold(1, |product, &block| product.wrapping_mul(block)))?;
    }
    if let Some((begin, end)) = crops {
        if let Some(crop) = begin.iter().chain(&end).find(|&&crop| crop < 0) {
            return Err(Fault::value(&[2, 3], message!("`BatchToSpace` cannot crop by {}"; crop)));
        }
        for (axis, (out, &dim)) in out.iter_mut().zip(dims).enumerate().skip(1) {
            let crop = at(&begin, axis).saturating_add(at(&end, axis));
            let block = blocks.as_deref().map_or(Dim::at_least(1), |blocks| Dim::fixed(at(blocks, axis)));
            let whole = dim * block;
            if whole.value().is_some_and(|length| blocks.is_some() && crop > length) {
                let message = message!("`BatchToSpace` cannot crop {}, on axis {}, by {}"; whole, axis, crop);
                return Err(Fault::value(&[0, 1, 2, 3], message));
            }
            *out = whole - Dim::fixed(crop);
        }
    }
    cx.finish(cx.element_type(0), shape)
}

fn space_to_batch(cx: &mut Context) -> Result<(), Fault> {
    let (dims, _) = batch_blocks(cx, ["block_shape", "pads_begin", "pads_end"])?;
    let Some(dims) = dims else { return cx.finish(cx.element_type(0), Shape::dynamic()) };
    let mut shape: Shape = dims.iter().map(|_| Dim::ANY).collect();
    let blocks = cx.numbers(1)?;
    let pads = cx.numbers(2)?.zip(cx.numbers(3)?);
    let out = shape.dims_mut().unwrap_or_default();
    if let (Some(out), Some(&batch), Some(blocks)) = (out.first_mut(), dims.first(), &blocks) {
        *out = batch * Dim::from(blocks.iter().fold(1_i64, |product, &block| product.wrapping_mul(block)));
    }
    if let (Some(blocks), Some((begin, end))) = (blocks, pads) {
        for (axis, (out, &dim)) in out.iter_mut().zip(dims).enumerate().skip(1) {
            let block = at(&blocks, axis);
            if block < 1 {
                let message = message!("the block_shape of `SpaceToBatch` gives axis {} blocks of {}"; axis, block);
                return Err(Fault::value(&[1], message).rule("block_shape needs one length for each axis, 1 or more"));
            }
            let padded = dim + Dim::from(at(&begin, axis)) + Dim::from(at(&end, axis));
            *out = divided(cx, axis, padded, block)?;
            if padded.upper().is_none() {
                // OpenVINO does not divide the upper bound if it is open.
                *out = Dim::at_least(out.lower());
            }
        }
    }
    cx.finish(cx.element_type(0), shape)
}

fn shuffle_channels(cx: &mut Context) -> Result<(), Fault> {
    let group = cx.int("group")?;
    if group < 1 {
        return Err(Fault::attribute("group", message!("`group` is {}, and there must be one group at least"; group)));
    }
    let data = cx.shape(0);
    if let Some(dims) = data.dims() {
        let axis = attribute_axis(cx, "axis", cx.int("axis")?, dims.len())?;
        if let Some(length) = dims.get(axis).and_then(|dim| dim.value())
            && length % group != 0
        {
            let message =
                message!("`ShuffleChannels` cannot divide {}, on axis {}, into {} groups"; length, axis, group);
            return Err(Fault::shapes(&[0], message));
        }
    }
    cx.finish(cx.element_type(0), data.clone())
}

fn at(list: &[i64], axis: usize) -> i64 {
    list.get(axis).copied().unwrap_or(0)
}

fn extract_image_patches(cx: &mut Context) -> Result<(), Fault> {
    check_rank(cx, 0, "data", &[4])?;
    let pair = |name: &'static str| match cx.ints(name)?.as_slice() {
        &[rows, columns] => Ok([rows, columns]),
        other => Err(Fault::attribute(
            name,
            message!("`{}` has {} numbers, but needs two: rows and columns"; name, other.len()),
        )),
    };
    let (sizes, strides, rates) = (pair("sizes")?, pair("strides")?, pair("rates")?);
    for (name, numbers) in [("strides", strides), ("rates", rates)] {
        // OpenVINO reads the numbers as unsigned, so negative ones become large.
        if numbers.contains(&0) {
            return Err(Fault::attribute(name, message!("`{}` must not be 0"; name)));
        }
    }
    let valid = match cx.word("auto_pad")? {
        "explicit" => {
            let message = "`auto_pad` of `ExtractImagePatches` must be valid, same_lower or same_upper";
            return Err(Fault::attribute("auto_pad", message));
        }
        mode => mode == "valid",
    };
    let shape = match cx.shape(0).dims() {
        Some(&[batch, depth, rows, columns]) => {
            let elements = Dim::from(sizes[0].wrapping_mul(sizes[1]));
            let [rows, columns] = [(rows, 0), (columns, 1)].map(|(dim, axis)| {
                let reach = rates[axis].wrapping_mul(sizes[axis].wrapping_sub(1));
                steps(if valid { dim - Dim::from(reach) } else { dim }, strides[axis])
            });
            [batch, depth * elements, rows, columns].into_iter().collect()
        }
        _ => Shape::of_rank(4),
    };
    cx.finish(cx.element_type(0), shape)
}

/// Divides both bounds of a dimension and rounds up.
fn steps(dim: Dim, stride: i64) -> Dim {
    let round = |length: i64| if length == 0 { 0 } else { (length - 1).wrapping_div(stride).saturating_add(1) };
    match dim.value() {
        Some(length) => Dim::from(round(length)),
        None => dim_between(round(dim.lower()), dim.upper().map_or(-1, round)),
    }
}
