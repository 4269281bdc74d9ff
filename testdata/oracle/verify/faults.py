"""Plants faults in real models and judges `typelift reduce` by them.

    python3 faults.py --typelift PATH --models FOLDER [--seed 1] [--count 30]

A fault is a script that fails if an operation with an element type has a certain neighbour, a finding of `typelift check`, or a
refusal of OpenVINO to compile the model. Each result is compared with the smallest known: Parameters and constants for the
inputs, the layers that matter, and a Result. Prints a line for each fault and the totals.
"""

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

SKIPPED = re.compile(r"\.(ref|moc|promote)|large_|pairs_safe|string_|tok_|realcpt_arith_dyn|lowbit")


# Layers that are not operations, and those whose bodies have layers of their own that are left.
WITHOUT = {"Const", "Parameter", "Result", "If", "Loop", "TensorIterator"}


def graphs(net):
    """A graph and those of its bodies."""
    yield net
    for layer in net.find("layers"):
        for body in ("body", "then_body", "else_body"):
            if layer.find(body) is not None:
                yield from graphs(layer.find(body))


def pairs(path):
    """Each pair of neighbours: producer, consumer, and the type that the consumer gives."""
    for net in graphs(ET.parse(path).getroot()):
        layers = {layer.get("id"): layer for layer in net.find("layers")}
        for edge in net.find("edges"):
            source, user = layers[edge.get("from-layer")], layers[edge.get("to-layer")]
            if user.find("output") is not None and user.find("output")[0].get("precision"):
                yield source, user, user.find("output")[0].get("precision")


def fails(path, source, user, precision):
    return any((a.get("type"), b.get("type"), c) == (source, user, precision) for a, b, c in pairs(path))


def smallest(path, source, user, precision):
    """The fewest layers of a model with the pair: the two, a Result, and an input for each that they need."""
    best = math.inf
    for a, b, c in pairs(path):
        if (a.get("type"), b.get("type"), c) != (source, user, precision):
            continue
        count = lambda layer: 0 if layer.find("input") is None else len(layer.find("input"))
        # Inputs of one type and shape can be one; constants that say axes cannot.
        best = min(best, 2 + 1 + max(1, count(a)) + max(0, count(b) - 1) - (1 if count(a) and count(b) > 1 else 0))
    return best


def run(typelift, model, out, words):
    done = subprocess.run([typelift, "reduce", model, "-o", out, "--report", "-", *words], capture_output=True, text=True)
    try:
        return json.loads(done.stdout), done.stderr
    except ValueError:
        return {}, done.stderr


def planted(model, rng, typelift):
    """A fault for a model: the words for reduce and the smallest number of layers."""
    kind = rng.choice(["pair", "pair", "pair", "finding"])
    if kind == "finding":
        done = subprocess.run([typelift, "check", "--format", "json", model], capture_output=True, text=True)
        codes = sorted({finding["code"] for finding in json.loads(done.stdout).get("diagnostics", [])})
        codes = [code for code in codes if code not in ("required-release", "unused-weights")]
        return (["--finding", rng.choice(codes)], 5) if codes else None
    found = [(a, b, c) for a, b, c in pairs(model) if not {a.get("type"), b.get("type")} & WITHOUT]
    if not found:
        return None
    a, b, c = rng.choice(found)
    names = (a.get("type"), b.get("type"), c)
    words = ["--", sys.executable, str(Path(__file__).resolve()), "--judge", "{}", *names]
    return words, smallest(model, *names)




def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--judge":
        sys.exit(1 if fails(*sys.argv[2:6]) else 0)
    parser = argparse.ArgumentParser()
    parser.add_argument("--typelift", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    models = [path for path in sorted(Path(args.models).glob("*.xml")) if not SKIPPED.search(path.name) and path.with_suffix(".bin").exists()]
    small, few, total, tries = 0, 0, 0, 0
    while total < args.count and tries < 20 * args.count:
        tries += 1
        model = str(rng.choice(models))
        fault = planted(model, rng, args.typelift)
        if fault is None:
            continue
        words, least = fault
        with tempfile.TemporaryDirectory() as folder:
            report, errors = run(args.typelift, model, str(Path(folder) / "small.xml"), words)
        if "layers_after" not in report:
            print("ERROR", Path(model).stem, words[:2], errors.strip()[:200], flush=True)
            total += 1
            continue
        limit = 12 * math.log2(report["layers_before"]) + 40
        is_small, is_few = report["layers_after"] <= least + 2, report["runs"] <= limit
        small, few, total = small + is_small, few + is_few, total + 1
        what = words[1] if words[0] == "--finding" else " ".join(words[-3:])
        print("ok   " if is_small and is_few else "WRONG", Path(model).stem, what, f"{report['layers_before']} -> {report['layers_after']}, known {least}, {report['runs']} runs of {limit:.0f}", flush=True)
    print(f"{small} of {total} are at most 2 layers above the smallest known, {few} within the limit of runs")


if __name__ == "__main__":
    main()
