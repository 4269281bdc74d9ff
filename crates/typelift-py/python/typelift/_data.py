"""Results of typelift as data: shapes, diagnostics, changes."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, Tuple, TypeVar, Union, overload


if TYPE_CHECKING:
    from typelift import _typelift

T = TypeVar("T")
L = TypeVar("L", bound="_List[Any]")
A = TypeVar("A", bound="_Answer[Any]")


_HOSTILE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that change a terminal or the direction of a line, or that some readers take for a line break."""


def shown(text: str) -> str:
    """Returns a text with escapes for what a file must not send to a terminal or a notebook.

    >>> shown("a\\x1b[2Jb\\n")
    'a\\\\u{1b}[2Jb\\n'
    """
    return _HOSTILE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


class Dim(NamedTuple):
    """A dimension that is unknown before run time, as a range.

    >>> str(Dim(0, None)), str(Dim(1, 8))
    ('?', '1..8')
    """

    min: int
    """The smallest possible length."""
    max: Optional[int]
    """The largest possible length; ``None`` without a limit."""

    @classmethod
    def parse(cls, text: str) -> Union[int, Dim]:
        """Parses a dimension in the notation of shapes: ``3``, ``?``, ``1..8``, ``2..``, ``..4``."""
        low, dots, high = text.strip().partition("..")
        if not dots:
            return cls(0, None) if low in ("?", "-1") else int(low)
        return cls(int(low or 0), int(high) if high else None)

    def __str__(self) -> str:
        if self.max is None:
            return f"{self.min}.." if self.min else "?"
        return f"{self.min or ''}..{self.max}"


class Shape(Tuple[Union[int, Dim], ...]):
    """Shape of a tensor: a tuple of lengths, with a :class:`Dim` for an unknown length.

    A shape equals any tuple or list of the same dimensions. The shape of unknown rank, ``[...]``, is empty and equals
    only itself.

    >>> shape = Shape.parse("[1,3,?,1..224]")
    >>> shape[1], shape.rank, shape.is_static, str(shape[3])
    (3, 4, False, '1..224')
    >>> Shape.parse("[2,3]") == (2, 3), Shape.parse("[...]") == ()
    (True, False)
    """

    rank: Optional[int]
    """The number of dimensions; ``None`` if it is unknown."""

    def __new__(cls, dims: Optional[Iterable[Union[int, Dim]]] = ()) -> Shape:
        """Creates a shape of these dimensions, or of unknown rank for ``None``."""
        shape = super().__new__(cls, () if dims is None else dims)
        shape.rank = None if dims is None else len(shape)
        return shape

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Parses a shape as :func:`str` writes it. The brackets are optional."""
        text = text.strip()
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1].strip()
        if text == "...":
            return cls(None)
        return cls(Dim.parse(dim) for dim in text.split(",")) if text else cls()

    @property
    def is_static(self) -> bool:
        """True if every dimension is known."""
        return self.rank is not None and all(isinstance(dim, int) for dim in self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self.rank == other.rank and tuple.__eq__(self, other)
        return self.rank is not None and isinstance(other, (list, tuple)) and tuple.__eq__(self, tuple(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __getnewargs__(self) -> tuple[Any]:
        return (None if self.rank is None else tuple(self),)

    def __str__(self) -> str:
        return "[...]" if self.rank is None else f"[{','.join(map(str, self))}]"

    def __repr__(self) -> str:
        return f"Shape({str(self)!r})"


@dataclass(frozen=True)
class Diagnostic:
    """An error, warning or note about a model. ``typelift explain CODE`` describes each code with examples."""

    code: str
    """The stable word for its kind, such as ``type-mismatch``."""
    severity: str
    """``error`` if OpenVINO refuses the model for it, otherwise ``warning`` or ``note``."""
    message: str
    """The problem in one sentence."""
    layer: Optional[str] = None
    """The path of its layer, including the bodies around it, such as ``loop/body/x``. ``model[d.layer]`` is the layer."""
    layer_id: Optional[int] = None
    """The id of that layer."""
    line: Optional[int] = None
    """The line in the file, from 1."""
    column: Optional[int] = None
    """The column in the line, in characters from 1."""
    notes: tuple[str, ...] = ()
    """Facts that led to it, such as the types of both tensors."""
    help: str = ""
    """Suggested fixes, a line each."""
    fix: Optional[str] = None
    """A tested command that fixes it, if there is one."""

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Diagnostic:
        """Creates a diagnostic from an entry of the document that ``check --format json`` prints."""
        layer = entry["layer"]
        related = (tensor["message"] for tensor in entry.get("related", ()))
        return cls(
            code=entry["code"],
            severity=entry["severity"],
            message=entry["message"],
            layer=None if layer is None else _path(layer),
            layer_id=None if layer is None else layer["id"],
            line=entry["line"],
            column=entry["column"],
            notes=(*related, *entry["notes"]),
            help="\n".join(entry["help"]),
            fix=entry["fix"],
        )

    @property
    def is_error(self) -> bool:
        """True if OpenVINO refuses the model for it."""
        return self.severity == "error"

    def __str__(self) -> str:
        place = "" if self.line is None else f"{self.line}:{self.column}: "
        return shown(f"{place}{self.severity}[{self.code}]: {self.message}")


def _path(layer: dict[str, Any]) -> str:
    """Returns the name of a layer, preceded by the bodies that contain it."""
    return f"{layer['path']}/{layer['name']}" if layer["path"] else str(layer["name"])


_ROWS = 200
"""The number of table rows that a notebook shows."""

_CELL = 500
"""The number of characters of a cell that a notebook shows."""

_ITEMS = 10
"""The number of list items in its representation."""


def table(header: Sequence[str], rows: Iterable[Sequence[object]], wide: Optional[int] = None) -> str:
    """Returns a table in HTML that is small enough for a notebook: the first rows, and the number of the others. The column
    ``wide`` gets most of the space."""

    def cell(tag: str, at: int, value: object) -> str:
        text = str(value)
        text = text if len(text) <= _CELL else f"{text[:_CELL]}…"
        width = "min-width:24em; white-space:pre-wrap" if at == wide else "overflow-wrap:anywhere; min-width:5em"
        style = "text-align:left; vertical-align:top" + (f"; {width}" if wide is not None else "")
        return f'<{tag} style="{style}">{html.escape(shown(text))}</{tag}>'

    def line(tag: str, cells: Iterable[object]) -> str:
        return "<tr>" + "".join(cell(tag, at, value) for at, value in enumerate(cells)) + "</tr>"

    rest = iter(rows)
    body = "".join(line("td", row) for row in islice(rest, _ROWS))
    more = sum(1 for _ in rest)
    end = f"<p>and {more} more</p>" if more else ""
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>{end}"


def preformatted(text: str) -> str:
    """Returns a text in HTML that keeps its columns aligned, in exported notebooks too."""
    return f'<pre style="font-family:monospace; white-space:pre">{html.escape(shown(text))}</pre>'


class _List(Sequence[T], Generic[T]):
    """An immutable list with a text. A slice is a list of the same kind. ``pandas.DataFrame`` accepts both."""

    _text: Optional[str]

    def __init__(self, items: Iterable[T] = (), text: Optional[str] = None) -> None:
        self._items = tuple(items)
        self._text = text

    def _all(self) -> tuple[T, ...]:
        return self._items

    def _first(self) -> tuple[T, ...]:
        """Returns the items that :func:`repr` shows."""
        return self._all()[:_ITEMS]

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self: L, at: slice) -> L: ...
    def __getitem__(self: L, at: Union[int, slice]) -> Union[T, L]:
        return type(self)(self._all()[at]) if isinstance(at, slice) else self._all()[at]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _List):
            return self._all() == other._all()
        return isinstance(other, (list, tuple)) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        shown = [repr(item) for item in self._first()]
        more = len(self) - len(shown)
        return f"{type(self).__name__}([{', '.join(shown)}{f', … {more} more' if more else ''}])"

    def __str__(self) -> str:
        return shown(self._text) if self._text is not None else "".join(f"{item}\n" for item in self._all())


class _Answer(_List[T]):
    """A list of the native part. Items and text are created on demand."""

    def __init__(self, items: Iterable[T] = (), text: Optional[str] = None, full_text: str = "") -> None:
        super().__init__(items, text)
        self._full_text = full_text
        self._answer: Optional[_typelift.Answer] = None
        self._is_read = True

    @classmethod
    def of(cls: type[A], answer: _typelift.Answer) -> A:
        made = cls()
        made._answer, made._is_read = answer, False
        return made

    @staticmethod
    def _entry(entry: dict[str, Any]) -> T:
        """Creates an item from its JSON."""
        raise NotImplementedError

    def _read(self, most: Optional[int]) -> tuple[T, ...]:
        return tuple(map(self._entry, json.loads(self._answer.json(most)))) if self._answer else ()

    def _all(self) -> tuple[T, ...]:
        if not self._is_read:
            self._items, self._is_read = self._read(None), True
        return self._items

    def _first(self) -> tuple[T, ...]:
        return super()._first() if self._is_read else self._read(_ITEMS)

    def __len__(self) -> int:
        return len(self._items) if self._answer is None else len(self._answer)

    def __str__(self) -> str:
        return super().__str__() if self._answer is None else shown(self._answer.text(False))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._all(), str(self), self.full_text)

    @property
    def full_text(self) -> str:
        """Returns the complete text; :func:`str` shortens it to a screen."""
        return self._full_text if self._answer is None else self._answer.text(True)


class Diagnostics(_List[Diagnostic]):
    """Diagnostics, sorted by the order in which to handle them. Their text shows the lines of the file."""

    @classmethod
    def from_json(cls, document: str, text: Optional[str] = None) -> Diagnostics:
        """Creates diagnostics from the document of ``check --format json`` and its text."""
        return cls(map(Diagnostic.from_json, json.loads(document)["diagnostics"]), text)

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors: findings for which OpenVINO refuses the model."""
        return [diagnostic for diagnostic in self if diagnostic.is_error]

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings: OpenVINO accepts them, but they are probably mistakes."""
        return [diagnostic for diagnostic in self if diagnostic.severity == "warning"]

    def _repr_html_(self) -> str:
        def what(d: Diagnostic) -> str:
            return d.message + (f"\nhelp: {d.help}" if d.help else "")

        rows = ((f"{d.severity}[{d.code}]", d.layer or "", d.line or "", what(d)) for d in self)
        return table(("finding", "layer", "line", "message"), rows, wide=3)


@dataclass(frozen=True)
class Conversion:
    """Change that a conversion made to one layer."""

    action: str
    """``inserted``, ``removed``, ``used``, ``corrected``, ``retyped`` or, of a constant, ``converted``."""
    layer: str
    """The Convert, the layer that is used instead, or the input or output."""
    from_type: str
    """The element type before the conversion."""
    to_type: str
    """The element type after the conversion."""
    reason: str
    """The reason."""
    source: Optional[str] = None
    """The producer of the tensor that an inserted Convert converts."""
    can_lose: Optional[tuple[str, ...]] = None
    """The possible loss by the types alone; ``None`` if it is unknown."""
    audit: Optional[dict[str, float]] = None
    """The effect on the values of a constant, as ``convert --report`` counts it; ``None`` if no constant was converted."""


@dataclass(frozen=True)
class Application:
    """An application of a rule."""

    rule: str
    """The name of the rule, or its text."""
    layer: str
    """The layer at which its pattern matched."""
    added: tuple[str, ...]
    """The added layers."""
    removed: tuple[str, ...]
    """The layers that were removed."""
    non_finite: int = 0
    """The number of values of new constants that are infinite or NaN although they are computed from finite values."""

    @classmethod
    def from_json(cls, site: dict[str, Any]) -> Application:
        """Creates an application from an entry of the report of ``rewrite --report``."""
        added, removed = (tuple(map(_path, site[key])) for key in ("added", "removed"))
        return cls(site["rule"], _path(site["layer"]), added, removed, site.get("non_finite", 0))

    def __str__(self) -> str:
        return shown(f"{self.rule} at {self.layer}")


@dataclass(frozen=True)
class Skipped:
    """A place where a rule matched and was not applied."""

    rule: str
    """The name of the rule, or its text."""
    layer: str
    """The layer at which its pattern matched."""
    reason: str
    """The reason why no replacement was possible."""

    def __str__(self) -> str:
        return shown(f"{self.rule} at {self.layer}: {self.reason}")


@dataclass(frozen=True)
class Retargeting:
    """Changes made so that an older release can read a model."""

    applied: tuple[Application, ...]
    """Applications of rules that replaced operations which the release lacks."""
    versions: tuple[str, ...]
    """Layers that keep their operation and now name an operation set of the release."""
    names: tuple[str, ...]
    """Layers that shared a name with another layer, and were renamed."""
    marks: tuple[str, ...]
    """Layers whose precision marks are now spelled for the release."""
    masks: tuple[str, ...]
    """Attentions whose boolean mask became numbers, because the CPU plugin of the release refuses it."""
    format: Optional[int]
    """The new version of the format; ``None`` if it did not change."""

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Retargeting:
        """Creates the result from the part ``target`` of the report of ``convert --report``."""
        layers = {key: tuple(map(_path, record[key])) for key in ("versions", "names", "marks", "masks")}
        applied = tuple(map(Application.from_json, record["applied"]))
        return cls(applied=applied, **layers, format=record.get("format"))

    def __bool__(self) -> bool:
        """True if anything was changed."""
        return bool(self.applied or self.versions or self.names or self.marks or self.masks or self.format is not None)


class Conversions(_List[Conversion]):
    """Result of :meth:`Model.convert` as data. As text, the output of ``typelift convert --dry-run``.

    The result is true if types, stored constants or operations for an older release were changed.

    >>> import typelift
    >>> model = typelift.from_text("x = Parameter : f32[2,3]\\ny = Softmax-8(x) {axis=-1}\\nr = Result(y)")
    >>> report = model.convert(target="2021.4")
    >>> bool(report), len(report), report.target.applied[0].layer, report.target.format
    (True, 0, 'y', 10)
    >>> bool(model.convert())
    False
    """

    def __init__(
        self,
        items: Iterable[Conversion] = (),
        text: Optional[str] = None,
        warnings: Optional[Diagnostics] = None,
        document: Optional[dict[str, Any]] = None,
        plan: Optional[str] = None,
    ) -> None:
        super().__init__(items, text)
        self._warnings = warnings or Diagnostics()
        self._document = document or {}
        self._plan = plan
        self._report: Optional[_typelift.Report] = None

    @classmethod
    def of_report(cls, report: _typelift.Report) -> Conversions:
        """Creates the result of :meth:`Model.convert`. The report is created on demand."""
        conversions = cls()
        conversions._report = report
        return conversions

    def _read(self) -> None:
        """Creates the report, if it does not exist yet."""
        if self._report is not None:
            text, document = self._report.print()
            record = json.loads(document)
            self._items = tuple(map(self._entry, record["converts"]))
            self._text, self._document = text, record
            self._warnings = Diagnostics.from_json(self._report.warnings())
            self._plan = self._report.plan()
            self._report = None

    @property
    def warnings(self) -> Diagnostics:
        """The losses: changed values of constants, and bounds of shapes that were dropped."""
        self._read()
        return self._warnings

    @property
    def document(self) -> dict[str, Any]:
        """The complete document of ``convert --report``."""
        self._read()
        return self._document

    @property
    def target(self) -> Optional[Retargeting]:
        """The changes for an older release; ``None`` if no release was given."""
        target = self.document.get("target")
        return None if target is None else Retargeting.from_json(target)

    @property
    def constants(self) -> tuple[dict[str, Any], ...]:
        """The constants that ``compress``, ``decompress`` and ``types`` concern, each as ``convert --report`` writes
        it: ``from``, ``to``, ``action``, the reason for keeping it, and the loss of its values."""
        return tuple(self.document.get("precision", {}).get("constants", ()))

    @property
    def quantized(self) -> tuple[dict[str, Any], ...]:
        """The weights that ``quantize`` concerns, each as ``convert --report`` writes it: ``name``, ``mode``, ``group``,
        ``bytes_before``, ``bytes_after`` and, where it was computed, the ``loss`` of its values."""
        return tuple((self.document.get("quantized") or {}).get("constants", ()))

    def write_plan(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the mode and group of each constant that ``quantize`` concerns, as ``convert --write-plan`` does. Edit
        the file and use it with ``model.convert(quantize=Path("plan.txt"))``.

        Raises:
            ValueError: No weights were to be quantized.
            OSError: The file cannot be written.
        """
        self._read()
        if self._plan is None:
            raise ValueError("there is no plan: convert with quantize")
        Path(path).write_text(self._plan, encoding="utf-8")

    def _all(self) -> tuple[Conversion, ...]:
        self._read()
        return self._items

    def __str__(self) -> str:
        self._read()
        return super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        self._read()
        return type(self), (self._items, self._text, self._warnings, self._document, self._plan)

    def __bool__(self) -> bool:
        stored = self.document.get("precision", {}).get("totals", {}).get("changed", 0)
        quantized = any(constant["mode"] for constant in self.quantized)
        return bool(self._all() or self.target or stored or quantized)

    @staticmethod
    def _entry(entry: dict[str, Any]) -> Conversion:
        source, losses = entry["source"], entry["can_lose"]
        return Conversion(
            action=entry["action"],
            layer=_path(entry["layer"]),
            from_type=entry["from"],
            to_type=entry["to"],
            reason=entry["reason"],
            source=None if source is None else _path(source),
            can_lose=None if losses is None else tuple(losses),
            audit=entry.get("audit"),
        )

    def _repr_html_(self) -> str:
        rows = ((c.action, c.layer, f"{c.from_type} → {c.to_type}", c.reason) for c in self)
        return table(("", "layer", "types", "why"), rows)


class StatementEffect(NamedTuple):
    """Layers, inputs and outputs that a statement removed."""

    statement: str
    """The statement."""
    removed: tuple[str, ...]
    """The names of the layers that were removed."""
    inputs: tuple[str, ...]
    """The inputs that the model no longer has."""
    outputs: tuple[str, ...]
    """The outputs that the model no longer has."""


class Applications(_List[Application]):
    """Result of :meth:`Model.rewrite`: each application of a rule, in order."""

    statements: tuple[StatementEffect, ...]
    """The layers, inputs and outputs that statements removed."""

    skipped: tuple[Skipped, ...]
    """The matches that a rule with ``skip`` left unchanged, because the replacement was refused."""

    def __init__(
        self,
        items: Iterable[Application] = (),
        text: Optional[str] = None,
        skipped: Iterable[Skipped] = (),
        statements: Iterable[StatementEffect] = (),
    ) -> None:
        super().__init__(items, text)
        self.skipped = tuple(skipped)
        self.statements = tuple(statements)

    @classmethod
    def from_json(cls, document: str) -> Applications:
        """Creates the result from the report of ``rewrite --report``."""
        record = json.loads(document)
        skipped = (Skipped(site["rule"], _path(site["layer"]), site["reason"]) for site in record["skipped"])
        statements = (
            StatementEffect(
                of["statement"], tuple(map(_path, of["removed"])), tuple(of["inputs"]), tuple(of["outputs"])
            )
            for of in record["statements"]
        )
        return cls(map(Application.from_json, record["applied"]), None, skipped, statements)

    def _repr_html_(self) -> str:
        rows = ((a.rule, a.layer, ", ".join(a.added), ", ".join(a.removed)) for a in self)
        return table(("rule", "layer", "added", "removed"), rows)


@dataclass(frozen=True)
class Step:
    """Explanation of one tensor's element type."""

    layer: str
    """The layer that produces the tensor."""
    operation: str
    """The operation of the layer."""
    output: int
    """The output of the layer."""
    line: Optional[int]
    """The line of the file."""
    element_type: str
    """The element type."""
    shape: Shape
    """The shape."""
    sources: tuple[int, ...]
    """The positions of the steps that decide the type; empty if it is decided here."""


class Derivation(_Answer[Step]):
    """Derivation of a tensor's element type: a step for each tensor that influences it, beginning with the tensor
    itself.

    The text is the output of ``typelift why``.
    """

    @staticmethod
    def _entry(entry: dict[str, Any]) -> Step:
        return Step(
            layer=_path(entry["layer"]),
            operation=entry["operation"],
            output=entry["output"],
            line=entry["line"],
            element_type=entry["element_type"],
            shape=Shape.parse(entry["shape"]),
            sources=tuple(source["step"] for source in entry["from"]),
        )

    @property
    def sources(self) -> list[Step]:
        """The steps that decide the type: inputs, constants, attributes."""
        return [step for step in self if not step.sources]

    def _repr_html_(self) -> str:
        return preformatted(str(self))


@dataclass(frozen=True)
class Change:
    """A difference between two models."""

    kind: str
    """``added``, ``removed``, ``operation``, ``attribute``, ``type``, ``shape``, ``input``, ``constant`` or ``names``."""
    layer: str
    """The layer, with the bodies that contain it."""
    subject: Optional[str]
    """The attribute, input or output that differs."""
    before: Optional[str]
    """The value before; ``None`` if there was none."""
    after: Optional[str]
    """The value after; ``None`` if there is none."""
    follows: int
    """The number of differences that follow from this one."""


class Changes(_Answer[Change]):
    """Differences in meaning between two models. The list is empty, and therefore false, if there are none. As text,
    the output of ``typelift diff``."""

    @staticmethod
    def _entry(entry: dict[str, Any]) -> Change:
        subject, before, after = (entry.get(key) for key in ("subject", "before", "after"))
        return Change(entry["kind"], entry["path"], subject, before, after, len(entry.get("follows", ())))

    def _repr_html_(self) -> str:
        rows = ((c.kind, c.layer, c.subject or "", c.before or "", c.after or "") for c in self)
        return table(("", "layer", "what", "before", "after"), rows)


class TensorStats(NamedTuple):
    """An input or output of a model."""

    name: str
    """The name of its tensor, or of its layer if the tensor has none."""
    element_type: str
    """The element type."""
    shape: Shape
    """The shape."""


class WeightStats(NamedTuple):
    """Constants of one element type."""

    element_type: str
    """The element type."""
    constants: int
    """The number of constants."""
    values: int
    """The number of their values. Values that constants share count once."""
    bytes: int
    """The size in bytes. Bytes that constants share count once."""


class DecompressedStats(NamedTuple):
    """Constants that are stored in a narrower type than they are computed with: only Converts to a wider float use
    them."""

    from_type: str
    """The element type in which they are stored."""
    to_type: str
    """The element type in which they are computed with."""
    constants: int
    """The number of constants."""
    bytes: int
    """The size in bytes. Bytes that constants share count once."""


class OperationStats(NamedTuple):
    """The layers of one operation."""

    type: str
    """The operation, as the file spells it."""
    layers: int
    """The number of layers."""
    element_types: dict[str, int]
    """The number of layers by the element type of their first output, the most frequent type first."""


class LargeTensor(NamedTuple):
    """One of the largest tensors."""

    path: str
    """The name of its layer, after those of the surrounding bodies."""
    operation: str
    """The operation that computes it."""
    element_type: str
    """The element type."""
    shape: Shape
    """The shape."""
    bytes: int
    """The size in bytes."""
    bytes_formula: Optional[str]
    """The size as an expression over open lengths; ``None`` if it depends on data."""


class WeightPath(NamedTuple):
    """Data path of weights: from where they are stored to their consumer."""

    types: tuple[str, ...]
    """The element types along the path, the stored type first."""
    operation: str
    """The operation that uses the weights."""
    constants: int
    """The number of weights with this path."""
    bytes: int
    """The size in bytes, as stored."""


class BlockStats(NamedTuple):
    """A block of a model, or equal neighbouring blocks: a row of the precision map."""

    name: str
    """The name: ``model.layers.0–31``."""
    path: str
    """The surrounding bodies, ``loop/body``; empty in the model's own graph."""
    blocks: int
    """The number of blocks in the row."""
    layers: int
    """The number of their layers."""
    weights: tuple[WeightStats, ...]
    """The constants by stored element type, most bytes first."""
    paths: tuple[WeightPath, ...]
    """The data paths of their weights, the most bytes first."""
    computed: dict[str, int]
    """The number of tensors computed in each element type."""
    lossy: dict[tuple[str, str], int]
    """The number of lossy Converts, by source and destination type."""
    marks: int
    """The number of layers with a precision mark."""
    errors: int
    """The number of errors in them."""
    warnings: int
    """The number of warnings in them."""
    differs: tuple[str, ...]
    """The differences from most blocks of its kind."""


def length(text: str) -> Union[int, str, None]:
    """Returns a dimension: a number, an expression, or ``None`` for ``?``."""
    return int(text) if text.isdigit() else None if text == "?" else text


class Symbol(NamedTuple):
    """An open length of a model's inputs."""

    id: str
    """The id: ``s0``."""
    name: str
    """The name, which is unique in the model: ``batch``."""
    axes: tuple[tuple[str, int], ...]
    """The inputs with the axes that have this length."""
    fits: Optional[str]
    """The lengths that fit, ``only 8``; ``None`` if all do."""


class Constraint(NamedTuple):
    """A condition on the lengths of a model."""

    expression: str
    """The expression, as Python with the names of the lengths: ``seq <= 512``."""
    at: str
    """``load`` if OpenVINO refuses other lengths, ``run`` if only a device does or values are wrong."""
    layer: Optional[str]
    """The name of the layer that demands it."""
    line: Optional[int]
    """The line of that layer."""
    reads: Optional[str]
    """The values that a device reads without an error otherwise: ``zeros`` or ``foreign memory``."""


@dataclass(frozen=True, repr=False)
class Lengths:
    """The open lengths of a model. As text, the output of ``typelift infer --shapes``."""

    symbols: tuple[Symbol, ...]
    """The lengths, in the order of the inputs."""
    constraints: tuple[Constraint, ...]
    """The conditions on them, in the order of the graph."""
    text: str = field(repr=False, compare=False)
    """The output of ``typelift infer --shapes``."""

    def __repr__(self) -> str:
        return self.text.rstrip("\n")

    def __str__(self) -> str:
        return shown(self.text)

    @classmethod
    def from_json(cls, text: str, document: str) -> Lengths:
        """Creates lengths from the document of ``infer --shapes``, and its text."""
        record = json.loads(document)

        def constraint(of: dict[str, Any]) -> Constraint:
            first = next(iter(of["because"]), None)
            layer, line = (first["layer"]["name"], first["line"]) if first else (None, None)
            return Constraint(of["named"], of["at"], layer, line, of.get("reads"))

        symbols = sorted(record["symbols"].items(), key=lambda entry: int(entry[0][1:]))
        return cls(
            symbols=tuple(
                Symbol(id, of["name"], tuple((name, axis) for name, axis in of["axes"]), of.get("fits")) for id, of in symbols
            ),
            constraints=tuple(constraint(of) for of in record["constraints"]),
            text=text,
        )


@dataclass(frozen=True, repr=False)
class Stats:
    """Statistics of a model, including its bodies. As text, the output of ``typelift stats``."""

    name: str
    """The name of the model."""
    version: int
    """The version of the IR."""
    layers: int
    """The number of layers."""
    bodies: int
    """The number of bodies."""
    inputs: tuple[TensorStats, ...]
    """The inputs, in order."""
    outputs: tuple[TensorStats, ...]
    """The outputs, in order."""
    weight_bytes: int
    """Returns the bytes of all constants. Bytes that constants share count once."""
    weights: tuple[WeightStats, ...]
    """The constants by element type, the most bytes first."""
    decompressed: tuple[DecompressedStats, ...]
    """Weights that Converts widen before they are used, the most bytes first."""
    tensors: dict[str, int]
    """The number of tensors by element type, without constants, the most frequent first."""
    operations: tuple[OperationStats, ...]
    """The operations, the most frequent first."""
    largest_constants: tuple[LargeTensor, ...]
    """The ten largest constants, the largest first."""
    largest_tensors: tuple[LargeTensor, ...]
    """The ten largest tensors that are computed. An open dimension counts as its lower bound, and as 1 at least."""
    macs: int
    """The multiply-accumulate operations of all layers."""
    macs_is_least: bool
    """True if a dimension is open, so that `macs` is a lower bound."""
    macs_formula: Optional[str]
    """The multiply-accumulate operations as an expression over open lengths; ``None`` if they depend on data."""
    state_bytes: int
    """The bytes of state between inferences. An open dimension counts as its lower bound, and as 1 at least."""
    state_formula: Optional[str]
    """The bytes of state as an expression over ``batch`` and ``past``."""
    map: tuple[BlockStats, ...]
    """The precision map: the blocks in the order of the data, with the types they store and compute in."""
    text: str = field(repr=False, compare=False)
    """The output of ``typelift stats``."""

    def __repr__(self) -> str:
        return self.text.rstrip("\n")

    @classmethod
    def from_json(cls, text: str, document: str) -> Stats:
        """Creates statistics from the counts and the map as JSON, and their text."""
        record, rows = json.loads(document)
        state = record.get("state", {"bytes": 0, "bytes_formula": None})

        def tensors(entries: list[dict[str, str]]) -> tuple[TensorStats, ...]:
            return tuple(TensorStats(of["name"], of["element_type"], Shape.parse(of["shape"])) for of in entries)

        def large(entries: list[dict[str, Any]]) -> tuple[LargeTensor, ...]:
            return tuple(LargeTensor(**{**of, "shape": Shape.parse(of["shape"])}) for of in entries)

        def block(row: dict[str, Any]) -> BlockStats:
            parts = {
                "weights": tuple(WeightStats(**weight) for weight in row["weights"]),
                "paths": tuple(WeightPath(**{**path, "types": tuple(path["types"])}) for path in row["paths"]),
                "lossy": {(of["from"], of["to"]): of["count"] for of in row["lossy"]},
                "differs": tuple(row["differs"]),
            }
            return BlockStats(**{**row, **parts})

        return cls(
            name=record["name"],
            version=record["version"],
            layers=record["layers"],
            bodies=record["bodies"],
            inputs=tensors(record["inputs"]),
            outputs=tensors(record["outputs"]),
            weight_bytes=record["weight_bytes"],
            weights=tuple(WeightStats(**weight) for weight in record["weights"]),
            decompressed=tuple(
                DecompressedStats(of["from"], of["to"], of["constants"], of["bytes"]) for of in record["decompressed"]
            ),
            tensors=record["tensors"],
            operations=tuple(OperationStats(of["type"], of["count"], of["element_types"]) for of in record["operations"]),
            largest_constants=large(record["largest_constants"]),
            largest_tensors=large(record["largest_tensors"]),
            macs=record["macs"],
            macs_is_least=record["macs_is_least"],
            macs_formula=record["macs_formula"],
            state_bytes=state["bytes"],
            state_formula=state["bytes_formula"],
            map=tuple(block(row) for row in rows),
            text=text,
        )

    def __str__(self) -> str:
        return shown(self.text)

    def _repr_html_(self) -> str:
        def kept(weights: Iterable[WeightStats]) -> str:
            return ", ".join(f"{of.element_type} {of.bytes:,}" for of in weights)

        def counted(types: Mapping[str, int]) -> str:
            return ", ".join(f"{name} {count:,}" for name, count in types.items())

        def name(of: BlockStats) -> str:
            return f"{of.path}/{of.name}" if of.path else of.name

        tensors = ((of.name, f"{of.element_type}{of.shape}") for of in (*self.inputs, *self.outputs))
        blocks = (
            (name(of), f"{of.layers:,}", kept(of.weights), counted(of.computed), "; ".join(of.differs)) for of in self.map
        )
        large = ((of.path, f"{of.element_type}{of.shape}", f"{of.bytes:,}") for of in self.largest_constants)
        operations = ((of.type, f"{of.layers:,}", counted(of.element_types)) for of in self.operations)
        least = "at least " if self.macs_is_least else ""
        facts = f"{self.layers:,} layers, {self.weight_bytes:,} bytes of weights, {least}{self.macs:,} MACs"
        return (
            f"<p><b>{html.escape(shown(self.name))}</b>: IR version {self.version}, {facts}</p>"
            + table(("block", "layers", "stored bytes", "computed tensors", "differs from its siblings"), blocks)
            + table(("largest constant", "type", "bytes"), large)
            + table(("operation", "layers", "types"), operations)
            + table(("input or output", "type"), tensors)
        )


class Promotion(str):
    """The common type of operands: a text such as ``f16[2]``, with its parts as attributes."""

    element_type: str
    """The element type of the result."""
    common_type: str
    """The element type of the computation."""
    shape: Optional[Shape]
    """The shape, if the operands have shapes and the operation is element-wise."""
    weak: bool
    """True if it yields to other types, as Python numbers do under JAX."""
    steps: tuple[str, ...]
    """The steps of the derivation."""

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Promotion:
        """Creates a promotion from a record of ``promote --format json``."""
        weak, shape = bool(record.get("weak")), record.get("shape")
        promotion = cls(f"{record['element_type']}{'*' if weak else ''}{shape or ''}")
        promotion.element_type = record["element_type"]
        promotion.common_type = record["common_type"]
        promotion.weak = weak
        promotion.shape = None if shape is None else Shape.parse(shape)
        promotion.steps = tuple(record.get("steps", ()))
        return promotion
