"""Makes one random change and checks that the diff shows exactly one change, of that layer.

    mutate.py TYPELIFT MODELS [--cases 500] [--seed 1] [--anonymous] [--keep DIR]

Changes one attribute, constant, type, shape, input, operation or layer of a model of the directory MODELS and compares the two
with `typelift diff`. With --anonymous, every layer of the changed model gets another name, so that layers have to be matched by
what they compute. Needs Python alone. --keep saves missed cases.
"""

import argparse
import collections
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

UNARY = ["ReLU", "Sigmoid", "Tanh", "Exp", "Floor", "Abs", "Negative", "Sqrt"]
BINARY = ["Add", "Multiply", "Subtract", "Maximum", "Minimum"]


class Case:
    """A model and one change of it."""

    def __init__(self, path, rng):
        self.rng = rng
        self.tree = ET.parse(path)
        weights = path.with_suffix(".bin")
        self.weights = bytearray(weights.read_bytes()) if weights.exists() else None
        # (path, <layers>, <edges>) of the model and of every body.
        self.graphs = []
        pending = [("", self.tree.getroot())]
        while pending:
            prefix, element = pending.pop()
            layers = element.find("layers")
            self.graphs.append((prefix, layers, element.find("edges")))
            for layer in layers:
                for body in layer:
                    if body.tag.endswith("body"):
                        pending.append((f"{prefix}{layer.get('name')}/{body.tag}/", body))

    def mutate(self):
        """Makes one change; gives its kind and the path of its layer, or None if the model has no place for it."""
        kinds = ["attribute", "constant", "type", "shape", "input", "operation", "added", "removed"]
        kind = self.rng.choice(kinds)
        self.prefix, self.layers, self.edges = self.rng.choice(self.graphs)
        name = getattr(self, kind)()
        return name and (kind, self.prefix + name)

    def some(self, layers):
        layers = list(layers)
        return self.rng.choice(layers) if layers else None

    def alive(self):
        """The layers that lead to a Result or an Assign."""
        feeds = collections.defaultdict(list)
        for edge in self.edges if self.edges is not None else []:
            feeds[edge.get("to-layer")].append(edge.get("from-layer"))
        pending = [layer.get("id") for layer in self.layers if layer.get("type") in ("Result", "Assign")]
        alive = set()
        while pending:
            layer = pending.pop()
            if layer not in alive:
                alive.add(layer)
                pending += feeds[layer]
        return [layer for layer in self.layers if layer.get("id") in alive]

    def attribute(self):
        def places():
            for layer in self.alive():
                data = layer.find("data")
                if data is None or layer.get("type") in ("Const", "Parameter") or not layer.get("version").startswith("opset"):
                    continue
                for name, value in data.attrib.items():
                    if re.fullmatch(r"true|false|-?\d+|[if](32|64)|f16", value):
                        yield layer, data, name, value

        place = self.some(places())
        if place:
            layer, data, name, value = place
            other = {"true": "false", "false": "true", "f32": "f16", "f16": "f32", "i64": "i32", "i32": "i64", "f64": "f32"}
            data.set(name, other.get(value) or str(int(value) + 1))
            return layer.get("name")

    def constant(self):
        if not self.weights:
            return None
        ranges = []
        for _, layers, _ in self.graphs:
            for layer in layers:
                data = layer.find("data")
                if layer.get("type") == "Const" and data.get("offset") and int(data.get("size")):
                    start = int(data.get("offset"))
                    ranges.append((start, start + int(data.get("size")), layer))
        here = {id(layer) for layer in self.layers}
        alone = [
            (start, end, layer)
            for start, end, layer in ranges
            if id(layer) in here and not any(s < end and start < e and other is not layer for s, e, other in ranges)
        ]
        place = self.some(alone)
        if place:
            start, end, layer = place
            at = self.rng.randrange(start, end)
            self.weights[at] ^= 1 << self.rng.randrange(8)
            return layer.get("name")

    def parameter(self, kind):
        # Parameters of bodies get types and shapes from outside.
        if self.prefix:
            return None, None
        layer = self.some(layer for layer in self.layers if layer.get("type") == "Parameter")
        return (layer, layer.find("data")) if layer is not None else (None, None)

    def type(self):
        layer, data = self.parameter("type")
        if layer is not None:
            old = data.get("element_type")
            data.set("element_type", self.rng.choice([ty for ty in ("f32", "f16", "i64", "i32", "u8") if ty != old]))
            return layer.get("name")

    def shape(self):
        layer, data = self.parameter("shape")
        if layer is not None and data.get("shape") not in ("", "..."):
            dims = data.get("shape").split(",")
            at = self.rng.randrange(len(dims))
            dims[at] = str(int(dims[at]) + 1) if dims[at].isdigit() else "7"
            data.set("shape", ",".join(dims))
            return layer.get("name")

    def order(self):
        """The place of each layer in a topological order."""
        feeds = collections.defaultdict(set)
        for edge in self.edges:
            feeds[edge.get("to-layer")].add(edge.get("from-layer"))
        place, pending = {}, [(layer.get("id"), False) for layer in reversed(list(self.layers))]
        while pending:
            layer, done = pending.pop()
            if layer in place:
                continue
            if done:
                place[layer] = len(place)
            else:
                pending.append((layer, True))
                pending += [(feed, False) for feed in feeds[layer] if feed not in place]
        return place

    def input(self):
        alive = {layer.get("id"): layer for layer in self.alive()}
        edge = self.some(edge for edge in self.edges if edge.get("to-layer") in alive) if self.edges is not None else None
        if edge is None:
            return None
        order = self.order()
        before = order[edge.get("to-layer")]
        sources = [
            (layer.get("id"), port.get("id"))
            for layer in alive.values()
            if order[layer.get("id")] < before
            for port in layer.findall("output/port")
            if layer.get("id") != edge.get("from-layer")
        ]
        source = self.some(sources)
        if source:
            edge.set("from-layer", source[0])
            edge.set("from-port", source[1])
            return alive[edge.get("to-layer")].get("name")

    def operation(self):
        layer = self.some(layer for layer in self.alive() if layer.get("type") in UNARY + BINARY)
        if layer is not None:
            alike = UNARY if layer.get("type") in UNARY else BINARY
            layer.set("type", self.rng.choice([ty for ty in alike if ty != layer.get("type")]))
            layer.set("version", "opset1")
            data = layer.find("data")
            if data is not None:
                layer.remove(data)
            return layer.get("name")

    def added(self):
        alive = {layer.get("id") for layer in self.alive()}
        edge = self.some(edge for edge in self.edges if edge.get("to-layer") in alive) if self.edges is not None else None
        if edge is not None:
            new = str(max(int(layer.get("id")) for layer in self.layers) + 1)
            layer = ET.SubElement(self.layers, "layer", id=new, name="the_new_one", type="Tanh", version="opset1")
            ET.SubElement(ET.SubElement(layer, "input"), "port", id="0")
            ET.SubElement(ET.SubElement(layer, "output"), "port", id="1", precision="FP32")
            ET.SubElement(
                self.edges,
                "edge",
                {"from-layer": edge.get("from-layer"), "from-port": edge.get("from-port"), "to-layer": new, "to-port": "0"},
            )
            edge.set("from-layer", new)
            edge.set("from-port", "1")
            return layer.get("name")

    def removed(self):
        alive = list(self.alive())
        unary = [layer for layer in alive if layer.get("type") in UNARY + ["Convert", "SoftMax", "Softmax"]]
        layer = self.some(unary)
        if layer is not None:
            source = next(edge for edge in self.edges if edge.get("to-layer") == layer.get("id"))
            self.edges.remove(source)
            for edge in self.edges:
                if edge.get("from-layer") == layer.get("id"):
                    edge.set("from-layer", source.get("from-layer"))
                    edge.set("from-port", source.get("from-port"))
            self.layers.remove(layer)
            return layer.get("name")

    def write(self, path, anonymous):
        if anonymous:
            for at, (_, layers, _) in enumerate(self.graphs):
                for layer in layers:
                    layer.set("name", f"layer_{at}_{layer.get('id')}")
        self.tree.write(path)
        path.with_suffix(".bin").unlink(missing_ok=True)
        if self.weights is not None:
            path.with_suffix(".bin").write_bytes(self.weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("typelift")
    parser.add_argument("models", type=Path)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--anonymous", action="store_true")
    parser.add_argument("--largest", type=int, default=1_000_000, help="bytes of the largest .xml")
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    models = sorted(path for path in args.models.glob("*.xml") if path.stat().st_size < args.largest)
    done, missed = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        while done.total() < args.cases:
            path = rng.choice(models)
            case = Case(path, rng)
            expected = case.mutate()
            if not expected:
                continue
            changed = Path(folder) / "changed.xml"
            case.write(changed, args.anonymous)
            run = subprocess.run([args.typelift, "diff", "--format", "json", path, changed], capture_output=True, text=True)
            found = [change for change in json.loads(run.stdout)["changes"] if change["kind"] != "names"]
            done[expected[0]] += 1
            names = {change["path"] for change in found} if not args.anonymous else {expected[1]}
            if len(found) != 1 or found[0]["kind"] != expected[0] or names != {expected[1]}:
                missed[expected[0]] += 1
                print(path.name, *expected, "gave", [(c["kind"], c["path"], c["before"], c["after"]) for c in found[:4]], len(found))
                if args.keep:
                    args.keep.mkdir(exist_ok=True)
                    for file in Path(folder).glob("changed.*"):
                        shutil.copy(file, args.keep / f"{done.total()}_{path.stem}{file.suffix}")
    print(f"{done.total()} cases, {missed.total()} missed:", *(f"{kind} {missed[kind]}/{done[kind]}" for kind in sorted(done)))
    return missed.total() > 0


if __name__ == "__main__":
    sys.exit(main())
