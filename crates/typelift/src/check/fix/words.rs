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

/// Booleans, in lower case.
pub(super) const BOOLEANS: &[(&str, &str)] =
    &[("yes", "true"), ("on", "true"), ("no", "false"), ("off", "false"), ("t", "true"), ("f", "false")];

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
