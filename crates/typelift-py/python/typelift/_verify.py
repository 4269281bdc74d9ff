"""Runs of models compared on an installed OpenVINO."""

import importlib
import json
from os import PathLike, fspath
from typing import Any, Optional, Union

from typelift import _typelift
from typelift._data import shown
from typelift._model import Model


class Verification:
    """Result of running models on the same inputs. It prints itself; ``bool(result)`` is true if the models agree.

    Attributes:
        same: True if all outputs agree on all samples.
        outputs: The outputs in the order of A, each a dict with ``name``, ``same``, ``max_absolute``, ``max_relative`` and
            ``cosine``.
        first: The layer at which the difference starts, a dict with ``layer``, ``in_b`` and ``changes``; ``None`` if the
            models agree.
        not_tested: The layers that the inputs could not test, each a dict with ``layer`` and ``reason``.
        data: The whole report, as ``typelift schema verify`` describes it.
    """

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self._text = text
        self.data = data
        self.same: bool = data["same"]
        self.outputs: list[dict[str, Any]] = data["outputs"]
        self.first: Optional[dict[str, Any]] = data["first"]
        self.not_tested: list[dict[str, Any]] = data["not_tested"]

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
    b: Union[Model, str, "PathLike[str]", None] = None,
    *,
    device: Optional[str] = None,
    device_a: Optional[str] = None,
    device_b: Optional[str] = None,
    python: Union[str, "PathLike[str]", None] = None,
    python_a: Union[str, "PathLike[str]", None] = None,
    python_b: Union[str, "PathLike[str]", None] = None,
    config: Optional[dict[str, Any]] = None,
    config_a: Optional[dict[str, Any]] = None,
    config_b: Optional[dict[str, Any]] = None,
    hint: Optional[str] = None,
    hint_a: Optional[str] = None,
    hint_b: Optional[str] = None,
    simulate: Optional[str] = None,
    simulate_a: Optional[str] = None,
    simulate_b: Optional[str] = None,
    expect: Union[str, "PathLike[str]", None] = None,
    shapes: Optional[dict[str, str]] = None,
    inputs: Union[str, "PathLike[str]", None] = None,
    seed: int = 0,
    samples: int = 2,
    steps: Optional[int] = None,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    layers: bool = False,
) -> Verification:
    """Runs two models on the ``openvino`` module, or one model in two ways, and compares the outputs.

    If they differ, finds the layer at which the difference starts. Inputs are made from the graph: indices in range, masks
    of 0 and 1, open dimensions as small as both models accept, and then larger. Without other options both run in f32, with
    all approximations of the device turned off. An option that ends in ``_a`` or ``_b`` is for one side.

    >>> typelift.verify("model.xml", config_b={"DYNAMIC_QUANTIZATION_GROUP_SIZE": 32})  # doctest: +SKIP

    Args:
        a: The first model, or the path of its ``.xml``.
        b: The second model, or the path of its ``.xml``. Without it ``a`` runs twice, or is compared with ``expect``.
        device: The device that runs both; ``"CPU"`` if not given.
        python: The Python interpreter whose ``openvino`` runs them, which may be another release. Without it this one.
        config: Properties of the device, such as ``{"KV_CACHE_PRECISION": "u8"}``.
        hint: The precision, such as ``"bf16"``; ``"default"`` for what the device does by itself.
        simulate: ``"f16"`` to round every value to f16, whatever the device computes in.
        expect: An ``.npz`` file or a folder of ``.npy`` files with the outputs that ``a`` must compute.
        shapes: Shapes of inputs by name, such as ``{"input_ids": "[1,16]"}``.
        inputs: An ``.npz`` file or a folder of ``.npy`` files with the inputs. Arrays that are named like outputs are expected.
        seed: The seed of random inputs.
        samples: The number of samples. The first has the smallest sizes, the others larger ones. A model with an If,
            or a Loop that values may end, gets four times as many.
        steps: The number of steps for a model with state; 3 if not given.
        rtol: The tolerance relative to the largest value of a tensor.
        atol: The absolute tolerance.
        layers: True to report how the error grows, block by block.

    Raises:
        ImportError: ``openvino`` is not installed.
        RuntimeError: OpenVINO cannot run one of the models.
        ValueError: Inputs or outputs cannot be paired, a name or shape does not fit, or the inputs that were made test
            nothing that differs.
    """
    from typelift._model import open as open_model

    def text(path: Union[str, "PathLike[str]", None]) -> Optional[str]:
        return None if path is None else fspath(path)

    def properties(config: Optional[dict[str, Any]]) -> dict[str, str]:
        return {name: str(value) for name, value in (config or {}).items()}

    first, second = (it if it is None or isinstance(it, Model) else open_model(fspath(it)) for it in (a, b))
    assert first is not None
    options = {
        "device": device, "device_a": device_a, "device_b": device_b,
        "python": text(python), "python_a": text(python_a), "python_b": text(python_b),
        "config": properties(config), "config_a": properties(config_a), "config_b": properties(config_b),
        "hint": hint, "hint_a": hint_a, "hint_b": hint_b,
        "simulate": simulate, "simulate_a": simulate_a, "simulate_b": simulate_b,
        "expect": text(expect), "shapes": shapes, "inputs": text(inputs),
        "seed": seed, "samples": samples, "steps": steps, "rtol": rtol, "atol": atol, "layers": layers,
    }
    other = None if second is None else second._native
    data, shown_text = _typelift.verify(first._native, other, json.dumps(options))
    return Verification(shown_text, json.loads(data))
