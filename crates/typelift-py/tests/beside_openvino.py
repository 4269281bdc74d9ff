"""Opens models, checks, converts and rewrites them, passes them to OpenVINO in memory, and compares the results of
inference.

    python beside_openvino.py DIRECTORY [MOST]

Needs openvino. Prints a line for each model, and a total; fails if results differ. A model that OpenVINO itself cannot
run on generated inputs is skipped with a message.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy
import openvino  # type: ignore[import-untyped,unused-ignore]

import typelift

RULES = ("no-ops", "common-subexpressions", "reciprocals")
"""Built-in rules that keep the results of a model, the last one up to the rounding of a division."""

LENGTHS = (2, 1, 4, 16, 64)
"""Lengths for open dimensions; the first one with which OpenVINO runs the model is used."""

REPEATS = 4
"""The most runs of a processed model."""


class Outcome(NamedTuple):
    """Result for a model."""

    fault: Optional[str]
    """The error; ``None`` if there is none."""
    skipped: Optional[str]
    """The reason why it was not compared."""
    rewritten: int
    """The number of applied rules and changed Converts."""


def made_up_inputs(model: Any, length: int, seed: int = 0) -> list[Any]:
    """Returns an array for each input. Integers are small, because many are indices."""
    random = numpy.random.default_rng(seed)
    arrays = []
    for parameter in model.inputs:
        if parameter.get_element_type() == openvino.Type.string:
            raise ValueError("it takes strings")
        dims = parameter.get_partial_shape()
        shape = [min(max(dim.min_length, length), dim.max_length if dim.max_length > 0 else length) for dim in dims]
        element_type = parameter.get_element_type()
        if element_type.is_real():
            array = random.uniform(-1, 1, shape).astype("f4")
            arrays.append(array.astype(element_type.to_dtype()) if element_type != openvino.Type.bf16 else array)
        else:
            arrays.append(random.integers(0, 2, shape).astype(element_type.to_dtype()))
    return arrays


def outputs(core: Any, model: Any, inputs: list[Any]) -> list[Any]:
    """Returns the results of the CPU plugin in f32."""
    request = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    for at, array in enumerate(inputs):
        tensor = openvino.Tensor(model.inputs[at].get_element_type(), array.shape)
        if tensor.element_type == openvino.Type.bf16:
            tensor.data[...] = (array.view("u4") >> 16).astype("u2").view(tensor.data.dtype)
        else:
            tensor.data[...] = array
        request.set_input_tensor(at, tensor)
    request.infer()
    return [numpy.array(request.get_output_tensor(at).data) for at in range(len(model.outputs))]


def first_that_runs(core: Any, path: Path) -> tuple[Optional[list[Any]], list[Any], str]:
    """Returns inputs that OpenVINO accepts and their results, or the reason why there are none."""
    reason = ""
    for length in LENGTHS:
        try:
            model = core.read_model(path)
            inputs = made_up_inputs(model, length)
            expected = outputs(core, model, inputs)
            repeated = (outputs(core, core.read_model(path), inputs) for _ in range(2))
            if all(difference(expected, again) is None for again in repeated):
                return inputs, expected, ""
            reason = "OpenVINO does not compute the same twice"
        except (RuntimeError, ValueError, IndexError) as error:
            reason = str(error).strip().splitlines()[-1]
    return None, [], reason


def compare(core: Any, path: Path) -> Outcome:
    """Processes one model with typelift and compares the results."""
    inputs, expected, reason = first_that_runs(core, path)
    if inputs is None:
        return Outcome(None, reason, 0)
    try:
        model = typelift.open(path)
        if errors := model.check().errors:
            return Outcome(f"refused: {errors[0]}", None, 0)
        changes = len(model.convert()) + len(model.rewrite(use=RULES))
    except (typelift.ModelError, typelift.RuleError) as error:
        return Outcome(f"refused: {error}", None, 0)
    # OpenVINO does not copy the weights, so they must live as long as the model.
    text, weights = model.to_bytes()
    fault = None
    # Some loops compute something else in one of many runs of the plugin. A difference counts if it comes each time.
    for _ in range(REPEATS):
        fault = difference(expected, outputs(core, core.read_model(text, weights), inputs))
        if fault is None:
            break
    return Outcome(fault, None, changes)


def difference(expected: list[Any], actual: list[Any]) -> Optional[str]:
    """Describes how outputs differ by more than rounding; ``None`` if they agree."""
    for at, (wanted, got) in enumerate(zip(expected, actual)):
        if wanted.shape != got.shape:
            return f"output {at} is {got.shape}, and was {wanted.shape}"
        wanted, got = wanted.astype("f8"), got.astype("f8")
        if not numpy.allclose(wanted, got, rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"output {at} differs by {numpy.nanmax(numpy.abs(wanted - got)):.2e}"
    return None


def models(directory: Path) -> list[Path]:
    """Returns the models of a directory, without the output of other tools."""
    found = sorted(directory.glob("*.xml"))
    return [path for path in found if not path.name.endswith((".ref.xml", ".moc.xml"))]


def main(directory: str, most: str = "1000000") -> int:
    """Compares models of a directory until the requested number is reached."""
    core = openvino.Core()
    compared = faults = skipped = 0
    for path in models(Path(directory)):
        if compared == int(most):
            break
        fault, reason, changes = compare(core, path)
        compared += reason is None
        skipped += reason is not None
        faults += fault is not None
        print(f"{path.name}: {fault or (f'skipped: {reason}' if reason else f'equal, {changes} changes')}", flush=True)
    print(f"{compared} compared, {faults} differ, {skipped} skipped")
    return 1 if faults or not compared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
