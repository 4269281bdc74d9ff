"""Random models before and after passes that must not change what a model computes.

python passes.py PROGRAM [--seed N] [--each N] [--only TEXT] [--keep FOLDER]

Builds models of several patterns, as `fuzz.py` does, with many Converts. Applies `convert` with each list of options, and
compares values with OpenVINO's reference kernels. With `--types` and `--keep`, the kept part of a model is what computes
its first output, and only that output is compared. The exit status is 1 if a value or a type changed, or if OpenVINO
refuses a model afterwards.
"""

import collections
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import openvino as ov

import build
import coded
import fuzz

KEPT = "kept"
PASSES = {
    "convert": ["convert"],
    "eliminate": ["convert", "--eliminate-converts"],
    "align openvino": ["convert", "--align", "openvino"],
    "align pytorch": ["convert", "--align", "pytorch"],
    "keep all": ["convert", "--types", "f32=f16,f64=f32,i64=i32", "--keep", "*", "--keep-io"],
    "keep one": ["convert", "--types", "f32=f16", "--keep-io", KEPT],
    "keep integers": ["convert", "--types", "i64=i32", "--keep-io", KEPT],
    "target 2022.3": ["convert", "--target", "2022.3"],
    "target 2021.4": ["convert", "--target", "2021.4"],
    "target 2024.0": ["convert", "--target", "2024.0"],
    "constant-ifs": ["rewrite", "--use", "constant-ifs"],
}
# PyTorch computes quotients and functions of integers in f32. OpenVINO reads inputs and outputs of version 10 as f32.
OTHER_TYPES = {"align pytorch", "target 2021.4"}


def ancestors(result):
    """The names of the layers that compute a result."""
    pending, found = [result], set()
    while pending:
        node = pending.pop()
        if node.get_friendly_name() not in found:
            found.add(node.get_friendly_name())
            pending += [node.input_value(at).get_node() for at in range(node.get_input_size())]
    return sorted(found)


def compared(before, after, shapes, seed, kinds, only_first):
    """`fuzz.compare`, of the first output alone where only that one is kept."""
    if not only_first:
        return fuzz.compare(before, after, shapes, seed, kinds)
    for path in (before, after):
        model = fuzz.CORE.read_model(path)
        for result in model.get_results()[1:]:
            model.remove_result(result)
        ov.save_model(model, path.replace(".xml", ".first.xml"), compress_to_fp16=False)
    return fuzz.compare(*(path.replace(".xml", ".first.xml") for path in (before, after)), shapes, seed, kinds)


def drawn(name, seed):
    """A model, its shapes, and the names of the layers that compute its first output."""
    random = np.random.default_rng([seed, len(name), ord(name[-1])])
    while True:
        try:
            if name == "constant-ifs":
                model, shapes, _ = coded.decided(fuzz.RULES, random)
            else:
                model, shapes, _ = coded.mixed(fuzz.RULES, random, converted=0.3)
            return model, shapes
        except (build.Lack, IndexError, ZeroDivisionError):
            continue
        except Exception as error:
            if "Check '" not in str(error) and "incompatible" not in str(error):
                raise


def main():
    args = fuzz.options().parse_args()
    fuzz.prepare(args.program)
    folder = Path(args.keep or tempfile.mkdtemp(prefix="passes"))
    shutil.rmtree(folder, ignore_errors=True)
    totals, failed = collections.Counter(), 0
    for name, options in PASSES.items():
        if args.only not in name:
            continue
        here = folder / name.replace(" ", "-")
        here.mkdir(parents=True)
        jobs = []
        for seed in range(args.seed * 1000, args.seed * 1000 + args.each):
            model, shapes = drawn(name, seed)
            path, after = here / f"{seed}.xml", here / f"{seed}.after.xml"
            ov.save_model(model, str(path), compress_to_fp16=False)
            kept = ancestors(fuzz.CORE.read_model(str(path)).get_results()[0]) if KEPT in options else []
            own = [it for option in options for it in ([option] if option != KEPT else [part for layer in kept for part in ("--keep", layer)])]
            run = subprocess.run([args.program, *own, str(path), "-o", str(after)], capture_output=True, text=True)
            totals["refused" if run.returncode else "converted"] += 1
            if run.returncode > 1 or "panicked" in run.stderr:
                failed += 1
                print(f"{name} {seed} fails: {run.stderr[-300:]}")
            if run.returncode == 0:
                jobs.append((str(path), str(after), shapes, seed, ["normal", "special", "extreme"], KEPT in options))
        for (path, *_), differs in zip(jobs, fuzz.isolated_all(jobs, compared)):
            totals["compared"] += 1
            if differs and not (differs[0] == "types" and name in OTHER_TYPES):
                failed += 1
                print(f"{name} {path} {differs}"[:400], flush=True)
    print(f"{dict(totals)}; {failed} differ")
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
