"""Makes pairs of models that differ at one known layer, and pairs that compute the same, and judges `typelift verify` by them.

    python3 pairs.py --typelift PATH --models FOLDER [--seed 1] [--count 40]

A pair that differs has one change: a constant scaled, an edge moved, an attribute changed, a Convert removed, or a layer made f16
that overflows. Changes are made in the text of the XML and in the .bin, not with typelift. A change counts only if OpenVINO's
outputs on its own inputs show it. A pair that agrees has other names, another order, weights stored elsewhere, or comes from
`typelift rewrite --use all` or `convert --compress`. Prints a line for each pair and the totals.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

FLOATS = {"f32": np.float32, "f16": np.float16, "f64": np.float64}


class Net:
    """A model as a tree of XML and the bytes of its weights."""

    def __init__(self, path):
        self.tree = ET.parse(path)
        self.root = self.tree.getroot()
        self.weights = bytearray(Path(path).with_suffix(".bin").read_bytes())
        self.layers = {layer.get("id"): layer for layer in self.root.find("layers")}
        self.edges = list(self.root.find("edges"))

    def save(self, path):
        self.tree.write(path, encoding="utf-8", xml_declaration=True)
        Path(path).with_suffix(".bin").write_bytes(self.weights)

    def source(self, layer, port):
        for edge in self.edges:
            if edge.get("to-layer") == layer and edge.get("to-port") == port:
                return edge
        return None

    def users(self, layer):
        return [edge for edge in self.edges if edge.get("from-layer") == layer]

    def computed_users(self, layer):
        """The layers that use a constant, through decompressing Converts and the like."""
        found, pending = set(), [layer]
        while pending:
            for edge in self.users(pending.pop()):
                user = edge.get("to-layer")
                found.add(user)
                if self.layers[user].get("type") in ("Convert", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Multiply", "Subtract", "FakeQuantize"):
                    if all(self.is_stored(e.get("from-layer")) for e in self.edges if e.get("to-layer") == user):
                        pending.append(user)
        return found

    def is_stored(self, layer):
        if self.layers[layer].get("type") == "Const":
            return True
        feeds = [edge.get("from-layer") for edge in self.edges if edge.get("to-layer") == layer]
        return bool(feeds) and self.layers[layer].get("type") != "Parameter" and all(self.is_stored(feed) for feed in feeds)

    def new_id(self):
        return str(max(int(key) for key in self.layers) + 1)

    def add(self, kind, version, name, data, inputs, precision, dims):
        """Adds a layer before the others, with edges from (layer, port), and returns its id and output port."""
        key = self.new_id()
        layer = ET.SubElement(self.root.find("layers"), "layer", id=key, name=name, type=kind, version=version)
        ET.SubElement(layer, "data", **data)
        if inputs:
            ports = ET.SubElement(layer, "input")
            for at, (source, port, source_precision) in enumerate(inputs):
                self._port(ports, str(at), source_precision, dims)
                edge = ET.SubElement(self.root.find("edges"), "edge")
                for name_, value in (("from-layer", source), ("from-port", port), ("to-layer", key), ("to-port", str(at))):
                    edge.set(name_, value)
                self.edges.append(edge)
        self._port(ET.SubElement(layer, "output"), str(len(inputs)), precision, dims)
        self.layers[key] = layer
        return key, str(len(inputs))

    @staticmethod
    def _port(parent, key, precision, dims):
        port = ET.SubElement(parent, "port", id=key, precision=precision)
        for dim in dims:
            ET.SubElement(port, "dim").text = dim


def output_port(layer, key=None):
    ports = layer.find("output")
    if ports is None:
        return None
    for port in ports:
        if key is None or port.get("id") == key:
            return port
    return None


def dims(port):
    return [dim.text for dim in port.findall("dim")]


def scale_constant(net, rng):
    choices = []
    for key, layer in net.layers.items():
        if layer.get("type") != "Const":
            continue
        data = layer.find("data")
        if data.get("element_type") in FLOATS and int(data.get("size")) >= 8:
            choices.append(key)
    key = rng.choice(choices)
    data = net.layers[key].find("data")
    offset, size, dtype = int(data.get("offset")), int(data.get("size")), FLOATS[data.get("element_type")]
    values = np.frombuffer(bytes(net.weights[offset : offset + size]), dtype=dtype)
    changed = (values * dtype(rng.choice([0.5, 1.5, 2.0, -1.0]))).astype(dtype).tobytes()
    # The bytes may be shared.
    while len(net.weights) % 64:
        net.weights.append(0)
    data.set("offset", str(len(net.weights)))
    net.weights += changed
    names = {net.layers[key].get("name")} | {net.layers[user].get("name") for user in net.computed_users(key)}
    return names, f"constant {net.layers[key].get('name')}"


def move_edge(net, rng):
    depth = {}

    def ancestors(key):
        if key not in depth:
            depth[key] = set()
            found = set()
            for edge in net.edges:
                if edge.get("to-layer") == key:
                    found |= {edge.get("from-layer")} | ancestors(edge.get("from-layer"))
            depth[key] = found
        return depth[key]

    edges = [edge for edge in net.edges if net.layers[edge.get("from-layer")].get("type") not in ("Const", "Parameter")]
    rng.shuffle(edges)
    for edge in edges:
        old = output_port(net.layers[edge.get("from-layer")], edge.get("from-port"))
        if old is None or old.get("precision") not in ("FP32", "FP16") or not dims(old):
            continue
        user = edge.get("to-layer")
        others = []
        for key, layer in net.layers.items():
            if layer.get("type") in ("Const", "Result", "ShapeOf") or key in (user, edge.get("from-layer")):
                continue
            for port in layer.find("output") if layer.find("output") is not None else []:
                if dims(port) == dims(old) and port.get("precision") == old.get("precision"):
                    others.append((key, port.get("id")))
        rng.shuffle(others)
        for key, port in others[:20]:
            if user in ancestors(key):
                continue
            edge.set("from-layer", key)
            edge.set("from-port", port)
            return {net.layers[user].get("name")}, f"edge into {net.layers[user].get('name')}"
    return None


ATTRIBUTES = {
    "Softmax": ("axis", lambda v: "0" if v not in ("0",) else "1"),
    "SoftMax": ("axis", lambda v: "0" if v not in ("0",) else "1"),
    "MVN": ("eps", lambda v: "0.5"),
    "Gelu": ("approximation_mode", lambda v: "TANH" if v.upper() == "ERF" else "ERF"),
    "Clamp": ("max", lambda v: str(float(v) / 4 + 0.01)),
    "HSwish": None,
    "Elu": ("alpha", lambda v: str(float(v) * 3 + 0.5)),
    "MatMul": ("transpose_b", lambda v: "false" if v == "true" else "true"),
    "ReduceMean": ("keep_dims", lambda v: "false" if v == "true" else "true"),
    "Swish": ("beta", lambda v: "2"),
    "NormalizeL2": ("eps", lambda v: "1.5"),
    "GroupNormalization": ("epsilon", lambda v: "0.5"),
    "AvgPool": ("exclude-pad", lambda v: "false" if v == "true" else "true"),
    "Interpolate": ("mode", lambda v: "linear_onnx" if v == "nearest" else "nearest"),
    "Pad": ("pad_mode", lambda v: "edge" if v != "edge" else "reflect"),
    "CumSum": ("exclusive", lambda v: "false" if v == "true" else "true"),
}


def change_attribute(net, rng):
    choices = [key for key, layer in net.layers.items() if ATTRIBUTES.get(layer.get("type"))]
    rng.shuffle(choices)
    for key in choices:
        name, change = ATTRIBUTES[net.layers[key].get("type")]
        data = net.layers[key].find("data")
        if data is None or data.get(name) is None:
            continue
        data.set(name, change(data.get(name)))
        return {net.layers[key].get("name")}, f"{name} of {net.layers[key].get('name')}"
    return None


def remove_convert(net, rng):
    """Inserts Converts f32 -> i32 -> f32 into the first model is not needed: removes one that rounds, f32 -> i32 -> f32."""
    choices = []
    for key, layer in net.layers.items():
        if layer.get("type") in ("Const", "Parameter", "Result", "ShapeOf", "Convert"):
            continue
        port = output_port(layer)
        if port is not None and port.get("precision") == "FP32" and len(layer.find("output")) == 1 and len(dims(port)) >= 2:
            choices.append(key)
    if not choices:
        return None
    key = rng.choice(choices)
    port = output_port(net.layers[key])
    users = list(net.users(key))
    name = net.layers[key].get("name")
    convert, out = net.add("Convert", "opset1", name + "/to_i32", {"destination_type": "i32"}, [(key, port.get("id"), "FP32")], "I32", dims(port))
    back, back_out = net.add("Convert", "opset1", name + "/to_f32", {"destination_type": "f32"}, [(convert, out, "I32")], "FP32", dims(port))
    for edge in users:
        edge.set("from-layer", back)
        edge.set("from-port", back_out)
    names = {name, name + "/to_i32", name + "/to_f32"} | {net.layers[edge.get("to-layer")].get("name") for edge in users}

    def remove(other):
        """B lacks the Convert to i32, so the other one does nothing."""
        for edge in other.edges:
            if edge.get("to-layer") == back:
                edge.set("from-layer", key)
                edge.set("from-port", port.get("id"))
        other.root.find("edges").remove(other.source(convert, "0"))
        other.root.find("layers").remove(other.layers[convert])

    return names, f"Convert after {name}", remove


NARROWED = {"Multiply": 2, "Add": 2, "MatMul": 2, "Relu": 1, "ReLU": 1, "Subtract": 2, "Sigmoid": 1, "Tanh": 1}


def overflow(net, rng):
    """A layer computes in f16 between Converts, on an operand that a factor makes too large for it."""
    choices = []
    for key, layer in net.layers.items():
        count = NARROWED.get(layer.get("type"))
        if not count or layer.get("type") in ("Sigmoid", "Tanh"):
            continue
        port = output_port(layer)
        feeds = [net.source(key, str(at)) for at in range(count)]
        if port.get("precision") != "FP32" or None in feeds or net.is_stored(key):
            continue
        if all(output_port(net.layers[e.get("from-layer")], e.get("from-port")).get("precision") == "FP32" for e in feeds):
            choices.append(key)
    if not choices:
        return None
    key = rng.choice(choices)
    layer = net.layers[key]
    count, port, name = NARROWED[layer.get("type")], output_port(layer), layer.get("name")
    feed = net.source(key, "0")
    fed = output_port(net.layers[feed.get("from-layer")], feed.get("from-port"))
    while len(net.weights) % 64:
        net.weights.append(0)
    offset = len(net.weights)
    net.weights += np.float32(1e6).tobytes()
    factor, factor_out = net.add("Const", "opset1", name + "/factor", {"element_type": "f32", "shape": "", "offset": str(offset), "size": "4"}, [], "FP32", [])
    scaled, scaled_out = net.add("Multiply", "opset1", name + "/scaled", {"auto_broadcast": "numpy"}, [(feed.get("from-layer"), feed.get("from-port"), "FP32"), (factor, factor_out, "FP32")], "FP32", dims(fed))
    feed.set("from-layer", scaled)
    feed.set("from-port", scaled_out)
    names = {name}

    def narrow(other):
        for at in range(count):
            edge = other.source(key, str(at))
            source = output_port(other.layers[edge.get("from-layer")], edge.get("from-port"))
            convert, out = other.add("Convert", "opset1", f"{name}/f16_{at}", {"destination_type": "f16"}, [(edge.get("from-layer"), edge.get("from-port"), "FP32")], "FP16", dims(source))
            names.add(f"{name}/f16_{at}")
            edge.set("from-layer", convert)
            edge.set("from-port", out)
        users = list(other.users(key))
        inner = output_port(other.layers[key])
        inner.set("precision", "FP16")
        for input_ in other.layers[key].find("input"):
            input_.set("precision", "FP16")
        back, out = other.add("Convert", "opset1", name + "/f32", {"destination_type": "f32"}, [(key, port.get("id"), "FP16")], "FP32", dims(port))
        names.add(name + "/f32")
        for edge in users:
            edge.set("from-layer", back)
            edge.set("from-port", out)

    names |= {net.layers[edge.get("to-layer")].get("name") for edge in net.users(key)}
    return names, f"f16 {name}", narrow


CHANGES = {"constant": scale_constant, "edge": move_edge, "attribute": change_attribute, "convert": remove_convert, "overflow": overflow}


def sort_ids(net):
    """Layers in an order in which producers come first."""
    layers, order, seen = net.root.find("layers"), [], set()

    def visit(key):
        stack = [(key, False)]
        while stack:
            key, done = stack.pop()
            if done:
                order.append(key)
            elif key not in seen:
                seen.add(key)
                stack.append((key, True))
                stack.extend((edge.get("from-layer"), False) for edge in net.edges if edge.get("to-layer") == key)

    for layer in list(layers):
        visit(layer.get("id"))
    parameters = [layer.get("id") for layer in layers if layer.get("type") == "Parameter"]
    results = [layer.get("id") for layer in layers if layer.get("type") == "Result"]
    order = parameters + [key for key in order if key not in parameters and key not in results] + results
    by_key = {layer.get("id"): layer for layer in layers}
    for layer in list(layers):
        layers.remove(layer)
    for key in order:
        layers.append(by_key[key])


def differing(model, kind, rng, folder):
    """Writes a.xml and b.xml into a folder; returns the names that are right and a description."""
    first, second = folder / "a.xml", folder / "b.xml"
    net = Net(model)
    made = CHANGES[kind](net, rng)
    if made is None:
        return None
    if len(made) == 2:
        names, words = made
        shutil.copy(model, first)
        shutil.copy(Path(model).with_suffix(".bin"), first.with_suffix(".bin"))
        sort_ids(net)
        net.save(second)
        return names, words
    names, words, change = made
    sort_ids(net)
    net.save(first)
    other = Net(first)
    change(other)
    sort_ids(other)
    other.save(second)
    return names, words


def outputs_of(path, seed):
    """The outputs on OpenVINO's CPU, where f16 becomes infinite beyond its range; None where the model does not run."""
    script = (
        "import sys,numpy as np,openvino as ov,openvino.opset13 as o\n"
        "p,s,out=sys.argv[1],int(sys.argv[2]),sys.argv[3]\n"
        "c=ov.Core();m=c.read_model(p)\n"
        "for n in (m.get_ordered_ops() if '--range' in sys.argv else []):\n"
        " if n.get_output_size()!=1 or n.get_output_element_type(0)!=ov.Type.f16 or n.get_type_name() in ('Constant','Parameter'): continue\n"
        " u=list(n.output(0).get_target_inputs());f=lambda v:o.constant(np.array(v,np.float16))\n"
        " y=o.select(o.greater(o.abs(n),f(65504)),o.multiply(n,f(np.inf)),n)\n"
        " [i.replace_source_output(y.output(0)) for i in u]\n"
        "r=np.random.default_rng(s);z=[]\n"
        "for i in m.inputs:\n"
        " n=[4 if d.is_dynamic else d.get_length() for d in i.partial_shape]\n"
        " t=i.element_type.to_dtype()\n"
        " z.append(r.standard_normal(n).astype(t) if np.issubdtype(t,np.floating) else np.ones(n,t))\n"
        "k=c.compile_model(m,'CPU',{'INFERENCE_PRECISION_HINT':'f32'})\n"
        "q=k.create_infer_request();v=q.infer(z)\n"
        "np.savez(out,*[np.array(v[x]) for x in k.outputs])\n"
    )
    with tempfile.NamedTemporaryFile(suffix=".npz") as out:
        done = subprocess.run(["python3", "-c", script, str(path), str(seed), out.name, "--range"], capture_output=True, timeout=300)
        if done.returncode:
            return None
        return [np.array(value) for value in np.load(out.name).values()]


def shows(folder, seed):
    """True if OpenVINO's outputs differ clearly, None if it cannot run them."""
    a, b = outputs_of(folder / "a.xml", seed), outputs_of(folder / "b.xml", seed)
    if a is None or b is None:
        return None
    for x, y in zip(a, b):
        if x.shape != y.shape:
            return True
        x, y = x.astype(np.float64), y.astype(np.float64)
        good = np.isfinite(x) & np.isfinite(y)
        scale = np.abs(x[good]).max(initial=0)
        if (np.isfinite(x) != np.isfinite(y)).any() or np.abs(x - y)[good].max(initial=0) > 1e-3 * max(scale, 1e-6):
            return True
    return False


def renamed(net, rng):
    names = {}
    for layer in net.root.iter("layer"):
        names.setdefault(layer.get("name"), f"n{rng.randrange(10**9)}_{len(names)}")
        layer.set("name", names[layer.get("name")])


def reordered(net, rng):
    """Layers in another order that keeps Parameters and Results, with new ids."""
    layers = net.root.find("layers")
    fixed = [layer for layer in layers if layer.get("type") in ("Parameter", "Result")]
    others = [layer for layer in layers if layer not in fixed]
    rng.shuffle(others)
    for layer in list(layers):
        layers.remove(layer)
    for layer in fixed[:] + others:
        layers.append(layer)
    sort_ids(net)


def restored(net, rng):
    """Constants at other offsets, in another order, none shared."""
    old, new = bytes(net.weights), bytearray()
    constants = [layer for layer in net.root.iter("layer") if layer.get("type") == "Const" and layer.find("data").get("offset")]
    rng.shuffle(constants)
    for layer in constants:
        data = layer.find("data")
        offset, size = int(data.get("offset")), int(data.get("size"))
        while len(new) % 64:
            new.append(0)
        data.set("offset", str(len(new)))
        new += old[offset : offset + size]
    net.weights = new


def agreeing(model, kind, rng, folder, typelift):
    first, second = folder / "a.xml", folder / "b.xml"
    shutil.copy(model, first)
    shutil.copy(Path(model).with_suffix(".bin"), first.with_suffix(".bin"))
    if kind in ("names", "order", "storage"):
        net = Net(model)
        {"names": renamed, "order": reordered, "storage": restored}[kind](net, rng)
        net.save(second)
        return True
    command = {
        "rewrite": ["rewrite", str(first), "--use", "all", "-o", str(second)],
        "f16": ["convert", str(first), "--compress", "f16", "-o", str(second)],
    }[kind]
    return subprocess.run([typelift, *command], capture_output=True).returncode == 0


def verify(typelift, folder):
    done = subprocess.run([typelift, "verify", "--format", "json", folder / "a.xml", folder / "b.xml"], capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {}
    return done.returncode, report, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--keep", help="keep pairs that were judged wrongly in this folder")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    skipped = re.compile(r"\.(ref|moc|promote)|large_|pairs_safe|string_|tok_|realcpt_arith_dyn")
    models = [path for path in sorted(Path(args.models).glob("*.xml")) if not skipped.search(path.name) and path.with_suffix(".bin").exists()]
    right, total, tries = 0, 0, 0
    while total < args.count and tries < 20 * args.count:
        tries += 1
        kind, model = list(CHANGES)[total % len(CHANGES)], rng.choice(models)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            try:
                made = differing(model, kind, rng, folder)
            except (IndexError, RecursionError, AttributeError):
                continue
            if made is None or shows(folder, args.seed) is not True:
                continue
            status, report, errors = verify(args.typelift, folder)
            first = report.get("first") or {}
            named = {(first.get("layer") or {}).get("name"), (first.get("in_b") or {}).get("name")}
            is_right = status == 1 and bool(named & made[0])
            right, total = right + is_right, total + 1
            print("ok   " if is_right else "WRONG", kind, model.stem, "|", made[1], "|", named, status, errors.strip()[:200] if status == 2 else "", flush=True)
            if args.keep and not is_right:
                shutil.copytree(folder, Path(args.keep) / f"{args.seed}-{total}-{kind}-{model.stem}", dirs_exist_ok=True)
    print(f"differ: {right} of {total} name the right layer")
    right, total = 0, 0
    kinds = ["names", "order", "storage", "rewrite", "f16"]
    for at in range(args.count):
        kind, model = kinds[at % len(kinds)], rng.choice(models)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if not agreeing(model, kind, rng, folder, args.typelift):
                print("skip ", kind, model.stem)
                continue
            status, report, errors = verify(args.typelift, folder)
            right, total = right + (status == 0), total + 1
            worst = max([output["max_relative"] or 0 for output in report.get("outputs", [])], default=None)
            print("ok   " if status == 0 else "WRONG", kind, model.stem, status, worst, (report.get("first") or {}).get("layer"), errors.strip()[:300] if status == 2 else "", flush=True)
            if args.keep and status:
                shutil.copytree(folder, Path(args.keep) / f"{args.seed}-{at}-{kind}-{model.stem}", dirs_exist_ok=True)
    print(f"agree: {right} of {total}")


if __name__ == "__main__":
    main()
