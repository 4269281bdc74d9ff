"""Checks whether pairs of models compute the same in the installed OpenVINO: `MODEL<tab>OTHER` a line on standard
input.

The inputs are those of `MODEL.io.npz` where that is there, else random ones of the types and shapes of `MODEL`, open dims counting
as 2. Answers `VERDICT<tab>MODEL<tab>OTHER`; the verdict is `same`, what differs, or `none: WHY` where `MODEL` itself does not run, or
not twice with the same result.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import openvino as ov

core = ov.Core()


def compare(model_path: Path, other_path: Path) -> str:
    try:
        model = core.read_model(model_path)
        given = recorded(model_path) or invented(model)
        before = run(model, given)
    except Exception as error:  # noqa: BLE001
        return f"none: {' '.join(str(error).split())[-120:]}"
    after = run(core.read_model(other_path), given)
    if len(before) != len(after):
        return f"{len(after)} outputs, had {len(before)}"
    differences = (difference(at, *pair) for at, pair in enumerate(zip(before, after)))
    return next(filter(None, differences), "same")


def difference(at: int, before: np.ndarray, after: np.ndarray) -> str:
    if before.shape != after.shape:
        return f"output {at} has shape {after.shape}, had {before.shape}"
    if before.dtype.kind in "USO":
        return "" if (before == after).all() else f"output {at} differs"
    before, after = before.astype(np.float64), after.astype(np.float64)
    finite = np.abs(before[np.isfinite(before)])
    scale = max(1.0, finite.max(initial=0))
    if np.allclose(before, after, rtol=1e-3, atol=1e-4 * scale, equal_nan=True):
        return ""
    return f"output {at} differs by {np.nanmax(np.abs(before - after)):.3g} of {scale:.3g}"


def recorded(path: Path):
    """The inputs with which the outputs of a model were recorded."""
    data = path.with_suffix(".io.npz")
    if not data.exists():
        return None
    data = np.load(data, allow_pickle=True)
    return [data[f"input_{at}"] for at in range(len(data["input_names"]))]


def invented(model: ov.Model):
    """Small random numbers for every input."""
    random = np.random.default_rng(0)
    given = []
    for port in model.inputs:
        shape = [dim.get_length() if dim.is_static else min(max(2, dim.min_length), dim.max_length if dim.max_length > 0 else 2) for dim in port.partial_shape] if port.partial_shape.rank.is_static else [2, 2]
        ty = port.element_type
        if ty == ov.Type.string:
            given.append(np.full(shape, "a few words"))
        elif any("attention_mask" in name for name in port.names):
            # Attention to nothing at all is not a number, or whatever a fused kernel makes of it.
            given.append(np.ones(shape))
        elif ty.is_real():
            given.append(random.uniform(-1, 1, shape).astype(np.float32))
        else:
            given.append(random.integers(0, 2, shape))
    return given


def run(model: ov.Model, given: list) -> list:
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"})
    request = compiled.create_infer_request()
    for at, (port, value) in enumerate(zip(compiled.inputs, given)):
        ty = port.get_element_type()
        if ty == ov.Type.string:
            request.set_input_tensor(at, ov.Tensor(value))
            continue
        tensor = ov.Tensor(ty, ov.Shape(list(value.shape)))
        if ty == ov.Type.bf16 and value.dtype == np.uint16:
            tensor.data[...] = value.view(tensor.data.dtype)
        else:
            tensor.data[...] = value.astype(tensor.data.dtype)
        request.set_input_tensor(at, tensor)
    request.infer()
    tensors = [request.get_output_tensor(at) for at in range(len(compiled.outputs))]
    return [np.array(tensor.str_data if tensor.element_type == ov.Type.string else tensor.data) for tensor in tensors]


def verdict_of(model: str, other: str) -> str:
    """A crash of the plugin is an answer for one pair, and so is a loop that does not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        try:
            verdict = compare(Path(model), Path(other))
        except Exception as error:  # noqa: BLE001
            verdict = f"fails: {' '.join(str(error).split())[-300:]}"
        os.write(write, verdict.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        verdict = said.read()
    return verdict if os.waitpid(child, 0)[1] == 0 else "crashed"


for line in sys.stdin.read().splitlines():
    model, other = line.split("\t")
    verdict = verdict_of(model, other)
    if verdict != "same" and not verdict.startswith("none: "):
        own = verdict_of(model, model)
        verdict = verdict if own == "same" else f"none: against itself: {own}"
    print(verdict, model, other, sep="\t", flush=True)
