"""Models to rewrite, and whether OpenVINO computes the same before and after.

python rewrites.py make      writes CASE.xml and CASE.bin
UPDATE_REWRITES=1 cargo test -p typelift --test it rewrites     writes CASE.after.xml and CASE.after.bin
python rewrites.py record    runs both and writes answers.json: the CRC-32 of the files, and the largest difference
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops

HERE = Path(__file__).parent


def parameter(shape, ty, name):
    x = ops.parameter(shape, ty)
    x.set_friendly_name(name)
    x.output(0).set_names({name})
    return x


def result(x, name):
    x.output(0).set_names({name})
    return ops.result(x)


def c(value, ty=np.float32):
    return ops.constant(np.array(value, dtype=ty))


def fuse():
    x = parameter([2, 3], ov.Type.f32, "x")
    return [result(ops.multiply(x, ops.sigmoid(x), name="swish"), "y")], [x]


def constant():
    x = parameter([2, 3], ov.Type.f32, "x")
    return [result(ops.divide(x, c([2.0, 4.0, 8.0]), name="scaled"), "y")], [x]


def noops():
    x = parameter([2, 3], ov.Type.f32, "x")
    a = ops.convert(ops.relu(x, name="a"), "f32")
    b = ops.transpose(a, c([0, 1], np.int64))
    d = ops.reshape(b, c([2, 3], np.int64), False)
    return [result(ops.relu(d, name="last"), "y")], [x]


def converts():
    x = parameter([2, 3], ov.Type.f16, "x")
    t = ops.transpose(ops.convert(x, "f32"), c([1, 0], np.int64), name="t")
    return [result(ops.reshape(t, c([6], np.int64), False, name="flat"), "y")], [x]


def rename():
    x = parameter([2, 3], ov.Type.f32, "input0")
    return [result(ops.relu(x, name="output0"), "output0")], [x]


def cut():
    x = parameter([2, 3], ov.Type.f32, "x")
    feature = ops.relu(ops.multiply(x, c([3.0])), name="feature")
    feature.output(0).set_names({"feature"})
    return [result(ops.softmax(ops.add(feature, c([1.0])), 1), "y")], [x]


def preprocess():
    x = parameter([1, 3, 2, 2], ov.Type.f32, "images")
    return [result(ops.relu(ops.multiply(x, c([2.0])), name="features"), "y")], [x]


def hswish():
    x = parameter([2, 3], ov.Type.f32, "x")
    clamp = ops.clamp(ops.add(x, c(3.0)), 0.0, 6.0)
    return [result(ops.divide(ops.multiply(x, clamp), c(6.0), name="hswish"), "y")], [x]


def bodies():
    x = parameter([4, 2], ov.Type.f32, "x")
    item = ops.parameter([1, 2], ov.Type.f32, "item")
    square = ops.multiply(item, item, name="square")
    out = ops.result(square)
    body = ov.Model([out], [item], "body")
    loop = ops.tensor_iterator()
    loop.set_friendly_name("each")
    loop.set_body(body)
    loop.set_sliced_input(item, x.output(0), 0, 1, 1, -1, 0)
    y = loop.get_concatenated_slices(out.output(0), 0, 1, 1, -1, 0)
    y.set_names({"y"})
    return [ops.result(y)], [x]


def cse():
    x = parameter([2, 3], ov.Type.f32, "x")
    left = ops.exp(x, name="left")
    right = ops.exp(x, name="right")
    return [result(ops.add(ops.relu(left), ops.tanh(right), name="sum"), "y")], [x]


CASES = [fuse, constant, noops, converts, rename, cut, preprocess, hswish, bodies, cse]


def make():
    for case in CASES:
        results, parameters = case()
        model = ov.Model(results, parameters, case.__name__)
        ov.save_model(model, HERE / f"{case.__name__}.xml", compress_to_fp16=False)


def run(path, inputs):
    core = ov.Core()
    # The types are those of the file: a plugin may compute f16 as f32, and both models must get the same.
    model = core.read_model(path)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return model, list(compiled(inputs).values())


def images(model):
    """Inputs of the preprocessed model, and those of the model before."""
    image = np.random.default_rng(1).integers(0, 256, [1, 2, 2, 3], dtype=np.uint8)
    mean, scale = np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375])
    return image, ((image.astype(np.float32) - mean) / scale).transpose(0, 3, 1, 2)


def record():
    answers = {}
    for case in CASES:
        name = case.__name__
        before, after = HERE / f"{name}.xml", HERE / f"{name}.after.xml"
        core = ov.Core()
        inputs = [
            np.random.default_rng(0).normal(size=list(p.shape)).astype(p.element_type.to_dtype())
            for p in core.read_model(before).inputs
        ]
        other = inputs
        if case is preprocess:
            image, given = images(before)
            inputs, other = [given], [image]
        if case is cut:
            model = core.read_model(before)
            tensor = next(o for op in model.get_ops() for o in op.outputs() if "feature" in o.get_names())
            model.add_outputs([tensor])
            expected = [core.compile_model(model, "CPU")(inputs)[1]]
        else:
            expected = run(before, inputs)[1]
        model, found = run(after, other)
        difference = max(float(np.max(np.abs(a - b))) for a, b in zip(expected, found, strict=True))
        files = [after] + [after.with_suffix(".bin")] * after.with_suffix(".bin").exists()
        answers[name] = {
            "crc32": [zlib.crc32(file.read_bytes()) for file in files],
            "inputs": [sorted(p.names) for p in model.inputs],
            "outputs": [sorted(p.names) for p in model.outputs],
            "largest_difference": difference,
        }
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


{"make": make, "record": record}[sys.argv[1]]()
