"""Takes the tables of this folder from the installed openvino (2026.4.1 for those committed).

    python take.py            writes promote.csv, u64_target.csv, document.csv, spellings.csv and convert.txt next to it
"""
import itertools
import os
import re
import sys

import numpy as np
import openvino as ov
from openvino import PartialShape, Type, opset14 as ops
from openvino.passes import ConstantFolding, Manager

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from tables import write_table  # noqa: E402

TYPES = ("boolean bf16 f16 f32 f64 f8e4m3 f8e5m2 i4 i8 i16 i32 i64 u4 u8 u16 u32 u64 "
         "u1 u2 u3 u6 nf4 f4e2m1 f8e8m0 string dynamic").split()
RANKS = {"s": PartialShape([]), "d": PartialShape([2]), "r": PartialShape.dynamic(), "q": PartialShape([-1])}
REASONS = {"Unsupported input element types": "!nofit", "is_type_supported": "!unsup",
           "Integer input cannot be safely promoted": "!int_real",
           "Unsigned integer input cannot be safely promoted": "!unsigned",
           "Scalar input cannot be PyTorch-like promoted": "!pt_scalar"}
LEGEND = f"openvino {ov.__version__.split('-')[0]}"


def promote(a, b, unsafe, pytorch, ranks, target="f32"):
    """The common type of one ConvertPromoteTypes, or why it is refused."""
    inputs = [ops.parameter(RANKS[rank], getattr(Type, ty)) for ty, rank in ((a, ranks[0]), (b, ranks[1]))]
    try:
        node = ops.convert_promote_types(*inputs, unsafe, pytorch, target)
    except RuntimeError as error:
        return next(reason for text, reason in REASONS.items() if text in str(error))
    (result,) = {node.output(i).element_type.get_type_name() for i in (0, 1)}
    return result


def settings():
    """Every setting under its key: flags and ranks."""
    for unsafe, pytorch, a, b in itertools.product((False, True), (False, True), RANKS, RANKS):
        yield f"{unsafe:d}-{pytorch:d}-{a}{b}", (unsafe, pytorch, a + b)


def promotion_tables():
    table = {key: {a: [promote(a, b, *setting) for b in TYPES] for a in TYPES} for key, setting in settings()}
    write_table(f"{HERE}/promote.csv", TYPES, table, [
        LEGEND, "keys: promote_unsafe-pytorch_scalar_promotion-ranks; ranks s=[] d=[2] q=[?] r=unknown; "
        "u64_integer_promotion_target=f32", "cell: the common type, or !reason"])
    signed = ["i16", "i32", "i4", "i64", "i8"]
    pairs = [(s, "u64") for s in signed] + [("u64", s) for s in signed]
    targets = {key: {f"{a}+{b}": [promote(a, b, *setting, target) for target in TYPES] for a, b in pairs}
               for key, setting in settings()}
    write_table(f"{HERE}/u64_target.csv", TYPES, targets, [
        LEGEND, "keys: as in promote.csv; columns: u64_integer_promotion_target; no other pair depends on it",
        "cell: the common type, or !reason"])
    return table


# Largest finite value of each float.
LARGEST = {"f8e4m3": 448, "f8e5m2": 57344, "f16": 65504, "bf16": 3.39e38, "f32": 3.41e38, "f64": 1.8e308}


def holds(to, ty):
    """Returns whether the range of one type lies within that of another of its category, which the document calls safe."""
    if to in LARGEST:
        return LARGEST[to] >= LARGEST[ty]
    bits, more = int(ty[1:]), int(to[1:])
    if to[0] == ty[0]:
        return more >= bits
    return to[0] == "i" and more > bits


def document_table(table):
    """Scalars that the package takes under pytorch_scalar_promotion and the document does not."""
    found = {}
    for ranks in ("sd", "sq", "ds", "qs"):
        for a, row in table[f"0-1-{ranks}"].items():
            for b, result in zip(TYPES, row):
                scalar, other = (a, b) if ranks[0] == "s" else (b, a)
                numbers = [ty in LARGEST or re.fullmatch(r"[iu]\d+", ty) for ty in (scalar, other)]
                if result == other != scalar and all(numbers) and (scalar in LARGEST) == (other in LARGEST) \
                        and not holds(other, scalar):
                    found.setdefault((a, b, result), []).append(ranks)
    with open(f"{HERE}/document.csv", "w", encoding="utf-8") as f:
        f.write("# ConvertPromoteTypes-14, promote_unsafe=0, pytorch_scalar_promotion=1: "
                f"what {LEGEND} accepts and the document refuses\n"
                "# boolean, integers and floats; ranks as in promote.csv, known ones only; "
                "every other combination and setting agrees\nranks,lhs,rhs,accepted\n")
        f.writelines(f"{' '.join(ranks)},{a},{b},{result}\n" for (a, b, result), ranks in found.items())


def spelling_table():
    """Lists the words that an attribute and a port may use for a type."""
    words = [*TYPES, "undefined", *(ty.upper() for ty in TYPES), "UNDEFINED", "Boolean", "Fp32", "fp32", "FP16", "FP32",
             "FP64", "BOOL", "bool", "BIN", "bin", "UNSPECIFIED", "unspecified", "float", "float16", "float32",
             "float64", "double", "half", "int8", "int32", "int64", "uint8", "int8_t", "int32_t", "uint64_t", "char",
             "element::f32", "MIXED", "Q78", "CUSTOM", "i128", "f128", "hf8", "bf8", "F8_E4M3", "", " f32", "f32 ",
             "garbage"]
    model = """<net name="m" version="11"><layers>
<layer id="0" name="p" type="Parameter" version="opset1"><data shape="2" element_type="{attribute}"/>
<output><port id="0" precision="{port}"><dim>2</dim></port></output></layer>
<layer id="1" name="r" type="Result" version="opset1"><input><port id="0" precision="{port}"><dim>2</dim></port></input>
</layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""

    def read(attribute, port):
        try:
            read = ov.Core().read_model(model.format(attribute=attribute, port=port).encode(), b"")
            return read.inputs[0].element_type.get_type_name()
        except RuntimeError:
            return "-"
    with open(f"{HERE}/spellings.csv", "w", encoding="utf-8") as f:
        f.write(f"# {LEGEND}\n# attribute: the type read from an attribute, or - when refused; "
                "port: whether a port may say it\nspelling,attribute,port\n")
        for word in words:
            port = "accepted" if read("f32", word) != "-" else "-"
            f.write(f'"{word}",{read(word, "FP32")},{port}\n')


FLOATS = [0.0, -0.0, 0.4, 0.5, 0.6, 1.5, 2.5, -0.5, -1.5, 127.6, 128.0, 255.5, 256.0, 300.0, -129.0, 65504.0, 65519.9,
          65520.0, 1e6, 3.4e38, 2147483647.0, 2147483648.0, 4294967296.0, 9.3e18, 1e20, -1e20, 1e-8, 6e-8,
          float("inf"), float("-inf"), float("nan")]
EDGES = {
    "f32": (np.float32, FLOATS),
    "f64": (np.float64, [1e300, -1e300, 16777217.0, 9007199254740992.0, 0.1, float("nan"), float("inf")]),
    "i64": (np.int64, [0, 1, -1, 127, 128, 255, 256, -128, -129, 32768, 65504, 65520, 70000, 16777217, 2 ** 31, 2 ** 32,
                       2 ** 53 + 1, 2 ** 63 - 1, -2 ** 63]),
    "u64": (np.uint64, [2 ** 63, 2 ** 64 - 1, 2 ** 53 + 1]),
    "i32": (np.int32, [-1, 2, 256, 16777217, 2 ** 31 - 1]),
    "u8": (np.uint8, [0, 1, 2, 15, 16, 127, 128, 255]),
    "boolean": (np.bool_, [False, True]),
    "f16": (np.float16, [0.1, 65504.0, float("inf"), float("nan"), 6e-8]),
}
TARGETS = ("boolean u4 i4 u8 i8 u16 i16 u32 i32 u64 i64 f8e4m3 f8e5m2 bf16 f16 f32 f64 nf4 u1").split()


def decoded(constant, ty):
    """The values of a folded constant."""
    if ty in ("f8e4m3", "f8e5m2", "bf16", "nf4"):
        return constant.get_data(dtype=np.float32).astype(np.float64).tolist()
    if ty in ("u4", "i4", "u1"):
        bits = np.unpackbits(constant.data.view(np.uint8).ravel(), bitorder="big" if ty == "u1" else "little")
        width = int(ty[1])
        values = (bits[:len(bits) // width * width].reshape(-1, width) << np.arange(width)).sum(axis=1)
        values = values[:int(np.prod(constant.shape))].tolist()
        return [value - 16 if ty == "i4" and value > 7 else value for value in values]
    return (constant.data.astype(np.uint8) if ty == "boolean" else constant.data).tolist()


def convert_file():
    """Records the results when openvino folds a Convert of edge values."""
    lines = []
    for source, (dtype, values) in EDGES.items():
        for target in TARGETS:
            constant = ops.constant(np.array(values, dtype))
            model = ov.Model([ops.convert(constant, target)], [])
            fold = Manager()
            fold.register_pass(ConstantFolding())
            fold.run_passes(model)
            node = model.outputs[0].get_node().input_value(0).get_node()
            if node.get_type_name() != "Constant":
                lines.append(f"{source} {target} NOT FOLDED")
            else:
                lines.append(f"{source} -> {target} {decoded(node, target)}")
    with open(f"{HERE}/convert.txt", "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    document_table(promotion_tables())
    spelling_table()
    convert_file()
