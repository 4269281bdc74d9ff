"""Nine jobs on a decoder with caches, in a few lines of Python each."""

from __future__ import annotations

from typing import Optional

import pytest

import typelift
from typelift import Model

numpy = pytest.importorskip("numpy")


def decoder(layers: int) -> Model:
    """A decoder with a cache for each layer."""
    lines = ["ids = Parameter : i64[?,?]", "zero = Const(0) : i64[]", "words = Const(0.5) : f32[16,8]", "h = Gather-8(words, ids, zero)"]
    hidden = "h"
    for at in range(layers):
        name = f"layers.{at}"
        lines += [f"past.{at} = Parameter : f32[?,?,8]"]
        lines += [f"{name}.{part}.w = Const(0.{at + 1}) : f32[8,8]" for part in ("q", "k", "gate", "up")]
        lines += [
            f"{name}.k = MatMul({hidden}, {name}.k.w) {{transpose_b=true}}",
            f"{name}.keys = Concat(past.{at}, {name}.k) {{axis=1}}",
            f"present.{at} = Result({name}.keys)",
            f"{name}.q = MatMul({hidden}, {name}.q.w) {{transpose_b=true}}",
            f"{name}.a = MatMul({name}.q, {name}.keys) {{transpose_b=true}}",
            f"{name}.o = MatMul({name}.a, {name}.keys)",
            f"{name}.gate = MatMul({name}.o, {name}.gate.w) {{transpose_b=true}}",
            f"{name}.up = MatMul({name}.o, {name}.up.w) {{transpose_b=true}}",
            f"{name}.act = Swish-4({name}.gate)",
            f"{name}.mul = Multiply({name}.act, {name}.up)",
            f"{name}.ln = MVN-6({name}.mul, zeros) {{normalize_variance=true, eps=1e-5, eps_mode=INSIDE_SQRT}}",
            f"{name}.out = Add({hidden}, {name}.ln)",
        ]
        hidden = f"{name}.out"
    lines += ["zeros = Const([-1]) : i64[1]", f"logits = MatMul({hidden}, words) {{transpose_b=true}}", "out = Result(logits)"]
    return typelift.from_text("\n".join(lines))


def tensor(source: Optional[typelift.GraphTensor]) -> typelift.GraphTensor:
    """Returns the tensor that an input takes; every input of these models takes one."""
    assert source is not None
    return source


def test_gate_and_up_become_one() -> None:
    model = decoder(2)
    with model.edit() as graph:
        for at in range(2):
            gate, up = graph[f"layers.{at}.gate"], graph[f"layers.{at}.up"]
            weights = graph.add("Concat", tensor(gate.inputs[1]), tensor(up.inputs[1]), axis=0)
            both = graph.add("MatMul", tensor(gate.inputs[0]), weights, name=f"layers.{at}.both", transpose_b=True)
            parts = graph.add("Split", both, graph.constant(2), num_splits=2)
            for layer, part in zip((gate, up), parts.outputs):
                graph.redirect(layer, part)
    assert "layers.0.gate" not in model and model["layers.1.both"].outputs[0].shape.rank == 3


def test_caches_become_state_and_come_back() -> None:
    model = decoder(3)
    with model.edit() as graph:
        beam = graph.add("Parameter", name="beam_idx", shape="?", element_type="i32")
        graph.make_stateful({f"past.{at}": f"present.{at}" for at in range(3)}, beam)
    assert list(model.inputs) == ["ids", "beam_idx"] and len(model.outputs) == 1
    assert model["past.2"].attributes["variable_id"] == "past.2present.2"
    with model.edit() as graph:
        graph.make_stateless({f"past.{at}present.{at}": (f"past.{at}", f"present.{at}") for at in range(3)})
    assert list(model.inputs) == ["ids", "beam_idx", "past.0", "past.1", "past.2"]
    assert list(model.outputs) == ["out", "present.0", "present.1", "present.2"]


def test_weights_become_integers() -> None:
    model = decoder(1)
    rule = """MatMul(x, w: const) {transpose_b=true} => MatMul(x, Convert(q) {destination_type=f32} * s) {transpose_b=true}
        where s = fold(ReduceMax(Abs(w), 1) {keep_dims=true} / 127)
              q = fold(Convert(Round(w / s) {mode=half_to_even}) {destination_type=i8})
        if name(root) like "layers.*.gate\""""
    assert len(model.rewrite("once " + rule)) == 1
    assert "i8" in {str(tensor.element_type) for layer in model for tensor in layer.outputs}


def test_two_pieces_become_one_again() -> None:
    first, second = decoder(2), decoder(2)
    with first.edit() as graph:
        graph.extract(outputs=["layers.0.out", "layers.0.keys"])
    with second.edit() as graph:
        graph.extract(inputs=["layers.0.out"])
    first.join(second, {"layers.0.out": "layers.0.out"})
    assert "logits" in first and "layers.0.q" in first and "layers.1.q" in first


def test_adapters_are_inputs_with_names() -> None:
    model = decoder(6)
    with model.edit() as graph:
        for name in [f"layers.{at}.{part}" for at in range(6) for part in ("q", "k")]:
            down = graph.add("Parameter", name=f"{name}.lora_a", shape="?,8", element_type="f32")
            up = graph.add("Parameter", name=f"{name}.lora_b", shape="8,?", element_type="f32")
            small = graph.add("MatMul", tensor(graph[name].inputs[0]), down, transpose_b=True)
            graph.redirect(name, graph.add("Add", name, graph.add("MatMul", small, up, transpose_b=True)))
    assert len(model.inputs) == 7 + 24 and "layers.5.k.lora_b" in list(model.inputs)


def test_each_norm_is_an_output() -> None:
    model = decoder(3)
    with model.edit() as graph:
        for at in range(3):
            graph.expose(f"layers.{at}.ln")
    assert len(model.outputs) == 7


def test_words_are_removed() -> None:
    model = decoder(1)
    model.set_constant("words", model["words"].numpy()[[0, 5, 7]])
    assert str(model["words"].outputs[0].shape) == "[3,8]"


def test_layers_are_removed() -> None:
    model = decoder(24)
    with model.edit() as graph:
        graph.redirect("layers.20.out", "layers.9.out")
        graph.remove_outputs(*[f"present.{at}" for at in range(10, 21)])
    assert "layers.10.q" not in model and "layers.21.q" in model
    assert len(model.inputs) == 1 + 13 and len(model.outputs) == 1 + 13


def test_bytes_of_each_block() -> None:
    model = decoder(4)
    sizes: dict[str, int] = {}
    for layer in model:
        if layer.type == "Const" and layer.name.startswith("layers."):
            block = layer.name.split(".")[1]
            sizes[block] = sizes.get(block, 0) + 4 * numpy.prod(layer.numpy().shape)
    assert sizes == {str(at): 4 * 4 * 64 for at in range(4)}


def test_attributes_choose_the_revision() -> None:
    model = typelift.from_text("x = Parameter : f32[2]\nr = Result(x)")
    with model.edit() as graph:
        assert graph.add("Gelu", "x", approximation_mode="TANH").version == "opset7"
        with pytest.raises(ValueError, match="`Softmax` has no attribute `axs`; did you mean `axis`?"):
            graph.add("Softmax", "x", axs=0)
        with pytest.raises(ValueError, match="is not an element type; did you mean `f32`?"):
            graph.add("Convert", "x", destination_type="f23")
        with pytest.raises(ValueError, match="layer 0 `x` still feeds layer 2 `Gelu_2`"):
            graph.remove("x")


def test_a_star_does_not_replace_open() -> None:
    assert "open" not in typelift.__all__ and typelift.open.__module__ != open.__module__
