"""typelift.verify, on an installed OpenVINO."""

import sys
from pathlib import Path

import pytest

import typelift

openvino = pytest.importorskip("openvino")

TEXT = """
    x = Parameter : f32[?,4]
    two = Const(2) : f32[]
    a = Multiply(x, two)
    b = Tanh(a)
    c = Add(b, x)
    r = Result(c)
"""


def test_a_model_agrees_with_itself() -> None:
    result = typelift.verify(typelift.from_text(TEXT), typelift.from_text(TEXT))
    assert result and result.same and result.first is None
    assert "agree" in str(result)
    assert result.data["samples"][0]["inputs"][0]["shape"] == "[1,4]"


def test_the_layer_is_named_at_which_a_difference_starts() -> None:
    other = typelift.from_text(TEXT.replace("Const(2)", "Const(3)"))
    result = typelift.verify(typelift.from_text(TEXT), other, shapes={"x": "[5,4]"}, layers=True)
    assert not result
    assert result.first is not None and result.first["layer"]["name"] == "a"
    assert result.data["samples"][0]["inputs"][0]["shape"] == "[5,4]"


def test_one_model_runs_with_two_settings() -> None:
    model = typelift.from_text(TEXT)
    result = typelift.verify(model, config_b={"KV_CACHE_PRECISION": "u8"})
    assert result and [run["precision"] for run in result.data["runs"]] == ["f32", "f32"]
    assert result.data["runs"][1]["config"]["KV_CACHE_PRECISION"] == "u8"
    with pytest.raises(ValueError, match="nothing to compare"):
        typelift.verify(model)


def test_another_installation_runs_in_a_process() -> None:
    assert typelift.verify(typelift.from_text(TEXT), python_b=sys.executable)


def test_expected_outputs_are_compared(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    model = typelift.from_text(TEXT)
    x = numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(2, 4)
    numpy.savez(tmp_path / "x.npz", x=x)
    numpy.savez(tmp_path / "c.npz", c=numpy.tanh(2 * x) + x)
    numpy.savez(tmp_path / "d.npz", c=numpy.tanh(3 * x) + x)
    assert typelift.verify(model, inputs=tmp_path / "x.npz", expect=tmp_path / "c.npz")
    wrong = typelift.verify(model, inputs=tmp_path / "x.npz", expect=tmp_path / "d.npz")
    assert not wrong and wrong.outputs[0]["expected"]


def test_layers_that_were_not_tested_are_listed() -> None:
    dead = typelift.from_text(TEXT.replace("b = Tanh(a)", "low = Const(-100) : f32[]\n    n = Abs(a)\n    m = Multiply(n, low)\n    b = ReLU(m)"))
    result = typelift.verify(dead, dead)
    assert [it["layer"]["name"] for it in result.not_tested] == ["a", "n", "m", "b"]


def test_what_cannot_be_compared_is_an_exception() -> None:
    more = typelift.from_text(TEXT + "    s = Result(a)\n")
    with pytest.raises(ValueError, match="cannot be paired"):
        typelift.verify(typelift.from_text(TEXT), more)
    with pytest.raises(ValueError, match="no input"):
        typelift.verify(typelift.from_text(TEXT), typelift.from_text(TEXT), shapes={"nothing": "[1]"})


def test_outputs_become_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    table = typelift.verify(typelift.from_text(TEXT), typelift.from_text(TEXT)).to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) == 1
