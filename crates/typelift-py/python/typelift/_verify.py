"""Two models compared by running them on an installed OpenVINO."""

import importlib
import json
from os import PathLike, fspath
from typing import Any, Optional, Union

from typelift import _typelift
from typelift._data import shown
from typelift._model import Model


class Verification:
    """Result of running two models on the same inputs. It prints itself; ``bool(result)`` is true if the models agree.

    Attributes:
        same: True if all outputs agree on all samples.
        outputs: The outputs in the order of A, each a dict with ``name``, ``same``, ``max_absolute``, ``max_relative`` and
            ``cosine``.
        first: The layer at which the difference starts, a dict with ``layer``, ``in_b`` and ``changes``; ``None`` if the
            models agree.
        data: The whole report, as ``typelift schema verify`` describes it.
    """

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self._text = text
        self.data = data
        self.same: bool = data["same"]
        self.outputs: list[dict[str, Any]] = data["outputs"]
        self.first: Optional[dict[str, Any]] = data["first"]

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        return shown(self._text.rstrip("\n"))

    __repr__ = __str__

    def to_pandas(self) -> Any:
        """Returns the outputs as a ``pandas.DataFrame``, a row for each.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame(self.outputs).set_index("name")


def verify(
    a: Union[Model, str, "PathLike[str]"],
    b: Union[Model, str, "PathLike[str]"],
    *,
    device: str = "CPU",
    hint_a: Optional[str] = None,
    hint_b: Optional[str] = None,
    shapes: Optional[dict[str, str]] = None,
    inputs: Union[str, "PathLike[str]", None] = None,
    seed: int = 0,
    samples: int = 2,
    steps: Optional[int] = None,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    layers: bool = False,
) -> Verification:
    """Runs two models on the ``openvino`` module and compares their outputs.

    If they differ, finds the layer at which the difference starts. Inputs are made from the graph: indices in range, masks
    of 0 and 1, open dimensions as small as both models accept.

    Args:
        a: The first model, or the path of its ``.xml``.
        b: The second model, or the path of its ``.xml``.
        device: The device that runs both.
        hint_a: The precision in which A runs, such as ``"bf16"``. Without hints both run in f32.
        hint_b: The precision in which B runs.
        shapes: Shapes of inputs by name, such as ``{"input_ids": "[1,16]"}``.
        inputs: An ``.npz`` file or a folder of ``.npy`` files with the inputs.
        seed: The seed of random inputs.
        samples: The number of samples. The first has the smallest sizes, the others larger ones. A model with an If
            gets four times as many.
        steps: The number of steps for a model with state; 3 if not given.
        rtol: The tolerance relative to the largest value of a tensor.
        atol: The absolute tolerance.
        layers: True to report how the error grows, block by block.

    Raises:
        ImportError: ``openvino`` is not installed.
        RuntimeError: OpenVINO cannot run one of the models.
        ValueError: Inputs or outputs cannot be paired, or a name or shape does not fit.
    """
    from typelift._model import open as open_model

    first, second = (it if isinstance(it, Model) else open_model(fspath(it)) for it in (a, b))
    options = {
        "device": device, "hint_a": hint_a, "hint_b": hint_b, "shapes": shapes, "inputs": None if inputs is None else fspath(inputs),
        "seed": seed, "samples": samples, "steps": steps, "rtol": rtol, "atol": atol, "layers": layers,
    }
    data, text = _typelift.verify(first._native, second._native, json.dumps(options))
    return Verification(text, json.loads(data))
