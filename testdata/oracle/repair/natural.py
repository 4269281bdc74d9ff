"""Small random models of the shapes that people write: residual blocks, attention with a mask, convolutions, indices, states.

`make(seed, number, path)` writes PATH (.xml) and its .bin with the installed OpenVINO; the same number of a seed gives the same
model. They are for `damage.py`: every layer has a purpose, so that a changed attribute or edge changes what is computed.
"""
import random

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from openvino.op.util import Variable, VariableInfo


class Maker:
    """A random model. `x` is the tensor that the next block continues, with `self.dims`."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.values = np.random.default_rng(self.rng.randrange(1 << 30))
        self.parameters, self.results, self.sinks, self.extra = [], [], [], []

    def input(self, name, dims, type=np.float32):
        made = ops.parameter(dims, type, name)
        made.output(0).set_names({name})
        self.parameters.append(made)
        return made

    def constant(self, *dims, type=np.float32):
        return ops.constant(self.values.standard_normal(dims).astype(type))

    def model(self):
        self.channels = self.rng.choice([4, 6, 8])
        blocks = self.sequence() if self.rng.random() < 0.6 else self.image()
        x = blocks
        for at, output in enumerate([x, *self.extra]):
            result = ops.result(output)
            output.output(0).set_names({f"y{at}"}) if hasattr(output, "output") else output.set_names({f"y{at}"})
            self.results.append(result)
        return ov.Model(self.results, self.sinks, self.parameters, "natural")

    def sequence(self):
        self.length = self.rng.choice([4, 5, 6])
        x = self.input("x", [1, self.length, self.channels])
        steps = [self.dense, self.gated, self.attention, self.normalized, self.masked, self.selected, self.joined, self.ranked, self.state, self.looked_up, self.cumulated, self.recurrent]
        for step in self.rng.sample(steps, self.rng.randint(2, 4)):
            x = step(x)
        return x

    def dense(self, x):
        transposed = self.rng.random() < 0.5
        h = ops.matmul(x, self.constant(self.channels, self.channels), False, transposed)
        h = ops.add(h, self.constant(1, 1, self.channels))
        h = self.rng.choice([lambda h: ops.clamp(h, 0.0, 6.0), ops.relu, lambda h: ops.clamp(h, -1.0, 1.0), lambda h: ops.gelu(h, "tanh"), lambda h: ops.elu(h, 1.0)])(h)
        return ops.add(x, h)

    def gated(self, x):
        halves = ops.split(x, ops.constant(np.int64(2)), 2)
        gate = ops.sigmoid(ops.multiply(halves.output(0), ops.constant(np.float32(1.702))))
        return ops.concat([ops.multiply(gate, halves.output(1)), ops.subtract(halves.output(0), halves.output(1))], -1)

    def attention(self, x):
        q, k, v = (ops.matmul(x, self.constant(self.channels, self.channels), False, True) for _ in range(3))
        heads = ops.constant(np.array([1, self.length, 2, self.channels // 2], np.int64))
        q, k, v = (ops.transpose(ops.reshape(it, heads, False), ops.constant(np.array([0, 2, 1, 3], np.int64))) for it in (q, k, v))
        mask = self.input(f"mask{len(self.parameters)}", [1, 1, 1, self.length], np.int64)
        bias = ops.multiply(ops.subtract(ops.constant(np.float32(1)), ops.convert(mask, "f32")), ops.constant(np.float32(-100)))
        scores = ops.multiply(ops.matmul(q, k, False, True), ops.constant(np.float32(0.5)))
        h = ops.matmul(ops.softmax(ops.add(scores, bias), -1), v, False, False)
        h = ops.reshape(ops.transpose(h, ops.constant(np.array([0, 2, 1, 3], np.int64))), ops.constant(np.array([0, 0, -1], np.int64)), True)
        return ops.add(x, h)

    def normalized(self, x):
        if self.rng.random() < 0.5:
            h = ops.mvn(x, ops.constant(np.array([-1], np.int64)), True, 1e-5, "inside_sqrt")
        else:
            mean = ops.reduce_mean(x, ops.constant(np.array([2], np.int64)), True)
            h = ops.divide(ops.subtract(x, mean), ops.constant(np.float32(3)))
        return ops.add(ops.multiply(h, self.constant(self.channels)), self.constant(self.channels))

    def masked(self, x):
        lengths = self.input(f"lengths{len(self.parameters)}", [1], np.int64)
        places = ops.range(ops.constant(np.int64(0)), ops.constant(np.int64(self.length)), ops.constant(np.int64(1)), "i64")
        valid = ops.less(places, ops.unsqueeze(lengths, ops.constant(np.int64(1))))
        valid = ops.logical_and(valid, ops.greater(places, ops.constant(np.int64(0))))
        return ops.multiply(x, ops.convert(ops.unsqueeze(valid, ops.constant(np.int64(2))), "f32"))

    def selected(self, x):
        condition = ops.greater(x, ops.constant(np.float32(0.1)))
        return ops.select(condition, ops.tanh(x), ops.multiply(x, self.constant(self.channels)))

    def joined(self, x):
        parts = ops.variadic_split(x, ops.constant(np.int64(1)), ops.constant(np.array([1, self.length - 1], np.int64)))
        return ops.concat([parts.output(1), ops.exp(parts.output(0))], 1)

    def ranked(self, x):
        top = ops.topk(x, ops.constant(np.int64(2)), 2, "max", "value", index_element_type="i32")
        self.extra.append(ops.add(ops.convert(top.output(1), "f32"), top.output(0)))
        return ops.softmax(x, 2)

    def state(self, x):
        info = VariableInfo()
        info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1, self.length, self.channels]), ov.Type.f32, f"state{len(self.sinks)}"
        variable = Variable(info)
        past = ops.read_value(ops.constant(np.zeros([1, self.length, self.channels], np.float32)), variable)
        now = ops.add(ops.multiply(past, ops.constant(np.float32(0.9))), x)
        self.sinks.append(ops.assign(now, variable))
        return now

    def looked_up(self, x):
        ids = self.input(f"ids{len(self.parameters)}", [1, self.length], np.int64)
        table = self.constant(10, self.channels)
        return ops.add(x, ops.gather(table, ids, ops.constant(np.int64(0)), 0))

    def cumulated(self, x):
        if self.rng.random() < 0.5:
            return ops.cum_sum(x, ops.constant(np.int64(1)), self.rng.random() < 0.5, self.rng.random() < 0.5)
        low, high = (ops.constant(np.float32(v)) for v in (-2, 2))
        return ops.fake_quantize(x, low, high, low, high, 256, "numpy")

    def recurrent(self, x):
        hidden = self.channels
        state = ops.constant(np.zeros([1, 1, hidden], np.float32))
        h = ops.gru_sequence(x, state, ops.constant(np.array([self.length])), self.constant(1, 3 * hidden, hidden), self.constant(1, 3 * hidden, hidden), self.constant(1, 3 * hidden), hidden, "forward")
        return ops.squeeze(h.output(0), ops.constant(np.int64(1)))

    def image(self):
        x = self.input("image", [1, 3, 16, 16], self.rng.choice([np.float32, np.uint8]))
        if x.get_element_type() != ov.Type.f32:
            x = ops.multiply(ops.convert(x, "f32"), ops.constant(np.float32(1 / 255)))
        x = self.convolved(x, 3, self.channels)
        steps = [lambda x: ops.add(x, self.convolved(x, self.channels, self.channels)), self.grouped, self.pooled, self.quantized, self.resized, self.padded, self.squeezed]
        for step in self.rng.sample(steps, self.rng.randint(2, 4)):
            x = step(x)
        pooled = ops.reduce_mean(x, ops.constant(np.array([2, 3], np.int64)), False)
        return ops.matmul(pooled, self.constant(10, self.channels), False, True)

    def convolved(self, x, inputs, outputs):
        size = self.rng.choice([1, 3])
        h = ops.convolution(x, self.constant(outputs, inputs, size, size), [1, 1], [size // 2] * 2, [size // 2] * 2, [1, 1])
        return ops.clamp(ops.add(h, self.constant(1, outputs, 1, 1)), 0.0, 6.0)

    def grouped(self, x):
        weights = ops.reshape(self.constant(self.channels, 1, 3, 3), ops.constant(np.array([self.channels, 1, 1, 3, 3], np.int64)), False)
        return ops.relu(ops.group_convolution(x, weights, [2, 2], [0, 1], [1, 0], [1, 1]))

    def pooled(self, x):
        if self.rng.random() < 0.5:
            return ops.max_pool(x, [2, 2], [1, 1], [0, 0], [1, 1], [2, 2], "floor", "explicit").output(0)
        return ops.avg_pool(x, [2, 2], [0, 0], [1, 1], [3, 3], True, "ceil")

    def quantized(self, x):
        return ops.fake_quantize(x, ops.constant(np.float32(0)), ops.constant(np.float32(4)), ops.constant(np.float32(0)), ops.constant(np.float32(4)), self.rng.choice([16, 256]))

    def resized(self, x):
        return ops.interpolate(x, ops.constant(np.array([2.0, 2.0], np.float32)), "linear_onnx", "scales", [0, 0, 0, 0], [0, 0, 0, 0], "half_pixel", "round_prefer_floor", False, -0.75, ops.constant(np.array([2, 3], np.int64)))

    def padded(self, x):
        return ops.pad(x, ops.constant(np.array([0, 0, 1, 0], np.int64)), ops.constant(np.array([0, 0, 0, 1], np.int64)), self.rng.choice(["constant", "edge", "reflect"]))

    def squeezed(self, x):
        pooled = ops.reduce_mean(x, ops.constant(np.array([2, 3], np.int64)), True)
        weights = (self.constant(self.channels, self.channels, 1, 1) for _ in range(2))
        h = ops.relu(ops.convolution(pooled, next(weights), [1, 1], [0, 0], [0, 0], [1, 1]))
        return ops.multiply(x, ops.sigmoid(ops.convolution(h, next(weights), [1, 1], [0, 0], [0, 0], [1, 1])))


def make(seed, number, path):
    """Writes model NUMBER of a seed to PATH and its .bin."""
    ov.serialize(Maker(f"{seed}/{number}").model(), str(path))
