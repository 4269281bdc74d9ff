"""Counts the layers that `rewrite --use all` and OpenVINO's common optimizations leave in real models.

python models.py PROGRAM FOLDER [--values]    for every .xml of a folder but OpenVINO's own results (`.ref`, `.moc`): how many
                                              layers that are not made of constants there are, before, after ours and after
                                              OpenVINO's (`apply_moc_transformations`, constants folded), by operation; that
                                              each result is read; and with --values that it computes the same on the CPU
"""

import collections
import graphlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import openvino as ov
from openvino._offline_transformations import apply_moc_transformations

CONFIG = {"INFERENCE_PRECISION_HINT": "f32"}


def count(path):
    """The operations that something else than constants feeds, bodies included."""
    found = collections.Counter()
    root = ET.parse(path).getroot()
    for net in [root, *root.iter("body"), *root.iter("then_body"), *root.iter("else_body")]:
        layers = net.find("layers")
        if layers is None:
            continue
        types = {layer.get("id"): layer.get("type") for layer in layers}
        feeds = {layer: [] for layer in types}
        for edge in net.find("edges") if net.find("edges") is not None else ():
            feeds[edge.get("to-layer")].append(edge.get("from-layer"))
        constant = set()
        for layer in graphlib.TopologicalSorter(feeds).static_order():
            if types[layer] == "Const" or feeds[layer] and all(source in constant for source in feeds[layer]):
                constant.add(layer)
            elif types[layer] not in ("Parameter", "Result"):
                found[types[layer]] += 1
    return found


def inputs(model):
    random = np.random.default_rng(0)
    for parameter in model.inputs:
        shape = [dim.get_length() if dim.is_static else max(2, dim.get_min_length()) for dim in parameter.partial_shape]
        dtype = parameter.element_type.to_dtype()
        if np.issubdtype(dtype, np.floating):
            yield random.normal(size=shape).astype(dtype)
        else:
            yield random.integers(0, 2, size=shape).astype(dtype)


def run(core, path):
    model = core.read_model(path)
    return [np.array(value) for value in core.compile_model(model, "CPU", CONFIG)(list(inputs(model))).values()]


def differ(before, after):
    if [it.shape for it in before] != [it.shape for it in after]:
        return True
    for a, b in zip(before, after):
        if a.dtype.kind in "OSU":
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        largest = np.abs(a[np.isfinite(a)]).max(initial=0)
        if not same.all() and not np.abs(a - b)[~same].max() <= 1e-3 * (1e-6 + largest):
            return True
    return False


def main(program, folder, values):
    core = ov.Core()
    before, ours, theirs, files, refused, unread, others, not_run = (*(collections.Counter() for _ in range(3)), 0, [], [], [], [])
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(Path(folder).glob("*.xml")):
            if path.suffixes[-2:-1] in ([".ref"], [".moc"]):
                continue
            out, moc = Path(scratch, "out.xml"), Path(scratch, "moc.xml")
            out.unlink(missing_ok=True)
            done = subprocess.run([program, "rewrite", path, "--use", "all", "-o", out], capture_output=True, text=True)
            if done.returncode:
                refused.append((path.name, done.stderr.strip().splitlines()[:2]))
                continue
            try:
                model = core.read_model(path)
            except RuntimeError:
                continue
            try:
                core.read_model(out)
            except RuntimeError as error:
                unread.append((path.name, str(error)[-200:]))
                continue
            files += 1
            apply_moc_transformations(model, cf=True)
            ov.serialize(model, moc)
            before += count(path)
            ours += count(out)
            theirs += count(moc)
            if values:
                try:
                    expected = run(core, path)
                except RuntimeError:
                    not_run.append(path.name)
                    continue
                try:
                    if differ(expected, run(core, out)):
                        others.append(path.name)
                except RuntimeError as error:
                    others.append((path.name, str(error)[-200:]))
    print(f"{files} files\n\n| operation | before | `--use all` | OpenVINO |\n|---|--:|--:|--:|")
    print(f"| all | {before.total():,} | {ours.total():,} | {theirs.total():,} |")
    changed = [op for op in before.keys() | ours.keys() | theirs.keys() if len({before[op], ours[op], theirs[op]}) > 1]
    for op in sorted(changed, key=lambda op: (-abs(before[op] - theirs[op]), op)):
        print(f"| {op} | {before[op]:,} | {ours[op]:,} | {theirs[op]:,} |")
    for title, names in [("refused", refused), ("not read", unread), ("other values", others), ("not run before either", not_run)]:
        print(f"\n{title}: {len(names)}", *names[:20], sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--values" in sys.argv)
