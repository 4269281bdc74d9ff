"""Models."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Callable, Literal, Optional, Protocol, Union

from typelift import _typelift
from typelift._arrays import element_type as _type_name
from typelift._blocks import Blocks
from typelift._data import (
    Applications,
    Changes,
    Conversions,
    Derivation,
    Diagnostics,
    Lengths,
    Shape,
    Stats,
    shown,
    table,
)
from typelift._edit import Graph
from typelift._errors import ModelError, UnknownNameError
from typelift._layer import Interface, Layer
from typelift._progress import Progress, told
from typelift._rules import Pass, Rule


class _DType(Protocol):
    """An element type of NumPy, ml_dtypes or PyTorch."""

    @property
    def itemsize(self) -> int: ...


class _OpenVINOType(Protocol):
    """An element type of OpenVINO."""

    @property
    def bitwidth(self) -> int: ...


TypeLike = Union[str, type, _DType, _OpenVINOType]
"""An element type: ``"f16"``, or one of NumPy, ml_dtypes or OpenVINO."""
AlignRules = Literal["declared", "openvino", "pytorch", "paddle", "off"]
"""Which types inputs get that must agree and do not."""
QuantizationMode = Literal["int8_asym", "int8_sym", "int4_asym", "int4_sym", "nf4", "fp4", "mxfp4"]
"""How weights are stored, in the words of nncf."""
WeightsMode = Literal["copy", "link", "none", "compact"]
"""How a written model gets its ``.bin``."""
PathOrStr = Union[str, "os.PathLike[str]"]
Statements = Union[str, "os.PathLike[str]", Rule]
"""Text with one statement per line, a file of such text, or a rule."""
ShapeLike = Union[str, Iterable[Union[int, str, None, tuple[int, Optional[int]]]]]
"""A shape as text, ``"[1,3,?,1..224]"``, or its dimensions. ``None`` and ``-1`` are unknown lengths, ``(1, 8)`` is a
range."""


class _Info(MutableMapping[str, str]):
    """The metadata of a model by the keys that lead to a value."""

    def __init__(self, native: _typelift.Model) -> None:
        self._native = native

    def __getitem__(self, path: str) -> str:
        value = self._native.rt_info(path)
        if value is None:
            raise KeyError(path)
        return value

    def __setitem__(self, path: str, value: str) -> None:
        self._native.set_rt_info(path, value)

    def __delitem__(self, path: str) -> None:
        if not self._native.remove_rt_info(path):
            raise KeyError(path)

    def __iter__(self) -> Iterator[str]:
        return iter([path for path, _ in self._native.rt_info_entries()])

    def __len__(self) -> int:
        return len(self._native.rt_info_entries())

    def __repr__(self) -> str:
        return f"model.info: {dict(self)}"


def _quantization(quantize: Union[str, Mapping[str, Any], "os.PathLike[str]"]) -> Union[str, Mapping[str, Any]]:
    """Returns a mode, its options, or the text of a plan."""
    return {"plan": Path(quantize).read_text(encoding="utf-8")} if isinstance(quantize, os.PathLike) else quantize


def _option(value: Any) -> Any:
    """Spells an option: element types as text."""
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return [(name, _type_name(ty)) for name, ty in value.items()]
    return [_option(item) for item in value] if isinstance(value, Iterable) else _type_name(value)


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "set_shapes": lambda shapes: [(name, _shape_text(shape)) for name, shape in shapes.items()],
    "types": lambda types: [(_type_name(old), _type_name(new)) for old, new in types.items()],
    "quantize": _quantization,
    "max_error": float,
    "input_layouts": lambda layouts: list(layouts.items()),
    "output_layouts": lambda layouts: list(layouts.items()),
}
"""Spellings of options that :func:`_option` does not spell."""


def _options(given: Mapping[str, Any]) -> str:
    """Spells options for the native part. ``None`` is the default."""
    return json.dumps({name: _OPTIONS.get(name, _option)(value) for name, value in given.items() if value is not None})


_PAGE_LIMIT = 1_000_000
"""The largest page that a notebook shows as a picture."""

_DATA_LIMIT = 250_000
"""The limit on the data of such a page. A larger model is shown as runs of layers, which keeps the page below its
limit."""

_PICTURE_LIMIT = 50_000
"""The largest number of layers for which a notebook draws a picture unasked, because drawing takes time."""

_ROWS_SHOWN = 40
"""The number of layers in the table that a notebook shows."""


class Model:
    """An OpenVINO model, with its types and shapes inferred. :func:`typelift.open` reads one.

    A model is a collection of layers: iterate over it, or use ``len(model)``. ``model["encoder/add_3"]`` finds a layer
    by its name or that of a tensor, ``model["loop/body/x"]`` inside a body, ``model[7]`` by id. An edit is done
    completely or, with an exception, not at all. Threads can share a model: work runs without the interpreter lock, and
    readers see the state before or after an edit.

    >>> import typelift
    >>> model = typelift.from_text('''
    ...     x = Parameter : f16[1,3]
    ...     c = Const(0.5) : f32[]
    ...     y = Multiply(x, c)
    ...     r = Result(y)
    ... ''')
    >>> model
    <Model: 4 layers, 1 input, 1 output>
    >>> len(model), "y" in model, [layer.type for layer in model]
    (4, True, ['Parameter', 'Const', 'Multiply', 'Result'])
    >>> [diagnostic.code for diagnostic in model.check().errors]
    ['type-mismatch']
    >>> report = model.convert(align="pytorch")
    >>> [(change.action, change.from_type, change.to_type) for change in report]
    [('inserted', 'f32', 'f16')]
    >>> model.check().errors
    []
    """

    __slots__ = ("_native",)

    def __init__(self, native: _typelift.Model) -> None:
        """Created by :func:`typelift.open`, :func:`typelift.loads` and :func:`typelift.from_text`."""
        self._native = native

    @property
    def name(self) -> str:
        """The name; empty if the file has none."""
        return self._native.name

    @property
    def version(self) -> int:
        """The version of the IR, 10 or 11."""
        return self._native.version

    @property
    def file(self) -> str:
        """The path from which it was read; ``<memory>`` for data in memory."""
        return self._native.file

    @property
    def inputs(self) -> Interface:
        """The inputs: ``model.inputs["images"].element_type``, ``model.inputs[0].shape``."""
        return Interface(self._native.inputs, self._native.find_input, is_input=True)

    @property
    def outputs(self) -> Interface:
        """The outputs, by the name of the tensor, of the Result, or of the layer that produces the tensor."""
        return Interface(self._native.outputs, self._native.find_output, is_input=False)

    @property
    def layers(self) -> list[Layer]:
        """The layers in the order of the file, without those of bodies."""
        return [Layer(native) for native in self._native.layers]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, key: Union[str, int]) -> Layer:
        """Returns the layer with this name, tensor name, path or id.

        Raises:
            KeyError: There is no such layer or tensor, or more than one.
        """
        if isinstance(key, str):
            return Layer(self._native.find(key))
        native = self._native.layer(key) if key >= 0 else None
        if native is None:
            raise UnknownNameError(f"no layer has the id {key}")
        return Layer(native)

    def __contains__(self, key: object) -> bool:
        try:
            if isinstance(key, Layer):
                return self[key.path] == key or key in self.layers
            return isinstance(key, (str, int)) and self[key] is not None
        except UnknownNameError:
            return False

    def edit(self) -> Graph:
        """Begins a batch of edits: ``with model.edit() as graph``. See :class:`typelift.Graph`.

        Raises:
            ModelError: At the end of the batch, if the edits cause new errors. The model is unchanged then.
            ValueError: The graph does not accept an edit.
        """
        return Graph(self._native)

    def join(self, other: Model, joints: Optional[Mapping[str, str]] = None, *, prefix: str = "") -> None:
        """Appends another model to this one.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[2]\\ny = Relu(x)\\nr = Result(y)")
        >>> head = typelift.from_text("a = Parameter : f32[2]\\nb = Abs(a)\\nr = Result(b)")
        >>> model.join(head, {"y": "a"})
        >>> [layer.name for layer in model]
        ['x', 'y', 'b', 'r']

        Args:
            other: The other model.
            joints: Outputs of this model by the inputs of the other one that they feed. The default connects equal
                names, or the only pair.
            prefix: A prefix for all names of the other model.

        Raises:
            ValueError: An input does not accept its tensor, or both models have tensors, inputs or outputs of one name.
            KeyError: There is no such output or input.
        """
        self._native.join(other._native, list((joints or {}).items()), prefix)

    @property
    def info(self) -> MutableMapping[str, str]:
        """The metadata by the keys that lead to a value. Assign to set a value, ``del`` to remove a value or a group. A key
        with a slash is in quotes.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[2]\\nr = Result(x)")
        >>> model.info["runtime_options/KV_CACHE_PRECISION"] = "f16"
        >>> dict(model.info)
        {'runtime_options/KV_CACHE_PRECISION': 'f16'}
        >>> del model.info["runtime_options"]
        >>> len(model.info)
        0
        """
        return _Info(self._native)

    def rt_info(self, path: str) -> Optional[str]:
        """Returns ``model.info.get(path)``."""
        return self.info.get(path)

    def set_rt_info(self, path: str, value: str) -> None:
        """Does ``model.info[path] = value``."""
        self.info[path] = value

    def check(self, *, target: Optional[str] = None, progress: Progress = False) -> Diagnostics:
        """Returns every error, warning and note about the model, as ``typelift check`` reports them.

        Args:
            target: Report as errors the parts that this OpenVINO release does not support, such as ``"2023.3"``.
        """
        with told(progress):
            return Diagnostics.from_json(*self._native.check(target))

    def infer(self) -> Diagnostics:
        """Recomputes types and shapes, makes :meth:`save` write every port as inferred, and returns the findings.

        Models are always inferred. This method is for files whose ports declare something else.
        """
        return Diagnostics.from_json(*self._native.infer())

    def convert(
        self,
        align: AlignRules = "declared",
        *,
        set_types: Optional[Mapping[str, TypeLike]] = None,
        set_shapes: Optional[Mapping[str, ShapeLike]] = None,
        input_types: Optional[Mapping[str, TypeLike]] = None,
        output_types: Optional[Mapping[str, TypeLike]] = None,
        input_layouts: Optional[Mapping[str, str]] = None,
        output_layouts: Optional[Mapping[str, str]] = None,
        types: Optional[Mapping[str, TypeLike]] = None,
        compress: Optional[TypeLike] = None,
        decompress: Union[bool, str, Iterable[str]] = False,
        quantize: Union[QuantizationMode, Mapping[str, Any], "os.PathLike[str]", None] = None,
        dequantize: Union[bool, TypeLike] = False,
        strip_weights: Optional[Literal["zero", "random"]] = None,
        like: str = "2026.4",
        max_error: Optional[float] = None,
        keep: Iterable[str] = (),
        only: Iterable[str] = (),
        keep_io: bool = False,
        mark_keeps: bool = False,
        keep_noop_converts: bool = False,
        eliminate_converts: bool = False,
        promote_unsafe: bool = False,
        pytorch_scalar_promotion: bool = False,
        u64_integer_promotion_target: str = "f32",
        target: Optional[str] = None,
        device: Optional[str] = None,
        progress: Progress = False,
    ) -> Conversions:
        """Inserts Converts until element types agree and every promotion is explicit, as ``typelift convert`` does.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f64[3]\\nc = Const([1, 2, 3]) : f64[3]\\ny = Add(x, c)\\nr = Result(y)")
        >>> _ = model.convert(types={"f64": "f32"})
        >>> model.inputs["x"].element_type, model["y"].outputs[0].element_type
        ('f32', 'f32')

        Args:
            align: The target type of inputs that must agree. ``"declared"`` is the type declared in the file. A rule
                set such as ``"openvino"`` or ``"pytorch"`` gives its common type. ``"off"`` changes nothing.
            set_types: Inputs that get another element type; the computation after them changes with it.
            set_shapes: Inputs that get another shape.
            input_types: Inputs that get another element type with the computation unchanged: a Convert is added after
                them.
            output_types: Outputs that get another element type, by a Convert before them.
            input_layouts: Inputs that get another layout, such as ``{"image": "NCHW:NHWC"}``, by a Transpose after them.
            output_layouts: Outputs that get another layout, by a Transpose before them.
            types: Element types to replace in the whole model, all at once, such as ``{"f64": "f32"}``.
            compress: Store constants in ``"f16"`` or ``"bf16"``, as OpenVINO's ``save_model`` does.
            decompress: Undo compression: store constants in the type in which they are used. ``True`` selects all, a
                list only those of these types.
            quantize: Store weights as codes of 4 or 8 bits with scales, as nncf's ``compress_weights`` does without data: a
                mode such as ``"int8_asym"`` or ``"int4_sym"``. A mapping adds options: ``{"mode": "int4_sym",
                "group_size": 64, "ratio": 0.8, "all_layers": True, "backup": "none", "group_fallback": "adjust"}``. A
                path is a plan that ``write_plan`` of the result wrote. ``quantized`` of the result lists the loss
                of each constant.
            dequantize: Store the values of quantized constants: ``True`` in the type in which they are used, or in
                ``"f16"``.
            strip_weights: Replace the values of constants by ``"zero"`` or ``"random"`` ones.
            like: The release whose rules say which constants ``compress`` skips: OpenVINO ``"2026.4"`` or ``"2025.2"``.
                ``"all"`` compresses every constant whose values fit the type.
            max_error: Fail if the relative error of a constant's value would exceed this number, such as ``1e-3``.
                ``constants`` of the result lists the loss of each constant. To see it without a change, convert a copy
                of the model.
            keep: The layers that ``types`` and ``compress`` skip: names with ``*`` and ``?``, ``"type:Softmax"``,
                ``"auto"``, ``"risk:f16"``.
            only: The only layers that ``types``, ``compress``, ``quantize`` and ``dequantize`` change, with the constants
                that no other layer uses. Layers of ``keep`` are left out.
            keep_io: Keep the types of inputs and outputs.
            mark_keeps: Also add precision marks to the kept layers, so that OpenVINO keeps their precision at run time.
            keep_noop_converts: Keep Converts without effect, as OpenVINO's own pass does.
            eliminate_converts: Remove every Convert whose result provably equals another tensor.
            promote_unsafe: With OpenVINO's rules, also promote to types that cannot hold every value.
            pytorch_scalar_promotion: With OpenVINO's rules, let tensors with dimensions win over scalars.
            u64_integer_promotion_target: With OpenVINO's rules, the result of u64 with a signed integer.
            target: The OpenVINO release that the model is for, such as ``"2023.3"``. Parts that it does not support are
                rewritten.
            device: The device whose plugin of that release must compile the model, ``"cpu"``, ``"gpu"`` or ``"npu"``.
            progress: Receives progress, as in :func:`typelift.open`.

        Returns:
            The changes.

        Raises:
            ModelError: The model has errors that conversion does not fix. The model is unchanged.
            KeyError: A named input or output does not exist.
            ValueError: A type, a shape or ``align`` is unknown.
        """
        options = {name: value for name, value in locals().items() if name not in ("self", "progress")}
        with told(progress):
            return Conversions.of_report(self._native.convert(_options(options)))

    def set_type(self, name: str, element_type: TypeLike) -> None:
        """Changes the element type of an input, and of the computation after it; or of a constant, whose values are
        converted.

        >>> import typelift
        >>> model = typelift.from_text("c = Const([0.5, 1]) : f32[2]\\ny = Relu(c)\\nr = Result(y)")
        >>> model.set_type("c", "f16")
        >>> model["y"].outputs[0].element_type
        'f16'

        Raises:
            ModelError: The change would cause new errors.
            KeyError: There is no such input or constant.
            ValueError: The element type is unknown, or cannot hold the values of a constant.
        """
        self._native.set_type(name, _type_name(element_type))

    def set_constant(self, name: str, values: Any, *, type: Any = None) -> None:
        """Changes the values and shape of a constant: :meth:`Graph.set_constant` as a single edit.

        >>> import typelift
        >>> model = typelift.from_text("c = Const([1, 2]) : f16[2]\\nr = Result(c)")
        >>> model.set_constant("c", [3.5, 4])
        >>> model["c"].numbers(), model["c"].outputs[0].element_type
        ([3.5, 4.0], 'f16')

        Raises:
            ModelError: The change would cause new errors.
            KeyError: There is no such layer.
            ValueError: The layer is not a constant.
        """
        with self.edit() as graph:
            graph.set_constant(name, values, type=type)

    def set_shape(self, name: str, shape: ShapeLike) -> None:
        """Changes the shape of an input.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[?,3]\\ny = Relu(x)\\nr = Result(y)")
        >>> model.set_shape("x", (8, 3))
        >>> model["y"].outputs[0].shape
        Shape('[8,3]')

        Raises:
            ModelError: The change would cause new errors.
            KeyError: There is no such input.
            ValueError: The argument is not a shape.
        """
        self._native.set_shape(name, _shape_text(shape))

    def set_input_type(self, name: str, element_type: TypeLike) -> None:
        """Changes the element type of an input and keeps the computation, by a Convert after the input.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[3]\\ny = Relu(x)\\nr = Result(y)")
        >>> model.set_input_type("x", "u8")
        >>> print(model)
        0 x = Parameter : u8[3]
        3 x/to_f32 = Convert(0) {destination_type=f32} : f32[3]
        1 y = ReLU(3) : f32[3]
        2 r = Result(1)

        Raises:
            KeyError: There is no such input.
            ValueError: The element type is unknown, or cannot be converted.
        """
        self._native.set_input_type(name, _type_name(element_type))

    def set_output_type(self, name: str, element_type: TypeLike) -> None:
        """Changes the element type of an output and keeps the computation, by a Convert before the output.

        Raises:
            KeyError: There is no such output.
            ValueError: The element type is unknown, or there is no conversion to it.
        """
        self._native.set_output_type(name, _type_name(element_type))

    def rewrite(
        self,
        rules: Union[Statements, Iterable[Statements]] = (),
        *,
        use: Iterable[str] = (),
        progress: Progress = False,
    ) -> Applications:
        """Applies rules and other statements, as ``typelift rewrite`` does, in bodies too. All are applied or, with an
        exception, none.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[3]\\nc = Const(4) : f32[]\\ny = Divide(x, c)\\nr = Result(y)")
        >>> report = model.rewrite("Divide(x, c: const f32) => Multiply(x, 1 / c)")
        >>> [application.layer for application in report], model["y"].type
        (['y'], 'Multiply')
        >>> small = typelift.Rule("Multiply(x, c: const)", "Relu(x)", when=lambda match: match["c"].values[0] < 1)
        >>> len(model.rewrite([small, "rename r scores"], use="no-ops"))
        1

        Args:
            rules: The statements, one or several: text with one statement per line, the path of a file of statements,
                or a :class:`Rule`. Statements that are not rules are applied first, then the rules of texts and files,
                then :class:`Rule` objects.
            use: Names of built-in rules, such as ``"fuse-gelu"``, which are applied last.
            progress: Receives progress, as in :func:`typelift.open`.

        Raises:
            RuleError: A statement cannot be read or applied. The model is unchanged.
            ValueError: A built-in rule does not exist.
            OSError: A file cannot be read.
        """
        given = [rules] if isinstance(rules, (str, os.PathLike, Rule)) else list(rules)
        lines = (Path(of).read_text(encoding="utf-8") if isinstance(of, os.PathLike) else of for of in given if not isinstance(of, Rule))
        own = [rule._spec() for rule in given if isinstance(rule, Rule)]
        sets = [use] if isinstance(use, str) else list(use)
        with told(progress):
            return Applications.from_json(_typelift.rewrite(self._native, "\n".join(lines), own, sets))

    def run(self, *passes: Union[Pass, Callable[[Graph], object]]) -> None:
        """Runs passes in order over the graphs of all bodies and the model's own. All are applied or, with an
        exception, none. See :class:`Pass`.

        Raises:
            ModelError: The change would cause new errors.
            ValueError: A graph does not accept an edit.
        """
        with self.edit() as graph:
            for run in passes:
                for part in graph.everywhere():
                    run(part)
                graph.infer()

    def fix(self, *, progress: Progress = False) -> Diagnostics:
        """Applies the safe fixes to the model's text, and returns the findings that they fix. For text that cannot be
        read, use :func:`typelift.fix`.
        """
        with told(progress):
            return Diagnostics.from_json(*self._native.fix())

    def explain(self, rule: Union[str, Rule], layer: Optional[str] = None) -> str:
        """Explains why a rule matches at a layer, or why not. Without a layer, explains the place where most of its
        pattern fits.

        Raises:
            RuleError: The rule cannot be read.
            KeyError: There is no such layer.
        """
        return _typelift.explain_rule(self._native, rule if isinstance(rule, str) else rule._spec(), layer)

    def why(self, name: str) -> Derivation:
        """Explains the element type of a tensor by the inputs, constants and attributes that decide it.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f16[3]\\ny = Relu(x)\\nr = Result(y)")
        >>> [step.layer for step in model.why("y").sources]
        ['x']

        Args:
            name: A tensor; or a layer, which means its first output. ``split.1`` is another output.

        Raises:
            KeyError: There is no such layer or tensor, or more than one.
        """
        return Derivation.of(self._native.why(name))

    def diff(self, other: Union[Model, PathOrStr], *, ignore: Iterable[str] = (), progress: Progress = False) -> Changes:
        """Returns the differences in meaning from another model: see :func:`typelift.diff`."""
        return diff(self, other, ignore=ignore, progress=progress)

    @property
    def blocks(self) -> Blocks:
        """The blocks of the model, found by the names of layers, or by structure where no names tell them: see
        :class:`Blocks`."""
        return Blocks(self._native.blocks())

    @property
    def shapes(self) -> Lengths:
        """The open lengths of the inputs, which of them fit, and why: the output of ``typelift infer --shapes``.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[?,3]\\ny = Concat(x, x) {axis=0}\\nr = Result(y)")
        >>> model.shapes.symbols
        (Symbol(id='s0', name='batch', axes=(('x', 0),), fits=None),)
        >>> model.shapes.constraints
        ()
        """
        return Lengths.from_json(*self._native.answer("shapes"))

    def stats(self) -> Stats:
        """Returns statistics: bytes of weights, tensors and operations by element type.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[3]\\nc = Const([1, 2, 3]) : f16[3]\\n"
        ...     "d = Convert(c) {destination_type=f32}\\ny = Add(x, d)\\nr = Result(y)")
        >>> stats = model.stats()
        >>> stats.layers, stats.weight_bytes, stats.weights[0].element_type
        (5, 6, 'f16')
        >>> [(d.from_type, d.to_type, d.constants) for d in stats.decompressed]
        [('f16', 'f32', 1)]
        """
        return Stats.from_json(*self._native.answer("stats"))

    def to_text(
        self, around: Optional[str] = None, *, depth: int = 2, only: Iterable[str] = (), fold_constants: bool = False
    ) -> str:
        """Returns the graph as a listing with one line per layer, in the notation of rules: the output of ``typelift
        show``.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[3]\\nc = Const(2) : f32[]\\ny = Add(x, c)\\nz = Relu(y)\\nr = Result(z)")
        >>> print(model.to_text(only=["Add"], fold_constants=True), end="")
        2 y = Add(0, 2) : f32[3]
        >>> print(model.to_text("z", depth=1), end="")
        2 y = Add(0, 1) : f32[3]
        3 z = ReLU(2) : f32[3]
        4 r = Result(3)

        Args:
            around: Show only this layer and its neighbourhood.
            depth: The number of layers before and after that one.
            only: Show only layers of these operations.
            fold_constants: Show constants inside their consumers instead of on their own lines.

        Raises:
            KeyError: There is no such layer or operation.
        """
        return self._native.listing(around, depth, [only] if isinstance(only, str) else list(only), fold_constants, False)

    def to_dot(
        self, around: Optional[str] = None, *, depth: int = 2, only: Iterable[str] = (), fold_constants: bool = False
    ) -> str:
        """Returns the graph for Graphviz, with the layers that :meth:`to_text` shows."""
        return self._native.listing(around, depth, [only] if isinstance(only, str) else list(only), fold_constants, True)

    def to_html(self, before: Union[Model, PathOrStr, None] = None) -> str:
        """Returns the model as one self-contained page for a browser: the output of ``typelift view``.

        Args:
            before: The model with which this one is compared.
        """
        return self._native.page(None if before is None else _model(before)._native, None)

    def to_bytes(self, *, canonical: bool = False) -> tuple[bytes, bytes]:
        """Returns the graph and the weights, for ``openvino.Core().read_model(*model.to_bytes())`` and
        :func:`typelift.loads`.

        Args:
            canonical: Write the whole graph in OpenVINO's own style, instead of keeping the file's text where nothing
                changed.

        Raises:
            ModelError: The model has constants, and the weights are missing.
        """
        return self._native.to_bytes(canonical)

    def save(
        self, path: PathOrStr, *, canonical: bool = False, weights: WeightsMode = "copy", progress: Progress = False
    ) -> None:
        """Writes the graph to ``path`` and the weights to the ``.bin`` next to it: both files or neither.

        Unchanged parts of the file are kept byte for byte.

        Args:
            path: The ``.xml`` to write. It can be the file that the model was read from. A symbolic link is replaced,
                and the file it leads to stays as it is.
            canonical: Write the whole graph in OpenVINO's own style.
            weights: ``"copy"``; ``"link"``, to the file that holds them; ``"none"``, which does not touch an existing
                ``.bin``; or ``"compact"``, without bytes that no constant uses.
            progress: Receives progress, as in :func:`typelift.open`.

        Raises:
            ValueError: The path does not end with ``.xml``.
            OSError: A file cannot be written, or ``path`` is the file that the model was read from and has changed since.
            ModelError: The model has constants, and the weights are missing.
        """
        if os.path.splitext(path)[1].lower() != ".xml":
            raise ValueError(f"{os.fspath(path)!r} does not end with .xml, the only ending of OpenVINO IR")
        if weights not in ("copy", "link", "none", "compact"):
            raise ValueError(f"weights is one of copy, link, none, compact, and not {weights!r}")
        with told(progress):
            self._native.save(path, canonical, weights)

    def copy(self) -> Model:
        """Returns an independent copy: edits of one model do not affect the other."""
        return Model(self._native.copy())

    __copy__ = copy

    def __deepcopy__(self, _memo: dict[int, Any]) -> Model:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return loads, self.to_bytes()

    def __str__(self) -> str:
        return shown(self.to_text().rstrip("\n"))

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        counts = ((len(self), "layer"), (len(self.inputs), "input"), (len(self.outputs), "output"))
        return f"<Model{name}: {', '.join(f'{n} {what}' + ('s' if n != 1 else '') for n, what in counts)}>"

    def view(self, before: Union[Model, PathOrStr, None] = None, *, height: int = 480) -> View:
        """Returns a picture of the model for a notebook, to search and click through. A model of many layers is shown
        as runs of layers; :meth:`to_html` can show more.

        A notebook shows it unasked. For a model of more than 50,000 layers it shows a table of the first ones.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[3]\\ny = Relu(x)\\nr = Result(y)")
        >>> model.view(height=600)
        <View: 3 layers>

        Args:
            before: The model with which this one is compared.
            height: The height of the picture in pixels.
        """
        other = None if before is None else _model(before)._native
        source = self._native.page(other, _DATA_LIMIT).replace("&", "&amp;").replace('"', "&quot;")
        if len(source) > _PAGE_LIMIT:
            return self._table()
        style = f"width:100%; height:{int(height)}px; border:1px solid #ccc"
        return View(f'<iframe srcdoc="{source}" style="{style}"></iframe>', len(self))

    def _table(self) -> View:
        """Returns a table of the first layers."""
        first = map(Layer, self._native.first(_ROWS_SHOWN))
        rows = ((l.id, l.name, l.type, ", ".join(map(str, l.outputs))) for l in first)
        rest = len(self) - _ROWS_SHOWN
        more = f"<p>and {rest} more layers; <code>view()</code> has a picture</p>" if rest > 0 else ""
        return View(table(("id", "layer", "operation", "outputs"), rows) + more, len(self))

    def _repr_html_(self) -> str:
        return (self.view() if len(self) <= _PICTURE_LIMIT else self._table())._repr_html_()


class View:
    """Picture that :meth:`Model.view` shows in a notebook."""

    __slots__ = ("_html", "_layers")

    def __init__(self, html: str, layers: int) -> None:
        self._html = html
        self._layers = layers

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return f"<View: {self._layers} layers>"


def _shape_text(shape: ShapeLike) -> str:
    """Spells a shape for the native part."""
    if isinstance(shape, str):
        return shape
    if isinstance(shape, Shape):
        return str(shape)
    return f"[{','.join(map(_dim_text, shape))}]"


def _dim_text(dim: Union[int, str, None, tuple[int, Optional[int]]]) -> str:
    if dim is None or dim == -1:
        return "?"
    if isinstance(dim, tuple):
        low, high = dim
        return f"{low}..{'' if high is None else high}"
    return str(dim)


def open(
    path: PathOrStr,
    *,
    weights: Union[PathOrStr, bytes, None] = None,
    progress: Progress = False,
    max_memory: Optional[int] = None,
) -> Model:
    """Reads a model. Its weights stay in their file, and are read when they are needed.

    A model whose types do not agree opens as well: :meth:`Model.check` reports the errors and :meth:`Model.convert`
    fixes them.

    Args:
        path: The ``.xml``.
        weights: The file of the weights, if it is not the ``.bin`` next to the model; or the weights themselves.
        progress: A function that receives the progress of long work, about 20 times a second. Its arguments are the
            stage (such as ``"read"``, ``"infer"`` or ``"write"``), the amount done in layers, bytes or blocks of
            values, and the total. An exception stops the work. ``True`` shows bars of tqdm.
        max_memory: The limit on the memory for values of constants that are computed, in bytes. The default is 64 MiB
            and 8 times the size of the weights. A layer that needs more is left unchanged.

    Raises:
        OSError: A file cannot be read.
        ModelError: The file is not a model, or is damaged.
        OverflowError: The limit is negative.
    """
    if isinstance(weights, (bytes, bytearray, memoryview)):
        return loads(Path(path).read_bytes(), weights, progress=progress, max_memory=max_memory)
    with told(progress):
        return Model(_typelift.Model.open(path, weights, max_memory))


def loads(
    text: Union[str, bytes],
    weights: Optional[bytes] = None,
    *,
    progress: Progress = False,
    max_memory: Optional[int] = None,
) -> Model:
    """Reads a model from the text of its ``.xml`` and the bytes of its ``.bin``. Weights that are ``bytes`` are not copied.
    ``max_memory`` is as for :func:`open`.

    >>> import typelift
    >>> typelift.loads('<net name="empty" version="11"><layers/></net>')
    <Model 'empty': 0 layers, 0 inputs, 0 outputs>

    Raises:
        ModelError: The file is not a model, or is damaged.
    """
    given = text if isinstance(text, (str, bytes)) else bytes(text)
    with told(progress):
        return Model(_typelift.Model.loads(given, None if weights is None else bytes(weights), max_memory))


def fix(text: Union[str, bytes], weights: Optional[bytes] = None) -> tuple[str, Diagnostics]:
    """Applies the safe fixes to the text of an ``.xml``, as ``typelift check --fix`` does. Each fix was tested and
    causes no new errors. Returns the text, and the findings that were fixed.

    >>> import typelift
    >>> broken = '''<net name="n" version="11"><layers>
    ...     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="fp32"/>
    ...         <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
    ...     <layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
    ... </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'''
    >>> text, mended = typelift.fix(broken)
    >>> len(mended), typelift.loads(text).inputs["x"].element_type
    (1, 'f32')
    """
    given = text.encode() if isinstance(text, str) else bytes(text)
    fixed, *mended = _typelift.fix(given, None if weights is None else bytes(weights))
    return fixed, Diagnostics.from_json(*mended)


def from_text(text: str) -> Model:
    """Reads a listing in the notation that ``print(model)`` shows.

    Raises:
        RuleError: The listing cannot be read.
    """
    return Model(_typelift.Model.from_text(text))


def diff(
    before: Union[Model, PathOrStr],
    after: Union[Model, PathOrStr],
    *,
    ignore: Iterable[str] = (),
    progress: Progress = False,
) -> Changes:
    """Returns the differences in meaning between two models or files. Ids, order and layout do not count.

    >>> import typelift
    >>> before = typelift.from_text("x = Parameter : f32[3]\\ny = Relu(x)\\nr = Result(y)")
    >>> after = before.copy()
    >>> bool(typelift.diff(before, after))
    False
    >>> _ = after.rewrite("Relu(x) => Tanh(x)")
    >>> [(change.kind, change.layer, change.before, change.after) for change in typelift.diff(before, after)]
    [('operation', 'y', 'Relu', 'Tanh')]

    Args:
        before: The first model.
        after: The second model.
        ignore: Kinds of changes that do not count, such as ``"names"``.
        progress: Receives progress, as in :func:`open`.

    Raises:
        OSError: A file cannot be read.
        ModelError: A file is not a model.
    """
    with told(progress):
        return Changes.of(_typelift.diff(_model(before)._native, _model(after)._native, list(ignore)))


def _model(model: Union[Model, PathOrStr]) -> Model:
    """Returns the model, or reads it from a file."""
    return model if isinstance(model, Model) else open(model)


def check(path: PathOrStr, *, target: Optional[str] = None, progress: Progress = False) -> Diagnostics:
    """Returns every error, warning and note about a file, including a file that :func:`open` refuses.

    Raises:
        OSError: A file cannot be read.
    """
    try:
        return open(path, progress=progress).check(target=target, progress=progress)
    except ModelError as error:
        return error.diagnostics
