//! Downgrade rules: they replace later revisions by earlier ones, and new operations by older ones.
//!
//! A rule with a fixed replacement is written in the [notation](crate::rewrite::notation). If the replacement depends on
//! shapes, constants or attributes, a function writes it, or returns the reason why it cannot.

use std::fmt::Write as _;
use std::sync::LazyLock;

use typelift_promote::{ElementType, Kind};

use super::facts::{Written, axis_of, dims, integer, integers, is_true, list, rank};
use super::{bits, order, scatter, slices};
use crate::model::shape::Shape;
use crate::ops::{self, Release};
use crate::rewrite::{Match, Pattern, Rule};

/// Replacement of an operation, or of an attribute value of it.
pub(super) struct Downgrade {
    pub(super) name: &'static str,
    /// The pattern and, if it is fixed, the replacement.
    pattern: &'static str,
    /// The replacement, if it depends on the match.
    right: Option<ReplacementWriter>,
    /// First release that does not need the rule; by default the first one that has the operation.
    until: Option<&'static str>,
}

type ReplacementWriter = fn(&Match) -> Written;

const fn rule(name: &'static str, pattern: &'static str) -> Downgrade {
    Downgrade { name, pattern, right: None, until: None }
}

const fn written(name: &'static str, pattern: &'static str, right: ReplacementWriter) -> Downgrade {
    Downgrade { name, pattern, right: Some(right), until: None }
}

impl Downgrade {
    const fn until(mut self, release: &'static str) -> Self {
        self.until = Some(release);
        self
    }

    pub(super) fn rule(&self) -> Option<Rule> {
        let rule = match self.right {
            Some(right) => self.pattern.parse::<Pattern>().ok()?.writes(right),
            None => self.pattern.parse::<Rule>().ok()?,
        };
        Some(rule.named(self.name).trusted())
    }

    fn serves(&self, rule: &Rule, target: Release) -> bool {
        if let Some(until) = self.until {
            return until.parse().is_ok_and(|until: Release| target < until);
        }
        let Some((operation, version)) = rule.root() else { return false };
        let rows = ops::revisions(operation).iter();
        let row = match version {
            Some(version) => ops::lookup(operation, version),
            None => rows.min_by_key(|row| row.revision),
        };
        row.is_some_and(|row| Release::of_revision(row).is_some_and(|first| first > target))
    }
}

pub(super) fn rules_for(target: Release) -> Vec<Rule> {
    static RULES: LazyLock<Vec<(&Downgrade, Rule)>> =
        LazyLock::new(|| DOWNGRADES.iter().filter_map(|row| Some((row, row.rule()?))).collect());
    RULES.iter().filter(|(row, rule)| row.serves(rule, target)).map(|(_, rule)| rule.clone()).collect()
}

/// Downgrade rules, in the order in which they are tried. The first rule that matches is applied.
pub(super) const DOWNGRADES: &[Downgrade] = &[
    // Later revisions, replaced by earlier ones.
    rule("avg-pool-16-to-14", "AvgPool-16(x) {dilations=[1]} => AvgPool-14(x) {...}"),
    rule("avg-pool-16-to-14", "AvgPool-16(x) {dilations=[1, 1]} => AvgPool-14(x) {...}"),
    rule("avg-pool-16-to-14", "AvgPool-16(x) {dilations=[1, 1, 1]} => AvgPool-14(x) {...}"),
    written("avg-pool-dilated", "AvgPool-16(x) {exclude-pad=$e}", slices::dilated_average),
    written("avg-pool-14-to-1", "AvgPool-14(x)", |m| pool(m, "AvgPool-1", &[""])),
    written("avg-pool-ceil-torch", "AvgPool-14(x) {rounding_type=ceil_torch}", |m| pool(m, "AvgPool-14", &[""]))
        .until("2024.1"),
    rule(
        "deformable-convolution-8-to-1",
        "DeformableConvolution-8(x, o, w) {bilinear_interpolation_pad=false} => DeformableConvolution-1(x, o, w) {...}",
    ),
    written("detection-output-8-to-1", "DetectionOutput-8(b, c, p)", |m| detection_output(m, "")),
    written("detection-output-8-to-1", "DetectionOutput-8(b, c, p, d, e)", |m| detection_output(m, ", d, e")),
    written("gather-8-to-7", "Gather-8(x, i, a)", gather),
    written("gather-nd-8-to-5", "GatherND-8(x, i) {batch_dims=$b}", gather_nd),
    written("interpolate-11-to-4", "Interpolate-11(x, s) {mode=$m, shape_calculation_mode=$c}", |m| interpolate(m, "")),
    written("interpolate-11-to-4", "Interpolate-11(x, s, a) {mode=$m, shape_calculation_mode=$c}", |m| {
        interpolate(m, ", a")
    }),
    written("max-pool-14-to-8", "(v, i) = MaxPool-14(x)", |m| pool(m, "MaxPool-8", &[".0", ".1"])),
    written("max-pool-ceil-torch", "(v, i) = MaxPool-14(x) {rounding_type=ceil_torch}", |m| {
        pool(m, "MaxPool-14", &[".0", ".1"])
    })
    .until("2024.1"),
    written("max-pool-8-to-1", "MaxPool-8(x) {dilations=$d, index_element_type=$t, axis=$a}", max_pool_1),
    rule("multiclass-nms-9-to-8", "(s, i, n) = MulticlassNms-9(b, c) => (s, i, n) = MulticlassNms-8(b, c) {...}"),
    rule(
        "non-max-suppression-9-to-5",
        "(i, s, n) = NonMaxSuppression-9(b, c) => (i, s, n) = NonMaxSuppression-5(b, c) {...}",
    ),
    rule(
        "non-max-suppression-9-to-5",
        "(i, s, n) = NonMaxSuppression-9(b, c, d) => (i, s, n) = NonMaxSuppression-5(b, c, d) {...}",
    ),
    rule(
        "non-max-suppression-9-to-5",
        "(i, s, n) = NonMaxSuppression-9(b, c, d, e) => (i, s, n) = NonMaxSuppression-5(b, c, d, e) {...}",
    ),
    rule(
        "non-max-suppression-9-to-5",
        "(i, s, n) = NonMaxSuppression-9(b, c, d, e, f) => (i, s, n) = NonMaxSuppression-5(b, c, d, e, f) {...}",
    ),
    rule(
        "non-max-suppression-9-to-5",
        "(i, s, n) = NonMaxSuppression-9(b, c, d, e, f, g) => (i, s, n) = NonMaxSuppression-5(b, c, d, e, f, g) {...}",
    ),
    written("one-hot-16-to-1", "OneHot-16(i, d, on, off) {negative_indices_mode=$n, axis=$a}", one_hot),
    written("pad-12-to-1", "Pad-12(x, b, e) {pad_mode=$m}", |m| pad(m, "")),
    written("pad-12-to-1", "Pad-12(x, b, e, v) {pad_mode=$m}", |m| pad(m, ", v")),
    // Releases before 2025.4 require pads of known length.
    written("pad-of-known-length", "Pad(x, b, e, ...) {pad_mode=$m}", known_pads).until("2025.4"),
    rule("prior-box-8-to-1", "PriorBox-8(o, i) {min_max_aspect_ratios_order=true} => PriorBox-1(o, i) {...}"),
    rule("roi-align-9-to-3", "ROIAlign-9(x, b, i) {aligned_mode=asymmetric} => ROIAlign-3(x, b, i) {...}"),
    written(
        "scatter-elements-update-12-to-3",
        "ScatterElementsUpdate-12(x, i, u, a) {reduction=none, use_init_val=$v}",
        scatter_elements,
    ),
    written(
        "scatter-elements-update-reduction",
        "ScatterElementsUpdate-12(x, i, u, a) {reduction=$r, use_init_val=$v}",
        |m| scatter::elements(m, &from_front(m, "i", || size_along(m, "a", "i"))?),
    ),
    rule("scatter-nd-update-15-to-4", "ScatterNDUpdate-15(x, i, u) {reduction=none} => ScatterNDUpdate-4(x, i, u)"),
    written("scatter-nd-update-reduction", "ScatterNDUpdate-15(x, i, u) {reduction=$r}", scatter::nd),
    written("softmax-8-to-1", "Softmax-8(x) {axis=$a}", softmax),
    rule("squeeze-15-to-1", "Squeeze-15(x) {allow_axis_skip=false} => Squeeze-1(x)"),
    rule("squeeze-15-to-1", "Squeeze-15(x, a) {allow_axis_skip=false} => Squeeze-1(x, a)"),
    written("squeeze-15-to-1", "Squeeze-15(x, a: const) {allow_axis_skip=true}", squeeze),
    written("squeeze-of-ones", "Squeeze-1(x, a: const)", squeezable).until("2024.3"),
    written("top-k-11-to-3", "(v, i) = TopK-11(x, k) {stable=false}", order::unstable),
    written("top-k-of-signed", "(v, i) = TopK-3(x, k)", order::signed_count).until("2023.0"),
    written(
        "top-1-of-stable-top-k",
        "(v, i) = TopK-11(x, k: const) {axis=$a, mode=$m, index_element_type=$t, stable=true}",
        order::first_of_stable,
    ),
    written(
        "stable-top-k",
        "(v, i) = TopK-11(x, k) {axis=$a, mode=$m, sort=$s, index_element_type=$t, stable=true}",
        order::stable,
    ),
    // Releases before 2022.1 accept only a list of axes, not a scalar.
    rule("unsqueeze-by-list", "Unsqueeze(x, a: const []) => Unsqueeze(x, reshape(a, [1]))").until("2022.1"),
    // New operations, replaced by older ones.
    written("adaptive-avg-pool", "AdaptiveAvgPool-8(x, s: const)", |m| {
        adaptive_pool(m, "ReduceMean", "AvgPool-1", ", exclude-pad=true")
    }),
    written("adaptive-max-pool", "AdaptiveMaxPool-8(x, s: const) {index_element_type=$t}", |m| {
        adaptive_pool(m, "ReduceMax", "MaxPool-1", "")
    }),
    rule(
        "bitwise-and-of-booleans",
        "BitwiseAnd-13(a: boolean, b) {auto_broadcast=$b} => LogicalAnd(a, b) {auto_broadcast=$b}",
    ),
    rule(
        "bitwise-or-of-booleans",
        "BitwiseOr-13(a: boolean, b) {auto_broadcast=$b} => LogicalOr(a, b) {auto_broadcast=$b}",
    ),
    rule(
        "bitwise-xor-of-booleans",
        "BitwiseXor-13(a: boolean, b) {auto_broadcast=$b} => LogicalXor(a, b) {auto_broadcast=$b}",
    ),
    rule("bitwise-not-of-booleans", "BitwiseNot-13(x: boolean) => LogicalNot(x)"),
    written("bitwise-not", "BitwiseNot-13(x)", bitwise_not),
    written("bitwise-and", "BitwiseAnd-13(a, b) {auto_broadcast=$b}", |m| {
        bits::bitwise(m, |a, b| format!("Minimum({a}, {b})"))
    }),
    written("bitwise-or", "BitwiseOr-13(a, b) {auto_broadcast=$b}", |m| {
        bits::bitwise(m, |a, b| format!("Maximum({a}, {b})"))
    }),
    written("bitwise-xor", "BitwiseXor-13(a, b) {auto_broadcast=$b}", |m| {
        bits::bitwise(m, |a, b| format!("Abs(Subtract({a}, {b}))"))
    }),
    rule(
        "bitwise-left-shift",
        "BitwiseLeftShift-15(x, s) {auto_broadcast=$b} => Multiply(x, Power(2, s)) {auto_broadcast=$b}",
    ),
    written("bitwise-right-shift", "BitwiseRightShift-15(x, s) {auto_broadcast=$b}", bits::right_shift),
    rule(
        "embedding-bag-offsets-15-to-sum",
        "EmbeddingBagOffsets-15(t, i, o) {reduction=sum} => EmbeddingBagOffsetsSum-3(t, i, o)",
    ),
    rule(
        "embedding-bag-offsets-15-to-sum",
        "EmbeddingBagOffsets-15(t, i, o, d) {reduction=sum} => EmbeddingBagOffsetsSum-3(t, i, o, d)",
    ),
    rule(
        "embedding-bag-offsets-15-to-sum",
        "EmbeddingBagOffsets-15(t, i, o, d, w) {reduction=sum} => EmbeddingBagOffsetsSum-3(t, i, o, d, w)",
    ),
    written("embedding-bag-offsets-mean", "EmbeddingBagOffsets-15(t, i, o) {reduction=mean}", |m| mean_of_bags(m, "")),
    written("embedding-bag-offsets-mean", "EmbeddingBagOffsets-15(t, i, o, d) {reduction=mean}", |m| {
        mean_of_bags(m, ", d")
    }),
    rule(
        "embedding-bag-packed-mean",
        "EmbeddingBagPacked-15(t, i) {reduction=mean} => ReduceMean(Gather-1(t, i, 0), [1]) {keep_dims=false}",
    ),
    rule(
        "embedding-bag-packed-15-to-sum",
        "EmbeddingBagPacked-15(t, i) {reduction=sum} => EmbeddingBagPackedSum-3(t, i)",
    ),
    rule(
        "embedding-bag-packed-15-to-sum",
        "EmbeddingBagPacked-15(t, i, w) {reduction=sum} => EmbeddingBagPackedSum-3(t, i, w)",
    ),
    rule(
        "eye",
        "Eye-9(r: [], c: [], d: []) {output_type=$t} => Convert(Equal(Add(Unsqueeze(Range-4(0, Convert(r) {destination_type=i64}, 1) {output_type=i64}, 1), Convert(d) {destination_type=i64}), Unsqueeze(Range-4(0, Convert(c) {destination_type=i64}, 1) {output_type=i64}, 0))) {destination_type=$t}",
    ),
    written("group-normalization", "GroupNormalization-12(x, s, b) {num_groups=$g, epsilon=$e}", group_normalization),
    written("identity", "Identity-16(x)", |m| match m.element_type("x") {
        Some(ty) if ty != ElementType::Dynamic => Ok(format!("Convert(x) {{destination_type={ty}}}")),
        _ => Err("the element type is not known".to_owned()),
    }),
    rule("is-finite", "IsFinite-10(x) => Less(Abs(x), inf)"),
    rule("is-inf", "IsInf-10(x) {detect_negative=true, detect_positive=true} => Equal(Abs(x), inf)"),
    rule("is-inf", "IsInf-10(x) {detect_negative=false, detect_positive=true} => Equal(x, inf)"),
    rule("is-inf", "IsInf-10(x) {detect_negative=true, detect_positive=false} => Equal(x, -inf)"),
    rule("is-inf", "IsInf-10(x) {detect_negative=false, detect_positive=false} => Less(Abs(x), -inf)"),
    rule("is-nan", "IsNaN-10(x) => NotEqual(x, x)"),
    written("scaled-dot-product-attention", "ScaledDotProductAttention-13(q, k, v) {causal=$c}", |m| {
        attention(m, None, None)
    }),
    written("scaled-dot-product-attention", "ScaledDotProductAttention-13(q, k, v, m) {causal=$c}", |m| {
        attention(m, Some("m"), None)
    }),
    written("scaled-dot-product-attention", "ScaledDotProductAttention-13(q, k, v, m, s) {causal=$c}", |m| {
        attention(m, Some("m"), Some("s"))
    }),
    written("search-sorted", "SearchSorted-15(s, v) {right_mode=$r, output_type=$t}", search_sorted),
    written("slice-8-to-strided-slice", "Slice-8(x, b, e, s)", |m| slices::strided(m, None)),
    written("slice-8-to-strided-slice", "Slice-8(x, b, e, s, a: const)", |m| slices::strided(m, Some("a"))),
    written("slice-scatter", "SliceScatter-15(x, u, b, e, s)", |m| slices::scatter(m, "")),
    written("slice-scatter", "SliceScatter-15(x, u, b, e, s, a)", |m| slices::scatter(m, ", a")),
    rule("soft-sign", "SoftSign-9(x) => Divide(x, Add(Abs(x), 1))"),
];

/// Writes a pooling with a rounding mode that every release supports.
fn pool(m: &Match, operation: &str, outputs: &[&str]) -> Written {
    let with = |rounding: &str, output: &str| format!("{operation}(x){output} {{{rounding}...}}");
    let whole = |rounding: &str| match outputs.len() {
        1 => with(rounding, ""),
        _ => format!("(v, i) = {}", with(rounding, "")),
    };
    if !m.root.attribute("rounding_type").is_some_and(|it| it.eq_ignore_ascii_case("ceil_torch")) {
        return Ok(whole(""));
    }
    // For most shapes, one of OpenVINO's two old rounding modes gives the same result as `ceil_torch`.
    if let Ok(rounding) = slices::rounding(m) {
        return Ok(whole(&format!("rounding_type={rounding}, ")));
    }
    let parts = outputs.iter().map(|output| slices::without_padding(m, &with("rounding_type=ceil, ", output)));
    let parts = parts.collect::<Result<Vec<_>, _>>()?.join(", ");
    Ok(if outputs.len() == 1 { parts } else { format!("({parts})") })
}

fn max_pool_1(m: &Match) -> Written {
    let dilated = m.attribute("d")?.split(',').any(|dilation| dilation.trim() != "1" && !dilation.trim().is_empty());
    if dilated {
        return Err(format!("MaxPool-1 does not support dilations, which are {} here", m.attribute("d")?));
    }
    Ok("MaxPool-1(x) {...}".to_owned())
}

/// Writes the first revision of DetectionOutput, which has the number of classes as attribute. Later ones infer it.
fn detection_output(m: &Match, more: &str) -> Written {
    let (classes, priors) = (dims(m, "c", 0)?, dims(m, "p", 0)?);
    let size = if is_true(m.root.attribute("normalized").unwrap_or("false")) { 4 } else { 5 };
    match (classes.get(1), priors.get(2)) {
        (Some(classes), Some(priors)) if *priors >= size => {
            Ok(format!("DetectionOutput-1(b, c, p{more}) {{num_classes={}, ...}}", classes / (priors / size)))
        }
        _ => Err("the number of classes is not known".to_owned()),
    }
}

/// Writes indices that count from the front, for ones that may count from the end.
fn from_front(m: &Match, indices: &str, size: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let unsigned = m.element_type(indices).is_some_and(|ty| ty.kind() == Kind::Unsigned);
    if unsigned || m.constant(indices).is_some_and(|values| values.iter().all(|&value| value >= 0.0)) {
        return Ok(indices.to_owned());
    }
    Ok(format!("Select(Less({indices}, 0), Add({indices}, {}), {indices})", size()?))
}

/// Writes the length of an axis of a tensor, in the type of its indices.
fn size_along(m: &Match, axis: &str, indices: &str) -> Result<String, String> {
    let Some(&[axis]) = integers(m, axis).as_deref() else { return Err("the axis is not a constant".to_owned()) };
    let axis = axis_of(axis, || rank(m, "x"))?;
    if let Some(size) = m.shape("x").and_then(|shape| shape.dims()?.get(axis as usize)?.value()) {
        return Ok(size.to_string());
    }
    let ty = m.element_type(indices).unwrap_or(ElementType::I64);
    Ok(format!("Convert(Gather-7(ShapeOf-3(x) {{output_type=i64}}, {axis}, 0)) {{destination_type={ty}}}"))
}

fn gather(m: &Match) -> Written {
    let indices = from_front(m, "i", || size_along(m, "a", "i"))?;
    Ok(format!("Gather-7(x, {indices}, a) {{...}}"))
}

fn scatter_elements(m: &Match) -> Written {
    let indices = from_front(m, "i", || size_along(m, "a", "i"))?;
    Ok(format!("ScatterElementsUpdate-3(x, {indices}, u, a)"))
}

/// Writes the old GatherND; its revision 5 merges the batch dimensions into one.
fn gather_nd(m: &Match) -> Written {
    let batch = integer(m, "b")?;
    let gathered = "GatherND-5(x, i) {batch_dims=$b}";
    if batch < 2 {
        return Ok(gathered.to_owned());
    }
    let (data, indices) = (rank(m, "x")?, rank(m, "i")?);
    let depth = m
        .shape("i")
        .and_then(|shape| shape.dims()?.last()?.value())
        .ok_or("the last dimension of the indices is not known")?;
    let rest = (batch as u64 + depth as u64) as usize;
    let of_indices = format!("Gather-1(ShapeOf-3(i) {{output_type=i64}}, {}, 0)", list(0..indices - 1));
    let shape = if rest < data {
        format!("Concat({of_indices}, Gather-1(ShapeOf-3(x) {{output_type=i64}}, {}, 0)) {{axis=0}}", list(rest..data))
    } else {
        of_indices
    };
    Ok(format!("Reshape({gathered}, {shape}) {{special_zero=false}}"))
}

/// Writes Interpolate with two inputs for sizes and scales; the mode selects one of them.
fn interpolate(m: &Match, axes: &str) -> Written {
    if m.attribute("m")?.to_ascii_lowercase().ends_with("pillow") {
        return Err(format!("Interpolate-4 does not have mode={}", m.attribute("m")?));
    }
    let length = |name: &str| m.shape(name).and_then(|shape| shape.dims()?.first()?.value());
    let all = || rank(m, "x").ok().filter(|_| axes.is_empty()).map(|rank| rank as i64);
    let count = length("s").or_else(|| length("a")).or_else(all).ok_or("the number of axes is not known")?;
    let ones = list((0..count).map(|_| 1));
    let (sizes, scales) = match m.attribute("c")?.to_ascii_lowercase().as_str() {
        "sizes" => ("s".to_owned(), format!("convert({ones}, f32)")),
        _ => (ones, "s".to_owned()),
    };
    Ok(format!("Interpolate-4(x, {sizes}, {scales}{axes}) {{...}}"))
}

/// Writes the first revision of OneHot, which ignores negative indices. With `normalize` they count from the end.
fn one_hot(m: &Match) -> Written {
    let indices = match m.attribute("n")?.to_ascii_lowercase().as_str() {
        "normalize" => {
            let ty = m.element_type("i").unwrap_or(ElementType::I64);
            from_front(m, "i", || Ok(format!("Convert(d) {{destination_type={ty}}}")))?
        }
        _ => "i".to_owned(),
    };
    Ok(format!("OneHot-1({indices}, d, on, off) {{axis=$a}}"))
}

/// Writes the first revision of Pad, which cannot crop. Negative pads become a slice after it.
fn pad(m: &Match, value: &str) -> Written {
    let (begin, end) = (integers(m, "b"), integers(m, "e"));
    let cuts = |pads: &Option<Vec<i64>>| pads.as_ref().is_none_or(|pads| pads.iter().any(|&pad| pad < 0));
    if !cuts(&begin) && !cuts(&end) {
        return Ok(format!("Pad-1(x, b, e{value}) {{pad_mode=$m}}"));
    }
    let rank = rank(m, "x")?;
    let ones = list((0..rank).map(|_| 1));
    let zeros = list((0..rank).map(|_| 0));
    let masks = format!(
        "{{begin_mask={zeros}, end_mask={zeros}, new_axis_mask={zeros}, shrink_axis_mask={zeros}, ellipsis_mask={zeros}}}"
    );
    let ty = m.element_type("b").unwrap_or(ElementType::I64);
    let grown = format!("Pad-1(x, Maximum(b, 0), Maximum(e, 0){value}) {{pad_mode=$m}}");
    let last =
        format!("Add(Convert(ShapeOf-3(x) {{output_type=i64}}) {{destination_type={ty}}}, Add(Maximum(b, 0), e))");
    Ok(format!("StridedSlice({grown}, Maximum(Negative(b), 0), {last}, convert({ones}, {ty})) {masks}"))
}

/// Writes a Pad whose number of pads is known: the rank of the tensor.
fn known_pads(m: &Match) -> Written {
    let is_known = |name: &str| m.shape(name).is_some_and(Shape::is_static);
    if m.attribute("m")?.eq_ignore_ascii_case("constant") || is_known("b") && is_known("e") {
        return Err("the pads already have a known length".to_owned());
    }
    let rank = rank(m, "x")?;
    let reshaped = |name| format!("Reshape({name}, [{rank}]) {{special_zero=false}}");
    Ok(format!("Pad(x, {}, {}, ...) {{pad_mode=$m}}", reshaped("b"), reshaped("e")))
}

/// Writes a Squeeze whose axes all have length 1, which releases before 2024.3 require.
fn squeezable(m: &Match) -> Written {
    let (rank, axes) = (rank(m, "x")?, integers(m, "a").ok_or("the axes are not a constant")?);
    let dims = m.shape("x").and_then(|shape| shape.dims()).unwrap_or_default();
    let axes = axes.into_iter().map(|axis| axis_of(axis, || Ok(rank))).collect::<Result<Vec<_>, _>>()?;
    let ones: Vec<_> =
        axes.iter().copied().filter(|axis| dims.get(*axis as usize).is_some_and(|dim| dim.contains(1))).collect();
    match (ones.len() == axes.len(), m.element_type("x")) {
        (true, _) => Err("every axis has length 1".to_owned()),
        (false, Some(ty)) if ones.is_empty() => Ok(format!("Convert(x) {{destination_type={ty}}}")),
        (false, _) => Ok(format!("Squeeze(x, {})", list(ones))),
    }
}

fn softmax(m: &Match) -> Written {
    let axis = axis_of(integer(m, "a")?, || rank(m, "x"))?;
    Ok(format!("Softmax-1(x) {{axis={axis}}}"))
}

/// Writes a Squeeze of the axes that have length 1.
fn squeeze(m: &Match) -> Written {
    let dims = dims(m, "x", 0)?;
    let axes = integers(m, "a").ok_or("the axes are not a constant")?;
    let axes = axes.into_iter().map(|axis| axis_of(axis, || Ok(dims.len()))).collect::<Result<Vec<_>, _>>()?;
    let ones: Vec<_> = axes.into_iter().filter(|&axis| dims.get(axis as usize) == Some(&1)).collect();
    if ones.is_empty() {
        // A Squeeze without axes would remove all axes of length 1.
        Err("none of its axes has length 1".to_owned())
    } else {
        Ok(format!("Squeeze-1(x, {})", list(ones)))
    }
}

/// Writes BitwiseNot by arithmetic: `-1 - x` for signed types, and the largest number minus `x` for unsigned ones.
fn bitwise_not(m: &Match) -> Written {
    let ty = m.element_type("x").unwrap_or(ElementType::Dynamic);
    match ty.kind() {
        Kind::Signed => Ok("Subtract(-1, x)".to_owned()),
        Kind::Unsigned if ty.bits() <= 32 => Ok(format!("Subtract({}, x)", (1_u64 << ty.bits()) - 1)),
        _ => Err(format!("older releases have no operation that inverts the bits of {ty}")),
    }
}

/// Writes a pooling with windows of equal size, or a reduction if one window covers everything.
fn adaptive_pool(m: &Match, reduction: &str, operation: &str, more: &str) -> Written {
    let rank = rank(m, "x")?;
    let sizes = integers(m, "s").ok_or("the size of the output is not a constant")?;
    if sizes.iter().all(|&size| size == 1) {
        return Ok(format!("{reduction}(x, {}) {{keep_dims=true}}", list(2..rank)));
    }
    let dims = dims(m, "x", 2)?;
    let windows = dims.iter().zip(&sizes).map(|(&dim, &size)| {
        let size = u64::try_from(size).ok().filter(|&size| size > 0 && dim % size == 0);
        size.map(|size| dim / size).ok_or_else(|| format!("windows for {} of {dims:?} differ in size", list(&sizes)))
    });
    let windows = list(windows.collect::<Result<Vec<_>, _>>()?);
    let zeros = list(dims.iter().map(|_| 0));
    Ok(format!(
        "{operation}(x) {{kernel={windows}, strides={windows}, pads_begin={zeros}, pads_end={zeros}, auto_pad=explicit, rounding_type=floor{more}}}"
    ))
}

/// Writes means as sums divided by counts. An empty bag counts as one element: the default or zero.
fn mean_of_bags(m: &Match, default: &str) -> Written {
    let ty = m.element_type("t").filter(|ty| ty.is_float()).ok_or("the element type is not known")?;
    let rank = rank(m, "t")?;
    let rows = "Gather-7(ShapeOf-3(t) {output_type=i64}, [0], 0)";
    let ones = list((1..rank).map(|_| 1));
    let ones = format!("Broadcast-3(convert(1, {ty}), Concat({rows}, {ones}) {{axis=0}}) {{mode=numpy}}");
    let sums = |table: &str| format!("EmbeddingBagOffsetsSum-3({table}, i, o{default})");
    Ok(format!("Divide({}, Maximum({}, 1))", sums("t"), sums(&ones)))
}

fn group_normalization(m: &Match) -> Written {
    let others = list((0..rank(m, "x")?).filter(|&axis| axis != 1));
    let groups = integer(m, "g")?;
    let normal = format!(
        "MVN-6(Reshape(x, [0, {groups}, -1]) {{special_zero=true}}, [2]) {{normalize_variance=true, eps=$e, eps_mode=inside_sqrt}}"
    );
    let normal = format!("Reshape({normal}, ShapeOf-3(x) {{output_type=i64}}) {{special_zero=false}}");
    Ok(format!("Add(Multiply({normal}, Unsqueeze(s, {others})), Unsqueeze(b, {others}))"))
}

/// Writes the length of a tensor's last axis but one, as a scalar.
fn length(m: &Match, name: &str) -> Result<String, String> {
    let rank = rank(m, name)?;
    let axis = rank.checked_sub(2).ok_or("its inputs are not matrices")?;
    Ok(match m.shape(name).and_then(|shape| shape.dims()?.get(axis)?.value()) {
        Some(length) => length.to_string(),
        None => format!("Gather-7(ShapeOf-3({name}) {{output_type=i64}}, {axis}, 0)"),
    })
}

fn attention(m: &Match, mask: Option<&str>, scale: Option<&str>) -> Written {
    let ty = m.element_type("q").filter(|ty| ty.is_float()).ok_or("the element type is not known")?;
    let scale = match (scale, m.shape("q").and_then(|shape| shape.dims()?.last()?.value())) {
        (Some(scale), _) => scale.to_owned(),
        (None, Some(width)) => format!("{:?}", 1.0 / (width as f64).sqrt()),
        (None, None) => {
            let axis = rank(m, "q")? - 1;
            format!(
                "Power(Convert(Gather-7(ShapeOf-3(q) {{output_type=i64}}, {axis}, 0)) {{destination_type={ty}}}, -0.5)"
            )
        }
    };
    let mut scores = format!("MatMul(Multiply(q, {scale}), k) {{transpose_a=false, transpose_b=true}}");
    let hides = |hidden: &str| format!("Select({hidden}, convert(-inf, {ty}), convert(0, {ty}))");
    let mask = if is_true(m.attribute("c")?) {
        let (rows, columns) = (length(m, "q")?, length(m, "k")?);
        let range = |count: &str, axis: u8| format!("Unsqueeze(Range-4(0, {count}, 1) {{output_type=i64}}, {axis})");
        Some(hides(&format!("Less({}, {})", range(&rows, 1), range(&columns, 0))))
    } else {
        let boolean = |mask: &&str| m.element_type(mask) == Some(ElementType::Boolean);
        mask.map(|mask| if boolean(&mask) { hides(&format!("LogicalNot({mask})")) } else { mask.to_owned() })
    };
    if let Some(mask) = mask {
        scores = format!("Add({scores}, {mask})");
    }
    Ok(format!("MatMul(Softmax-8({scores}) {{axis=-1}}, v) {{transpose_a=false, transpose_b=false}}"))
}

/// Writes SearchSorted: the position of a value is the number of smaller elements.
fn search_sorted(m: &Match) -> Written {
    let (sorted, values) = (rank(m, "s")?, rank(m, "v")?);
    let less = if is_true(m.attribute("r")?) { "LessEqual" } else { "Less" };
    let mut right = String::new();
    let _ = write!(right, "Convert(ReduceSum(Convert({less}(Unsqueeze(s, {}), ", sorted.saturating_sub(1));
    let _ = write!(right, "Unsqueeze(v, {values}))) {{destination_type=i32}}, {values}) {{keep_dims=false}})");
    Ok(right + " {destination_type=$t}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_be_read() {
        for row in DOWNGRADES {
            assert!(row.rule().is_some(), "{}", row.name);
            assert_eq!(row.right.is_none(), row.pattern.contains("=>"), "{}", row.name);
            let needed = row.rule().is_some_and(|rule| row.serves(&rule, Release::OLDEST));
            assert!(needed, "{} is for releases that nobody asks for", row.name);
        }
    }

    #[test]
    fn every_rule_has_a_fixture() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/fixtures/target");
        for row in DOWNGRADES {
            let fixture = std::path::Path::new(folder).join(format!("{}.xml", row.name));
            assert!(fixture.exists(), "{} has no fixture: testdata/oracle/targets/targets.py makes them", row.name);
        }
    }
}
