"""Fourteen common jobs, each in as few lines as possible. If OpenVINO is installed, it checks that the resulting model
computes the expected values.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest

import typelift
from typelift import Graph, Model

numpy = pytest.importorskip("numpy")

LINEAR = """
    x = Parameter : f32[1,4]
    w = Const([1, 2, 3, 4, 5, 6, 7, 8]) : f32[4,2]
    y = MatMul(x, w) {transpose_a=false, transpose_b=false}
    z = Relu(y)
    r = Result(z)
"""

TWO_WEIGHTS = """
    x = Parameter : f32[1,4]
    w = Const([1, 2, 3, 4, 5, 6, 7, 8]) : f32[4,2]
    y = MatMul(x, w) {transpose_a=false, transpose_b=false}
    head/w = Const([1, 2, 3, 4]) : f32[2,2]
    head/y = MatMul(y, head/w) {transpose_a=false, transpose_b=false}
    r = Result(head/y)
"""

LAYER_NORM = """
    x = Parameter : f32[2,8]
    axes = Const([-1]) : i64[1]
    mean = ReduceMean(x, axes) {keep_dims=true}
    d = Subtract(x, mean)
    two = Const(2) : f32[]
    square = Power(d, two)
    variance = ReduceMean(square, axes) {keep_dims=true}
    eps = Const(0.00001) : f32[]
    sum = Add(variance, eps)
    root = Sqrt(sum)
    y = Divide(d, root)
    r = Result(y)
"""

GELU = """
    x = Parameter : f32[2,8]
    a = Const(1.4142135) : f32[]
    b = Divide(x, a)
    e = Erf(b)
    one = Const(1) : f32[]
    f = Add(e, one)
    g = Multiply(x, f)
    half = Const(0.5) : f32[]
    y = Multiply(g, half)
    r = Result(y)
"""

PICTURE = """
    x = Parameter : f32[1,3,4,4]
    y = Relu(x)
    r = Result(y)
"""

SOFTMAX = """
    x = Parameter : f32[2,3]
    y = Softmax-8(x) {axis=-1}
    r = Result(y)
"""

CONSTANT_IF = """
    x = Parameter : f32[2]
    c = Const(true) : boolean[]
    y = If-8(c, x)
        then_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Abs(a)
            r = Result(b)
        else_body (in 1 -> 0, out 1 -> 0):
            a = Parameter : f32[2]
            r = Result(a)
    r = Result(y)
"""

ATTENTION = """
    q = Parameter : f32[1,2,4,8]
    k = Parameter : f32[1,2,4,8]
    v = Parameter : f32[1,2,4,8]
    t = MatMul(q, k) {transpose_a=false, transpose_b=true}
    scale = Const(0.35355338) : f32[]
    l = Multiply(t, scale)
    p = Softmax-8(l) {axis=-1}
    y = MatMul(p, v) {transpose_a=false, transpose_b=false}
    r = Result(y)
"""


def layer_norm(model: Model) -> None:
    model.rewrite(use="norms")


def gelu(model: Model) -> None:
    model.rewrite(use="fuse-gelu")


def preprocessing(model: Model) -> None:
    scaled = "Divide(Convert(_) {destination_type=f32}, 255)"
    model.rewrite(["input x : u8[1,4,4,3]", f"before x : Transpose({scaled}, [0,3,1,2])"])


def cut(model: Model) -> None:
    model.rewrite("cut y")


def further_output(model: Model) -> None:
    model.rewrite("tap y as hidden")


def rename_output(model: Model) -> None:
    model.rewrite("rename z scores")


def dynamic_batch(model: Model) -> None:
    model.set_shape("x", (None, 4))


def older_release(model: Model) -> None:
    model.convert(target="2021.4")


def half_weights_and_back(model: Model) -> None:
    model.convert(compress="f16", keep=["head/*"])
    model.convert(decompress=True)


def join(model: Model) -> None:
    model.join(typelift.from_text(SECOND), {"z": "a"})


def weights_plus_product(model: Model) -> None:
    model.set_constant("w", model["w"].numpy() + B @ A)


def constant_if(model: Model) -> None:
    model.rewrite("inline y")


def attention(model: Model) -> None:
    model.rewrite(use="fuse-sdpa")


def own_pass(model: Model) -> None:
    def shift(graph: Graph) -> None:
        for layer in [layer for layer in graph if layer.type == "MatMul"]:
            graph.insert_after(layer, "Add", graph.constant(1.0))

    model.run(shift)


SECOND = "a = Parameter : f32[1,2]\nb = Exp(a)\ns = Result(b)"
B, A = numpy.array([[1], [0], [0], [2]], "f4"), numpy.array([[1, -1]], "f4")
W = numpy.arange(1, 9, dtype="f4").reshape(4, 2)


def linear(x: Any, w: Any = W) -> Any:
    return x @ w


class Job(NamedTuple):
    """A job and its expected result."""

    number: int
    name: str
    model: str
    do: Callable[[Model], None]
    operations: str
    """The operations of the resulting model."""
    given: Callable[[Any], Any]
    """The inputs of the original model, from those of the new one."""
    gives: Callable[[list[Any], list[Any]], list[Any]]
    """The expected outputs, from the inputs and the original outputs."""


def same(inputs: list[Any], outputs: list[Any]) -> list[Any]:
    return outputs


JOBS = [
    Job(1, "LayerNorm of its formula", LAYER_NORM, layer_norm, "MVN", lambda x: x, same),
    Job(2, "GELU of its formula", GELU, gelu, "Gelu", lambda x: x, same),
    Job(3, "preprocessing inside", PICTURE, preprocessing, "Convert Divide Transpose ReLU",
        lambda x: (x.astype("f4") / 255).transpose(0, 3, 1, 2), same),
    Job(4, "cut at an inner tensor", LINEAR, cut, "MatMul", lambda x: x, lambda x, y: [linear(x[0])]),
    Job(5, "an inner tensor as a further output", LINEAR, further_output, "MatMul ReLU", lambda x: x,
        lambda x, y: [*y, linear(x[0])]),
    Job(6, "rename an output", LINEAR, rename_output, "MatMul ReLU", lambda x: x, same),
    Job(7, "a dynamic batch", LINEAR, dynamic_batch, "MatMul ReLU", lambda x: x, same),
    Job(8, "write for an older release", SOFTMAX, older_release, "SoftMax", lambda x: x, same),
    Job(9, "weights in f16 but for a list, and back", TWO_WEIGHTS, half_weights_and_back, "MatMul MatMul", lambda x: x, same),
    Job(10, "join two models", LINEAR, join, "MatMul ReLU Exp", lambda x: x, lambda x, y: [numpy.exp(y[0])]),
    Job(11, "W := W + B·A", LINEAR, weights_plus_product, "MatMul ReLU", lambda x: x,
        lambda x, y: [numpy.maximum(linear(x[0], W + B @ A), 0)]),
    Job(12, "an If whose condition is constant", CONSTANT_IF, constant_if, "Abs", lambda x: x, same),
    Job(13, "attention as one operation", ATTENTION, attention, "ScaledDotProductAttention", lambda x: x, same),
    Job(14, "a pass of one's own", LINEAR, own_pass, "MatMul Add ReLU", lambda x: x,
        lambda x, y: [numpy.maximum(linear(x[0]) + 1, 0)]),
]
NOT_COUNTED = {"Parameter", "Const", "Result"}


def lines(job: Job) -> int:
    """The number of lines of the job."""
    return sum(bool(line.strip()) for line in inspect.getsource(job.do).splitlines()) - 1


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.do.__name__)
def test_a_job_leaves_a_sound_model(job: Job) -> None:
    model = typelift.from_text(job.model)
    job.do(model)
    again = typelift.loads(*model.to_bytes())
    assert again.check().errors == []
    operations = sorted(layer.type.lower() for layer in again if layer.type not in NOT_COUNTED)
    assert operations == sorted(job.operations.lower().split())


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.do.__name__)
def test_openvino_computes_what_it_must(job: Job) -> None:
    openvino = pytest.importorskip("openvino")
    from beside_openvino import made_up_inputs, outputs

    core = openvino.Core()
    model = typelift.from_text(job.model)
    text, weights = model.to_bytes()
    job.do(model)
    new_text, new_weights = model.to_bytes()
    before, after = core.read_model(text, weights), core.read_model(new_text, new_weights)
    inputs = made_up_inputs(after, 1)
    old_inputs = [job.given(array) for array in inputs]
    expected = job.gives(old_inputs, outputs(core, before, old_inputs))
    found = outputs(core, after, inputs)
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected):
        numpy.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)


def test_weights_are_f16_on_the_way() -> None:
    model = typelift.from_text(TWO_WEIGHTS)
    report = model.convert(compress="f16", keep=["head/*"])
    types = {layer.path: layer.outputs[0].element_type for layer in model if layer.type == "Const"}
    assert "f16" in types.values() and types["head/w"] == "f32"
    assert {constant["action"] for constant in report.constants} and "convert" in {layer.type.lower() for layer in model}
    with pytest.raises(typelift.ModelError, match="the relative error of `head/w` in"):
        typelift.from_text(TWO_WEIGHTS.replace("[1, 2, 3, 4]", "[0.1, 2, 3, 4]")).convert(compress="f16", max_error=1e-9)
    with pytest.raises(ValueError, match="exclude each other"):
        model.convert(compress="f16", decompress=True)


def test_weights_are_quantized_by_mode_by_options_and_by_plan(tmp_path: Path) -> None:
    text = """
        x = Parameter : f32[1,64]
        w = Const("weight") : f32[32,64]
        y = MatMul(x, w) {transpose_a=false, transpose_b=true}
        r = Result(y)
    """.replace('"weight"', str([[(row - column) / 64 for column in range(64)] for row in range(32)]))
    model = typelift.from_text(text)
    report = model.convert(quantize="int8_asym")
    (quantized,) = report.quantized
    assert report and quantized["mode"] == "int8_asym" and quantized["bytes_after"] < quantized["bytes_before"]
    assert "u8" in {layer.outputs[0].element_type for layer in model if layer.type == "Const"}
    model.convert(dequantize=True)
    assert {layer.outputs[0].element_type for layer in model if layer.type == "Const"} == {"f32"}

    options = {"mode": "int4_sym", "group_size": 32, "all_layers": True}
    (quantized,) = typelift.from_text(text).convert(quantize=options).quantized
    assert (quantized["mode"], quantized["group"]) == ("int4_sym", 32)
    plan = tmp_path / "plan.txt"
    typelift.from_text(text).convert(quantize=options).write_plan(plan)
    assert "int4_sym 32 w\n" in plan.read_text()
    (quantized,) = typelift.from_text(text).convert(quantize=plan).quantized
    assert (quantized["mode"], quantized["group"]) == ("int4_sym", 32)
    plan.write_text("int4_sym 16 w\n")
    (quantized,) = typelift.from_text(text).convert(quantize=plan).quantized
    assert (quantized["mode"], quantized["group"]) == ("int4_sym", 16)

    for wrong, reason in [("int5", "expected one of"), ({"mode": "nf4", "groups": 3}, "no option `groups`")]:
        with pytest.raises(ValueError, match=reason):
            model.convert(quantize=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="quantize and dequantize exclude each other"):
        model.convert(quantize="nf4", dequantize=True)
    with pytest.raises(ValueError, match="no plan"):
        model.convert().write_plan(plan)


def test_weights_are_stripped() -> None:
    model = typelift.from_text(TWO_WEIGHTS)
    model.convert(strip_weights="zero")
    assert {number for layer in model if layer.type == "Const" for number in layer.numbers() or []} == {0}


def test_each_job_takes_one_line_and_few_take_more() -> None:
    longer = {job.number: lines(job) for job in JOBS if lines(job) > 1}
    assert longer == {3: 2, 9: 2, 14: 4}
