#!/usr/bin/env python3
"""Breaks real models so that the installed OpenVINO refuses their types, and has typelift repair them.

    python repair.py MODELS --typelift target/release/typelift [--variants 4] [--seed 1] [--only NAME,...]

Takes each NAME.xml in the folder that runs on the CPU with made-up inputs. A variant of it has the element type of an input
or of some constants changed, the constants' bytes converted with it, as far as the new type holds their values; variants that
OpenVINO still reads are dropped. Each is given to `typelift convert` under several rules. It is repaired if OpenVINO loads the
result and its outputs are close to those of the unbroken model on the same inputs. Prints what is not, and the number repaired of the number broken.
"""
import argparse, collections, pathlib, random, re, subprocess, sys, tempfile

import numpy as np
import openvino as ov

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64, "u8": np.uint8}
PORTS = {"f16": "FP16", "f32": "FP32", "f64": "FP64", "i8": "I8", "i32": "I32", "i64": "I64", "u8": "U8"}
OTHERS = {"f32": ["f16", "f64"], "f16": ["f32", "f64"], "f64": ["f32"], "i64": ["i32"], "i32": ["i64"]}
RULES = {"openvino": ["--align", "openvino", "--promote-unsafe"], "pytorch": ["--align", "pytorch"]}
LAYER = re.compile(r'<layer id="\d+" name="([^"]*)" type="(Parameter|Const)"[^>]*>\s*<data ([^>]*)/>.*?</layer>', re.S)
FAR = 0.05
MAX = float(np.finfo(np.float32).max)

core = ov.Core()
core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def attribute(data, name):
    found = re.search(rf'\b{name}="([^"]*)"', data)
    return found and found.group(1)


def retyped(layer, ty, offset=None, size=None):
    """The text of a Parameter or Const with another element type."""
    old = attribute(layer.group(3), "element_type")
    text = layer.group(0).replace(f'element_type="{old}"', f'element_type="{ty}"', 1)
    text = text.replace(f'precision="{PORTS[old]}"', f'precision="{PORTS[ty]}"', 1)
    if offset is not None:
        text = re.sub(r'\boffset="\d+"', f'offset="{offset}"', text, count=1)
        text = re.sub(r'\bsize="\d+"', f'size="{size}"', text, count=1)
    return text


def variants(text, weights, rng):
    """Texts and weights with the type of one input or of some constants changed, endlessly."""
    layers = [layer for layer in LAYER.finditer(text) if attribute(layer.group(3), "element_type") in OTHERS]
    inputs = [layer for layer in layers if layer.group(2) == "Parameter"]
    constants = [layer for layer in layers if layer.group(2) == "Const" and attribute(layer.group(3), "size") != "0"]
    for attempt in range(60):
        chosen = [rng.choice(inputs)] if inputs and attempt % 2 == 0 else rng.sample(constants, min(len(constants), rng.randint(1, 5)))
        out, data, changes = text, bytearray(weights), []
        for layer in sorted(chosen, key=lambda layer: -layer.start()):
            old = attribute(layer.group(3), "element_type")
            new = rng.choice(OTHERS[old])
            place = {}
            if layer.group(2) == "Const":
                offset, size = (int(attribute(layer.group(3), name)) for name in ("offset", "size"))
                before = np.frombuffer(weights[offset:offset + size], DTYPES[old])
                with np.errstate(over="ignore"):
                    values = before.astype(DTYPES[new])
                # Rounded is near enough; what wraps around or becomes infinite is another model.
                if not np.isclose(values.astype(np.float64), before.astype(np.float64), rtol=1e-2, atol=1e-6).all():
                    continue
                data += b"\0" * (-len(data) % 64)
                place = {"offset": len(data), "size": values.nbytes}
                data += values.tobytes()
            out = out[:layer.start()] + retyped(layer, new, **place) + out[layer.end():]
            changes.append(f"{layer.group(2)} {layer.group(1)} {old}->{new}")
        if changes:
            yield ", ".join(changes), out, bytes(data)


def inputs_for(model, rng, length):
    """Made-up inputs; `length` stands for dims that are not fixed, where it is within their bounds."""
    values = []
    for port in model.inputs:
        shape = port.get_partial_shape()
        if shape.rank.is_dynamic:
            return None
        dims = [d.get_length() if d.is_static else min(max(length, d.get_min_length()), d.get_max_length() if d.get_max_length() > 0 else length) for d in shape]
        ty = port.get_element_type().to_string()
        if ty in ("f32", "f16", "f64"):
            # Numbers that f16 holds, so that a narrower input is no loss.
            value = rng.standard_normal(dims).astype(np.float16).astype(DTYPES[ty])
        elif ty in DTYPES:
            value = rng.integers(0, 3, dims).astype(DTYPES[ty])
        elif ty == "boolean":
            value = rng.integers(0, 2, dims).astype(bool)
        else:
            return None
        values.append(value)
    return values


def outputs(model, values):
    request = core.compile_model(model, "CPU").create_infer_request()
    typed = [value.astype(port.get_element_type().to_dtype()) for value, port in zip(values, model.inputs)]
    results = request.infer(dict(enumerate(typed)))
    return [np.array(results[port], dtype=np.float64) if results[port].dtype.kind in "fiub" else None for port in results]


def distance(ours, theirs):
    """The largest difference in relation to the largest value."""
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a is None or b is None:
            continue
        if a.shape != b.shape:
            return float("inf")
        # In f64 a number can be finite that f32 does not hold.
        a, b = (np.clip(value, -MAX, MAX) for value in (a, b))
        same = np.isclose(a, b, rtol=1e-6, equal_nan=True) | (np.isnan(a) & np.isnan(b))
        if not same.all():
            finite = np.abs(b[np.isfinite(b)])
            with np.errstate(invalid="ignore"):
                worst = max(worst, float(np.nanmax(np.abs(a - b)[~same])) / (float(finite.max(initial=0)) or 1.0))
    return worst


def running(path):
    """The model with inputs on which it runs, twice alike, and its outputs."""
    try:
        model = core.read_model(path)
    except Exception:
        return None
    if not model.inputs:
        return None
    for length in (2, 4, 1, 8, 16, 32, 64):
        values = inputs_for(model, np.random.default_rng(1), length)
        if values is None:
            return None
        try:
            # Refuses lengths that do not fit; the CPU plugin would read beyond the ends of tensors.
            core.read_model(path).reshape({at: value.shape for at, value in enumerate(values)})
            expected = outputs(model, values)
            if distance(outputs(model, values), expected) < 1e-3 and any(e is not None for e in expected):
                return values, expected
        except Exception:
            continue
    return None


def is_read(path):
    try:
        core.read_model(path)
        return True
    except Exception:
        return False


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", type=pathlib.Path)
    arguments.add_argument("--typelift", default="typelift")
    arguments.add_argument("--variants", type=int, default=4)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--keep", type=pathlib.Path, help="where to leave the broken models that were not repaired")
    options = arguments.parse_args()
    paths = sorted(path for path in options.models.glob("*.xml") if path.name.count(".") == 1)
    if options.only:
        paths = [path for path in paths if path.stem in options.only.split(",")]
    counts = {rules: collections.Counter() for rules in RULES}
    broken = used = 0
    for path in paths:
        ran = running(path)
        if ran is None:
            continue
        values, expected = ran
        text, weights = path.read_text(), path.with_suffix(".bin").read_bytes()
        rng = random.Random(f"{options.seed} {path.name}")
        made = 0
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for what, variant, data in variants(text, weights, rng):
                case, repaired = folder / "broken.xml", folder / "repaired.xml"
                case.write_text(variant)
                case.with_suffix(".bin").write_bytes(data)
                if is_read(case):
                    continue
                made += 1
                for rules, flags in RULES.items():
                    done = subprocess.run([options.typelift, "convert", str(case), "-o", str(repaired), *flags], capture_output=True, text=True)
                    if done.returncode:
                        verdict, detail = "refused", next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr[-200:])
                    else:
                        verdict = "does not load"
                        try:
                            model = core.read_model(repaired)
                            verdict = "does not run"
                            off = distance(outputs(model, values), expected)
                            verdict, detail = ("repaired" if off <= FAR else "far off"), f"off by {off:.3g}"
                        except Exception as error:
                            detail = str(error).replace("\n", " ")[-300:]
                    counts[rules][verdict] += 1
                    if verdict != "repaired":
                        print(f"{path.stem} [{what}] {rules}: {verdict}: {detail}")
                        if options.keep:
                            options.keep.mkdir(parents=True, exist_ok=True)
                            for file in (case, case.with_suffix(".bin")):
                                (options.keep / f"{path.stem}-{made}{file.suffix}").write_bytes(file.read_bytes())
                if made == options.variants:
                    break
        broken += made
        used += made > 0
        sys.stdout.flush()
    print(f"{broken} broken variants of {used} models")
    for rules, verdicts in counts.items():
        rest = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common() if verdict != "repaired")
        print(f"{rules}: {verdicts['repaired']} of {broken} repaired" + (f"; {rest}" if rest else ""))


if __name__ == "__main__":
    main()
