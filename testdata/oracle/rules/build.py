"""Models in which the pattern of a rule occurs, or nearly occurs."""

import re

import numpy as np
import openvino as ov
from openvino.utils.node_factory import NodeFactory

FACTORIES = {number: NodeFactory(f"opset{number}") for number in range(1, 17)}
NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
    "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "boolean": np.bool_,
}
# Types of less than a byte, with their bits.
SMALL = {"u4": 4, "i4": 4, "u2": 2, "nf4": 4, "f4e2m1": 4}
FLOATS = ("f64", "f32", "f16", "bf16")
ELEMENTWISE = {
    "Add", "Subtract", "Multiply", "Divide", "Power", "Maximum", "Minimum", "SquaredDifference", "Greater",
    "GreaterEqual", "Less", "LessEqual", "Equal", "LogicalOr", "LogicalAnd", "Mod", "FloorMod",
}
BOOLEAN = {"LogicalOr", "LogicalAnd", "LogicalNot"}
REDUCTIONS = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"}
ATTRIBUTES = {
    "Gelu": {"approximation_mode": "erf"}, "Clamp": {"min": 0.0, "max": 6.0}, "Elu": {"alpha": 1.0},
    "Softmax": {"axis": 1}, "LogSoftmax": {"axis": 1},
    "Convolution": {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "auto_pad": "explicit"},
    "DepthToSpace": {"mode": "blocks_first", "block_size": 2}, "BatchNormInference": {"epsilon": 1e-3},
    "FakeQuantize": {"levels": 16}, "ScaledDotProductAttention": {"causal": False},
    "MaxPool": {"rounding_type": "floor", "auto_pad": "explicit"},
    "AvgPool": {"rounding_type": "floor", "auto_pad": "explicit", "exclude-pad": True},
    "StridedSlice": {"begin_mask": [], "end_mask": []}, "Pad": {"pad_mode": "constant"},
    "ShapeOf": {"output_type": "i64"}, "NormalizeL2": {"eps": 1e-5, "eps_mode": "add"},
    "MVN": {"eps": 1e-5, "normalize_variance": True, "eps_mode": "INSIDE_SQRT"},
}
LEGACY = {"BatchNormInference": 5, "Swish": 4, "HSwish": 4, "Mish": 4, "SoftPlus": 4, "HSigmoid": 5, "Roll": 7}


def logical(value):
    return {"true": True, "false": False}.get(value, value)


class Lack(Exception):
    """A pattern that cannot be built with what was drawn."""


class Builder:
    """One model around the pattern of one rule."""

    def __init__(self, rule, random):
        self.rule, self.random = rule, random
        floats = rule.set in ("fuse-sdpa", "split-sdpa", "norms") and random.random() < 0.9
        self.type = self.pick({"f32": 80, "f16": 12, "f64": 6, "bf16": 4}) if floats else self.pick({"f32": 60, "f16": 12, "f64": 6, "bf16": 4, "i32": 8, "i64": 5, "u8": 2, "i8": 2, "u64": 1})
        self.near = random.random() < 0.35
        self.parameters, self.inner, self.bound, self.numbers, self.variables = [], [], {}, {}, {}
        self.perms, self.shapes, self.axes = [], [], []
        rank = self.pick({0: 2, 1: 10, 2: 25, 3: 30, 4: 28, 5: 5})
        self.base = [int(random.choice([1, 2, 3, 4, 6])) for _ in range(rank)]
        # OpenVINO crashes on empty tensors in some of its own kernels, such as MVN's.
        if self.base and rule.set in ("no-ops", "movement", "affine") and random.random() < 0.03:
            self.base[int(random.integers(rank))] = 0
        # Tensors of other patterns that this one may use.
        self.others = []
        # How often an input is converted to another type and back.
        self.converted = 0.03

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, weights):
        names, each = list(weights), np.array(list(weights.values()), float)
        return names[self.random.choice(len(names), p=each / each.sum())]

    def any(self, items):
        return items[self.random.integers(len(items))]

    # Layers and constants.

    def node(self, operation, inputs, attributes=None, opset=None):
        attributes = ATTRIBUTES.get(operation, {}) | (attributes or {})
        if operation in ELEMENTWISE and len(inputs) == 2 and self.chance(0.04):
            shapes = [output.get_partial_shape() for output in inputs]
            attributes["auto_broadcast"] = "none" if shapes[0] == shapes[1] and shapes[0].is_static else "numpy"
        if operation in CONVOLUTIONS and self.chance(0.25):
            attributes |= self.any([{"strides": [2, 1]}, {"dilations": [2, 1]}, {"pads_begin": [1, 0], "pads_end": [0, 1]}, {"auto_pad": "same_upper"}, {"auto_pad": "valid"}])
        opsets = [opset] if opset and operation != "ScaledDotProductAttention" else [LEGACY[operation]] if operation in LEGACY else [self.any([1, 3, 4, 6, 8, 11, 13, 15]), 8, 15, 1]
        error = None
        for opset in opsets:
            try:
                found = FACTORIES[opset].create(operation, list(inputs), attributes)
            except Exception as refusal:
                error = refusal
                continue
            self.inner += [output for output in found.outputs() if output.get_element_type() != ov.Type.boolean]
            if self.chance(0.01):
                found.get_rt_info()[self.any(["precise_0", "keep_const_precision_0"])] = ""
            return found
        raise Lack(f"{operation}: {str(error)[:300]}")

    def array(self, values, type):
        if type in SMALL:
            size = -(-int(np.prod(np.shape(values))) * SMALL[type] // 8)
            codes = self.random.integers(0, 256, size, np.uint8)
            return ov.op.Constant(ov.Tensor(codes, ov.Shape(np.shape(values)), getattr(ov.Type, type))).output(0)
        if type == "bf16":
            values = np.asarray(values, np.float32)
            node = ov.op.Constant(ov.Type.bf16, ov.Shape(values.shape), values.reshape(-1).tolist())
            return node.output(0)
        with np.errstate(all="ignore"):
            values = np.asarray(values)
            if type in ("u8", "u16", "u32", "u64"):
                values = np.abs(values)
            return ov.op.Constant(np.array(values, NUMPY[type], order="C")).output(0)

    def constant(self, values, type):
        """A constant, sometimes stored in another type before a Convert, or in another shape."""
        values = np.asarray(values)
        if values.size and self.chance(0.03):
            flat = self.array(values.reshape(-1), type)
            node = self.node("Reshape", [flat, self.array(np.array(values.shape, np.int64), "i64")], {"special_zero": False})
            self.inner.pop()
            return node.output(0)
        if type in ("f32", "f64") and values.dtype != bool and self.chance(0.03) and np.all(np.abs(values) < 100) and np.all(values == np.round(values)):
            node = self.node("Convert", [self.array(values, "i8")], {"destination_type": type})
            self.inner.pop()
            return node.output(0)
        if type in ("f32", "f64") and self.chance(0.12):
            with np.errstate(all="ignore"):
                stored = self.array(values.astype(np.float16), "f16")
            node = self.node("Convert", [stored], {"destination_type": type})
            self.inner.pop()
            if self.chance(0.7):
                node.get_rt_info()["decompression_0"] = ""
            return node.output(0)
        return self.array(values, type)

    def integers(self, values):
        values = np.asarray(values, np.int64)
        fits = not values.size or np.abs(values).max() < 2**31
        return self.array(values, self.pick({"i64": 3, "i32": 1}) if fits else "i64")

    def parameter(self, shape, type):
        fits = [it for it in self.others if self.type_of(it) == type and it.get_partial_shape().is_static and list(it.get_shape()) == [int(dim) for dim in shape]]
        if fits and self.chance(0.7):
            return self.any(fits)
        node = ov.op.Parameter(getattr(ov.Type, type), ov.PartialShape([int(it) for it in shape]))
        self.parameters.append(node)
        output = node.output(0)
        if type in FLOATS and self.chance(0.25):
            output = self.node(self.any(["Abs", "Negative", "Sin", "Sqrt", "Tanh"]), [output]).output(0)
        if type != "boolean" and self.chance(self.converted):
            for other in (self.any(["f64", "f32", "f16", "i64", "i32", "u8", type]), type):
                output = self.node("Convert", [output], {"destination_type": other}).output(0)
        return output

    def shape(self, output):
        if output.get_partial_shape().is_dynamic:
            raise Lack("an open shape")
        return [int(dim) for dim in output.get_shape()]

    def type_of(self, output):
        name = output.get_element_type().get_type_name()
        return {"float": "f32"}.get(name, name)

    def after(self, output):
        """What uses the root of a pattern."""
        type = self.type_of(output)
        if type == "boolean":
            return self.node("LogicalNot", [output]).output(0)
        if type in FLOATS and self.chance(0.5):
            return self.node("Tanh", [output]).output(0)
        return self.node("Maximum", [output, self.array(np.float64(1), type)]).output(0)

    # Terms of the pattern.

    def build(self, term, hint):
        kind = term[0]
        if kind == "number":
            return self.number(term[1], hint)
        if kind == "list":
            return self.integers(term[1])
        if kind == "name":
            return self.name(term, hint)
        if kind == "either":
            fits = [it for it in term[1] if all(self.variables.get(name, value) == logical(value) or not str(name).startswith("$") or name not in self.variables for name, value in it[1].items())]
            branch, settings = self.any(fits or term[1])
            for name, value in settings.items():
                if isinstance(name, tuple):
                    if value[0] != ("number", float(value[1])):
                        raise Lack("a branch that never holds")
                elif name.startswith("$"):
                    self.variables[name] = logical(value)
                else:
                    self.numbers[name] = float(value)
            return self.build(branch, hint)
        if kind in ("sum", "product"):
            return self.chain(kind, term[1], hint)
        if kind == "call":
            return self.call(term, hint)
        raise Lack(f"no way to build {term}")

    def name(self, term, hint):
        _, name, optional, constant, types = term
        if optional and self.chance(0.4):
            return None
        if name in self.rule.where and name not in self.bound:
            outputs, _, body = self.rule.where[name]
            self.bound[name] = self.build(body, {**hint, "as": None})
        known = [it for it in types if not it.startswith("$") and it in (*NUMPY, *SMALL, "bf16")]
        if name in self.bound and name != "_":
            found = self.bound[name]
            if isinstance(found, np.ndarray):
                return self.constant(found, hint["type"])
            if self.near and self.chance(0.03):
                return self.tensor({**hint, "shape": self.shape(found)})
            return found
        if known and hint["type"] not in known:
            hint = {**hint, "type": self.any(known)}
        if "plan" in hint and hint["plan"] is not None:
            found = self.computed(hint) if not constant and self.chance(0.6) else self.integers(hint["plan"])
        elif constant and name == "n":
            found = self.constant(np.full(self.scalar_shape(hint), self.any([-np.inf, -np.inf, -np.inf, -1e4, -65504])), hint["type"])
        elif constant and "u4" in known:
            # Codes of weights.
            shape = hint.get("shape") or (self.base if len(self.base) > 1 else [3, 4])
            found = self.array(np.abs(self.values(shape)) * 20, hint["type"])
        elif constant:
            found = self.some_constant(hint)
        elif self.chance(0.04):
            found = self.constant(self.values(hint.get("shape") or self.near_shape(hint)), hint["type"])
        else:
            found = self.tensor(hint)
        if name != "_":
            self.bound[name] = found
        return found

    def computed(self, hint):
        """A list that is computed from the shape of what it is for, where it can be."""
        values, first = hint["plan"], hint.get("first")
        if not isinstance(values, list) or not values or first is None:
            return self.integers(values)
        shape, parts = self.shape(first), []
        known = self.node("ShapeOf", [first], {"output_type": "i64"}, 3).output(0)
        for at, value in enumerate(values):
            place = at if at < len(shape) and shape[at] == value else shape.index(value) if value in shape else None
            if place is None:
                parts.append(self.array(np.array([value]), "i64"))
            else:
                parts.append(self.node("Gather", [known, self.array(np.array([place]), "i64"), self.array(np.int64(0), "i64")], {}, 8).output(0))
        found = self.node("Concat", parts, {"axis": 0}).output(0)
        del self.inner[-len(parts) - 2 :]
        return found

    def values(self, shape):
        values = self.random.choice([0.1, 0.5, 1, 2, 3, -1, -2, 0.25, 10], size=shape)
        return values + self.random.normal(size=shape) * 0.1 * (self.random.random() < 0.5)

    def number(self, value, hint):
        if hint.get("plan") is not None and not isinstance(value, bool):
            # A number in the place of a list of integers.
            shape = self.pick({(): 1, (1,): 3})
            return self.array(np.full(np.shape(hint["plan"]) or shape, int(value)) if self.chance(0.3) else np.full((1,), int(value)), "i64")
        if hint.get("integer"):
            return self.integers(np.full(self.any([(), (1,)]), int(value)))
        if self.near and self.chance(0.06) and not isinstance(value, bool) and np.isfinite(value):
            value = self.any([value * 1.01, value * 1.0002, value + 1, -value, -10000.0])
        if np.isinf(value) and self.chance(0.3):
            value = self.any([-10000.0, -65504.0, -3.4e38])
        return self.constant(np.full(self.scalar_shape(hint), value), "boolean" if isinstance(value, bool) else hint["type"])

    def scalar_shape(self, hint):
        """A shape of one element, seldom one that changes what it is combined with."""
        rank = len(hint["sibling"]) if hint.get("sibling") is not None else len(self.base)
        if hint.get("shape") == []:
            return ()
        kind = self.pick({"scalar": 50, "one": 20, "rank": 16, "above": 5, "full": 5, "any": 2})
        if kind == "full" and hint.get("sibling") is not None:
            return tuple(hint["sibling"])
        return {"scalar": (), "one": (1,), "rank": (1,) * rank, "above": (1,) * (rank + 1)}.get(kind, (int(self.any([1, 2, 3])),))

    def some_constant(self, hint):
        """A constant that a rule binds: of one element, or of one for each channel."""
        if self.rule.set == "fuse-sdpa" and self.chance(0.8):
            return self.constant(np.full(self.scalar_shape(hint), 0.25), hint["type"])
        if hint.get("shape") is not None:
            return self.constant(self.values(hint["shape"]), hint["type"])
        sibling = hint.get("sibling")
        kind = self.pick({"one": 55, "channel": 25, "last": 10, "full": 5, "other": 5})
        if sibling and len(sibling) >= 2 and kind == "channel":
            shape = [sibling[1]] + [1] * (len(sibling) - 2)
            shape = [1, *shape] if self.chance(0.5) else shape
        elif sibling and kind == "last":
            shape = [sibling[-1]]
        elif sibling and kind == "full":
            shape = list(sibling)
        elif sibling and kind == "other":
            shape = [int(self.any([1, dim])) for dim in sibling]
        else:
            shape = self.scalar_shape(hint)
        values = self.values(tuple(shape))
        if hint.get("small"):
            values = np.abs(values) * 1e-3
        elif self.chance(0.06):
            values = values * self.any([1e-7, 1e4, 300, 1e30, 0, -1e-30, np.inf])
        return self.constant(values, hint["type"])

    def near_shape(self, hint):
        sibling = hint.get("sibling")
        if sibling is None:
            return list(self.base)
        kind = self.pick({"same": 55, "ones": 20, "lower": 15, "higher": 10})
        if kind == "ones":
            return [int(self.any([1, dim])) for dim in sibling]
        if kind == "lower" and sibling:
            return list(sibling[self.random.integers(1, len(sibling) + 1) :])
        if kind == "higher" and len(sibling) < 5:
            return [int(self.any([1, 2])), *sibling]
        return list(sibling)

    def tensor(self, hint):
        if self.others and hint.get("shape") is None and hint.get("sibling") is None and self.chance(0.8):
            fits = [it for it in self.others if self.type_of(it) == hint["type"] and it.get_partial_shape().is_static]
            if fits:
                return self.any(fits)
        shape = hint["shape"] if hint.get("shape") is not None else self.near_shape(hint)
        return self.parameter(shape, hint["type"])

    # Products and sums, in any grouping and spelling.

    def chain(self, kind, parts, hint):
        built, sibling = [], hint.get("sibling")
        order = sorted(range(len(parts)), key=lambda at: self.is_constant(parts[at][1]))
        for at in order:
            power, term = parts[at]
            shape = None if self.is_constant(term) and len(parts) > 1 else hint.get("shape")
            own = {**hint, "sibling": sibling, "plan": None, "shape": shape, "small": kind == "sum" and bool(hint.get("small") or self.makes_eps(parts))}
            output = self.build(term, own)
            if output is None:
                continue
            if sibling is None or len(self.shape(output)) >= len(sibling):
                sibling = self.shape(output)
            if self.near and self.chance(0.06) and not self.is_constant(term):
                output = self.disguise(output)
            built.append((power, output))
        if not built:
            raise Lack("nothing in a chain")
        if not (self.chance(0.3)):
            built = [built[at] for at in self.random.permutation(len(built))]
        combine = self.product if kind == "product" else self.sum
        while len(built) > 1:
            at = int(self.random.integers(len(built) - 1))
            built[at : at + 2] = [combine(built[at], built[at + 1])]
        return self.alone(kind, built[0])

    def makes_eps(self, parts):
        return any(term[0] == "name" and term[1] in ("e",) for _, term in parts)

    def is_constant(self, term):
        match term:
            case ("number" | "list", _):
                return True
            case ("name", name, _, constant, _):
                return constant and name not in self.bound
        return False

    def one(self, output):
        return self.array(np.float64(1), self.type_of(output))

    def real(self, value, output):
        if self.type_of(output) not in FLOATS and value != int(value):
            raise Lack("no fractions of integers")
        shape = self.pick({(): 6, (1,): 2}) if self.shape(output) else ()
        return self.array(np.full(shape, value), self.type_of(output))

    def disguise(self, output):
        """The same at first sight: a power of a power, and so on."""
        inner, outer = self.any([(0.5, 2), (2, 0.5), (-1, -1), (3, 1 / 3), (1, 1)])
        if self.type_of(output) not in FLOATS:
            return output
        first = self.node("Sqrt", [output]).output(0) if inner == 0.5 else self.node("Power", [output, self.real(inner, output)]).output(0)
        return self.node("Sqrt", [first]).output(0) if outer == 0.5 else self.node("Power", [first, self.real(outer, output)]).output(0)

    def raised(self, power, output):
        if power == 1:
            return output
        if power == 2 and self.chance(0.4):
            return self.node("Multiply", [output, output]).output(0)
        if power == 3 and self.chance(0.3):
            return self.node("Multiply", [self.node("Multiply", [output, output]).output(0), output]).output(0)
        if power == 0.5 and self.chance(0.6):
            return self.node("Sqrt", [output]).output(0)
        if power == -0.5 and self.chance(0.7):
            root = self.node("Sqrt", [output]).output(0)
            return self.node("Divide", [self.one(output), root]).output(0) if self.chance(0.5) else self.node("Power", [root, self.real(-1, output)]).output(0)
        if power == -1 and self.chance(0.7):
            return self.node("Divide", [self.one(output), output]).output(0)
        return self.node("Power", [output, self.real(power, output)]).output(0)

    def product(self, left, right):
        (p, a), (q, b) = left, right
        if q == -1 and self.chance(0.7):
            return 1, self.node("Divide", [self.raised(p, a), b]).output(0)
        if q == -0.5 and self.chance(0.6):
            return 1, self.node("Divide", [self.raised(p, a), self.node("Sqrt", [b]).output(0)]).output(0)
        if p < 0 and q > 0 and self.chance(0.5):
            return self.product(right, left)
        inputs = [self.raised(p, a), self.raised(q, b)]
        return 1, self.node("Multiply", inputs if self.chance(0.5) else inputs[::-1]).output(0)

    def sum(self, left, right):
        (p, a), (q, b) = left, right
        if q == -1:
            return 1, self.node("Subtract", [self.alone("sum", left), b]).output(0)
        if p == -1 and self.chance(0.7):
            return 1, self.node("Subtract", [self.alone("sum", right), a]).output(0)
        inputs = [self.alone("sum", left), self.alone("sum", right)]
        return 1, self.node("Add", inputs if self.chance(0.5) else inputs[::-1]).output(0)

    def alone(self, kind, part):
        power, output = part
        if kind == "product":
            return self.raised(power, output)
        if power == 1:
            return output
        if self.chance(0.5) and self.type_of(output)[0] != "u":
            return self.node("Negative", [output]).output(0)
        return self.node("Multiply", [output, self.real(-1, output)]).output(0)

    # Layers of the pattern.

    def call(self, term, hint):
        _, names, marks, inputs, more, attributes = term
        if "?" in marks and self.chance(0.6):
            return self.build(inputs[0][0], hint)
        written = self.any(names)
        operation, _, version = written.partition("-")
        opset = int(version) if version else None
        given = self.inputs(operation, inputs, more, hint, attributes)
        own = self.attributes(operation, attributes, given)
        if operation in ("Convert",):
            own.setdefault("destination_type", hint["type"])
        if own.get("destination_type", "").startswith("$"):
            own["destination_type"] = hint["type"]
        if operation == "ConvertLike":
            pass
        commutes = operation in ("Add", "Multiply", "Maximum", "Minimum", "LogicalOr", "LogicalAnd", "SquaredDifference", "Equal")
        if commutes and self.chance(0.5):
            given = given[::-1]
        node = self.node(operation, given, own, opset or hint.get("opset"))
        if operation in ("Reshape", "Squeeze", "Unsqueeze"):
            self.shapes.append(self.shape(given[0]))
        return node.output(0)

    def attributes(self, operation, asked, given):
        own = {}
        for name, value in asked.items():
            if isinstance(value, tuple):
                if value[0] == "number":
                    own[name] = float(value[1])
                elif value[1] in self.numbers:
                    own[name] = self.numbers[value[1]]
                else:
                    own[name] = self.numbers[value[1]] = float(self.any([0, -1, 0.5, 6]) if name == "min" else self.any([6, 1, 3]))
                    self.bound.setdefault(value[1], np.float64(own[name]) + np.zeros(()))
            elif value.startswith("$"):
                known = self.variables.get(value)
                drawn = known if known is not None else self.drawn(operation, name, given)
                if drawn is not None:
                    own[name] = self.variables[value] = drawn
            elif re.fullmatch(r"-?\d+", value):
                own[name] = int(value)
            elif re.fullmatch(r"-?\d+\.\d+", value):
                own[name] = float(value)
            elif value in ("true", "false"):
                own[name] = value == "true"
            elif re.fullmatch(r"\w+", value) and value in self.numbers:
                own[name] = self.numbers[value]
            elif operation == "Clamp":
                own[name] = float(self.any([0, -1]) if name == "min" else self.any([6, 1]))
            else:
                own[name] = value
        for name in ("min", "max", "alpha", "eps", "epsilon"):
            if name in own and not isinstance(own[name], float):
                own[name] = float(own[name])
        for name, value in self.plan_attributes.items():
            own.setdefault(name, value)
        if self.near and own and self.chance(0.08):
            changed = self.any(list(own))
            if isinstance(own[changed], bool):
                own[changed] = not own[changed]
            elif isinstance(own[changed], float):
                own[changed] = self.any([own[changed] + 1, -own[changed], own[changed] * 1.001])
            elif isinstance(own[changed], int):
                own[changed] = int(self.any([0, 1, -1, -2]))
        if operation in ("Softmax",) and "axis" in own and not isinstance(own["axis"], int):
            own["axis"] = -1
        if operation == "Gelu" and "approximation_mode" not in asked:
            own.pop("approximation_mode", None)
        return own

    def drawn(self, operation, name, given):
        """A value for an attribute that the rule takes over."""
        if name in self.plan_attributes:
            return self.plan_attributes[name]
        rank = len(self.shape(given[0]))
        if name == "axis":
            axis = rank - 1 if operation == "Softmax" and self.chance(0.8) else int(self.random.integers(max(rank, 1)))
            if operation == "Concat" and self.axes and self.chance(0.7):
                axis = self.axes[-1] % max(rank, 1)
            return axis - rank if self.chance(0.4) else axis
        return {"transpose_b": self.chance(0.5), "epsilon": 1e-3, "mode": "blocks_first"}.get(name)

    def inputs(self, operation, terms, more, hint, asked):
        self.plan_attributes = {}
        if operation == "BatchNormInference" and terms[0][0][3]:
            return self.old_batch_norm(terms, hint)
        if terms and terms[0][0][0] == "list of tensors" or any(term[0] == "list of tensors" for term, _ in terms):
            return self.lists(operation, terms, hint)
        special = getattr(self, "inputs_of_" + operation.lower(), None)
        given = [None] * len(terms)
        order = sorted(range(len(terms)), key=lambda at: (at > 0 and operation not in ELEMENTWISE, self.is_constant(terms[at][0]), at))
        if operation in ("Select",):
            order = sorted(order, key=lambda at: (at == 0, self.is_constant(terms[at][0])))
        plan = None
        for at in order:
            term, optional = terms[at]
            if optional and self.chance(0.5):
                if at == len(terms) - 1:
                    continue
            known = next((output for output in given if output is not None), None)
            sibling = self.shape(known) if known is not None else hint.get("sibling") if operation in ELEMENTWISE | {"Select"} else None
            own = {"type": self.input_type(operation, at, hint, known), "sibling": sibling, "small": hint.get("small")}
            if at == 0:
                own["shape"] = self.first_shape(operation, terms, hint, asked)
            elif operation not in ELEMENTWISE | {"Select"}:
                if plan is None:
                    plan = self.plan(operation, given[0], asked, terms)
                if at <= len(plan):
                    own["plan"] = plan[at - 1]
                    own["first"] = given[0] if operation in ("Reshape", "Broadcast") else None
                    if callable(own["plan"]):
                        own |= own.pop("plan")()
            if at == 0 and own["shape"] is None:
                own.pop("shape")
                if operation not in ELEMENTWISE | {"Select"}:
                    own["sibling"] = hint.get("sibling")
                if hint.get("shape") is not None and operation not in MOVERS - {"Pad"}:
                    own["shape"] = hint["shape"]
            if hint.get("rank") and operation not in MOVERS:
                own["rank"] = hint["rank"]
            if at == 0 and operation == "Transpose" and terms[1:] and terms[1][0][0] == "list":
                own["blocks"] = terms[1][0][1]
                own["sibling"] = [2] * len(terms[1][0][1])
            given[at] = self.build(term, own)
        given = [output for output in given if output is not None]
        if given and operation not in ELEMENTWISE:
            if plan is None and operation not in ("Select", "Concat"):
                plan = self.plan(operation, given[0], asked, terms) if (more or len(terms) > 1 or operation in POOLS) else []
            if more and plan:
                for at in range(len(given) - 1, len(plan)):
                    if plan[at] is None or callable(plan[at]):
                        break
                    given.append(self.integers(plan[at]))
        return given

    def old_batch_norm(self, terms, hint):
        """Its data comes third."""
        x = self.build(terms[2][0], {"type": hint["type"], "shape": [2, 3, 4]})
        vector = {"type": hint["type"], "shape": [3], "small": True}
        return [x if at == 2 else self.build(term, vector) for at, (term, _) in enumerate(terms)]

    def input_type(self, operation, at, hint, known):
        if operation in BOOLEAN or operation == "Select" and at == 0:
            return "boolean"
        if operation == "Convert":
            if self.rule.set == "fuse-sdpa":
                return "f32"
            return self.pick({"f16": 3, "u8": 2, "i8": 1, "f32": 1, "bf16": 1, "i32": 1} | {hint["type"]: 3})
        if operation == "ConvertLike":
            return hint["type"] if at == 1 or self.chance(0.5) else self.any(["f16", "i32", "u8", "f32"])
        if known is not None and operation != "Select":
            return self.type_of(known)
        return self.type if hint["type"] == "boolean" else hint["type"]

    def first_shape(self, operation, terms, hint, asked):
        """The shape that an operation asks of its first input; None for any."""
        if operation in CONVOLUTIONS:
            channels = int(self.any([2, 4, 6]))
            return [int(self.any([1, 2])), channels, *[int(self.any([3, 4, 5]))] * 2]
        if operation in POOLS:
            return [int(self.any([1, 2])), 3, 4, 4]
        if operation == "BatchNormInference":
            return [2, 3, *self.any([[], [4], [4, 5]])]
        if operation == "MatMul" and terms[0][0][0] == "name" and len(self.base) < 1:
            return [2, 3]
        if operation == "ScaledDotProductAttention":
            return self.any([[1, 2, 3, 4], [2, 3, 4]])
        if operation == "Transpose" and hint.get("shape") and terms[1:] and terms[1][0][0] == "list":
            order = terms[1][0][1]
            if len(order) == len(hint["shape"]):
                return [hint["shape"][order.index(at)] for at in range(len(order))]
            raise Lack("another rank")
        if operation == "MatMul" and self.rule.set == "fuse-sdpa" and terms[0][0][0] != "call":
            return self.any([[1, 2, 3, 4], [2, 3, 4]])
        if operation == "Reshape" and hint.get("blocks"):
            n, c, b, h, w = 1, 3, 2, 2, 3
            return {6: [n, c * b * b, h, w], 5: [n, c * b, h, w], 4: [n, c * b, h, w]}.get(len(hint["blocks"]))
        return None

    def lists(self, operation, terms, hint):
        """The inputs of a Concat, of which a rule takes any number together."""
        given, shape = [], list(hint.get("sibling") or self.base) or [2]
        for term, _ in terms:
            if term[0] == "list of tensors":
                if term[1] in self.rule.where:
                    outputs = self.split(self.rule.where[term[1]][2], hint)
                    axis = self.axes[-1]
                    self.plan_attributes["axis"] = axis
                    given += outputs
                    continue
                many = int(self.random.integers(0, 3)) + (len(terms) == 1)
                given += [self.parameter(shape, hint["type"]) for _ in range(many)]
            else:
                found = self.build(term, {**hint, "sibling": shape, "shape": shape})
                shape = self.shape(found)
                given.append(found)
        if not given:
            raise Lack("no inputs")
        axis = self.axes[-1] if self.axes and self.chance(0.8) else int(self.random.integers(len(shape)))
        axis %= len(shape)
        self.axes.append(axis)
        self.plan_attributes.setdefault("axis", axis - len(shape) if self.chance(0.3) else axis)
        return given

    def split(self, term, hint):
        shape = list(self.base) or [4]
        axis = int(self.random.integers(len(shape)))
        shape[axis] = 6
        x = self.parameter(shape, hint["type"])
        self.axes.append(axis if not self.near or self.chance(0.8) else int(self.random.integers(len(shape))))
        if self.chance(0.5):
            node = self.node("Split", [x, self.integers(axis)], {"num_splits": 3})
        else:
            node = self.node("VariadicSplit", [x, self.integers(axis), self.integers([1, 2, 3])])
        outputs = node.outputs()
        return outputs[::-1] if self.near and self.chance(0.2) else outputs

    # Integers that operations take: shapes, axes, orders.

    def plan(self, operation, first, asked, terms):
        found = getattr(self, "plan_" + operation.lower(), None)
        if found is None and operation in REDUCTIONS:
            found = self.plan_reduction
        if found is None and operation in CONVOLUTIONS:
            return [lambda: {"shape": self.weights(operation, first)}]
        return found(first, asked, terms) if found else []

    def plan_matmul(self, first, asked, terms):
        shape = self.shape(first)
        inner = shape[-1] if asked.get("transpose_a") != "true" or len(shape) < 2 else shape[-2]
        outer = int(self.any([1, 2, 3, 5]))
        asks = asked.get("transpose_b", "")
        if asks.startswith("$"):
            transposed = self.variables.setdefault(asks, self.chance(0.6))
        else:
            transposed = asks == "true" or not asks and self.chance(0.4)
        if "transpose_b" not in asked:
            self.plan_attributes["transpose_b"] = transposed
        own = [inner, outer] if not transposed else [outer, inner]
        if self.chance(0.12):
            own = [inner]
        elif len(shape) > 2 and self.chance(0.7):
            own = [*shape[:-2], *own]
        term = terms[1][0]
        if term[0] == "call" and term[1] == ["Transpose"]:
            own[-2:] = own[-1:-3:-1]
        return [lambda: {"shape": own, "sibling": own}]

    def plan_scaleddotproductattention(self, first, asked, terms):
        *batch, length, size = self.shape(first)
        keys = length + 1
        mask = lambda: {"shape": self.any([[length, keys], [*batch, length, keys]]), "sibling": []}
        return [lambda: {"shape": [*batch, keys, size]}, lambda: {"shape": [*batch, keys, size]}, mask, lambda: {"shape": []}]

    def plan_batchnorminference(self, first, asked, terms):
        shape = self.shape(first)
        own = lambda: {"shape": [shape[1]], "small": True}
        return [own] * 4

    def plan_fakequantize(self, first, asked, terms):
        shape = self.shape(first)
        own = lambda: {"shape": self.any([[], [1], [1] * len(shape)])}
        return [own] * 4

    def weights(self, operation, first):
        _, channels, *spatial = self.shape(first)
        kernel = [1 if self.chance(0.5) else 2 for _ in spatial]
        group = 2
        return {
            "Convolution": [3, channels, *kernel],
            "ConvolutionBackpropData": [channels, 3, *kernel],
            "GroupConvolution": [group, 3, channels // group, *kernel],
            "GroupConvolutionBackpropData": [group, channels // group, 3, *kernel],
        }[operation]

    def plan_transpose(self, first, asked, terms):
        rank = len(self.shape(first))
        last = self.perms[-1] if self.perms else None
        kind = self.pick({"back": 40, "swap": 25, "same": 15, "any": 15, "none": 5})
        order = list(range(rank))
        if kind == "back" and last is not None and len(last) == rank:
            order = [int(it) for it in np.argsort(last)]
        elif kind == "swap" and rank > 1:
            order[-2:] = order[-1:-3:-1]
        elif kind == "none":
            self.perms.append(order[::-1])
            return [[]]
        elif kind != "same":
            order = [int(it) for it in self.random.permutation(rank)]
        self.perms.append(order)
        return [order]

    def plan_reshape(self, first, asked, terms):
        shape = self.shape(first)
        size = int(np.prod(shape))
        self.plan_attributes.setdefault("special_zero", self.chance(0.7))
        blocks = self.blocks_of(first, shape)
        if blocks:
            return [blocks]
        if first.get_node().get_type_name() == "MatMul" and self.shapes and self.chance(0.6):
            # The axes that were joined before the product.
            return [[*self.shapes[-1][:-1], shape[-1]]]
        if "rank(y) == 2" in self.rule.condition and shape and self.chance(0.8):
            return [[-1, shape[-1]]]
        earlier = [it for it in self.shapes if int(np.prod(it)) == size]
        kind = self.pick({"earlier": 35, "same": 50 if self.rule.set == "no-ops" else 10, "flat": 10, "ones": 15, "random": 15, "rows": 15})
        if kind == "random" and self.plan_attributes["special_zero"] and shape and self.chance(0.4):
            target = [0] * len(shape)
        elif kind == "rows" and len(shape) > 2:
            target = [-1, shape[-1]]
        elif kind == "rows" and len(shape) == 2 and self.shapes and int(np.prod(self.shapes[-1][:-1])) == shape[0]:
            target = [*self.shapes[-1][:-1], shape[1]]
        elif kind == "earlier" and earlier:
            target = list(earlier[-1])
        elif kind == "same":
            target = list(shape)
        elif kind == "flat":
            target = [-1]
        elif kind == "ones":
            target = list(shape)
            target.insert(int(self.random.integers(len(target) + 1)), 1)
        else:
            target, rest = [], size
            while rest > 1 and len(target) < 4:
                factor = int(self.any([it for it in range(1, rest + 1) if rest % it == 0]))
                target.append(factor)
                rest //= factor
            if rest > 1:
                target.append(rest)
        if not target:
            return [[]]
        if self.chance(0.35) and -1 not in target and size:
            target[int(self.random.integers(len(target)))] = -1
        if self.plan_attributes["special_zero"] and self.chance(0.4):
            target = [0 if at < len(shape) and dim == shape[at] and self.chance(0.5) else dim for at, dim in enumerate(target)]
        return [target]

    def blocks_of(self, first, shape):
        """Dims that a shape is cut into, or that a transposed one is joined to, as blocks of pixels or channels are."""
        lists = [item for _, term in walk(self.rule) for item in ([term[1]] if term[0] == "list" and len(term[1]) >= 4 else [])]
        if not lists:
            return None
        order = lists[0]
        producer = first.get_node()
        if producer.get_type_name() != "Transpose":
            if len(shape) != 4:
                return None
            n, c, h, w = shape
            b = 2
            if c % b:
                return None
            return {
                (0, 3, 4, 1, 5, 2): [n, b, b, max(c // 4, 1), h, w], (0, 1, 4, 2, 5, 3): [n, max(c // 4, 1), b, b, h, w],
                (0, 2, 1, 3, 4): [n, b, c // b, h, w], (0, 2, 1, 3): [n, b, c // b, h * w],
            }.get(tuple(order))
        if len(shape) == 6:
            a, b, c, d, e, f = shape
            return [a if self.chance(0.6) else -1, b, c * d, e * f]
        if len(shape) == 5:
            return [shape[0], shape[1] * shape[2], *shape[3:]]
        if len(shape) == 4 and shape[3] == 6:
            return [shape[0], shape[1] * shape[2], 2, 3]
        return None

    def plan_squeeze(self, first, asked, terms):
        shape = self.shape(first)
        ones = [at for at, dim in enumerate(shape) if dim == 1]
        return [[at - len(shape) if self.chance(0.3) else at for at in ones[:1]]] if ones else [[]]

    def plan_unsqueeze(self, first, asked, terms):
        rank = len(self.shape(first))
        if self.axes and self.chance(0.75):
            axes = self.axes[-1] if isinstance(self.axes[-1], list) else [self.axes[-1]]
            if all(it <= rank for it in axes):
                return [axes]
        axis = int(self.random.integers(rank + 1))
        self.axes.append(axis)
        return [self.any([[axis], axis])]

    def plan_reduction(self, first, asked, terms):
        shape, producer = self.shape(first), first.get_node()
        if not shape:
            return [[]]
        earlier = [it for it in self.axes if isinstance(it, list) and all(-len(shape) <= at < len(shape) for at in it)]
        if earlier and self.chance(0.8):
            axes = earlier[-1]
        elif producer.get_type_name() == "Transpose" and self.perms and self.chance(0.8) and len(self.perms[-1]) == len(shape):
            axes, last = [], -1
            for at, it in enumerate(self.perms[-1]):
                if it < last:
                    axes.append(at)
                last = max(last, it)
            axes = axes or [0]
        else:
            axes = sorted({int(it) for it in self.random.integers(len(shape), size=self.any([1, 1, 2]))})
            if self.chance(0.5):
                axes = [len(shape) - 1]
        self.axes.append(list(axes))
        kept = [1 if at in [it % len(shape) for it in axes] else dim for at, dim in enumerate(shape)]
        self.shapes.append(kept)
        self.plan_attributes.setdefault("keep_dims", True)
        return [[it - len(shape) for it in axes] if self.chance(0.4) else axes]

    def plan_mvn(self, first, asked, terms):
        return self.plan_reduction(first, asked, terms)

    def plan_slice(self, first, asked, terms):
        shape = self.shape(first)
        if not shape:
            raise Lack("no axes")
        free = [at for at in range(len(shape)) if at not in self.axes] or [0]
        both = bool(self.axes) and any(term[0] == "number" for term, _ in terms)
        axis = self.axes[-1] if both else int(self.any(free))
        if isinstance(axis, list):
            axis = 0
        self.axes.append(axis)
        whole = self.chance(0.8 if self.rule.set == "no-ops" else 0.35)
        middle = max(1, shape[axis] // 2)
        start, stop = (0, self.any([2147483647, 9223372036854775807, shape[axis]])) if whole else (0 if self.chance(0.5) else 1, middle)
        if both:
            last = len([it for it in self.inner if it.get_node().get_type_name() == "Slice"]) > 0
            start, stop = (middle, self.any([2147483647, shape[axis]])) if last else (0, middle)
        return [[start], [stop], [1], [axis - len(shape) if self.chance(0.3) else axis]]

    def plan_stridedslice(self, first, asked, terms):
        shape = self.shape(first)
        if not shape:
            raise Lack("no axes")
        count = int(self.random.integers(1, len(shape) + 1))
        masked = self.chance(0.4)
        begin = [0 if self.chance(0.7) else 1 for _ in range(count)]
        end = [shape[at] if self.chance(0.6) else max(1, shape[at] - 1) for at in range(count)]
        self.plan_attributes |= {
            "begin_mask": [1 if masked or self.chance(0.3) else 0 for _ in range(count)],
            "end_mask": [1 if masked or self.chance(0.4) else 0 for _ in range(count)],
            "new_axis_mask": [int(self.chance(0.03)) for _ in range(count)],
            "shrink_axis_mask": [int(self.chance(0.05)) for _ in range(count)],
        }
        return [begin, end, [1] * count]

    def plan_gather(self, first, asked, terms):
        shape = self.shape(first)
        if not shape:
            raise Lack("no axes")
        axis = int(self.random.integers(len(shape)))
        ones = [at for at, dim in enumerate(shape) if dim == 1]
        if self.axes and self.chance(0.8):
            axis = (self.axes[-1][0] if isinstance(self.axes[-1], list) else self.axes[-1]) % len(shape)
        elif ones and self.chance(0.5):
            axis = int(self.any(ones))
        self.axes.append(axis)
        indices = self.any([list(range(shape[axis])), 0, 0, [0], [-1]])
        return [indices, axis - len(shape) if self.chance(0.3) else axis]

    def plan_tile(self, first, asked, terms):
        rank = len(self.shape(first))
        return [[1 if self.chance(0.85) else 2 for _ in range(max(1, rank if self.chance(0.8) else rank + 1))]]

    def plan_broadcast(self, first, asked, terms):
        shape = self.shape(first)
        if asked.get("mode") == "bidirectional":
            return [[1] * max(1, len(shape)) if self.chance(0.7) else [2, *shape]]
        self.plan_attributes.setdefault("mode", "numpy")
        if self.rule.set == "no-ops" and self.chance(0.6):
            return [list(shape)]
        target = [dim if dim != 1 or self.chance(0.4) else 3 for dim in shape]
        return [[2, *target] if self.chance(0.3) or not target else target]

    def plan_pad(self, first, asked, terms):
        rank = len(self.shape(first))
        zero = self.chance(0.5) and asked.get("pad_mode") is None
        begin, end = ([0] * rank if zero else [0, 0, *[int(self.any([0, 1, 2])) for _ in range(rank - 2)]][:rank] for _ in range(2))
        if self.chance(0.05) and rank:
            begin[0] = 1
        self.plan_attributes.setdefault("pad_mode", "constant")
        return [begin, end, lambda: {"shape": []}]

    def plan_roll(self, first, asked, terms):
        rank = len(self.shape(first))
        return [[0 if self.chance(0.7) else 1], [int(self.random.integers(max(rank, 1)))]]

    def plan_split(self, first, asked, terms):
        rank = len(self.shape(first))
        return [int(self.random.integers(max(rank, 1)))]

    def plan_maxpool(self, first, asked, terms):
        ones = [1, 1] if self.chance(0.8) else [2, 2]
        self.plan_attributes |= {"kernel": ones, "strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
        return []

    plan_avgpool = plan_maxpool


CONVOLUTIONS = {"Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"}
POOLS = {"MaxPool", "AvgPool"}
MOVERS = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "StridedSlice", "Gather", "Pad", "Concat", "Broadcast", "Tile"}
for _name in CONVOLUTIONS:
    ATTRIBUTES[_name] = ATTRIBUTES["Convolution"]


def walk(rule):
    """All terms of a rule."""
    pending = [*rule.roots, *(body for *_, body in rule.where.values())]
    while pending:
        term = pending.pop()
        yield rule, term
        match term:
            case ("either", branches):
                pending += [branch for branch, _ in branches]
            case ("sum" | "product", parts):
                pending += [part for _, part in parts]
            case ("call", _, _, inputs, *_):
                pending += [part for part, _ in inputs]


def output_shape(parameter):
    shape = parameter.get_output_partial_shape(0)
    return [int(dim.get_length()) for dim in shape]


def model(rule, random):
    """A model around a rule's pattern, with its parameters' concrete shapes; the input shapes are made dynamic at times."""
    builder = Builder(rule, random)
    kind = "boolean" if rule.roots[0][0] == "call" and rule.roots[0][1][0] in BOOLEAN else builder.type
    root = builder.build(rule.roots[0], {"type": kind, "sibling": None, "opset": None})
    if root.get_node().get_type_name() not in ("Parameter", "Constant") and not builder.parameters:
        # A pattern of constants, which something must use.
        inputs = [builder.parameter(builder.shape(root), builder.type_of(root)), root]
        root = builder.node(builder.any(["Add", "Multiply"]), inputs).output(0)
    if root.get_node().get_type_name() in ("Parameter", "Constant") or not builder.parameters:
        raise Lack("nothing to rewrite")
    outputs = [root]
    if builder.chance(0.8 if rule.set in ("no-ops", "movement") else 0.3):
        outputs = [builder.after(root)]
    inner = [it for it in builder.inner if it.get_node() is not outputs[0].get_node()]
    if inner and builder.chance(0.12):
        outputs.append(builder.any(inner))
    if builder.chance(0.05):
        outputs.append(root)
    shapes = [[int(it) for it in parameter.get_output_shape(0)] for parameter in builder.parameters]
    parameters = builder.parameters
    if builder.chance(0.07):
        outputs, parameters = in_body(builder, outputs, parameters)
        shapes = [[], *shapes]
    found = ov.Model(outputs, parameters, "fuzz")
    if builder.chance(0.3):
        open_shapes(builder, found, shapes)
    return found, shapes, builder


def in_body(builder, outputs, parameters):
    body = ov.Model(outputs, parameters, "then")
    other = [ov.op.Constant(output.get_element_type(), output.get_shape(), [0] * int(np.prod(output.get_shape()))) for output in outputs]
    otherwise = ov.Model(other, [], "else")
    condition = ov.op.Parameter(ov.Type.boolean, ov.PartialShape([]))
    fed = [ov.op.Parameter(parameter.get_element_type(), parameter.get_partial_shape()) for parameter in parameters]
    from openvino import opset8

    node = opset8.if_op(condition)
    node.set_then_body(body)
    node.set_else_body(otherwise)
    for outer, inner in zip(fed, parameters):
        node.set_input(outer.output(0), inner, None)
    for own, other in zip(body.results, otherwise.results):
        node.set_output(own, other)
    node.validate_and_infer_types() if hasattr(node, "validate_and_infer_types") else None
    return [node.output(at) for at in range(len(outputs))], [condition, *fed]


def open_shapes(builder, found, shapes):
    """Makes dims open or bounded, or a rank unknown, where OpenVINO accepts it."""
    wanted = {}
    for parameter, shape in zip(found.get_parameters(), shapes):
        if builder.chance(0.15):
            wanted[parameter.output(0)] = ov.PartialShape.dynamic()
        else:
            dims = [builder.pick({"kept": 5, "open": 4, "bounded": 2}) for _ in shape]
            wanted[parameter.output(0)] = ov.PartialShape(
                [ov.Dimension(dim) if it == "kept" else ov.Dimension() if it == "open" else ov.Dimension(1, max(2, dim + 3)) for it, dim in zip(dims, shape)]
            )
    before = {parameter.output(0): parameter.get_partial_shape() for parameter in found.get_parameters()}
    try:
        found.reshape(wanted)
    except Exception:
        found.reshape(before)
