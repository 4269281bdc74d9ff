#!/usr/bin/env python3
"""Gives inputs and outputs of real models other types with typelift, and compares the results with OpenVINO's.

    python ports.py MODELS... --typelift target/release/typelift [--seed 1] [--only NAME,...]

Takes each NAME.xml in the folders that runs on the CPU with made-up inputs. `--input-type` is asked for each of up to two inputs
and `--output-type` for each of up to two outputs, in a type drawn at random. A case is as asked if exactly one Convert came in, the
port has the new type and its names, no other layer changed its type, OpenVINO loads the result, and its outputs are those of the
model on the same values (as the new type holds them) and, converted, as numpy converts them. Prints what is not, and a table.
"""
import argparse, collections, pathlib, random, re, subprocess, tempfile

import numpy as np

from faults import changes
from repair import DTYPES, FAR, core, distance, outputs, running

OTHERS = {"f32": ["u8", "f16", "f64", "i32"], "i64": ["i32"], "i32": ["i64"], "f16": ["f32"], "u8": ["f32"], "boolean": ["u8"]}


def type_of(port):
    return port.get_element_type().get_type_name()


def name_of(port):
    """A tensor name, or else the name of the layer; None where it names no port."""
    layer = port.get_node().get_friendly_name()
    names = sorted(port.get_names())
    return next((name for name in [*names, layer] if "=" not in name), None)


def asked(model, text, rng):
    """Options with what they change: the side, the position, the type and the name."""
    for side, ports in (("input", model.inputs), ("output", model.outputs)):
        names = collections.Counter(name_of(port) for port in ports)
        # Tensors of one name cannot be asked for by it.
        unique = {name for name, count in names.items() if name and count == 1 and text.count(f' names="{name}"') < 2}
        places = [at for at, port in enumerate(ports) if type_of(port) in OTHERS and name_of(port) in unique]
        for at in rng.sample(places, min(2, len(places))):
            types = OTHERS[type_of(ports[at])]
            if side == "output":
                types = [ty for ty in types if ty not in ("u8", "i32")] or types
                # Of version 10 OpenVINO reads every such output as f32.
                types = [] if 'version="10"' in text[:400] else types
            if types:
                yield side, at, rng.choice(types), name_of(ports[at])


def judge(path, made, case, values, options):
    side, at, ty, name = case
    done = subprocess.run([options.typelift, "convert", str(path), "-o", str(made), f"--{side}-type", f"{name}={ty}"],
                          capture_output=True, text=True)
    if done.returncode:
        return "refused", done.stderr.strip().replace("\n", " ")[:200]
    before, after = core.read_model(path), core.read_model(made)
    port = (after.inputs if side == "input" else after.outputs)[at]
    old = (before.inputs if side == "input" else before.outputs)[at]
    if type_of(port) != ty or port.get_names() != old.get_names():
        return "not as asked", f"{type_of(port)} {port.get_names()} for {old.get_names()}"
    values = list(values)
    if side == "input":
        # Both models get values that the new type can hold.
        whole = np.abs(values[at]) if ty == "u8" else values[at]
        narrow = whole.astype(DTYPES[ty])
        given, values[at] = narrow, narrow.astype(values[at].dtype)
    expected = outputs(before, values)
    if side == "input":
        values[at] = given
    else:
        expected[at] = expected[at].astype(DTYPES[ty])
    if (off := distance(outputs(after, values), expected)) > FAR:
        return "far off", f"off by {off:.3g}"
    return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", type=pathlib.Path, nargs="+")
    arguments.add_argument("--typelift", default="typelift")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", default="")
    options = arguments.parse_args()
    paths = sorted(path for folder in options.models for path in folder.glob("*.xml") if path.name.count(".") == 1)
    counts, used = collections.defaultdict(collections.Counter), set()
    for path in paths:
        if options.only and path.stem not in options.only.split(",") or not path.with_suffix(".bin").exists():
            continue
        ran = running(path)
        if ran is None:
            continue
        rng = random.Random(f"{options.seed} {path.name}")
        with tempfile.TemporaryDirectory() as folder:
            made, plain = pathlib.Path(folder) / "made.xml", pathlib.Path(folder) / "plain.xml"
            # Converts that replace a ConvertPromoteTypes are not counted.
            if subprocess.run([options.typelift, "convert", str(path), "-o", str(plain)], capture_output=True).returncode:
                continue
            for case in asked(core.read_model(path), path.read_text(), rng):
                verdict = judge(path, made, case, ran[0], options)
                if verdict is None:
                    before, after = plain.read_text(), made.read_text()
                    new = after.count('type="Convert"') - before.count('type="Convert"')
                    other = [name for name in changes(before, before, after)[1] if name not in plain_ports(plain, case)]
                    verdict = ("too many Converts", str(new)) if new != 1 else ("retyped", other[0]) if other else None
                used.add(path.stem)
                counts[case[0]][verdict[0] if verdict else "as asked"] += 1
                if verdict:
                    print(f"{path.stem} --{case[0]}-type {case[3]}={case[2]}: {verdict[0]}: {verdict[1]}", flush=True)
    print(f"{sum(map(sum, (verdicts.values() for verdicts in counts.values())))} cases in {len(used)} models")
    print("| option | cases | as asked |")
    print("|---|---:|---:|")
    for side, verdicts in counts.items():
        print(f"| `--{side}-type` | {sum(verdicts.values())} | {verdicts['as asked']} |")


def plain_ports(path, case):
    """The layer that is asked to change."""
    side, at, _, _ = case
    model = core.read_model(path)
    port = model.inputs[at] if side == "input" else model.outputs[at]
    return [port.get_node().get_friendly_name()]


if __name__ == "__main__":
    main()
