"""Takes cases.jsonl.gz anew: random models with If, Loop and TensorIterator, up to three bodies deep, and what OpenVINO
infers for every layer inside and outside of the bodies.

Usage: python take.py OUT.jsonl.gz [--seed N] [--count N]     (needs openvino 2026.4.1 and numpy)

A line is a JSON object: `xml`, `bin` (base64), and `layers`, a list of [name, [[type, shape], ...], {body: layers}]
without Results, or `error`. The models depend on the seed only. Half of them have one or two places of their port maps
damaged. Each is read in a process of its own, since some of the damage makes OpenVINO crash; such models are left out.
"""

import argparse
import base64
import gzip
import json
import math
import multiprocessing
import random
import re
import struct

PORT_TYPES = {"boolean": "BOOL", "f32": "FP32", "f16": "FP16", "i64": "I64", "i32": "I32", "dynamic": "dynamic"}
CODES = {"boolean": "B", "f32": "f", "f16": "e", "i64": "q", "i32": "i"}
BODIES = {"If": ["then_body", "else_body"], "Loop": ["body"], "TensorIterator": ["body"]}
TYPES = ["f32", "f32", "f32", "i64", "i32", "f16"]


class Graph:
    """A graph being written. A tensor is a pair of the layer's id and the output's position."""

    def __init__(self, weights=None):
        self.layers, self.edges, self.input_counts = [], [], []
        self.weights = bytearray() if weights is None else weights
        self.is_body = weights is not None

    def add(self, kind, version, attributes, inputs=(), outputs=1, inside="", port_type="UNSPECIFIED"):
        id, first_output = len(self.layers), len(inputs)
        data = "<data%s/>" % "".join(f' {name}="{value}"' for name, value in attributes.items()) if attributes else ""
        ports = "".join(f'<port id="{port}"/>' for port in range(first_output))
        port_type = f'precision="{port_type}"'
        outs = "".join(f'<port id="{first_output + port}" {port_type}/>' for port in range(outputs))
        ports = (f"<input>{ports}</input>" if ports else "") + (f"<output>{outs}</output>" if outs else "")
        head = f'<layer id="{id}" name="{kind}{id}" type="{kind}" version="opset{version}">'
        self.layers.append(f"{head}{data}{inside}{ports}</layer>")
        self.input_counts.append(first_output)
        for port, (source, output) in enumerate(inputs):
            source_port = self.input_counts[source] + output
            self.edges.append(
                f'<edge from-layer="{source}" from-port="{source_port}" to-layer="{id}" to-port="{port}"/>'
            )
        return id, 0

    def parameter(self, type, shape):
        return self.add("Parameter", 1, {"shape": shape, "element_type": type}, port_type=PORT_TYPES[type])

    def constant(self, type, dims, values):
        bytes = struct.pack(f"<{len(values)}{CODES[type]}", *values)
        shape = ", ".join(map(str, dims))
        place = {"element_type": type, "shape": shape, "offset": len(self.weights), "size": len(bytes)}
        self.weights += bytes
        return self.add("Const", 1, place, port_type=PORT_TYPES[type])

    def number(self, value, type="i64"):
        return self.constant(type, [], [value])

    def list(self, *values):
        return self.constant("i64", [len(values)], values)

    def result(self, tensor):
        return self.add("Result", 1, {}, [tensor], 0)[0]

    def text(self):
        return f"<layers>{''.join(self.layers)}</layers><edges>{''.join(self.edges)}</edges>"


def entry(direction, external, internal, **slices):
    slices = "".join(f' {name}="{value}"' for name, value in slices.items())
    return f'<{direction} external_port_id="{external}" internal_layer_id="{internal}"{slices}/>'


class Models:
    """Models by the numbers of a random generator. A value is a tensor, its type, and the dims it has where nothing is
    dynamic."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, probability):
        return self.random.random() < probability

    def dims(self):
        return [0 if self.chance(0.03) else self.random.choice([1, 2, 3, 4]) for _ in range(self.random.randint(0, 3))]

    def shape(self, dims, dynamic):
        """The text of a shape that a tensor of these dims can have."""
        if self.chance(dynamic * 0.15):
            return "..."
        any_, range_, open_ = 0.4 * dynamic, 0.7 * dynamic, 0.8 * dynamic
        texts = []
        for dim in dims:
            at = self.random.random()
            low, high = max(0, dim - self.random.randint(0, 2)), dim + self.random.randint(0, 3)
            texts.append("?" if at < any_ else f"{low}..{high}" if at < range_ else f"{low}.." if at < open_ else str(dim))
        return ",".join(texts)

    def ones(self, graph, type, dims):
        return graph.constant(type, dims, [1] * math.prod(dims))

    def is_larger(self, graph, tensor, limit):
        """Returns whether a tensor has more elements than `limit`, once its shape is known."""
        shape = graph.add("ShapeOf", 3, {"output_type": "i64"}, [tensor])
        count = graph.add("ReduceProd", 1, {"keep_dims": "false"}, [shape, graph.list(0)])
        return graph.add("Greater", 1, {"auto_broadcast": "numpy"}, [count, graph.number(limit)])

    def step(self, graph, values, depth):
        """Adds a value that is computed from the existing ones."""
        tensor, type, dims = self.random.choice(values)
        axis = self.random.randrange(len(dims)) if dims else 0
        steps = ["relu", "relu", "add", "add", "unsqueeze", "convert", "shape", "constant", "variable"]
        steps += ["grow", "grow", "flatten", "reduce", "broadcast", "slice"] if dims else []
        steps += ["body"] * 5 if depth else []
        match self.random.choice(steps):
            case "add":
                others = [value for value in values if value[1] == type and value[2] in (dims, [1])]
                other = self.random.choice(others)[0] if others else tensor
                return graph.add("Add", 1, {"auto_broadcast": "numpy"}, [tensor, other]), type, dims
            case "unsqueeze":
                axis = self.random.randint(0, len(dims))
                new = dims[:axis] + [1] + dims[axis:]
                return graph.add("Unsqueeze", 1, {}, [tensor, graph.list(axis)]), type, new
            case "convert":
                other = self.random.choice(TYPES)
                return graph.add("Convert", 1, {"destination_type": other}, [tensor]), other, dims
            case "shape":
                return graph.add("ShapeOf", 3, {"output_type": "i64"}, [tensor]), "i64", [len(dims)]
            case "constant":
                dims = self.dims()
                return self.ones(graph, type, dims), type, dims
            case "variable":
                name = {"variable_id": f"{'body' if graph.is_body else 'model'}{len(graph.weights)}_{len(graph.layers)}"}
                limits = {"variable_type": type, "variable_shape": self.shape(dims, 0.5) if self.chance(0.3) else "..."}
                read = graph.add("ReadValue", 6, name | limits, [tensor])
                if self.chance(0.7):
                    graph.add("Assign", 6, name, [read if self.chance(0.5) else tensor], 0)
                return read, type, dims
            case "grow":
                new = dims[:axis] + [dims[axis] * 2] + dims[axis + 1 :]
                return graph.add("Concat", 1, {"axis": axis}, [tensor, tensor]), type, new
            case "flatten":
                flat = graph.add("Reshape", 1, {"special_zero": "false"}, [tensor, graph.list(-1)])
                return flat, type, [math.prod(dims)]
            case "reduce":
                keep_dims = self.random.choice(["true", "false"])
                sum = graph.add("ReduceSum", 1, {"keep_dims": keep_dims}, [tensor, graph.list(axis)])
                return sum, type, dims[:axis] + [1] * (keep_dims == "true") + dims[axis + 1 :]
            case "broadcast":
                shape = graph.add("ShapeOf", 3, {"output_type": "i64"}, [tensor])
                return graph.add("Broadcast", 3, {"mode": "numpy"}, [graph.number(1, "f32"), shape]), "f32", dims
            case "slice":
                start, stop, step = graph.list(0), graph.list(self.random.choice([1, 2, -1])), graph.list(1)
                new = dims[:axis] + [max(1, dims[axis] // 2)] + dims[axis + 1 :]
                return graph.add("Slice", 8, {}, [tensor, start, stop, step, graph.list(axis)]), type, new
            case "body":
                return self.with_body(graph, values, depth - 1)
        return graph.add("ReLU", 1, {}, [tensor]), type, dims

    def with_body(self, graph, values, depth):
        return self.random.choice([self.if_, self.loop, self.loop, self.tensor_iterator])(graph, values, depth)

    def body(self, graph, given, depth):
        """A body with a Parameter for each given type and dims, which declares something like it or something else."""
        body, parameters, values = Graph(graph.weights), [], []
        for type, dims in given:
            type = type if self.chance(0.93) else self.random.choice(TYPES)
            like = dims if self.chance(0.9) else self.dims()
            parameter = body.parameter(type, self.shape(like, 0.5) if self.chance(0.8) else "...")
            parameters.append(parameter[0])
            values.append((parameter, type, dims))
        values = values or [(self.ones(body, "f32", [2]), "f32", [2])]
        for _ in range(self.random.randint(1, 4)):
            values.append(self.step(body, values, depth))
        return body, parameters, values

    def like(self, values, type):
        """A value of this type, as a rule."""
        return self.random.choice([value for value in values if value[1] == type and self.chance(0.95)] or values)

    def whole(self, values):
        """Chooses how slices are joined into a value, or takes the last one."""
        axis = self.random.randrange(max(1, len(values[2])))
        return {"axis": axis, "start": 0, "end": -1, "stride": 1, "part_size": 1} if self.chance(0.7) else {}

    def if_(self, graph, values, depth):
        inputs = [self.random.choice(values) for _ in range(self.random.randint(1, 3))]
        conditions = [
            lambda: graph.constant("boolean", self.random.choice([[], [1]]), [self.random.randint(0, 1)]),
            lambda: self.is_larger(graph, inputs[0][0], self.random.choice([2, 4, 8])),
        ]
        if not graph.is_body:
            conditions += [lambda: graph.parameter("boolean", self.random.choice(["", "1", "?"]))] * 2
        condition = self.random.choice(conditions)()
        text, outputs = "", None
        for branch in ["then", "else"]:
            used = [at for at in range(len(inputs)) if self.chance(0.85)]
            body, parameters, inner = self.body(graph, [inputs[at][1:] for at in used], depth)
            if outputs is None:
                outputs = chosen = [self.random.choice(inner) for _ in range(self.random.randint(1, 2))]
            else:
                chosen = [self.like(inner, type) for _, type, _ in outputs]
            results = [body.result(tensor) for tensor, _, _ in chosen]
            entries = [entry("input", 1 + at, parameter) for at, parameter in zip(used, parameters)]
            entries += [entry("output", 1 + len(inputs) + at, result) for at, result in enumerate(results)]
            text += f"<{branch}_port_map>{''.join(entries)}</{branch}_port_map>"
            text += f"<{branch}_body>{body.text()}</{branch}_body>"
        id, _ = graph.add("If", 8, {}, [condition] + [tensor for tensor, _, _ in inputs], len(outputs), text)
        port = self.random.randrange(len(outputs))
        return (id, port), *outputs[port][1:]

    def iterate(self, graph, values, depth, own, kind, version, parts):
        """A Loop or a TensorIterator whose inputs of its own are `own`."""
        inputs = [self.random.choice(values) for _ in range(self.random.randint(1, 3))]
        given, slices = [], []
        for _, type, dims in inputs:
            slices.append({})
            if dims and self.chance(0.35):
                axis, part = self.random.randrange(len(dims)), self.random.choice(parts)
                dims = dims[:axis] + [part] + dims[axis + 1 :]
                backwards = self.chance(0.3)
                start, end = (-1, 0) if backwards else (self.random.choice([0, 0, 1]), -1)
                stride = -part if backwards else part
                slices[-1] = {"axis": axis, "start": start, "end": end, "stride": stride, "part_size": part}
            given.append((type, dims))
        body, parameters, inner = self.body(graph, given, depth)
        entries, back_edges, outputs = [], [], []
        for at, (parameter, cut) in enumerate(zip(parameters, slices)):
            entries.append(entry("input", len(own) + at, parameter, **cut))
            if not cut and self.chance(0.5):
                value = self.like(inner, inputs[at][1])
                result = body.result(value[0])
                back_edges.append(f'<edge from-layer="{result}" to-layer="{parameter}"/>')
                if self.chance(0.8):
                    outputs.append((result, value, {}))
        for _ in range(self.random.randint(not outputs, 2)):
            if outputs and self.chance(0.4):
                result, value, _ = outputs[0]
            else:
                value = self.random.choice(inner)
                result = body.result(value[0])
            outputs.append((result, value, self.whole(value)))
        if kind == "Loop":
            entries += self.loop_ports(body, inner)
        first = len(own) + len(inputs)
        entries += [entry("output", first + at, result, **cut) for at, (result, _, cut) in enumerate(outputs)]
        text = f"<port_map>{''.join(entries)}</port_map>"
        text += f"<back_edges>{''.join(back_edges)}</back_edges>" if back_edges else ""
        text += f"<body>{body.text()}</body>"
        id, _ = graph.add(kind, version, {}, own + [tensor for tensor, _, _ in inputs], len(outputs), text)
        port = self.random.randrange(len(outputs))
        return (id, port), *outputs[port][1][1:]

    def loop_ports(self, body, inner):
        """The counter and the condition of a Loop."""
        entries = []
        if self.chance(0.4):
            counter = body.parameter(self.random.choice(["i64", "i32"]), self.random.choice(["", "1"]))
            entries.append(entry("input", -1, counter[0], purpose="current_iteration"))
        match self.random.choice(["constant"] * 5 + ["computed", "handed on", "unknown"]):
            case "constant":
                condition = body.number(self.chance(0.85), "boolean")
            case "computed":
                condition = self.is_larger(body, inner[0][0], 2)
            case "handed on":
                condition = body.parameter("boolean", "")
                entries.append(entry("input", 1, condition[0]))
            case "unknown":
                condition = body.parameter("boolean", "")
        entries.append(entry("output", -1, body.result(condition), purpose="execution_condition"))
        return entries

    def loop(self, graph, values, depth):
        counts = [lambda: graph.number(self.random.choice([3, 3, 2, 1, 0, -1]))] * 3
        counts += [lambda: graph.constant("i32", [1], [4])]
        conditions = [lambda: graph.number(1, "boolean")] * 4 + [lambda: graph.number(0, "boolean")]
        if not graph.is_body:
            counts.append(lambda: graph.parameter("i64", ""))
            conditions.append(lambda: graph.parameter("boolean", ""))
        own = [self.random.choice(counts)(), self.random.choice(conditions)()]
        return self.iterate(graph, values, depth, own, "Loop", 5, [1])

    def tensor_iterator(self, graph, values, depth):
        depth = depth if self.chance(0.3) else 0
        return self.iterate(graph, values, depth, [], "TensorIterator", 1, [1, 1, 2])

    def model(self):
        graph, values = Graph(), []
        for _ in range(self.random.randint(1, 3)):
            type, dims = self.random.choice(TYPES), self.dims()
            shape = self.shape(dims, self.random.choice([0, 0.3, 0.7]))
            values.append((graph.parameter(type, shape), type, dims))
        for _ in range(self.random.randint(1, 2)):
            values.append(self.with_body(graph, values, self.random.choice([0, 0, 1, 1, 2])))
            graph.result(values[-1][0])
        graph.result(self.step(graph, values, 0)[0])
        return f'<net name="bodies" version="11">{graph.text()}</net>', bytes(graph.weights)

    def damaged(self, xml):
        """The same text with another number, or something missing, in one or two places of its port maps."""
        number = lambda least, most: f'"{self.random.randint(least, most)}"'
        damages = [
            (r'external_port_id="-?\d+"', lambda found: "external_port_id=" + number(-1, 5)),
            (r'internal_layer_id="\d+"', lambda found: "internal_layer_id=" + number(0, 9)),
            (r"<(then_body|else_body|body)>.*?</\1>", lambda found: ""),
            (r"<(then_port_map|else_port_map|port_map)>.*?</\1>", lambda found: ""),
            (r' axis="\d+"', lambda found: self.random.choice(["", " axis=" + number(-1, 3)])),
            (r' part_size="\d+"', lambda found: " part_size=" + self.random.choice(['"2"', '"3"', '"-1"', '"-2"'])),
            (r' (start|end)="-?\d+"', lambda found: f" {found[1]}=" + number(-4, 5)),
            (r' purpose="\w+"', lambda found: self.random.choice(["", ' purpose="other"'])),
            (r"<edge (from-layer=\S+) (to-layer=\S+)/>", lambda found: f"<edge {found[1]} to-layer={number(0, 4)}/>"),
            (r"<(input|output) external[^>]*/>", lambda found: found[0] * self.random.choice([0, 2])),
        ]
        for _ in range(self.random.randint(1, 2)):
            pattern, damage = self.random.choice(damages)
            if places := list(re.finditer(pattern, xml)):
                found = self.random.choice(places)
                xml = xml[: found.start()] + damage(found) + xml[found.end() :]
        return xml


def answer(xml, weights, reply, again=False):
    """Sends OpenVINO's answer for a model; with `again`, its answer after a second pass over each body."""
    import numpy
    import openvino

    def functions(layer):
        many = layer.get_type_name() == "If"
        return [layer.get_function(at) for at in range(2)] if many else [layer.get_function()]

    def layers(model):
        found = []
        for layer in model.get_ordered_ops():
            kind = layer.get_type_name()
            bodies = {}
            if kind in BODIES:
                inside = functions(layer)
                if again:
                    for function in inside:
                        function.validate_nodes_and_infer_types()
                bodies = dict(zip(BODIES[kind], map(layers, inside)))
            outputs = [[out.get_element_type().get_type_name(), str(out.get_partial_shape())] for out in layer.outputs()]
            if kind != "Result":
                found.append([layer.get_friendly_name(), outputs, bodies])
        return found

    try:
        tensor = openvino.Tensor(numpy.frombuffer(weights or b"\0", dtype=numpy.uint8))
        reply.send({"layers": layers(openvino.Core().read_model(xml.encode(), tensor))})
    except RuntimeError as error:
        text = " ".join(str(error).split())
        reply.send({"error": text[-200:]})


def ask(xml, weights):
    """The answer, or None where OpenVINO crashes or goes on for more than 20 seconds."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=answer, args=(xml, weights, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(20) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    arguments = parser.parse_args()
    with gzip.GzipFile(arguments.out, "wb", mtime=0) as out:
        for number in range(arguments.count):
            models = Models(arguments.seed * 1_000_003 + number)
            xml, weights = models.model()
            if number % 2:
                xml = models.damaged(xml)
            if found := ask(xml, weights):
                case = {"xml": xml, "bin": base64.b64encode(weights).decode(), **found}
                out.write(json.dumps(case, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
