//! Object detection: prior boxes, proposals and their post-processing.

use std::collections::HashSet;

use typelift_promote::ElementType;

use super::attributes::{before, from};
use super::common::{check_rank, check_type, common_dim, index_type, input_dim, require_dim};
use super::evaluate::Evaluate::Exact;
use super::roi::{check_real, common_real};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties, evaluate};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    detection(0).until(7).attributes(DETECTION),
    detection(8).attributes(from("background_label_id", DETECTION)),
    prior_boxes("PriorBox", 0).until(7).attributes(before("min_max_aspect_ratios_order", PRIOR_BOX)),
    prior_boxes("PriorBox", 8).attributes(PRIOR_BOX),
    prior_boxes("PriorBoxClustered", 0).evaluate(Exact(evaluate::prior_box_clustered)).attributes(&[
        Attr::new("step", AttrKind::Float).default("0"),
        Attr::new("step_w", AttrKind::Float).default("0"),
        Attr::new("step_h", AttrKind::Float).default("0"),
        Attr::new("width", AttrKind::Floats).default(""),
        Attr::new("height", AttrKind::Floats).default(""),
        Attr::new("clip", AttrKind::Bool).default("true"),
        Attr::new("offset", AttrKind::Float).default("0"),
        Attr::new("variance", AttrKind::Floats).default(""),
    ]),
    proposals(0).until(3),
    proposals(4),
    Operation::new("GenerateProposals", 9, generate_proposals).inputs(4, 4).attributes(&[
        Attr::new("min_size", AttrKind::Float).default("0"),
        Attr::new("nms_threshold", AttrKind::Float).default("0"),
        Attr::new("post_nms_count", AttrKind::Int).default("0"),
        Attr::new("pre_nms_count", AttrKind::Int).default("0"),
        Attr::new("normalized", AttrKind::Bool).default("true"),
        Attr::new("nms_eta", AttrKind::Float).default("1"),
        Attr::new("roi_num_type", AttrKind::Type).default("i64"),
    ]),
    detectron(
        "ExperimentalDetectronDetectionOutput",
        detectron_detection_output,
        4,
        &[
            Attr::new("score_threshold", AttrKind::Float).default("0"),
            Attr::new("nms_threshold", AttrKind::Float).default("0"),
            Attr::new("max_delta_log_wh", AttrKind::Float).default("0"),
            Attr::new("num_classes", AttrKind::Int).default("0"),
            Attr::new("post_nms_count", AttrKind::Int).default("0"),
            Attr::new("max_detections_per_image", AttrKind::Int).default("0"),
            Attr::new("class_agnostic_box_regression", AttrKind::Bool).default("false"),
            Attr::new("deltas_weights", AttrKind::Floats).default(""),
        ],
    ),
    detectron(
        "ExperimentalDetectronGenerateProposalsSingleImage",
        detectron_proposals,
        4,
        &[
            Attr::new("min_size", AttrKind::Float).default("0"),
            Attr::new("nms_threshold", AttrKind::Float).default("0"),
            Attr::new("post_nms_count", AttrKind::Int).default("0"),
            Attr::new("pre_nms_count", AttrKind::Int).default("0"),
        ],
    ),
    detectron(
        "ExperimentalDetectronPriorGridGenerator",
        detectron_prior_grid,
        3,
        &[
            Attr::new("flatten", AttrKind::Bool).default("false"),
            Attr::new("h", AttrKind::Int).default("0"),
            Attr::new("w", AttrKind::Int).default("0"),
            Attr::new("stride_x", AttrKind::Float).default("0"),
            Attr::new("stride_y", AttrKind::Float).default("0"),
        ],
    ),
];

const DETECTION: &[Attr] = &[
    Attr::new("num_classes", AttrKind::Int).default("0"),
    Attr::new("background_label_id", AttrKind::Int).default("0"),
    Attr::new("top_k", AttrKind::Int).default("-1"),
    Attr::new("variance_encoded_in_target", AttrKind::Bool).default("false"),
    Attr::new("keep_top_k", AttrKind::Ints),
    Attr::new("code_type", AttrKind::Text).default("caffe.PriorBoxParameter.CORNER"),
    Attr::new("share_location", AttrKind::Bool).default("true"),
    Attr::new("nms_threshold", AttrKind::Float).default("0"),
    Attr::new("confidence_threshold", AttrKind::Float).default("0"),
    Attr::new("clip_after_nms", AttrKind::Bool).default("false"),
    Attr::new("clip_before_nms", AttrKind::Bool).default("false"),
    Attr::new("decrease_label_id", AttrKind::Bool).default("false"),
    Attr::new("normalized", AttrKind::Bool).default("false"),
    Attr::new("input_height", AttrKind::Int).default("1"),
    Attr::new("input_width", AttrKind::Int).default("1"),
    Attr::new("objectness_score", AttrKind::Float).default("0"),
];

const PRIOR_BOX: &[Attr] = &[
    Attr::new("min_size", AttrKind::Floats).default(""),
    Attr::new("max_size", AttrKind::Floats).default(""),
    Attr::new("aspect_ratio", AttrKind::Floats).default(""),
    Attr::new("density", AttrKind::Floats).default(""),
    Attr::new("fixed_ratio", AttrKind::Floats).default(""),
    Attr::new("fixed_size", AttrKind::Floats).default(""),
    Attr::new("clip", AttrKind::Bool).default("false"),
    Attr::new("flip", AttrKind::Bool).default("false"),
    Attr::new("step", AttrKind::Float).default("0"),
    Attr::new("offset", AttrKind::Float).default("0"),
    Attr::new("variance", AttrKind::Floats).default(""),
    Attr::new("scale_all_sizes", AttrKind::Bool).default("true"),
    Attr::new("min_max_aspect_ratios_order", AttrKind::Bool).default("true"),
];

const PROPOSAL: &[Attr] = &[
    Attr::new("base_size", AttrKind::Int).default("0"),
    Attr::new("pre_nms_topn", AttrKind::Int).default("0"),
    Attr::new("post_nms_topn", AttrKind::Int).default("0"),
    Attr::new("nms_thresh", AttrKind::Float).default("0"),
    Attr::new("feat_stride", AttrKind::Int).default("1"),
    Attr::new("min_size", AttrKind::Int).default("1"),
    Attr::new("ratio", AttrKind::Floats).default(""),
    Attr::new("scale", AttrKind::Floats).default(""),
    Attr::new("clip_before_nms", AttrKind::Bool).default("true"),
    Attr::new("clip_after_nms", AttrKind::Bool).default("false"),
    Attr::new("normalize", AttrKind::Bool).default("false"),
    Attr::new("box_size_scale", AttrKind::Float).default("1"),
    Attr::new("box_coordinate_scale", AttrKind::Float).default("1"),
    Attr::new("framework", AttrKind::Text).default(""),
];

const fn detection(revision: u8) -> Operation {
    let row = Operation::new("DetectionOutput", revision, detection_output).inputs(3, 5).floats(&[2]);
    row.ties(Ties::Inputs(&[0, 1, 3, 4])).accepts(Accepts::Real)
}

const fn prior_boxes(name: &'static str, revision: u8) -> Operation {
    Operation::new(name, revision, prior_box).inputs(2, 2).accepts(Accepts::Integer)
}

const fn proposals(revision: u8) -> Operation {
    let row = Operation::new("Proposal", revision, proposal).inputs(3, 3).floats(&[1, 2]);
    row.accepts(Accepts::Real).attributes(PROPOSAL)
}

const fn detectron(
    name: &'static str,
    infer: fn(&mut Context) -> Result<(), Fault>,
    inputs: usize,
    attributes: &'static [Attr],
) -> Operation {
    Operation::new(name, 6, infer).inputs(inputs, inputs).ties(Ties::All).accepts(Accepts::Real).attributes(attributes)
}

/// Checker of a DetectionOutput's inputs. It finds the numbers of prior boxes and classes, which are 0 while unknown.
struct Detection<'a, 'b> {
    cx: &'a Context<'b>,
    priors: i64,
    classes: i64,
    /// The number of values per prior box.
    prior_size: i64,
    shared: bool,
}

/// The names and ranks of the inputs of a DetectionOutput.
const DETECTION_ROLES: [(&str, usize); 5] = [
    ("box logits", 2),
    ("class predictions", 2),
    ("proposals", 3),
    ("additional class predictions", 2),
    ("additional box predictions", 2),
];

impl Detection<'_, '_> {
    /// Checks that box logits and class predictions fit the prior boxes. Returns the number of images.
    fn match_logits(&mut self) -> Result<Dim, Fault> {
        let cx = self.cx;
        let locations = if self.shared { 1 } else { self.classes };
        let mut images = Dim::ANY;
        if cx.shape(0).rank().is_some() {
            check_rank(cx, 0, "box logits", &[2])?;
            images = input_dim(cx, 0, 0);
            let part = locations.saturating_mul(4);
            if part > 0 || self.priors == 0 {
                self.match_priors(0, part)?;
                let length = if part > 0 && self.priors > 0 { self.priors.saturating_mul(part) } else { -1 };
                require_dim(cx, 0, "box logits", 1, length)?;
            }
        }
        check_rank(cx, 1, "class predictions", &[2])?;
        match input_dim(cx, 1, 0) {
            batch if !images.is_fixed() && batch.is_fixed() => images = batch,
            batch => check_batch(1, batch, images)?,
        }
        if self.classes != 0 {
            self.match_priors(1, self.classes)?;
        }
        Ok(images)
    }

    fn match_proposals(&mut self, images: Dim, encoded: bool) -> Result<(), Fault> {
        let cx = self.cx;
        check_rank(cx, 2, "proposals", &[3])?;
        if !input_dim(cx, 2, 0).contains(1) {
            check_batch(2, input_dim(cx, 2, 0), images)?;
        }
        require_dim(cx, 2, "proposals", 1, if encoded { 1 } else { 2 })?;
        self.match_priors(2, self.prior_size)
    }

    /// Checks that the additional class and box predictions fit the others.
    fn match_additional(&mut self, images: Dim) -> Result<(), Fault> {
        let cx = self.cx;
        check_rank(cx, 3, "additional class predictions", &[2])?;
        check_batch(3, input_dim(cx, 3, 0), images)?;
        if self.priors != 0 {
            require_dim(cx, 3, "additional class predictions", 1, self.priors.saturating_mul(2))?;
        }
        if let Some(length) = self.length(3, 1) {
            self.priors = length / 2;
        }
        if cx.shape(4).is_compatible(cx.shape(0)) {
            return Ok(());
        }
        let (boxes, logits) = (cx.shape(4), cx.shape(0));
        let message = message!("the additional box predictions have the shape {}, the box logits {}"; boxes, logits);
        Err(Fault::shapes(&[0, 4], message).rule("both must have one shape"))
    }

    fn length(&self, input: usize, axis: usize) -> Option<i64> {
        if input < self.cx.inputs.len() { input_dim(self.cx, input, axis).value() } else { None }
    }

    /// An error if there is a remainder.
    fn quotient(&self, input: usize, length: i64, part: i64) -> Result<i64, Fault> {
        match length.checked_rem(part) {
            Some(0) => Ok(length / part),
            None => Err(Fault::shapes(&[input], "the number of classes cannot be computed from the shapes")),
            Some(_) => {
                let role = DETECTION_ROLES[input].0;
                let message =
                    message!("the last dimension of the {} is {}, which is not a multiple of {}"; role, length, part);
                Err(Fault::shapes(&[input], message))
            }
        }
    }

    fn positive(&self, input: usize, priors: i64) -> Result<i64, Fault> {
        match priors {
            1.. => Ok(priors),
            _ => Err(Fault::shapes(&[input], message!("the {} have no prior boxes"; DETECTION_ROLES[input].0))),
        }
    }

    /// Computes the number of classes from the shapes, if no attribute sets it.
    fn deduce(&mut self) -> Result<(), Fault> {
        for (input, &(role, rank)) in DETECTION_ROLES.iter().enumerate() {
            check_rank(self.cx, input, role, &[rank])?;
        }
        if let Some(length) = self.length(2, 2) {
            self.priors = self.positive(2, self.quotient(2, length, self.prior_size)?)?;
        } else if let Some(length) = self.length(3, 1) {
            self.priors = self.positive(3, self.quotient(3, length, 2)?)?;
        }
        if self.priors == 0 {
            return Ok(());
        }
        let boxes = self.priors.saturating_mul(4);
        for (input, part, usable) in [(1, self.priors, true), (0, boxes, !self.shared), (4, boxes, !self.shared)] {
            if let (0, true, Some(length)) = (self.classes, usable, self.length(input, 1)) {
                self.classes = self.quotient(input, length, part)?;
            }
        }
        Ok(())
    }

    /// Computes the number of prior boxes from the last dimension of an input, which has `part` values per box.
    /// Returns an error if it differs from a known number.
    fn match_priors(&mut self, input: usize, part: i64) -> Result<(), Fault> {
        let axis = DETECTION_ROLES[input].1 - 1;
        let Some(length) = self.length(input, axis) else { return Ok(()) };
        if self.priors == 0 {
            self.priors = self.quotient(input, length, part)?;
        } else if length != self.priors.saturating_mul(part) {
            let message = message!(
                "the last dimension of the {} is {}, but must be {} for each of {} prior boxes";
                DETECTION_ROLES[input].0, length, part, self.priors
            );
            return Err(Fault::shapes(&[input], message));
        }
        Ok(())
    }
}

fn detection_output(cx: &mut Context) -> Result<(), Fault> {
    let additional = match cx.inputs.len() {
        3 => false,
        5 => true,
        _ => return Err(Fault::shapes(&[], "`DetectionOutput` takes 3 inputs or 5, not 4")),
    };
    let given = cx.operation.revision == 0;
    let classes = if given { cx.int("num_classes")? } else { 0 };
    if given && classes <= 0 {
        return Err(Fault::attribute("num_classes", message!("`num_classes` is {}, but must be more than 0"; classes)));
    }
    let code = cx.text("code_type")?;
    if !["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"].contains(&code) {
        let message = message!("`code_type` is `{}`, not caffe.PriorBoxParameter.CORNER or .CENTER_SIZE"; code);
        return Err(Fault::attribute("code_type", message));
    }
    let keep = match cx.ints("keep_top_k")?.first() {
        Some(&keep) => keep,
        None => return Err(Fault::attribute("keep_top_k", "`keep_top_k` is empty").help("-1 keeps all")),
    };
    let top_k = cx.int("top_k")?;
    check_detection_types(cx)?;
    let shared = cx.bool("share_location")?;
    let prior_size = if cx.bool("normalized")? { 4 } else { 5 };
    let encoded = cx.bool("variance_encoded_in_target")?;
    let mut found = Detection { cx, priors: 0, classes, prior_size, shared };
    if !given {
        found.deduce()?;
    }
    let images = found.match_logits()?;
    found.match_proposals(images, encoded)?;
    if additional {
        found.match_additional(images)?;
    }
    let [priors, classes] =
        [found.priors, found.classes].map(|count| if count == 0 { Dim::ANY } else { Dim::from(count) });
    let detections = match (keep, top_k) {
        (1.., _) => images * Dim::fixed(keep),
        (-1, 1..) => images * Dim::fixed(top_k) * classes,
        _ => images * priors * classes,
    };
    cx.finish(cx.element_type(0), Shape::from_iter([Dim::ONE, Dim::ONE, detections, Dim::fixed(7)]))
}

/// Checks that the inputs of a DetectionOutput have the same floating-point type where that is required.
fn check_detection_types(cx: &Context) -> Result<(), Fault> {
    check_real(cx, &[(0, "box logits"), (2, "proposals")])?;
    for input in [1, 3, 4].into_iter().filter(|&input| input < cx.inputs.len()) {
        if cx.element_type(input) == ElementType::Dynamic {
            let message = message!("the type of the {} of `DetectionOutput` must be known"; DETECTION_ROLES[input].0);
            return Err(Fault::unsupported(input, message).help("insert a Convert before it"));
        }
        cx.merge_types(&[0, input])?;
    }
    Ok(())
}

fn check_batch(input: usize, batch: Dim, images: Dim) -> Result<(), Fault> {
    if batch.is_compatible(images) {
        return Ok(());
    }
    let message = message!("axis 0 of the {} is {}, but the batch size is {}"; DETECTION_ROLES[input].0, batch, images);
    Err(Fault::shapes(&[0, input], message))
}

fn prior_box(cx: &mut Context) -> Result<(), Fault> {
    check_type(cx, 0, "sizes of the layer", Accepts::Integer)?;
    check_type(cx, 1, "sizes of the image", Accepts::Integer)?;
    let priors = match cx.operation.name {
        "PriorBox" => priors_per_place(cx)?,
        _ => {
            let (widths, heights) = (cx.floats("width")?.len(), cx.floats("height")?.len());
            if widths != heights {
                let message = message!("`height` has {} numbers, and `width` has {}"; heights, widths);
                return Err(Fault::attribute("height", message).help("each box needs a width and a height"));
            }
            i64::try_from(widths).unwrap_or(i64::MAX)
        }
    };
    check_rank(cx, 0, "sizes of the layer", &[1])?;
    check_rank(cx, 1, "sizes of the image", &[1])?;
    let boxes = match cx.shape_value(0)? {
        None => Dim::ANY,
        Some(size) => match size.dims() {
            Some(&[height, width]) => height * width * Dim::from(priors) * Dim::fixed(4),
            _ => {
                let count = size.rank().unwrap_or_default();
                let message = message!("the size of the layer has {} numbers, not height and width"; count);
                return Err(Fault::value(&[0], message));
            }
        },
    };
    cx.finish(ElementType::F32, Shape::from_iter([Dim::fixed(2), boxes]))
}

/// Densities below 1 make it negative.
fn priors_per_place(cx: &Context) -> Result<i64, Fault> {
    let count = |name| cx.floats(name).map(|list| i64::try_from(list.len()).unwrap_or(i64::MAX));
    let flip = cx.bool("flip")?;
    let mut ratios = HashSet::from([1_f32.to_bits()]);
    for ratio in cx.floats("aspect_ratio")? {
        let ratio = ratio as f32;
        for ratio in [ratio, 1.0 / ratio].into_iter().take(1 + usize::from(flip)) {
            let rounded = ((f64::from(ratio) * 1e6).round() / 1e6) as f32 + 0.0;
            ratios.insert(rounded.to_bits());
        }
    }
    let ratios = i64::try_from(ratios.len()).unwrap_or(i64::MAX);
    let (minima, fixed) = (count("min_size")?, count("fixed_size")?);
    let mut priors = match (fixed, cx.bool("scale_all_sizes")?) {
        (1.., _) => ratios.saturating_mul(fixed),
        (_, true) => ratios.saturating_mul(minima).saturating_add(count("max_size")?),
        (_, false) => ratios.saturating_add(minima) - 1,
    };
    let fixed_ratios = count("fixed_ratio")?;
    let per_density = if fixed_ratios > 0 { fixed_ratios } else { ratios };
    for density in cx.floats("density")? {
        let density = density as i64;
        priors = priors.saturating_add(per_density.saturating_mul(density.saturating_mul(density) - 1));
    }
    Ok(priors)
}

fn proposal(cx: &mut Context) -> Result<(), Fault> {
    check_real(cx, &[(0, "class probabilities"), (1, "box deltas"), (2, "image shape")])?;
    check_rank(cx, 0, "class probabilities", &[4])?;
    check_rank(cx, 1, "box deltas", &[4])?;
    check_rank(cx, 2, "image shape", &[1])?;
    let image = input_dim(cx, 2, 0);
    if !image.contains(3) && !image.contains(4) {
        return Err(Fault::shapes(&[2], message!("the image shape of `Proposal` has {} numbers, not 3 or 4"; image)));
    }
    let anchors = input_dim(cx, 0, 1) * Dim::fixed(2);
    if !input_dim(cx, 1, 1).is_compatible(anchors) {
        let message = message!(
            "axis 1 of the box deltas is {}, but must be {}, twice that of the class probabilities";
            input_dim(cx, 1, 1), anchors
        );
        return Err(Fault::shapes(&[0, 1], message));
    }
    let batch = common_dim(cx, "batch", (0, 0), (1, 0))?;
    let boxes = batch * Dim::from(cx.int("post_nms_topn")?);
    let element_type = cx.element_type(0);
    cx.output(element_type, Shape::from_iter([boxes, Dim::fixed(5)]));
    if cx.operation.revision == 4 {
        cx.output(element_type, Shape::from_iter([boxes]));
    }
    Ok(())
}

fn generate_proposals(cx: &mut Context) -> Result<(), Fault> {
    let kept = cx.int("post_nms_count")?;
    for (name, count) in [("pre_nms_count", cx.int("pre_nms_count")?), ("post_nms_count", kept)] {
        if count <= 0 {
            return Err(Fault::attribute(name, message!("`{}` is {}, but must be more than 0"; name, count)));
        }
    }
    let eta = cx.float("nms_eta")?;
    if eta as f32 != 1.0 {
        return Err(Fault::attribute("nms_eta", message!("`nms_eta` is {}, but must be 1"; eta)));
    }
    check_rank(cx, 0, "image sizes", &[2])?;
    let numbers = input_dim(cx, 0, 1);
    if !numbers.contains(3) && !numbers.contains(4) {
        return Err(Fault::shapes(&[0], message!("each of the image sizes has {} numbers, not 3 or 4"; numbers)));
    }
    check_rank(cx, 1, "anchors", &[4])?;
    require_dim(cx, 1, "anchors", 3, 4)?;
    check_rank(cx, 2, "deltas", &[4])?;
    check_rank(cx, 3, "scores", &[4])?;
    if cx.shape(2).rank().is_some() && cx.shape(3).rank().is_some() {
        common_dim(cx, "batch", (2, 0), (3, 0))?;
        let deltas = input_dim(cx, 3, 1) * Dim::fixed(4);
        if !input_dim(cx, 2, 1).is_compatible(deltas) {
            let message = message!(
                "axis 1 of the deltas is {}, but must be {}, four times that of the scores";
                input_dim(cx, 2, 1), deltas
            );
            return Err(Fault::shapes(&[2, 3], message));
        }
        common_dim(cx, "height", (2, 2), (3, 2))?;
        common_dim(cx, "width", (2, 3), (3, 3))?;
        common_dim(cx, "batch", (0, 0), (2, 0))?;
    }
    common_dim(cx, "height", (1, 0), (3, 2))?;
    common_dim(cx, "width", (1, 1), (3, 3))?;
    common_dim(cx, "number of anchors", (1, 2), (3, 1))?;
    // Different batch sizes are ignored here; some were reported above.
    let batch = [0, 2, 3].into_iter().fold(Dim::ANY, |batch, input| (batch & input_dim(cx, input, 0)).unwrap_or(batch));
    let most = (batch * Dim::fixed(kept)).upper();
    let regions = most.map_or(Dim::ANY, |most| Dim::between(0, most));
    let (element_type, counts) = (cx.element_type(0), index_type(cx, "roi_num_type")?);
    cx.output(element_type, Shape::from_iter([regions, Dim::fixed(4)]));
    cx.output(element_type, Shape::from_iter([regions]));
    cx.finish(counts, Shape::from_iter([batch]))
}

fn detectron_detection_output(cx: &mut Context) -> Result<(), Fault> {
    let element_type = common_real(cx)?;
    let classes = cx.int("num_classes")?;
    for (input, role, length) in [(0, "regions", 4), (1, "deltas", classes.saturating_mul(4)), (2, "scores", classes)] {
        check_rank(cx, input, role, &[2])?;
        require_dim(cx, input, role, 1, length)?;
    }
    if !cx.shape(3).is_compatible(&Shape::fixed([1, 3])) {
        return Err(Fault::shapes(&[3], message!("the image size has the shape {}, not [1,3]"; cx.shape(3))));
    }
    if (0..3).all(|input| cx.shape(input).rank().is_some()) {
        let regions = common_dim(cx, "number of regions", (0, 0), (1, 0))?;
        if !regions.is_compatible(input_dim(cx, 2, 0)) {
            let message = message!("the deltas have {} regions, but the scores have {}"; regions, input_dim(cx, 2, 0));
            return Err(Fault::shapes(&[0, 1, 2], message));
        }
    }
    let kept = Dim::from(cx.int("max_detections_per_image")?);
    cx.output(element_type, Shape::from_iter([kept, Dim::fixed(4)]));
    cx.output(ElementType::I32, Shape::from_iter([kept]));
    cx.finish(element_type, Shape::from_iter([kept]))
}

fn detectron_proposals(cx: &mut Context) -> Result<(), Fault> {
    let element_type = common_real(cx)?;
    check_rank(cx, 0, "image size", &[1])?;
    require_dim(cx, 0, "image size", 0, 3)?;
    check_rank(cx, 1, "anchors", &[2])?;
    require_dim(cx, 1, "anchors", 1, 4)?;
    check_rank(cx, 2, "deltas", &[3])?;
    check_rank(cx, 3, "scores", &[3])?;
    common_dim(cx, "height", (2, 1), (3, 1))?;
    common_dim(cx, "width", (2, 2), (3, 2))?;
    let kept = Dim::from(cx.int("post_nms_count")?);
    cx.output(element_type, Shape::from_iter([kept, Dim::fixed(4)]));
    cx.finish(element_type, Shape::from_iter([kept]))
}

fn detectron_prior_grid(cx: &mut Context) -> Result<(), Fault> {
    let element_type = common_real(cx)?;
    check_rank(cx, 0, "priors", &[2])?;
    require_dim(cx, 0, "priors", 1, 4)?;
    check_rank(cx, 1, "feature map", &[4])?;
    check_rank(cx, 2, "image", &[4])?;
    common_dim(cx, "batch", (1, 0), (2, 0))?;
    let (priors, height, width) = (input_dim(cx, 0, 0), input_dim(cx, 1, 2), input_dim(cx, 1, 3));
    let ranked = cx.shape(0).rank().is_some() && cx.shape(1).rank().is_some();
    let shape = match cx.bool("flatten")? {
        true if ranked => Shape::from_iter([height * width * priors, Dim::fixed(4)]),
        true => Shape::from_iter([Dim::ANY, Dim::fixed(4)]),
        false => Shape::from_iter([height, width, priors, Dim::fixed(4)]),
    };
    cx.finish(element_type, shape)
}
