"""Further damages of `damage.py`: those of an editor or a script that changes the text of a file as a whole, or copies parts of it.

The methods of `Editing` have the form of those in `kinds.py`. Changes of the text are made after the tree was written.
"""
import copy
import re


class Editing:
    """Damages that `kinds.Damage` inherits."""

    # Parts that are copied or exchanged

    def copied_attributes(self):
        """The attributes of a sibling of the same operation."""
        one, other = self.siblings()
        if one is None or one.find("data") is None or other.find("data") is None or one.get("type") == "Const":
            return False
        before = dict(one.find("data").attrib)
        one.find("data").attrib.clear()
        one.find("data").attrib.update(other.find("data").attrib)
        return dict(one.find("data").attrib) != before

    def copied_ports(self):
        one, other = self.siblings()
        if one is None:
            return False
        side = self.pick(["input", "output"])
        mine, theirs = one.find(side), other.find(side)
        if mine is None or theirs is None:
            return False
        index = list(one).index(mine)
        one.remove(mine)
        one.insert(index, copy.deepcopy(theirs))
        return True

    def copied_input(self):
        """The first edge of a sibling: a script that takes the wrong name."""
        one, other = self.siblings()
        mine, theirs = (self.into(it) if it is not None else [] for it in (one, other))
        if not mine or not theirs:
            return False
        edge = self.pick(mine)
        meant = next((it for it in theirs if it.get("to-port") == edge.get("to-port")), theirs[0])
        before = dict(edge.attrib)
        edge.set("from-layer", meant.get("from-layer")), edge.set("from-port", meant.get("from-port"))
        return dict(edge.attrib) != before

    def sources_exchanged(self):
        """The starts of two edges into different layers."""
        one, other = self.pick(self.edges()), self.pick(self.edges())
        for name in ("from-layer", "from-port"):
            first, second = one.get(name), other.get(name)
            one.set(name, second), other.set(name, first)
        return one is not other and any(one.get(name) != other.get(name) for name in ("from-layer", "from-port"))

    def consumers_moved(self):
        """All consumers of a tensor take another one."""
        edge, other = self.pick(self.edges()), self.pick(self.edges())
        start = edge.get("from-layer"), edge.get("from-port")
        target = other.get("from-layer"), other.get("from-port")
        for it in self.edges():
            if (it.get("from-layer"), it.get("from-port")) == start:
                it.set("from-layer", target[0]), it.set("from-port", target[1])
        return start != target

    def ids_exchanged(self):
        """The ids of two layers, but not in the edges."""
        one, other = self.pick(self.layers()), self.pick(self.layers())
        first, second = one.get("id"), other.get("id")
        one.set("id", second), other.set("id", first)
        return first != second

    def block_pasted_with_new_ids(self):
        """A block is copied with new ids and edges, and some consumers take the copy."""
        layers = self.layers()
        start = self.rng.randrange(len(layers))
        block = [it for it in layers[start:start + self.rng.choice([2, 3, 5])] if it.get("type") not in ("Result", "Parameter")]
        if not block:
            return False
        by = 1 + max(int(it.get("id")) for it in layers)
        ids = {it.get("id"): str(by + at) for at, it in enumerate(block)}
        for layer in block:
            made = copy.deepcopy(layer)
            made.set("id", ids[layer.get("id")])
            self.graph.find("layers").append(made)
        for edge in self.edges():
            if edge.get("to-layer") in ids:
                made = copy.deepcopy(edge)
                made.set("to-layer", ids[edge.get("to-layer")])
                made.set("from-layer", ids.get(edge.get("from-layer"), edge.get("from-layer")))
                self.graph.find("edges").append(made)
            elif edge.get("from-layer") in ids and self.rng.random() < 0.5:
                edge.set("from-layer", ids[edge.get("from-layer")])
        return True

    def layer_between(self):
        """A layer that nobody wants: an activation, or a Convert to another type."""
        edge = self.pick(self.edges())
        new = str(1 + max(int(it.get("id")) for it in self.layers()))
        source = next((it for it in self.layers() if it.get("id") == edge.get("from-layer")), None)
        port = next((it for it in self.ports(source, "output") if it.get("id") == edge.get("from-port")), None) if source is not None else None
        if port is None:
            return False
        made = copy.deepcopy(source)
        for child in list(made):
            made.remove(child)
        ty = self.rng.choice(["ReLU", "Convert", "Abs"])
        made.attrib.update(id=new, name=f"new{new}", type=ty, version="opset1")
        if ty == "Convert":
            made.append(made.makeelement("data", {"destination_type": self.rng.choice(["f16", "i32", "i64", "f32"])}))
        for side, number in (("input", "0"), ("output", "1")):
            element, own = made.makeelement(side, {}), copy.deepcopy(port)
            own.set("id", number)
            element.append(own)
            made.append(element)
        self.graph.find("layers").append(made)
        after = copy.deepcopy(edge)
        after.set("from-layer", new), after.set("from-port", "1")
        self.graph.find("edges").append(after)
        edge.set("to-layer", new), edge.set("to-port", "0")
        return True

    def input_order_of_a_loop(self):
        """Two edges into a layer with bodies, or two entries of its port map, exchange their ends."""
        owner = self.pick(it for it in self.root.iter("layer") if it.find("port_map") is not None or it.find("then_port_map") is not None)
        if owner is None:
            return False
        entries = [it for part in owner if "port_map" in part.tag or part.tag == "back_edges" for it in part]
        name = self.rng.choice(["external_port_id", "internal_layer_id", "from-layer", "to-layer"])
        entries = [it for it in entries if it.get(name) is not None]
        if len(entries) < 2:
            return False
        one, other = self.rng.sample(entries, 2)
        first, second = one.get(name), other.get(name)
        one.set(name, second), other.set(name, first)
        return first != second

    def body_renumbered(self):
        """The layers of a body get new ids, with their edges and without the port map."""
        body = self.pick(it for it in self.root.iter() if it.tag in ("body", "then_body", "else_body"))
        if body is None:
            return False
        layers = list(body.find("layers"))
        order = self.rng.choice(["from 1", "backwards", "from 100"])
        ids = {it.get("id"): str({"from 1": at + 1, "backwards": len(layers) - 1 - at, "from 100": at + 100}[order]) for at, it in enumerate(layers)}
        for layer in layers:
            layer.set("id", ids[layer.get("id")])
        for edge in body.find("edges"):
            for end in ("from-layer", "to-layer"):
                edge.set(end, ids.get(edge.get(end), edge.get(end)))
        return True

    def bodies_exchanged(self):
        owner = self.pick(it for it in self.root.iter("layer") if it.find("then_body") is not None and it.find("else_body") is not None)
        if owner is None:
            return False
        one, other = owner.find("then_body"), owner.find("else_body")
        one.tag, other.tag = "else_body", "then_body"
        return True

    # The weights

    def constant_retyped(self):
        """A constant is stored as half precision, or read as another type of the same width."""
        constants = [it for it in self.layers("Const") if it.find("data").get("element_type") == "f32"]
        layer = self.pick(constants)
        if layer is None:
            return False
        layer.find("data").set("element_type", self.rng.choice(["f16", "i32", "u32", "bf16"]))
        return True

    def constant_flattened(self):
        """`1,8,1,1` becomes `8`, or the other way round."""
        constants = [it for it in self.layers("Const") if "," in it.find("data").get("shape", "")]
        layer = self.pick(constants)
        if layer is None:
            return False
        data = layer.find("data")
        dims = data.get("shape").split(",")
        made = [it for it in dims if it.strip() != "1"] if self.rng.random() < 0.7 else ["1", *dims]
        data.set("shape", ",".join(made))
        port = layer.find("output/port")
        if self.rng.random() < 0.5 and port is not None:
            for dim in port.findall("dim"):
                port.remove(dim)
            for text in made:
                port.append(dim_of(port, text))
        return made != dims

    def row_inserted(self):
        """A line of a table is added in the middle of a constant."""
        data = self.pick(it.find("data") for it in self.layers("Const") if int(it.find("data").get("size", 0)) >= 64)
        if data is None:
            return False
        width = self.rng.choice([4, 16, 32, 64])
        at = int(data.get("offset")) + self.rng.randrange(int(data.get("size")) // 4) * 4
        self.weights[at:at] = bytes(self.weights[at:at + width])
        return True

    def weights_swapped_to_big_endian(self):
        before = bytes(self.weights)
        for at in range(0, len(self.weights) - 3, 4):
            self.weights[at:at + 4] = self.weights[at:at + 4][::-1]
        return before != bytes(self.weights)

    def weights_through_half_precision(self):
        """All constants of f32 are stored as f16, and the sizes are left."""
        import numpy as np
        count = len(self.weights) // 4
        with np.errstate(all="ignore"):
            self.weights[:] = np.frombuffer(bytes(self.weights[:4 * count]), "<f4").astype("<f2").tobytes()
        return count > 0

    # The text

    def retext(self, change):
        """Changes the text once it is written; True if that is a change."""
        self.changes.append(change)
        return True

    def replaced_everywhere(self):
        """A search for a word and its replacement in the whole file."""
        old, new = self.rng.choice([("f32", "f16"), ("FP32", "FP16"), ('"true"', '"True"'), ('"false"', '"False"'), ("i64", "i32"), ('"I64"', '"I32"'), ("numpy", "none"), ("opset1\"", "opset8\""), ('"-1"', '"1"'),
                                    (",", ";"), (", ", "x"), ('precision="', 'type="'), ("to-port", "to_port"), ("from-layer", "from_layer"), ("<dim>1</dim>", "<dim>-1</dim>"), ("<dim>1</dim>", "<dim>8</dim>"), ("axis=", "axes="), ('"Const"', '"Constant"'), ("0.", "0,")])
        return self.retext(lambda text: text.replace(old, new))

    def replaced_once(self):
        old, new = self.rng.choice([('"', "”"), ('"', "'"), ("=", " "), ("<", ""), (">", ""), ("/>", ">"), ("</", "<"), (' id="', ' Id="'), ("port", "prot"), ("layer", "Layer"), ("dim", "Dim"), ("edge", "egde"), ("data", "Data"), ("type=", "typ="), ("version=", "ver="), ("output", "outputs"), ("input", "inputs")])
        draw = self.rng.random()

        def change(text):
            places = [it.start() for it in re.finditer(re.escape(old), text)]
            at = places[int(draw * len(places))] if places else None
            return text if at is None else text[:at] + new + text[at + len(old):]
        return self.retext(change)

    def line_lost(self):
        return self.on_lines(lambda lines, at: lines[:at] + lines[at + 1:])

    def line_twice(self):
        return self.on_lines(lambda lines, at: lines[:at] + [lines[at]] + lines[at:])

    def lines_exchanged(self):
        return self.on_lines(lambda lines, at: lines[:at] + lines[at:at + 2][::-1] + lines[at + 2:])

    def lines_lost(self):
        count = self.rng.choice([2, 3, 8])
        return self.on_lines(lambda lines, at: lines[:at] + lines[at + count:])

    def line_in_a_comment(self):
        return self.on_lines(lambda lines, at: lines[:at] + ["<!-- " + lines[at].strip() + " -->"] + lines[at + 1:])

    def truncated(self):
        draw = self.rng.uniform(0.5, 0.99)
        return self.retext(lambda text: text[:int(draw * len(text))])

    def character_lost(self):
        return self.on_character(lambda text, at: text[:at] + text[at + 1:])

    def character_typed(self):
        other = self.rng.choice("0123456789aeinrst-,. ")
        return self.on_character(lambda text, at: text[:at] + other + text[at:])

    def character_changed(self):
        other = self.rng.choice("0123456789aeinrst-,. ")
        return self.on_character(lambda text, at: text[:at] + other + text[at + 1:])

    def digit_changed(self):
        draw, other = self.rng.random(), self.rng.choice("0123456789")

        def change(text):
            places = [it.start() for it in re.finditer(r"\d", text)]
            at = places[int(draw * len(places))]
            return text[:at] + other + text[at + 1:]
        return self.retext(change)

    def all_in_guise(self):
        """A script that writes every number of one attribute in its own way."""
        name = self.rng.choice(["axis", "shape", "offset", "size", "id", "to-layer", "strides", "from-port", "levels", "min"])
        way = self.rng.choice(["{}.0", "[{}]", "({})", "{:04}", "{:+}", "{:#x}", "{}L", "'{}'"])

        def guise(match):
            try:
                return f'{match[1]}="{way.format(int(match[2]))}"'
            except ValueError:
                return match[0]
        return self.retext(lambda text: re.sub(rf'(?<=\s)({name})="(-?\d+)"', guise, text))

    def on_lines(self, change):
        draw = self.rng.random()

        def edit(text):
            lines = text.split("\n")
            places = [at for at, line in enumerate(lines) if 0 < at < len(lines) - 1 and "rt_info" not in line and "attribute" not in line]
            return text if not places else "\n".join(change(lines, places[int(draw * len(places))]))
        return self.retext(edit)

    def on_character(self, change):
        draw = self.rng.random()

        def edit(text):
            places = [it.start() for it in re.finditer(r"[^\s]", text) if it.start() > 30]
            return change(text, places[int(draw * len(places))]) if places else text
        return self.retext(edit)

    def siblings(self):
        """Two layers of the same operation."""
        by_type = {}
        for layer in self.layers():
            by_type.setdefault(layer.get("type"), []).append(layer)
        several = [it for it in by_type.values() if len(it) > 1]
        return self.rng.sample(self.pick(several), 2) if several else (None, None)


def dim_of(port, text):
    dim = port.makeelement("dim", {})
    dim.text = text
    return dim


KINDS = [name for name, value in vars(Editing).items() if callable(value) and not name.startswith("_") and name not in ("retext", "on_lines", "on_character", "siblings")]
