"""Plants one change in each copy of a model and judges `typelift verify` by the copies that compute something else.

    python3 plant.py --typelift PATH [--seed 1] [--changes 5] MODEL.xml ...

A change scales or rolls a constant, changes an attribute, flips a transpose flag, or replaces an operation by another of the same
signature, also in bodies. OpenVINO itself decides which copies count: it runs them on large inputs that this script makes. One
more copy has other names and other offsets of weights, and must agree. Prints a line for each copy, and the totals.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

FLOATS = {"f32": np.float32, "f16": np.float16, "f64": np.float64}
ATTRIBUTES = {
    "Convolution": ("pads_begin", "dilations"), "GroupConvolution": ("pads_begin",), "MaxPool": ("kernel",), "AvgPool": ("exclude-pad",),
    "LSTMSequence": ("direction",), "GRUSequence": ("direction", "linear_before_reset"), "MVN": ("normalize_variance", "eps"),
    "Softmax": ("axis",), "Gelu": ("approximation_mode",), "Elu": ("alpha",), "Interpolate": ("mode", "coordinate_transformation_mode"),
    "NormalizeL2": ("eps_mode", "eps"), "CumSum": ("reverse", "exclusive"), "Pad": ("pad_mode",), "TopK": ("mode",), "Gather": ("batch_dims",),
    "DepthToSpace": ("mode",), "ScaledDotProductAttention": ("causal",), "PriorBox": ("offset", "flip"), "Proposal": ("base_size",),
    "NonMaxSuppression": ("sort_result_descending", "box_encoding"), "ROIAlign": ("mode",), "GroupNormalization": ("epsilon",), "OneHot": ("axis",),
    "FakeQuantize": ("levels",), "RMS": ("epsilon",), "GridSample": ("align_corners",), "Roll": (), "Concat": ("axis",), "HSwish": (),
}
VALUES = {
    "mode": {"nearest": "linear_onnx", "linear_onnx": "nearest", "linear": "nearest", "max": "min", "min": "max", "avg": "max",
             "blocks_first": "depth_first", "depth_first": "blocks_first", "cubic": "nearest"},
    "direction": {"forward": "reverse", "reverse": "forward"}, "approximation_mode": {"ERF": "TANH", "TANH": "ERF"},
    "coordinate_transformation_mode": {"half_pixel": "align_corners", "align_corners": "asymmetric", "asymmetric": "half_pixel", "pytorch_half_pixel": "asymmetric"},
    "eps_mode": {"add": "max", "max": "add"}, "pad_mode": {"constant": "edge", "reflect": "edge", "edge": "reflect"},
    "box_encoding": {"corner": "center", "center": "corner"}, "axis": {"-1": "-2", "1": "2", "2": "1", "3": "2"}, "levels": {"256": "16", "255": "15", "16": "4"},
}
KINDS = [
    {"Add", "Subtract", "Multiply", "Maximum", "Minimum"}, {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}, {"Less", "Greater", "GreaterEqual", "LessEqual"},
    {"ReLU", "Sigmoid", "Tanh", "Abs", "Negative", "Exp", "Sin", "Cos", "Floor", "Sqrt"}, {"LogicalAnd", "LogicalOr"}, {"Equal", "NotEqual"},
]
STORED = {"Convert", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Multiply", "Subtract", "FakeQuantize", "Broadcast", "Concat", "Gather"}


class Graph:
    """The layers of a model or of a body."""

    def __init__(self, net, owner=None):
        self.layers = {layer.get("id"): layer for layer in net.find("layers")}
        self.edges = [(e.get("from-layer"), e.get("to-layer"), e.get("to-port")) for e in net.find("edges")]
        self.owner = owner
        self.inner = {key: self.bodies(layer, key) for key, layer in self.layers.items()}

    def bodies(self, layer, key):
        pairs = (("body", "port_map"), ("then_body", "then_port_map"), ("else_body", "else_port_map"))
        return [(Graph(layer.find(body), (self, key)), layer.find(ports)) for body, ports in pairs if layer.find(body) is not None]

    def walk(self):
        yield self
        for graph, _ in (body for bodies in self.inner.values() for body in bodies):
            yield from graph.walk()

    def type(self, key):
        return self.layers[key].get("type")

    def is_from_data(self, key, seen=None):
        """True if values of an input reach the layer, other than by their shape."""
        seen = set() if seen is None else seen
        if key in seen or self.type(key) in ("Const", "ShapeOf"):
            return False
        seen.add(key)
        return self.type(key) in ("Parameter", "ReadValue") or any(self.is_from_data(a, seen) for a, b, _ in self.edges if b == key)

    def accepted(self, key):
        """The names that are right for a change of a layer: its own, and of a stored or shape layer those of its users."""
        names = {self.layers[key].get("name")}
        if not self.is_from_data(key):
            for user, port in ((b, port) for a, b, port in self.edges if a == key):
                names |= self.accepted(user) if not self.is_from_data(user) else {self.layers[user].get("name")}
                for graph, ports in self.inner[user]:
                    for entry in ports.iter("input") if ports is not None else []:
                        if entry.get("external_port_id") == port:
                            names |= graph.users(entry.get("internal_layer_id"))
        return names

    def users(self, key):
        return {name for a, b, _ in self.edges if a == key for name in (self.accepted(b) if self.type(b) in STORED else {self.layers[b].get("name")})}


class Net:
    def __init__(self, path):
        self.tree = ET.parse(path)
        self.weights = bytearray(path.with_suffix(".bin").read_bytes()) if path.with_suffix(".bin").exists() else bytearray()
        self.graph = Graph(self.tree.getroot())
        self.all = [(graph, key) for graph in self.graph.walk() for key in graph.layers]

    def save(self, path):
        self.tree.write(path, encoding="utf-8", xml_declaration=True)
        path.with_suffix(".bin").write_bytes(self.weights)

    def store(self, data, values):
        """Gives a constant other bytes, and leaves those that others may share."""
        self.weights += bytes(-len(self.weights) % 64)
        data.set("offset", str(len(self.weights)))
        self.weights += values


def constant(net, layer, rng):
    data = layer.find("data")
    if layer.get("type") != "Const" or data.get("offset") is None:
        return None
    ty, at, size = data.get("element_type"), int(data.get("offset")), int(data.get("size"))
    old = bytes(net.weights[at : at + size])
    if ty in FLOATS:
        factor = rng.choice([0.5, 1.5, 2.0, -1.0])
        net.store(data, (np.frombuffer(old, FLOATS[ty]) * FLOATS[ty](factor)).tobytes())
        return f"values times {factor}"
    if ty in ("i8", "u8", "i4", "u4", "nf4", "f8e4m3", "bf16") and size >= 16:
        net.store(data, old[size // 2 :] + old[: size // 2])
        return "values rolled"
    if ty in ("i32", "i64") and size:
        values = np.frombuffer(old, ty.replace("i", "int")).copy()
        values[rng.randrange(len(values))] ^= 1
        net.store(data, values.tobytes())
        return f"values {values[:8].tolist()}"
    return None


def attribute(net, layer, rng):
    data, names = layer.find("data"), ATTRIBUTES.get(layer.get("type"), ())
    names = [name for name in names if data is not None and data.get(name) is not None]
    if not names:
        return None
    name = rng.choice(names)
    old = data.get(name)
    if name in VALUES:
        new = VALUES[name].get(old)
    elif old in ("true", "false"):
        new = "false" if old == "true" else "true"
    elif name in ("pads_begin", "dilations", "kernel"):
        new = ",".join(str(int(value) + 1) for value in old.split(",")) if old else None
    else:
        new = str(float(old) + 0.5 if "." in old or "e" in old else int(old) + 1)
    if new is None:
        return None
    data.set(name, new)
    return f"{name} {old} -> {new}"


def transpose(net, layer, rng):
    data = layer.find("data")
    if layer.get("type") not in ("MatMul", "Gemm") or data is None:
        return None
    name = rng.choice(["transpose_a", "transpose_b"])
    data.set(name, "false" if data.get(name) == "true" else "true")
    return f"{name} flipped"


def operation(net, layer, rng):
    others = [sorted(kind - {layer.get("type")}) for kind in KINDS if layer.get("type") in kind]
    if not others:
        return None
    old, new = layer.get("type"), rng.choice(others[0])
    layer.set("type", new)
    if layer.get("version") not in ("opset1", "opset4"):
        layer.set("version", "opset1")
    return f"{old} -> {new}"


CHANGES = [constant, attribute, operation, constant, transpose]


def planted(path, kind, rng, out):
    """Writes a copy with one change; returns the names that are right and a description, or None."""
    net = Net(path)
    order = rng.sample(net.all, len(net.all))
    for graph, key in order[:4000]:
        words = kind(net, graph.layers[key], rng)
        if words:
            names = graph.accepted(key)
            net.save(out)
            inside = " in a body" if graph.owner else ""
            return names, f"{kind.__name__} {graph.layers[key].get('name')}{inside}: {words}"
    return None


def equal(path, out):
    """Writes a copy with other names and each constant at an offset of its own."""
    net = Net(path)
    for at, (graph, key) in enumerate(net.all):
        data = graph.layers[key].find("data")
        if graph.type(key) not in ("Parameter", "Result", "ReadValue", "Assign"):
            graph.layers[key].set("name", f"n{at}")
        if graph.type(key) == "Const" and data.get("offset") is not None:
            offset, size = int(data.get("offset")), int(data.get("size"))
            net.store(data, bytes(net.weights[offset : offset + size]))
    net.save(out)


def lengths(trial, rng):
    """The length of open axes, the batch, and the largest index: large ones first."""
    known = [(24, 2, 50), (64, 2, 50), (16, 1, 8), (32, 1, 8), (8, 2, 3), (128, 1, 50), (12, 1, 2), (4, 1, 2), (3, 1, 2), (2, 1, 1), (1, 1, 1)]
    return known[trial] if trial < len(known) else (rng.choice([1, 2, 3, 4, 5, 8, 16, 32, 64, 96, 224]), rng.choice([1, 2, 3]), rng.choice([1, 2, 9]))


def array(value, trial, draws, rng, has_past):
    name, ty = value.any_name.lower() if value.names else "", value.element_type
    long, batch, most = lengths(trial, rng)
    shape = value.partial_shape
    if shape.rank.is_dynamic:
        dims = [batch, long]
    else:
        dims = []
        for axis, dim in enumerate(shape):
            length = batch if axis == 0 and len(shape) > 1 else long
            length = 2 * length if has_past and "mask" in name and axis == len(shape) - 1 else length
            length = 4 * length if len(shape) == 4 and ty.is_real() and axis > 1 and "past" not in name and trial % 2 else length
            dims.append(dim.get_length() if dim.is_static else max(dim.min_length, min(length, dim.max_length if dim.max_length > 0 else length)))
    if ty.get_type_name() == "string":
        return np.array(["The quick brown fox"] * int(np.prod(dims))).reshape(dims)
    own = ty.to_dtype()
    if "mask" in name:
        return np.ones(dims, own)
    if "position" in name or "beam" in name:
        return np.broadcast_to(np.arange(dims[-1]), dims).astype(own)
    if ty.is_real():
        return draws.standard_normal(dims).astype(own)
    if ty.get_type_name() == "boolean":
        return draws.random(dims) < 0.7
    return draws.integers(0, most + 1, dims).astype(own)


def numbers(value, port):
    """The values of an output. OpenVINO gives the bits of bf16 as f16."""
    value = np.array(value)
    if port.element_type.to_string() != "bf16":
        return value
    return (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def is_valid(path, sample):
    """True if inference takes the lengths: MatMul by a constant runs with any."""
    import openvino as ov

    model = ov.Core().read_model(path)
    try:
        model.reshape({at: value.shape for at, value in enumerate(sample)})
    except RuntimeError:
        return False
    return True


def judged(paths):
    """Runs a model and its copies; returns for each copy how far it is away, or None if it does not run."""
    import openvino as ov

    core, exact = ov.Core(), {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0, "KV_CACHE_PRECISION": "f32"}
    compiled, errors = [], []
    for path in paths:
        try:
            compiled.append(core.compile_model(core.read_model(path), "CPU", exact))
            errors.append(None)
        except Exception as error:  # noqa: BLE001
            compiled.append(None)
            errors.append(str(error)[:80])
    if compiled[0] is None:
        return {"error": errors[0], "far": [None] * (len(paths) - 1)}

    def run(at, sample):
        request = compiled[at].create_infer_request()
        found = []
        for step in sample:
            result = request.infer(step, share_inputs=False)
            found.append([numbers(result[key], key) for key in compiled[at].outputs])
        return found

    first = compiled[0]
    has_past = any("past" in value.any_name for value in first.inputs if value.names)
    steps = 3 if core.read_model(paths[0]).get_sinks() else 1
    far, runs, last = [0.0 if it else None for it in compiled], 0, "no lengths run"
    for trial in range(200):
        draws, rng = np.random.default_rng(trial), random.Random(trial)
        try:
            state = rng.getstate()
            sample = []
            for _ in range(steps):
                rng.setstate(state)
                sample.append([array(value, trial, draws, rng, has_past) for value in first.inputs])
            a, again = run(0, sample), run(0, sample)
            if not is_valid(paths[0], sample[0]):
                continue
        except Exception as error:  # noqa: BLE001
            last = str(error)[-200:]
            continue
        runs += 1
        for at in range(1, len(paths)):
            if far[at] is not None:
                try:
                    b = run(at, sample) if is_valid(paths[at], sample[0]) else None
                    # Memory that nothing wrote may have the same values in two runs.
                    far[at] = None if b is None else max(far[at], min(distance(a, b, it) for it in (again, run(0, sample))))
                except Exception:  # noqa: BLE001
                    far[at] = None
        if runs == 3:
            break
    return {"far": far[1:], "runs": runs, "error": last if not runs else None}


def distance(a, b, again):
    """The largest difference of an output, as a part of its largest value, or the share of integers that differ.

    Outputs that vary from run to run are left out.
    """
    far = 0.0
    for x, y, z in ((x, y, z) for step in zip(a, b, again) for x, y, z in zip(*step)):
        if x.dtype.kind in "USO" or not np.array_equal(x, z, equal_nan=x.dtype.kind == "f"):
            continue
        if x.shape != y.shape:
            return float("inf")
        if x.dtype.kind != "f":
            # Rounding moves an index where two values are nearly the same.
            far = max(far, np.mean(x != y)) if x.size else far
            continue
        x, y = x.astype(np.float64), y.astype(np.float64)
        if (np.isfinite(x) != np.isfinite(y)).any():
            return float("inf")
        good = np.isfinite(x)
        scale, most = np.abs(x[good]).max(initial=0), np.abs(x - y)[good].max(initial=0)
        far = max(far, most / scale if scale else (float("inf") if most else 0.0))
    return far


def judge(path, copies):
    """Judges copies in one process, or each in its own if one ends it, or runs without end."""
    try:
        words = [sys.executable, __file__, "--judge", path, *copies]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60 + 5 * len(copies))
        if done.returncode == 0:
            return json.loads(done.stdout)
        error = f"status {done.returncode}"
    except subprocess.TimeoutExpired:
        error = "no end"
    if len(copies) < 2:
        return {"error": None if copies else error, "far": [None] * len(copies)}
    return {"error": judge(path, []).get("error"), "far": [judge(path, [copy])["far"][0] for copy in copies]}


def verify(typelift, a, b):
    done = subprocess.run([typelift, "verify", "--format", "json", "--python", sys.executable, a, b], capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {}
    return done.returncode, report, done.stderr.strip()


def main():
    if sys.argv[1] == "--judge":
        print(json.dumps(judged(sys.argv[2:])))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=5)
    parser.add_argument("--least", type=float, default=1e-3, help="the smallest difference that counts, as a part of the largest value")
    parser.add_argument("--keep", help="keep the copies that were judged wrongly in this folder")
    parser.add_argument("models", nargs="+", type=Path)
    args = parser.parse_args()
    total = dict.fromkeys(("differ", "right layer", "false agree", "no verdict", "equal", "equal agree", "equal no verdict"), 0)
    shares = []
    for path in args.models:
        rng = random.Random(f"{args.seed} {path.stem}")
        with tempfile.TemporaryDirectory() as name:
            folder, made = Path(name), []
            for at in range(5 * args.changes):
                out = folder / f"b{at}.xml"
                try:
                    change = planted(path, CHANGES[at % len(CHANGES)], rng, out)
                except (RecursionError, ValueError):
                    continue
                is_new = change and change[1] not in [words for *_, words in made]
                made += [(out, *change)] if is_new else []
            truth = judge(path, [out for out, *_ in made])
            if truth.get("error"):
                print("SKIP ", path.stem, truth["error"], flush=True)
                continue
            kept = [(change, far) for change, far in zip(made, truth["far"]) if far is not None and far > args.least]
            for (out, names, words), far in kept[: args.changes]:
                status, report, errors = verify(args.typelift, path, out)
                first = report.get("first") or {}
                named = {(first.get(side) or {}).get("name") for side in ("layer", "in_b")} - {None}
                right = status == 1 and bool(named & names)
                total["differ"] += 1
                total["right layer"] += right
                total["false agree"] += status == 0
                total["no verdict"] += status not in (0, 1)
                word = "ok   " if right else {0: "AGREE", 1: "LAYER"}.get(status, "NONE ")
                print(word, path.stem, "|", words, f"| {far:.2g} | {sorted(named)}", "" if right else sorted(names)[:4], errors[:200] if status == 2 else "", flush=True)
                if args.keep and not right:
                    keep = Path(args.keep) / f"{path.stem}-{out.stem}.xml"
                    keep.parent.mkdir(exist_ok=True)
                    shutil.copy(out, keep)
                    shutil.copy(out.with_suffix(".bin"), keep.with_suffix(".bin"))
            out = folder / "equal.xml"
            equal(path, out)
            status, report, errors = verify(args.typelift, path, out)
            total["equal"] += 1
            total["equal agree"] += status == 0
            total["equal no verdict"] += status not in (0, 1)
            share = len(report.get("not_tested", [])) / max(1, report.get("layers", 0))
            shares += [share] if status == 0 else []
            print("ok   " if status == 0 else "EQUAL", path.stem, "| equal |", f"not tested {share:.1%} of {report.get('layers')}", errors[:200], flush=True)
    print(total, f"median of layers not tested {statistics.median(shares or [0]):.1%}")


if __name__ == "__main__":
    main()
