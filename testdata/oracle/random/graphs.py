"""Random graphs by the numbers of a seed: many operations, dynamic shapes, bodies, computed shapes, and types that disagree.

Usage: python graphs.py --seed 1 --number 5897 OUT.xml      (writes OUT.xml and OUT.bin; no OpenVINO needed)

Graph NUMBER of SEED is always the same, independent of earlier graphs. OpenVINO accepts most graphs: each value has
known dims where nothing is dynamic, and each step fits. A few percent of the steps do not fit, and every eighth graph
has a damaged text.
"""

import argparse
import math
import pathlib
import random
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bodies"))
import take

INTEGERS = ["i64", "i32", "i64", "i32", "u8", "i8", "i16", "u16", "u32", "u64"]
FLOATS = ["f32", "f32", "f32", "f16", "bf16", "f64"]
NARROW = ["u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0"]
take.CODES |= {"f64": "d", "u8": "B", "i8": "b", "i16": "h", "u16": "H", "u32": "I", "u64": "Q"}
take.PORT_TYPES |= {"bf16": "BF16", "f64": "FP64", "u8": "U8", "i8": "I8", "i16": "I16", "u16": "U16", "u32": "U32", "u64": "U64"}
take.PORT_TYPES |= {type: {"u1": "BIN"}.get(type, type.upper()) for type in NARROW + ["string"]}
BITS = {"nf4": 4} | {type: int(re.match("[a-z]+([0-9])", type)[1]) for type in NARROW if type != "nf4"}

UNARY = [("ReLU", 1), ("Sigmoid", 1), ("Tanh", 1), ("Exp", 1), ("Sqrt", 1), ("Erf", 1), ("Abs", 1), ("Floor", 1), ("Ceiling", 1),
         ("Negative", 1), ("Sign", 1), ("Log", 1), ("HSwish", 4), ("Mish", 4), ("SoftPlus", 4), ("Sin", 1), ("Cos", 1), ("Swish", 4),
         ("IsNaN", 10), ("IsFinite", 10)]
ARITHMETIC = ["Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Power", "Mod", "FloorMod", "SquaredDifference"]
COMPARISONS = ["Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"]
REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]
NUMPY = {"auto_broadcast": "numpy"}


def is_float(type):
    return type in FLOATS or type in ("f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0")


def size(type, dims):
    """Bytes of a constant: values of 3 and of 6 bits lie in groups, of 3 bytes for 8 and for 4 of them."""
    count = math.prod(dims)
    group, bits = {"u3": (8, 24), "u6": (4, 24)}.get(type, (1, BITS[type]))
    return (-(-count // group) * bits + 7) // 8


def put(dims, axis, *new):
    """The dims with others in the place of one."""
    return dims[:axis] + list(new) + dims[axis + 1 :]


class Graphs(take.Models):
    """Adds to the bodies of `take` a step for each method here whose name begins with `step_`."""

    def __init__(self, seed):
        super().__init__(seed)
        self.variables = {}
        self.steps = [getattr(self, name) for name in dir(self) if name.startswith("step_")]

    def pick(self, *choices):
        return self.random.choice(choices)

    def truth(self):
        return self.pick("true", "false")

    def type(self):
        if self.chance(0.08):
            return self.random.choice(NARROW + ["string"])
        return self.random.choice(FLOATS + FLOATS + INTEGERS + ["boolean"])

    def shape(self, dims, dynamic):
        """Spells an open dim in other ways as well."""
        texts = super().shape(dims, dynamic).split(",")
        for at, text in enumerate(texts):
            if text == "?" and self.chance(0.4):
                texts[at] = self.pick("-1", "0..", f"..{dims[at] + self.random.randint(0, 3)}")
        return ",".join(texts)

    def step(self, graph, values, depth):
        if self.chance(0.12):
            return super().step(graph, values, depth)
        for _ in range(20):
            if made := self.random.choice(self.steps)(graph, values, *self.random.choice(values)):
                return made
        return super().step(graph, values, 0)

    def axis(self, dims):
        axis = self.random.randrange(len(dims))
        return axis, axis - len(dims) if self.chance(0.3) else axis

    def ones(self, graph, type, dims):
        if type in take.CODES:
            return super().ones(graph, type, dims)
        if type == "string" or type in NARROW and self.chance(0.7):
            return self.stored(graph, type, dims)
        return graph.add("Convert", 1, {"destination_type": type}, [super().ones(graph, "f32", dims)])

    def stored(self, graph, type, dims):
        """A constant whose values are not as many bytes each."""
        if type == "string":
            texts = [self.pick(b"", b"a", b"xyz", "ä".encode()) for _ in range(math.prod(dims))]
            ends = [sum(map(len, texts[:count])) for count in range(len(texts) + 1)]
            bytes = struct.pack(f"<{len(ends) + 1}i", len(texts), *ends) + b"".join(texts)
        else:
            bytes = self.random.randbytes(size(type, dims))
        place = {"element_type": type, "shape": ", ".join(map(str, dims)), "offset": len(graph.weights), "size": len(bytes)}
        graph.weights += bytes
        return graph.add("Const", 1, place, port_type=take.PORT_TYPES[type])

    def other(self, graph, values, type, dims):
        """A second operand: of this type unless by mistake, broadcast with these dims as a rule."""
        fitting = [value for value in values if value[1] == type and value[2] == dims]
        if fitting and self.chance(0.6):
            return self.random.choice(fitting)[0]
        if self.chance(0.05):
            return self.random.choice(values)[0]
        type = self.type() if self.chance(0.04) else type
        smaller = [1 if self.chance(0.4) else dim for dim in dims][self.random.randint(0, len(dims)) :]
        if self.chance(0.3) and not graph.is_body:
            return graph.parameter(type, self.shape(smaller, 0.5))
        return self.ones(graph, type, smaller)

    # Computed shapes: tensors that hold given numbers, known or not before run time.

    def sizes(self, graph, values, numbers, type=None):
        type = type or self.pick("i64", "i64", "i32")
        if not graph.is_body and self.chance(0.04):
            return graph.parameter(type, self.shape([len(numbers)], 0.5))
        if not numbers or self.chance(0.35):
            return graph.constant(type, [len(numbers)], numbers)
        if all(number >= 0 for number in numbers) and self.chance(0.3):
            return self.from_shape(graph, values, numbers, type)
        if len(numbers) > 1 and self.chance(0.6):
            at = self.random.randint(1, len(numbers) - 1)
            parts = [self.sizes(graph, values, part, type) for part in (numbers[:at], numbers[at:])]
            return graph.add("Concat", 1, {"axis": 0}, parts)
        return self.arithmetic(graph, values, numbers, type)

    def from_shape(self, graph, values, numbers, type):
        for tensor, _, dims in self.random.sample(values, len(values)):
            if all(number in dims for number in numbers):
                shape = graph.add("ShapeOf", 3, {"output_type": type}, [tensor])
                at = [dims.index(number) for number in numbers]
                if at == list(range(len(dims))):
                    return shape
                return graph.add("Gather", 8, {"batch_dims": 0}, [shape, graph.list(*at), graph.number(0)])
        shape = self.shape(numbers, self.pick(0, 0.5, 1)) if not graph.is_body else None
        tensor = graph.parameter("f32", shape) if shape else self.ones(graph, "f32", numbers)
        return graph.add("ShapeOf", 3, {"output_type": type}, [tensor])

    def arithmetic(self, graph, values, numbers, type):
        by = self.random.randint(1, 3)
        constant = lambda number: graph.constant(type, self.pick([], [1]), [number])
        match self.pick("add", "subtract", "multiply", "maximum", "convert", "abs", "select", "slice", "reduce"):
            case "add":
                before = self.sizes(graph, values, [number - by for number in numbers], type)
                return graph.add("Add", 1, NUMPY, [before, constant(by)])
            case "subtract":
                before = self.sizes(graph, values, [number + by for number in numbers], type)
                return graph.add("Subtract", 1, NUMPY, [before, constant(by)])
            case "multiply" if by > 1:
                before = self.sizes(graph, values, [number * by for number in numbers], type)
                return graph.add(self.pick("Divide", "Divide", "FloorMod") if self.chance(0.2) else "Divide", 1, NUMPY, [before, constant(by)])
            case "maximum" if min(numbers) >= 0:
                before = self.sizes(graph, values, numbers, type)
                return graph.add("Maximum", 1, NUMPY, [before, constant(0)])
            case "convert":
                through = self.pick("f32", "i32", "i64", "f16")
                before = self.sizes(graph, values, numbers, type)
                middle = graph.add("Convert", 1, {"destination_type": through}, [before])
                return graph.add("Convert", 1, {"destination_type": type}, [middle])
            case "abs" if min(numbers) >= 0:
                return graph.add("Abs", 1, {}, [self.sizes(graph, values, numbers, type)])
            case "select":
                before = self.sizes(graph, values, numbers, type)
                condition = graph.add(self.pick("Greater", "Less", "Equal"), 1, NUMPY, [before, constant(self.random.randint(-1, 4))])
                return graph.add("Select", 1, NUMPY, [condition, before, before if self.chance(0.7) else constant(by)])
            case "slice":
                before = self.sizes(graph, values, [by, *numbers], type)
                return graph.add("Slice", 8, {}, [before, graph.list(1), graph.list(1 + len(numbers)), graph.list(1)])
            case "reduce" if len(numbers) == 1:
                before = self.sizes(graph, values, numbers + [1], type)
                return graph.add("ReduceProd", 1, {"keep_dims": "true"}, [before, graph.list(0)])
        return graph.constant(type, [len(numbers)], numbers)

    # Types.

    def step_convert(self, graph, values, tensor, type, dims):
        new = self.type()
        return graph.add("Convert", 1, {"destination_type": new}, [tensor]), new, dims

    def step_convert_like(self, graph, values, tensor, type, dims):
        like, new, _ = self.random.choice(values)
        return graph.add("ConvertLike", 1, {}, [tensor, like]), new, dims

    def step_promote(self, graph, values, tensor, type, dims):
        other, other_type, other_dims = self.random.choice(values)
        flags = {"promote_unsafe": self.truth(), "pytorch_scalar_promotion": self.truth()}
        target = {"u64_integer_promotion_target": self.pick("f32", "i64", "f64")}
        id, port = graph.add("ConvertPromoteTypes", 14, flags | target, [tensor, other], 2)
        both = {type, other_type}
        new = type if len(both) == 1 else "f32" if both == {"f16", "bf16"} else self.random.choice(sorted(both))
        if self.chance(0.5) or other_dims != dims:
            return (id, port), new, dims
        return graph.add("Add", 1, NUMPY, [(id, 0), (id, 1)]), new, dims

    # Element by element.

    def step_unary(self, graph, values, tensor, type, dims):
        if type == "boolean":
            return graph.add("LogicalNot", 1, {}, [tensor]), type, dims
        kind, version = self.random.choice(UNARY)
        if not is_float(type) and kind not in ("ReLU", "Abs", "Negative", "Sign", "Floor") and self.chance(0.95):
            return None
        return graph.add(kind, version, {}, [tensor]), "boolean" if kind.startswith("Is") else type, dims

    def step_with_attributes(self, graph, values, tensor, type, dims):
        if not is_float(type):
            return None
        kind, version, attributes = self.pick(
            ("Clamp", 1, {"min": 0, "max": self.pick(6, 1, -1)}), ("Elu", 1, {"alpha": "1.0"}), ("Round", 5, {"mode": "half_to_even"}),
            ("Gelu", 7, {"approximation_mode": self.pick("ERF", "TANH")}), ("LogSoftmax", 5, {"axis": self.axis(dims)[1] if dims else 0}),
        )
        return graph.add(kind, version, attributes, [tensor]), type, dims

    def step_arithmetic(self, graph, values, tensor, type, dims):
        if type == "boolean":
            kind = self.pick("LogicalAnd", "LogicalOr", "LogicalXor")
        else:
            kind = self.random.choice(ARITHMETIC)
        inputs = [tensor, self.other(graph, values, type, dims)]
        self.random.shuffle(inputs)
        return graph.add(kind, 2 if kind == "LogicalXor" else 1, NUMPY, inputs), type, dims

    step_arithmetic_again = step_arithmetic

    def step_bitwise(self, graph, values, tensor, type, dims):
        if is_float(type):
            return None
        kind = self.pick("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        return graph.add(kind, 13, NUMPY, [tensor, self.other(graph, values, type, dims)]), type, dims

    def step_compare(self, graph, values, tensor, type, dims):
        kind = self.random.choice(COMPARISONS)
        return graph.add(kind, 1, NUMPY, [tensor, self.other(graph, values, type, dims)]), "boolean", dims

    def step_select(self, graph, values, tensor, type, dims):
        conditions = [value for value in values if value[1] == "boolean" and value[2] == dims]
        condition = self.random.choice(conditions)[0] if conditions else self.ones(graph, "boolean", dims)
        return graph.add("Select", 1, NUMPY, [condition, tensor, self.other(graph, values, type, dims)]), type, dims

    def step_fake_quantize(self, graph, values, tensor, type, dims):
        if not is_float(type):
            return None
        ranges = [self.ones(graph, type, self.pick([], [1])) for _ in range(4)]
        return graph.add("FakeQuantize", 1, {"levels": 256, "auto_broadcast": "numpy"}, [tensor, *ranges]), type, dims

    # Layout.

    def step_concat(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        axis, written = self.axis(dims)
        others = [value for value in values if value[1] == type and len(value[2]) == len(dims)]
        others = [value for value in others if put(value[2], axis, 0) == put(dims, axis, 0)]
        chosen = [(tensor, type, dims), *(self.random.choice(others) for _ in range(self.random.randint(0, 2)))]
        new = put(dims, axis, sum(value[2][axis] for value in chosen))
        return graph.add("Concat", 1, {"axis": written}, [value[0] for value in chosen]), type, new

    def step_split(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        axis, written = self.axis(dims)
        parts = self.pick(*[count for count in (1, 2, 3, 4) if dims[axis] % count == 0])
        id, _ = graph.add("Split", 1, {"num_splits": parts}, [tensor, graph.number(written)], parts)
        return (id, self.random.randrange(parts)), type, put(dims, axis, dims[axis] // parts)

    def step_variadic_split(self, graph, values, tensor, type, dims):
        if not dims or not max(dims):
            return None
        axis, written = self.axis(dims)
        first = self.random.randint(0, dims[axis])
        lengths = self.pick([first, dims[axis] - first], [first, -1], [-1, dims[axis] - first])
        lengths = self.sizes(graph, values, lengths, "i64") if self.chance(0.5) else graph.list(*lengths)
        id, _ = graph.add("VariadicSplit", 1, {}, [tensor, graph.number(written), lengths], 2)
        return (id, 0), type, put(dims, axis, first)

    def step_transpose(self, graph, values, tensor, type, dims):
        order = self.random.sample(range(len(dims)), len(dims))
        given = graph.list(*order) if self.chance(0.9) else graph.list()
        return graph.add("Transpose", 1, {}, [tensor, given]), type, [dims[at] for at in order]

    def step_squeeze(self, graph, values, tensor, type, dims):
        ones = [axis for axis, dim in enumerate(dims) if dim == 1]
        if not ones:
            return None
        if self.chance(0.2):
            return graph.add("Squeeze", 1, {}, [tensor]), type, [dim for dim in dims if dim != 1]
        axis = self.random.choice(ones)
        version, attributes = self.pick((1, {}), (15, {"allow_axis_skip": self.truth()}))
        return graph.add("Squeeze", version, attributes, [tensor, self.sizes(graph, values, [axis], "i64")]), type, put(dims, axis)

    def step_reshape(self, graph, values, tensor, type, dims):
        total = math.prod(dims)
        if not total:
            return None
        target, rest = [], total
        while rest > 1 and len(target) < 3:
            factor = self.pick(*[count for count in range(1, rest + 1) if rest % count == 0][:8])
            target, rest = target + [factor], rest // factor
        target += [rest] * (rest > 1)
        given = list(target)
        if given and self.chance(0.4):
            given[self.random.randrange(len(given))] = -1
        special = self.truth()
        if special == "true" and given and dims and target[0] == dims[0] and self.chance(0.5) and given[0] != -1:
            given[0] = 0
        return graph.add("Reshape", 1, {"special_zero": special}, [tensor, self.sizes(graph, values, given)]), type, target

    step_reshape_again = step_reshape

    def step_tile(self, graph, values, tensor, type, dims):
        repeats = [self.pick(1, 1, 2) for _ in dims]
        if math.prod(dims) * math.prod(repeats) > 300:
            return None
        return graph.add("Tile", 1, {}, [tensor, self.sizes(graph, values, repeats)]), type, [a * b for a, b in zip(dims, repeats)]

    def step_pad(self, graph, values, tensor, type, dims):
        begins, ends = ([self.pick(0, 0, 1) for _ in dims] for _ in range(2))
        inputs = [tensor, self.sizes(graph, values, begins), self.sizes(graph, values, ends)]
        new = [sum(parts) for parts in zip(dims, begins, ends)]
        if type in take.CODES and type != "boolean":
            inputs.append(self.ones(graph, type, []))
        return graph.add("Pad", self.pick(1, 12), {"pad_mode": self.pick("constant", "constant", "edge")}, inputs), type, new

    def step_slice(self, graph, values, tensor, type, dims):
        if not dims or not max(dims):
            return None
        axis, written = self.axis(dims)
        start, stop = 0, self.random.randint(1, max(1, dims[axis]))
        given = [self.sizes(graph, values, [number], "i64") for number in (start, stop)]
        return graph.add("Slice", 8, {}, [tensor, *given, graph.list(1), graph.list(written)]), type, put(dims, axis, min(stop, dims[axis]))

    def step_strided_slice(self, graph, values, tensor, type, dims):
        if not dims or 0 in dims:
            return None
        begins, ends = [self.random.randrange(dim) for dim in dims], list(dims)
        new = [end - begin for begin, end in zip(begins, ends)]
        masks = {name: ", ".join("0" for _ in dims) for name in ("begin_mask", "end_mask", "new_axis_mask", "ellipsis_mask")}
        shrink = [int(self.chance(0.2)) for _ in dims]
        masks["shrink_axis_mask"] = ", ".join(map(str, shrink))
        given = [self.sizes(graph, values, list(numbers), "i64") for numbers in (begins, ends)]
        out = graph.add("StridedSlice", 1, masks, [tensor, *given, graph.list(*[1] * len(dims))])
        return out, type, [dim for dim, gone in zip(new, shrink) if not gone]

    def step_broadcast(self, graph, values, tensor, type, dims):
        grown = [self.random.randint(1, 3) for _ in range(self.random.randint(0, 1))] + [dim if dim != 1 else self.pick(1, 2) for dim in dims]
        mode = self.pick("numpy", "bidirectional")
        return graph.add("Broadcast", 3, {"mode": mode}, [tensor, self.sizes(graph, values, grown)]), type, grown

    def step_roll(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        return graph.add("Roll", 7, {}, [tensor, graph.list(1), graph.list(self.axis(dims)[1])]), type, dims

    def step_reverse_sequence(self, graph, values, tensor, type, dims):
        if len(dims) < 2:
            return None
        lengths = self.ones(graph, self.pick("i64", "i32"), [dims[0]])
        return graph.add("ReverseSequence", 1, {"batch_axis": 0, "seq_axis": 1}, [tensor, lengths]), type, dims

    def step_depth_to_space(self, graph, values, tensor, type, dims):
        if len(dims) != 4 or dims[1] % 4:
            return None
        new = [dims[0], dims[1] // 4, dims[2] * 2, dims[3] * 2]
        return graph.add("DepthToSpace", 1, {"mode": "blocks_first", "block_size": 2}, [tensor]), type, new

    def step_space_to_depth(self, graph, values, tensor, type, dims):
        if len(dims) != 4 or dims[2] % 2 or dims[3] % 2:
            return None
        new = [dims[0], dims[1] * 4, dims[2] // 2, dims[3] // 2]
        return graph.add("SpaceToDepth", 1, {"mode": "blocks_first", "block_size": 2}, [tensor]), type, new

    # Indices.

    def indices(self, graph, dims, type=None):
        type = type or self.pick("i64", "i32")
        if self.chance(0.3) and not graph.is_body:
            return graph.parameter(type, self.shape(dims, 0.5))
        return graph.constant(type, dims, [0] * math.prod(dims))

    def step_gather(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        axis, written = self.axis(dims)
        new = self.dims()[:2]
        version, attributes = self.pick((8, {"batch_dims": 0}), (7, {"batch_dims": 0}), (1, {}))
        out = graph.add("Gather", version, attributes, [tensor, self.indices(graph, new), graph.number(written)])
        return out, type, put(dims, axis, *new)

    def step_gather_elements(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        axis, written = self.axis(dims)
        new = put(dims, axis, self.random.randint(1, 3))
        return graph.add("GatherElements", 6, {"axis": written}, [tensor, self.indices(graph, new)]), type, new

    def step_gather_nd(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        depth, rows = self.random.randint(1, len(dims)), self.random.randint(1, 3)
        return graph.add("GatherND", self.pick(5, 8), {"batch_dims": 0}, [tensor, self.indices(graph, [rows, depth])]), type, [rows, *dims[depth:]]

    def step_scatter(self, graph, values, tensor, type, dims):
        if not dims or 0 in dims:
            return None
        axis, written = self.axis(dims)
        if self.chance(0.5):
            inputs = [tensor, self.indices(graph, [1]), self.ones(graph, type, put(dims, axis, 1)), graph.number(written)]
            return graph.add("ScatterUpdate", 3, {}, inputs), type, dims
        updates = put(dims, axis, 1)
        inputs = [tensor, self.indices(graph, updates), self.ones(graph, type, updates), self.sizes(graph, values, [axis], "i64")]
        version, attributes = self.pick((3, {}), (12, {"reduction": "sum", "use_init_val": self.truth()}))
        if type == "boolean" and version == 12:
            return None
        return graph.add("ScatterElementsUpdate", version, attributes, inputs), type, dims

    def step_scatter_nd(self, graph, values, tensor, type, dims):
        if not dims or 0 in dims:
            return None
        inputs = [tensor, self.indices(graph, [1, 1]), self.ones(graph, type, [1, *dims[1:]])]
        return graph.add("ScatterNDUpdate", 4, {}, inputs), type, dims

    def step_one_hot(self, graph, values, tensor, type, dims):
        if type not in ("i64", "i32"):
            return None
        new, depth = self.type(), self.random.randint(1, 4)
        if new not in take.CODES:
            return None
        depth_input = graph.number(depth) if self.chance(0.5) else graph.add("Squeeze", 1, {}, [self.sizes(graph, values, [depth], "i64")])
        ends = [self.ones(graph, new, []) for _ in range(2)]
        return graph.add("OneHot", 1, {"axis": -1}, [tensor, depth_input, *ends]), new, [*dims, depth]

    def step_top_k(self, graph, values, tensor, type, dims):
        if not dims or not max(dims) or type == "boolean":
            return None
        axis, written = self.axis(dims)
        count = self.random.randint(0, dims[axis])
        attributes = {"axis": written, "mode": self.pick("max", "min"), "sort": self.pick("value", "index", "none"), "index_element_type": self.pick("i64", "i32")}
        id, _ = graph.add("TopK", self.pick(3, 11), attributes, [tensor, graph.number(count, self.pick("i64", "i32"))], 2)
        port = self.random.randrange(2)
        return (id, port), attributes["index_element_type"] if port else type, put(dims, axis, count)

    def step_non_zero(self, graph, values, tensor, type, dims):
        if type == "bf16":
            return None
        return graph.add("NonZero", 3, {"output_type": "i64"}, [tensor]), "i64", [len(dims), math.prod(dims)]

    def step_unique(self, graph, values, tensor, type, dims):
        id, _ = graph.add("Unique", 10, {"sorted": self.truth(), "index_element_type": self.pick("i64", "i32"), "count_element_type": "i64"}, [tensor], 4)
        return (id, 0), type, [math.prod(dims)]

    def step_bucketize(self, graph, values, tensor, type, dims):
        if type == "boolean":
            return None
        new = self.pick("i64", "i32")
        return graph.add("Bucketize", 3, {"output_type": new, "with_right_bound": self.truth()}, [tensor, self.ones(graph, "f32", [3])]), new, dims

    # Values of few bits, texts, and variables.

    def step_narrow(self, graph, values, tensor, type, dims):
        type, dims = self.random.choice(NARROW + ["string"]), self.dims()
        if self.chance(0.3) and not graph.is_body:
            return graph.parameter(type, self.shape(dims, 0.5)), type, dims
        return self.stored(graph, type, dims), type, dims

    def step_decompress(self, graph, values, tensor, type, dims):
        type, new, dims = self.random.choice(NARROW), self.pick("f16", "f32"), [self.random.randint(1, 3) for _ in range(3)]
        convert = lambda tensor: graph.add("Convert", 1, {"destination_type": new}, [tensor])
        value, groups = convert(self.stored(graph, type, dims)), [dims[0], dims[1], 1]
        if self.chance(0.5):
            zero = self.stored(graph, type if self.chance(0.9) else self.random.choice(NARROW), self.pick(groups, [1], []))
            value = graph.add("Subtract", 1, NUMPY, [value, convert(zero)])
        value = graph.add("Multiply", 1, NUMPY, [value, self.ones(graph, new, groups)])
        if self.chance(0.5):
            dims = [dims[0], dims[1] * dims[2]]
            value = graph.add("Reshape", 1, {"special_zero": "false"}, [value, graph.list(*dims)])
        return value, new, dims

    def step_fake_convert(self, graph, values, tensor, type, dims):
        if type not in ("f32", "f16", "bf16"):
            return None
        ranges = [self.ones(graph, type, self.pick([], [1], dims)) for _ in range(self.random.randint(1, 2))]
        return graph.add("FakeConvert", 13, {"destination_type": self.pick("f8e4m3", "f8e5m2")}, [tensor, *ranges]), type, dims

    def step_texts(self, graph, values, tensor, type, dims):
        if type != "string":
            tensor, dims = self.stored(graph, "string", dims), dims
        id, _ = graph.add("StringTensorUnpack", 15, {}, [tensor], 3)
        if self.chance(0.5):
            return graph.add("StringTensorPack", 15, {}, [(id, 0), (id, 1), (id, 2)]), "string", dims
        return (id, self.random.randrange(2)), "i32", dims

    def step_variable(self, graph, values, tensor, type, dims):
        name = f"v{self.random.randrange(3)}"
        if name in self.variables and self.chance(0.85):
            kept = self.variables[name]
            fitting = [value for value in values if value[1:] == kept]
            type, dims = kept
            tensor = self.random.choice(fitting)[0] if fitting else self.ones(graph, type, dims)
        self.variables[name] = type, dims
        version, attributes = self.pick(6, 6, 6, 3), {"variable_id": name}
        if version == 6:
            attributes |= {"variable_type": type, "variable_shape": self.shape(dims, 0.5) if self.chance(0.5) else "..."}
        assign = lambda tensor: graph.add("Assign", version, {"variable_id": name}, [tensor], 0)
        if self.chance(0.1):
            assign(tensor)
        read = graph.add("ReadValue", version, attributes, [] if version == 6 and self.chance(0.2) else [tensor])
        if self.chance(0.7):
            assign(self.pick(read, tensor))
        return read, type, dims

    # Along axes.

    def step_reduce(self, graph, values, tensor, type, dims):
        if not dims:
            return None
        axis, written = self.axis(dims)
        keep_dims = self.truth()
        kind = self.pick("ReduceLogicalAnd", "ReduceLogicalOr") if type == "boolean" else self.random.choice(REDUCTIONS)
        axes = self.sizes(graph, values, [written], "i64") if self.chance(0.4) else graph.list(written)
        version = 4 if kind in ("ReduceL1", "ReduceL2") else 1
        return graph.add(kind, version, {"keep_dims": keep_dims}, [tensor, axes]), type, put(dims, axis, *[1] * (keep_dims == "true"))

    def step_softmax(self, graph, values, tensor, type, dims):
        if not dims or not is_float(type):
            return None
        return graph.add("SoftMax", 8, {"axis": self.axis(dims)[1]}, [tensor]), type, dims

    def step_cum_sum(self, graph, values, tensor, type, dims):
        if not dims or type == "boolean":
            return None
        return graph.add("CumSum", 3, {"exclusive": "false", "reverse": self.truth()}, [tensor, graph.number(self.axis(dims)[1])]), type, dims

    def step_normalize(self, graph, values, tensor, type, dims):
        if not dims or not is_float(type):
            return None
        if self.chance(0.5):
            attributes = {"normalize_variance": "true", "eps": "1e-05", "eps_mode": "inside_sqrt"}
            return graph.add("MVN", 6, attributes, [tensor, graph.list(self.axis(dims)[1])]), type, dims
        return graph.add("NormalizeL2", 1, {"eps": "1e-05", "eps_mode": "add"}, [tensor, graph.list(self.axis(dims)[0])]), type, dims

    # Linear algebra and images.

    def step_mat_mul(self, graph, values, tensor, type, dims):
        if not dims or type == "boolean" or len(dims) > 3:
            return None
        columns, transposed = self.random.randint(1, 4), self.chance(0.4)
        weights = self.ones(graph, type, [columns, dims[-1]] if transposed else [dims[-1], columns])
        attributes = {"transpose_a": "false", "transpose_b": str(transposed).lower()}
        return graph.add("MatMul", 1, attributes, [tensor, weights]), type, [*dims[:-1], columns]

    def step_einsum(self, graph, values, tensor, type, dims):
        if len(dims) != 2 or type == "boolean":
            return None
        equation, new = self.pick(("ab->ba", dims[::-1]), ("ab->a", dims[:1]), ("ij->", []))
        return graph.add("Einsum", 7, {"equation": equation}, [tensor]), type, new

    def image(self, graph, values, type):
        """A tensor of four dims that are large enough for a window."""
        dims = [self.random.randint(1, 2), self.pick(2, 4), self.random.randint(3, 9), self.random.randint(3, 9)]
        if graph.is_body:
            return self.ones(graph, type, dims), type, dims
        return graph.parameter(type, self.shape(dims, self.pick(0, 0, 0.5))), type, dims

    def step_window(self, graph, values, tensor, type, dims):
        if not is_float(type):
            return None
        if len(dims) != 4 or min(dims) < 1 or min(dims[2:]) < 3:
            tensor, type, dims = self.image(graph, values, type)
        stride, pad, kernel = self.pick(1, 2), self.pick(0, 1), self.pick(2, 3)
        rounding = self.pick("floor", "ceil")
        window = {"strides": f"{stride}, {stride}", "pads_begin": f"{pad}, {pad}", "pads_end": f"{pad}, {pad}"}
        auto = self.pick("explicit", "explicit", "same_upper", "valid")
        length = lambda dim: -(-dim // stride) if auto == "same_upper" else (dim + (2 * pad if auto == "explicit" else 0) - kernel) // stride + 1
        match self.pick("convolution", "group", "max", "average"):
            case "convolution":
                filters = self.ones(graph, type, [3, dims[1], kernel, kernel])
                out = graph.add("Convolution", 1, window | {"dilations": "1, 1", "auto_pad": auto}, [tensor, filters])
                return out, type, [dims[0], 3, *map(length, dims[2:])]
            case "group":
                filters = self.ones(graph, type, [dims[1], 2, 1, kernel, kernel])
                out = graph.add("GroupConvolution", 1, window | {"dilations": "1, 1", "auto_pad": auto}, [tensor, filters])
                return out, type, [dims[0], 2 * dims[1], *map(length, dims[2:])]
            case "max":
                attributes = window | {"kernel": f"{kernel}, {kernel}", "rounding_type": rounding, "auto_pad": auto}
                return graph.add("MaxPool", 1, attributes, [tensor]), type, [*dims[:2], *map(length, dims[2:])]
            case "average":
                attributes = window | {"kernel": f"{kernel}, {kernel}", "rounding_type": rounding, "auto_pad": auto, "exclude-pad": self.truth()}
                return graph.add("AvgPool", 1, attributes, [tensor]), type, [*dims[:2], *map(length, dims[2:])]

    def step_interpolate(self, graph, values, tensor, type, dims):
        if len(dims) != 4 or not is_float(type) or 0 in dims:
            return None
        by_sizes = self.chance(0.5)
        sizes = [self.random.randint(1, 8) for _ in range(2)] if by_sizes else [dim * 2 for dim in dims[2:]]
        target = self.sizes(graph, values, sizes) if by_sizes else graph.constant("f32", [2], [2.0, 2.0])
        attributes = {"mode": "nearest", "shape_calculation_mode": "sizes" if by_sizes else "scales", "coordinate_transformation_mode": "half_pixel",
                      "nearest_mode": "round_prefer_floor", "antialias": "false", "pads_begin": "0", "pads_end": "0", "cube_coeff": "-0.75"}
        return graph.add("Interpolate", 11, attributes, [tensor, target, graph.list(2, 3)]), type, [*dims[:2], *sizes]

    def step_batch_norm(self, graph, values, tensor, type, dims):
        if len(dims) < 2 or not is_float(type):
            return None
        parameters = [self.ones(graph, type, [dims[1]]) for _ in range(4)]
        return graph.add("BatchNormInference", 5, {"epsilon": "0.001"}, [tensor, *parameters]), type, dims

    def step_cell(self, graph, values, tensor, type, dims):
        if len(dims) != 2 or not is_float(type):
            return None
        hidden = self.random.randint(1, 4)
        weights = [self.ones(graph, type, shape) for shape in ([3 * hidden, dims[1]], [3 * hidden, hidden], [3 * hidden])]
        state = self.ones(graph, type, [dims[0], hidden])
        attributes = {"hidden_size": hidden, "linear_before_reset": "false", "clip": 0}
        return graph.add("GRUCell", 3, attributes, [tensor, state, *weights]), type, [dims[0], hidden]

    # From nothing.

    def step_range(self, graph, values, tensor, type, dims):
        new, stop = self.pick("i64", "i32", "f32"), self.random.randint(0, 5)
        stop_input = graph.add("Squeeze", 1, {}, [self.sizes(graph, values, [stop], "i64")])
        return graph.add("Range", 4, {"output_type": new}, [graph.number(0), stop_input, graph.number(1)]), new, [stop]

    def step_eye(self, graph, values, tensor, type, dims):
        rows, columns = self.random.randint(1, 3), self.random.randint(1, 3)
        new = self.pick("f32", "i64", "u8")
        return graph.add("Eye", 9, {"output_type": new}, [graph.number(rows), graph.number(columns), graph.number(0)]), new, [rows, columns]

    def step_random_uniform(self, graph, values, tensor, type, dims):
        new, dims = self.pick("f32", "i64"), self.dims()
        attributes = {"output_type": new, "global_seed": 1, "op_seed": 2, "alignment": "TENSORFLOW"}
        ends = [graph.number(0, new), graph.number(9, new)]
        return graph.add("RandomUniform", 8, attributes, [self.sizes(graph, values, dims), *ends]), new, dims

    # Whole graphs.

    def graph(self):
        """The text and the weights of one graph."""
        graph, values, used = take.Graph(), [], set()
        for _ in range(self.random.randint(1, 4)):
            type, dims = self.type(), self.dims()
            values.append((graph.parameter(type, self.shape(dims, self.pick(0, 0.3, 0.7, 1))), type, dims))
        for _ in range(self.random.randint(3, 16)):
            made = self.with_body(graph, values, self.pick(0, 0, 1, 2)) if self.chance(0.1) else self.step(graph, values, 0)
            values.append(made)
        for edge in graph.edges:
            used.add(tuple(map(int, re.match(r'<edge from-layer="(\d+)" from-port="(\d+)"', edge).groups())))
        for (id, port), _, _ in values:
            if (id, graph.input_counts[id] + port) not in used:
                graph.result((id, port))
        return f'<net name="random" version="11">{graph.text()}</net>', bytes(graph.weights)

    def spoiled(self, xml):
        """The same text with one attribute, type or edge changed."""
        number = lambda: f'"{self.random.randint(-3, 9)}"'
        other = lambda: f'"{self.type()}"'
        kinds = [
            (r' element_type="\w+"( offset)', lambda found: f" element_type={other()}{found[1]}"),
            (r' shape="([^"]*)" element_type="\w+"', lambda found: f' shape="{found[1]}" element_type={other()}'),
            (r' shape="[^"]*"( element_type)', lambda found: f' shape="{self.shape(self.dims(), 0.5)}"{found[1]}'),
            (r' (axis|batch_dims|num_splits|levels|block_size)="-?\d+"', lambda found: f" {found[1]}={number()}"),
            (r' (destination_type|output_type|index_element_type)="\w+"', lambda found: self.pick("", f" {found[1]}={other()}")),
            (r' (strides|kernel|pads_begin|dilations)="[^"]*"', lambda found: f' {found[1]}="{self.pick("1, 1", "0, 0", "1", "2, 2, 2")}"'),
            (r' offset="(\d+)"', lambda found: f' offset="{max(0, int(found[1]) - 8)}"'),
            (r'<edge from-layer="(\d+)" from-port="(\d+)" (to-layer="(\d+)")', lambda found: f'<edge from-layer="{self.random.randrange(int(found[4]) + 1)}" from-port="{found[2]}" {found[3]}'),
        ]
        for pattern, change in self.random.sample(kinds, len(kinds)):
            if places := list(re.finditer(pattern, xml)):
                found = self.random.choice(places)
                return xml[: found.start()] + change(found) + xml[found.end() :]
        return xml


def make(seed, number):
    """The text and the weights of a graph."""
    graphs = Graphs(f"{seed}/{number}")
    xml, weights = graphs.graph()
    return (graphs.spoiled(xml) if number % 8 == 7 else xml), weights


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, required=True)
    arguments = parser.parse_args()
    xml, weights = make(arguments.seed, arguments.number)
    arguments.out.write_text(xml)
    arguments.out.with_suffix(".bin").write_bytes(weights)


if __name__ == "__main__":
    main()
