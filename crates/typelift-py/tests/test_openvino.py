"""Models that typelift processed compute the same. Needs openvino."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

openvino = pytest.importorskip("openvino")
pytest.importorskip("numpy")

from beside_openvino import compare, made_up_inputs, models, outputs  # noqa: E402

import typelift  # noqa: E402

MODELS = Path(os.environ.get("TYPELIFT_MODELS") or Path(__file__).parents[3] / "testdata" / "models")


@pytest.mark.parametrize("path", models(MODELS), ids=lambda path: path.stem)
def test_a_model_computes_the_same(path: Path) -> None:
    fault, skipped, _ = compare(openvino.Core(), path)
    if skipped:
        pytest.skip(skipped)
    assert fault is None


def test_what_openvino_refuses_runs_after_convert() -> None:
    broken = typelift.from_text(
        """
        x = Parameter : f16[2,3]
        c = Const([0.5, 1.5, 2.5]) : f32[3]
        y = Multiply(x, c)
        r = Result(y)
        """
    )
    core = openvino.Core()
    with pytest.raises(RuntimeError, match="do not have the same element type"):
        core.read_model(*broken.to_bytes())
    broken.convert(align="pytorch")
    text, weights = broken.to_bytes()
    model = core.read_model(text, weights)
    inputs = made_up_inputs(model, 2)
    (result,) = outputs(core, model, inputs)
    assert result == pytest.approx(inputs[0].astype("f4") * [0.5, 1.5, 2.5], rel=1e-2)
