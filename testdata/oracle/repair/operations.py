"""Further random models: every branch is an operation whose attributes decide what is computed, with bodies and states.

`make(seed, number, path)` writes PATH (.xml) and its .bin with the installed OpenVINO. `recorded(rng, path)` writes a model of one
operation that the oracle of this repository recorded. `habits(root, rng)` gives a model the habits of another writer.
"""
import base64
import functools
import gzip
import json
import pathlib
import random

import numpy as np
import openvino as ov
import openvino.opset13 as ops

HERE = pathlib.Path(__file__).parent


def ints(*values):
    return ops.constant(np.array(values, np.int64))


class Maker:
    """A random model of an image and a sequence, with several outputs."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.values = np.random.default_rng(self.rng.randrange(1 << 30))
        self.parameters = []

    def input(self, dims, type=np.float32):
        made = ops.parameter(dims, type, f"in{len(self.parameters)}")
        made.output(0).set_names({f"in{len(self.parameters)}"})
        self.parameters.append(made)
        return made

    def constant(self, *dims):
        return ops.constant(self.values.standard_normal(dims).astype(np.float32))

    def model(self):
        steps = [it for it in dir(self) if it.startswith("step_")]
        ends = [getattr(self, name)() for name in self.rng.sample(steps, self.rng.randint(2, 4))]
        results = []
        for at, end in enumerate(ends):
            output = end.output(0) if hasattr(end, "output") else end
            output.set_names({f"out{at}"})
            results.append(ops.result(output))
        return ov.Model(results, self.parameters, "operations")

    def image(self, channels=4, size=8):
        batch = self.rng.choice([1, 2, -1])
        return self.input([batch, channels, size, size])

    def sequence(self, length=6, width=8):
        return self.input([self.rng.choice([1, 2]), length, width])

    def step_transposed_convolution(self):
        x = self.image()
        return ops.convolution_backprop_data(x, self.constant(4, 3, 3, 3), strides=[2, 2], pads_begin=[1, 0], pads_end=[0, 1], dilations=[1, 1], output_padding=[1, 0])

    def step_slices(self):
        x = self.image()
        y = ops.strided_slice(x, ints(0, 1, 0, 2), ints(0, 3, 0, 8), ints(1, 1, 2, 1), [1, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0])
        z = ops.slice(x, ints(0, 1), ints(2, 7), ints(1, 2), ints(1, 3))
        return ops.concat([ops.reduce_max(y, ints(2, 3), False), ops.reduce_min(z, ints(-1, -2), False)], 1)

    def step_lstm(self):
        x = self.input([2, 5, 8])
        hidden = 4
        state = [ops.constant(np.zeros([2, 1, hidden], np.float32)) for _ in range(2)]
        h = ops.lstm_sequence(x, *state, ints(5, 3), self.constant(1, 4 * hidden, 8), self.constant(1, 4 * hidden, hidden), self.constant(1, 4 * hidden), hidden, self.rng.choice(["forward", "reverse"]), ["sigmoid", "tanh", "tanh"], [], [], float(self.rng.choice([0, 3])))
        return ops.concat([ops.squeeze(h.output(1), ints(1)), ops.squeeze(h.output(2), ints(1))], 1)

    def step_gathers(self):
        x = self.sequence()
        ids = self.input([4], np.int32)
        taken = ops.gather(x, ids, ints(1), 0)
        picked = ops.gather_elements(taken, ops.constant(self.values.integers(0, 4, [1, 4, 8]).astype(np.int64)), 1) if x.partial_shape[0] == 1 else taken
        return ops.reverse_sequence(picked, ints(*[3] * x.partial_shape[0].get_length()), 0, 1)

    def step_scatter(self):
        x = self.input([6, 8])
        y = ops.scatter_update(x, ints(1, 3), self.constant(2, 8), ints(0))
        z = ops.scatter_elements_update(y, ops.constant(np.array([[0, 2]], np.int64)), self.constant(1, 2), ints(1), self.rng.choice(["none", "sum"]))
        return ops.scatter_nd_update(z, ops.constant(np.array([[0], [5]], np.int64)), self.constant(2, 8))

    def step_blocks(self):
        x = self.image()
        y = ops.depth_to_space(x, self.rng.choice(["blocks_first", "depth_first"]), 2)
        return ops.space_to_depth(ops.shuffle_channels(ops.concat([y, y], 1), 1, 2), "blocks_first", 4)

    def step_normalized(self):
        x = self.image()
        y = ops.lrn(x, ints(1), 1e-4, 0.75, 2.0, 3)
        y = ops.normalize_l2(y, ints(1, 2), 1e-6, self.rng.choice(["add", "max"]))
        y = ops.group_normalization(y, self.constant(4), self.constant(4), 2, 1e-3)
        return ops.batch_norm_inference(y, self.constant(4), self.constant(4), self.constant(4), ops.constant(np.ones(4, np.float32)), 1e-3)

    def step_attention(self):
        q = self.input([1, 2, 5, 8])
        k = self.input([1, 2, 6, 8])
        y = ops.scaled_dot_product_attention(q, k, self.constant(1, 2, 6, 8), self.constant(1, 1, 5, 6), causal=self.rng.random() < 0.5)
        return ops.einsum([y, self.constant(2, 8, 3)], "bhld,hdk->blk")

    def step_counted(self):
        x = self.input([3, 10])
        top = ops.topk(x, ints(3)[0] if False else ops.constant(np.int64(3)), 1, self.rng.choice(["max", "min"]), self.rng.choice(["value", "index"]), index_element_type=self.rng.choice(["i32", "i64"]))
        hot = ops.one_hot(top.output(1), ops.constant(np.int64(10)), ops.constant(np.float32(2)), ops.constant(np.float32(-1)), self.rng.choice([-1, 1]))
        return ops.cum_sum(hot, ops.constant(np.int64(1)), exclusive=self.rng.random() < 0.5, reverse=self.rng.random() < 0.5)

    def step_spread(self):
        x = self.input([3, 1, 4])
        y = ops.tile(ops.broadcast(x, ints(3, 2, 4)), ints(1, 2, 1))
        z = ops.pad(y, ints(0, 1, 0), ints(0, 0, 2), "constant", ops.constant(np.float32(7)))
        return ops.roll(z, ints(1, 2), ints(0, 2))

    def step_loop(self):
        x = self.input([2, 4])
        before, step = ops.parameter([2, 4], np.float32, "before"), ops.parameter([2, 4], np.float32, "step")
        after = ops.add(ops.multiply(before, ops.constant(np.float32(0.5))), step)
        go_on = ops.constant(np.array(True))
        body = ov.Model([go_on, after], [before, step], "body")
        loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)))
        loop.set_function(body)
        loop.set_special_body_ports([-1, 0])
        loop.set_merged_input(before, x.output(0), after.output(0))
        loop.set_invariant_input(step, self.constant(2, 4).output(0))
        last = loop.get_iter_value(after.output(0), -1)
        return ops.concat([last, loop.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 0)], 0)

    def step_choice(self):
        x, wanted = self.input([2, 4]), self.input([], np.bool_)
        ends = []
        for step in (lambda it: ops.relu(it), lambda it: ops.subtract(ops.constant(np.float32(1)), it)):
            inner = ops.parameter([2, 4], np.float32)
            ends.append((inner, ops.result(step(inner))))
        choice = ops.if_op(wanted.output(0))
        choice.set_then_body(ov.Model([ends[0][1]], [ends[0][0]], "then"))
        choice.set_else_body(ov.Model([ends[1][1]], [ends[1][0]], "else"))
        choice.set_input(x.output(0), ends[0][0], ends[1][0])
        return ops.elu(choice.set_output(ends[0][1], ends[1][1]), 0.7)

    def step_iterated(self):
        x = self.input([1, 6, 4])
        piece, before = ops.parameter([1, 2, 4], np.float32), ops.parameter([1, 1, 4], np.float32)
        after = ops.add(ops.reduce_sum(piece, ints(1), True), before)
        body = ov.Model([ops.result(after)], [piece, before], "body")
        iterator = ops.tensor_iterator()
        iterator.set_function(body)
        iterator.set_sliced_input(piece, x.output(0), self.rng.choice([0, -1]), 2, 2, -1, 1) if False else iterator.set_sliced_input(piece, x.output(0), 0, 2, 2, -1, 1)
        iterator.set_merged_input(before, self.constant(1, 1, 4).output(0), after.output(0))
        return iterator.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 1)

    def step_regions(self):
        x = self.input([1, 4, 8, 8])
        boxes = ops.constant(np.array([[0, 0, 4, 4], [1, 2, 7, 6]], np.float32))
        y = ops.roi_align(x, boxes, ops.constant(np.array([0, 0], np.int32)), 2, 3, 2, 1.0, self.rng.choice(["avg", "max"]), "half_pixel_for_nn")
        return ops.adaptive_max_pool(y, ints(1, 2), "i32").output(0)

    def step_grid(self):
        x = self.input([1, 2, 6, 6])
        y = ops.grid_sample(x, self.constant(1, 3, 4, 2), dict(align_corners=self.rng.random() < 0.5, mode=self.rng.choice(["bilinear", "nearest"]), padding_mode=self.rng.choice(["zeros", "border"])))
        return ops.interpolate(y, ints(6, 9), "linear", "sizes", [0, 0], [0, 0], self.rng.choice(["align_corners", "asymmetric"]), "floor", False, -0.5, ints(2, 3))

    def step_buckets(self):
        x = self.input([4, 5])
        y = ops.bucketize(x, ops.constant(np.array([-1, 0, 1], np.float32)), self.rng.choice(["i64", "i32"]), self.rng.random() < 0.5)
        z = ops.select(ops.greater_equal(y, ops.convert_like(ops.constant(np.int64(2)), y)), x, ops.mod(x, ops.constant(np.float32(2))))
        return ops.squared_difference(z, ops.power(x, ops.constant(np.float32(2))))

    def step_shapes(self):
        x = self.input([-1, 6, 4])
        size = ops.gather(ops.shape_of(x, "i64"), ints(0), ops.constant(np.int64(0)))
        y = ops.reshape(x, ops.concat([size, ints(-1)], 0), False)
        return ops.matmul(y, self.constant(24, 3), False, False)

    def step_pools(self):
        x = self.image(4, 9)
        y = ops.max_pool(x, [2, 1], [1, 2], [1, 0], [0, 1], [2, 2], self.rng.choice(["floor", "ceil"]), "explicit", "i64", 1).output(0)
        return ops.avg_pool(y, [1, 2], [1, 1], [0, 0], [2, 2], self.rng.random() < 0.5, "floor")


def make(seed, number, path):
    """Writes model NUMBER of a seed to PATH and its .bin."""
    rng = random.Random(f"{seed}/{number}")
    while True:
        try:
            ov.serialize(Maker(rng.randrange(1 << 40)).model(), str(path))
            return
        except RuntimeError:
            continue


@functools.cache
def records(name):
    with gzip.open(HERE.parent / name / "cases.jsonl.gz", "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [(case["xml"], case["bin"]) for case in cases if case.get("accept", "error" not in case) and case["bin"]]


def recorded(rng, path):
    """Writes a recorded model of one operation, or of bodies."""
    text, weights = rng.choice(records(rng.choice(["opzoo", "opzoo", "bodies"])))
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(base64.b64decode(weights))


def habits(root, rng):
    """Writes a tree as another program does: ports that declare less, or what was true once, and other ids."""
    way = rng.choice(["none", "none", "none", "silent ports", "no dims", "outdated batch", "ids with gaps", "edges shuffled", "layers shuffled", "ids reversed"])
    layers, edges = root.find("layers"), root.find("edges")
    if way in ("silent ports", "no dims"):
        for layer in root.iter("layer"):
            for port in list(layer.findall("input/port")) + list(layer.findall("output/port")):
                if way == "silent ports":
                    port.attrib.pop("precision", None)
                for dim in port.findall("dim"):
                    port.remove(dim)
    elif way == "outdated batch":
        for layer in layers:
            data = layer.find("data")
            if layer.get("type") == "Parameter" and data.get("shape", "").split(",")[0].isdigit():
                data.set("shape", ",".join([str(int(data.get("shape").split(",")[0]) + 1), *data.get("shape").split(",")[1:]]))
    elif way in ("ids with gaps", "ids reversed"):
        count = len(layers)
        ids = {it.get("id"): str(10 + 3 * at if way == "ids with gaps" else count - 1 - at) for at, it in enumerate(layers)}
        for layer in layers:
            layer.set("id", ids[layer.get("id")])
        for edge in edges:
            for end in ("from-layer", "to-layer"):
                edge.set(end, ids[edge.get(end)])
    elif way in ("edges shuffled", "layers shuffled"):
        part = edges if way == "edges shuffled" else layers
        children = list(part)
        for child in children:
            part.remove(child)
        # Parameters and Results keep their order, which is that of the model's inputs and outputs.
        ends = [it for it in children if it.get("type") in ("Parameter", "Result")]
        rng.shuffle(children)
        ends = iter(ends)
        part.extend(next(ends) if it.get("type") in ("Parameter", "Result") else it for it in children)
