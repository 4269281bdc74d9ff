"""Takes anew the inputs and outputs that OpenVINO gives version 10 models: `take.py > ends.csv`.

Each row is a model, `input` or `output`, the tensor names and the element type. `take.py types` writes `types.xml`, a
model with an input and an output of each type.
"""

import csv
import sys
from pathlib import Path

import openvino as ov

HERE = Path(__file__).resolve().parent
TYPES = "boolean bf16 f16 f32 f64 i4 i8 i16 i32 i64 u1 u4 u8 u16 u32 u64 f8e4m3 nf4".split()
PRECISIONS = {"boolean": "BOOL", "f16": "FP16", "f32": "FP32", "f64": "FP64"}


def layer(number: int, kind: str, name: str, data: str, ins: list[str], outs: list[tuple[str, str]]) -> str:
    """Writes a layer. Ports are numbered through inputs and outputs."""
    dims = "<dim>2</dim>"
    inputs = "".join(f'<port id="{at}" precision="{ty}">{dims}</port>' for at, ty in enumerate(ins))
    outputs = "".join(
        f'<port id="{at}" precision="{ty}"{names}>{dims}</port>' for at, (ty, names) in enumerate(outs, len(ins))
    )
    inputs = f"<input>{inputs}</input>" if ins else ""
    outputs = f"<output>{outputs}</output>" if outs else ""
    return f'<layer id="{number}" name="{name}" type="{kind}" version="opset1">{data}{inputs}{outputs}</layer>\n'


def write_types() -> None:
    """Writes a model in which each type enters and leaves, by layers with one output and with several."""
    layers = [layer(0, "Const", "axis", '<data element_type="i64" shape="" offset="0" size="8"/>', [], [("I64", "")]).replace("<dim>2</dim>", "")]
    layers.append(layer(1, "Const", "weights", '<data element_type="f32" shape="2" offset="8" size="8"/>', [], [("FP32", "")]))
    layers.append(layer(2, "Abs", "weighted", "", ["FP32"], [("FP32", ' names="w"')]))
    layers.append(layer(3, "Result", "weighted/result", "", ["FP32"], []))
    edges = [(1, 0, 2, 0), (2, 1, 3, 0)]
    for at, ty in enumerate(TYPES, 1):
        first, precision = 10 * at, PRECISIONS.get(ty, ty.upper())
        layers.append(layer(first, "Parameter", f"in_{ty}", f'<data shape="2" element_type="{ty}"/>', [], [(precision, f' names="{ty}"')]))
        layers.append(layer(first + 1, "Concat", f"one_{ty}", '<data axis="0"/>', [precision], [(precision, f' names="one,{ty}"')]).replace(f"one,{ty}", f"{ty}.one"))
        layers.append(layer(first + 2, "Result", f"out_{ty}", "", [precision], []))
        split = layer(first + 3, "Split", f"several_{ty}", '<data num_splits="2"/>', [precision, "I64"], [(precision, ""), (precision, f' names="{ty}.second"')])
        split = split.replace('precision="I64"><dim>2</dim>', 'precision="I64">')
        head, tail = split.split("<output>")
        layers.append(head + "<output>" + tail.replace("<dim>2", "<dim>1"))
        edges += [(first, 0, first + 1, 0), (first + 1, 1, first + 2, 0), (first, 0, first + 3, 0), (0, 0, first + 3, 1)]
        for port in (2, 3):
            result = layer(first + 2 + port, "Result", f"part_{port}_{ty}", "", [precision], [])
            layers.append(result.replace("<dim>2", "<dim>1"))
            edges.append((first + 3, port, first + 2 + port, 0))
    lines = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>\n' for a, b, c, d in edges)
    text = f'<?xml version="1.0"?>\n<net name="types" version="10"><layers>\n{"".join(layers)}</layers><edges>\n{lines}</edges></net>\n'
    (HERE / "types.xml").write_text(text)
    (HERE / "types.bin").write_bytes(bytes(8) + bytes.fromhex("0000003f0000c0bf"))


def main() -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["model", "end", "names", "type"])
    for path in sorted(HERE.glob("*.xml")):
        model = ov.Core().read_model(path)
        for end, ports in (("input", model.inputs), ("output", model.outputs)):
            for port in ports:
                out.writerow([path.stem, end, " ".join(sorted(port.names)), port.element_type.get_type_name()])


if __name__ == "__main__":
    write_types() if sys.argv[1:] == ["types"] else main()
