//! Convolutions and transposed convolutions (`…BackpropData`).

use typelift_promote::ElementType;

use super::attributes::before;
use super::common::{check_rank, check_type, dim, divide, map_ends, merge_dims};
use super::{Accepts, Attr, AttrKind, Context, Fault, List, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    forward("Convolution", |cx| plain(cx, &[0, 1], &[3, 4, 5])).wraps().requires(WINDOW).attributes(ATTRIBUTES),
    forward("GroupConvolution", group_convolution).wraps().requires(WINDOW).attributes(ATTRIBUTES),
    forward("BinaryConvolution", |cx| plain(cx, &[0], &[4])).ties(Ties::None).attributes(&[
        STRIDES,
        DILATIONS,
        PADS_BEGIN,
        PADS_END,
        AUTO_PAD,
        Attr::new("mode", AttrKind::Enum(&["xnor-popcount"])).default("xnor-popcount"),
        Attr::new("pad_value", AttrKind::Float).default("0"),
    ]),
    backward("ConvolutionBackpropData", convolution_backprop),
    backward("GroupConvolutionBackpropData", |cx| transposed(cx, 3, |cx| group_channels(cx, 1, 2))),
    deformable(1).until(7).inputs(3, 3).ties(Ties::All).attributes(before("bilinear_interpolation_pad", DEFORMABLE)),
    deformable(8).inputs(3, 4).ties(Ties::Inputs(&[0, 1, 2])).attributes(DEFORMABLE),
];

const WINDOW: &[&str] = &["strides", "pads_begin", "pads_end", "dilations"];
const ATTRIBUTES: &[Attr] = &[STRIDES, DILATIONS, PADS_BEGIN, PADS_END, AUTO_PAD];
const BACKWARD: &[Attr] = &[STRIDES, DILATIONS, PADS_BEGIN, PADS_END, AUTO_PAD, OUTPUT_PADDING];
const DEFORMABLE: &[Attr] = &[
    STRIDES,
    DILATIONS,
    PADS_BEGIN,
    PADS_END,
    AUTO_PAD,
    GROUP,
    DEFORMABLE_GROUP,
    Attr::new("bilinear_interpolation_pad", AttrKind::Bool).default("false"),
];

pub(super) const STRIDES: Attr = Attr::new("strides", AttrKind::Ints).default("");
pub(super) const DILATIONS: Attr = Attr::new("dilations", AttrKind::Ints).default("");
pub(super) const PADS_BEGIN: Attr = Attr::new("pads_begin", AttrKind::Ints).default("");
pub(super) const PADS_END: Attr = Attr::new("pads_end", AttrKind::Ints).default("");
pub(super) const AUTO_PAD: Attr =
    Attr::new("auto_pad", AttrKind::Enum(&["explicit", "same_lower", "same_upper", "valid"])).default("explicit");
const OUTPUT_PADDING: Attr = Attr::new("output_padding", AttrKind::Ints).default("");
const GROUP: Attr = Attr::new("group", AttrKind::Int).default("0");
const DEFORMABLE_GROUP: Attr = Attr::new("deformable_group", AttrKind::Int).default("0");

const fn forward(name: &'static str, infer: fn(&mut Context) -> Result<(), Fault>) -> Operation {
    Operation::new(name, 1, infer).inputs(2, 2).ties(Ties::All).accepts(Accepts::NotBoolean)
}

const fn backward(name: &'static str, infer: fn(&mut Context) -> Result<(), Fault>) -> Operation {
    let row = Operation::new(name, 1, infer).inputs(2, 3).ties(Ties::Inputs(&[0, 1])).accepts(Accepts::NotBoolean);
    row.shaped_by(&[2]).requires(WINDOW).attributes(BACKWARD)
}

const fn deformable(revision: u8) -> Operation {
    Operation::new("DeformableConvolution", revision, deformable_convolution).accepts(Accepts::NotBoolean)
}

/// Window that moves over the spatial axes; each list has one number for each axis.
struct SpatialWindow {
    strides: List<i64>,
    dilations: List<i64>,
    /// Padding of both sides together; not used if the stride alone determines the output.
    pads: Vec<i64>,
    /// True if padding keeps the length of the input, divided by the stride.
    same: bool,
}

impl SpatialWindow {
    /// The window from the attributes. Their lengths must equal the number of spatial axes.
    fn new(cx: &Context, spatial: usize) -> Result<Self, Fault> {
        let strides = per_axis(cx, "strides", spatial, 1)?;
        let dilations = per_axis(cx, "dilations", spatial, 1)?;
        let begin = per_axis(cx, "pads_begin", spatial, 0)?;
        let end = per_axis(cx, "pads_end", spatial, 0)?;
        for (name, numbers) in [("strides", &strides), ("dilations", &dilations)] {
            if numbers.contains(&0) {
                return Err(Fault::attribute(name, message!("`{}` has a 0"; name)));
            }
        }
        let (same, pads) = match cx.word("auto_pad")? {
            "explicit" => (false, begin.iter().zip(&end).map(|(begin, end)| begin.saturating_add(*end)).collect()),
            auto_pad => (auto_pad != "valid", vec![0; spatial]),
        };
        Ok(Self { strides, dilations, pads, same })
    }

    fn forward(&self, cx: &Context, data: &Shape, filters: &Shape, filter_input: usize) -> Result<Vec<Dim>, Fault> {
        let spatial = self.strides.len();
        let axes = (0..spatial).zip(&self.strides).zip(self.dilations.iter().zip(&self.pads));
        let dims = axes.map(|((axis, &stride), (&dilation, &pads))| {
            let length = from_end(data, spatial, axis);
            if self.same {
                return Ok(ceil_div(length, stride));
            }
            let (padded, kernel) = (length + Dim::from(pads), dilated(from_end(filters, spatial, axis), dilation));
            if let (Some(padded), Some(kernel)) = (padded.value(), kernel.value())
                && kernel > padded
            {
                let ty = cx.layer.ty();
                let message = message!(
                    "the filter of `{}` spans {} on spatial axis {}, more than the {} of the padded data";
                    ty, kernel, axis, padded
                );
                return Err(Fault::shapes(&[0, filter_input], message));
            }
            Ok(floor_div(padded - kernel, stride) + Dim::ONE)
        });
        dims.collect()
    }

    fn backward(&self, data: &Shape, filters: &Shape, output_padding: &[i64]) -> Vec<Dim> {
        let spatial = self.strides.len();
        let axes = (0..spatial).zip(self.strides.iter().zip(&self.dilations)).zip(self.pads.iter().zip(output_padding));
        let dims = axes.map(|((axis, (&stride, &dilation)), (&pads, &padding))| {
            let grown = (from_end(data, spatial, axis) - Dim::ONE) * Dim::from(stride);
            let length = grown + dilated(from_end(filters, spatial, axis), dilation);
            match padding.saturating_sub(pads) {
                0 => length,
                more => map_ends(length, |length| length.checked_add(more).filter(|&sum| sum >= 0).unwrap_or(-1)),
            }
        });
        dims.collect()
    }
}

/// If the attribute is empty, all are `absent`.
pub(super) fn per_axis(cx: &Context, name: &'static str, spatial: usize, absent: i64) -> Result<List<i64>, Fault> {
    let numbers = cx.ints(name)?;
    match numbers.len() {
        0 => Ok(List::from_elem(absent, spatial)),
        length if length == spatial => Ok(numbers),
        length => {
            let message = message!("`{}` has {} numbers, but there are {} spatial axes"; name, length, spatial);
            Err(Fault::attribute(name, message).counts_axes())
        }
    }
}

/// `axis` counts from the first of the last `spatial` axes.
fn from_end(shape: &Shape, spatial: usize, axis: usize) -> Dim {
    let lead = shape.rank().and_then(|rank| rank.checked_sub(spatial));
    lead.map_or(Dim::ANY, |lead| dim(shape, lead + axis))
}

/// The length that a filter covers if its elements are `dilation` apart.
fn dilated(length: Dim, dilation: i64) -> Dim {
    (length - Dim::ONE) * Dim::from(dilation) + Dim::ONE
}

pub(super) fn floor_div(dim: Dim, divisor: i64) -> Dim {
    map_ends(dim, |length| length.checked_div(divisor).unwrap_or(0))
}

pub(super) fn ceil_div(dim: Dim, divisor: i64) -> Dim {
    map_ends(
        dim,
        |length| if length == 0 { 0 } else { (length - 1).checked_div(divisor).unwrap_or(0).saturating_add(1) },
    )
}

/// The number of spatial axes. It follows from the rank of the data, the rank of the filters minus `lead`, the length
/// of the `target` shape, or the attributes.
fn spatial_axes(cx: &Context, lead: usize, target: Option<usize>) -> Result<Option<usize>, Fault> {
    let ranks = [(0, 2), (1, lead)].into_iter().find_map(|(input, lead)| Some((input, lead, cx.shape(input).rank()?)));
    match ranks {
        Some((_, lead, rank)) if rank >= lead => return Ok(Some(rank - lead)),
        Some((input, lead, rank)) if rank + 1 < lead => {
            let message = message!("the input of `{}` has rank {}, so it has no spatial axes"; cx.ty(), rank);
            return Err(Fault::shapes(&[input], message));
        }
        // OpenVINO continues with one axis too few if a rank is unknown.
        _ => {}
    }
    if let Some(length) = target.filter(|&length| length > 0) {
        return Ok(Some(length));
    }
    for name in ["strides", "dilations", "pads_begin", "pads_end"] {
        let length = cx.ints(name)?.len();
        if length > 0 {
            // Longer lists are ignored: no tensor has a higher rank.
            return Ok(Some(length).filter(|&length| length <= Shape::MAX_RANK));
        }
    }
    Ok(None)
}

fn numeric(cx: &Context, inputs: &[usize]) -> Result<ElementType, Fault> {
    let ty = cx.merge_types(inputs)?;
    cx.check_accepted(0, ty)?;
    Ok(ty)
}

/// An error if the filters' rank is not the data's rank plus `more`.
fn check_filter_rank(cx: &Context, more: usize) -> Result<(), Fault> {
    let (data, filters) = (cx.shape(0), cx.shape(1));
    match (data.rank(), filters.rank()) {
        (Some(rank), Some(filter_rank)) if rank + more != filter_rank => {
            let ty = cx.layer.ty();
            let message =
                message!("`{}` needs filters of rank {} for its data {}, but gets {}"; ty, rank + more, data, filters);
            Err(Fault::shapes(&[0, 1], message))
        }
        _ => Ok(()),
    }
}

/// An error if the channels of the data differ from the filters' axis `axis`.
fn check_channels(cx: &Context, axis: usize) -> Result<(), Fault> {
    let (channels, taken) = (dim(cx.shape(0), 1), dim(cx.shape(1), axis));
    if channels.is_compatible(taken) {
        return Ok(());
    }
    Err(Fault::shapes(&[0, 1], message!("the data has {} channels, but the filters take {}"; channels, taken)))
}

/// The output channels of grouped filters: `taken` is the axis of a group's input channels, and `given` that of its
/// output channels.
fn group_channels(cx: &Context, taken: usize, given: usize) -> Result<Dim, Fault> {
    let filters = cx.shape(1);
    let mut groups = dim(filters, 0);
    if let (Some(_), Some(per_group)) = (cx.shape(0).rank(), dim(filters, taken).value()) {
        let channels = dim(cx.shape(0), 1);
        groups = divide(channels, per_group).and_then(|quotient| groups & quotient).ok_or_else(|| {
            let message = message!("{} channels of data are not {} groups of {}"; channels, groups, per_group);
            Fault::shapes(&[0, 1], message).rule("channels = groups x the input channels of a group")
        })?;
    }
    Ok(groups * dim(filters, given))
}

fn plain(cx: &mut Context, typed: &[usize], ranks: &[usize]) -> Result<(), Fault> {
    let element_type = numeric(cx, typed)?;
    let Some(spatial) = spatial_axes(cx, 2, None)? else { return cx.finish(element_type, Shape::dynamic()) };
    check_filter_rank(cx, 0)?;
    check_channels(cx, 1)?;
    check_rank(cx, 0, "data", ranks)?;
    let (data, filters) = (cx.shape(0), cx.shape(1));
    let dims = SpatialWindow::new(cx, spatial)?.forward(cx, data, filters, 1)?;
    cx.finish(element_type, [dim(data, 0), dim(filters, 0)].into_iter().chain(dims).collect())
}

fn group_convolution(cx: &mut Context) -> Result<(), Fault> {
    let element_type = numeric(cx, &[0, 1])?;
    let Some(spatial) = spatial_axes(cx, 3, None)? else { return cx.finish(element_type, Shape::dynamic()) };
    check_rank(cx, 0, "data", &[3, 4, 5])?;
    check_filter_rank(cx, 1)?;
    let window = SpatialWindow::new(cx, spatial)?;
    let channels = group_channels(cx, 2, 1)?;
    let (data, filters) = (cx.shape(0), cx.shape(1));
    let dims = window.forward(cx, data, filters, 1)?;
    cx.finish(element_type, [dim(data, 0), channels].into_iter().chain(dims).collect())
}

fn convolution_backprop(cx: &mut Context) -> Result<(), Fault> {
    transposed(cx, 2, |cx| {
        check_channels(cx, 0)?;
        Ok(dim(cx.shape(1), 1))
    })
}

fn transposed(cx: &mut Context, lead: usize, channels: fn(&Context) -> Result<Dim, Fault>) -> Result<(), Fault> {
    let element_type = numeric(cx, &[0, 1])?;
    // `None` if there is no third input.
    let mut target = None;
    if cx.inputs.len() == 3 {
        check_type(cx, 2, "numbers of the output shape", Accepts::Integer)?;
        check_rank(cx, 2, "output shape", &[1])?;
        cx.numbers(2)?;
        target = Some(match cx.computed_shape(2)? {
            Some(shape) => shape,
            None => match cx.shape(2).dims().and_then(|dims| dims.first()?.value()) {
                Some(length) => Shape::of_rank(usize::try_from(length).unwrap_or(usize::MAX)),
                None => Shape::dynamic(),
            },
        });
    }
    let Some(spatial) = spatial_axes(cx, lead, target.as_ref().and_then(Shape::rank))? else {
        if cx.shape(0).rank().or(cx.shape(1).rank()).is_some() {
            let message =
                message!("the number of spatial axes of `{}` cannot be derived from its inputs or attributes"; cx.ty());
            return Err(Fault::shapes(&[0, 1], message));
        }
        return cx.finish(element_type, Shape::dynamic());
    };
    if let Some(length) = target.as_ref().and_then(Shape::rank).filter(|&length| length != spatial) {
        let message = message!("the output shape has {} numbers, but there are {} spatial axes"; length, spatial);
        return Err(Fault::value(&[2], message).counts_axes());
    }
    check_rank(cx, 0, "data", &[3, 4, 5])?;
    check_filter_rank(cx, lead - 2)?;
    let window = SpatialWindow::new(cx, spatial)?;
    let output_padding = per_axis(cx, "output_padding", spatial, 0)?;
    let channels = channels(cx)?;
    let (data, filters) = (cx.shape(0), cx.shape(1));
    if let Some(target) = target.as_ref().filter(|target| window.same && target.rank().is_none())
        && data.rank().is_some()
        && filters.rank().is_some()
        && (0..spatial)
            .any(|axis| from_end(data, spatial, axis).is_fixed() && from_end(filters, spatial, axis).is_fixed())
    {
        let message = message!("the padding of `{}` for the output shape {} cannot be computed"; cx.ty(), target);
        return Err(Fault::value(&[2], message)
            .help("provide an output shape of known length, or set pads instead of auto_pad"));
    }
    let dims = match &target {
        // OpenVINO omits the spatial axes if the length of the output shape is unknown.
        Some(target) => target.dims().unwrap_or_default().to_vec(),
        None => window.backward(data, filters, &output_padding),
    };
    cx.finish(element_type, [dim(data, 0), channels].into_iter().chain(dims).collect())
}

const DEFORMABLE_INPUTS: [&str; 4] = ["data", "offsets", "filters", "mask"];

fn deformable_convolution(cx: &mut Context) -> Result<(), Fault> {
    let element_type = numeric(cx, &[0, 1, 2])?;
    let has_mask = cx.inputs.len() == 4;
    if has_mask {
        check_type(cx, 3, "numbers of the mask", Accepts::NotBoolean)?;
    }
    let (data, offsets, filters, mask) = (cx.shape(0), cx.shape(1), cx.shape(2), cx.shape(3));
    if [data, offsets, filters].iter().all(|shape| shape.rank().is_none()) {
        // For smaller ranks OpenVINO checks only the channels of a mask.
        if has_mask && mask.rank().is_some_and(|rank| rank < 2) {
            check_rank(cx, 3, "mask", &[4])?;
        }
        check_divisible(cx, 3, 1, "deformable_group")?;
        return cx.finish(element_type, Shape::dynamic());
    }
    for (input, name) in DEFORMABLE_INPUTS.iter().enumerate().take(cx.inputs.len()) {
        check_rank(cx, input, name, &[4])?;
    }
    for name in ["group", "deformable_group"] {
        let groups = cx.int(name)?;
        if groups <= 0 {
            return Err(Fault::attribute(name, message!("`{}` is {}, but must be 1 or more"; name, groups)));
        }
    }
    let window = SpatialWindow::new(cx, 2)?;
    let (groups, deformable_groups) = (Dim::fixed(cx.int("group")?), Dim::fixed(cx.int("deformable_group")?));
    check_divisible(cx, 0, 1, "group")?;
    check_divisible(cx, 1, 1, "deformable_group")?;
    check_divisible(cx, 2, 0, "group")?;
    check_divisible(cx, 3, 1, "deformable_group")?;
    check_offset_channels(cx, deformable_groups)?;
    let batch = merge_dims(&[0, 1], "batch of data and offsets", dim(data, 0), dim(offsets, 0))?;
    merge_dims(&[0, 3], "batch of data and mask", dim(data, 0), dim(mask, 0))?;
    let (channels, taken) = (dim(data, 1), dim(filters, 1) * groups);
    if !channels.is_compatible(taken) {
        let message = message!("the data has {} channels, but the filters take {}"; channels, taken);
        return Err(Fault::shapes(&[0, 2], message));
    }
    let dims = window.forward(cx, data, filters, 2)?;
    for (input, shape) in [(1, offsets), (3, mask)] {
        for (axis, &length) in (2..).zip(&dims) {
            let given = dim(shape, axis);
            if !length.is_compatible(given) {
                let message = message!(
                    "axis {} of the {} is {}, but that of the output is {}";
                    axis, DEFORMABLE_INPUTS[input], given, length
                );
                return Err(Fault::shapes(&[input], message));
            }
        }
    }
    cx.finish(element_type, [batch, dim(filters, 0)].into_iter().chain(dims).collect())
}

/// Checks that offsets and mask have a channel for each element of a filter, for each group.
fn check_offset_channels(cx: &Context, deformable_groups: Dim) -> Result<(), Fault> {
    let (offsets, filters, mask) = (cx.shape(1), cx.shape(2), cx.shape(3));
    let elements = dim(filters, 2) * dim(filters, 3) * deformable_groups;
    for (input, shape, needed) in [(1, offsets, elements * Dim::fixed(2)), (3, mask, elements)] {
        let channels = dim(shape, 1);
        if filters.rank().is_some() && !channels.is_compatible(needed) {
            let name = DEFORMABLE_INPUTS[input];
            let message =
                message!("the {} have {} channels, and the filters {} need {}"; name, channels, filters, needed);
            let rule =
                if input == 1 { "2 x deformable_group x height x width" } else { "deformable_group x height x width" };
            return Err(Fault::shapes(&[input, 2], message).rule(rule));
        }
    }
    Ok(())
}

fn check_divisible(cx: &Context, input: usize, axis: usize, groups: &'static str) -> Result<(), Fault> {
    let length = dim(cx.shape(input), axis);
    match divide(length, cx.int(groups)?) {
        Some(_) => Ok(()),
        None => {
            let message =
                message!("axis {} of input {} is {}, which is not a multiple of `{}`"; axis, input, length, groups);
            Err(Fault::shapes(&[input], message))
        }
    }
}
