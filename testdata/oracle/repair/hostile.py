"""Damages that are near a right file: several at once, values of equal types exchanged, and text that only looks like a number.

The methods of `Hostile` have the form of those in `kinds.py`.
"""
import copy
import re

INTEGER = re.compile(r"-?\d+")
INTEGERS = re.compile(r"-?\d+(,\s*-?\d+)*")
SCRIPTS = {"arabic": 0x660, "persian": 0x6F0, "devanagari": 0x966, "full width": 0xFF10, "bold": 0x1D7CE, "circled": 0x245F}
SIZES = [1, 2, 4, 8, 16, 32, 64, 128]
ALIKE = [("same_upper", "same_lower"), ("explicit", "valid"), ("floor", "ceil"), ("max", "min"), ("value", "index"), ("value", "none"), ("numpy", "pdpd"), ("constant", "edge"), ("reflect", "symmetric"), ("forward", "reverse"),
         ("blocks_first", "depth_first"), ("half_pixel", "asymmetric"), ("linear", "nearest"), ("sizes", "scales"), ("tanh", "erf"), ("inside_sqrt", "outside_sqrt"), ("i64", "i32"), ("f32", "f16"), ("i8", "u8"), ("avg", "max")]


def in_script(text, zero):
    return "".join(chr(zero + int(it)) if it.isascii() and it.isdigit() else it for it in text)


class Hostile:
    """Damages that `kinds.Damage` inherits."""

    # Numbers

    def number_in_script(self):
        place = self.data(lambda _, value: INTEGERS.fullmatch(value) or re.fullmatch(r"-?\d+\.\d+", value))
        zero, minus = SCRIPTS[self.rng.choice(list(SCRIPTS))], self.rng.choice("-−–—﹣－")
        return self.set_number(place, lambda text: in_script(text, zero).replace("-", minus))

    def number_with_invisible(self):
        """A mark that no editor shows: zero width space, soft hyphen, direction, hard space."""
        place = self.data(lambda _, value: INTEGERS.fullmatch(value))
        mark, draw = self.rng.choice("\u200b\u00ad\u200f\u200e\u00a0\ufeff\u2060\u202d"), self.rng.random()

        def put(text):
            at = int(draw * (len(text) + 1))
            return text[:at] + mark + text[at:]
        return self.set_number(place, put)

    def number_of_a_program(self):
        """A number as another language or a table writes it."""
        place = self.data(lambda _, value: INTEGERS.fullmatch(value))
        form = self.rng.choice(["0b{b:b}", "0o{b:o}", "{s}0{b:o}", "{v}u", "{v}ul", "{v}n", "{v}%", "{v}K", "{v}B", "{v} elements", "{v}dp", "{v}/1", "1*{v}", "{v}+0", "--{b}", "-{v}", "+-{b}", "{b}-", "({b})", "{v}?", "{v}!", "${v}", "{v}…", "{v}..", "..{v}", "{v}:{v}", "{v}|{v}",
                                "np.int64({v})", "tensor({v})", "array([{v}])", "c_int({v})", "Dim({v})", "abs({v})", "-({v})", "neg({v})", "range({v})", "len={v}", "-={v}", "!={v}", "~={v}", "{v}=", "{v}#", "/*{v}*/", "{v}//", "{v} (was 0)", "{v}\t", "{v}e+0", "{v}E0", "{v}e-0", "{v}e1", "{v}.5",
                                "{v}.00", "{v},0", "{v},00", "{v}.000", "{v},000", "{v}'000", "{v}_0", "_{v}", "{v}_", "{v}^", "{v}^1", "{v}**1", "{v}²", "½", "{v} ± 1", "≈{v}", "<{v}", "{v}px", "{v}-{v}", "№{v}", "n{v}", "N={v}", "minus {b}", "zero", "one", "two", "None", "nan", "inf", "true", "X", "IV", "0x{b:x}h", "{b:x}h", "#{b:x}", "0x{b:X}", "-0x{b:x}", "&#4{b};", "I{b}", "O", "l", "B"])
        return self.set_number(place, lambda text: form.format(v=text.strip(), b=abs(int(text)), s="-" if "-" in text else ""))

    def real_in_guise(self):
        place = self.data(lambda _, value: re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", value))
        way = self.rng.choice([lambda it: it.replace(".", ","), lambda it: it.replace(".", "·"), lambda it: it + "f", lambda it: it + "0", lambda it: it.replace("0.", "."), lambda it: it.replace(".", ""), lambda it: it.replace(".", " ."), lambda it: it.replace(".", ".."), lambda it: it.replace("-", "−"), lambda it: f"({it})", lambda it: it + "%", lambda it: it.replace(".", "'"), lambda it: it.replace("-", "- "), lambda it: it.replace("e-", "e"), lambda it: it.replace("e-", "e−"), lambda it: it.replace("e-", "*10^-")])
        return self.set_number(place, way)

    def lists_in_guise(self):
        place = self.data(lambda _, value: "," in value and INTEGERS.fullmatch(value))
        if place is None:
            return False
        data, name, _ = place
        parts = [it.strip() for it in data.get(name).split(",")]
        ways = ["({},)".format(",".join(parts)), "[{},]".format(", ".join(parts)), "np.array([{}])".format(",".join(parts)), "Size([{}])".format(",".join(parts)), "*".join(parts), "-".join(parts), "/".join(parts), "\t".join(parts), ", ,".join(parts), "，".join(parts), "、".join(parts), ",".join(f"{it}.0" for it in parts), ",".join(f"({it})" for it in parts),
                ",".join(f"'{it}'" for it in parts), "[[{}],[{}]]".format(",".join(parts[:1]), ",".join(parts[1:])), "{}..{}".format(parts[0], parts[-1]), "shape=" + ",".join(parts), ",".join(parts) + "]", "(" + ",".join(parts), ",".join(parts[1:]), ",".join(parts[:1] + parts), ",".join(reversed(parts)), ", ".join(parts) + ",1", "1," + ",".join(parts), " x ".join(parts), "_".join(parts), " ".join(parts) + " ", "×".join(parts), ",".join(f"{it}L" for it in parts), "<" + ",".join(parts) + ">", ",".join(f"d{at}={it}" for at, it in enumerate(parts)), parts[0], f"{len(parts)}:" + ",".join(parts)]
        data.set(name, self.rng.choice(ways))
        return True

    def digits_exchanged(self):
        place = self.data(lambda _, value: any(len(it.strip("- ")) > 1 and it.strip("- ") != it.strip("- ")[::-1] for it in value.split(",")) and INTEGERS.fullmatch(value))
        return self.set_number(place, lambda text: text[:-2] + text[-1] + text[-2] if len(text.strip("- ")) > 1 else text)

    def number_doubled(self):
        return self.set_number(self.data(lambda name, value: INTEGERS.fullmatch(value)), lambda text: str(int(text) * 2) if int(text) else "1")

    def number_of_another_attribute(self):
        """The value of another attribute of the layer."""
        place = self.data(lambda _, value: INTEGERS.fullmatch(value))
        if place is None:
            return False
        data, name, _ = place
        others = [value for other, value in data.attrib.items() if other != name and INTEGERS.fullmatch(value) and value != data.get(name)]
        if others:
            data.set(name, self.rng.choice(others))
        return bool(others)

    # Words

    def word_alike(self):
        """Another valid word."""
        words = {one: other for pair in ALIKE for one, other in (pair, pair[::-1])}
        place = self.data(lambda name, value: value in words and name not in ("element_type",))
        if place:
            place[0].set(place[1], words[place[0].get(place[1])])
        return place is not None

    def word_by_two_letters(self):
        place = self.data(lambda name, value: re.fullmatch(r"[a-z_]{5,}", value) and name != "variable_id")
        if place is None:
            return False
        word = place[0].get(place[1])
        one, other = sorted(self.rng.sample(range(len(word)), 2))
        place[0].set(place[1], word[:one] + self.rng.choice("aeioxst") + word[one + 1:other] + word[other + 1:])
        return place[0].get(place[1]) != word

    def word_in_form(self):
        place = self.data(lambda name, value: re.fullmatch(r"[a-z_]{3,}", value) and name != "variable_id")
        if place is None:
            return False
        word = place[0].get(place[1])
        ways = [word.upper(), word.title(), word.replace("_", "-"), word.replace("_", ""), word.replace("_", " "), f"'{word}'", f" {word}", f"{word} ", f"{word}.", f"{word};", f"Mode.{word}", f"{word}()", word[:3], word + "s", word + "_mode", word.replace("a", "а"), word.replace("e", "е"), word.replace("o", "0"), word.replace("l", "1"), word[::-1], f"not {word}", f"!{word}", f"{word},{word}", f"\"{word}\""]
        ways = [it for it in ways if it != word]
        place[0].set(place[1], self.rng.choice(ways))
        return True

    def flag_in_form(self):
        place = self.data(lambda _, value: value in ("true", "false"))
        if place is None:
            return False
        is_true = place[0].get(place[1]) == "true"
        ways = [("1", "0"), ("yes", "no"), ("y", "n"), ("TRUE", "FALSE"), ("T", "F"), ("on", "off"), ("ture", "flase"), ("tru", "fals"), ("truee", "falsee"), ("!false", "!true"), ("not false", "not true"), ("~0", "~1"), ("-1", "null"), ("x", ""), ("enabled", "disabled"), ("checked", "none"), ("True,", "False,"), ("(true)", "(false)")]
        place[0].set(place[1], self.rng.choice(ways)[0 if is_true else 1])
        return True

    def operation_alike(self):
        """The name of an operation that stands beside it in a list, or a family name."""
        names = {"ReLU": "PReLU", "Elu": "Selu", "LogSoftmax": "Softmax", "Softmax": "LogSoftmax", "ReduceMean": "ReduceMin", "ReduceMax": "ReduceMean", "Gather": "GatherND", "GatherElements": "Gather", "ScatterUpdate": "ScatterNDUpdate", "Pad": "Padding", "Interpolate": "Resize", "Clamp": "Clip", "Tile": "Repeat", "Unsqueeze": "Squeeze", "Split": "VariadicSplit", "VariadicSplit": "Split", "Concat": "Stack", "Greater": "GreaterEqual", "Less": "LessEqual", "LogicalAnd": "And", "LogicalNot": "Not", "Sigmoid": "Sigmoids", "Add": "Adds", "Multiply": "Mult", "MVN": "LayerNorm", "StridedSlice": "Slice", "Slice": "StridedSlice",
                 "TopK": "Topk", "Result": "Output", "Parameter": "Input", "GroupConvolution": "Convolution", "Convolution": "GroupConvolution", "MatMul": "Matmul", "FakeQuantize": "Quantize", "Broadcast": "Expand", "Power": "Pow", "Abs": "Absolute", "Floor": "Flor", "Exp": "Exponent", "Log": "Ln", "Swish": "SiLU", "Gelu": "GELU", "Convert": "ConvertLike", "ShapeOf": "Shape", "CumSum": "Cumsum", "OneHot": "One_Hot", "Loop": "While", "If": "Cond", "Divide": "Division", "Select": "Where"}
        layer = self.pick(self.layers(*names))
        if layer is not None:
            layer.set("type", names[layer.get("type")])
        return layer is not None

    def version_in_form(self):
        layer = self.pick(self.layers())
        number = layer.get("version").replace("opset", "")
        ways = ["opset0" + number, "0pset" + number, "opset " + number, "opset-" + number, "opset_" + number, "opset" + number + ".0", "v" + number, "ops" + number, "opsett" + number, "opset" + number + number, "extension", "opsetX", "opset", "OPSET" + number, "op" + number, "opse" + number, "opset" + str(int(number) + 1) if number.isdigit() else "opset3"]
        layer.set("version", self.rng.choice(ways))
        return True

    # Several places

    def two_in_one_layer(self):
        layer = self.pick(it for it in self.layers() if it.find("data") is not None and len(it.find("data").attrib) > 1)
        if layer is None:
            return False
        data = layer.find("data")
        for name in self.rng.sample(sorted(data.attrib), 2):
            value = data.get(name)
            if INTEGER.fullmatch(value):
                data.set(name, str(int(value) + self.rng.choice([1, -1, 2])))
            elif INTEGERS.fullmatch(value):
                data.set(name, ",".join(self.shuffled(value.split(","))[:self.rng.choice([1, 2, 9])]))
            elif value in ("true", "false"):
                data.set(name, "false" if value == "true" else "true")
            else:
                data.set(name, value[:-1])
        return True

    def three_at_once(self):
        import kinds
        names = self.rng.sample([it for it in kinds.KINDS if "at_once" not in it], 3)
        return all([getattr(self, name)() for name in names])

    def attribute_and_port(self):
        """An attribute and the dims of the layer's output change together, as by hand."""
        place = self.data(lambda name, value: INTEGERS.fullmatch(value) and name not in ("offset", "size"))
        if not self.set_number(place, lambda text: str(int(text) + self.rng.choice([1, -1, 2]))):
            return False
        dims = [dim for dim in place[2].findall("output/port/dim")]
        if dims:
            dim = self.rng.choice(dims)
            dim.text = str(max(1, int(dim.text) + self.rng.choice([1, -1, 2])))
        return True

    def tensor_dims_changed(self):
        """The dims of a tensor at both ends of its edges."""
        edge = self.pick(self.edges())
        start = edge.get("from-layer"), edge.get("from-port")
        ends = {(it.get("to-layer"), it.get("to-port")) for it in self.edges() if (it.get("from-layer"), it.get("from-port")) == start}
        ports = [port for layer in self.layers() for side, owned in (("output", {start}), ("input", ends)) for port in self.ports(layer, side) if (layer.get("id"), port.get("id")) in owned]
        dims = [port.findall("dim") for port in ports if port.find("dim") is not None]
        if not dims:
            return False
        draw, by = self.rng.random(), self.rng.choice([1, -1, 2])
        for row in dims:
            dim = row[int(draw * len(row))]
            dim.text = str(int(dim.text) + by)
        return True

    def tensor_types_changed(self):
        edge = self.pick(self.edges())
        start = edge.get("from-layer"), edge.get("from-port")
        ends = {(it.get("to-layer"), it.get("to-port")) for it in self.edges() if (it.get("from-layer"), it.get("from-port")) == start}
        other = self.rng.choice(["FP32", "FP16", "I64", "I32", "BOOL"])
        for layer in self.layers():
            for side, owned in (("output", {start}), ("input", ends)):
                for port in self.ports(layer, side):
                    if (layer.get("id"), port.get("id")) in owned:
                        port.set("precision", other)
            if layer.get("id") == start[0] and layer.find("data") is not None and self.rng.random() < 0.7:
                data = layer.find("data")
                for name in ("element_type", "destination_type", "output_type", "index_element_type"):
                    if name in data.attrib:
                        data.set(name, {"FP32": "f32", "FP16": "f16", "I64": "i64", "I32": "i32", "BOOL": "boolean"}[other])
        return True

    # Edges and ids

    def equal_inputs_exchanged(self):
        """Two inputs of one type and shape exchange their tensors."""
        found = []
        for layer in self.layers():
            by_port = {port.get("id"): (port.get("precision"), [dim.text for dim in port.findall("dim")]) for port in self.ports(layer, "input")}
            into = self.into(layer)
            found += [(one, other) for at, one in enumerate(into) for other in into[at + 1:] if by_port.get(one.get("to-port")) == by_port.get(other.get("to-port"))]
        pair = self.pick(found)
        if pair is None:
            return False
        one, other = pair
        first, second = one.get("to-port"), other.get("to-port")
        one.set("to-port", second), other.set("to-port", first)
        return True

    def equal_sources_exchanged(self):
        """An edge starts at another tensor of the same type and shape."""
        def kind(layer, port):
            return layer.get("type") != "Const", port.get("precision"), [dim.text for dim in port.findall("dim")]
        tensors = {(layer.get("id"), port.get("id")): kind(layer, port) for layer in self.layers() for port in self.ports(layer, "output")}
        edge = self.pick(self.edges())
        now = edge.get("from-layer"), edge.get("from-port")
        others = [it for it, its in tensors.items() if it != now and its == tensors.get(now) and it[0] != edge.get("to-layer")]
        other = self.pick(others)
        if other is None:
            return False
        edge.set("from-layer", other[0]), edge.set("from-port", other[1])
        return True

    def edge_ports_exchanged(self):
        edge = self.pick(self.edges())
        first, second = edge.get("from-port"), edge.get("to-port")
        edge.set("from-port", second), edge.set("to-port", first)
        return first != second

    def edge_layers_exchanged(self):
        edge = self.pick(self.edges())
        first, second = edge.get("from-layer"), edge.get("to-layer")
        edge.set("from-layer", second), edge.set("to-layer", first)
        return first != second

    def ends_exchanged(self):
        """Two edges exchange their ends."""
        if len(self.edges()) < 2:
            return False
        one, other = self.rng.sample(self.edges(), 2)
        for name in ("to-layer", "to-port"):
            first, second = one.get(name), other.get(name)
            one.set(name, second), other.set(name, first)
        return any(one.get(name) != other.get(name) for name in ("from-layer", "from-port"))

    def id_of_another(self):
        """A layer gets the id of another one, and its edges too."""
        one, other = self.pick(self.layers()), self.pick(self.layers())
        before, after = one.get("id"), other.get("id")
        one.set("id", after)
        if self.rng.random() < 0.5:
            for edge in self.edges():
                for end in ("from-layer", "to-layer"):
                    if edge.get(end) == before:
                        edge.set(end, after)
        return before != after

    def ids_from_one(self):
        """The ids of the layers count from 1, the edges from 0, or the other way round."""
        if self.rng.random() < 0.5:
            for layer in self.layers():
                layer.set("id", str(int(layer.get("id")) + 1))
        else:
            for edge in self.edges():
                for end in ("from-layer", "to-layer"):
                    edge.set(end, str(int(edge.get(end)) + 1))
        return True

    def ids_half_renumbered(self):
        """New ids by place for the layers, and for one end of the edges only."""
        order = self.shuffled(self.layers())
        ids = {it.get("id"): str(at) for at, it in enumerate(order)}
        for layer in self.layers():
            layer.set("id", ids[layer.get("id")])
        end = self.rng.choice(["from-layer", "to-layer"])
        for edge in self.edges():
            edge.set(end, ids.get(edge.get(end), edge.get(end)))
        return True

    def port_ids_of_a_side(self):
        """The port ids of every layer, or of one, begin with 0 on either side."""
        layers = self.layers() if self.rng.random() < 0.3 else [self.pick(self.layers())]
        for layer in layers:
            for at, port in enumerate(self.ports(layer, "output")):
                port.set("id", str(at))
        return True

    def port_ids_exchanged(self):
        layer = self.pick(it for it in self.layers() if len(self.ports(it, "input")) + len(self.ports(it, "output")) > 1)
        if layer is None:
            return False
        one, other = self.rng.sample(self.ports(layer, "input") + self.ports(layer, "output"), 2)
        first, second = one.get("id"), other.get("id")
        one.set("id", second), other.set("id", first)
        return True

    def ports_moved(self):
        """A port is listed on the other side, or two ports in another order."""
        layer = self.pick(it for it in self.layers() if self.ports(it, "input") and self.ports(it, "output"))
        if layer is None:
            return False
        port = self.pick(self.ports(layer, "input"))
        layer.find("input").remove(port)
        (layer.find("output") if self.rng.random() < 0.5 else layer.find("input")).append(port)
        return True

    def optional_input_lost(self):
        """The last input of a layer with its edge and its constant."""
        layer = self.pick(it for it in self.layers() if len(self.ports(it, "input")) > 1)
        if layer is None:
            return False
        port = self.ports(layer, "input")[-1]
        edges = [it for it in self.into(layer) if it.get("to-port") == port.get("id")]
        layer.find("input").remove(port)
        for edge in edges:
            self.graph.find("edges").remove(edge)
            owner = next((it for it in self.layers() if it.get("id") == edge.get("from-layer")), None)
            if owner is not None and not self.outof(owner) and self.rng.random() < 0.7:
                self.graph.find("layers").remove(owner)
        return True

    def two_layers_lost(self):
        """Two layers, one after the other, are bypassed."""
        for _ in range(10):
            layer = self.pick(it for it in self.layers() if self.into(it) and self.outof(it))
            if layer is None:
                return False
            source = min(self.into(layer), key=lambda it: int(it.get("to-port"))).get("from-layer")
            other = next(it for it in self.layers() if it.get("id") == source)
            if self.bypass(layer) and self.bypass(other):
                return True
        return False

    def layer_moved(self):
        """A layer is taken out and put before or behind a neighbour."""
        layer = self.pick(it for it in self.layers() if len(self.into(it)) == 1 and len(self.outof(it)) == 1)
        if layer is None:
            return False
        into, outof = self.into(layer)[0], self.outof(layer)[0]
        other = self.pick(it for it in self.edges() if it is not into and it is not outof)
        if other is None:
            return False
        source = into.get("from-layer"), into.get("from-port")
        into.set("from-layer", other.get("from-layer")), into.set("from-port", other.get("from-port"))
        other.set("from-layer", outof.get("from-layer")), other.set("from-port", outof.get("from-port"))
        outof.set("from-layer", source[0]), outof.set("from-port", source[1])
        return True

    def layers_exchanged(self):
        """Two layers of one input exchange their places in the graph."""
        found = [it for it in self.layers() if len(self.into(it)) == 1 and self.outof(it) and it.get("type") not in ("Result", "Const", "Parameter")]
        if len(found) < 2:
            return False
        one, other = self.rng.sample(found, 2)
        for name in ("type", "version"):
            first, second = one.get(name), other.get(name)
            one.set(name, second), other.set(name, first)
        first, second = one.find("data"), other.find("data")
        for layer, old, new in ((one, first, second), (other, second, first)):
            if old is not None:
                layer.remove(old)
            if new is not None:
                layer.insert(0, new)
        return one.get("type") != other.get("type")

    # Merges

    def merge_left_both(self):
        """Both sides of a conflict stay: a layer twice, the second with another attribute or id."""
        layer = self.pick(self.layers())
        made = copy.deepcopy(layer)
        data = made.find("data")
        if self.rng.random() < 0.3:
            made.set("id", str(1 + max(int(it.get("id")) for it in self.layers())))
        elif data is not None and data.attrib and self.rng.random() < 0.6:
            name = self.rng.choice(sorted(data.attrib))
            data.set(name, data.get(name) + self.rng.choice(["0", "1", "x"]))
        layers = self.graph.find("layers")
        layers.insert(list(layers).index(layer) + self.rng.choice([0, 1]), made)
        return True

    def merge_marks(self):
        draw = self.rng.random()

        def change(text):
            lines = text.split("\n")
            at = 2 + int(draw * (len(lines) - 4))
            return "\n".join(lines[:at] + ["<<<<<<< HEAD", lines[at], "=======", lines[at].replace('"', '"1', 1), ">>>>>>> other"] + lines[at + 1:])
        return self.retext(change)

    # Types

    def types_replaced_in_ports(self):
        old, new = self.rng.choice([("FP32", "FP16"), ("I64", "I32"), ("FP32", "FP64"), ("I32", "I64")])
        return self.retext(lambda text: text.replace(f'precision="{old}"', f'precision="{new}"'))

    def types_replaced_in_data(self):
        old, new = self.rng.choice([("f32", "f16"), ("i64", "i32"), ("f32", "f64"), ("f32", "bf16"), ("i32", "i64"), ("f32", "i32")])
        name = self.rng.choice(["element_type", "destination_type", r"\w+"])
        return self.retext(lambda text: re.sub(rf'({name})="{old}"', rf'\1="{new}"', text))

    def types_replaced_for(self):
        """All layers of one operation, data and ports."""
        kind = self.rng.choice(["Parameter", "Const", "Convert"])
        old, new = self.rng.choice([("f32", "f16"), ("i64", "i32"), ("f32", "f64")])
        names = {"f32": "FP32", "f16": "FP16", "i64": "I64", "i32": "I32", "f64": "FP64"}
        changed = False
        for layer in self.layers(kind):
            for name, value in layer.find("data").attrib.items():
                if value == old:
                    layer.find("data").set(name, new)
                    changed = True
            for port in self.ports(layer, "output"):
                if port.get("precision") == names[old]:
                    port.set("precision", names[new])
        return changed

    def constant_transposed(self):
        layer = self.pick(it for it in self.layers("Const") if len(it.find("data").get("shape", "").split(",")) > 1)
        if layer is None:
            return False
        dims = layer.find("data").get("shape").split(",")
        made = dims[::-1] if self.rng.random() < 0.5 else self.shuffled(dims)
        layer.find("data").set("shape", ",".join(made))
        if self.rng.random() < 0.6:
            for dim, text in zip(layer.findall("output/port/dim"), made):
                dim.text = text.strip()
        return [it.strip() for it in made] != [it.strip() for it in dims]

    # The weights

    def size_in_elements(self):
        data = self.pick(it.find("data") for it in self.layers("Const"))
        if data is None or not data.get("size", "").isdigit():
            return False
        data.set("size", str(int(data.get("size")) // self.rng.choice([2, 4, 8])))
        return True

    def offsets_shifted_from(self):
        """A row was inserted in another version of the file: the later offsets are too high."""
        found = sorted((it.find("data") for it in self.root.iter("layer") if it.get("type") == "Const"), key=lambda it: int(it.get("offset")))
        if len(found) < 2:
            return False
        start, by = self.rng.randrange(len(found)), self.rng.choice([4, 8, 16, 64, -4, -8])
        for data in found[start:]:
            data.set("offset", str(max(0, int(data.get("offset")) + by)))
        return True

    def offset_of_another(self):
        """A constant is read from the bytes of another one."""
        found = [it.find("data") for it in self.layers("Const")]
        if len(found) < 2:
            return False
        one, other = self.rng.sample(found, 2)
        before = one.get("offset")
        one.set("offset", other.get("offset"))
        if self.rng.random() < 0.3:
            one.set("size", other.get("size"))
        return before != one.get("offset")

    def bin_with_header(self):
        head = self.rng.choice([b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".ljust(127) + b"\n", b"\x93NUMPY\x02\x00\x76\x00\x00\x00".ljust(128), len(b'{"a":1} ').to_bytes(8, "little") + b'{"a":1} ', b"GGUF\x03\0\0\0", b"PK\x03\x04".ljust(30, b"\0"), b"\xef\xbb\xbf", b"\0" * self.rng.choice(SIZES), len(self.weights).to_bytes(8, "little"), b"\x1f\x8b\x08\0"])
        self.weights[:0] = head
        return True

    def bin_with_row(self):
        """A constant has a row more than its shape: repeated, of zeros, or of the next constant."""
        found = [it.find("data") for it in self.root.iter("layer") if it.get("type") == "Const" and int(it.find("data").get("size")) >= 16]
        data = self.pick(found)
        if data is None:
            return False
        start, size = int(data.get("offset")), int(data.get("size"))
        dims = [int(it) for it in data.get("shape").split(",") if it.strip()] or [1]
        row = max(1, size // max(1, dims[0]))
        at = start + row * self.rng.randint(0, max(1, dims[0]))
        if self.rng.random() < 0.3:
            del self.weights[at:at + row]
        else:
            self.weights[at:at] = bytes(row) if self.rng.random() < 0.5 else bytes(self.weights[start:start + row])
        return True

    def bin_reordered(self):
        """The bytes of two constants change places."""
        found = sorted({(int(it.find("data").get("offset")), int(it.find("data").get("size"))) for it in self.root.iter("layer") if it.get("type") == "Const"})
        if len(found) < 2:
            return False
        (one, first), (other, second) = sorted(self.rng.sample(found, 2))
        if one + first > other:
            return False
        mine, theirs = bytes(self.weights[one:one + first]), bytes(self.weights[other:other + second])
        self.weights[other:other + second] = mine
        self.weights[one:one + first] = theirs
        return mine != theirs

    def bin_trimmed(self):
        end = self.rng.choice(["head", "tail", "zeros"])
        by = self.rng.choice(SIZES)
        if end == "zeros":
            self.weights += bytes(by)
            return False
        before = len(self.weights)
        self.weights[:] = self.weights[by:] if end == "head" else self.weights[:-by]
        return before > 0

    def constants_changed(self):
        """Two integers of the weights."""
        return self.constant_changed() and self.constant_changed()

    def constant_negated(self):
        data = self.pick(it.find("data") for it in self.layers("Const") if it.find("data").get("element_type") == "i64" and it.find("data").get("size") != "0")
        if data is None:
            return False
        at = int(data.get("offset")) + 8 * self.rng.randrange(max(1, int(data.get("size")) // 8))
        value = int.from_bytes(self.weights[at:at + 8], "little", signed=True)
        self.weights[at:at + 8] = max(-(1 << 63) + 1, -value).to_bytes(8, "little", signed=True)
        return value != 0

    def constant_reordered(self):
        data = self.pick(it.find("data") for it in self.layers("Const") if it.find("data").get("element_type") == "i64" and int(it.find("data").get("size", 0)) > 8)
        if data is None:
            return False
        start, size = int(data.get("offset")), int(data.get("size"))
        rows = [bytes(self.weights[at:at + 8]) for at in range(start, start + size, 8)]
        made = b"".join(self.shuffled(rows))
        before = bytes(self.weights[start:start + size])
        self.weights[start:start + size] = made
        return made != before


KINDS = [name for name, value in vars(Hostile).items() if callable(value) and not name.startswith("_")]
