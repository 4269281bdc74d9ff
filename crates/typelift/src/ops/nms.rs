//! Non-maximum suppression: selection among overlapping boxes.

use typelift_promote::ElementType;

use super::attributes::before;
use super::common::{
    INDEX, SINGLE, check_rank, check_type, check_type_in, common_dim, index_type, input_dim, require_dim,
};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("NonMaxSuppression", 1, nms_per_class).until(2).inputs(2, 5).attributes(before("output_type", NMS)),
    Operation::new("NonMaxSuppression", 3, nms_per_class).until(3).inputs(2, 5).attributes(NMS),
    Operation::new("NonMaxSuppression", 4, nms_per_batch).until(4).inputs(2, 5).attributes(NMS),
    row(5).until(8),
    row(9),
    Operation::new("NMSRotated", 13, nms).inputs(5, 5).accepts(Accepts::Real).floats(&[1, 3, 4]).attributes(&[
        SORT_DESCENDING,
        INDEX_TYPE,
        Attr::new("clockwise", AttrKind::Bool).default("true"),
    ]),
    multiclass(8).until(8).inputs(2, 2).ties(Ties::All),
    multiclass(9).inputs(2, 3).ties(Ties::Inputs(&[0, 1])),
    Operation::new("MatrixNms", 8, matrix_nms).inputs(2, 2).ties(Ties::All).accepts(Accepts::Real).attributes(&[
        SORT_TYPE,
        INDEX_TYPE,
        TOP_K,
        KEEP,
        ACROSS_BATCH,
        Attr::new("score_threshold", AttrKind::Float).default("0"),
        BACKGROUND,
        Attr::new("decay_function", AttrKind::Enum(&["gaussian", "linear"])).default("linear"),
        Attr::new("gaussian_sigma", AttrKind::Float).default("2"),
        Attr::new("post_threshold", AttrKind::Float).default("0"),
        Attr::new("normalized", AttrKind::Bool).default("true"),
    ]),
];

const fn row(revision: u8) -> Operation {
    let row = Operation::new("NonMaxSuppression", revision, nms).inputs(2, 6);
    row.accepts(Accepts::Real).floats(&[1, 3, 4, 5]).attributes(NMS)
}

const fn multiclass(revision: u8) -> Operation {
    Operation::new("MulticlassNms", revision, multiclass_nms).accepts(Accepts::Real).attributes(MULTICLASS)
}

const SORT_DESCENDING: Attr = Attr::new("sort_result_descending", AttrKind::Bool).default("true");
const INDEX_TYPE: Attr = Attr::new("output_type", AttrKind::Type).default("i64");
const NMS: &[Attr] =
    &[Attr::new("box_encoding", AttrKind::Enum(&["corner", "center"])).default("corner"), SORT_DESCENDING, INDEX_TYPE];

const SORT_TYPE: Attr = Attr::new("sort_result_type", AttrKind::Enum(&["classid", "score", "none"])).default("none");
const TOP_K: Attr = Attr::new("nms_top_k", AttrKind::Int).default("-1");
const KEEP: Attr = Attr::new("keep_top_k", AttrKind::Int).default("-1");
const ACROSS_BATCH: Attr = Attr::new("sort_result_across_batch", AttrKind::Bool).default("false");
const BACKGROUND: Attr = Attr::new("background_class", AttrKind::Int).default("-1");
const MULTICLASS: &[Attr] = &[
    SORT_TYPE,
    INDEX_TYPE,
    TOP_K,
    KEEP,
    ACROSS_BATCH,
    Attr::new("iou_threshold", AttrKind::Float).default("0"),
    Attr::new("score_threshold", AttrKind::Float).default("0"),
    BACKGROUND,
    Attr::new("nms_eta", AttrKind::Float).default("1"),
    Attr::new("normalized", AttrKind::Bool).default("true"),
];

/// Names of the third and later inputs, which are scalars.
const SCALARS: &[&str] = &["number of boxes kept per class", "IOU threshold", "score threshold", "soft-NMS sigma"];

/// Infers an output of at most as many boxes as the input has, regardless of the number of classes.
fn nms_per_class(cx: &mut Context) -> Result<(), Fault> {
    let element_type = if cx.operation.revision == 1 { ElementType::I64 } else { index_type(cx, "output_type")? };
    check_boxes(cx, 4, false)?;
    let mut selected = Dim::ANY;
    if cx.shape(0).rank().is_some() {
        let kept = kept_per_class(cx)?.map_or(Dim::ANY, Dim::from);
        let kept = if cx.shape(1).rank().is_some() { kept * input_dim(cx, 1, 1) } else { kept };
        if let (Some(boxes), Some(kept)) = (input_dim(cx, 0, 1).value(), kept.value()) {
            selected = Dim::fixed(boxes.min(kept));
        }
    }
    cx.finish(element_type, triplets(selected))
}

/// Infers an output of at most as many boxes as the input has, for each class of each image.
fn nms_per_batch(cx: &mut Context) -> Result<(), Fault> {
    let element_type = index_type(cx, "output_type")?;
    check_boxes(cx, 4, false)?;
    let mut selected = Dim::ANY;
    if let (Some(boxes), Some(_)) = (input_dim(cx, 0, 1).value(), cx.shape(1).rank())
        && let Some(kept) = kept_per_class(cx)?
    {
        selected = Dim::from(boxes.min(kept)) * longest(input_dim(cx, 1, 0)) * longest(input_dim(cx, 1, 1));
    }
    cx.finish(element_type, triplets(selected))
}

/// Infers indices, scores and their number. The number of selected boxes depends on the data; its maximum is that of
/// [`nms_per_batch`].
fn nms(cx: &mut Context) -> Result<(), Fault> {
    let rotated = cx.operation.name == "NMSRotated";
    check_boxes(cx, if rotated { 5 } else { 4 }, true)?;
    for input in (0..cx.inputs.len()).filter(|&input| input != 2) {
        let role = ["boxes", "scores"].get(input).or_else(|| SCALARS.get(input - 2)).copied().unwrap_or("input");
        if rotated { check_type(cx, input, role, Accepts::Real)? } else { check_type_in(cx, input, role, SINGLE)? }
    }
    if rotated {
        check_type(cx, 2, SCALARS[0], Accepts::Integer)?;
    }
    let element_type = index_type(cx, "output_type")?;
    let mut selected = Dim::ANY;
    if cx.shape(0).rank().is_some() && cx.shape(1).rank().is_some() {
        if let Some(kept) = kept_per_class(cx)? {
            selected = up_to(input_dim(cx, 0, 1).upper().unwrap_or(-1).min(kept));
        }
        selected = selected * longest(input_dim(cx, 1, 0)) * longest(input_dim(cx, 1, 1));
    }
    cx.output(element_type, triplets(selected));
    cx.output(ElementType::F32, triplets(selected));
    cx.finish(element_type, Shape::fixed([1]))
}

fn multiclass_nms(cx: &mut Context) -> Result<(), Fault> {
    let (top_k, keep) = limits(cx)?;
    check_limits(cx, top_k, keep)?;
    let eta = cx.float("nms_eta")?;
    if !(0.0..=1.0).contains(&eta) {
        return Err(Fault::attribute("nms_eta", message!("`nms_eta` is {}, not between 0 and 1"; eta)));
    }
    let element_type = check_class_boxes(cx)?;
    let per_roi = cx.inputs.len() == 3;
    if per_roi {
        check_type_in(cx, 2, "number of boxes per image", INDEX)?;
    }
    check_rank(cx, 0, "boxes", &[3])?;
    check_rank(cx, 1, "scores", &[if per_roi { 2 } else { 3 }])?;
    if per_roi {
        check_rank(cx, 2, "numbers of boxes per image", &[1])?;
    }
    let ranks = (cx.shape(0).rank(), cx.shape(1).rank());
    if let (Some(_), None) = ranks {
        let message = "the scores of `MulticlassNms` have unknown rank, but the rank of the boxes is known";
        return Err(Fault::shapes(&[0, 1], message).help("reshape the scores to a known rank"));
    }
    common_dim(cx, if per_roi { "number of classes" } else { "batch" }, (0, 0), (1, 0))?;
    require_dim(cx, 0, "boxes", 2, 4)?;
    common_dim(cx, "number of boxes", (0, 1), (1, if per_roi { 1 } else { 2 }))?;
    let (mut selected, mut images) = (Dim::ANY, Dim::ANY);
    if ranks.0.is_some() && (!per_roi || cx.shape(2).rank().is_some()) {
        let (classes, batch) = if per_roi {
            (input_dim(cx, 0, 0), input_dim(cx, 2, 0))
        } else {
            (input_dim(cx, 1, 1), input_dim(cx, 1, 0))
        };
        selected = at_most(input_dim(cx, 0, 1), top_k) * classes;
        if keep > -1 && selected.upper().is_some_and(|most| keep < most) {
            selected = Dim::fixed(keep);
        }
        selected = up_to((selected * batch).upper().unwrap_or(-1));
        images = if per_roi { batch } else { input_dim(cx, 0, 0) };
    }
    class_outputs(cx, element_type, selected, images)
}

fn matrix_nms(cx: &mut Context) -> Result<(), Fault> {
    let (top_k, keep) = limits(cx)?;
    let element_type = check_class_boxes(cx)?;
    check_rank(cx, 0, "boxes", &[3])?;
    check_rank(cx, 1, "scores", &[3])?;
    let (mut selected, mut images) = (Dim::ANY, Dim::ANY);
    if cx.shape(0).rank().is_some() {
        check_limits(cx, top_k, keep)?;
        common_dim(cx, "batch", (0, 0), (1, 0))?;
        common_dim(cx, "number of boxes", (0, 1), (1, 2))?;
        require_dim(cx, 0, "boxes", 2, 4)?;
        images = input_dim(cx, 0, 0);
        if cx.shape(1).rank().is_some() {
            let per_image = at_most(at_most(input_dim(cx, 0, 1), top_k) * input_dim(cx, 1, 1), keep);
            selected = up_to((per_image * input_dim(cx, 1, 0)).upper().unwrap_or(-1));
        }
    }
    class_outputs(cx, element_type, selected, images)
}

/// Infers the boxes with classes and scores, their indices, and their number in each image.
fn class_outputs(cx: &mut Context, boxes: ElementType, selected: Dim, images: Dim) -> Result<(), Fault> {
    let indices = index_type(cx, "output_type")?;
    cx.output(boxes, Shape::from_iter([selected, Dim::fixed(6)]));
    cx.output(indices, Shape::from_iter([selected, Dim::ONE]));
    cx.finish(indices, Shape::from_iter([images]))
}

fn limits(cx: &Context) -> Result<(i64, i64), Fault> {
    Ok((cx.int("nms_top_k")?, cx.int("keep_top_k")?))
}

fn check_limits(cx: &Context, top_k: i64, keep: i64) -> Result<(), Fault> {
    let background = cx.int("background_class")?;
    let limits = [("nms_top_k", top_k), ("keep_top_k", keep), ("background_class", background)];
    match limits.into_iter().find(|&(_, value)| value < -1) {
        Some((name, value)) => {
            Err(Fault::attribute(name, message!("`{}` is {}, less than -1"; name, value)).help("-1 means none"))
        }
        None => Ok(()),
    }
}

fn check_class_boxes(cx: &Context) -> Result<ElementType, Fault> {
    for (input, role) in ["boxes", "scores"].into_iter().enumerate() {
        if cx.element_type(input) == ElementType::Dynamic {
            let message = message!("the type of the {} of `{}` must be known"; role, cx.ty());
            return Err(Fault::unsupported(input, message).help("insert a Convert to f32 before it"));
        }
        check_type_in(cx, input, role, SINGLE)?;
    }
    cx.merge_types(&[0, 1])
}

/// Checks the shapes of boxes, scores and the scalar inputs. `lists` permits lists of one element instead of scalars.
fn check_boxes(cx: &Context, coordinates: i64, lists: bool) -> Result<(), Fault> {
    check_rank(cx, 0, "boxes", &[3])?;
    check_rank(cx, 1, "scores", &[3])?;
    for (input, role) in SCALARS.iter().enumerate().map(|(at, role)| (at + 2, role)) {
        let Some(shape) = cx.try_shape(input) else { break };
        let list = lists && shape.is_compatible(&Shape::fixed([1]));
        if !list && shape.rank().is_some_and(|rank| rank != 0) {
            let or_list = if lists { " or a list of one" } else { "" };
            let message =
                message!("the {} of `{}` must be a scalar{}, but has the shape {}"; role, cx.ty(), or_list, shape);
            return Err(Fault::shapes(&[input], message));
        }
    }
    common_dim(cx, "batch", (0, 0), (1, 0))?;
    common_dim(cx, "number of boxes", (0, 1), (1, 2))?;
    require_dim(cx, 0, "boxes", 2, coordinates)
}

/// The maximum number of boxes per class, if it is known. Before revision 9 a missing input means 0.
fn kept_per_class(cx: &mut Context) -> Result<Option<i64>, Fault> {
    if cx.inputs.len() < 3 && cx.operation.revision < 5 {
        return Ok(Some(0));
    }
    Ok(cx.numbers(2)?.and_then(|values| values.first().copied()))
}

fn triplets(selected: Dim) -> Shape {
    Shape::from_iter([selected, Dim::fixed(3)])
}

/// Any length if it is unlimited.
fn longest(dim: Dim) -> Dim {
    dim.upper().map_or(Dim::ANY, Dim::fixed)
}

fn up_to(most: i64) -> Dim {
    if most == -1 { Dim::ANY } else { Dim::between(0, most) }
}

/// The dimension itself if `limit` is -1.
fn at_most(dim: Dim, limit: i64) -> Dim {
    if limit > -1 { dim.upper().map_or(Dim::ANY, |most| Dim::fixed(most.min(limit))) } else { dim }
}
