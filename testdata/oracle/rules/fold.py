"""Values of folded layers, compared with OpenVINO's reference kernels.

python fold.py PROGRAM          for each operation that is folded, each element type and edge values: what
                                `--use constant-folding` writes, and what the reference computes; prints what differs
python fold.py PROGRAM --take   writes the models, with the answers of the reference, to fold.json.gz
"""

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


def node(operation, inputs, attributes=None):
    attributes = attributes if attributes is not None else ATTRIBUTES.get(operation, {})
    return build.FACTORIES[OPSETS.get(operation, 1)].create(operation, [it.output(0) for it in inputs], attributes)


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


def model(make):
    """The layer of constants, joined with an input so that something is left to compute."""
    made = make()
    type = made.get_output_element_type(0)
    flat = build.FACTORIES[1].create("Reshape", [made.output(0), constant([-1], "i64").output(0)], {"special_zero": False})
    other = ov.op.Parameter(type, ov.PartialShape([1]))
    return ov.Model([build.FACTORIES[1].create("Concat", [flat.output(0), other.output(0)], {"axis": 0})], [other], "fold")


def as_floats(path_or_model):
    """Evaluates a model with a zero, through f64 where NumPy has no such type."""
    steps = ov.preprocess.PrePostProcessor(path_or_model)
    kind = path_or_model.inputs[0].get_element_type()
    if kind == ov.Type.bf16:
        steps.input().tensor().set_element_type(ov.Type.f32)
        steps.output().tensor().set_element_type(ov.Type.f32)
        path_or_model = steps.build()
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
            taken.append(name)
        print(f"{others} differ")
        if takes:
            rows = [{"name": name, "values": [repr(it) for it in wanted[name].tolist()]} for name in taken]
            with gzip.GzipFile(Path(__file__).parent / "fold.json.gz", "wb", mtime=0) as out:
                out.write(json.dumps(rows).encode())


if __name__ == "__main__":
    main()
