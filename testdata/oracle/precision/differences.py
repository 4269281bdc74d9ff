"""Measures how far the outputs of models are off when they are made f16, with and without `--keep auto`.

    python3 differences.py --typelift target/debug/typelift [--random 300] [--models FOLDER …] [--seed 1] [--longest 400]

Needs openvino 2026.4.1 and numpy. Models are random ones and the .xml files of folders. Each is converted with
`--types f32=f16 --keep-io`, and computed in the types of its file by OpenVINO's reference code (`Model.evaluate`): plugins would choose
types of their own. That code lacks many operations, above all in f16.
A random model therefore consists of pieces that it computes in both types, and each piece is tested first. A real model is computed layer by layer, each in f32 by
the CPU plugin, and the results are rounded to the types of the file. An operation with bodies is one layer. What OpenVINO does
not compute so either is counted and left out.

Inputs are random numbers of a normal distribution, integers from 0 to 2. A difference is the
largest one of an output, relative to the largest number of that output and at least to 1. It is infinite if a number became infinite or NaN. Each model has a process of
its own and at most so many seconds, and the smallest file is the first.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy as np
import openvino as ov
from openvino import opset13 as op


class Pieces:
    """Builds random models. Each method that begins with `piece_` makes a tensor [B, S, H] from another of its kind and
    type."""

    def __init__(self, rng):
        self.rng = rng

    def numbers(self, x, values):
        return op.constant(np.asarray(values).astype(x.get_element_type().to_dtype()))

    def weights(self, x, *shape, scale=1.0):
        return self.numbers(x, self.rng.standard_normal(shape) * scale)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def mean(self, x):
        return op.reduce_mean(x, integers([-1]), True)

    def square(self, x):
        return self.pick(op.multiply(x, x), op.power(x, self.numbers(x, 2)))

    def epsilon(self, x):
        return self.numbers(x, self.pick(1e-3, 1e-5, 1e-6, 1e-8, 1e-12))

    def piece_linear(self, x):
        width = x.shape[-1]
        to = int(self.rng.integers(4, 65))
        made = op.matmul(x, self.weights(x, width, to, scale=width**-0.5), False, False)
        return op.add(made, self.weights(x, to))

    def piece_scale(self, x):
        return op.multiply(x, self.numbers(x, self.pick(0.01, 0.5, 3, 20, 200)))

    def piece_residual(self, x):
        return op.add(x, self.pick(op.relu, op.tanh, op.sigmoid)(x))

    def piece_layer_norm(self, x):
        centred = op.subtract(x, self.mean(x))
        variance = op.add(self.mean(self.square(centred)), self.epsilon(x))
        return op.multiply(op.divide(centred, op.sqrt(variance)), self.weights(x, x.shape[-1]))

    def piece_rms_norm(self, x):
        size = op.add(self.mean(self.square(x)), self.epsilon(x))
        return op.multiply(x, op.power(size, self.numbers(x, -0.5)))

    def piece_l2_norm(self, x):
        length = op.sqrt(op.reduce_sum(self.square(x), integers([-1]), True))
        return op.divide(x, self.pick(op.add, op.maximum)(length, self.epsilon(x)))

    def piece_shares(self, x):
        exponents = op.exp(self.pick(x, op.subtract(x, op.reduce_max(x, integers([-1]), True))))
        return op.divide(exponents, op.reduce_sum(exponents, integers([-1]), True))

    def piece_log_of_sum(self, x):
        return op.log(op.add(op.reduce_sum(op.exp(x), integers([-1]), True), op.abs(x)))

    def piece_attention(self, x):
        scores = op.matmul(x, x, False, True)
        mask = np.triu(np.full((x.shape[1], x.shape[1]), self.pick(-1e4, -65504, -1e9)), 1)
        scores = op.multiply(scores, self.numbers(x, x.shape[-1] ** -0.5))
        return op.matmul(op.softmax(op.add(scores, self.numbers(x, np.maximum(mask, -65504))), -1), x, False, False)

    def piece_positions(self, x):
        ends = [self.numbers(x, end) for end in (0, x.shape[1], 1)]
        steps = op.unsqueeze(op.range(*ends, output_type=x.get_element_type().to_string()), integers([-1]))
        turned = self.pick(op.sin, op.cos)(op.multiply(steps, self.numbers(x, self.pick(0.01, 1, 30))))
        return op.add(x, turned)

    def piece_distance(self, x):
        return op.sqrt(op.add(op.abs(op.subtract(x, self.mean(x))), self.epsilon(x)))

    def piece_logarithm(self, x):
        return op.log(op.add(op.abs(x), self.epsilon(x)))

    def piece_function(self, x):
        one_of = (op.relu, op.sigmoid, op.tanh, op.erf, op.sin, op.softplus, op.hswish, op.mish, op.hsigmoid, op.abs, op.negative)
        return self.pick(*one_of)(x)

    def piece_gelu(self, x):
        return op.gelu(x, self.pick("erf", "tanh"))

    def piece_halves(self, x):
        if x.shape[-1] % 2:
            return x
        one, two = op.split(x, integers(2), 2).outputs()
        return op.concat([op.negative(two), one], 2)

    def piece_turn(self, x):
        return op.transpose(x, integers([0, 2, 1]))

    def piece_some(self, x):
        at = self.rng.integers(0, x.shape[1], max(1, x.shape[1] // 2))
        return op.gather(x, integers(at), integers(1))

    def piece_longer(self, x):
        length = x.shape[1] * 2
        return op.tile(x, integers([1, 2, 1])) if length < 128 else op.slice(x, integers([0]), integers([16]), integers([1]), integers([1]))

    def piece_running_sum(self, x):
        return op.cum_sum(x, integers(1))

    def piece_difference(self, x):
        return op.squared_difference(x, self.mean(x))

    def piece_normalize(self, x):
        return op.mvn(x, integers([-1]), True, 1e-6, "inside_sqrt")

    def piece_clamp(self, x):
        return op.clamp(x, -self.pick(1.0, 10.0), 6.0)

    def piece_select(self, x):
        return op.select(op.greater(x, self.mean(x)), x, self.numbers(x, 0))

    def piece_levels(self, x):
        low, high = self.numbers(x, -4), self.numbers(x, 4)
        return op.fake_quantize(x, low, high, low, high, 256)


def integers(values):
    return op.constant(np.array(values, np.int64))


def is_computed(piece):
    """Returns whether OpenVINO's reference code computes a piece in f32 and in f16, for all random choices."""
    def of(kind, seed):
        x = op.parameter([1, 6, 8], kind)
        model = ov.Model([op.result(getattr(Pieces(np.random.default_rng(seed)), piece)(x))], [x], piece)
        tensor = ov.Tensor(x.get_element_type(), [1, 6, 8])
        tensor.data[...] = 1
        return model.evaluate([ov.Tensor(x.get_element_type(), [])], [tensor])

    try:
        return all(of(kind, seed) for kind in (np.float32, np.float16) for seed in range(8))
    except RuntimeError:
        return False


def random_model(pieces, seed, number):
    """Model NUMBER of SEED, always the same."""
    rng = np.random.default_rng([seed, number])
    made = Pieces(rng)
    x = op.parameter([1, int(rng.integers(2, 33)), int(rng.integers(4, 65))], np.float32, name="x")
    node, results = x, []
    for _ in range(rng.integers(4, 17)):
        node = getattr(made, made.pick(*pieces))(node)
        if rng.random() < 0.1:
            results.append(op.result(node))
    return ov.Model([*results, op.result(node)], [x], f"random {number}")


def inputs(model):
    """Random values for each input, always the same; in the order of the inputs."""
    rng, given = np.random.default_rng(7), []
    for p in model.inputs:
        kind, shape = p.get_element_type(), p.get_partial_shape()
        dims = [2, 2] if shape.rank.is_dynamic else [d.get_length() if d.is_static else max(2, d.get_min_length()) for d in shape]
        tensor = ov.Tensor(kind, dims)
        values = rng.standard_normal(dims) if kind.is_real() else rng.integers(0, 2 if kind == ov.Type.boolean else 3, dims)
        tensor.data[...] = values.astype(tensor.data.dtype)
        given.append(tensor)
    return given


def compute(node, given):
    """The outputs of a layer for tensors at its inputs: computed in f32, then rounded; what is out of range becomes infinite."""
    parameters, tensors = [], []
    for port, tensor in zip(node.inputs(), given):
        if port.get_source_output().get_node().get_type_name() == "Constant":
            continue
        if tensor.get_element_type().is_real():
            source = ov.op.Parameter(tensor.get_element_type(), ov.Shape(tensor.shape))
            parameters.append(source)
            tensors.append(tensor)
        else:
            source = ov.op.Constant(tensor)
        port.replace_source_output(source.output(0))
    wide = ov.Model([op.result(op.convert(o, "f32") if o.get_element_type() == ov.Type.f16 else o) for o in node.outputs()], parameters, "layer")
    computed = ov.Core().compile_model(wide, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})(tensors)
    made = []
    for output, values in zip(node.outputs(), computed.values()):
        tensor = ov.Tensor(output.get_element_type(), list(values.shape))
        tensor.data[...] = values.astype(tensor.data.dtype)
        made.append(tensor)
    return made


def by_layers(model, given):
    """The outputs of a model, computed layer by layer."""
    values, made = {}, []
    for parameter, tensor in zip(model.get_parameters(), given):
        values[parameter.get_friendly_name(), 0] = tensor
    results = [result.get_friendly_name() for result in model.get_results()]
    feeds = lambda node: [values[i.get_source_output().get_node().get_friendly_name(), i.get_source_output().get_index()] for i in node.inputs()]
    for node in model.get_ordered_ops():
        name, kind = node.get_friendly_name(), node.get_type_name()
        if kind in ("Parameter", "Result", "Assign"):
            made = made + [(name, feeds(node)[0])] if kind == "Result" else made
            continue
        if kind in ("RandomUniform", "Multinomial"):
            raise RuntimeError("random numbers")
        outputs = [ov.Tensor(node.data)] if kind == "Constant" else feeds(node)[:1] if kind == "ReadValue" else compute(node, feeds(node))
        values.update({(name, port): tensor for port, tensor in enumerate(outputs)})
    made = dict(made)
    return [made[name] for name in results]


def one(typelift, xml, folder, by_layer):
    """Two differences, or the reason why there is none."""
    def evaluate(path):
        model = ov.Core().read_model(path)
        given = inputs(model)
        made = [ov.Tensor(o.get_element_type(), []) for o in model.outputs]
        if not by_layer:
            model.evaluate(made, given)
        else:
            made = by_layers(model, given)
        return [np.array(t.data).astype(np.float64) for t in made]

    def difference(one, two):
        worst = 0.0
        for a, b in zip(one, two):
            if a.shape != b.shape:
                return float("inf")
            if a.size:
                d = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
                finite = np.abs(a[np.isfinite(a)])
                d = np.nan_to_num(d, nan=np.inf, posinf=np.inf) / max(1.0, finite.max(initial=0))
                worst = max(worst, float(d.max()))
        return worst

    try:
        plain = evaluate(xml)
    except Exception as error:
        return "OpenVINO does not compute it: " + str(error).strip()[-60:]
    worst = []
    for options in ([], ["--keep", "auto"]):
        out = f"{folder}/{len(options)}.xml"
        done = subprocess.run([typelift, "convert", xml, "--types", "f32=f16", "--keep-io", *options, "-o", out], capture_output=True, text=True)
        if done.returncode:
            return "refused by typelift: " + done.stderr.strip()[:200]
        try:
            made = evaluate(out)
        except Exception as error:
            return "OpenVINO does not compute it in f16: " + str(error).strip()[-60:]
        worst.append(difference(plain, made))
    return worst


def apart(longest, *arguments):
    """Runs `one` in a process of its own with a time limit."""
    up, down = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(longest)
        try:
            with os.fdopen(down, "w") as pipe:
                json.dump(one(*arguments), pipe)
        finally:
            os._exit(0)
    os.close(down)
    with os.fdopen(up) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else "took too long" if os.WTERMSIG(status) == signal.SIGALRM else "OpenVINO crashed"


def models(arguments, folder):
    every = [name for name in dir(Pieces) if name.startswith("piece_")]
    pieces = [name for name in every if is_computed(name)]
    print("random models have no", ", ".join(name[6:] for name in every if name not in pieces))
    for number in range(arguments.random):
        ov.save_model(random_model(pieces, arguments.seed, number), folder / "case.xml", compress_to_fp16=False)
        yield "random", f"model {number}", folder / "case.xml"
    for models in arguments.models:
        for xml in sorted(models.glob("*.xml"), key=lambda xml: xml.stat().st_size):
            if not xml.stem.endswith((".ref", ".moc")) and ".promote" not in xml.stem:
                yield "real", xml.stem, xml


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--random", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--longest", type=int, default=400, help="how many seconds a model may take")
    arguments = parser.parse_args()
    found, left_out = collections.defaultdict(list), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, xml in models(arguments, pathlib.Path(folder)):
            answer = apart(arguments.longest, arguments.typelift, str(xml), folder, kind == "real")
            print(f"    {name}:", answer if isinstance(answer, str) else "{:.3g}, with --keep auto {:.3g}".format(*answer), flush=True)
            if isinstance(answer, str):
                left_out[kind, answer] += 1
            else:
                found[kind].append((answer, name))
    for kind, differences in found.items():
        print(f"{kind}: {len(differences)} models")
        for what, at in (("f16", 0), ("f16 with --keep auto", 1)):
            worst = sorted(d[at] for d, _ in differences)
            over = [sum(w > limit for w in worst) for limit in (1e-3, 1e-2, 0.1)]
            infinite = sum(w == float("inf") for w in worst)
            print(f"| {kind} | {what} | {len(worst)} | {worst[len(worst) // 2]:.2g} | {over[0]} | {over[1]} | {over[2]} | {infinite} |")
    for (kind, reason), count in left_out.most_common():
        print(f"{count} {kind} left out: {reason}")


if __name__ == "__main__":
    main()
