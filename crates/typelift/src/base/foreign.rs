//! Names that other frameworks use for element types, operations and attributes, with OpenVINO's name for each.

use typelift_promote::ElementType;

use super::names::{distance, nearest};

/// Element types, and the names that other frameworks have for them, in lower case.
const TYPES: &[(ElementType, &[&str])] = &[
    (ElementType::Boolean, &["bool"]),
    (ElementType::U8, &["byte", "quint8"]),
    (ElementType::I8, &["char", "qint8"]),
    (ElementType::I16, &["short"]),
    (ElementType::I32, &["int"]),
    (ElementType::I64, &["long"]),
    (ElementType::F16, &["half"]),
    (ElementType::F32, &["float"]),
    (ElementType::F64, &["double"]),
    (ElementType::Bf16, &["bfloat16", "brain"]),
    (ElementType::F8E4M3, &["float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "fp8_e4m3", "e4m3"]),
    (ElementType::F8E5M2, &["float8_e5m2", "float8_e5m2fnuz", "fp8_e5m2", "e5m2"]),
    (ElementType::String, &["str", "object"]),
    (ElementType::Dynamic, &["unspecified", "undefined"]),
];

/// Operations: OpenVINO's operation, a note on the difference, and the names of other frameworks, in lower case without
/// `_`, `2d` or a number at the end. If the operation is empty, the note says what to do instead.
const OPERATIONS: &[(&str, &str, &[&str])] = &[
    ("Abs", "", &["absval"]),
    ("Add", "with two inputs each", &["addn"]),
    ("Add", "", &["addv2", "biasadd", "plus"]),
    ("MatMul", "and an Add", &["addmm", "addbmm"]),
    ("Add", "or another element-wise operation", &["eltwise", "elementwise"]),
    ("Add", "or ReduceSum, if it sums over axes", &["sum"]),
    ("Subtract", "", &["sub", "minus"]),
    ("Multiply", "", &["mul", "scale"]),
    ("Multiply", "then an Add", &["scaleshift"]),
    ("Divide", "", &["div", "truediv", "realdiv"]),
    ("Floor", "of a Divide", &["floordiv", "floordivide"]),
    ("FloorMod", "", &["remainder"]),
    ("Mod", "", &["fmod"]),
    ("Power", "", &["pow", "exponent"]),
    ("Negative", "", &["neg"]),
    ("Maximum", "or ReduceMax, if it is over axes", &["max"]),
    ("Minimum", "or ReduceMin, if it is over axes", &["min"]),
    ("ReduceMax", "the axes are its second input", &["amax", "globalmaxpool"]),
    ("ReduceMin", "the axes are its second input", &["amin"]),
    ("Power", "with the exponent -1 as second input", &["reciprocal"]),
    ("Power", "with the exponent 2 as second input", &["square"]),
    ("Power", "with the exponent -0.5 as second input", &["rsqrt"]),
    ("Sqrt", "", &["squareroot"]),
    ("Divide", "with its inputs exchanged", &["rdiv"]),
    ("Subtract", "with its inputs exchanged", &["rsub"]),
    ("Ceiling", "", &["ceil"]),
    ("Sign", "", &["signum"]),
    ("Erf", "subtracted from 1", &["erfc"]),
    ("Exp", "then a Subtract of 1", &["expm1"]),
    ("Log", "of an Add of 1", &["log1p"]),
    ("Log", "divided by the logarithm of 2", &["log2"]),
    ("Equal", "", &["eq"]),
    ("NotEqual", "", &["ne", "neq"]),
    ("Greater", "", &["gt", "greaterthan"]),
    ("Less", "", &["lt", "lessthan"]),
    ("GreaterEqual", "", &["ge", "gte", "greaterorequal"]),
    ("LessEqual", "", &["le", "lte", "lessorequal"]),
    ("LogicalNot", "", &["not"]),
    ("LogicalAnd", "", &["and"]),
    ("LogicalOr", "", &["or"]),
    ("LogicalXor", "", &["xor"]),
    ("ReduceLogicalAnd", "", &["all", "reduceall"]),
    ("ReduceLogicalOr", "", &["any", "reduceany"]),
    ("Select", "", &["where"]),
    ("Select", "the mask is its first input, the value its second", &["maskedfill"]),
    ("Convolution", "its attributes are strides, pads_begin, pads_end, dilations and auto_pad", &["conv"]),
    (
        "ConvolutionBackpropData",
        "",
        &["deconv", "deconvolution", "convtranspose", "transposedconvolution", "convbackpropinput"],
    ),
    (
        "GroupConvolution",
        "its filters have the groups as their first dim",
        &["depthwiseconv", "depthwiseconvnative", "depthwiseconvolution", "groupconv"],
    ),
    (
        "MatMul",
        "transA and transB are transpose_a and transpose_b; alpha, beta and C become Multiply and Add",
        &["gemm"],
    ),
    (
        "MatMul",
        "the weights are its second input; transpose_b=\"true\" if they are [output, input]",
        &["fullyconnected", "innerproduct"],
    ),
    ("MatMul", "with transpose_b=\"true\"; the bias becomes an Add", &["linear"]),
    ("MatMul", "the bias becomes an Add", &["dense"]),
    ("MatMul", "", &["bmm", "mm", "matrixmultiply", "batchmatmul", "dot"]),
    ("Convert", "`to` becomes destination_type", &["cast"]),
    ("Convert", "with the attribute destination_type", &["to", "type"]),
    ("Convert", "with destination_type=\"f32\"", &["float"]),
    ("Convert", "with destination_type=\"f16\"", &["half"]),
    ("Convert", "with destination_type=\"i64\"", &["long"]),
    ("ConvertLike", "", &["castlike"]),
    ("Transpose", "the order is its second input", &["permute", "swapaxes"]),
    ("Reshape", "the new shape is its second input", &["view", "flatten"]),
    ("Unsqueeze", "", &["expanddims"]),
    ("Concat", "", &["concatenate", "cat"]),
    ("Concat", "after an Unsqueeze of each input", &["stack", "pack"]),
    ("Split", "then a Squeeze of each output", &["unpack", "unstack", "unbind"]),
    ("Split", "", &["chunk"]),
    ("Slice", "", &["narrow", "crop", "slicing"]),
    ("StridedSlice", "", &["strideslice"]),
    ("Broadcast", "", &["expand", "broadcastto", "expandas"]),
    ("Tile", "", &["repeat"]),
    ("ShapeOf", "then a ReduceProd", &["size"]),
    ("ShapeOf", "", &["shape"]),
    ("Broadcast", "of the value to the shape", &["constantofshape", "fill", "full"]),
    ("Broadcast", "of 0 to the shape", &["zeros"]),
    ("Broadcast", "of 1 to the shape", &["ones"]),
    ("Broadcast", "of 0 to the ShapeOf the tensor", &["zeroslike"]),
    ("Broadcast", "of 1 to the ShapeOf the tensor", &["oneslike"]),
    ("Range", "", &["arange"]),
    (
        "Gather",
        "the table is its first input, the ids its second, the axis its third",
        &["embedding", "embeddinglookup"],
    ),
    ("Gather", "", &["lookup", "indexselect", "take"]),
    ("ScatterElementsUpdate", "", &["scatter", "scatterelements"]),
    ("ScatterNDUpdate", "", &["scatternd", "tensorscatterupdate"]),
    ("ScatterElementsUpdate", "with reduction=\"sum\"", &["scatteradd"]),
    ("OneHot", "", &["onehotencoding"]),
    ("ReduceMean", "the axes are its second input", &["globalaveragepool", "mean"]),
    ("AvgPool", "the window is `kernel`", &["averagepool", "averagepooling", "avgpooling"]),
    ("MaxPool", "or AvgPool; the window is `kernel`", &["pooling"]),
    ("MaxPool", "the window is `kernel`", &["maxpooling"]),
    ("AdaptiveAvgPool", "", &["adaptiveaveragepool"]),
    ("ReduceProd", "the axes are its second input", &["prod"]),
    ("ReduceL2", "the axes are its second input", &["norm"]),
    ("Log", "of a ReduceSum of an Exp", &["logsumexp", "reducelogsumexp"]),
    ("TopK", "with mode=\"max\" and k=1", &["argmax"]),
    ("TopK", "with mode=\"min\" and k=1", &["argmin"]),
    ("TopK", "of all elements, with sort=\"value\"", &["sort", "argsort"]),
    ("CumSum", "", &["cumulativesum"]),
    ("PRelu", "the slope is its second input", &["leakyrelu"]),
    ("Select", "of a Greater", &["thresholdedrelu"]),
    ("Clamp", "with min=\"0\" max=\"6\"", &["relu6"]),
    ("Clamp", "with min and max", &["hardtanh"]),
    ("Clamp", "with min and max as attributes", &["clip"]),
    ("Swish", "", &["silu"]),
    ("Swish", "and a Multiply", &["swiglu"]),
    ("HSwish", "", &["hardswish"]),
    ("Elu", "with alpha", &["celu"]),
    ("Sigmoid", "", &["logistic"]),
    ("Gelu", "", &["geluerf"]),
    ("Gelu", "with approximation_mode=\"tanh\"", &["fastgelu"]),
    ("Swish", "with the factor 1.702 as second input", &["quickgelu"]),
    (
        "BatchNormInference",
        "gamma, beta, mean and variance are its inputs",
        &["batchnormalization", "batchnorm", "fusedbatchnorm"],
    ),
    (
        "MVN",
        "then a Multiply and an Add",
        &["layernorm", "layernormalization", "nativelayernorm", "instancenorm", "instancenormalization"],
    ),
    ("MVN", "", &["meanvariancenormalization"]),
    ("GroupNormalization", "", &["groupnorm"]),
    (
        "",
        "compose it of Power, ReduceMean, Add, Sqrt, Divide and Multiply",
        &["rmsnorm", "rmsnormalization", "simplifiedlayernormalization"],
    ),
    ("NormalizeL2", "for the L2 norm", &["lpnormalization"]),
    ("NormalizeL2", "", &["normalize"]),
    ("LRN", "", &["localresponsenorm"]),
    ("Interpolate", "", &["upsample", "resize", "resample"]),
    ("Interpolate", "with mode=\"nearest\"", &["upsamplenearest", "resizenearestneighbor"]),
    ("Interpolate", "with mode=\"linear\"", &["upsamplebilinear", "resizebilinear"]),
    ("DepthToSpace", "with mode=\"depth_first\"", &["pixelshuffle"]),
    ("SpaceToDepth", "with mode=\"depth_first\"", &["pixelunshuffle"]),
    ("Pad", "with pad_mode=\"constant\"", &["zeropad"]),
    ("Pad", "with pad_mode=\"reflect\"", &["reflectionpad", "mirrorpad"]),
    ("Parameter", "", &["input", "placeholder", "inputlayer"]),
    ("Result", "", &["output", "return"]),
    ("Const", "", &["initializer"]),
    ("Identity", "", &["identityn", "noop"]),
    (
        "",
        "remove the layer, and start the edges of its consumers where its input comes from: dropout does nothing in inference",
        &["dropout"],
    ),
    (
        "",
        "remove the layer, and start the edges of its consumers where its input comes from",
        &["stopgradient", "detach", "contiguous", "clone"],
    ),
    ("ScaledDotProductAttention", "", &["attention", "sdpa", "flashattention"]),
    ("ScaledDotProductAttention", "with MatMuls around it", &["multiheadattention"]),
    ("LSTMSequence", "", &["lstm"]),
    ("GRUSequence", "", &["gru"]),
    ("RNNSequence", "", &["rnn"]),
    ("TensorIterator", "", &["scan"]),
    ("Loop", "", &["while", "whileloop"]),
    ("If", "", &["cond"]),
    ("Select", "of a comparison of two Ranges", &["trilu", "tril", "triu"]),
    ("Convert", "then a Subtract of the zero point and a Multiply with the scale", &["dequantizelinear"]),
    ("FakeQuantize", "", &["quantizelinear", "fakequant", "fakequantwithminmaxvars"]),
    ("NonMaxSuppression", "", &["nms"]),
    ("ROIPooling", "", &["roipool"]),
    ("GridSample", "", &["grid"]),
    ("RandomUniform", "", &["random", "rand"]),
    ("Proposal", "", &["rpn"]),
];

/// Values of attributes that other frameworks use, such as `same_lower`, and the OpenVINO values that each of them can mean.
const WORDS: &[(&[&str], &[&str])] = &[
    (&["replicate"], &["edge"]),
    (&["reflection", "mirror"], &["reflect"]),
    (&["zeros"], &["constant"]),
    (&["zero"], &["zeros", "constant"]),
    (&["add"], &["sum"]),
    (&["mul", "multiply"], &["prod"]),
    (&["amax"], &["max"]),
    (&["amin"], &["min"]),
    (&["mean"], &["avg"]),
    (&["avg"], &["mean"]),
    (&["average"], &["avg", "mean"]),
    (&["xyxy", "tlbr"], &["corner"]),
    (&["xywh", "cxcywh"], &["center"]),
    (&["bicubic"], &["cubic"]),
    (&["trilinear"], &["linear"]),
    (&["nn"], &["nearest"]),
    (&["fwd"], &["forward"]),
    (&["bwd", "backward"], &["reverse"]),
    (&["bi", "both"], &["bidirectional"]),
    (&["exact"], &["erf"]),
    (&["notset", "custom"], &["explicit"]),
    (&["same"], &["same_upper"]),
    (&["dcr"], &["blocks_first"]),
    (&["crd"], &["depth_first"]),
    (&["true"], &["numpy"]),
    (&["false"], &["none"]),
];

/// Attributes: names of other frameworks, in lower case without `_`, and the OpenVINO attributes that each of them can mean.
const ATTRIBUTES: &[(&[&str], &[&str])] = &[
    (&["kernelsize", "kernelshape", "ksize", "poolsize", "size"], &["kernel"]),
    (&["stride"], &["strides"]),
    (&["dilation"], &["dilations"]),
    (&["padding"], &["pads_begin", "auto_pad"]),
    (&["pads", "pad"], &["pads_begin"]),
    (&["dim"], &["axis", "axes"]),
    (&["dims"], &["axes", "shape"]),
    (&["axes"], &["axis"]),
    (&["axis"], &["axes"]),
    (&["dtype", "type"], &["element_type", "destination_type", "output_type"]),
    (&["dsttype", "targettype", "to"], &["destination_type"]),
    (&["outtype"], &["destination_type", "output_type"]),
    (&["precision"], &["element_type", "destination_type"]),
    (&["epsilon"], &["eps"]),
    (&["keepdim"], &["keep_dims"]),
    (&["transa"], &["transpose_a"]),
    (&["transb"], &["transpose_b"]),
    (&["approximate"], &["approximation_mode"]),
    (&["numgroups"], &["num_groups"]),
    (&["groups"], &["group", "num_groups"]),
    (&["minval"], &["min"]),
    (&["maxval"], &["max"]),
    (&["broadcast"], &["auto_broadcast", "mode"]),
    (&["ceilmode"], &["rounding_type"]),
    (&["aligncorners", "alignmode"], &["coordinate_transformation_mode"]),
    (&["hidden", "numhidden"], &["hidden_size"]),
    (&["bidirectional"], &["direction"]),
    (&["negativeslope"], &["alpha"]),
    (&["paddingmode"], &["pad_mode", "padding_mode"]),
    (&["largest", "interpolationmode"], &["mode"]),
    (&["sorted"], &["sort"]),
    (&["reduce"], &["reduction"]),
    (&["numsegments"], &["num_splits"]),
    (&["iscausal"], &["causal"]),
    (&["upscalefactor", "blocksize"], &["block_size"]),
    (&["numclasses"], &["num_classes"]),
];

/// The characters of a name in lower case, without punctuation.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !['_', '-', ' '].contains(letter)).map(|letter| letter.to_ascii_lowercase())
}

/// The attribute that an unknown attribute name most likely means. The name is misspelled, or comes from
/// another framework.
pub(crate) fn attribute<'n>(text: &str, known: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let word: String = plain(text).collect();
    let meant = ATTRIBUTES.iter().find(|(names, _)| names.contains(&&*word)).map_or(&[][..], |(_, meant)| meant);
    let same = known.clone().find(|name| plain(name).eq(word.chars()));
    let foreign = same.or_else(|| meant.iter().find_map(|meant| known.clone().find(|name| name == meant)));
    foreign.or_else(|| nearest(text, known))
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
    let known = TYPES.iter().find(|(_, names)| names.contains(&word)).map(|&(ty, _)| ty);
    known
        .or_else(|| ElementType::from_framework_name(word))
        .or_else(|| kind_and_width(word).and_then(|(letter, bits)| ElementType::from_name(&format!("{letter}{bits}"))))
        .or_else(|| ElementType::from_name(&lower))
        .or_else(|| ElementType::from_port_name(&text.to_ascii_uppercase()))
}

pub(crate) fn element_type(text: &str) -> Option<ElementType> {
    let lower = text.trim().to_ascii_lowercase();
    let word = bare(&lower);
    let exchanged_digits = kind_and_width(word).and_then(|(letter, bits)| {
        // An example is `f23` for `f32`.
        let reversed: String = bits.chars().rev().collect();
        let width = ["8", "16", "32", "64"].into_iter().find(|width| *width == bits || *width == reversed)?;
        ElementType::from_name(&format!("{letter}{width}"))
    });
    named_element_type(text).or(exchanged_digits).or_else(|| {
        // A name of two or three characters may differ in one of them; candidates with the same first letter are
        // preferred.
        let mut near = ElementType::all().filter(|ty| *ty != ElementType::Dynamic);
        let first = word.get(..1).unwrap_or("?");
        let alike = near.clone().find(|ty| distance(ty.name(), word) <= 1 && ty.name().starts_with(first));
        let long =
            |names: &[&'static str]| nearest(word, names.iter().copied().filter(|name| name.len() > 4)).is_some();
        let other = || TYPES.iter().find(|(_, names)| long(names)).map(|&(ty, _)| ty);
        alike.or_else(|| near.find(|ty| nearest(word, [ty.name()]).is_some())).or_else(other)
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
    let word: String = plain(word).collect();
    // Examples are `DepthwiseConv2dNative`, `dropout_2`, `FusedBatchNormV3`.
    let bare = ["1d", "2d", "3d"].iter().fold(word.clone(), |word, dims| word.replace(dims, ""));
    let bare = bare.trim_end_matches(|c: char| c.is_ascii_digit());
    let found = [Some(&*word), Some(bare), bare.strip_suffix('v')].into_iter().flatten().find_map(|word| {
        let foreign = OPERATIONS.iter().find(|(.., names)| names.contains(&word)).map(|row| (row.0, row.1));
        foreign.or_else(|| names.iter().find(|name| plain(name).eq(word.chars())).map(|name| (*name, "")))
    });
    found.or_else(|| nearest(&word, names.iter().copied()).map(|name| (name, "")))
}

/// The operation that a name of another framework stands for without a difference. The name is in lower case and
/// without punctuation.
pub(crate) fn same_operation(word: &str) -> Option<&'static str> {
    OPERATIONS.iter().find(|(_, difference, names)| difference.is_empty() && names.contains(&word)).map(|row| row.0)
}

/// The word of a list that a text most likely means. The text may be misspelled, abbreviated or extended.
pub(crate) fn word<'n>(text: &str, words: &[&'n str]) -> Option<&'n str> {
    let lower = text.to_ascii_lowercase();
    let foreign = WORDS.iter().find(|(names, _)| names.contains(&&*lower)).map_or(&[][..], |(_, meant)| meant);
    let mut words = words.iter().copied();
    let meant = foreign.iter().find_map(|meant| words.clone().find(|word| word == meant));
    meant
        .or_else(|| nearest(&lower, words.clone()))
        .or_else(|| words.clone().filter(|word| lower.contains(word)).max_by_key(|word| word.len()))
        .or_else(|| words.clone().find(|word| lower.len() > 2 && word.contains(&lower)))
        .or_else(|| {
            // An example is `avg` for `average`: its letters occur in order, the first one at the start.
            words.find(|word| {
                let mut letters = lower.chars();
                lower.chars().next() == word.chars().next() && word.chars().all(|c| letters.any(|letter| letter == c))
            })
        })
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
        for (operation, difference, names) in OPERATIONS {
            let is_known = !crate::ops::revisions(operation).is_empty();
            assert!(is_known || operation.is_empty() && !difference.is_empty(), "{names:?} -> {operation}");
        }
        let names: Vec<_> = crate::ops::all().map(|row| row.name).collect();
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
