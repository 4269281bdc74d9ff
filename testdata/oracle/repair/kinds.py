"""The damages of `damage.py`: each changes a file as a person, an editor or a script does by mistake.

A method of `Damage` is one kind. It changes the tree or the weights and returns True, or returns False where the file has
nothing of its kind.
"""
import copy
import re
import xml.etree.ElementTree as ET

import editing
import hostile

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
INTEGER = re.compile(r"-?\d+")
LIST = re.compile(r"-?\d+(,\s*-?\d+)*")
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
FULL_WIDTH = str.maketrans("0123456789-", "０１２３４５６７８９－")
FOREIGN = {"Convolution": ["Conv", "Conv2d"], "Multiply": ["Mul", "Eltwise", "Scale"], "Add": ["Eltwise", "Sum", "Plus"], "MatMul": ["Gemm", "FullyConnected", "Linear"], "Concat": ["Cat", "Concatenation"],
           "ReLU": ["Relu6", "relu"], "ReduceMean": ["Mean", "ReduceAvg"], "Softmax": ["SoftMax2", "Softmax_"], "Convert": ["Cast", "To"], "Const": ["Constant", "Weights"], "MaxPool": ["Pooling", "MaxPooling"],
           "AvgPool": ["Pool", "AveragePool"], "Gather": ["Take", "Embedding"], "Transpose": ["Permute", "Transposed"], "Subtract": ["Sub", "Minus"], "Divide": ["Div"], "Power": ["Pow"], "Select": ["Where"]}
WORDS = {"numpy": ["broadcast", "Numpy", "none", "np"], "floor": ["down", "Floor", "trunc"], "ceil": ["up", "CEIL", "ceiling"], "explicit": ["manual", "Explicit", "none"], "same_upper": ["same", "SAME", "same-upper"], "max": ["maximum", "Max", "largest"], "value": ["values", "val"],
         "constant": ["zeros", "const"], "edge": ["replicate", "Edge"], "reflect": ["mirror", "reflection"], "linear_onnx": ["bilinear", "linear"], "half_pixel": ["pytorch_half_pixel", "halfpixel"], "tanh": ["Tanh", "tan"], "TANH": ["tanh", "approx"], "inside_sqrt": ["INSIDE_SQRT", "inside"], "true": ["True", "yes", "1"], "false": ["False", "no", "0"], "forward": ["Forward", "fwd"]}
TYPES = {"f32": ["float32", "float", "FP32", "f23", "F32"], "i64": ["int64", "I64", "int", "long"], "i32": ["int32", "I32", "int", "i23"], "f16": ["half", "FP16", "float16"], "boolean": ["bool", "BOOL"], "u8": ["uint8", "U8", "byte"], "i8": ["int8", "I8"]}


def guise(text, rng):
    """A number as people and other programs write it."""
    number = text.strip()
    bare = number.lstrip("-")
    sign = "-" if number.startswith("-") else ""
    ways = [f"({number})", f"[{number}]", f"'{number}'", f"&{number}", number.replace("-", "−"), number.replace("-", "–"), number.replace("-", "- "), f"{number} ", f" {number}", number.translate(FULL_WIDTH),
            f"{number}.0", f"{number}.", f"{number};", f"{number},", f"{number}L", f"{number}f", f"int({number})", f"={number}", f"dim={number}", f"#{number}", f"{number} px", f"{number}e", number.replace("1", "l"), number.replace("0", "O"), f"{number}{number[-1]}",
            number.translate(SUPERSCRIPTS), f"{number}bit", f"INT{bare}", f"{sign}+{bare}", f"~{number}", number.replace(".", ","), "I" * min(abs(int(float(bare))), 3) if bare else number, f"{number} or so", f"<{number}>".replace("<", "«").replace(">", "»")]
    if INTEGER.fullmatch(number):
        value = int(number)
        ways += [hex(value), f"{value:,}", f"{value:_}", f"{sign}0{bare}", f"{value}e0", f"{value / 2:g}*2" if value else "0*1", f"2^{value.bit_length()}"]
    ways = [way for way in ways if way != text]
    return rng.choice(ways)


def slip(word, rng):
    """A misspelling of a word by one letter."""
    at = rng.randrange(len(word))
    ways = [word[:at] + word[at + 1:], word[:at] + word[at] + word[at:], word[:at] + rng.choice("aeiouxs") + word[at + 1:]]
    if at + 1 < len(word):
        ways.append(word[:at] + word[at + 1] + word[at] + word[at + 2:])
    return rng.choice(ways)


class Damage(editing.Editing, hostile.Hostile):
    """A tree with its weights, and the ways to damage them."""

    def __init__(self, root, weights, others, rng):
        self.root, self.weights, self.others, self.rng = root, weights, others, rng
        self.changes = []
        graphs = [it for it in root.iter() if it.find("layers") is not None and it.find("edges") is not None]
        self.graph = rng.choice(graphs) if rng.random() < 0.3 else root

    def layers(self, *types):
        found = [it for it in self.graph.find("layers") if it.tag == "layer"]
        return [it for it in found if not types or it.get("type") in types]

    def edges(self):
        return list(self.graph.find("edges"))

    def pick(self, found):
        found = list(found)
        return self.rng.choice(found) if found else None

    def shuffled(self, found):
        found = list(found)
        self.rng.shuffle(found)
        return found

    def data(self, wanted, types=()):
        """A random attribute of a layer's data whose name and value are `wanted`: the element and the name."""
        found = [(layer.find("data"), name, layer) for layer in self.layers(*types) if layer.find("data") is not None for name, value in layer.find("data").attrib.items() if wanted(name, value)]
        # Rare operations are damaged as often as frequent ones.
        types = sorted({(layer.get("type"), name) for _, name, layer in found})
        kind = self.pick(types)
        return self.pick(it for it in found if (it[2].get("type"), it[1]) == kind)

    def into(self, layer):
        return [it for it in self.edges() if it.get("to-layer") == layer.get("id")]

    def outof(self, layer):
        return [it for it in self.edges() if it.get("from-layer") == layer.get("id")]

    def ports(self, layer, side):
        element = layer.find(side)
        return [] if element is None else list(element)

    def set_number(self, place, change):
        if place is None:
            return False
        data, name, _ = place
        value = data.get(name)
        parts = value.split(",")
        at = self.rng.randrange(len(parts))
        parts[at] = change(parts[at])
        data.set(name, ",".join(parts))
        return data.get(name) != value

    # Attributes

    def number_off_by_one(self):
        place = self.data(lambda name, value: LIST.fullmatch(value) and name not in ("offset", "size"))
        return self.set_number(place, lambda text: str(int(text) + self.rng.choice([1, -1, 2])))

    def number_negated(self):
        place = self.data(lambda name, value: LIST.fullmatch(value) and name not in ("offset", "size", "shape"))
        return self.set_number(place, lambda text: str(-int(text)))

    def number_tenfold(self):
        place = self.data(lambda name, value: LIST.fullmatch(value) and name not in ("offset", "size"))
        return self.set_number(place, lambda text: text + "0")

    def number_in_guise(self):
        place = self.data(lambda name, value: NUMBER.fullmatch(value) or LIST.fullmatch(value) and name != "shape")
        return self.set_number(place, lambda text: guise(text, self.rng))

    def place_in_guise(self):
        return self.set_number(self.data(lambda name, _: name in ("offset", "size"), ["Const"]), lambda text: guise(text, self.rng))

    def sign_lost(self):
        return self.set_number(self.data(lambda _, value: re.fullmatch(r"-\d+(\.\d+)?", value)), lambda text: text[1:])

    def list_in_guise(self):
        place = self.data(lambda name, value: "," in value and LIST.fullmatch(value))
        if place is None:
            return False
        data, name, _ = place
        parts = [it.strip() for it in data.get(name).split(",")]
        ways = ["[{}]".format(",".join(parts)), "({})".format(", ".join(parts)), " ".join(parts), "x".join(parts), ";".join(parts), ",".join(parts) + ",", "{" + ",".join(parts) + "}", "×".join(parts), ",".join(parts[:-1]), ",".join(parts + parts[-1:]), "".join(parts), ".".join(parts)]
        data.set(name, self.rng.choice(ways))
        return True

    def list_reordered(self):
        place = self.data(lambda name, value: "," in value and LIST.fullmatch(value))
        if place is None:
            return False
        data, name, _ = place
        value = data.get(name)
        data.set(name, ",".join(self.shuffled(value.split(","))))
        return data.get(name) != value

    def attributes_exchanged(self):
        layer = self.pick(it for it in self.layers() if it.find("data") is not None and len(it.find("data").attrib) > 1)
        if layer is None:
            return False
        data = layer.find("data")
        one, other = self.rng.sample(sorted(data.attrib), 2)
        first, second = data.get(one), data.get(other)
        data.set(one, second)
        data.set(other, first)
        return first != second

    def pair_exchanged(self):
        pairs = [("min", "max"), ("begin_mask", "end_mask"), ("pads_begin", "pads_end"), ("transpose_a", "transpose_b"), ("element_type", "shape"), ("offset", "size"), ("strides", "dilations"), ("kernel", "strides"), ("levels", "auto_broadcast"), ("start", "end")]
        found = [(layer.find("data"), pair) for layer in self.layers() for pair in pairs if layer.find("data") is not None and all(it in layer.find("data").attrib for it in pair)]
        found = [(data, pair) for data, pair in found if data.get(pair[0]) != data.get(pair[1])]
        if not found:
            return False
        kind = self.pick(sorted({pair for _, pair in found}))
        data, (one, other) = self.pick(it for it in found if it[1] == kind)
        first, second = data.get(one), data.get(other)
        data.set(one, second)
        data.set(other, first)
        return True

    def attribute_lost(self):
        place = self.data(lambda *_: True)
        if place:
            del place[0].attrib[place[1]]
        return place is not None

    def attribute_misspelt(self):
        place = self.data(lambda name, _: len(name) > 3)
        if place is None:
            return False
        data, name, _ = place
        items = [(slip(name, self.rng) if key == name else key, value) for key, value in data.attrib.items()]
        data.attrib.clear()
        data.attrib.update(items)
        return name not in data.attrib

    def word_of_others(self):
        place = self.data(lambda _, value: value in WORDS)
        if place:
            place[0].set(place[1], self.rng.choice(WORDS[place[0].get(place[1])]))
        return place is not None

    def word_misspelt(self):
        place = self.data(lambda name, value: re.fullmatch(r"[a-z_]{3,}", value) and name != "variable_id")
        if place is None:
            return False
        value = place[0].get(place[1])
        place[0].set(place[1], slip(value, self.rng))
        return place[0].get(place[1]) != value

    def boolean_flipped(self):
        place = self.data(lambda _, value: value in ("true", "false"))
        if place:
            place[0].set(place[1], "false" if place[0].get(place[1]) == "true" else "true")
        return place is not None

    def type_of_others(self):
        place = self.data(lambda _, value: value in TYPES)
        if place:
            place[0].set(place[1], self.rng.choice(TYPES[place[0].get(place[1])]))
        return place is not None

    def type_changed(self):
        place = self.data(lambda _, value: value in TYPES)
        if place:
            place[0].set(place[1], self.rng.choice([it for it in TYPES if it != place[0].get(place[1])]))
        return place is not None

    def variable_misspelt(self):
        place = self.data(lambda name, _: name == "variable_id")
        if place:
            place[0].set("variable_id", slip(place[0].get("variable_id"), self.rng))
        return place is not None

    # Operations

    def operation_misspelt(self):
        layer = self.pick(self.layers())
        layer.set("type", slip(layer.get("type"), self.rng))
        return True

    def operation_of_others(self):
        layer = self.pick(it for it in self.layers() if it.get("type") in FOREIGN)
        if layer is not None:
            layer.set("type", self.rng.choice(FOREIGN[layer.get("type")]))
        return layer is not None

    def operation_changed(self):
        families = [["Add", "Multiply", "Subtract", "Maximum", "Divide"], ["ReduceMean", "ReduceSum", "ReduceMax"], ["Less", "Greater", "Equal"], ["ReLU", "Sigmoid", "Tanh", "Exp"], ["MaxPool", "AvgPool"], ["Squeeze", "Unsqueeze"]]
        family = self.pick(families)
        layer = self.pick(self.layers(*family))
        if layer is not None:
            layer.set("type", self.rng.choice([it for it in family if it != layer.get("type")]))
        return layer is not None

    def version_changed(self):
        layer = self.pick(self.layers())
        before = layer.get("version")
        layer.set("version", self.rng.choice([f"opset{self.rng.randint(1, 16)}", "opset", before + "0", before.upper(), before.replace("opset", "")]))
        return layer.get("version") != before

    # Layers

    def bypass(self, layer):
        """Removes a layer whose consumers take its first input instead."""
        into, outof = self.into(layer), self.outof(layer)
        if not into or not outof:
            return False
        first = min(into, key=lambda it: int(it.get("to-port")))
        for edge in outof:
            edge.set("from-layer", first.get("from-layer"))
            edge.set("from-port", first.get("from-port"))
        for edge in into:
            self.graph.find("edges").remove(edge)
        self.graph.find("layers").remove(layer)
        return True

    def convert_lost(self):
        layer = self.pick(self.layers("Convert"))
        return layer is not None and self.bypass(layer)

    def movement_lost(self):
        layer = self.pick(self.layers("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Gather"))
        return layer is not None and self.bypass(layer)

    def layer_bypassed(self):
        layer = self.pick(it for it in self.layers() if self.into(it) and self.outof(it))
        return layer is not None and self.bypass(layer)

    def layer_lost(self):
        layer = self.pick(it for it in self.layers() if it.get("type") != "Result")
        for edge in self.into(layer) + self.outof(layer):
            self.graph.find("edges").remove(edge)
        self.graph.find("layers").remove(layer)
        return True

    def layer_lost_but_not_its_edges(self):
        self.graph.find("layers").remove(self.pick(self.layers()))
        return True

    def layer_pasted(self):
        layers = self.layers()
        start = self.rng.randrange(len(layers))
        block = layers[start:start + self.rng.choice([1, 1, 3])]
        for layer in block:
            self.graph.find("layers").append(copy.deepcopy(layer))
        ids = {it.get("id") for it in block}
        if self.rng.random() < 0.5:
            for edge in [it for it in self.edges() if it.get("to-layer") in ids]:
                self.graph.find("edges").append(copy.deepcopy(edge))
        return True

    def layer_id_changed(self):
        layer = self.pick(self.layers())
        layer.set("id", str(int(layer.get("id")) + self.rng.choice([1, -1, 2, 10, 1000])))
        return int(layer.get("id")) >= 0

    def layer_ids_shifted(self):
        layers = self.layers()
        start, by = self.rng.randrange(len(layers) - 1), self.rng.choice([1, 1, 2, 100])
        for layer in layers[start:]:
            layer.set("id", str(int(layer.get("id")) + by))
        return True

    def edge_ids_shifted(self):
        ids = sorted(int(it.get("id")) for it in self.layers())
        start, by = self.rng.choice(ids[1:] or ids), self.rng.choice([1, 2, 100])
        for edge in self.edges():
            for end in ("from-layer", "to-layer"):
                if int(edge.get(end)) >= start:
                    edge.set(end, str(int(edge.get(end)) + by))
        return True

    # Edges

    def edge_end_off(self):
        edge = self.pick(self.edges())
        end = self.rng.choice(sorted(edge.attrib))
        edge.set(end, str(max(0, int(edge.get(end)) + self.rng.choice([1, -1, 2, 10]))))
        return True

    def edge_end_in_guise(self):
        edge = self.pick(self.edges())
        end = self.rng.choice(sorted(edge.attrib))
        edge.set(end, guise(edge.get(end), self.rng))
        return True

    def edge_lost(self):
        self.graph.find("edges").remove(self.pick(self.edges()))
        return True

    def edge_twice(self):
        one, other = self.rng.sample(self.edges(), 2) if len(self.edges()) > 1 else (None, None)
        if one is None:
            return False
        for name in ("to-layer", "to-port"):
            other.set(name, one.get(name))
        return True

    def edge_turned(self):
        edge = self.pick(self.edges())
        ends = dict(edge.attrib)
        edge.set("from-layer", ends["to-layer"]), edge.set("to-layer", ends["from-layer"])
        edge.set("from-port", ends["to-port"]), edge.set("to-port", ends["from-port"])
        return True

    def edge_moved(self):
        edge, other = self.pick(self.edges()), self.pick(self.edges())
        moved = any(edge.get(name) != other.get(name) for name in ("from-layer", "from-port"))
        for name in ("from-layer", "from-port"):
            edge.set(name, other.get(name))
        return moved

    def inputs_permuted(self):
        layer = self.pick(it for it in self.layers() if len(self.into(it)) > 1)
        if layer is None:
            return False
        into = self.into(layer)
        count = self.rng.choice([2, min(3, len(into))])
        some = self.rng.sample(into, count)
        ports = [it.get("to-port") for it in some]
        for edge, port in zip(some, ports[1:] + ports[:1]):
            edge.set("to-port", port)
        return True

    def outputs_exchanged(self):
        layer = self.pick(it for it in self.layers() if len({edge.get("from-port") for edge in self.outof(it)}) > 1)
        if layer is None:
            return False
        one, other = self.rng.sample(sorted({it.get("from-port") for it in self.outof(layer)}), 2)
        for edge in self.outof(layer):
            port = edge.get("from-port")
            edge.set("from-port", other if port == one else one if port == other else port)
        return True

    # Ports

    def port_ids_from_one(self):
        layer = self.pick(self.layers())
        for port in self.ports(layer, "input") + self.ports(layer, "output"):
            port.set("id", str(int(port.get("id")) + 1))
        return True

    def port_id_changed(self):
        layer = self.pick(self.layers())
        port = self.pick(self.ports(layer, "input") + self.ports(layer, "output"))
        if port is None:
            return False
        port.set("id", str(int(port.get("id")) + self.rng.choice([1, 2, 10])))
        return True

    def port_lost(self):
        layer = self.pick(self.layers())
        side = self.pick(["input", "output"])
        port = self.pick(self.ports(layer, side))
        if port is None:
            return False
        layer.find(side).remove(port)
        return True

    def port_type_changed(self):
        layer = self.pick(self.layers())
        port = self.pick(self.ports(layer, "input") + self.ports(layer, "output"))
        if port is None or port.get("precision") is None:
            return False
        before = port.get("precision")
        port.set("precision", self.rng.choice(["FP32", "FP16", "I64", "I32", "FLOAT", "FP23", "BOOL"]))
        return port.get("precision") != before

    def port_dims_changed(self):
        layer = self.pick(self.layers())
        port = self.pick(it for it in self.ports(layer, "input") + self.ports(layer, "output") if len(it))
        if port is None:
            return False
        dim = self.pick(port.findall("dim"))
        dim.text = str(int(dim.text) + self.rng.choice([1, -1, 3]))
        return True

    # Inputs

    def input_reshaped(self):
        layer = self.pick(it for it in self.layers("Parameter") if LIST.fullmatch(it.find("data").get("shape", "")))
        if layer is None:
            return False
        dims = layer.find("data").get("shape").split(",")
        made = self.shuffled(dims) if self.rng.random() < 0.5 else [str(int(dims[0]) + 1)] + dims[1:]
        layer.find("data").set("shape", ",".join(made))
        if self.rng.random() < 0.7:
            for dim, text in zip(layer.find("output/port").findall("dim"), made):
                dim.text = text
        return made != dims

    def input_retyped(self):
        layer = self.pick(self.layers("Parameter"))
        if layer is None or layer.find("data").get("element_type") not in TYPES:
            return False
        ports = dict(f32="FP32", f16="FP16", i64="I64", i32="I32", u8="U8", i8="I8", boolean="BOOL")
        ty = self.rng.choice([it for it in ports if it != layer.find("data").get("element_type")])
        layer.find("data").set("element_type", ty)
        if self.rng.random() < 0.7:
            layer.find("output/port").set("precision", ports[ty])
        return True

    def half_retyped(self):
        layers = self.layers()
        start = self.rng.randrange(len(layers))
        half = layers[start:start + len(layers) // 2]
        changed = 0
        for layer in half:
            data = layer.find("data")
            for name, value in list({} if data is None else data.attrib.items()):
                if value == "f32":
                    data.set(name, "f16")
                    changed += 1
        return changed > 0

    # Bodies

    def port_map_lost(self):
        maps = [(it, entry) for it in self.root.iter() if "port_map" in it.tag or it.tag == "back_edges" for entry in it]
        place = self.pick(maps)
        if place is not None:
            place[0].remove(place[1])
        return place is not None

    def port_map_changed(self):
        entries = [(entry, name) for it in self.root.iter() if "port_map" in it.tag or it.tag == "back_edges" for entry in it for name in entry.attrib]
        place = self.pick(entries)
        if place is None:
            return False
        entry, name = place
        value = entry.get(name)
        if INTEGER.fullmatch(value):
            entry.set(name, str(int(value) + self.rng.choice([1, -1, 2])) if self.rng.random() < 0.7 else guise(value, self.rng))
        else:
            entry.set(name, slip(value, self.rng))
        return entry.get(name) != value

    # Weights

    def offset_changed(self):
        place = self.data(lambda name, _: name in ("offset", "size"), ["Const"])
        return self.set_number(place, lambda text: str(self.rng.choice([int(text) + 1, int(text) + 4, int(text) * 2, max(0, int(text) - 4)])))

    def offsets_shifted(self):
        by = self.rng.choice([4, 8, 16, 64, 128])
        constants = [it.find("data") for it in self.root.iter("layer") if it.get("type") == "Const"]
        for data in constants:
            data.set("offset", str(int(data.get("offset")) + by))
        return bool(constants)

    def offsets_exchanged(self):
        constants = [it.find("data") for it in self.layers("Const")]
        if len(constants) < 2:
            return False
        one, other = self.rng.sample(constants, 2)
        first, second = one.get("offset"), other.get("offset")
        one.set("offset", second)
        other.set("offset", first)
        return first != second

    def bytes_inserted(self):
        if not self.weights:
            return False
        count = self.rng.choice([1, 4, 16, 128])
        at = 0 if self.rng.random() < 0.5 else self.rng.randrange(len(self.weights))
        head = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".ljust(127) + b"\n"
        self.weights[at:at] = head if at == 0 and count == 128 else bytes(self.rng.randrange(256) for _ in range(count))
        return True

    def bytes_lost(self):
        if not self.weights:
            return False
        at = self.rng.randrange(len(self.weights))
        del self.weights[at:at + self.rng.choice([1, 4, 64, len(self.weights)])]
        return True

    def weights_of_another(self):
        self.weights[:] = self.pick(self.others)
        return True

    def weights_through_an_editor(self):
        before = bytes(self.weights)
        self.weights[:] = before.replace(b"\n", b"\r\n") if self.rng.random() < 0.5 else before.decode("utf8", "replace").encode("utf8")
        return before != bytes(self.weights)

    def constant_changed(self):
        constants = [it.find("data") for it in self.layers("Const") if it.find("data").get("element_type") in ("i64", "i32")]
        data = self.pick(constants)
        if data is None or data.get("size") == "0":
            return False
        width = 8 if data.get("element_type") == "i64" else 4
        at = int(data.get("offset")) + width * self.rng.randrange(max(1, int(data.get("size")) // width))
        value = int.from_bytes(self.weights[at:at + width], "little", signed=True) + self.rng.choice([1, -1, 2, 4])
        self.weights[at:at + width] = max(-(1 << (8 * width - 1)), min(value, (1 << (8 * width - 1)) - 1)).to_bytes(width, "little", signed=True)
        return True

    # Several

    def two_at_once(self):
        one, other = self.rng.sample([it for it in KINDS if "at_once" not in it], 2)
        return getattr(self, one)() and getattr(self, other)()


KINDS = [name for name, value in vars(Damage).items() if callable(value) and not name.startswith("_") and name not in ("layers", "edges", "pick", "shuffled", "data", "into", "outof", "ports", "set_number", "bypass") and name not in hostile.KINDS] + editing.KINDS
SETS = {"all": KINDS + hostile.KINDS, "hostile": hostile.KINDS}


def write(damage, path):
    """Writes a tree and its weights as a file."""
    text = ET.tostring(damage.root, encoding="unicode")
    for change in damage.changes:
        text = change(text)
    path.write_bytes(text.encode())
    path.with_suffix(".bin").write_bytes(bytes(damage.weights))
