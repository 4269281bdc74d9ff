//! Names of other frameworks that have exactly one meaning in OpenVINO.
//!
//! The lists of [`foreign`](crate::base::foreign) contain the most likely meaning of a word. The lists here contain
//! only words with one meaning, so that a fix is safe: `Eltwise`, `Sum` and `int` are excluded.

/// Operations, in lower case without `_`.
pub(super) const OPERATIONS: &[(&str, &str)] = &[
    ("sub", "Subtract"),
    ("minus", "Subtract"),
    ("mul", "Multiply"),
    ("div", "Divide"),
    ("pow", "Power"),
    ("neg", "Negative"),
    ("ceil", "Ceiling"),
    ("signum", "Sign"),
    ("absval", "Abs"),
    ("neq", "NotEqual"),
    ("greaterthan", "Greater"),
    ("lessthan", "Less"),
    ("greaterorequal", "GreaterEqual"),
    ("lessorequal", "LessEqual"),
    ("matrixmultiply", "MatMul"),
    ("batchmatmul", "MatMul"),
    ("concatenate", "Concat"),
    ("concatenation", "Concat"),
    ("permute", "Transpose"),
    ("expanddims", "Unsqueeze"),
    ("convtranspose", "ConvolutionBackpropData"),
    ("deconvolution", "ConvolutionBackpropData"),
    ("silu", "Swish"),
    ("hardswish", "HSwish"),
    ("logistic", "Sigmoid"),
    ("cumulativesum", "CumSum"),
    ("averagepool", "AvgPool"),
    ("averagepooling", "AvgPool"),
    ("maxpooling", "MaxPool"),
    ("constant", "Const"),
    ("placeholder", "Parameter"),
    ("initializer", "Const"),
];

/// Values of enumerations, in lower case without `_`.
pub(super) const ENUMERATIONS: &[(&str, &str)] = &[
    ("replicate", "edge"),
    ("reflection", "reflect"),
    ("multiply", "prod"),
    ("bicubic", "cubic"),
    ("fwd", "forward"),
    ("bidirectional", "bidirectional"),
    ("notset", "explicit"),
    ("ceiling", "ceil"),
    ("maximum", "max"),
    ("minimum", "min"),
    ("average", "avg"),
];

/// Booleans, in lower case.
pub(super) const BOOLEANS: &[(&str, &str)] =
    &[("yes", "true"), ("on", "true"), ("no", "false"), ("off", "false"), ("t", "true"), ("f", "false")];

/// Element types, in lower case without `_`.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("float32", "f32"),
    ("fp32", "f32"),
    ("float16", "f16"),
    ("fp16", "f16"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("float64", "f64"),
    ("fp64", "f64"),
    ("double", "f64"),
    ("int64", "i64"),
    ("int32", "i32"),
    ("int16", "i16"),
    ("int8", "i8"),
    ("int4", "i4"),
    ("uint64", "u64"),
    ("uint32", "u32"),
    ("uint16", "u16"),
    ("uint8", "u8"),
    ("uint4", "u4"),
    ("bool", "boolean"),
    ("bin", "u1"),
    ("str", "string"),
];

/// Precisions of ports, in lower case without `_`. The tensor of the port must agree.
pub(super) const PORT_TYPES: &[(&str, &str)] = &[
    ("float", "FP32"),
    ("float32", "FP32"),
    ("f32", "FP32"),
    ("half", "FP16"),
    ("float16", "FP16"),
    ("f16", "FP16"),
    ("double", "FP64"),
    ("float64", "FP64"),
    ("f64", "FP64"),
    ("bfloat16", "BF16"),
    ("int", "I32"),
    ("int8", "I8"),
    ("int16", "I16"),
    ("int32", "I32"),
    ("int64", "I64"),
    ("long", "I64"),
    ("uint8", "U8"),
    ("uint16", "U16"),
    ("uint32", "U32"),
    ("uint64", "U64"),
    ("boolean", "BOOL"),
];

/// Attributes, in lower case without `_`.
pub(super) const ATTRIBUTES: &[(&str, &str)] = &[
    ("kernelsize", "kernel"),
    ("kernelshape", "kernel"),
    ("ksize", "kernel"),
    ("poolsize", "kernel"),
    ("stride", "strides"),
    ("dilation", "dilations"),
    ("dim", "axis"),
];
