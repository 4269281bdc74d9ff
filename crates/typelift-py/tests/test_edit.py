"""Edits from Python: common jobs, each in a few lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import typelift

numpy = pytest.importorskip("numpy")

MODEL = """
    x = Parameter : f32[?,4]
    w = Const([1, 2, 3, 4]) : f32[4]
    y = Multiply(x, w)
    z = Relu(y)
    r = Result(z)
"""


def model() -> typelift.Model:
    return typelift.from_text(MODEL)


def again(edited: typelift.Model) -> typelift.Model:
    """Returns the model as it is after saving and reading, without errors."""
    text, weights = edited.to_bytes()
    read = typelift.loads(text, weights)
    assert read.check().errors == []
    return read


def test_cut_at_an_inner_tensor() -> None:
    edited = model()
    with edited.edit() as graph:
        graph.cut("y")
    assert list(again(edited).outputs) == ["y"] and "z" not in edited


def test_a_further_output() -> None:
    edited = model()
    with edited.edit() as graph:
        graph.expose("y", "hidden")
    assert len(again(edited).outputs) == 2 and "hidden" in edited.outputs


def test_rename_an_output() -> None:
    edited = model()
    with edited.edit() as graph:
        graph.rename("z", "scores")
    assert "scores" in again(edited).outputs


def test_the_piece_between_tensors() -> None:
    edited = model()
    with edited.edit() as graph:
        graph.extract(["y"], ["z"])
    assert [layer.type for layer in again(edited)] == ["Parameter", "ReLU", "Result"]


def test_weights_plus_a_product() -> None:
    edited = model()
    with edited.edit() as graph:
        graph.set_constant("w", graph["w"].numpy() + numpy.array([0.5, 0, 0, 0], "f4"))
    assert again(edited)["w"].numpy().tolist() == [1.5, 2, 3, 4]


def test_weights_in_another_type() -> None:
    edited = model()
    with edited.edit() as graph:
        narrow = graph.constant(graph["w"].numpy(), type=numpy.float16, name="w/f16")
        graph.replace_uses("w", graph.add("Convert", narrow, destination_type=numpy.dtype("f4")))
        graph.remove_unused("w")
    assert again(edited)["w/f16"].outputs[0].element_type == "f16"


def test_join_two_models() -> None:
    edited = model()
    edited.join(model(), {"z": "x"}, prefix="head/")
    assert [layer.type for layer in again(edited)].count("ReLU") == 2


def test_a_constant_if() -> None:
    edited = typelift.from_text(
        """
    x = Parameter : f32[2]
    c = Const(true) : boolean[]
    y = If-8(c, x)
        then_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Abs(a)
            r = Result(b)
        else_body (in 1 -> 0, out 1 -> 0):
            a = Parameter : f32[2]
            r = Result(a)
    r = Result(y)
"""
    )
    with edited.edit() as graph:
        graph.inline("y", 0)
    assert [layer.type for layer in again(edited)] == ["Parameter", "Abs", "Result"]


def test_another_operation_and_its_attributes() -> None:
    edited = model()
    with edited.edit() as graph:
        graph.replace_in_place("z", "Clamp", "y", min=0, max=6)
        graph["z"].attributes["max"] = 8
        graph["z"].rt_info["origin"] = "test"
    clamp = again(edited)["z"]
    assert (clamp.attributes["max"], clamp.rt_info["origin"]) == ("8", "test")


def test_a_pass_of_ones_own() -> None:
    edited = model()
    with edited.edit() as graph:
        for layer in [layer for layer in graph if layer.type == "Multiply"]:
            graph.insert_after(layer.output, "Add", graph.constant(1.0))
    assert again(edited)["z"].inputs[0].layer.type == "Add"  # type: ignore[union-attr]


def test_metadata_of_the_model() -> None:
    edited = model()
    edited.info["runtime_options/KV_CACHE_PRECISION"] = "f16"
    edited.info.update({"model_info/labels": "cat dog", '"a/b"/c': "1"})
    read = again(edited).info
    assert dict(read) == {"runtime_options/KV_CACHE_PRECISION": "f16", "model_info/labels": "cat dog", '"a/b"/c': "1"}
    assert edited.rt_info("model_info/labels") == "cat dog" and edited.rt_info("model_info") is None
    assert read.pop("model_info/labels") == "cat dog" and "model_info/labels" not in read and len(read) == 2
    with pytest.raises(KeyError):
        del read["model_info"]
    with pytest.raises(ValueError, match="is a value"):
        read["runtime_options/KV_CACHE_PRECISION/type"] = "f16"
    edited.info.clear()
    assert "KV_CACHE_PRECISION" not in edited.to_bytes()[0].decode()


def test_an_exception_undoes_the_batch() -> None:
    edited = model()
    before = edited.to_bytes()
    with pytest.raises(RuntimeError), edited.edit() as graph:
        graph.rename("z", "scores")
        raise RuntimeError
    assert edited.to_bytes() == before


def test_a_batch_that_breaks_the_model_changes_nothing() -> None:
    edited = model()
    with pytest.raises((typelift.ModelError, ValueError)), edited.edit() as graph:
        graph.connect(graph.constant([1, 2]), "y", 1)
        graph.connect(graph.constant(numpy.zeros((3, 5), "i8")), "y", 1)
    assert [layer.name for layer in edited] == ["x", "w", "y", "z", "r"]


def test_an_ended_batch_says_so() -> None:
    edited = model()
    with edited.edit() as graph:
        layer = graph["z"]
    with pytest.raises(ValueError, match="the batch of edits has ended"):
        layer.name = "other"
    with pytest.raises(ValueError, match="with model.edit"):
        edited.edit().rename("a", "b")


def test_an_edit_beside_an_open_batch_is_not_lost() -> None:
    edited = model()
    with pytest.raises(ValueError, match="edited otherwise"), edited.edit() as graph:
        edited.set_shape("x", [8, 4])
        graph.rename("z", "scores")
    assert str(edited.inputs["x"].shape) == "[8,4]"


def test_errors_name_what_is_near() -> None:
    with model().edit() as graph:
        graph.rename("z", "scores")
        with pytest.raises(KeyError, match="did you mean `scores`"):
            graph["scors"]
        with pytest.raises(ValueError, match="no operation is called `Sofmax`"):
            graph.add("Sofmax", "scores")


def test_element_types_have_the_names_of_other_packages() -> None:
    types = [typelift.element_type(of) for of in ("bf16", "int32", numpy.uint8, numpy.dtype("f2"), bool)]
    assert types == ["bf16", "i32", "u8", "f16", "boolean"]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert typelift.element_type(ml_dtypes.bfloat16) == "bf16"
    edited = model()
    with edited.edit() as graph:
        graph.constant(numpy.array([1.0], ml_dtypes.bfloat16), name="b")
    with pytest.raises(ValueError, match="is not an element type"):
        typelift.element_type(complex)


def test_numbers_in_lists_need_no_array() -> None:
    edited = model()
    with edited.edit() as graph:
        kinds = [graph.constant(of) for of in (1, [0.5, 1], [[True], [False]], [])]
        assert [f"{of.element_type}{of.shape}" for of in kinds] == ["i64[]", "f32[2]", "boolean[2,1]", "f32[0]"]
        graph.remove(*(of.layer for of in kinds))
        with pytest.raises(ValueError, match="of one length"):
            graph.constant([[1], [1, 2]])


def test_large_graphs_are_edited_and_walked_in_time(tmp_path: Path) -> None:
    count = 20_000
    lines = ["x = Parameter : f32[2]", "l0 = Relu(x)"]
    lines += [f"l{at} = Relu(l{at - 1})" for at in range(1, count)]
    edited = typelift.from_text("\n".join([*lines, f"r = Result(l{count - 1})"]))
    start = time.process_time()
    assert sum(len(layer.outputs[0].consumers) for layer in edited if layer.outputs) == count + 1
    walked = time.process_time()
    with edited.edit() as graph:
        for at in range(count):
            graph[f"l{at}"].name = f"m{at}"
    named = time.process_time()
    # A search through the whole graph at each step would take minutes.
    assert walked - start < 20 and named - walked < 60
    assert f"m{count - 1}" in edited
