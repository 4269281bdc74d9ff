"""Batches of edits: a model's graph while it is open for changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

from typelift import _typelift
from typelift._arrays import array_of, constant_array, element_type
from typelift._data import Shape
from typelift._errors import UnknownNameError

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    from typelift._model import Model

TensorLike = Union["GraphTensor", "GraphLayer", str]
"""A tensor of a graph, a layer with one output, or the name of a tensor or layer."""


class GraphTensor:
    """An output of a layer in a batch of edits."""

    __slots__ = ("_graph", "_id", "_port")

    def __init__(self, graph: Graph, id: int, port: int) -> None:
        self._graph = graph
        self._id = id
        self._port = port

    @property
    def layer(self) -> GraphLayer:
        """The layer that makes it."""
        return GraphLayer(self._graph, self._id)

    @property
    def index(self) -> int:
        """Which output of the layer it is."""
        return self._port

    def _of(self) -> tuple[int, int]:
        """What the native part knows it by."""
        return self._id, self._port

    def _port_of(self) -> tuple[str, str, list[str]]:
        return self._graph._native.outputs(self._id)[self._port]

    @property
    def element_type(self) -> str:
        """Its element type, as inferred when its layer was added or by :meth:`Graph.infer`."""
        return self._port_of()[0]

    @property
    def shape(self) -> Shape:
        """Its shape, as inferred when its layer was added or by :meth:`Graph.infer`."""
        return Shape.parse(self._port_of()[1])

    @property
    def names(self) -> list[str]:
        """Its names; set them to give it others."""
        return self._port_of()[2]

    @names.setter
    def names(self, names: Iterable[str]) -> None:
        self._graph._native.set_names((self._id, self._port), list(names))

    @property
    def consumers(self) -> list[tuple[GraphLayer, int]]:
        """The layers that use it, each with the input by which it does."""
        used = self._graph._native.consumers((self._id, self._port))
        return [(GraphLayer(self._graph, id), port) for id, port in used]

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, GraphTensor) and (self._id, self._port) == (other._id, other._port)
        return same and self._graph == other._graph  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self._id, self._port))

    def __repr__(self) -> str:
        return f"<GraphTensor {self._id}.{self._port}: {self.element_type}{self.shape}>"


class _Attributes(MutableMapping[str, Any]):
    def __init__(self, graph: Graph, id: int) -> None:
        self._graph = graph
        self._id = id

    def _all(self) -> dict[str, str]:
        return dict(self._graph._native.attributes(self._id))

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._graph._native.set_attribute(self._id, name, _text(value))

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"an attribute is not taken away; morph the layer without `{name}`")

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


class _Metadata(MutableMapping[str, str]):
    """Metadata of a layer by name: ``layer.rt_info["primitives_priority"] = "cpu:jit"``."""

    def __init__(self, graph: Graph, id: int) -> None:
        self._graph = graph
        self._id = id

    def _all(self) -> dict[str, str]:
        return dict(self._graph._native.rt_info(self._id))

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __setitem__(self, name: str, value: str) -> None:
        self._graph._native.set_rt_info(self._id, name, _text(value))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._graph._native.remove_rt_info(self._id, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


class GraphLayer:
    """A layer in a batch of edits. What is asked of it is what the graph has at that moment."""

    __slots__ = ("_graph", "_id")

    def __init__(self, graph: Graph, id: int) -> None:
        self._graph = graph
        self._id = id

    @property
    def id(self) -> int:
        """Its id, which no edit changes."""
        return self._id

    @property
    def name(self) -> str:
        """Its name; set it to give it another one."""
        return self._graph._native.name(self._id)

    @name.setter
    def name(self, name: str) -> None:
        self._graph._native.set_name(self._id, name)

    @property
    def type(self) -> str:
        """Its operation as the file spells it."""
        return self._graph._native.operation(self._id)[0]

    @property
    def version(self) -> str:
        """The operation set, such as ``opset1``."""
        return self._graph._native.operation(self._id)[1]

    @property
    def attributes(self) -> MutableMapping[str, Any]:
        """Its attributes. Assign to change one: numbers, booleans, lists and element types are spelled as files spell them."""
        return _Attributes(self._graph, self._id)

    @property
    def rt_info(self) -> MutableMapping[str, str]:
        """Its metadata by name. Assign to set a value, ``del`` to remove one."""
        return _Metadata(self._graph, self._id)

    @property
    def inputs(self) -> list[Optional[GraphTensor]]:
        """The tensors that feed it; ``None`` where an input is not connected."""
        producers = self._graph._native.producers(self._id)
        return [None if of is None else GraphTensor(self._graph, *of) for of in producers]

    @property
    def outputs(self) -> list[GraphTensor]:
        """The tensors that it makes."""
        return [GraphTensor(self._graph, self._id, at) for at in range(len(self._graph._native.outputs(self._id)))]

    @property
    def output(self) -> GraphTensor:
        """Its first output."""
        return GraphTensor(self._graph, self._id, 0)

    @property
    def bodies(self) -> dict[str, Graph]:
        """The graphs inside it, to be edited: ``body``, or ``then_body`` and ``else_body``."""
        native = self._graph._native
        return {name: Graph(None, native.body(self._id, at)) for at, name in enumerate(native.bodies(self._id))}

    def numpy(self) -> numpy.typing.NDArray[Any]:
        """The values of a constant, as :meth:`typelift.Layer.numpy` gives them."""
        if self.type != "Const":
            raise ValueError(f"`{self.name}` is not a constant: it is {self.type}")
        native, tensor = self._graph._native, self.output
        return constant_array(
            self.name,
            tensor.element_type,
            tensor.shape,
            lambda: native.data(self._id),
            lambda to: native.values(self._id, to),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphLayer) and self._id == other._id and self._graph == other._graph

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<GraphLayer {self._id} {self.name!r}: {self.type}>"


def _text(value: Any) -> str:
    """How a file spells the value of an attribute."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, Iterable):
        return ",".join(_text(item) for item in value)
    return element_type(value)


class Graph:
    """The graph of a model while it is edited: what ``with model.edit() as graph`` gives. The model gets all edits at the end
    of the batch or, with an exception, none.

    >>> import typelift
    >>> model = typelift.from_text('''
    ...     x = Parameter : f32[2]
    ...     y = Relu(x)
    ...     r = Result(y)
    ... ''')
    >>> with model.edit() as graph:
    ...     doubled = graph.insert_after("y", "Multiply", graph.constant(2.0), name="doubled")
    ...     doubled.rt_info["origin"] = "mine"
    ...     graph["y"].name = "activation"
    >>> [layer.name for layer in model]
    ['x', 'activation', 'Const_3', 'doubled', 'r']

    An exception undoes everything:

    >>> with model.edit() as graph:
    ...     graph["doubled"].name = "other"
    ...     raise RuntimeError
    Traceback (most recent call last):
    RuntimeError
    >>> "doubled" in model
    True
    """

    __slots__ = ("_model", "_batch")

    def __init__(self, model: Optional[Model] = None, batch: Optional[_typelift.Graph] = None) -> None:
        """For :meth:`typelift.Model.edit`, and for parts of a batch."""
        self._model = model
        self._batch = batch

    @property
    def _native(self) -> _typelift.Graph:
        if self._batch is None:
            raise ValueError("a batch of edits is a context: `with model.edit() as graph`")
        return self._batch

    def __enter__(self) -> Graph:
        if self._model is None:
            raise ValueError("this graph is a part of a batch of edits, which ends with the batch")
        self._batch = _typelift.begin(self._model._native)
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._native.finish(kind is None)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same graph of the same batch."""
        return self is other or (isinstance(other, Graph) and self._native.same(other._native))

    def __hash__(self) -> int:
        return hash(Graph)

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[GraphLayer]:
        """The layers that are there now, in the order of the file."""
        return (GraphLayer(self, id) for id in self._native.ids())

    def __getitem__(self, key: Union[str, int]) -> GraphLayer:
        """The layer with this name, tensor name or id, however large the graph is without a walk through it. In the model's own
        graph, ``graph["loop/body/x"]`` is a layer of a body.

        Raises:
            KeyError: There is none, or more than one.
        """
        if isinstance(key, str):
            native, id = self._native.find(key)
            return GraphLayer(self if native.same(self._native) else Graph(None, native), id)
        if not (key >= 0 and self._native.has(key)):
            raise UnknownNameError(f"no layer has the id {key}")
        return GraphLayer(self, key)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, GraphLayer):
            return self._native.has(key.id)
        try:
            return isinstance(key, (str, int)) and self[key] is not None
        except UnknownNameError:
            return False

    def tensor(self, name: str) -> GraphTensor:
        """The tensor with this name, or the first output of the layer with this name.

        Raises:
            KeyError: There is none, or more than one.
        """
        return GraphTensor(self, *self._native.find_tensor(name))

    def body(self, layer: Union[GraphLayer, str, int], body: Union[str, int] = 0) -> Graph:
        """The graph of a body of a layer, to be edited as this one: by its name or its number.

        >>> import typelift
        >>> model = typelift.from_text('''
        ...     x = Parameter : f32[2]
        ...     c = Parameter : boolean[]
        ...     y = If-8(c, x)
        ...         then_body (in 1 -> 0, out 2 -> 0):
        ...             a = Parameter : f32[2]
        ...             b = Abs(a)
        ...             r = Result(b)
        ...         else_body (in 1 -> 0, out 1 -> 0):
        ...             a = Parameter : f32[2]
        ...             r = Result(a)
        ...     r = Result(y)
        ... ''')
        >>> with model.edit() as graph:
        ...     then = graph.body("y", "then_body")
        ...     then.morph("b", "Relu", "a")
        <GraphLayer 1 'b': Relu>
        >>> model["y/then_body/b"].type
        'Relu'

        Raises:
            KeyError: There is no such layer or body.
        """
        owner = self._layer(layer)
        names = self._native.bodies(owner)
        at = names.index(body) if body in names else body
        if not (isinstance(at, int) and 0 <= at < len(names)):
            known = ", ".join(names) or "none"
            raise UnknownNameError(f"`{self._native.name(owner)}` has no body {body!r}; it has {known}")
        return Graph(None, self._native.body(owner, at))

    def everywhere(self) -> Iterator[Graph]:
        """The graphs of all bodies, innermost ones first, and then this one."""
        for owner in self._native.owners():
            if self._native.has(owner):
                for body in GraphLayer(self, owner).bodies.values():
                    yield from body.everywhere()
        yield self

    def _own(self, part: Union[GraphTensor, GraphLayer]) -> None:
        """Parts of other graphs have ids too, which mean something else here."""
        if part._graph is not self and part._graph != self:
            raise ValueError(f"{part!r} is not of this graph")

    def _tensor(self, tensor: TensorLike) -> tuple[int, int]:
        if isinstance(tensor, str):
            return self._native.find_tensor(tensor)
        if isinstance(tensor, GraphLayer):
            self._own(tensor)
            return tensor.id, 0
        if not isinstance(tensor, GraphTensor):
            raise TypeError(f"{tensor!r} is not a tensor of a graph; `graph.tensor(name)` is, and `graph.constant(values)`")
        self._own(tensor)
        return tensor._of()

    def _layer(self, layer: Union[GraphLayer, str, int]) -> int:
        if not isinstance(layer, (GraphLayer, str, int)):
            raise TypeError(f"{layer!r} is not a layer of a graph; `graph[name]` is")
        found = layer if isinstance(layer, GraphLayer) else self[layer]
        self._own(found)
        return found.id

    def _tensors(self, tensors: Iterable[TensorLike]) -> list[tuple[int, int]]:
        return [self._tensor(tensor) for tensor in tensors]

    @staticmethod
    def _kind(
        type: str, version: Optional[str], name: Optional[str], attributes: Mapping[str, Any]
    ) -> tuple[str, Optional[str], Optional[str], list[tuple[str, str]]]:
        return type, version, name, [(key, _text(value)) for key, value in attributes.items()]

    def add(
        self, type: str, *inputs: TensorLike, name: Optional[str] = None, version: Optional[str] = None, **attributes: Any
    ) -> GraphLayer:
        """Adds a layer, whose types and shapes follow from its inputs.

        Args:
            type: The operation: ``"Softmax"``, the oldest revision that takes what it gets, or ``"Softmax-8"``.
            inputs: What feeds it.
            name: Its name; by default its operation and id.
            version: The operation set of an operation of an extension.
            attributes: Its attributes; an element type may be one of NumPy's.

        Raises:
            ValueError: The operation does not take this.
        """
        return GraphLayer(self, self._native.add(self._kind(type, version, name, attributes), self._tensors(inputs)))

    def morph(
        self,
        layer: Union[GraphLayer, str, int],
        type: str,
        *inputs: TensorLike,
        name: Optional[str] = None,
        version: Optional[str] = None,
        **attributes: Any,
    ) -> GraphLayer:
        """Makes a layer another operation in its place: it keeps its id, name and consumers, and has these inputs and
        attributes. Gives the layer.

        Raises:
            ValueError: The operation does not take this, or makes another type than its consumers need.
        """
        id = self._layer(layer)
        self._native.morph(id, self._kind(type, version, name, attributes), self._tensors(inputs))
        return GraphLayer(self, id)

    def insert_after(
        self,
        tensor: TensorLike,
        type: str,
        *others: TensorLike,
        name: Optional[str] = None,
        version: Optional[str] = None,
        **attributes: Any,
    ) -> GraphLayer:
        """Adds a layer whose first input is the tensor; whoever used the tensor uses the layer."""
        kind = self._kind(type, version, name, attributes)
        return GraphLayer(self, self._native.insert_after(self._tensor(tensor), kind, self._tensors(others)))

    def insert_before(
        self,
        layer: Union[GraphLayer, str, int],
        input: int,
        type: str,
        *others: TensorLike,
        name: Optional[str] = None,
        version: Optional[str] = None,
        **attributes: Any,
    ) -> GraphLayer:
        """Adds a layer between one input of a layer and what feeds it."""
        kind = self._kind(type, version, name, attributes)
        return GraphLayer(self, self._native.insert_before((self._layer(layer), input), kind, self._tensors(others)))

    def connect(self, tensor: TensorLike, layer: Union[GraphLayer, str, int], input: int) -> None:
        """Makes a tensor feed an input of a layer, in the place of what fed it."""
        self._native.connect(self._tensor(tensor), (self._layer(layer), input))

    def replace_uses(self, old: TensorLike, new: TensorLike) -> None:
        """Whoever uses `old` uses `new`, which gets its names."""
        self._native.replace_uses(self._tensor(old), self._tensor(new))

    def remove(self, *layers: Union[GraphLayer, str, int]) -> None:
        """Removes layers that nothing else uses.

        Raises:
            ValueError: Another layer uses one of them.
        """
        self._native.remove([self._layer(layer) for layer in layers])

    def remove_unused(self, *layers: Union[GraphLayer, str, int]) -> int:
        """Removes those of the layers that nothing uses, and what nothing uses then; says how many went."""
        return len(self._native.remove_unused([self._layer(layer) for layer in layers]))

    def rename(self, old: str, new: str) -> None:
        """Gives whatever has this name another one: a layer, a tensor, an input or an output."""
        self._native.rename(old, new)

    def constant(self, values: Any, *, type: Any = None, name: Optional[str] = None) -> GraphTensor:
        """Adds a constant: an array, or numbers in lists, of which those with a fraction are f32 and others i64.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f16[2]\\nr = Result(x)")
        >>> with model.edit() as graph:
        ...     _ = graph.insert_after("x", "Add", graph.constant([1, 2], type="f16", name="bias"))
        >>> model["bias"].numbers()
        [1.0, 2.0]

        Args:
            values: The values.
            type: The element type to store them in: nearest even and saturating. By default that of the array.
            name: The name of its layer.
        """
        return GraphTensor(self, *self._constant(None, values, type, name))

    def set_constant(self, layer: Union[GraphLayer, str, int], values: Any, *, type: Any = None) -> None:
        """Gives a constant other values, and their shape. Without `type` it keeps its element type.

        Raises:
            ValueError: The layer is not a constant.
        """
        id = self._layer(layer)
        known = GraphLayer(self, id)
        if known.type != "Const":
            raise ValueError(f"`{known.name}` is not a constant: it is {known.type}")
        self._constant(id, values, known.output.element_type if type is None else type, None)

    def _constant(self, id: Optional[int], values: Any, type: Any, name: Optional[str]) -> tuple[int, int]:
        stored, dims, data = array_of(values)
        wanted = stored if type is None else element_type(type)
        return self._native.constant(id, stored, wanted, dims, data, name)

    def tap(self, tensor: TensorLike, name: Optional[str] = None) -> GraphLayer:
        """Makes a tensor an output of the model besides those that it has, and gives the Result."""
        return GraphLayer(self, self._native.tap(self._tensor(tensor), name))

    def cut(self, tensor: TensorLike) -> GraphLayer:
        """Makes a tensor an output of the model, and removes what is computed from it; gives the Result."""
        return GraphLayer(self, self._native.cut(self._tensor(tensor)))

    def extract(self, inputs: Iterable[TensorLike] = (), outputs: Iterable[TensorLike] = ()) -> None:
        """Leaves the piece between tensors: each of `inputs` becomes an input of its type and shape, each of `outputs` an
        output. Without `inputs` it begins where the model does, without `outputs` it ends where the model does.
        """
        self._native.extract(self._tensors(inputs), self._tensors(outputs))

    def inline(self, layer: Union[GraphLayer, str, int], body: int = 0) -> None:
        """Puts a body of an If in its place, whatever its condition is: 0 is the one for true."""
        self._native.inline(self._layer(layer), body)

    def graft(self, other: Model, feeds: Optional[Mapping[str, TensorLike]] = None, *, prefix: str = "") -> None:
        """Takes over another model, its bodies and the bytes of its constants included.

        Args:
            other: The other model.
            feeds: The inputs of the other model that tensors of this one take the place of.
            prefix: What all names of the other model begin with here.

        Raises:
            ValueError: A tensor is not what an input takes, or both models have tensors, inputs or outputs of one name.
        """
        pairs = [(name, self._tensor(tensor)) for name, tensor in (feeds or {}).items()]
        self._native.graft(other._native, pairs, prefix)

    def infer(self) -> None:
        """Brings the types and shapes of all tensors up to date, which the end of the batch does, too."""
        self._native.infer()

    def __repr__(self) -> str:
        return "<Graph>" if self._batch is None else f"<Graph: {len(self)} layers>"
