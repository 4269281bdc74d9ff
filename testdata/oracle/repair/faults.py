#!/usr/bin/env python3
"""Puts one wrong type into real models, so that the installed OpenVINO refuses them, and counts how typelift repairs them.

    python faults.py MODELS... --typelift target/release/typelift [--variants 2] [--seed 1] [--align RULES] [--only NAME,...] [--keep DIR]

Takes each NAME.xml in the folders that runs on the CPU with made-up inputs. A fault is one changed element type: of an input, of a weight or a
scalar with its bytes, or the destination_type of a Convert. The ports around it keep their declarations. Faults that OpenVINO still reads are dropped. A fault is repaired if one Convert at most came in (none where an attribute was
wrong), every output and every other layer has the type that it had, OpenVINO loads the result, and its outputs are those of the
model without the fault. Prints what is not, and a table.
"""
import argparse, collections, pathlib, random, re, subprocess, tempfile

import numpy as np
import openvino as ov

from repair import DTYPES, FAR, LAYER, PORTS, attribute, core, distance, is_read, outputs, retyped, running

FAULTS = ["input f32->f16", "input f32->u8", "input i64->i32"]
FAULTS += [f"{what} f32->{ty}" for what in ("weight", "scalar") for ty in ("f64", "f16", "i64")]
FAULTS += ["wrong Convert type", "one f32 in an f16 model"]
CONVERT = re.compile(r'<layer id="\d+" name="([^"]*)" type="(Convert)"[^>]*>\s*<data ([^>]*)/>.*?</layer>', re.S)
OUTPUT = re.compile(r"(<output>.*?</output>)", re.S)
ANY_LAYER = re.compile(r'<layer id="(\d+)" name="([^"]*)" type="([^"]*)".*?</layer>', re.S)


def constants(text, scalar, ty="f32"):
    """The Consts of this type that have elements, of rank 0 or of a higher one."""
    for layer in LAYER.finditer(text):
        data = layer.group(3)
        if layer.group(2) == "Const" and attribute(data, "element_type") == ty and attribute(data, "size") not in (None, "0"):
            if (attribute(data, "shape") == "") == scalar:
                yield layer


def converted(layer, weights, ty):
    """The values of a constant in another type, or None where it does not hold them."""
    old = attribute(layer.group(3), "element_type")
    offset, size = (int(attribute(layer.group(3), name)) for name in ("offset", "size"))
    before = np.frombuffer(weights[offset:offset + size], DTYPES[old])
    with np.errstate(over="ignore", invalid="ignore"):
        values = before.astype(DTYPES[ty])
    near = dict(rtol=1e-2, atol=1e-6) if ty == "f16" else dict(rtol=1e-6, atol=0)
    return values if np.isclose(values.astype(np.float64), before.astype(np.float64), **near).all() else None


def with_constant(text, weights, layer, ty):
    values = converted(layer, weights, ty)
    if values is None:
        return None
    data = weights + b"\0" * (-len(weights) % 64)
    changed = retyped(layer, ty, offset=len(data), size=values.nbytes)
    return text[:layer.start()] + changed + text[layer.end():], data + values.tobytes(), layer.group(1)


def in_f16(text, weights):
    """A model with every f32 made f16, in the file's own words; None where a constant does not fit."""
    data, out, end = bytearray(weights), "", 0
    for layer in LAYER.finditer(text):
        if layer.group(2) == "Const" and attribute(layer.group(3), "element_type") == "f32":
            values = converted(layer, weights, "f16") if attribute(layer.group(3), "size") != "0" else np.zeros(0, np.float16)
            if values is None:
                return None
            data += b"\0" * (-len(data) % 64)
            out += text[end:layer.start()] + retyped(layer, "f16", offset=len(data), size=values.nbytes)
            data += values.tobytes()
            end = layer.end()
    out += text[end:]
    for name in ("element_type", "destination_type", "output_type"):
        out = out.replace(f'{name}="f32"', f'{name}="f16"')
    return out.replace('precision="FP32"', 'precision="FP16"'), bytes(data)


def wrong_convert(text, layer, rng):
    old = attribute(layer.group(3), "destination_type")
    others = [ty for ty in ("f16", "f32", "f64", "i32", "i64") if ty != old]
    if old not in PORTS:
        return None
    ty = rng.choice(others)
    changed = layer.group(0).replace(f'destination_type="{old}"', f'destination_type="{ty}"', 1)
    parts = OUTPUT.split(changed)
    changed = "".join(part.replace(f'"{PORTS[old]}"', f'"{PORTS[ty]}"') if part.startswith("<output") else part for part in parts)
    return text[:layer.start()] + changed + text[layer.end():], f"{layer.group(1)} {old}->{ty}"


def variants(fault, text, weights, rng):
    """Texts, weights and names of layers with this fault, in random order."""
    what, _, change = fault.partition(" ")
    if what == "input":
        old, new = change.split("->")
        inputs = [layer for layer in LAYER.finditer(text) if layer.group(2) == "Parameter" and attribute(layer.group(3), "element_type") == old]
        for layer in rng.sample(inputs, len(inputs)):
            yield text[:layer.start()] + retyped(layer, new) + text[layer.end():], weights, layer.group(1)
    elif what in ("weight", "scalar"):
        found = list(constants(text, what == "scalar"))
        for layer in rng.sample(found, len(found)):
            made = with_constant(text, weights, layer, change.split("->")[1])
            if made:
                yield made
    elif what == "wrong":
        found = list(CONVERT.finditer(text))
        for layer in rng.sample(found, len(found)):
            made = wrong_convert(text, layer, rng)
            if made:
                yield made[0], weights, made[1]
    else:
        found = list(constants(text, False, "f16")) + list(constants(text, True, "f16"))
        for layer in rng.sample(found, len(found)):
            made = with_constant(text, weights, layer, "f32")
            if made:
                yield made


def layers(text):
    """Each layer by name and type, with what its output ports declare."""
    found = collections.defaultdict(list)
    for layer in ANY_LAYER.finditer(text):
        if "<layers>" in layer.group(0):
            continue
        ports = OUTPUT.findall(layer.group(0))
        found[layer.group(1), layer.group(2), layer.group(3)].append(re.findall(r'precision="([^"]*)"', " ".join(ports)))
    return found


def changes(sound, broken, repaired):
    """Returns the number of new Converts, and the layers whose types differ from the model without the fault."""
    before, was, after = layers(sound), layers(broken), layers(repaired)
    new = sum(len(after[key]) for key in after if key not in was and key[2] == "Convert")
    # The layer with the fault keeps its own type, and no-op Converts go.
    faulty = {key for key in before if was.get(key) != before[key]}
    other = [key[1] for key in before if key in after and after[key] != before[key] and key not in faulty]
    return new, other


def convert(case, repaired, options):
    flags = ["--align", options.align] + (["--promote-unsafe"] if options.align == "openvino" else [])
    return subprocess.run([options.typelift, "convert", str(case), "-o", str(repaired), *flags], capture_output=True, text=True)


def judge(fault, case, repaired, sound, values, expected, options):
    done = convert(case, repaired, options)
    if done.returncode:
        return "refused", next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr[-200:])
    new, other = changes(sound.text, case.read_text(), repaired.read_text())
    new -= sound.converts
    try:
        off = distance(outputs(core.read_model(repaired), values), expected)
    except Exception as error:
        return "does not load", str(error).replace("\n", " ")[-300:]
    if off > FAR:
        return "far off", f"off by {off:.3g}, {new} Converts"
    if new > (0 if fault.startswith("wrong") else 1):
        return "too many Converts", f"{new} Converts"
    if other:
        return "retyped", f"{len(other)} layers, such as {other[0]}"
    return "repaired", ""


class Sound:
    """A model without a fault, with inputs on which it runs and its outputs, on whole numbers too, which u8 holds."""

    def __init__(self, path, folder, options):
        self.text, self.weights = path.read_text(), path.with_suffix(".bin").read_bytes()
        self.ran = running(path)
        if self.ran is None:
            return
        rng = np.random.default_rng(1)
        whole = [rng.integers(0, 200, value.shape).astype(value.dtype) if value.dtype.kind == "f" else value for value in self.ran[0]]
        try:
            self.ran_whole = whole, outputs(core.read_model(path), whole)
        except Exception:
            self.ran_whole = None
        # Converts that replace a ConvertPromoteTypes do not count as a repair.
        out = folder / "sound.xml"
        self.converts = changes(self.text, self.text, out.read_text())[0] if not convert(path, out, options).returncode else 0


def sound_models(path, folder, options):
    """The model as it is, and in f16, each with its faults."""
    sound = Sound(path, folder, options)
    if sound.ran is None:
        return
    yield FAULTS[:-1], sound
    made = in_f16(sound.text, sound.weights)
    if made is None or made[0] == sound.text:
        return
    narrow = folder / "f16.xml"
    narrow.write_text(made[0])
    narrow.with_suffix(".bin").write_bytes(made[1])
    sound = Sound(narrow, folder, options)
    if sound.ran is not None:
        yield FAULTS[-1:], sound


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", type=pathlib.Path, nargs="+")
    arguments.add_argument("--typelift", default="typelift")
    arguments.add_argument("--align", default="declared")
    arguments.add_argument("--variants", type=int, default=2)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--keep", type=pathlib.Path, help="where to leave the files that were not repaired")
    options = arguments.parse_args()
    paths = sorted(path for folder in options.models for path in folder.glob("*.xml") if path.name.count(".") == 1)
    if options.only:
        paths = [path for path in paths if path.stem in options.only.split(",")]
    counts = {fault: collections.Counter() for fault in FAULTS}
    used = set()
    for path in paths:
        if not path.with_suffix(".bin").exists():
            continue
        rng = random.Random(f"{options.seed} {path.name}")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            case, repaired = folder / "broken.xml", folder / "repaired.xml"
            for faults, sound in sound_models(path, folder, options):
                for fault in faults:
                    made = 0
                    ran = sound.ran_whole if fault.endswith("u8") else sound.ran
                    for attempt, (variant, data, name) in enumerate(variants(fault, sound.text, sound.weights, rng)):
                        if made == options.variants or attempt == 12 or ran is None:
                            break
                        case.write_text(variant)
                        case.with_suffix(".bin").write_bytes(data)
                        if is_read(case):
                            continue
                        made += 1
                        used.add(path.stem)
                        verdict, detail = judge(fault, case, repaired, sound, *ran, options)
                        counts[fault][verdict] += 1
                        if verdict != "repaired":
                            print(f"{path.stem} [{fault}: {name}]: {verdict}: {detail}", flush=True)
                            if options.keep:
                                options.keep.mkdir(parents=True, exist_ok=True)
                                stem = re.sub(r"\W+", "_", f"{path.stem} {fault} {made}")
                                for file in (case, case.with_suffix(".bin")):
                                    (options.keep / f"{stem}{file.suffix}").write_bytes(file.read_bytes())
    total = sum((verdicts for verdicts in counts.values()), collections.Counter())
    print(f"{sum(total.values())} faults in {len(used)} models, --align {options.align}")
    print("| fault | files | repaired |")
    print("|---|---:|---:|")
    for fault, verdicts in [*counts.items(), ("all", total)]:
        print(f"| {fault} | {sum(verdicts.values())} | {verdicts['repaired']} |")
    print(", ".join(f"{count} {verdict}" for verdict, count in total.most_common()))


if __name__ == "__main__":
    main()
