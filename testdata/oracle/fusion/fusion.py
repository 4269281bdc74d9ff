"""Small models in which one thing can be fused, in several spellings, and near misses in which it must not be.

python fusion.py     writes NAME.xml and NAME.bin, and cases.json: of each model the sets of rules, the operation that is
                     made or goes, how many there are more with the sets, and with OpenVINO
"""

import json
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset15 as ops
from openvino._offline_transformations import apply_moc_transformations

HERE = Path(__file__).parent
CASES = []


def c(value, ty=np.float32):
    return ops.constant(np.array(value, dtype=ty))


def case(rules, target, sites=1, shape=(1, 4, 6)):
    """A model of what the function makes of its input, and how many of the operation it gets, or loses after a minus."""

    def add(function):
        CASES.append((function.__name__, rules, target, sites, list(shape), function))
        return function

    return add


def half(value):
    """Constants are f16 and widened, as in default exports."""
    convert = ops.convert(c(value, np.float16), "f32")
    convert.get_rt_info()["decompression_0"] = ""
    return convert


# Gelu


@case("fuse-gelu", "Gelu")
def gelu_half_first(x):
    return x * c(0.5) * (ops.erf(x / c(1.4142135)) + c(1.0))


@case("fuse-gelu", "Gelu")
def gelu_half_last(x):
    return (x * (ops.erf(x * c(0.70710678)) + c(1.0))) * c(0.5)


@case("fuse-gelu", "Gelu")
def gelu_half_inside(x):
    return x * (ops.erf(x * c(0.70710678)) * c(0.5) + c(0.5))


@case("fuse-gelu", "Gelu")
def gelu_compressed(x):
    return x * half([[[0.5]]]) * (ops.erf(x / half([[[1.4142135]]])) + half([[[1.0]]]))


@case("fuse-gelu", "Gelu")
def gelu_tanh(x):
    return c(0.5) * x * (c(1.0) + ops.tanh(c(0.7978845608) * (x + c(0.044715) * ops.power(x, c(3.0)))))


@case("fuse-gelu", "Gelu", 0)
def gelu_not_another_factor(x):
    return x * c(0.5) * (ops.erf(x * c(0.667)) + c(1.0))


@case("fuse-gelu", "Gelu", 0)
def gelu_not_a_rounded_factor(x):
    return c(0.5) * x * (c(1.0) + ops.tanh(c(0.8) * (x + c(0.044715) * ops.power(x, c(3.0)))))


@case("fuse-gelu", "Gelu", 0)
def gelu_not_another_input(x):
    return x * c(0.5) * (ops.erf(ops.relu(x) * c(0.70710678)) + c(1.0))


@case("fuse-gelu", "Gelu", 0)
def gelu_not_used_twice(x):
    e = ops.erf(x * c(0.70710678))
    return x * c(0.5) * (e + c(1.0)), e


@case("fuse-gelu", "Gelu", 0)
def gelu_not_of_higher_rank(x):
    return x * c([[[[0.5]]]]) * (ops.erf(x * c(0.70710678)) + c(1.0))


# HSwish and HSigmoid


@case("fuse-hswish", "HSwish")
def hswish_clamp(x):
    return x * ops.clamp(x + c(3.0), 0.0, 6.0) / c(6.0)


@case("fuse-hswish", "HSwish")
def hswish_minimum_of_relu(x):
    return x * (ops.minimum(ops.relu(x + c(3.0)), c(6.0)) * c(0.16666667))


@case("activations", "HSigmoid")
def hsigmoid_maximum(x):
    return ops.minimum(ops.maximum(x + c(3.0), c(0.0)), c(6.0)) / c(6.0)


@case("fuse-hswish", "HSwish", 0)
def hswish_not_to_five(x):
    return x * ops.clamp(x + c(3.0), 0.0, 5.0) / c(6.0)


@case("activations", "HSigmoid", 0)
def hsigmoid_not_of_two(x):
    return ops.clamp(x + c(2.0), 0.0, 6.0) / c(6.0)


# Swish, Mish, SoftPlus


@case("activations", "Swish")
def swish_sigmoid(x):
    return ops.sigmoid(x) * x


@case("activations", "Swish")
def swish_beta(x):
    return x * ops.sigmoid(x * c(1.5))


@case("activations", "Swish")
def swish_exp(x):
    return x / (ops.exp(ops.negative(x)) + c(1.0))


@case("activations", "Swish", 0)
def swish_not_a_beta_for_each(x):
    return x * ops.sigmoid(x * c([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))


@case("activations", "Swish", 0)
def swish_not_of_another(x):
    return ops.relu(x) * ops.sigmoid(x)


@case("activations", "Mish")
def mish_log(x):
    return x * ops.tanh(ops.log(ops.exp(x) + c(1.0)))


@case("activations", "SoftPlus")
def softplus_log(x):
    return ops.log(c(1.0) + ops.exp(x))


@case("activations", "SoftPlus", 0)
def softplus_not_plus_two(x):
    return ops.log(c(2.0) + ops.exp(x))


# PRelu, Elu, Clamp


@case("activations", "PRelu")
def prelu_two_relus(x):
    return ops.relu(x) - ops.relu(ops.negative(x)) * c(0.25)


@case("activations", "PRelu")
def prelu_maximum(x):
    return ops.maximum(x, x * c(0.01))


@case("activations", "PRelu", 0)
def prelu_not_of_a_steep_slope(x):
    return ops.maximum(x, x * c(1.5))


@case("activations", "Elu")
def elu_select(x):
    return ops.select(ops.greater(x, c(0.0)), x, (ops.exp(x) - c(1.0)) * c(0.5))


@case("activations", "Clamp")
def clamp_minimum(x):
    return ops.minimum(ops.maximum(x, c(-1.0)), c(2.0))


@case("activations", "Clamp", 0)
def clamp_not_the_wrong_way(x):
    return ops.minimum(ops.maximum(x, c(2.0)), c(-1.0))


# MVN, NormalizeL2, RMS


def mean(x, axes=(-1,)):
    return ops.reduce_mean(x, c(axes, np.int64), True)


@case("norms", "MVN")
def mvn_divide(x):
    d = x - mean(x)
    return d / ops.sqrt(mean(d * d) + c(1e-5))


@case("norms", "MVN")
def mvn_squared_difference(x):
    m = mean(x)
    return (x - m) * ops.power(mean(ops.squared_difference(x, m)) + c(1e-5), c(-0.5))


@case("norms", "MVN")
def mvn_outside(x):
    d = x - mean(x)
    return d / (ops.sqrt(mean(ops.power(d, c(2.0)))) + c(1e-5))


@case("norms", "MVN", 0)
def mvn_not_of_two_axes(x):
    d = x - mean(x)
    return d / ops.sqrt(mean(d * d, (1,)) + c(1e-5))


@case("norms", "MVN", 0)
def mvn_not_an_eps_for_each(x):
    d = x - mean(x)
    return d / ops.sqrt(mean(d * d) + c([[[1e-5], [1e-4], [1e-3], [1e-2]]]))


@case("norms", "NormalizeL2")
def l2_maximum(x):
    return x / ops.sqrt(ops.maximum(ops.reduce_sum(x * x, c([1], np.int64), True), c(1e-6)))


@case("norms", "NormalizeL2", 0)
def l2_not_without_the_dim(x):
    return x / ops.sqrt(ops.reduce_sum(x * x, c([0], np.int64), False) + c(1e-6))


@case("fuse-rms", "Divide")
def rms_power(x):
    return x * ops.power(mean(ops.power(x, c(2.0))) + c(1e-6), c(-0.5))


@case("fuse-rms", "Power")
def rms_times_itself(x):
    return ops.divide(x, ops.sqrt(mean(x * x) + c(1e-6))) * c([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


@case("fuse-rms", "Divide", 0)
def rms_not_as_it_is_written_already(x):
    return x * (c(1.0) / ops.sqrt(mean(ops.power(x, c(2.0))) + c(1e-6)))


@case("fuse-rms", "Divide", 0)
def rms_not_of_cubes(x):
    return x * ops.power(mean(ops.power(x, c(3.0))) + c(1e-6), c(-0.5))


# Attention


def attention(x, scale=c(0.5), axis=-1, mask=None):
    scores = ops.matmul(x, x, False, True) * scale
    return ops.matmul(ops.softmax(scores if mask is None else scores + mask, axis), x, False, False)


@case("fuse-sdpa", "ScaledDotProductAttention", shape=(1, 2, 3, 4))
def sdpa_scaled(x):
    return attention(x)


@case("fuse-sdpa", "ScaledDotProductAttention", shape=(1, 2, 3, 4))
def sdpa_masked(x):
    return attention(x, mask=c([[[[0.0, -1e9, 0.0]]]]))


@case("fuse-sdpa", "ScaledDotProductAttention", 0, shape=(1, 2, 3, 4))
def sdpa_not_along_another_axis(x):
    return attention(x, axis=1)


@case("fuse-sdpa", "ScaledDotProductAttention", 0, shape=(1, 2, 3, 4))
def sdpa_not_with_a_scale_for_each(x):
    return attention(x, scale=c([0.5, 0.25, 0.125]))


# Sums and products with constants


def convolution(x):
    w = c(np.arange(6).reshape(2, 3, 1, 1))
    return ops.convolution(x, w, [1, 1], [0, 0], [0, 0], [1, 1])


@case("affine", "-Multiply", shape=(1, 3, 2, 2))
def convolution_scaled(x):
    return convolution(x) * c([[[[2.0]], [[3.0]]]])


@case("affine", "-Multiply", shape=(1, 3, 2, 2))
def convolution_of_a_product(x):
    return convolution(x * c(0.5))


@case("affine", "-Multiply", 0, shape=(1, 3, 2, 2))
def convolution_not_along_the_width(x):
    return convolution(x) * c([2.0, 3.0])


@case("affine", "-Multiply")
def chain_of_products(x):
    return x * c(2.0) * c([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


# Movement


@case("movement no-ops", "-Transpose", 2)
def transposes_undone(x):
    return ops.relu(ops.transpose(ops.transpose(x, c([0, 2, 1], np.int64)), c([0, 2, 1], np.int64)))


@case("movement", "-Transpose", 0)
def transposes_not_with_another_use(x):
    y = ops.transpose(x, c([0, 2, 1], np.int64))
    return ops.transpose(y, c([1, 0, 2], np.int64)), y


@case("movement", "-Split")
def split_and_joined(x):
    parts = ops.split(x, c(1, np.int64), 2)
    return ops.relu(ops.concat([parts.output(0), parts.output(1)], 1))


@case("movement", "-Split", 0)
def split_not_in_order(x):
    parts = ops.split(x, c(1, np.int64), 2)
    return ops.concat([parts.output(1), parts.output(0)], 1)


@case("movement", "-Split", 0)
def split_not_along_that_axis(x):
    parts = ops.split(x, c(1, np.int64), 2)
    return ops.concat([parts.output(0), parts.output(1)], 2)


# Layers that do nothing, and layers that are computed twice


@case("no-ops", "-Add")
def noop_zero(x):
    return ops.relu(x + c(0.0))


@case("no-ops", "-Add", 0)
def noop_not_of_higher_rank(x):
    return ops.relu(x + c([[[[0.0]]]]))


@case("common-subexpressions", "-Exp")
def twice(x):
    return ops.exp(x) + ops.exp(x)


@case("common-subexpressions", "-Convert", 0)
def twice_not_the_same_type(x):
    return ops.convert(x, "f16"), ops.convert(x, "i32")


def count(model, target):
    return sum(op.get_type_name() == target.removeprefix("-") for op in model.get_ops())


def make():
    cases = {}
    for name, rules, target, sites, shape, function in CASES:
        x = ops.parameter(shape, ov.Type.f32, name="x")
        x.output(0).set_names({"x"})
        given = function(x)
        given = given if isinstance(given, tuple) else (given,)
        results = []
        for at, tensor in enumerate(given):
            tensor.output(0).set_names({f"y{at}"})
            results.append(ops.result(tensor))
        model = ov.Model(results, [x], name)
        for at, op in enumerate(model.get_ordered_ops()):
            op.set_friendly_name(op.get_friendly_name() if op is x else f"{op.get_type_name().lower()}_{at}")
        before = count(model, target)
        # Constants keep their types, because saving with compression off does not change them.
        ov.save_model(model, HERE / f"{name}.xml", compress_to_fp16=False)
        model = ov.Core().read_model(HERE / f"{name}.xml")
        apply_moc_transformations(model, cf=False)
        change = count(model, target) - before
        cases[name] = {
            "rules": rules,
            "operation": {"PRelu": "PReLU"}.get(target, target.removeprefix("-")),
            "change": -sites if target.startswith("-") else sites,
            "openvino": change,
        }
    (HERE / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")


make()
