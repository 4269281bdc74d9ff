"""Constants as arrays that share the memory of the weights."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import Any

import pytest

import typelift

numpy = pytest.importorskip("numpy")

MODEL = """
    a = Const([1, 2, 3, 4]) : f32[2,2]
    b = Const([5, 6]) : i64[2]
    p = Const([1, -2, 3]) : i4[3]
    ra = Result(a)
    rb = Result(b)
    rp = Result(p)
"""


def test_arrays_are_views_of_the_bytes_that_were_given() -> None:
    text, weights = typelift.from_text(MODEL).to_bytes()
    model = typelift.loads(text, weights)
    array = model["a"].numpy()
    assert array.tolist() == [[1, 2], [3, 4]] and not array.flags.writeable
    assert numpy.shares_memory(array, numpy.frombuffer(weights, "u1"))
    # Nothing was changed, so the bytes are the same object and are not copied.
    assert model.to_bytes()[1] is weights
    assert model["p"].numpy().tolist() == [1, -2, 3] and model["p"].numpy().dtype == numpy.int8


@pytest.mark.skipif(sys.platform == "win32", reason="weights are read there")
def test_arrays_are_views_of_the_file_and_outlive_the_model(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    typelift.from_text(MODEL).save(file)
    model = typelift.open(file)
    first, second = model["a"].numpy(), model["b"].numpy()
    owner: Any = first
    while isinstance(owner, numpy.ndarray):
        owner = owner.base
    assert isinstance(owner.obj if isinstance(owner, memoryview) else owner, mmap.mmap)
    with model.edit() as graph:
        assert numpy.shares_memory(graph["a"].numpy(), first)
        graph.set_constant("a", graph["a"].numpy() * 2)
        assert graph["a"].numpy().tolist() == [[2, 4], [6, 8]]
        assert numpy.shares_memory(graph["b"].numpy(), second)
    assert numpy.shares_memory(model["b"].numpy(), second) and not numpy.shares_memory(model["a"].numpy(), first)
    # A new file replaces the old one; the arrays still show the old one.
    model.save(file)
    del model
    assert first.tolist() == [[1, 2], [3, 4]] and second.tolist() == [5, 6]
    assert typelift.open(file)["a"].numpy().tolist() == [[2, 4], [6, 8]]


def test_a_rule_reads_constants_and_makes_others() -> None:
    model = typelift.from_text("x = Parameter : f32[4]\nc = Const([1, 2, 4, 8]) : f32[4]\ny = Divide(x, c)\nr = Result(y)")

    def inverse(match: typelift.Match, graph: typelift.Graph) -> typelift.GraphLayer:
        values = match["c"].layer.numpy()
        assert values.dtype == numpy.float32
        return graph.add("Multiply", match["x"], graph.constant(1 / values))

    model.rewrite(typelift.Rule("Divide(x, c: const)", inverse))
    assert [layer.numpy().tolist() for layer in model if layer.type == "Const"] == [[1, 0.5, 0.25, 0.125]]
