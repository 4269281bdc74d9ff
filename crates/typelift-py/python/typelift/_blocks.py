"""Blocks of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Union, overload

from typelift import _typelift
from typelift._errors import UnknownNameError
from typelift._layer import Layer, Tensor


class StoredWeights(NamedTuple):
    """The constants of a block that are stored in one element type and scheme."""

    element_type: str
    """The element type in which they are stored."""
    scheme: Optional[str]
    """The way in which they are quantized, ``int4 asymmetric, groups of 128``; ``None`` for plain constants."""
    constants: int
    """The number of constants."""
    bytes: int
    """The size in bytes. Bytes that constants share count once."""


@dataclass(frozen=True)
class Block:
    """A block of a model, ``model.layers.17``, a scope in a block, or the layers between blocks."""

    name: str
    """The name: ``model.layers.17``, ``model.layers.17.mlp``, or ``before model.layers.0``."""
    path: str
    """The name after those of the surrounding bodies."""
    number: Optional[int]
    """The number among its siblings; ``None`` for other scopes and layers between blocks."""
    weights: tuple[StoredWeights, ...]
    """The constants by element type and scheme, the most bytes first."""
    parameters: int
    """The number of weights, without scales and zero points."""
    computed: dict[str, int]
    """The number of tensors computed in each element type."""
    macs: int
    """The multiply-accumulate operations. An open dimension counts as its lower bound, and as 1 at least."""
    macs_is_least: bool
    """True if a dimension is open, so that `macs` is a lower bound."""
    differs: tuple[str, ...]
    """The differences from its siblings, in words: ``computes in f32, its 31 siblings in f16``."""
    blocks: tuple[Block, ...] = field(repr=False)
    """The scopes and numbered blocks inside, in the order of the data."""
    _native: _typelift.Blocks = field(repr=False, compare=False)
    _at: tuple[int, ...] = field(repr=False, compare=False)

    @classmethod
    def _of(cls, native: _typelift.Blocks, record: dict[str, Any], at: tuple[int, ...]) -> Block:
        own = {key: record[key] for key in ("name", "path", "number", "parameters", "computed", "macs", "macs_is_least")}
        return cls(
            **own,
            weights=tuple(StoredWeights(**weights) for weights in record["weights"]),
            differs=tuple(record["differs"]),
            blocks=tuple(cls._of(native, inner, (*at, nth)) for nth, inner in enumerate(record["blocks"])),
            _native=native,
            _at=at,
        )

    @property
    def layers(self) -> list[Layer]:
        """The layers, those of its scopes included."""
        return [Layer(native) for native in self._native.layers(list(self._at))]

    @property
    def bytes(self) -> int:
        """The bytes of its constants."""
        return sum(weights.bytes for weights in self.weights)

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors through which data enters it. Constants, shape computations and inputs of the model are not
        among them."""
        return _border(self._native, [self])[0]

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors through which data leaves it."""
        return _border(self._native, [self])[1]


def _border(native: _typelift.Blocks, blocks: list[Block]) -> tuple[list[Tensor], list[Tensor]]:
    enter, leave = native.border([list(block._at) for block in blocks])
    return [Layer(layer).outputs[port] for layer, port in enter], [Layer(layer).outputs[port] for layer, port in leave]


class Blocks:
    """The blocks of a model in one state: ``model.blocks[17]`` is the block with that number, ``model.blocks[10:20]``
    has those from 10 to 19, ``model.blocks["model.layers.17.mlp"]`` is the one of that name. Iteration also yields the
    layers before, between and after the blocks, so that each layer is in one.

    >>> import typelift
    >>> text = "x = Parameter : f32[2]\\n"
    >>> last = "x"
    >>> for number in range(3):
    ...     for part, type in (("a", "Relu"), ("b", "Exp"), ("c", "Abs"), ("d", "Sin")):
    ...         name = f"m.layers.{number}.{part}"
    ...         text += f"{name} = {type}({last})\\n"
    ...         last = name
    >>> model = typelift.from_text(f"{text}y = Result({last})\\n")
    >>> model.blocks[1].name, len(model.blocks[1].layers), model.blocks[1].computed
    ('m.layers.1', 4, {'f32': 4})
    >>> with model.edit() as graph:
    ...     graph.extract(model.blocks[1:3].inputs, model.blocks[1:3].outputs)
    >>> [layer.name for layer in model][:2]
    ['m.layers.0.d', 'm.layers.1.a']
    """

    __slots__ = ("_native", "_blocks")

    def __init__(self, native: _typelift.Blocks, blocks: Optional[list[Block]] = None) -> None:
        self._native = native
        if blocks is None:
            blocks = [Block._of(native, record, (at,)) for at, record in enumerate(json.loads(native.json()))]
        self._blocks = blocks

    @overload
    def __getitem__(self, key: Union[int, str]) -> Block: ...
    @overload
    def __getitem__(self, key: slice) -> Blocks: ...
    def __getitem__(self, key: Union[int, str, slice]) -> Union[Block, Blocks]:
        if isinstance(key, slice):
            return Blocks(self._native, self._between(key))
        if isinstance(key, str):
            for block in self._everywhere():
                if key in (block.name, block.path):
                    return block
            raise UnknownNameError(f"no block is called {key!r}", key)
        found = [block for block in self._blocks if block.number == key]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(repr(block.path) for block in found)
            raise KeyError(f"several blocks have the number {key}: {names}; select one by its name")
        numbers = sorted({block.number for block in self._blocks if block.number is not None})
        known = f"the model has the blocks {numbers[0]} to {numbers[-1]}" if numbers else "the model has no repeated blocks"
        raise KeyError(f"no block has the number {key}; {known}")

    def _between(self, key: slice) -> list[Block]:
        if key.step not in (None, 1):
            raise ValueError("the blocks of a slice are neighbours: its step is 1")
        first, end = key.start or 0, key.stop
        return [b for b in self._blocks if b.number is not None and b.number >= first and (end is None or b.number < end)]

    def _everywhere(self) -> Iterator[Block]:
        pending = self._blocks[::-1]
        while pending:
            block = pending.pop()
            yield block
            pending += block.blocks[::-1]

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def layers(self) -> list[Layer]:
        """The layers of all of them."""
        return [layer for block in self._blocks for layer in block.layers]

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors through which data enters these blocks from others."""
        return _border(self._native, self._blocks)[0]

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors through which data leaves these blocks."""
        return _border(self._native, self._blocks)[1]

    def __repr__(self) -> str:
        return f"<Blocks: {', '.join(block.path for block in self._blocks)}>"
