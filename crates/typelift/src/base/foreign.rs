//! Names that other frameworks use for element types, operations and attributes, with OpenVINO's name for each.

use typelift_promote::ElementType;

use super::names::{distance, nearest};

/// Element types: another framework's name, in lower case, and OpenVINO's type.
const TYPES: &[(&str, ElementType)] = &[
    ("bool", ElementType::Boolean),
    ("byte", ElementType::U8),
    ("char", ElementType::I8),
    ("short", ElementType::I16),
    ("int", ElementType::I32),
    ("long", ElementType::I64),
    ("half", ElementType::F16),
    ("float", ElementType::F32),
    ("double", ElementType::F64),
    ("bfloat16", ElementType::Bf16),
    ("brain", ElementType::Bf16),
    ("float8_e4m3", ElementType::F8E4M3),
    ("float8_e4m3fn", ElementType::F8E4M3),
    ("float8_e4m3fnuz", ElementType::F8E4M3),
    ("fp8_e4m3", ElementType::F8E4M3),
    ("e4m3", ElementType::F8E4M3),
    ("float8_e5m2", ElementType::F8E5M2),
    ("float8_e5m2fnuz", ElementType::F8E5M2),
    ("fp8_e5m2", ElementType::F8E5M2),
    ("e5m2", ElementType::F8E5M2),
    ("str", ElementType::String),
    ("object", ElementType::String),
    ("qint8", ElementType::I8),
    ("quint8", ElementType::U8),
    ("unspecified", ElementType::Dynamic),
    ("undefined", ElementType::Dynamic),
];

/// Operations: another framework's name, in lower case without `_`, `2d` or a number at the end; OpenVINO's operation;
/// and a note on the difference. If the operation is empty, the note says what to do instead.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("absval", "Abs", ""),
    ("addn", "Add", "with two inputs each"),
    ("addv2", "Add", ""),
    ("addmm", "MatMul", "and an Add"),
    ("addbmm", "MatMul", "and an Add"),
    ("biasadd", "Add", ""),
    ("eltwise", "Add", "or another element-wise operation"),
    ("elementwise", "Add", "or another element-wise operation"),
    ("sum", "Add", "or ReduceSum, if it sums over axes"),
    ("plus", "Add", ""),
    ("sub", "Subtract", ""),
    ("minus", "Subtract", ""),
    ("mul", "Multiply", ""),
    ("scale", "Multiply", ""),
    ("scaleshift", "Multiply", "then an Add"),
    ("div", "Divide", ""),
    ("truediv", "Divide", ""),
    ("realdiv", "Divide", ""),
    ("floordiv", "Floor", "of a Divide"),
    ("floordivide", "Floor", "of a Divide"),
    ("remainder", "FloorMod", ""),
    ("fmod", "Mod", ""),
    ("pow", "Power", ""),
    ("exponent", "Power", ""),
    ("neg", "Negative", ""),
    ("max", "Maximum", "or ReduceMax, if it is over axes"),
    ("min", "Minimum", "or ReduceMin, if it is over axes"),
    ("amax", "ReduceMax", "the axes are its second input"),
    ("amin", "ReduceMin", "the axes are its second input"),
    ("reciprocal", "Power", "with the exponent -1 as second input"),
    ("square", "Power", "with the exponent 2 as second input"),
    ("rsqrt", "Power", "with the exponent -0.5 as second input"),
    ("rdiv", "Divide", "with its inputs exchanged"),
    ("rsub", "Subtract", "with its inputs exchanged"),
    ("ceil", "Ceiling", ""),
    ("signum", "Sign", ""),
    ("erfc", "Erf", "subtracted from 1"),
    ("expm1", "Exp", "then a Subtract of 1"),
    ("log1p", "Log", "of an Add of 1"),
    ("log2", "Log", "divided by the logarithm of 2"),
    ("eq", "Equal", ""),
    ("ne", "NotEqual", ""),
    ("neq", "NotEqual", ""),
    ("gt", "Greater", ""),
    ("greaterthan", "Greater", ""),
    ("lt", "Less", ""),
    ("lessthan", "Less", ""),
    ("ge", "GreaterEqual", ""),
    ("gte", "GreaterEqual", ""),
    ("greaterorequal", "GreaterEqual", ""),
    ("le", "LessEqual", ""),
    ("lte", "LessEqual", ""),
    ("lessorequal", "LessEqual", ""),
    ("not", "LogicalNot", ""),
    ("and", "LogicalAnd", ""),
    ("or", "LogicalOr", ""),
    ("xor", "LogicalXor", ""),
    ("all", "ReduceLogicalAnd", ""),
    ("any", "ReduceLogicalOr", ""),
    ("reduceall", "ReduceLogicalAnd", ""),
    ("reduceany", "ReduceLogicalOr", ""),
    ("where", "Select", ""),
    ("maskedfill", "Select", "the mask is its first input, the value its second"),
    ("conv", "Convolution", "its attributes are strides, pads_begin, pads_end, dilations and auto_pad"),
    ("deconv", "ConvolutionBackpropData", ""),
    ("deconvolution", "ConvolutionBackpropData", ""),
    ("convtranspose", "ConvolutionBackpropData", ""),
    ("transposedconvolution", "ConvolutionBackpropData", ""),
    ("convbackpropinput", "ConvolutionBackpropData", ""),
    ("depthwiseconv", "GroupConvolution", "its filters have the groups as their first dim"),
    ("depthwiseconvnative", "GroupConvolution", "its filters have the groups as their first dim"),
    ("depthwiseconvolution", "GroupConvolution", "its filters have the groups as their first dim"),
    ("groupconv", "GroupConvolution", "its filters have the groups as their first dim"),
    ("gemm", "MatMul", "transA and transB are transpose_a and transpose_b; alpha, beta and C become Multiply and Add"),
    ("fullyconnected", "MatMul", "the weights are its second input; transpose_b=\"true\" if they are [output, input]"),
    ("innerproduct", "MatMul", "the weights are its second input; transpose_b=\"true\" if they are [output, input]"),
    ("linear", "MatMul", "with transpose_b=\"true\"; the bias becomes an Add"),
    ("dense", "MatMul", "the bias becomes an Add"),
    ("bmm", "MatMul", ""),
    ("mm", "MatMul", ""),
    ("matrixmultiply", "MatMul", ""),
    ("batchmatmul", "MatMul", ""),
    ("dot", "MatMul", ""),
    ("cast", "Convert", "`to` becomes destination_type"),
    ("to", "Convert", "with the attribute destination_type"),
    ("type", "Convert", "with the attribute destination_type"),
    ("float", "Convert", "with destination_type=\"f32\""),
    ("half", "Convert", "with destination_type=\"f16\""),
    ("long", "Convert", "with destination_type=\"i64\""),
    ("castlike", "ConvertLike", ""),
    ("permute", "Transpose", "the order is its second input"),
    ("swapaxes", "Transpose", "the order is its second input"),
    ("view", "Reshape", "the new shape is its second input"),
    ("flatten", "Reshape", "the new shape is its second input"),
    ("expanddims", "Unsqueeze", ""),
    ("concatenate", "Concat", ""),
    ("cat", "Concat", ""),
    ("stack", "Concat", "after an Unsqueeze of each input"),
    ("pack", "Concat", "after an Unsqueeze of each input"),
    ("unpack", "Split", "then a Squeeze of each output"),
    ("unstack", "Split", "then a Squeeze of each output"),
    ("unbind", "Split", "then a Squeeze of each output"),
    ("chunk", "Split", ""),
    ("narrow", "Slice", ""),
    ("crop", "Slice", ""),
    ("slicing", "Slice", ""),
    ("strideslice", "StridedSlice", ""),
    ("expand", "Broadcast", ""),
    ("broadcastto", "Broadcast", ""),
    ("expandas", "Broadcast", ""),
    ("repeat", "Tile", ""),
    ("size", "ShapeOf", "then a ReduceProd"),
    ("shape", "ShapeOf", ""),
    ("constantofshape", "Broadcast", "of the value to the shape"),
    ("fill", "Broadcast", "of the value to the shape"),
    ("full", "Broadcast", "of the value to the shape"),
    ("zeros", "Broadcast", "of 0 to the shape"),
    ("ones", "Broadcast", "of 1 to the shape"),
    ("zeroslike", "Broadcast", "of 0 to the ShapeOf the tensor"),
    ("oneslike", "Broadcast", "of 1 to the ShapeOf the tensor"),
    ("arange", "Range", ""),
    ("embedding", "Gather", "the table is its first input, the ids its second, the axis its third"),
    ("embeddinglookup", "Gather", "the table is its first input, the ids its second, the axis its third"),
    ("lookup", "Gather", ""),
    ("indexselect", "Gather", ""),
    ("take", "Gather", ""),
    ("scatter", "ScatterElementsUpdate", ""),
    ("scatternd", "ScatterNDUpdate", ""),
    ("tensorscatterupdate", "ScatterNDUpdate", ""),
    ("scatterelements", "ScatterElementsUpdate", ""),
    ("scatteradd", "ScatterElementsUpdate", "with reduction=\"sum\""),
    ("onehotencoding", "OneHot", ""),
    ("globalaveragepool", "ReduceMean", "the axes are its second input"),
    ("globalmaxpool", "ReduceMax", "the axes are its second input"),
    ("averagepool", "AvgPool", "the window is `kernel`"),
    ("averagepooling", "AvgPool", "the window is `kernel`"),
    ("avgpooling", "AvgPool", "the window is `kernel`"),
    ("pooling", "MaxPool", "or AvgPool; the window is `kernel`"),
    ("maxpooling", "MaxPool", "the window is `kernel`"),
    ("adaptiveaveragepool", "AdaptiveAvgPool", ""),
    ("mean", "ReduceMean", "the axes are its second input"),
    ("prod", "ReduceProd", "the axes are its second input"),
    ("norm", "ReduceL2", "the axes are its second input"),
    ("logsumexp", "Log", "of a ReduceSum of an Exp"),
    ("reducelogsumexp", "Log", "of a ReduceSum of an Exp"),
    ("argmax", "TopK", "with mode=\"max\" and k=1"),
    ("argmin", "TopK", "with mode=\"min\" and k=1"),
    ("sort", "TopK", "of all elements, with sort=\"value\""),
    ("argsort", "TopK", "of all elements, with sort=\"value\""),
    ("cumulativesum", "CumSum", ""),
    ("leakyrelu", "PRelu", "the slope is its second input"),
    ("thresholdedrelu", "Select", "of a Greater"),
    ("relu6", "Clamp", "with min=\"0\" max=\"6\""),
    ("hardtanh", "Clamp", "with min and max"),
    ("clip", "Clamp", "with min and max as attributes"),
    ("silu", "Swish", ""),
    ("swiglu", "Swish", "and a Multiply"),
    ("hardswish", "HSwish", ""),
    ("celu", "Elu", "with alpha"),
    ("logistic", "Sigmoid", ""),
    ("geluerf", "Gelu", ""),
    ("fastgelu", "Gelu", "with approximation_mode=\"tanh\""),
    ("quickgelu", "Swish", "with the factor 1.702 as second input"),
    ("batchnormalization", "BatchNormInference", "gamma, beta, mean and variance are its inputs"),
    ("batchnorm", "BatchNormInference", "gamma, beta, mean and variance are its inputs"),
    ("fusedbatchnorm", "BatchNormInference", "gamma, beta, mean and variance are its inputs"),
    ("layernorm", "MVN", "then a Multiply and an Add"),
    ("layernormalization", "MVN", "then a Multiply and an Add"),
    ("nativelayernorm", "MVN", "then a Multiply and an Add"),
    ("instancenorm", "MVN", "then a Multiply and an Add"),
    ("instancenormalization", "MVN", "then a Multiply and an Add"),
    ("meanvariancenormalization", "MVN", ""),
    ("groupnorm", "GroupNormalization", ""),
    ("rmsnorm", "", "compose it of Power, ReduceMean, Add, Sqrt, Divide and Multiply"),
    ("rmsnormalization", "", "compose it of Power, ReduceMean, Add, Sqrt, Divide and Multiply"),
    ("simplifiedlayernormalization", "", "compose it of Power, ReduceMean, Add, Sqrt, Divide and Multiply"),
    ("lpnormalization", "NormalizeL2", "for the L2 norm"),
    ("normalize", "NormalizeL2", ""),
    ("localresponsenorm", "LRN", ""),
    ("upsample", "Interpolate", ""),
    ("resize", "Interpolate", ""),
    ("upsamplenearest", "Interpolate", "with mode=\"nearest\""),
    ("upsamplebilinear", "Interpolate", "with mode=\"linear\""),
    ("resizebilinear", "Interpolate", "with mode=\"linear\""),
    ("resizenearestneighbor", "Interpolate", "with mode=\"nearest\""),
    ("resample", "Interpolate", ""),
    ("pixelshuffle", "DepthToSpace", "with mode=\"depth_first\""),
    ("pixelunshuffle", "SpaceToDepth", "with mode=\"depth_first\""),
    ("zeropad", "Pad", "with pad_mode=\"constant\""),
    ("reflectionpad", "Pad", "with pad_mode=\"reflect\""),
    ("mirrorpad", "Pad", "with pad_mode=\"reflect\""),
    ("input", "Parameter", ""),
    ("placeholder", "Parameter", ""),
    ("inputlayer", "Parameter", ""),
    ("output", "Result", ""),
    ("initializer", "Const", ""),
    ("return", "Result", ""),
    ("identityn", "Identity", ""),
    ("noop", "Identity", ""),
    (
        "dropout",
        "",
        "remove the layer, and start the edges of its consumers where its input comes from: dropout does nothing in inference",
    ),
    ("stopgradient", "", "remove the layer, and start the edges of its consumers where its input comes from"),
    ("detach", "", "remove the layer, and start the edges of its consumers where its input comes from"),
    ("contiguous", "", "remove the layer, and start the edges of its consumers where its input comes from"),
    ("clone", "", "remove the layer, and start the edges of its consumers where its input comes from"),
    ("attention", "ScaledDotProductAttention", ""),
    ("sdpa", "ScaledDotProductAttention", ""),
    ("multiheadattention", "ScaledDotProductAttention", "with MatMuls around it"),
    ("flashattention", "ScaledDotProductAttention", ""),
    ("lstm", "LSTMSequence", ""),
    ("gru", "GRUSequence", ""),
    ("rnn", "RNNSequence", ""),
    ("scan", "TensorIterator", ""),
    ("while", "Loop", ""),
    ("whileloop", "Loop", ""),
    ("cond", "If", ""),
    ("trilu", "Select", "of a comparison of two Ranges"),
    ("tril", "Select", "of a comparison of two Ranges"),
    ("triu", "Select", "of a comparison of two Ranges"),
    ("dequantizelinear", "Convert", "then a Subtract of the zero point and a Multiply with the scale"),
    ("quantizelinear", "FakeQuantize", ""),
    ("fakequant", "FakeQuantize", ""),
    ("fakequantwithminmaxvars", "FakeQuantize", ""),
    ("nms", "NonMaxSuppression", ""),
    ("roipool", "ROIPooling", ""),
    ("grid", "GridSample", ""),
    ("random", "RandomUniform", ""),
    ("rand", "RandomUniform", ""),
    ("rpn", "Proposal", ""),
];

/// Values of attributes that other frameworks use, such as `same_lower`, and the OpenVINO values that they can mean.
const WORDS: &[(&str, &[&str])] = &[
    ("replicate", &["edge"]),
    ("reflection", &["reflect"]),
    ("mirror", &["reflect"]),
    ("zeros", &["constant"]),
    ("zero", &["zeros", "constant"]),
    ("add", &["sum"]),
    ("mul", &["prod"]),
    ("multiply", &["prod"]),
    ("amax", &["max"]),
    ("amin", &["min"]),
    ("mean", &["avg"]),
    ("avg", &["mean"]),
    ("average", &["avg", "mean"]),
    ("xyxy", &["corner"]),
    ("tlbr", &["corner"]),
    ("xywh", &["center"]),
    ("cxcywh", &["center"]),
    ("bicubic", &["cubic"]),
    ("trilinear", &["linear"]),
    ("nn", &["nearest"]),
    ("fwd", &["forward"]),
    ("bwd", &["reverse"]),
    ("backward", &["reverse"]),
    ("bi", &["bidirectional"]),
    ("both", &["bidirectional"]),
    ("exact", &["erf"]),
    ("notset", &["explicit"]),
    ("custom", &["explicit"]),
    ("same", &["same_upper"]),
    ("dcr", &["blocks_first"]),
    ("crd", &["depth_first"]),
    ("true", &["numpy"]),
    ("false", &["none"]),
];

/// Attributes: another framework's name, in lower case without `_`, and the OpenVINO attributes that it can mean.
const ATTRIBUTES: &[(&str, &[&str])] = &[
    ("kernelsize", &["kernel"]),
    ("kernelshape", &["kernel"]),
    ("ksize", &["kernel"]),
    ("poolsize", &["kernel"]),
    ("stride", &["strides"]),
    ("dilation", &["dilations"]),
    ("padding", &["pads_begin", "auto_pad"]),
    ("pads", &["pads_begin"]),
    ("pad", &["pads_begin"]),
    ("dim", &["axis", "axes"]),
    ("dims", &["axes", "shape"]),
    ("axes", &["axis"]),
    ("axis", &["axes"]),
    ("dtype", &["element_type", "destination_type", "output_type"]),
    ("dsttype", &["destination_type"]),
    ("outtype", &["destination_type", "output_type"]),
    ("targettype", &["destination_type"]),
    ("type", &["element_type", "destination_type", "output_type"]),
    ("precision", &["element_type", "destination_type"]),
    ("to", &["destination_type"]),
    ("epsilon", &["eps"]),
    ("keepdim", &["keep_dims"]),
    ("transa", &["transpose_a"]),
    ("transb", &["transpose_b"]),
    ("approximate", &["approximation_mode"]),
    ("numgroups", &["num_groups"]),
    ("groups", &["group", "num_groups"]),
    ("minval", &["min"]),
    ("maxval", &["max"]),
    ("broadcast", &["auto_broadcast", "mode"]),
    ("ceilmode", &["rounding_type"]),
    ("aligncorners", &["coordinate_transformation_mode"]),
    ("hidden", &["hidden_size"]),
    ("numhidden", &["hidden_size"]),
    ("bidirectional", &["direction"]),
    ("negativeslope", &["alpha"]),
    ("paddingmode", &["pad_mode", "padding_mode"]),
    ("largest", &["mode"]),
    ("sorted", &["sort"]),
    ("reduce", &["reduction"]),
    ("numsegments", &["num_splits"]),
    ("iscausal", &["causal"]),
    ("upscalefactor", &["block_size"]),
    ("alignmode", &["coordinate_transformation_mode"]),
    ("interpolationmode", &["mode"]),
    ("numclasses", &["num_classes"]),
    ("blocksize", &["block_size"]),
    ("size", &["kernel"]),
];

/// The characters of a name in lower case, without punctuation.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !['_', '-', ' '].contains(letter)).map(|letter| letter.to_ascii_lowercase())
}

/// The attribute that an unknown attribute name most likely means. The name is misspelled, or comes from
/// another framework.
pub(crate) fn attribute<'n>(text: &str, known: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let word: String = plain(text).collect();
    let meant = ATTRIBUTES.iter().find(|(name, _)| *name == word).map_or(&[][..], |(_, meant)| meant);
    let same = known.clone().find(|name| plain(name).eq(word.chars()));
    let foreign = || meant.iter().find_map(|meant| known.clone().find(|name| name == meant));
    same.or_else(foreign).or_else(|| nearest(text, known))
}

/// Returns the element type that a word names exactly, in the spelling of any framework: `f32`, `FP16`, `float16`,
/// `half`, `uint8`, `torch.int64`, `DT_FLOAT`.
///
/// ```
/// use typelift::promote::ElementType;
/// assert_eq!(typelift::host::named_element_type("float16"), Some(ElementType::F16));
/// assert_eq!(typelift::host::named_element_type("f23"), None);
/// ```
#[must_use]
pub fn named_element_type(text: &str) -> Option<ElementType> {
    let lower = text.trim().to_ascii_lowercase();
    let word = bare(&lower);
    let known = TYPES.iter().find(|(name, _)| *name == word).map(|&(_, ty)| ty);
    let by_width = || {
        let (letter, bits) = kind_and_width(word)?;
        ElementType::from_name(&format!("{letter}{bits}"))
    };
    let spelled = || ElementType::from_name(&lower).or_else(|| ElementType::from_port_name(&text.to_ascii_uppercase()));
    known.or_else(|| ElementType::from_framework_name(word)).or_else(by_width).or_else(spelled)
}

pub(crate) fn element_type(text: &str) -> Option<ElementType> {
    let lower = text.trim().to_ascii_lowercase();
    let word = bare(&lower);
    let exchanged_digits = || {
        let (letter, bits) = kind_and_width(word)?;
        let digits = |bits: &str| {
            let mut digits: Vec<_> = bits.bytes().collect();
            digits.sort_unstable();
            digits
        };
        // An example is `f23` for `f32`.
        let width = ["8", "16", "32", "64"].into_iter().find(|width| digits(width) == digits(bits))?;
        ElementType::from_name(&format!("{letter}{width}"))
    };
    named_element_type(text).or_else(exchanged_digits).or_else(|| {
        // A name of two or three characters may differ in one of them; candidates with the same first letter are
        // preferred.
        let near = ElementType::all().filter(|ty| *ty != ElementType::Dynamic);
        let alike =
            |ty: &ElementType| distance(ty.name(), word) <= 1 && ty.name().starts_with(word.get(..1).unwrap_or("?"));
        near.clone().find(alike).or_else(|| near.into_iter().find(|ty| nearest(word, [ty.name()]).is_some()))
    })
}

/// Removes the prefix or suffix that frameworks add to a type's name: `torch.int64`, `DT_FLOAT`, `tensor(float)`,
/// `int32_t`.
fn bare(lower: &str) -> &str {
    let word = lower.rsplit(['.', ':', '(']).next().unwrap_or_default().trim_end_matches(')');
    let word = word.strip_prefix("dt_").unwrap_or(word);
    word.strip_suffix("_t").unwrap_or(word)
}

/// Splits a word such as `uint8` into OpenVINO's letter for the kind, `u`, and the width, `8`.
fn kind_and_width(word: &str) -> Option<(&'static str, &str)> {
    let (kind, bits) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
    let letter = match kind {
        "float" | "fp" | "f" => "f",
        "int" | "i" | "s" | "sint" => "i",
        "uint" | "u" => "u",
        "bfloat" | "bf" => "bf",
        _ => return None,
    };
    Some((letter, bits))
}

/// The operation that an unknown operation name means. The name comes from another framework, or is a
/// misspelling of one of `names`. The operation is empty if OpenVINO has none. The second text describes the
/// difference.
pub(crate) fn operation(text: &str, names: &[&'static str]) -> Option<(&'static str, &'static str)> {
    // Examples are `torch.nn.Conv2d`, `aten::add_`.
    let word = text.rsplit([':', '.', '/']).next().unwrap_or_default().trim_matches('_');
    let foreign = |word: &str| OPERATIONS.iter().find(|(name, ..)| *name == word).map(|row| (row.1, row.2));
    let same = |word: &str| names.iter().find(|name| plain(name).eq(word.chars())).map(|name| (*name, ""));
    let find = |word: &str| foreign(word).or_else(|| same(word));
    let word: String = plain(word).collect();
    // Examples are `DepthwiseConv2dNative`, `dropout_2`, `FusedBatchNormV3`.
    let bare = ["1d", "2d", "3d"].iter().fold(word.clone(), |word, dims| word.replace(dims, ""));
    let bare = bare.trim_end_matches(|c: char| c.is_ascii_digit());
    let found = find(&word).or_else(|| find(bare)).or_else(|| find(bare.strip_suffix('v')?));
    found.or_else(|| nearest(&word, names.iter().copied()).map(|name| (name, "")))
}

/// The word of a list that a text most likely means. The text may be misspelled, abbreviated or extended.
pub(crate) fn word<'n>(text: &str, words: &[&'n str]) -> Option<&'n str> {
    let lower = text.to_ascii_lowercase();
    let contained = |word: &&&str| lower.contains(**word);
    let containing = |word: &&&str| lower.len() > 2 && word.contains(&lower);
    let first_letters = |word: &&&str| {
        // An example is `avg` for `average`: its letters occur in order, the first one at the start.
        let mut letters = lower.chars();
        lower.chars().next() == word.chars().next() && word.chars().all(|c| letters.any(|letter| letter == c))
    };
    let foreign = WORDS.iter().find(|(name, _)| *name == lower).map_or(&[][..], |(_, meant)| meant);
    let words = words.iter();
    let meant = foreign.iter().find_map(|meant| words.clone().find(|word| *word == meant));
    meant
        .copied()
        .or_else(|| nearest(&lower, words.clone().copied()))
        .or_else(|| words.clone().filter(contained).max_by_key(|word| word.len()).copied())
        .or_else(|| words.clone().find(containing).copied())
        .or_else(|| words.clone().find(first_letters).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_programs_find_their_own() {
        let types =
            ["float32", "fp32", "FP16", "half", "int64", "long", "torch.bool", "double", "f23", "float8_e4m3fn"];
        let meant = types.map(|text| element_type(text).map_or("", ElementType::name));
        assert_eq!(meant, ["f32", "f32", "f16", "f16", "i64", "i64", "boolean", "f64", "f32", "f8e4m3"]);
        assert_eq!(element_type("xyz"), None);
        assert_eq!(word("maximum", &["max", "min"]), Some("max"));
        assert_eq!(word("average", &["avg", "max"]), Some("avg"));
        assert_eq!(word("centre", &["corner", "center"]), Some("center"));
        assert_eq!(word("same", &["explicit", "same_upper", "same_lower", "valid"]), Some("same_upper"));
        assert_eq!(word("bilinear", &["nearest", "linear", "linear_onnx", "cubic"]), Some("linear"));
        assert_eq!(word("foo", &["explicit", "numpy"]), None);
    }

    #[test]
    fn operations_of_other_programs_find_their_own() {
        for (name, operation, difference) in OPERATIONS {
            let is_known = !crate::ops::revisions(operation).is_empty();
            assert!(is_known || operation.is_empty() && !difference.is_empty(), "{name} -> {operation}");
        }
        let names: Vec<_> = crate::ops::all().map(crate::ops::Operation::name).collect();
        let meant = |text| operation(text, &names).map(|(name, _)| name);
        for (text, name) in [
            ("torch.nn.Conv2d", Some("Convolution")),
            ("aten::_convolution", Some("Convolution")),
            ("aten::add_", Some("Add")),
            ("tf.nn.relu", Some("Relu")),
            ("FusedBatchNormV3", Some("BatchNormInference")),
            ("AddV2", Some("Add")),
            ("reduce_mean", Some("ReduceMean")),
            ("scaled_dot_product_attention", Some("ScaledDotProductAttention")),
            ("log_softmax", Some("LogSoftmax")),
            ("DepthwiseConv2dNative", Some("GroupConvolution")),
            ("MaxPool3d", Some("MaxPool")),
            ("Conv3D", Some("Convolution")),
            ("Greater_Than", Some("Greater")),
            ("Dropout", Some("")),
            ("RegexSplit", None),
            ("CustomBlur", None),
        ] {
            assert_eq!(meant(text), name, "{text}");
        }
    }
}
