"""Rules and passes whose conditions and right sides are Python functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional, Union

from typelift import _typelift
from typelift._data import Shape
from typelift._edit import Graph, GraphLayer, GraphTensor, TensorLike
from typelift._errors import UnknownNameError

Condition = Callable[["Match"], Union[bool, str]]
"""True if a rule applies to a match, or the reason why it does not."""

Replacement = Callable[["Match", Graph], Union[TensorLike, Iterable[TensorLike]]]
"""A function that returns the replacement of a match: one tensor for each output of its layer."""


_Layer = tuple[int, str, str, str, list[tuple[str, str]]]
"""A layer by its id, name, operation, operation set and attributes."""


class _Known:
    """The layer of a match, before there is a graph to edit."""

    def __init__(self, layer: _Layer) -> None:
        self._layer = layer

    def name(self, _id: int) -> str:
        return self._layer[1]

    def operation(self, _id: int) -> tuple[str, str]:
        return self._layer[2], self._layer[3]

    def attributes(self, _id: int) -> list[tuple[str, str]]:
        return self._layer[4]

    def __getattr__(self, verb: str) -> Any:
        raise ValueError("a condition sees the types, shapes and values of a match; `to=` gets the graph besides")


class MatchTensor(GraphTensor):
    """A tensor that a pattern names."""

    __slots__ = ("name", "values", "_type")

    name: str
    """The name in the pattern."""
    values: Optional[tuple[float, ...]]
    """The values of a small constant; ``None`` for others."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        tensor: Optional[tuple[int, int]],
        type: Optional[tuple[str, str]],
        values: Optional[list[float]],
    ) -> None:
        super().__init__(graph, *(tensor or (-1, 0)))
        self.name = name
        self.values = None if values is None else tuple(values)
        self._type = type or ("dynamic", "[...]")

    @property
    def element_type(self) -> str:
        """The element type."""
        return self._type[0]

    @property
    def shape(self) -> Shape:
        """The shape."""
        return Shape.parse(self._type[1])

    def _of(self) -> tuple[int, int]:
        if self._id < 0:
            raise ValueError(f"`{self.name}` is computed from constants: it has values and no tensor")
        return super()._of()

    def __repr__(self) -> str:
        return f"<MatchTensor {self.name!r}: {self.element_type}{self.shape}>"


class Match:
    """A place where a pattern matches. ``match["x"]`` is the tensor that the pattern calls ``x``."""

    __slots__ = ("root", "tensors", "lists", "attributes")

    root: GraphLayer
    """The layer at which it matches."""
    tensors: dict[str, MatchTensor]
    """The tensors and constants by name."""
    lists: dict[str, tuple[GraphTensor, ...]]
    """The lists of tensors, ``xs...``, by name."""
    attributes: dict[str, str]
    """The values of its variables, which are named without their ``$``."""

    def __init__(self, record: _typelift._Match, graph: Optional[Graph]) -> None:
        """Created when a rule is applied."""
        root, names, lists, variables = record
        known: Any = _Known(root)
        own = Graph(None, known) if graph is None else graph
        self.root = GraphLayer(own, root[0])
        self.tensors = {name: MatchTensor(own, name, of, type, values) for name, of, type, values in names}
        self.lists = {name: tuple(GraphTensor(own, *of) for of in tensors) for name, tensors in lists}
        self.attributes = dict(variables)

    def __getitem__(self, name: str) -> MatchTensor:
        """Returns the tensor or constant of this name.

        Raises:
            KeyError: The pattern has no such name, or the match has no tensor for it.
        """
        if name not in self.tensors:
            known = ", ".join(f"`{known}`" for known in self.tensors) or "no names"
            raise UnknownNameError(f"there is no tensor `{name}`; the match has {known}")
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __repr__(self) -> str:
        return f"<Match at {self.root.name!r}: {', '.join(self.tensors)}>"


class Rule:
    """A pattern and its replacement, in the notation that ``print(model)`` shows or as a function.

    A function receives the match and the graph, and returns the tensors that replace the outputs of the matched layer.
    If it returns ``match.root``, that layer is kept with its edits.

    >>> import typelift
    >>> model = typelift.from_text('''
    ...     x = Parameter : f32[1,8]
    ...     y = Softmax-8(x) {axis=-1}
    ...     r = Result(y)
    ... ''')
    >>> def older(match, graph):
    ...     axis = int(match.attributes["a"]) % match["x"].shape.rank
    ...     return graph.replace_in_place(match.root, "Softmax-1", match["x"], axis=axis)
    >>> rule = typelift.Rule("Softmax-8(x) {axis=$a}", when=lambda match: match["x"].shape.rank is not None, to=older)
    >>> len(model.rewrite(rule)), model["y"].version, model["y"].attributes["axis"]
    (1, 'opset1', '1')

    An exception leaves the model unchanged and is raised by :meth:`Model.rewrite`.
    """

    __slots__ = ("pattern", "to", "when", "name", "once", "tried")

    pattern: str
    """The pattern."""
    to: Union[str, Replacement]
    """The replacement of a match."""
    when: Optional[Condition]
    """The condition on a match."""
    name: Optional[str]
    """The name in reports."""
    once: bool
    """True if the rule does not apply to its own output."""
    tried: bool
    """True if a match is left unchanged when its replacement is refused."""

    def __init__(
        self,
        pattern: str,
        to: Union[str, Replacement],
        *,
        when: Optional[Condition] = None,
        name: Optional[str] = None,
        once: bool = False,
        tried: bool = False,
    ) -> None:
        """Creates a rule.

        Args:
            pattern: The pattern, such as ``"Divide(x, c: const f32)"``.
            to: The replacement: a right side in the notation, or a function of the match and the graph.
            when: A function of the match that returns true or the reason why the rule does not apply, which
                :meth:`Model.explain` repeats.
            name: The name in reports; by default that of the function, or the text of the rule.
            once: Do not apply the rule to its own output, for a rule whose result matches again.
            tried: Leave a match unchanged if its replacement is refused. Otherwise a refusal undoes the whole call.

        Raises:
            RuleError: The pattern or the right side cannot be read.
        """
        self.pattern = pattern
        self.to = to
        self.when = when
        own: Optional[str] = None if isinstance(to, str) else getattr(to, "__name__", None)
        self.name = name or (own if own != "<lambda>" else None)
        self.once = once
        self.tried = tried
        _typelift.check_rule(self._spec())

    def _spec(self) -> Spec:
        is_text = isinstance(self.to, str)
        text, to = (self.to, None) if is_text else (None, self.to)
        return Spec(self.name, self.pattern, text, to, self.when, self.once, self.tried)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.pattern} => {self.to}" if isinstance(self.to, str) else self.pattern

    def __repr__(self) -> str:
        return f"<Rule {self.name or str(self)!r}>"


class Spec(NamedTuple):
    """The rule as the native part reads it."""

    name: Optional[str]
    pattern: str
    text: Optional[str]
    to: Optional[Replacement]
    when: Optional[Condition]
    once: bool
    tried: bool


class Pass:
    """An edit of one graph. :meth:`Model.run` applies it to the graphs of all bodies, innermost ones first, and to the
    model's own.

    >>> import typelift
    >>> model = typelift.from_text("x = Parameter : f32[2]\\ny = Relu(x)\\nr = Result(y)")
    >>> @typelift.Pass
    ... def soften(graph):
    ...     for layer in [layer for layer in graph if layer.type == "ReLU"]:
    ...         graph.replace_in_place(layer, "Elu", *layer.inputs, alpha=0.5)
    >>> model.run(soften)
    >>> model["y"].type
    'Elu'
    """

    __slots__ = ("function", "name")

    function: Callable[[Graph], object]
    """The function that edits a graph."""
    name: str
    """The name, by default that of the function."""

    def __init__(self, function: Callable[[Graph], object], *, name: Optional[str] = None) -> None:
        own: str = getattr(function, "__name__", "pass")
        self.function = function
        self.name = name or own

    def __call__(self, graph: Graph) -> None:
        """Edits one graph."""
        self.function(graph)

    def __repr__(self) -> str:
        return f"<Pass {self.name!r}>"


def holds(when: Condition, record: _typelift._Match) -> Optional[str]:
    """Called by the native part: returns the reason why a condition does not hold; ``None`` if it holds."""
    answer = when(Match(record, None))
    if isinstance(answer, str):
        return answer
    return None if answer else "its condition does not hold"


def replacement(to: Replacement, record: _typelift._Match, native: _typelift.Graph) -> list[tuple[int, int]]:
    """Called by the native part: returns the tensors that replace a match."""
    graph = Graph(None, native)
    made = to(Match(record, graph), graph)
    if isinstance(made, (str, GraphTensor, GraphLayer)):
        return [graph._tensor(made)]
    if made is None or not isinstance(made, Iterable):
        raise TypeError(f"`to=` returns the tensors that take the place of the match, or `match.root`, and not {made!r}")
    return graph._tensors(made)
