//! Pooling over regions of interest.

use typelift_promote::ElementType;

use super::attributes::before;
use super::common::{check_rank, check_type, common_dim, input_dim, require_dim};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("DeformablePSROIPooling", 1, deformable_psroi_pooling).inputs(2, 3).attributes(&[
        OUTPUT_DIM,
        SPATIAL_SCALE,
        Attr::new("group_size", AttrKind::Int).default("1"),
        Attr::new("mode", AttrKind::Text).default("bilinear_deformable"),
        Attr::new("spatial_bins_x", AttrKind::Int).default("1"),
        Attr::new("spatial_bins_y", AttrKind::Int).default("1"),
        Attr::new("trans_std", AttrKind::Float).default("1"),
        Attr::new("part_size", AttrKind::Int).default("1"),
    ]),
    Operation::new("PSROIPooling", 0, psroi_pooling).inputs(2, 2).accepts(Accepts::Real).floats(&[1]).attributes(&[
        OUTPUT_DIM,
        Attr::new("group_size", AttrKind::Int).default("0"),
        SPATIAL_SCALE,
        Attr::new("mode", AttrKind::Text).default(""),
        Attr::new("spatial_bins_x", AttrKind::Int).default("0"),
        Attr::new("spatial_bins_y", AttrKind::Int).default("0"),
    ]),
    align("ROIAlign", 3).until(8).requires(&["pooled_h", "pooled_w"]).attributes(before("aligned_mode", ALIGN)),
    align("ROIAlign", 9).requires(&["pooled_h", "pooled_w"]).attributes(ALIGN),
    align("ROIAlignRotated", 15).attributes(&[
        POOLED_H,
        POOLED_W,
        SAMPLING,
        SPATIAL_SCALE,
        Attr::new("clockwise_mode", AttrKind::Bool).default("false"),
    ]),
    Operation::new("ROIPooling", 0, roi_pooling)
        .requires(&["pooled_h", "pooled_w", "spatial_scale"])
        .since(2)
        .inputs(2, 2)
        .ties(Ties::All)
        .accepts(Accepts::Real)
        .attributes(&[
            Attr::new("output_size", AttrKind::Ints).default("0,0"),
            Attr::new("output_roi", AttrKind::Ints).default(""),
            POOLED_H,
            POOLED_W,
            SPATIAL_SCALE,
            Attr::new("method", AttrKind::Text).default("max"),
        ]),
    Operation::new("ExperimentalDetectronROIFeatureExtractor", 6, roi_features)
        .inputs(2, usize::MAX)
        .ties(Ties::All)
        .accepts(Accepts::Real)
        .attributes(&[
            Attr::new("output_size", AttrKind::Int).default("0"),
            Attr::new("sampling_ratio", AttrKind::Int).default("0"),
            Attr::new("pyramid_scales", AttrKind::Ints).default(""),
            Attr::new("aligned", AttrKind::Bool).default("false"),
        ]),
    Operation::new("ExperimentalDetectronTopKROIs", 6, top_k_rois)
        .inputs(2, 2)
        .ties(Ties::All)
        .accepts(Accepts::Real)
        .attributes(&[Attr::new("max_rois", AttrKind::Int).default("0")]),
];

const fn align(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, roi_align).inputs(3, 3).ties(Ties::Inputs(&[0, 1])).accepts(Accepts::Real)
}

const OUTPUT_DIM: Attr = Attr::new("output_dim", AttrKind::Int).default("0");
const SPATIAL_SCALE: Attr = Attr::new("spatial_scale", AttrKind::Float).default("0");
const POOLED_H: Attr = Attr::new("pooled_h", AttrKind::Int).default("0");
const POOLED_W: Attr = Attr::new("pooled_w", AttrKind::Int).default("0");
const SAMPLING: Attr = Attr::new("sampling_ratio", AttrKind::Int).default("0");
const ALIGN: &[Attr] = &[
    POOLED_H,
    POOLED_W,
    SAMPLING,
    SPATIAL_SCALE,
    Attr::new("mode", AttrKind::Enum(&["avg", "max"])).default("avg"),
    Attr::new("aligned_mode", AttrKind::Enum(&["asymmetric", "half_pixel_for_nn", "half_pixel"])).default("asymmetric"),
];

fn deformable_psroi_pooling(cx: &mut Context) -> Result<(), Fault> {
    check_rank(cx, 0, "features", &[4])?;
    check_rank(cx, 1, "regions", &[2])?;
    check_rank(cx, 2, "offsets", &[4])?;
    let (channels, group) = (cx.int("output_dim")?, cx.int("group_size")?);
    for (name, value) in [("output_dim", channels), ("group_size", group)] {
        if value <= 0 {
            return Err(Fault::attribute(name, message!("`{}` is {}, but must be more than 0"; name, value)));
        }
    }
    let group = Dim::fixed(group);
    cx.finish(cx.element_type(0), Shape::from_iter([input_dim(cx, 1, 0), Dim::fixed(channels), group, group]))
}

fn psroi_pooling(cx: &mut Context) -> Result<(), Fault> {
    check_real(cx, &[(0, "features"), (1, "regions")])?;
    // OpenVINO reads the sizes as unsigned, and uses only their low 32 bits. A negative number becomes a large one.
    let (channels, group) = (cx.int("output_dim")?, cx.int("group_size")?);
    if group == 0 {
        return Err(Fault::attribute("group_size", "`group_size` is 0, but must be 1 or more"));
    }
    let bins = match cx.text("mode")? {
        "average" => group.saturating_mul(group),
        "bilinear" => {
            let bins = [("spatial_bins_x", cx.int("spatial_bins_x")?), ("spatial_bins_y", cx.int("spatial_bins_y")?)];
            if let Some((name, count)) = bins.into_iter().find(|&(_, count)| count <= 0) {
                return Err(Fault::attribute(name, message!("`{}` is {}, but must be more than 0"; name, count)));
            }
            bins[0].1.saturating_mul(bins[1].1)
        }
        mode => return Err(Fault::attribute("mode", message!("`mode` is `{}`, not average or bilinear"; mode))),
    };
    check_scale(cx)?;
    check_rank(cx, 0, "features", &[4])?;
    require_dim(cx, 0, "features", 1, bins.saturating_mul(channels))?;
    check_regions(cx)?;
    let group = Dim::from(group);
    cx.finish(cx.element_type(0), Shape::from_iter([input_dim(cx, 1, 0), Dim::from(channels), group, group]))
}

fn roi_align(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    if element_type == ElementType::Dynamic {
        let message = message!("the type of the features of `{}` must be known"; cx.ty());
        return Err(Fault::unsupported(0, message).help("insert a Convert to f32 before it"));
    }
    cx.check_accepted(0, element_type)?;
    check_type(cx, 2, "batch indices", Accepts::Integer)?;
    check_rank(cx, 0, "features", &[4])?;
    check_rank(cx, 1, "regions", &[2])?;
    check_rank(cx, 2, "batch indices", &[1])?;
    require_dim(cx, 1, "regions", 1, if cx.operation.name == "ROIAlignRotated" { 5 } else { 4 })?;
    let regions = common_dim(cx, "number of regions", (1, 0), (2, 0))?;
    let pooled = [cx.int("pooled_h")?, cx.int("pooled_w")?].map(Dim::from);
    cx.finish(element_type, Shape::from_iter([regions, input_dim(cx, 0, 1), pooled[0], pooled[1]]))
}

fn roi_pooling(cx: &mut Context) -> Result<(), Fault> {
    check_real(cx, &[(0, "features"), (1, "regions")])?;
    let element_type = cx.merge_types(&[0, 1])?;
    check_rank(cx, 0, "features", &[4])?;
    check_regions(cx)?;
    let pooled = pooled_size(cx)?;
    check_scale(cx)?;
    let method = cx.text("method")?;
    if !["max", "bilinear"].contains(&method) {
        return Err(Fault::attribute("method", message!("`method` is `{}`, not max or bilinear"; method)));
    }
    cx.finish(element_type, Shape::from_iter([input_dim(cx, 1, 0), input_dim(cx, 0, 1), pooled[0], pooled[1]]))
}

/// Height and width of the pooled output. They have their own attributes; otherwise `output_roi` or `output_size` sets
/// both.
fn pooled_size(cx: &Context) -> Result<[Dim; 2], Fault> {
    let list = if cx.has_attribute("output_roi") { "output_roi" } else { "output_size" };
    let mut size = cx.ints(list)?;
    let [height, width] = &mut size[..] else {
        return Err(Fault::attribute(list, message!("`{}` has {} numbers, not height and width"; list, size.len())));
    };
    for (name, side) in [("pooled_h", &mut *height), ("pooled_w", &mut *width)] {
        if cx.has_attribute(name) {
            *side = cx.int(name)?;
        }
        if *side == 0 {
            return Err(Fault::attribute(name, message!("`{}` is 0, but must be 1 or more"; name)));
        }
    }
    Ok([Dim::from(*height), Dim::from(*width)])
}

fn roi_features(cx: &mut Context) -> Result<(), Fault> {
    let element_type = common_real(cx)?;
    check_rank(cx, 0, "regions", &[2])?;
    require_dim(cx, 0, "regions", 1, 4)?;
    let mut channels: Option<(usize, Dim)> = None;
    for input in 1..cx.inputs.len() {
        check_rank(cx, input, "feature levels", &[4])?;
        require_dim(cx, input, "feature levels", 0, 1)?;
        if cx.shape(input).rank().is_none() {
            continue;
        }
        let here = input_dim(cx, input, 1);
        let (first, known) = channels.unwrap_or((input, here));
        match known & here {
            Some(both) => channels = Some((first, both)),
            None => {
                let message = message!(
                    "the feature levels must have the same number of channels, but have {} and {}";
                    known, here
                );
                return Err(Fault::shapes(&[first, input], message));
            }
        }
    }
    let size = Dim::from(cx.int("output_size")?);
    let (regions, channels) = (input_dim(cx, 0, 0), channels.map_or(Dim::ANY, |(_, channels)| channels));
    cx.output(element_type, Shape::from_iter([regions, channels, size, size]));
    cx.finish(element_type, Shape::from_iter([regions, Dim::fixed(4)]))
}

fn top_k_rois(cx: &mut Context) -> Result<(), Fault> {
    let element_type = common_real(cx)?;
    check_rank(cx, 0, "regions", &[2])?;
    require_dim(cx, 0, "regions", 1, 4)?;
    check_rank(cx, 1, "probabilities", &[1])?;
    common_dim(cx, "number of regions", (0, 0), (1, 0))?;
    let kept = Dim::from(cx.int("max_rois")?);
    cx.finish(element_type, Shape::from_iter([kept, Dim::fixed(4)]))
}

pub(super) fn common_real(cx: &Context) -> Result<ElementType, Fault> {
    let inputs: smallvec::SmallVec<[usize; 8]> = (0..cx.inputs.len()).collect();
    let element_type = cx.merge_types(&inputs)?;
    cx.check_accepted(0, element_type)?;
    Ok(element_type)
}

/// An error if inputs are not floating point, or their type is unknown.
pub(super) fn check_real(cx: &Context, roles: &[(usize, &'static str)]) -> Result<(), Fault> {
    for &(input, role) in roles {
        let ty = cx.element_type(input);
        if ty == ElementType::Dynamic || !Accepts::Real.takes(ty) {
            let message = message!("the type of the {} of `{}` must be floating point, but is {}"; role, cx.ty(), ty);
            return Err(Fault::unsupported(input, message).help("insert a Convert before it"));
        }
    }
    Ok(())
}

fn check_regions(cx: &Context) -> Result<(), Fault> {
    check_rank(cx, 1, "regions", &[2])?;
    require_dim(cx, 1, "regions", 1, 5)
}

fn check_scale(cx: &Context) -> Result<(), Fault> {
    let scale = cx.float("spatial_scale")?;
    if (scale as f32).is_normal() && scale > 0.0 {
        return Ok(());
    }
    Err(Fault::attribute("spatial_scale", message!("`spatial_scale` is {}, but must be more than 0"; scale)))
}
