"""Blocks of a model, as Python lends them."""

from __future__ import annotations

import pytest
import typelift
from typelift import Model


def decoder(count: int, odd: int = -1) -> Model:
    text, last = "x = Parameter : f32[1,4]\n", "x"
    for at in range(count):
        scope, value = f"m.layers.{at}", "Elu" if at == odd else "Tanh"
        text += f"{scope}.mlp.weight = Const(0.5) : f32[4,4]\n"
        text += f"{scope}.attn.a = Exp({last})\n{scope}.attn.b = Abs({scope}.attn.a)\n"
        text += f"{scope}.mlp.c = MatMul({scope}.attn.b, {scope}.mlp.weight)\n"
        text += f"{scope}.mlp.d = {value}({scope}.mlp.c){' {alpha=1}' if at == odd else ''}\n"
        last = f"{scope}.mlp.d"
    return typelift.from_text(f"{text}y = Result({last})\n")


def test_a_block_is_found_by_its_number_and_its_name() -> None:
    model = decoder(4)
    block = model.blocks[2]
    assert (block.name, block.number, block.parameters, block.bytes, block.macs) == ("m.layers.2", 2, 16, 64, 16)
    assert block.computed == {"f32": 4}
    assert {layer.name.split(".")[2] for layer in block.layers} == {"2"}
    assert [scope.name for scope in block.blocks] == ["m.layers.2.attn", "m.layers.2.mlp"]
    assert model.blocks["m.layers.2.mlp"].weights[0].constants == 1
    with pytest.raises(KeyError, match="the model has the blocks 0 to 3"):
        model.blocks[7]
    with pytest.raises(typelift.UnknownNameError):
        model.blocks["m.layers.9"]


def test_each_layer_is_in_one_block() -> None:
    model = decoder(4)
    layers = [layer.id for block in model.blocks for layer in block.layers]
    assert sorted(layers) == sorted(layer.id for layer in model)


def test_the_odd_block_is_described_in_words() -> None:
    blocks = decoder(5, odd=3).blocks
    assert [block.number for block in blocks if block.differs] == [3]
    assert blocks[3].differs == ("has 1 Elu instead of 0, 0 Tanh instead of 1",)


def test_a_range_of_blocks_becomes_a_model_of_its_own() -> None:
    model = decoder(6)
    chosen = model.blocks[2:4]
    assert [tensor.layer.name for tensor in chosen.inputs] == ["m.layers.1.mlp.d"]
    with model.edit() as graph:
        graph.extract(chosen.inputs, chosen.outputs)
    assert {layer.name.split(".")[2] for layer in model if "layers" in layer.name} >= {"2", "3"}
    assert not any("layers.4" in layer.name for layer in model)
    text = decoder(6)
    text.rewrite("cut block 2..3")
    assert str(text) == str(model)


def test_statistics_name_the_largest_tensors() -> None:
    stats = decoder(3).stats()
    assert stats.macs == 48
    assert {constant.bytes for constant in stats.largest_constants} == {64}
    assert stats.largest_tensors[0].shape == (1, 4)


def test_statements_report_what_they_removed() -> None:
    model = decoder(4)
    done = model.rewrite("redirect m.layers.2.mlp.d -> m.layers.0.mlp.d")
    assert [effect.statement for effect in done.statements] == ["redirect m.layers.2.mlp.d"]
    assert "m.layers.1.mlp.c" in done.statements[0].removed
