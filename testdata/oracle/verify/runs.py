"""Judges `typelift verify` on one model in two runs.

    python3 runs.py --typelift PATH inputs MODEL.xml ...
    python3 runs.py --typelift PATH releases --python 2024.6=/venv/bin/python --python 2025.4=... MODEL.xml ...
    python3 runs.py --typelift PATH hints MODEL.xml ...
    python3 runs.py --typelift PATH expect FOLDER
    python3 runs.py --typelift PATH time MODEL.xml ...

`inputs` runs a model against itself, on inputs that verify makes. `releases` compares each pair of installations. `hints` compares
precisions and approximations, and repeats each comparison with compile_model on the inputs that verify saved. `expect` takes the
files of `exported.py`. `time` adds up user seconds, next to two runs of each model on the same inputs without verify.
"""

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from plant import numbers

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
# The options of verify, and what they mean for A and B. `None` is what the device does by itself.
HINT, CACHE, GROUPS = EXACT
SETTINGS = {
    "hint f32": (["--hint-a", "default"], None, {}),
    "hint bf16": (["--hint-b", "bf16"], {}, {HINT: "bf16"}),
    "hint f16": (["--hint-b", "f16"], {}, {HINT: "f16"}),
    "hint default": (["--hint-b", "default"], {}, None),
    "cache u8": (["--config-b", f"{CACHE}=u8"], {}, {CACHE: "u8"}),
    "groups of 32": (["--config-b", f"{GROUPS}=32"], {}, {GROUPS: "32"}),
    "bf16, groups of 32": (["--hint", "bf16", "--config-b", f"{GROUPS}=32"], {HINT: "bf16"}, {HINT: "bf16", GROUPS: "32"}),
}


def verify(typelift, *words, python=sys.executable):
    words = ["--python", python, *words] if python else list(words)
    done = subprocess.run([typelift, "verify", "--format", "json", *map(str, words)], capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {}
    return done.returncode, report, " ".join(done.stderr.split())


def place(report):
    first = report.get("first") or {}
    return f"{first.get('operation')} `{(first.get('layer') or {}).get('name')}`" if first else "no layer"


def size(report):
    return max((output["max_relative"] or 0 for output in report.get("outputs", [])), default=0)


def inputs(args):
    found = Counter()
    for path in args.models:
        status, report, errors = verify(args.typelift, path, path)
        found[status] += 1
        print(status, path.stem, place(report) if status == 1 else "", errors[:300], flush=True)
    print(dict(found))


def releases(args):
    pythons, found = dict(word.split("=", 1) for word in args.python), Counter()
    for path, (a, b) in itertools.product(args.models, itertools.combinations(pythons, 2)):
        status, report, errors = verify(args.typelift, path, "--python-a", pythons[a], "--python-b", pythons[b], python=None)
        found[status] += 1
        print(status, path.stem, a, b, f"{size(report):.1e}", place(report) if status == 1 else "", errors[:300], flush=True)
    print(dict(found))


def own_verdict(path, configs, saved, tolerance):
    """What compile_model says: 0 or 1, or 2 if the device does not take a property."""
    import openvino as ov

    core, arrays = ov.Core(), np.load(saved)
    model = core.read_model(path)
    compiled = []
    for config in configs:
        it = core.compile_model(model, "CPU", {} if config is None else {**EXACT, **config})
        for name, asked in (config or {}).items():
            answer = it.get_property(name)
            if asked != (answer.get_type_name() if isinstance(answer, ov.Type) else str(answer)):
                return 2
        compiled.append(it)
    runs = {}
    for key in arrays:
        place, name = key.split("/", 1) if key.startswith("sample") else ("sample1.step1", key)
        runs.setdefault(place, {})[name] = arrays[key]
    same, requests = True, []
    for place in sorted(runs):
        if place.endswith(".step1"):
            requests = [it.create_infer_request() for it in compiled]
        fed = []
        for value in model.inputs:
            names = [*value.names, value.node.friendly_name]
            array = next(runs[place][name] for name in names if name in runs[place])
            is_bf16 = value.element_type == ov.Type.bf16
            fed.append(ov.Tensor(array.astype(np.float32)) if is_bf16 else array.astype(value.element_type.to_dtype()))
        results = [request.infer(fed, share_inputs=False) for request in requests]
        for at in range(len(model.outputs)):
            x, y = (numbers(result[at], model.outputs[at]).astype(np.float64) for result in results)
            limit = tolerance["absolute"] + tolerance["relative"] * np.abs(x[np.isfinite(x)]).max(initial=0)
            good = np.isfinite(x) & np.isfinite(y)
            same &= x.shape == y.shape and bool((np.isfinite(x) == np.isfinite(y)).all()) and np.abs(x - y)[good].max(initial=0) <= limit
    return 0 if same else 1


def hints(args):
    if args.judge:
        path, setting, saved, tolerance = args.judge
        print(own_verdict(path, SETTINGS[setting][1:], saved, json.loads(tolerance)))
        return
    right, total = 0, 0
    for path, (setting, (words, *_)) in itertools.product(args.models, SETTINGS.items()):
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / "inputs.npz"
            status, report, errors = verify(args.typelift, path, *words, "--save-inputs", saved)
            if not saved.exists():
                # The inputs of a run that verify refuses are those of the same model in the same way.
                verify(args.typelift, path, path, "--save-inputs", saved)
            tolerance = json.dumps(report.get("tolerance", {"relative": 1e-3, "absolute": 1e-6}))
            judge = [sys.executable, __file__, "--typelift", "-", "hints", "--judge", path, setting, saved, tolerance]
            done = subprocess.run(judge, capture_output=True, text=True)
            own = done.stdout.strip() or done.stderr.strip()[-200:]
        is_same = own == str(status)
        right, total = right + is_same, total + 1
        print("ok   " if is_same else "WRONG", path.stem, "|", setting, "|", status, own, f"{size(report):.1e}", place(report) if status == 1 else "", errors[:160], flush=True)
    print(f"{right} of {total} verdicts are the same")


def expect(args):
    right, total = 0, 0
    for path in sorted(args.models[0].glob("*.xml")):
        stem = path.stem.removesuffix("_changed")
        fed, out = (path.parent / f"{stem}.{kind}.npz" for kind in ("inputs", "outputs"))
        status, report, errors = verify(args.typelift, path, "--inputs", fed, "--expect", out)
        is_right = status == int(path.stem.endswith("_changed"))
        right, total = right + is_right, total + 1
        print("ok   " if is_right else "WRONG", path.stem, status, f"{size(report):.1e}", errors[:200], flush=True)
    print(f"{right} of {total}")


def seconds(words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    status = subprocess.run(words, capture_output=True).returncode
    return status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def time(args):
    script = (
        "import sys,numpy as np,openvino as ov\n"
        "c=ov.Core();a=np.load(sys.argv[2])\n"
        "for _ in 'AB':\n"
        " m=c.read_model(sys.argv[1]);k=c.compile_model(m,'CPU',{'INFERENCE_PRECISION_HINT':'f32'});q=k.create_infer_request()\n"
        " for p in sorted({n.split('/',1)[0] for n in a}):\n"
        "  if p.endswith('.step1'): q.reset_state()\n"
        "  q.infer([next(a[f'{p}/{n}'] for n in (*i.names,i.node.friendly_name) if f'{p}/{n}' in a).astype(i.element_type.to_dtype()) for i in m.inputs])\n"
    )
    total = np.zeros(2)
    for path in args.models:
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder) / "inputs.npz"
            status, own = seconds([args.typelift, "verify", "--python", sys.executable, "--save-inputs", saved, path, path])
            other, plain = seconds([sys.executable, "-c", script, path, saved])
        print(path.stem, status, other, f"{own:.2f} {plain:.2f}", flush=True)
        total += [own, plain] if status == other == 0 else [0, 0]
    print(f"user seconds: {total[0]:.1f} with verify, {total[1]:.1f} without, ratio {total[0] / total[1]:.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--typelift", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (inputs, releases, hints, expect, time):
        own = commands.add_parser(command.__name__)
        own.set_defaults(run=command)
        own.add_argument("models", nargs="*", type=Path)
        if command is releases:
            own.add_argument("--python", action="append", required=True)
        if command is hints:
            own.add_argument("--judge", nargs=4)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
