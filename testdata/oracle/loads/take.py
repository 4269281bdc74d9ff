"""Takes cases.jsonl.gz anew: single models and what OpenVINO makes of them, asked of the package once more.

Usage: python take.py [--add MODEL.xml ...]     (needs openvino 2026.4.1)

A line is a JSON object: `name`, `xml`, `bin` (base64), and `layers`, a list of [name, [[type, shape], ...], {body: layers}]
without Results, or `error`. `--add` adds models, or replaces those of the same file name. `values.py` makes those whose names
end in an element type. The others were found on foreign and on random models, or written by hand, and are the data. Each is
read in a process of its own.
"""

import argparse
import base64
import gzip
import json
import multiprocessing
import pathlib
import tempfile

CASES = pathlib.Path(__file__).with_name("cases.jsonl.gz")


def layers(model):
    found = []
    for op in model.get_ordered_ops():
        kind = op.get_type_name()
        if kind == "Result":
            continue
        bodies = {}
        if kind == "If":
            bodies = {"then_body": layers(op.get_function(0)), "else_body": layers(op.get_function(1))}
        elif kind in ("Loop", "TensorIterator"):
            bodies = {"body": layers(op.get_function())}
        outputs = [[port.get_element_type().get_type_name(), str(port.get_partial_shape())] for port in op.outputs()]
        found.append([op.get_friendly_name(), outputs, bodies])
    return found


def answer(case):
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.xml"
        path.write_bytes(case["xml"].encode())
        if case["bin"] is not None:
            path.with_suffix(".bin").write_bytes(base64.b64decode(case["bin"]))
        try:
            return {"layers": layers(openvino.Core().read_model(path))}
        except Exception as error:
            return {"error": str(error).replace(folder + "/", "").strip()}


def read(path):
    weights = path.with_suffix(".bin")
    data = base64.b64encode(weights.read_bytes()).decode() if weights.exists() else None
    return {"name": path.stem, "xml": path.read_bytes().decode(), "bin": data}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", nargs="+", type=pathlib.Path, default=[])
    arguments = parser.parse_args()
    cases = {}
    if CASES.exists():
        for line in gzip.open(CASES, "rt"):
            case = json.loads(line)
            cases[case["name"]] = {key: case[key] for key in ("name", "xml", "bin")}
    for path in arguments.add:
        cases[path.stem] = read(path)
    with multiprocessing.Pool(2, maxtasksperchild=200) as pool:
        answers = pool.map(answer, cases.values(), chunksize=20)
    with gzip.GzipFile(CASES, "wb", mtime=0) as out:
        for case, found in zip(cases.values(), answers):
            out.write((json.dumps(case | found) + "\n").encode())


if __name__ == "__main__":
    main()
