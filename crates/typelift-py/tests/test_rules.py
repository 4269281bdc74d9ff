"""Rules and passes with Python functions, and edits in bodies."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Union

import pytest
import typelift
from typelift import Graph, GraphTensor, Match

MODEL = """
    x = Parameter : f32[1,8]
    c = Const([1, 2, 3, 4, 5, 6, 7, 8]) : f32[8]
    y = Divide(x, c)
    k = Const(2) : f32[]
    z = Divide(y, k)
    r = Result(z)
"""

BODIES = """
    x = Parameter : f32[2]
    c = Parameter : boolean[]
    y = If-8(c, x)
        then_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Relu(a)
            r = Result(b)
        else_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Relu(a)
            r = Result(b)
    z = Relu(y)
    r = Result(z)
"""


def reciprocal(match: Match, graph: Graph) -> GraphTensor:
    values = match["c"].values
    assert values is not None
    numbers = [1 / value for value in values]
    inverse = graph.constant(numbers if match["c"].shape else numbers[0])
    return graph.add("Multiply", match["x"], inverse, name=f"{match.root.name}/inverse").output


def test_a_right_side_is_a_function() -> None:
    model = typelift.from_text(MODEL)
    report = model.rewrite(typelift.Rule("Divide(x, c: const)", reciprocal))
    assert [site.rule for site in report] == ["reciprocal", "reciprocal"] and model.check().errors == []
    assert {layer.type for layer in model} == {"Parameter", "Const", "Multiply", "Result"}
    assert typelift.loads(*model.to_bytes())["y/inverse"].inputs[1].layer.numbers() == [  # type: ignore[union-attr]
        pytest.approx(1 / value) for value in range(1, 9)
    ]


def test_a_condition_is_a_function_and_says_why_not() -> None:
    def is_scalar(match: Match) -> Union[bool, str]:
        assert match.root.type == "Divide" and match["x"].element_type == "f32"
        return match["c"].shape.rank == 0 or f"{match['c'].shape} is not a scalar"

    rule = typelift.Rule("Divide(x, c: const)", to="Multiply(x, 1 / c)", when=is_scalar, name="scalar")
    model = typelift.from_text(MODEL)
    assert "[8] is not a scalar" in model.explain(rule, "y")
    assert [(site.rule, site.layer) for site in model.rewrite(rule)] == [("scalar", "z")]
    assert [model[name].type for name in "yz"] == ["Divide", "Multiply"]


def test_a_function_is_given_lists_and_several_roots() -> None:
    model = typelift.from_text("""
        x = Parameter : f32[2]
        a = Relu(x)
        b = Tanh(x)
        c = Concat(a, b, x) {axis=0}
        r = Result(c)
    """)

    def sources() -> list[typelift.Layer]:
        [joined] = model["r"].inputs
        assert joined is not None
        return [source.layer for source in joined.layer.inputs if source is not None]

    def backwards(match: Match, graph: Graph) -> GraphTensor:
        return graph.add("Concat", *reversed(match.lists["xs"]), axis=0).output

    model.rewrite(typelift.Rule("Concat(xs...)", backwards, once=True))
    assert [source.name for source in sources()] == ["x", "b", "a"]

    def swapped(match: Match, graph: Graph) -> list[GraphTensor]:
        return [graph.add("Sigmoid", match["x"]).output, match["x"]]

    model.rewrite(typelift.Rule("a = Relu(x), b = Tanh(x)", swapped))
    assert [source.type for source in sources()] == ["Parameter", "Parameter", "Sigmoid"]


def test_the_root_stays_where_a_function_returns_it() -> None:
    def clamp(match: Match, graph: Graph) -> object:
        graph.replace_in_place(match.root, "Clamp", match["x"], min=0, max=6)
        match.root.rt_info["origin"] = "mine"
        return match.root

    model = typelift.from_text(BODIES)
    assert len(model.rewrite(typelift.Rule("Relu(x)", clamp))) == 3  # type: ignore[arg-type]
    places = ["z", "y/then_body/b", "y/else_body/b"]
    assert [(model[at].type, model[at].rt_info["origin"]) for at in places] == [("Clamp", "mine")] * 3


def test_an_exception_leaves_the_model_as_it_was() -> None:
    calls = []

    def fails(match: Match, graph: Graph) -> GraphTensor:
        calls.append(graph.add("Abs", match["x"]))
        raise ZeroDivisionError("no")

    def never(match: Match) -> bool:
        raise LookupError(match.root.name)

    model = typelift.from_text(MODEL)
    before = model.to_bytes()
    with pytest.raises(ZeroDivisionError, match="no"):
        model.rewrite(["rename r scores", typelift.Rule("Divide(x, _)", fails)])
    with pytest.raises(LookupError):
        model.rewrite(typelift.Rule("Divide(x, _)", "Abs(x)", when=never))
    with pytest.raises(LookupError):
        model.explain(typelift.Rule("Divide(x, _)", "Abs(x)", when=never))
    with pytest.raises(TypeError, match="match.root"):
        model.rewrite(typelift.Rule("Divide(x, _)", lambda match, graph: None))  # type: ignore[arg-type,return-value]
    with pytest.raises(typelift.RuleError, match="would change layer 4"):
        model.rewrite(
            typelift.Rule("Divide(x, _)", lambda match, graph: graph.add("Convert", match["x"], destination_type="f16"), name="to f16")
        )
    assert len(calls) == 1 and model.to_bytes() == before
    with pytest.raises(ValueError, match="ended"):
        _ = calls[0].name


def test_a_rule_that_cannot_be_read_says_so_at_once() -> None:
    with pytest.raises(typelift.RuleError, match="Divde"):
        typelift.Rule("Divde(x, _)", reciprocal)
    with pytest.raises(typelift.RuleError, match="`q` is not in the pattern"):
        typelift.Rule("Divide(x, _)", "Abs(q)")
    with pytest.raises(KeyError, match="there is no tensor `q`; the match has `x`, `c`"):
        typelift.from_text(MODEL).rewrite(typelift.Rule("Divide(x, c: const)", lambda match, graph: match["q"]))


def test_texts_files_rules_and_shipped_sets_go_together(tmp_path: Path) -> None:
    file = tmp_path / "export.rules"
    file.write_text("# after each export\nrename r scores\nabs: Divide(x, 2) => Abs(x)\n")
    model = typelift.from_text(MODEL)
    done = model.rewrite([file, "exp: Abs(x) => Exp(x)", typelift.Rule("Divide(x, c: const)", reciprocal)], use=["no-ops"])
    assert {site.rule for site in done} == {"abs", "exp", "reciprocal"} and "scores" in model.outputs
    with pytest.raises(FileNotFoundError):
        model.rewrite(tmp_path / "none.rules")


def test_rules_that_match_what_they_make_are_once() -> None:
    def doubled(match: Match, graph: Graph) -> GraphTensor:
        return graph.add("Divide", match["x"], graph.constant([2.0] * 8)).output

    model = typelift.from_text(MODEL)
    with pytest.raises(typelift.RuleError, match="never stops"):
        model.rewrite(typelift.Rule("Divide(x, c: const)", doubled))
    assert len(model.rewrite(typelift.Rule("Divide(x, c: const)", doubled, once=True))) == 2


def test_a_rule_may_edit_the_model_only_through_its_graph() -> None:
    model = typelift.from_text(MODEL)

    def elsewhere(match: Match, graph: Graph) -> GraphTensor:
        model.set_shape("x", (2, 8))
        return graph.add("Abs", match["x"]).output

    with pytest.raises(ValueError, match="edited otherwise"):
        model.rewrite(typelift.Rule("Divide(x, _)", elsewhere))
    assert model.inputs["x"].shape == (2, 8) and model["z"].type == "Divide"


def test_a_pass_is_run_in_bodies_too_and_whole_or_not_at_all() -> None:
    seen = []

    def soften(graph: Graph) -> None:
        seen.append(len(graph))
        for layer in [layer for layer in graph if layer.type == "ReLU"]:
            graph.replace_in_place(layer, "Elu", layer.inputs[0], alpha=1)  # type: ignore[arg-type]

    model = typelift.from_text(BODIES)
    model.run(typelift.Pass(soften))
    assert [model[at].type for at in ("z", "y/then_body/b", "y/else_body/b")] == ["Elu"] * 3 and seen == [3, 3, 5]
    assert typelift.loads(*model.to_bytes()).check().errors == []

    def fails(graph: Graph) -> None:
        graph.rename("b", "other")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        model.run(soften, fails)
    assert model["y/then_body/b"].type == "Elu"


def test_layers_of_bodies_are_edited_where_they_are() -> None:
    model = typelift.from_text(BODIES)
    with model.edit() as graph:
        then = graph.body("y", "then_body")
        then.insert_after("b", "Abs", name="abs")
        assert graph["y/then_body/b"] == then["b"] and graph["y"].bodies["then_body"] == then != graph
        assert [layer.name for layer in then] == ["a", "b", "abs", "r"]
        with pytest.raises(KeyError, match="no body 'else'; it has then_body, else_body"):
            graph.body("y", "else")
    assert model["y/then_body/abs"].type == "Abs" and "y/else_body/abs" not in model


def test_parts_of_other_graphs_are_refused() -> None:
    model, other = typelift.from_text(BODIES), typelift.from_text(BODIES)
    with model.edit() as graph, other.edit() as stranger:
        for mixed in (lambda: graph.add("Abs", stranger["x"]), lambda: graph.remove(stranger["z"])):
            with pytest.raises(ValueError, match="is not of this graph"):
                mixed()
        with pytest.raises(ValueError, match="is not of this graph"):
            graph.connect(graph.body("y")["b"], "z", 0)
        with pytest.raises(TypeError, match="is not a tensor of a graph"):
            graph.add("Abs", model["x"])  # type: ignore[arg-type]
        assert graph["x"] == graph["x"] != stranger["x"]


def test_metadata_and_attributes_are_mappings() -> None:
    model = typelift.from_text("x = Parameter : f32[2]\ny = Clamp(x) {min=0, max=6}\nr = Result(y)")
    with model.edit() as graph:
        info = graph["y"].rt_info
        info.update(origin="mine", keep="")
        info["primitives_priority"] = "cpu:jit"
        assert sorted(info) == ["keep", "origin", "primitives_priority"] and info.pop("keep") == ""
        with pytest.raises(KeyError):
            del info["keep"]
    again = typelift.loads(*model.to_bytes())["y"]
    assert again.rt_info == {"origin": "mine", "primitives_priority": "cpu:jit"}
    for part in (again.attributes, again.rt_info):
        with pytest.raises(TypeError, match=r"with model.edit\(\) as graph: graph\['y'\]"):
            part["max"] = "8"  # type: ignore[index]
    with model.edit() as graph:
        graph["y"].rt_info.clear()
    assert "rt_info" not in model.to_bytes()[0].decode()


def test_a_signal_ends_long_work() -> None:
    lines = ["x = Parameter : f32[2]", "l0 = Relu(x)", *(f"l{at} = Relu(l{at - 1})" for at in range(1, 3000))]
    model = typelift.from_text("\n".join([*lines, "r = Result(l2999)"]))
    seen = []

    def slow(match: Match) -> bool:
        seen.append(match.root.name)
        time.sleep(0.01)
        return False

    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.rewrite(typelift.Rule("Relu(x)", "Abs(x)", when=slow))
    assert time.monotonic() - start < 10 and len(seen) < 1000
    assert model.rewrite("Relu(x) => Abs(x)") and model["l0"].type == "Abs"
