"""A sample of the models of `fuzz.py` with the values that OpenVINO's reference kernels compute.

python sample.py PROGRAM [--seed N]     writes sample.jsonl.gz: for each rule models that it is applied to, each with
                                        inputs and outputs; `cargo test -p typelift --test it values` reads it
"""

import argparse
import base64
import gzip
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import openvino as ov

import build
import coded
import fuzz

EACH, MOST_BYTES = 2, 12_000


def packed(array):
    """The type, the shape and the bytes of an array."""
    name = {"bool": "boolean"}.get(array.dtype.name) or f"{array.dtype.kind}{array.dtype.itemsize * 8}"
    return {"type": name, "shape": list(array.shape), "bytes": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def model_of(rule, random):
    while True:
        try:
            return (coded.model(rule, fuzz.RULES, random) if isinstance(rule, str) else build.model(rule, random))[:2]
        except (build.Lack, IndexError, ZeroDivisionError):
            continue
        except Exception as error:
            if "Check '" not in str(error) and "incompatible" not in str(error):
                raise


def row(path, after, shapes, seed, types):
    """Inputs and outputs of a model, where its values are the same after the rewrite."""
    if fuzz.compare(path, after, shapes, seed, ["normal"]):
        return None
    values = fuzz.inputs_of(shapes, types, seed, "normal")
    model = fuzz.fixed(fuzz.CORE.read_model(path), shapes)
    outputs = fuzz.reference(model, values)
    names = [parameter.get_friendly_name() for parameter in model.get_parameters()]
    return {"inputs": {name: packed(value) for name, value in zip(names, values)}, "outputs": [packed(value) for value in outputs]}


def guarded_row(*job):
    try:
        return row(*job)
    except Exception:
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    fuzz.prepare(args.program)
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="sample"))
    for number, (key, rule) in enumerate(fuzz.RULES.items()):
        here = folder / "in"
        here.mkdir(parents=True)
        jobs = {}
        for seed in range(24):
            model, shapes = model_of(rule, np.random.default_rng([args.seed, number, seed]))
            types = fuzz.types_of(model.inputs)
            ends = [*types, *fuzz.types_of(model.outputs)]
            path = here / f"{seed}.xml"
            ov.save_model(model, str(path), compress_to_fp16=False)
            if "bf16" in ends or path.stat().st_size > MOST_BYTES:
                path.unlink()
                continue
            jobs[str(seed)] = (str(path), str(folder / "out" / f"{seed}.xml"), shapes, seed, types)
        own = folder / "own.rules"
        own.write_text("" if isinstance(rule, str) else rule.source)
        options = ["--rules", str(own)] if not isinstance(rule, str) else ["--use", "all" if rule == "mixed" else rule]
        applied, _ = fuzz.rewrite(args.program, options, here, folder / "own")
        fuzz.rewrite(args.program, ["--use", "all"], here, folder / "out")
        chosen = [name for name in jobs if applied.get(name, {}).get("applied")]
        found = zip(chosen, fuzz.isolated_all([jobs[name] for name in chosen], guarded_row))
        for name, answer in [it for it in found if isinstance(it[1], dict)][:EACH]:
            path = Path(jobs[name][0])
            weights = base64.b64encode(path.with_suffix(".bin").read_bytes()).decode()
            rows.append({"name": f"{key} {name}", "xml": path.read_text(), "bin": weights, **answer})
        for part in ("in", "out", "own"):
            shutil.rmtree(folder / part, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    with gzip.GzipFile(Path(__file__).parent / "sample.jsonl.gz", "wb", mtime=0) as out:
        out.write("".join(json.dumps(it) + "\n" for it in rows).encode())
    print(f"{len(rows)} models of {len({it['name'].split()[0] for it in rows})} of {len(fuzz.RULES)} rules")


if __name__ == "__main__":
    main()
