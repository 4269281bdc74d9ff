"""Makes classifier.xml and classifier.bin, the model of docs/tutorial.md: python make.py (openvino 2026.4.1, numpy).

Makes a small classifier with two mistakes of an exporter. The offset of a norm is an integer, which OpenVINO refuses
with floats, and the mask of the scores meets them in a ConvertPromoteTypes.
"""

import re

import numpy as np
import openvino as ov
from openvino import opset15 as op

random = np.random.default_rng(2026)


def weights(name, *shape):
    node = op.constant((random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))
    node.set_friendly_name(name)
    return node


def named(node, name):
    node.set_friendly_name(name)
    return node


image = op.parameter([-1, 3, 32, 32], np.float32, name="image")
mask = op.parameter([-1, 100], np.float16, name="mask")
features = named(op.convolution(image, weights("stem/weight", 32, 3, 3, 3), [2, 2], [0, 0], [0, 0], [1, 1]), "stem")
shifted = named(op.add(features, op.constant(np.float32(3))), "act/shifted")
clamped = named(op.clamp(shifted, 0.0, 6.0), "act/clamped")
product = named(op.multiply(features, clamped), "act/product")
active = named(op.divide(product, op.constant(np.float32(6))), "act")
pooled = named(op.reduce_mean(active, op.constant(np.array([2, 3])), False), "pool")
centred = named(op.subtract(pooled, op.reduce_mean(pooled, op.constant(np.array([1])), True)), "norm/centred")
square = named(op.reduce_mean(op.multiply(centred, centred), op.constant(np.array([1])), True), "norm/variance")
offset = named(op.convert(named(op.constant(np.int64(1)), "norm/offset"), "f32"), "OFFSET")
spread = named(op.sqrt(named(op.add(square, offset), "norm/shifted")), "norm/spread")
normed = named(op.divide(centred, spread), "norm")
scores = named(op.matmul(normed, weights("head/weight", 100, 32), False, True), "head")
both = named(op.convert_promote_types(scores, mask), "mask/promoted")
masked = named(op.add(both.output(0), both.output(1)), "scores")
result = op.result(named(op.softmax(masked, 1), "probabilities"))
result.get_input_tensor(0).set_names({"probabilities"})
ov.save_model(ov.Model([result], [image, mask], "classifier"), "classifier.xml", compress_to_fp16=False)

# The exporter forgot the Convert: its layer and edges go, and the constant feeds the Add.
text = open("classifier.xml").read()
layer = re.search(r'\t\t<layer id="(\d+)" name="OFFSET".*?</layer>\n', text, re.S)
producer, port = re.search(rf'from-layer="(\d+)" from-port="(\d+)" to-layer="{layer[1]}"', text).groups()
text = text.replace(layer[0], "")
text = re.sub(rf'\t\t<edge [^>]*to-layer="{layer[1]}"[^>]*/>\n', "", text)
text = re.sub(rf'from-layer="{layer[1]}" from-port="\d+"', f'from-layer="{producer}" from-port="{port}"', text)
open("classifier.xml", "w").write(text)
