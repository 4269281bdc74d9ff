//! What a misspelt or foreign word most likely means.

use typelift_promote::ElementType;

/// What other programs call element types, in lower case.
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
    ("unspecified", ElementType::Dynamic),
    ("undefined", ElementType::Dynamic),
];

/// What other programs call operations, in lower case; what to write; and what else differs.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("div", "Divide", ""),
    ("sub", "Subtract", ""),
    ("mul", "Multiply", ""),
    ("sum", "Add", "or ReduceSum, if it sums over axes"),
    ("pow", "Power", ""),
    ("max", "Maximum", ""),
    ("min", "Minimum", ""),
    ("neg", "Negative", ""),
    ("eltwise", "Add", "or another element-wise operation"),
    ("conv", "Convolution", "its attributes are strides, pads_begin, pads_end, dilations and auto_pad"),
    ("conv1d", "Convolution", "its attributes are strides, pads_begin, pads_end, dilations and auto_pad"),
    ("conv2d", "Convolution", "its attributes are strides, pads_begin, pads_end, dilations and auto_pad"),
    ("conv3d", "Convolution", "its attributes are strides, pads_begin, pads_end, dilations and auto_pad"),
    ("depthwiseconv2d", "GroupConvolution", "its filters have the groups as their first dim"),
    ("convtranspose", "ConvolutionBackpropData", ""),
    ("deconvolution", "ConvolutionBackpropData", ""),
    ("gemm", "MatMul", "transA and transB are transpose_a and transpose_b; alpha, beta and C become Multiply and Add"),
    ("fullyconnected", "MatMul", "the weights are its second input; transpose_b=\"true\" if they are [output, input]"),
    ("innerproduct", "MatMul", "the weights are its second input; transpose_b=\"true\" if they are [output, input]"),
    ("linear", "MatMul", "with transpose_b=\"true\"; the bias becomes an Add"),
    ("dense", "MatMul", "the bias becomes an Add"),
    ("bmm", "MatMul", ""),
    ("addmm", "MatMul", "and an Add"),
    ("cast", "Convert", "`to` becomes destination_type"),
    ("to", "Convert", "with the attribute destination_type"),
    ("permute", "Transpose", "the order is its second input"),
    ("leakyrelu", "PRelu", "the slope is its second input"),
    ("relu6", "Clamp", "with min=\"0\" max=\"6\""),
    ("hardtanh", "Clamp", "with min and max"),
    ("clip", "Clamp", "with min and max as attributes"),
    ("silu", "Swish", ""),
    ("swiglu", "Swish", "and a Multiply"),
    ("view", "Reshape", ""),
    ("flatten", "Reshape", "the new shape is its second input"),
    ("concatenate", "Concat", ""),
    ("cat", "Concat", ""),
    ("stack", "Concat", "after an Unsqueeze of each input"),
    ("where", "Select", ""),
    ("expand", "Broadcast", ""),
    ("embedding", "Gather", ""),
    ("globalaveragepool", "ReduceMean", "the axes are its second input"),
    ("averagepool", "AvgPool", ""),
    ("pooling", "MaxPool", "or AvgPool; the window is `kernel`"),
    ("maxpooling2d", "MaxPool", "the window is `kernel`"),
    ("averagepooling2d", "AvgPool", "the window is `kernel`"),
    ("batchmatmul", "MatMul", ""),
    ("biasadd", "Add", ""),
    ("rsqrt", "Power", "with the exponent -0.5 as second input"),
    ("reciprocal", "Power", "with the exponent -1 as second input"),
    ("square", "Power", "with the exponent 2 as second input"),
    ("mean", "ReduceMean", "the axes are its second input"),
    ("chunk", "Split", ""),
    ("slicing", "Slice", ""),
    ("scatternd", "ScatterNDUpdate", ""),
    ("instancenorm", "MVN", "then a Multiply and an Add"),
    ("instancenormalization", "MVN", "then a Multiply and an Add"),
    ("leaky_relu", "PRelu", "the slope is its second input"),
    ("hardswish", "HSwish", ""),
    ("pixelshuffle", "DepthToSpace", "with mode=\"depth_first\""),
    ("fakequant", "FakeQuantize", ""),
    ("identityn", "Identity", ""),
    ("lookup", "Gather", ""),
    ("avgpool2d", "AvgPool", ""),
    ("maxpool2d", "MaxPool", ""),
    ("batchnormalization", "BatchNormInference", ""),
    ("batchnorm", "BatchNormInference", ""),
    ("layernorm", "MVN", "then a Multiply and an Add"),
    ("layernormalization", "MVN", "then a Multiply and an Add"),
    ("groupnorm", "GroupNormalization", ""),
    ("upsample", "Interpolate", ""),
    ("resize", "Interpolate", ""),
    ("argmax", "TopK", "with mode=\"max\" and k=1"),
    ("input", "Parameter", ""),
    ("placeholder", "Parameter", ""),
    ("output", "Result", ""),
    ("initializer", "Const", ""),
    ("constantofshape", "Broadcast", ""),
    ("attention", "ScaledDotProductAttention", ""),
    ("sdpa", "ScaledDotProductAttention", ""),
    ("not", "LogicalNot", ""),
    ("and", "LogicalAnd", ""),
    ("or", "LogicalOr", ""),
    ("xor", "LogicalXor", ""),
    ("lstm", "LSTMSequence", ""),
    ("gru", "GRUSequence", ""),
    ("rnn", "RNNSequence", ""),
    ("dequantizelinear", "Convert", "then a Subtract of the zero point and a Multiply with the scale"),
    ("quantizelinear", "FakeQuantize", ""),
];

/// What other programs and other operations call attributes, in lower case without `_`, and what they can mean here.
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
    ("alignmode", &["coordinate_transformation_mode"]),
    ("interpolationmode", &["mode"]),
    ("numclasses", &["num_classes"]),
    ("blocksize", &["block_size"]),
    ("size", &["kernel"]),
];

/// The one of an operation's attributes that a name of none most likely means: misspelt, or as other programs call it.
pub(crate) fn attribute<'n>(text: &str, known: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    let word = plain(text);
    let meant = ATTRIBUTES.iter().find(|(name, _)| *name == word).map_or(&[][..], |(_, meant)| meant);
    let same = known.clone().find(|name| plain(name) == word);
    let foreign = || meant.iter().find_map(|meant| known.clone().find(|name| name == meant));
    same.or_else(foreign).or_else(|| nearest(text, known))
}

/// The element type that a word of another program or a misspelling means.
pub(crate) fn element_type(text: &str) -> Option<ElementType> {
    let lower = text.trim().to_ascii_lowercase();
    let word = lower.rsplit(['.', ':']).next().unwrap_or_default();
    let known = TYPES.iter().find(|(name, _)| *name == word).map(|&(_, ty)| ty);
    let by_width = || {
        let (kind, bits) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
        let letter = match kind {
            "float" | "fp" | "f" => "f",
            "int" | "i" | "s" | "sint" => "i",
            "uint" | "u" => "u",
            "bfloat" | "bf" => "bf",
            _ => return None,
        };
        let digits = |bits: &str| {
            let mut digits: Vec<_> = bits.bytes().collect();
            digits.sort_unstable();
            digits
        };
        let of_width = |width: &str| ElementType::from_name(&format!("{letter}{width}"));
        // `f23` for `f32`.
        of_width(bits).or_else(|| {
            ["8", "16", "32", "64"].into_iter().find(|width| digits(width) == digits(bits)).and_then(of_width)
        })
    };
    let spelled = || ElementType::from_name(&lower).or_else(|| ElementType::from_port_name(&text.to_ascii_uppercase()));
    known.or_else(|| ElementType::from_framework_name(word)).or_else(by_width).or_else(spelled).or_else(|| {
        // Of names of two or three letters one may differ, and the first one counts most.
        let near = ElementType::all().filter(|ty| *ty != ElementType::Dynamic);
        let alike =
            |ty: &ElementType| distance(ty.name(), word) <= 1 && ty.name().starts_with(word.get(..1).unwrap_or("?"));
        near.clone()
            .find(alike)
            .or_else(|| near.into_iter().find(|ty| nearest(word, [ty.name()].into_iter()).is_some()))
    })
}

/// What another program's name of an operation means here, and what else differs.
pub(crate) fn operation(text: &str) -> Option<(&'static str, &'static str)> {
    let lower = text.to_ascii_lowercase();
    let found = OPERATIONS.iter().find(|(name, ..)| *name == lower);
    found.map(|&(_, operation, difference)| (operation, difference))
}

/// The one of a few words that a text most likely means: misspelt, abbreviated or lengthened.
pub(crate) fn word<'n>(text: &str, words: &[&'n str]) -> Option<&'n str> {
    let lower = text.to_ascii_lowercase();
    let contained = |word: &&&str| lower.contains(**word);
    let containing = |word: &&&str| lower.len() > 2 && word.contains(&lower);
    let first_letters = |word: &&&str| {
        // `avg` for `average`: each letter comes in order, the first one at the start.
        let mut letters = lower.chars();
        lower.chars().next() == word.chars().next() && word.chars().all(|c| letters.any(|letter| letter == c))
    };
    let words = words.iter();
    nearest(&lower, words.clone().copied())
        .or_else(|| words.clone().filter(contained).max_by_key(|word| word.len()).copied())
        .or_else(|| words.clone().find(containing).copied())
        .or_else(|| words.clone().find(first_letters).copied())
}

/// The name that `text` is most likely a misspelling of: at most a third of its letters are others.
pub(crate) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = text.chars().count().min(60) / 3;
    let near = names.filter(|name| name.len().abs_diff(text.len()) <= limit);
    let near = near.map(|name| (distance(text, name), name)).min_by_key(|&(distance, _)| distance)?;
    (near.0 <= limit).then_some(near.1)
}

/// How many letters must be changed, added or removed to make one text the other, upper and lower case being the same.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        row[0] = left;
        for (cell, y) in row[1..].iter_mut().zip(b.chars()) {
            let changed = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_find_what_was_meant() {
        let nearest = |text| nearest(text, crate::ops::all().map(crate::ops::Operation::name));
        assert_eq!(nearest("Rellu"), Some("Relu"));
        assert_eq!(nearest("convolutoin"), Some("Convolution"));
        assert_eq!(nearest("BatchNormInferense"), Some("BatchNormInference"));
        assert_eq!(nearest("RegexSplit"), None);
        assert_eq!(nearest("ab"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

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
        for (name, operation, _) in OPERATIONS {
            assert!(!crate::ops::revisions(operation).is_empty(), "{name} -> {operation}");
        }
    }
}
