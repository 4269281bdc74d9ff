"""What typelift says, as data: shapes, diagnostics, changes."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, Tuple, TypeVar, Union, overload

from typelift._words import for_python

if TYPE_CHECKING:
    from typelift import _typelift

T = TypeVar("T")
L = TypeVar("L", bound="_List[Any]")
A = TypeVar("A", bound="_Answer[Any]")


class Dim(NamedTuple):
    """A dimension that is not known before run time, and what is known of it.

    >>> str(Dim(0, None)), str(Dim(1, 8))
    ('?', '1..8')
    """

    min: int
    """The least that it can be."""
    max: Optional[int]
    """The most that it can be; ``None`` where there is no limit."""

    @classmethod
    def parse(cls, text: str) -> Union[int, Dim]:
        """Reads a dimension as shapes show it: ``3``, ``?``, ``1..8``, ``2..``, ``..4``."""
        low, dots, high = text.strip().partition("..")
        if not dots:
            return cls(0, None) if low in ("?", "-1") else int(low)
        return cls(int(low or 0), int(high) if high else None)

    def __str__(self) -> str:
        if self.max is None:
            return f"{self.min}.." if self.min else "?"
        return f"{self.min or ''}..{self.max}"


class Shape(Tuple[Union[int, Dim], ...]):
    """The shape of a tensor: a tuple of lengths, with a :class:`Dim` where a length is not known.

    It equals any tuple or list of the same dimensions. The shape of unknown rank, ``[...]``, is empty and equals only itself.

    >>> shape = Shape.parse("[1,3,?,1..224]")
    >>> shape[1], shape.rank, shape.is_static, str(shape[3])
    (3, 4, False, '1..224')
    >>> Shape.parse("[2,3]") == (2, 3), Shape.parse("[...]") == ()
    (True, False)
    """

    rank: Optional[int]
    """The number of dimensions; ``None`` where it is not known."""

    def __new__(cls, dims: Optional[Iterable[Union[int, Dim]]] = ()) -> Shape:
        """A shape of these dimensions; of unknown rank for ``None``."""
        shape = super().__new__(cls, () if dims is None else dims)
        shape.rank = None if dims is None else len(shape)
        return shape

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Reads a shape as :func:`str` writes it; the brackets can be left out."""
        text = text.strip()
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1].strip()
        if text == "...":
            return cls(None)
        return cls(Dim.parse(dim) for dim in text.split(",")) if text else cls()

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
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
    """``error`` if OpenVINO refuses the model for it, ``warning`` or ``note``."""
    message: str
    """What is wrong, one sentence."""
    layer: Optional[str] = None
    """The layer it is about, with the bodies it is in, such as ``loop/body/x``: ``model[d.layer]`` is the layer."""
    layer_id: Optional[int] = None
    """The id of that layer."""
    line: Optional[int] = None
    """The line in the file, from 1."""
    column: Optional[int] = None
    """The column in the line, in characters from 1."""
    notes: tuple[str, ...] = ()
    """Facts that led to it, such as the tensors that meet."""
    help: str = ""
    """What can be done, a line each."""
    fix: Optional[str] = None
    """A command that was tried and fixes it, where there is one."""

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Diagnostic:
        """From an entry of the document that ``check --format json`` prints."""
        layer = entry["layer"]
        related = (tensor["message"] for tensor in entry.get("related", ()))
        return cls(
            code=entry["code"],
            severity=entry["severity"],
            message=for_python(entry["message"]),
            layer=None if layer is None else _path(layer),
            layer_id=None if layer is None else layer["id"],
            line=entry["line"],
            column=entry["column"],
            notes=tuple(map(for_python, (*related, *entry["notes"]))),
            help="\n".join(map(for_python, entry["help"])),
            fix=entry["fix"],
        )

    @property
    def is_error(self) -> bool:
        """Whether OpenVINO refuses the model for it."""
        return self.severity == "error"

    def __str__(self) -> str:
        place = "" if self.line is None else f"{self.line}:{self.column}: "
        return f"{place}{self.severity}[{self.code}]: {self.message}"


def _path(layer: dict[str, Any]) -> str:
    """The name of a layer, after those of the bodies that it is in."""
    return f"{layer['path']}/{layer['name']}" if layer["path"] else str(layer["name"])


_ROWS = 200
"""How many rows of a table a notebook gets."""

_CELL = 500
"""How many characters of a cell a notebook gets."""

_ITEMS = 10
"""How many items of a list its representation has."""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in HTML, of which a notebook can hold many: the first rows, and how many more there are."""

    def cell(tag: str, value: object) -> str:
        text = str(value)
        text = text if len(text) <= _CELL else f"{text[:_CELL]}…"
        return f'<{tag} style="text-align:left">{html.escape(text)}</{tag}>'

    def line(tag: str, cells: Iterable[object]) -> str:
        return "<tr>" + "".join(cell(tag, value) for value in cells) + "</tr>"

    rest = iter(rows)
    body = "".join(line("td", row) for row in islice(rest, _ROWS))
    more = sum(1 for _ in rest)
    end = f"<p>and {more} more</p>" if more else ""
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>{end}"


def preformatted(text: str) -> str:
    """A text in HTML whose columns stay columns, in an exported notebook too."""
    return f'<pre style="font-family:monospace; white-space:pre">{html.escape(text)}</pre>'


class _List(Sequence[T], Generic[T]):
    """A list that does not change, with a text. A slice is a list of the same kind; ``pandas.DataFrame`` takes both."""

    _text: Optional[str]

    def __init__(self, items: Iterable[T] = (), text: Optional[str] = None) -> None:
        self._items = tuple(items)
        self._text = text

    def _all(self) -> tuple[T, ...]:
        return self._items

    def _first(self) -> tuple[T, ...]:
        """Those that :func:`repr` shows."""
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
        return self._text if self._text is not None else "".join(f"{item}\n" for item in self._all())


class _Answer(_List[T]):
    """A list of the native part's. What nobody reads is not made."""

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
        """An item, from what JSON has of it."""
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
        return super().__str__() if self._answer is None else self._answer.text(False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._all(), str(self), self.full_text)

    @property
    def full_text(self) -> str:
        """The text with everything, which :func:`str` cuts to a screen."""
        return self._full_text if self._answer is None else self._answer.text(True)


class Diagnostics(_List[Diagnostic]):
    """Diagnostics in the order in which to deal with them. As text, they show the lines of the file that they point at."""

    @classmethod
    def from_json(cls, document: str, text: Optional[str] = None) -> Diagnostics:
        """From the document that ``check --format json`` prints, and the text that goes with it."""
        return cls(map(Diagnostic.from_json, json.loads(document)["diagnostics"]), text)

    @property
    def errors(self) -> list[Diagnostic]:
        """Those for which OpenVINO refuses the model."""
        return [diagnostic for diagnostic in self if diagnostic.is_error]

    @property
    def warnings(self) -> list[Diagnostic]:
        """What OpenVINO accepts although it is hardly meant."""
        return [diagnostic for diagnostic in self if diagnostic.severity == "warning"]

    def _repr_html_(self) -> str:
        rows = ((d.severity, d.code, d.layer or "", d.line or "", d.message, d.help) for d in self)
        return table(("severity", "code", "layer", "line", "message", "help"), rows)


@dataclass(frozen=True)
class Conversion:
    """What a conversion did to one layer."""

    action: str
    """``inserted``, ``removed``, ``used``, ``corrected``, ``retyped`` or, of a constant, ``converted``."""
    layer: str
    """The Convert, the layer that is used instead, or the input or output."""
    from_type: str
    """The element type that it converts from, or had."""
    to_type: str
    """The element type that it converts to, or has."""
    reason: str
    """Why."""
    source: Optional[str] = None
    """The layer whose tensor an inserted Convert converts."""
    can_lose: Optional[tuple[str, ...]] = None
    """What values can lose, by their types alone; ``None`` where that is not known."""
    audit: Optional[dict[str, float]] = None
    """What became of the values of a constant, as ``convert --report`` counts it; ``None`` where no constant was converted."""


@dataclass(frozen=True)
class Application:
    """One application of a rule."""

    rule: str
    """The name of the rule, or its text."""
    layer: str
    """The layer at which its pattern matched."""
    added: tuple[str, ...]
    """The layers that came."""
    removed: tuple[str, ...]
    """The layers that went."""
    non_finite: int = 0
    """How many values of new constants are infinite or not a number, though those that they are computed from are finite."""

    @classmethod
    def from_json(cls, site: dict[str, Any]) -> Application:
        """From an entry of the report that ``rewrite --report`` writes."""
        added, removed = (tuple(map(_path, site[key])) for key in ("added", "removed"))
        return cls(site["rule"], _path(site["layer"]), added, removed, site.get("non_finite", 0))

    def __str__(self) -> str:
        return f"{self.rule} at {self.layer}"


@dataclass(frozen=True)
class Skipped:
    """A place where a rule matched and was not applied."""

    rule: str
    """The name of the rule, or its text."""
    layer: str
    """The layer at which its pattern matched."""
    reason: str
    """Why nothing could take its place."""

    def __str__(self) -> str:
        return f"{self.rule} at {self.layer}: {self.reason}"


@dataclass(frozen=True)
class Retargeting:
    """What was done so that an older release reads a model."""

    applied: tuple[Application, ...]
    """Where rules replaced operations that the release does not have."""
    versions: tuple[str, ...]
    """Layers whose operation stayed the same and names an operation set that the release has."""
    names: tuple[str, ...]
    """Layers that had the name of another one, and have one of their own now."""
    marks: tuple[str, ...]
    """Layers whose marks that keep a precision are spelled otherwise now."""
    format: Optional[int]
    """The version of the format, where it changed."""

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Retargeting:
        """From the part ``target`` of the report that ``convert --report`` writes."""
        versions, names, marks = (tuple(map(_path, record[key])) for key in ("versions", "names", "marks"))
        return cls(tuple(map(Application.from_json, record["applied"])), versions, names, marks, record.get("format"))

    def __bool__(self) -> bool:
        """Whether anything was done."""
        return bool(self.applied or self.versions or self.names or self.marks or self.format is not None)


class Conversions(_List[Conversion]):
    """What :meth:`Model.convert` did, as data; as text, what ``typelift convert --dry-run`` prints.

    It is true if anything was done, with types, with stored constants or for an older release.

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
    ) -> None:
        super().__init__(items, text)
        self._warnings = warnings or Diagnostics()
        self._document = document or {}
        self._report: Optional[_typelift.Report] = None

    @classmethod
    def of_report(cls, report: _typelift.Report) -> Conversions:
        """For :meth:`Model.convert`. What nobody reads is not made."""
        conversions = cls()
        conversions._report = report
        return conversions

    def _read(self) -> None:
        """Has the report made, if it is not."""
        if self._report is not None:
            text, document = self._report.print()
            record = json.loads(document)
            self._items = tuple(map(self._entry, record["converts"]))
            self._text, self._document = text, record
            self._warnings = Diagnostics.from_json(self._report.warnings())
            self._report = None

    @property
    def warnings(self) -> Diagnostics:
        """What is lost: values of constants, bounds of shapes."""
        self._read()
        return self._warnings

    @property
    def document(self) -> dict[str, Any]:
        """All that ``convert --report`` writes."""
        self._read()
        return self._document

    @property
    def target(self) -> Optional[Retargeting]:
        """What was done for an older release; ``None`` where none was asked for."""
        target = self.document.get("target")
        return None if target is None else Retargeting.from_json(target)

    @property
    def constants(self) -> tuple[dict[str, Any], ...]:
        """The constants that ``compress``, ``decompress`` and ``types`` are about, each as ``convert --report`` writes it:
        ``from``, ``to``, ``action``, why it stays, what its values lose."""
        return tuple(self.document.get("precision", {}).get("constants", ()))

    def _all(self) -> tuple[Conversion, ...]:
        self._read()
        return self._items

    def __str__(self) -> str:
        self._read()
        return super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        self._read()
        return type(self), (self._items, self._text, self._warnings, self._document)

    def __bool__(self) -> bool:
        stored = self.document.get("precision", {}).get("totals", {}).get("changed", 0)
        return bool(self._all() or self.target or stored)

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


class Applications(_List[Application]):
    """What :meth:`Model.rewrite` did: each application of a rule, in order."""

    skipped: tuple[Skipped, ...]
    """Where a rule that may skip matches was refused."""

    def __init__(
        self, items: Iterable[Application] = (), text: Optional[str] = None, skipped: Iterable[Skipped] = ()
    ) -> None:
        super().__init__(items, text)
        self.skipped = tuple(skipped)

    @classmethod
    def from_json(cls, document: str) -> Applications:
        """From the report that ``rewrite --report`` writes."""
        record = json.loads(document)
        skipped = (Skipped(site["rule"], _path(site["layer"]), site["reason"]) for site in record["skipped"])
        return cls(map(Application.from_json, record["applied"]), None, skipped)

    def _repr_html_(self) -> str:
        rows = ((a.rule, a.layer, ", ".join(a.added), ", ".join(a.removed)) for a in self)
        return table(("rule", "layer", "added", "removed"), rows)


@dataclass(frozen=True)
class Step:
    """Why one tensor has its element type."""

    layer: str
    """The layer that makes the tensor."""
    operation: str
    """Its operation."""
    output: int
    """Which of its outputs the tensor is."""
    line: Optional[int]
    """The line of the file."""
    element_type: str
    """The element type."""
    shape: Shape
    """The shape."""
    sources: tuple[int, ...]
    """The steps that decide it, by their places among all steps; none where it is decided here."""


class Derivation(_Answer[Step]):
    """How the element type of a tensor came to be: a step for each tensor that has a say in it, the one asked for first.

    As text, what ``typelift why`` prints.
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
        """The steps where the type is decided: inputs, constants, attributes."""
        return [step for step in self if not step.sources]

    def _repr_html_(self) -> str:
        return preformatted(str(self))


@dataclass(frozen=True)
class Change:
    """A difference between two models."""

    kind: str
    """``added``, ``removed``, ``operation``, ``attribute``, ``type``, ``shape``, ``input``, ``constant`` or ``names``."""
    layer: str
    """The layer, with the bodies it is in."""
    subject: Optional[str]
    """What of it: an attribute, an input, an output."""
    before: Optional[str]
    """What it was; ``None`` where it was not there."""
    after: Optional[str]
    """What it is; ``None`` where it is not there."""
    follows: int
    """How many differences only follow from this one."""


class Changes(_Answer[Change]):
    """What differs in meaning between two models; empty, and so false, where nothing does. As text, what ``typelift diff`` prints."""

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
    """The name of its tensor, or of its layer where the tensor has none."""
    element_type: str
    """Its element type."""
    shape: Shape
    """Its shape."""


class WeightStats(NamedTuple):
    """The constants of one element type."""

    element_type: str
    """The element type."""
    constants: int
    """How many constants there are."""
    values: int
    """How many values they have, those that constants share counted once."""
    bytes: int
    """How many bytes they take, those that constants share counted once."""


class DecompressedStats(NamedTuple):
    """Constants that are stored narrower than they are computed with: only Converts to a wider float use them."""

    from_type: str
    """How they are stored."""
    to_type: str
    """What they are computed with."""
    constants: int
    """How many constants there are."""
    bytes: int
    """How many bytes they take, those that constants share counted once."""


class OperationStats(NamedTuple):
    """The layers of one operation."""

    type: str
    """The operation as the file spells it."""
    layers: int
    """How many there are."""
    element_types: dict[str, int]
    """How many of them have a first output of each element type, the most first."""


class WeightPath(NamedTuple):
    """A way that weights take from where they are stored to what uses them."""

    types: tuple[str, ...]
    """The element types on the way, the stored one first."""
    operation: str
    """The operation that uses the weights."""
    constants: int
    """How many weights take it."""
    bytes: int
    """How many bytes they take where they are stored."""


class BlockStats(NamedTuple):
    """A block of a model, or neighbours that are alike: a row of the precision map."""

    name: str
    """What it is called: ``model.layers.0–31``."""
    path: str
    """The bodies around it, ``loop/body``; empty in the model's own graph."""
    blocks: int
    """How many blocks it stands for."""
    layers: int
    """How many layers they have."""
    weights: tuple[WeightStats, ...]
    """Their constants by the element type they are stored in, the most bytes first."""
    paths: tuple[WeightPath, ...]
    """The ways of their weights, the most bytes first."""
    computed: dict[str, int]
    """How many tensors they compute of each element type."""
    lossy: dict[tuple[str, str], int]
    """How many Converts can lose something, by the types that they convert from and to."""
    marks: int
    """How many layers have a mark that keeps their precision."""
    errors: int
    """How many errors were found in them."""
    warnings: int
    """How many warnings were found in them."""
    differs: tuple[str, ...]
    """In what it differs from most blocks of its kind."""


@dataclass(frozen=True)
class Stats:
    """What a model consists of, its bodies included. As text, what ``typelift stats`` prints."""

    name: str
    """The name of the model."""
    version: int
    """The version of the IR."""
    layers: int
    """How many layers there are."""
    bodies: int
    """How many bodies there are."""
    inputs: tuple[TensorStats, ...]
    """The inputs, in order."""
    outputs: tuple[TensorStats, ...]
    """The outputs, in order."""
    weight_bytes: int
    """The bytes of all constants, those that constants share counted once."""
    weights: tuple[WeightStats, ...]
    """The constants by element type, the most bytes first."""
    decompressed: tuple[DecompressedStats, ...]
    """Weights that Converts widen before they are used, the most bytes first."""
    tensors: dict[str, int]
    """How many tensors there are of each element type, constants apart, the most first."""
    operations: tuple[OperationStats, ...]
    """The operations, the most frequent first."""
    map: tuple[BlockStats, ...]
    """Where the model keeps which precision: its blocks in the order of the data."""
    text: str = field(repr=False, compare=False)
    """What ``typelift stats`` prints."""

    @classmethod
    def from_json(cls, text: str, document: str) -> Stats:
        """From its counts and its map as JSON, and the text that goes with them."""
        record, rows = json.loads(document)

        def tensors(entries: list[dict[str, str]]) -> tuple[TensorStats, ...]:
            return tuple(TensorStats(of["name"], of["element_type"], Shape.parse(of["shape"])) for of in entries)

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
            map=tuple(block(row) for row in rows),
            text=text,
        )

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return preformatted(self.text)


class Promotion(str):
    """The common type of operands: a text such as ``f16[2]``, with its parts as attributes."""

    element_type: str
    """The element type of the result."""
    common_type: str
    """The element type that it is computed in."""
    shape: Optional[Shape]
    """The shape, where the operands have shapes and the operation is element-wise."""
    weak: bool
    """Whether it gives way to other types, as Python numbers do under JAX."""
    steps: tuple[str, ...]
    """How it comes to be."""

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Promotion:
        """From a record that ``promote --format json`` prints."""
        weak, shape = bool(record.get("weak")), record.get("shape")
        promotion = cls(f"{record['element_type']}{'*' if weak else ''}{shape or ''}")
        promotion.element_type = record["element_type"]
        promotion.common_type = record["common_type"]
        promotion.weak = weak
        promotion.shape = None if shape is None else Shape.parse(shape)
        promotion.steps = tuple(record.get("steps", ()))
        return promotion
