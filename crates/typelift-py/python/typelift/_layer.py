"""Layers and tensors of a model as it was read or inferred."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from typelift import _typelift
from typelift._arrays import constant_array
from typelift._data import Shape, length, table
from typelift._errors import UnknownNameError

if TYPE_CHECKING:
    import numpy
    import numpy.typing


class _Fixed(Mapping[str, str]):
    """A read-only mapping of a layer. Only a batch of edits can change it."""

    __slots__ = ("_items", "_place")

    def __init__(self, items: Iterable[tuple[str, str]], place: str) -> None:
        self._items = dict(items)
        self._place = place

    def __getitem__(self, name: str) -> str:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    if not TYPE_CHECKING:

        def __setitem__(self, name, value):
            raise TypeError(f"edits are made in a batch: `with model.edit() as graph: {self._place}[{name!r}] = {value!r}`")

        def __delitem__(self, name):
            raise TypeError(f"edits are made in a batch: `with model.edit() as graph: del {self._place}[{name!r}]`")


class Tensor:
    """An output of a layer."""

    __slots__ = ("_layer", "_index", "_element_type", "_shape", "_names")

    def __init__(self, layer: Layer, index: int, element_type: str, shape: str, names: list[str]) -> None:
        self._layer = layer
        self._index = index
        self._element_type = element_type
        self._shape = Shape.parse(shape)
        self._names = tuple(names)

    @property
    def layer(self) -> Layer:
        """The layer that produces it."""
        return self._layer

    @property
    def index(self) -> int:
        """The output of the layer, from 0."""
        return self._index

    @property
    def element_type(self) -> str:
        """The inferred element type, such as ``f32``."""
        return self._element_type

    @property
    def shape(self) -> Shape:
        """The inferred shape."""
        return self._shape

    @property
    def dims(self) -> Optional[tuple[Union[int, str, None], ...]]:
        """The dimensions with the names of open lengths: ``(1, "seq", "seq + past")``. ``None`` in it is unknown; without
        a rank, all is ``None``. The names are those of :attr:`Model.shapes`.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[?,3]\\ny = Concat(x, x) {axis=0}\\nr = Result(y)")
        >>> model["y"].outputs[0].dims
        ('2 * batch', 3)
        """
        dims = self._layer._native.dims(self._index)
        if dims is None:
            dims = None if self._shape.rank is None else [str(dim) for dim in self._shape]
        return None if dims is None else tuple(length(dim) for dim in dims)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the file."""
        return self._names

    @property
    def name(self) -> str:
        """The first name. Without one it is the layer's name, followed by a dot and the output's number unless that is
        0."""
        if self._names:
            return self._names[0]
        return self._layer.path if self._index == 0 else f"{self._layer.path}.{self._index}"

    @property
    def consumers(self) -> list[Layer]:
        """The consumers. A layer that uses the tensor twice is listed twice."""
        return [Layer(native) for native, _ in self._layer._native.consumers(self._index)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self._layer == other._layer and self._index == other._index

    def __hash__(self) -> int:
        return hash((self._layer, self._index))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a tensor is a part of its model; pickle the model, and `tensor.name`")

    def __str__(self) -> str:
        return f"{self._element_type}{self._shape}"

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r}: {self}>"


class Layer:
    """A layer of a model in one state. Edits of the model do not change it: look it up again after an edit.

    >>> import typelift
    >>> model = typelift.from_text('''
    ...     x = Parameter : f32[1,?]
    ...     y = Clamp(x) {min=0, max=6}
    ...     r = Result(y)
    ... ''')
    >>> layer = model["y"]
    >>> layer
    <Layer 1 'y': Clamp : f32[1,?]>
    >>> layer.type, layer.attributes["max"], layer.outputs[0].shape.rank
    ('Clamp', '6', 2)
    >>> [tensor.name for tensor in layer.inputs]
    ['x']
    """

    __slots__ = ("_native",)

    def __init__(self, native: _typelift.Layer) -> None:
        self._native = native

    @property
    def id(self) -> int:
        """The id in the file, which no edit changes."""
        return self._native.id

    @property
    def name(self) -> str:
        """The name."""
        return self._native.name

    @property
    def path(self) -> str:
        """The name after those of the surrounding bodies, ``loop/body/x``. ``model[path]`` is the layer."""
        return self._native.path

    @property
    def type(self) -> str:
        """The operation, such as ``Add``."""
        return self._native.type

    @property
    def version(self) -> str:
        """The operation set, such as ``opset1``."""
        return self._native.version

    @property
    def line(self) -> Optional[int]:
        """The line in the file; ``None`` for an added layer."""
        return self._native.line

    @property
    def attributes(self) -> Mapping[str, str]:
        """The attributes, as the file spells them. A batch of edits can change them: ``graph["y"].attributes["axis"] =
        1``."""
        return _Fixed(self._native.attributes, f"graph[{self.path!r}].attributes")

    @property
    def rt_info(self) -> Mapping[str, str]:
        """The metadata. A batch of edits can change it: ``graph["y"].rt_info["origin"] = "mine"``."""
        return _Fixed(self._native.rt_info(), f"graph[{self.path!r}].rt_info")

    @property
    def inputs(self) -> list[Optional[Tensor]]:
        """The tensors of its inputs; ``None`` for an input that is not connected."""
        return [None if producer is None else Layer(producer[0])._output(producer[1]) for producer in self._native.producers]

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that it produces, with inferred types and shapes."""
        return [Tensor(self, at, *output) for at, output in enumerate(self._native.outputs)]

    def _output(self, at: int) -> Optional[Tensor]:
        outputs = self._native.outputs
        return Tensor(self, at, *outputs[at]) if at < len(outputs) else None

    @property
    def bodies(self) -> dict[str, list[Layer]]:
        """The layers of the graphs inside it: of ``body``, or of ``then_body`` and ``else_body``."""
        return {name: [Layer(native) for native in layers] for name, layers in self._native.bodies}

    def data(self) -> Optional[bytes]:
        """Returns the stored bytes of a constant; ``None`` for other layers.

        Raises:
            ValueError: The weights do not contain them.
        """
        held = self._native.data()
        if held is None:
            return None
        buffer, offset, size = held
        return bytes(memoryview(buffer)[offset : offset + size])

    def numbers(self) -> Optional[list[float]]:
        """Returns the values of a constant in the order of storage; ``None`` for other layers and for strings.

        >>> import typelift
        >>> model = typelift.from_text("c = Const([1, 2]) : f32[2]\\nr = Result(c)")
        >>> model["c"].numbers()
        [1.0, 2.0]
        """
        return self._native.numbers()

    def numpy(self, *, copy: bool = False) -> numpy.typing.NDArray[Any]:
        """Returns the values of a constant as an array in its element type. Types that NumPy lacks come from ml_dtypes
        if it is installed. Otherwise floats come as float32, and integers of fewer than 8 bits as int8 or uint8.

        Values that the weights hold in NumPy's layout are not copied. The array is then a read-only view of the mapped
        file, or of the bytes that the model was read from. If another program truncates the file, an access to such an
        array ends the process (SIGBUS).

        Args:
            copy: Read the values from the file into an array of their own, which can be changed. A file that was
                truncated is an error then.

        Raises:
            ImportError: NumPy is not installed.
            ValueError: The layer is not a constant, or the weights do not contain its values.
        """
        outputs = self.outputs
        if self.type != "Const" or not outputs:
            raise ValueError(f"`{self.name}` is not a constant: it is {self.type}")
        return constant_array(
            self.name, outputs[0].element_type, outputs[0].shape, self._native.data, self._native.bytes_as, copy
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layer) and self._native == other._native

    def __hash__(self) -> int:
        return hash(self._native)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a layer is a part of its model; pickle the model, and `layer.path`, by which it has the layer")

    def __repr__(self) -> str:
        outputs = ", ".join(map(str, self.outputs))
        return f"<Layer {self.id} {self.path!r}: {self.type}{' : ' if outputs else ''}{outputs}>"


class Interface(Mapping[str, Tensor]):
    """The inputs or outputs of a model. Find a tensor by its name, by the name of its layer, or by position.

    >>> import typelift
    >>> model = typelift.from_text("x = Parameter : u8[2]\\ny = Convert(x) {destination_type=f32}\\nr = Result(y)")
    >>> model.inputs["x"].element_type, model.outputs[0].element_type
    ('u8', 'f32')
    >>> list(model.inputs), "z" in model.inputs
    (['x'], False)
    """

    def __init__(self, layers: list[_typelift.Layer], find: Callable[[str], _typelift.Layer], is_input: bool) -> None:
        self._layers = layers
        self._find = find
        self._is_input = is_input

    def _tensor(self, native: _typelift.Layer) -> Tensor:
        layer = Layer(native)
        tensor = layer._output(0) if self._is_input else layer.inputs[0]
        if tensor is None:
            raise UnknownNameError(f"`{layer.name}` is not connected")
        return tensor

    def __getitem__(self, key: Union[str, int]) -> Tensor:
        if isinstance(key, str):
            return self._tensor(self._find(key))
        if not -len(self._layers) <= key < len(self._layers):
            raise UnknownNameError(f"there are {len(self._layers)}, and no number {key}")
        return self._tensor(self._layers[key])

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names by which OpenVINO finds them: those of the tensors, or else of the layers."""
        return map(self._name, self._layers)

    def _name(self, layer: _typelift.Layer) -> str:
        return next(iter(self._tensor(layer).names), layer.name)

    def __len__(self) -> int:
        return len(self._layers)

    def __reduce__(self) -> NoReturn:
        raise TypeError("the inputs and outputs of a model are parts of it; pickle the model")

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {self._tensor(layer)}" for name, layer in zip(self, self._layers)) + "}"

    def _repr_html_(self) -> str:
        tensors = map(self._tensor, self._layers)
        rows = ((name, t.element_type, t.shape, ", ".join(t.names)) for name, t in zip(self, tensors))
        return table(("name", "type", "shape", "tensor names"), rows)
