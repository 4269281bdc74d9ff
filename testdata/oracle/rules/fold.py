"""Values of folded layers, compared with OpenVINO's reference kernels.

python fold.py PROGRAM          for each operation that is folded, each element type and edge values: what
                                `--use constant-folding` writes, and what the reference computes; prints what differs
python fold.py PROGRAM --take   writes the models, with the answers of the reference, to fold.jsonl.gz
"""

import base64
import gzip
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import openvino as ov

import build
import fuzz

warnings.simplefilter("ignore")
CORE = ov.Core()
TYPES = ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean"]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 3.0, 7.0, -7.0, 100.0, 1e-3, 6e4, -6e4, np.inf, -np.inf, np.nan]
UNARY = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Cos", "Cosh", "Erf", "Exp", "Floor", "Gelu", "HSigmoid",
    "HSwish", "Log", "LogicalNot", "Mish", "Negative", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "SoftPlus", "Sqrt",
    "Swish", "Tan", "Tanh", "Clamp",
]
BINARY = [
    "Add", "Subtract", "Multiply", "Divide", "Power", "Maximum", "Minimum", "Mod", "FloorMod", "SquaredDifference", "Equal",
    "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "PRelu",
]
REDUCED = ["ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr"]
OPSETS = {"Gelu": 7, "HSigmoid": 5, "HSwish": 4, "Mish": 4, "SoftPlus": 4, "Swish": 4, "Round": 5, "Acosh": 4, "Asinh": 4, "Atanh": 4}
ATTRIBUTES = {"Clamp": {"min": -1.5, "max": 2.5}, "Gelu": {"approximation_mode": "erf"}}


def edges(type):
    if type == "boolean":
        return [0, 1]
    if type in build.FLOATS:
        return REALS
    numbers = np.iinfo(build.NUMPY[type])
    return sorted({it for it in (0, 1, 2, 3, 7, 10, 100, -1, -2, -3, -7, numbers.min, numbers.min + 1, numbers.max, numbers.max - 1, numbers.max // 2) if numbers.min <= it <= numbers.max})


def constant(values, type):
    if type == "bf16":
        return ov.op.Constant(ov.Type.bf16, ov.Shape(np.shape(values)), np.ravel(values).tolist())
    return ov.op.Constant(np.array(values, build.NUMPY[type]))


def node(operation, inputs, attributes=None, opset=None):
    attributes = attributes if attributes is not None else ATTRIBUTES.get(operation, {})
    return build.FACTORIES[opset or OPSETS.get(operation, 1)].create(operation, [it.output(0) for it in inputs], attributes)


def cases():
    """Each operation of constants, by a name."""
    for type in TYPES:
        values = edges(type)
        for operation in UNARY:
            yield f"{operation} {type}", lambda operation=operation, values=values, type=type: node(operation, [constant(values, type)])
        left, right = zip(*itertools.product(values, values))
        for operation in BINARY:
            yield f"{operation} {type}", lambda operation=operation, left=left, right=right, type=type: node(operation, [constant(left, type), constant(right, type)])
            if type[0] in "iu":
                kept = [(a, b) for a, b in zip(left, right) if b and (b != -1 or a >= -100)]
                yield f"{operation} {type} by no zero", lambda operation=operation, kept=kept, type=type: node(operation, [constant([a for a, _ in kept], type), constant([b for _, b in kept], type)])
        for to in TYPES:
            yield f"Convert {type} {to}", lambda values=values, type=type, to=to: node("Convert", [constant(values, type)], {"destination_type": to})
        for operation in REDUCED:
            pairs = np.array([left, right]).T
            yield f"{operation} {type}", lambda operation=operation, pairs=pairs, type=type: node(operation, [constant(pairs, type), constant(np.array([1]), "i64")], {"keep_dims": False})
        for at, (operation, inputs, attributes, opset) in enumerate(others(type)):
            yield f"{operation} {type} case {at}", lambda operation=operation, inputs=inputs, attributes=attributes, opset=opset: node(operation, inputs, attributes, opset)


def data(type, shape, first=0):
    """Edge values of a type, in a shape."""
    values = edges(type)
    count = int(np.prod(shape))
    return constant(np.array([values[(first + at * 7) % len(values)] for at in range(count)], object).reshape(shape), type)


def others(type):
    """Operations of other forms on edge values of a type: a name, an operation, its inputs, attributes and revision."""
    whole = lambda values, kind="i64": constant(values, kind)
    a, b, line, one, none = data(type, [2, 3]), data(type, [2, 3], 5), data(type, [6]), data(type, [], 3), data(type, [0, 3])
    cube, image = data(type, [2, 2, 3]), data(type, [1, 4, 2, 2])
    yield "Reshape", [a, whole([3, -1])], {"special_zero": False}, 1
    yield "Reshape", [a, whole([0, -1], "i32")], {"special_zero": True}, 1
    yield "Reshape", [one, whole([1, 1])], {"special_zero": False}, 1
    yield "Reshape", [none, whole([0, 2])], {"special_zero": False}, 1
    yield "Transpose", [cube, whole([2, 0, 1])], {}, 1
    yield "Transpose", [a, constant(np.zeros([0]), "i64")], {}, 1
    yield "Squeeze", [data(type, [1, 3, 1]), whole([0, -1])], {}, 1
    yield "Unsqueeze", [a, whole([0, -1])], {}, 1
    yield "Concat", [a, b], {"axis": -1}, 1
    yield "Concat", [none, none], {"axis": 0}, 1
    yield "Split", [line, whole(0)], {"num_splits": 3}, 1
    yield "VariadicSplit", [line, whole(-1), whole([1, -1])], {}, 1
    for start, stop, step in ((0, 4, 1), (-1, -9, -2), (9223372036854775807, -9223372036854775808, -1), (1, 2147483647, 2)):
        yield "Slice", [line, *(whole([it]) for it in (start, stop, step)), whole([-1], "i32")], {}, 8
    yield "StridedSlice", [cube, whole([0, -1]), whole([1, 9]), whole([1, 1])], {"begin_mask": [0, 0], "end_mask": [0, 1], "shrink_axis_mask": [1, 0]}, 1
    yield "StridedSlice", [cube, whole([0, 0, 0]), whole([0, 0, 0]), whole([1, 1, -1])], {"begin_mask": [1, 0, 1], "end_mask": [1, 1, 1], "ellipsis_mask": [0, 1, 0]}, 1
    yield "StridedSlice", [line, whole([0]), whole([0]), whole([1])], {"begin_mask": [0], "end_mask": [0], "new_axis_mask": [1]}, 1
    yield "Gather", [a, whole([[2, -1]]), whole(1)], {}, 8
    yield "Gather", [a, whole(0, "i32"), whole(-1, "i32")], {}, 8
    yield "Gather", [cube, whole([[1, 0], [0, 2]]), whole(2)], {"batch_dims": 1}, 8
    yield "Tile", [a, whole([2, 1, 2])], {}, 1
    yield "Tile", [one, whole([3])], {}, 1
    yield "Broadcast", [data(type, [3, 1]), whole([2, 3, 2])], {"mode": "numpy"}, 3
    yield "Broadcast", [a, whole([2, 1, 3])], {"mode": "bidirectional"}, 3
    for mode in ("constant", "edge", "reflect", "symmetric"):
        yield "Pad", [a, whole([1, 0]), whole([0, 1]), one], {"pad_mode": mode}, 1
    yield "Pad", [a, whole([-1, 0]), whole([0, -2]), one], {"pad_mode": "constant"}, 12
    yield "Select", [constant([[1, 0, 1]], "boolean"), a, data(type, [2, 1])], {}, 1
    yield "Select", [constant(1, "boolean"), one, one], {}, 1
    yield "ScatterUpdate", [line, whole([5, 0]), data(type, [2], 1), whole(0)], {}, 3
    yield "ScatterNDUpdate", [a, whole([[1, 2], [0, 0]]), data(type, [2], 1)], {}, 3
    for reduction in ("none", "sum", "prod", "min", "max"):
        yield "ScatterNDUpdate", [a, whole([[1, 2], [0, 0]]), data(type, [2], 1)], {"reduction": reduction}, 15
    for reduction in ("none", "sum", "prod", "min", "max", "mean"):
        for initial in (True, False):
            yield "ScatterElementsUpdate", [a, whole([[2, 0], [1, -1]]), data(type, [2, 2], 1), whole(1)], {"reduction": reduction, "use_init_val": initial}, 12
    yield "ScatterElementsUpdate", [a, whole([[2, 0]]), data(type, [1, 2], 1), whole(1)], {}, 3
    yield "OneHot", [whole([0, 2, -1, 5]), whole(3), one, data(type, [], 4)], {"axis": -1}, 1
    for mode, sort in itertools.product(("max", "min"), ("value", "index", "none")):
        yield "TopK", [line, whole(3), ], {"axis": 0, "mode": mode, "sort": sort, "index_element_type": "i32"}, 11
    yield "NonZero", [a], {"output_type": "i64"}, 3
    yield "NonZero", [one], {"output_type": "i32"}, 3
    yield "CumSum", [a, whole(1)], {}, 3
    yield "CumSum", [a, whole(-1, "i32")], {"exclusive": True, "reverse": True}, 3
    yield "Range", [constant(1, type), constant(7, type), constant(2, type)], {"output_type": type}, 4
    yield "Range", [constant(7, type), constant(1, type), constant(2, type)], {"output_type": type}, 4
    yield "Eye", [whole(3), whole(4), whole(1)], {"output_type": type}, 9
    yield "MatMul", [a, data(type, [3, 2], 2)], {}, 1
    yield "MatMul", [a, b], {"transpose_b": True}, 1
    yield "MatMul", [data(type, [3]), data(type, [3], 4)], {}, 1
    yield "MatMul", [cube, data(type, [3], 4)], {}, 1
    yield "MatMul", [none, data(type, [3, 2], 2)], {}, 1
    for axis in (0, -1):
        yield "Softmax", [a], {"axis": axis}, 8
    yield "Softmax", [a], {"axis": 1}, 1
    yield "MVN", [cube, whole([1, 2])], {"eps": 1e-3, "normalize_variance": True, "eps_mode": "inside_sqrt"}, 6
    yield "MVN", [cube, whole([-1])], {"eps": 1e-3, "normalize_variance": False, "eps_mode": "outside_sqrt"}, 6
    if type in build.FLOATS:
        yield "FakeQuantize", [a, *(constant(it, type) for it in (-1, 2, -1, 2))], {"levels": 16}, 1
    yield "DepthToSpace", [image], {"mode": "blocks_first", "block_size": 2}, 1
    yield "DepthToSpace", [image], {"mode": "depth_first", "block_size": 2}, 1
    yield "SpaceToDepth", [image], {"mode": "blocks_first", "block_size": 2}, 1
    yield "SpaceToDepth", [image], {"mode": "depth_first", "block_size": 2}, 1
    yield "ShuffleChannels", [image], {"axis": 1, "group": 2}, 1
    yield "ShapeOf", [none], {"output_type": "i64"}, 3
    yield "ConvertLike", [a, constant([1.0], "f32")], {}, 8
    for mode in ("half_to_even", "half_away_from_zero"):
        yield "Round", [line], {"mode": mode}, 5
    yield "Swish", [line, constant(0.5 if type in build.FLOATS else 2, type)], {}, 4
    yield "Gelu", [line], {"approximation_mode": "tanh"}, 7
    yield "PRelu", [a, data(type, [3], 2)], {}, 1
    for operation in REDUCED:
        for axes, keep in (([0], True), ([-1], False), ([0, 1], False)):
            yield operation, [a, whole(axes)], {"keep_dims": keep}, 4
        yield operation, [a, constant(np.zeros([0]), "i64")], {"keep_dims": False}, 4
        yield operation, [none, whole([0])], {"keep_dims": False}, 4
        yield operation, [one, constant(np.zeros([0]), "i64")], {"keep_dims": False}, 4
    for operation in BINARY:
        yield operation, [one, data(type, [], 2)], {}, None
        yield operation, [none, data(type, [1, 3], 2)], {}, None
        yield operation, [data(type, [2, 1]), data(type, [3], 2)], {}, None
    for operation in UNARY:
        yield operation, [one], None, None
        yield operation, [none], None, None


def model(make):
    """The layer of constants, joined with an input so that something is left to compute."""
    made = make()
    type = made.get_output_element_type(0)
    flat = build.FACTORIES[1].create("Reshape", [made.output(0), constant([-1], "i64").output(0)], {"special_zero": False})
    other = ov.op.Parameter(type, ov.PartialShape([1]))
    return ov.Model([build.FACTORIES[1].create("Concat", [flat.output(0), other.output(0)], {"axis": 0})], [other], "fold")


def as_floats(path_or_model):
    """Evaluates a model with a zero, through f64 where NumPy has no such type."""
    path_or_model = fuzz.without_bf16(path_or_model)
    port = path_or_model.inputs[0]
    given = ov.Tensor(port.get_element_type(), ov.Shape([1]))
    given.data[:] = 0
    found = ov.Tensor(path_or_model.outputs[0].get_element_type(), path_or_model.outputs[0].get_shape())
    if not path_or_model.evaluate([found], [given]):
        raise RuntimeError("no kernel")
    return np.array(found.data)


def evaluated(path):
    """`as_floats` in a process of its own: integers that are divided by zero end it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = as_floats(CORE.read_model(str(path)))
            with os.fdopen(writer, "wb") as out:
                held = io.BytesIO()
                np.save(held, found)
                out.write(held.getvalue())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    if not data:
        raise RuntimeError("no answer")
    return np.load(io.BytesIO(data))


def main():
    program, takes = sys.argv[1], "--take" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        source, target, wanted = Path(folder) / "in", Path(folder) / "out", {}
        source.mkdir()
        for name, make in cases():
            try:
                built = model(make)
                file = name.replace(" ", "_")
                ov.save_model(built, str(source / f"{file}.xml"), compress_to_fp16=False)
                wanted[name] = evaluated(source / f"{file}.xml")
            except Exception:
                (source / f"{name.replace(' ', '_')}.xml").unlink(missing_ok=True)
        report = Path(folder) / "report.json"
        run = subprocess.run([program, "rewrite", source, "-o", f"{target}/", "--use", "constant-folding", "--report", report], capture_output=True)
        print(run.returncode, len(list(source.glob("*.xml"))), run.stderr[-300:] if not report.exists() else "")
        folded = {Path(it["file"]).stem for it in json.loads(report.read_text()) if it.get("applied")}
        print(f"{len(wanted)} cases with a kernel, {len(folded)} folded")
        others, taken = 0, []
        for name, expected in wanted.items():
            file = name.replace(" ", "_")
            if file not in folded:
                continue
            found = evaluated(target / f"{file}.xml")
            a, b = expected.astype(np.float64), found.astype(np.float64)
            exact = expected.dtype.kind in "iub"
            same = (expected == found) if exact else (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 2e-3 * np.abs(a) if " f16" in name or "bf16" in name else np.abs(a - b) <= 2e-6 * np.abs(a) + 1e-12)
            if not same.all():
                others += 1
                at = np.flatnonzero(~same)[:4]
                print(f"{name}: {len(np.flatnonzero(~same))} of {len(same)}, at {at.tolist()}: {expected[at].tolist()} → {found[at].tolist()}")
            if same.all():
                taken.append(name)
        print(f"{others} differ")
        if takes:
            packed = lambda data: base64.b64encode(data).decode()
            rows = []
            for name in taken:
                path = source / f"{name.replace(' ', '_')}.xml"
                values = wanted[name].astype(np.float64).tobytes()
                rows.append({"name": name, "xml": path.read_text(), "bin": packed(path.with_suffix(".bin").read_bytes()), "values": packed(values)})
            with gzip.GzipFile(Path(__file__).parent / "fold.jsonl.gz", "wb", mtime=0) as out:
                out.write("".join(json.dumps(row) + "\n" for row in rows).encode())


if __name__ == "__main__":
    main()
