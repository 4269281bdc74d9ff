"""typelift.verify, on an installed OpenVINO."""

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
