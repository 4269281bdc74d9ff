"""Measures how far the outputs of models are off when they are made f16, with and without `--keep auto`.

    python3 differences.py --typelift target/debug/typelift [--random 300] [--models FOLDER …] [--seed 1]

Needs openvino 2026.4.1 and numpy. Models are those of `../random/graphs.py` and the .xml files of folders. Each is converted with
`--types f32=f16 --keep-io`, and computed in the types of its file by OpenVINO's reference code (`Model.evaluate`): plugins would choose types of
their own. That code has no convolutions and no recurrent operations, so most models are left out, and counted. Inputs are random numbers of a normal distribution, integers from 0 to 2. A difference is the largest one of an output, in relation to the
largest number of that output and at least to 1; it is infinite where a number became infinite or none. What OpenVINO refuses, or does not
evaluate in f32 or in f16, is counted and left out. Each model has a process of its own and at most 20 s.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import numpy as np
import openvino as ov

LONGEST = 20
HERE = pathlib.Path(__file__).resolve().parent


def one(typelift, xml, folder):
    """A list of two differences, or the reason why there is none."""
    def evaluate(path):
        model = ov.Core().read_model(path)
        rng = np.random.default_rng(7)
        given = []
        for i, p in enumerate(model.inputs):
            kind, shape = p.get_element_type(), p.get_partial_shape()
            dims = [2, 2] if shape.rank.is_dynamic else [d.get_length() if d.is_static else max(2, d.get_min_length()) for d in shape]
            tensor = ov.Tensor(kind, dims)
            values = rng.standard_normal(dims) if kind.is_real() else rng.integers(0, 2 if kind == ov.Type.boolean else 3, dims)
            tensor.data[...] = values.astype(tensor.data.dtype)
            given.append(tensor)
        made = [ov.Tensor(o.get_element_type(), []) for o in model.outputs]
        if not model.evaluate(made, given):
            raise RuntimeError("not evaluated")
        return [np.array(t.data).astype(np.float64) for t in made]

    def difference(one, two):
        worst = 0.0
        for a, b in zip(one, two):
            if a.shape != b.shape:
                return float("inf")
            if a.size:
                d = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
                finite = np.abs(a[np.isfinite(a)])
                d = np.nan_to_num(d, nan=np.inf, posinf=np.inf) / max(1.0, finite.max(initial=0))
                worst = max(worst, float(d.max()))
        return worst

    try:
        plain = evaluate(xml)
    except Exception:
        return "refused, or not evaluated by OpenVINO"
    worst = []
    for options in ([], ["--keep", "auto"]):
        out = f"{folder}/{len(options)}.xml"
        done = subprocess.run([typelift, "convert", xml, "--types", "f32=f16", "--keep-io", *options, "-o", out], capture_output=True, text=True)
        if done.returncode:
            return "refused by typelift: " + done.stderr.strip()[:200]
        try:
            made = evaluate(out)
        except Exception as error:
            text = str(error)
            return "not evaluated in f16" if "Evaluation failed" in text else "broken: " + text.strip()[-200:]
        worst.append(difference(plain, made))
    return worst


def apart(*arguments):
    """What `one` gives in a process of its own."""
    up, down = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST)
        try:
            with os.fdopen(down, "w") as pipe:
                json.dump(one(*arguments), pipe)
        finally:
            os._exit(0)
    os.close(down)
    with os.fdopen(up) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else "took too long" if os.WTERMSIG(status) == signal.SIGALRM else "OpenVINO crashed"


def models(arguments, folder):
    sys.path.insert(0, str(HERE.parent / "random"))
    import graphs

    for number in range(arguments.random):
        text, weights = graphs.make(arguments.seed, number)
        (folder / "case.xml").write_text(text)
        (folder / "case.bin").write_bytes(weights)
        yield "random", f"graph {number}", folder / "case.xml"
    for models in arguments.models:
        for xml in sorted(models.glob("*.xml")):
            if not xml.stem.endswith(".ref") and ".promote" not in xml.stem:
                yield "real", xml.stem, xml


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--random", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=pathlib.Path, nargs="*", default=[])
    arguments = parser.parse_args()
    found, left_out = collections.defaultdict(list), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, xml in models(arguments, pathlib.Path(folder)):
            answer = apart(arguments.typelift, str(xml), folder)
            if isinstance(answer, str):
                left_out[kind, answer] += 1
            else:
                found[kind].append((answer, name))
    for kind, differences in found.items():
        print(f"{kind}: {len(differences)} models")
        for what, at in (("f16", 0), ("f16 with --keep auto", 1)):
            worst = sorted(d[at] for d, _ in differences)
            over = [sum(w > limit for w in worst) for limit in (1e-3, 1e-2, 0.1)]
            infinite = sum(w == float("inf") for w in worst)
            print(f"| {kind} | {what} | {len(worst)} | {worst[len(worst) // 2]:.2g} | {over[0]} | {over[1]} | {over[2]} | {infinite} |")
        for (plain, kept), name in sorted(differences, reverse=True)[:12]:
            print(f"    {name}: {plain:.3g}, with --keep auto {kept:.3g}")
    for (kind, reason), count in left_out.most_common():
        print(f"{count} {kind} left out: {reason}")


if __name__ == "__main__":
    main()
