"""Batches of edits: the graph of a model while it is open for changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union

from typelift import _typelift
from typelift._arrays import array_of, constant_array, element_type
from typelift._data import Shape
from typelift._errors import UnknownNameError
from typelift._layer import Tensor

if TYPE_CHECKING:
    import numpy
    import numpy.typing


class _Owner(Protocol):
    """A model, of which only the graph is needed here."""

    @property
    def _native(self) -> _typelift.Model: ...


TensorLike = Union["GraphTensor", "GraphLayer", Tensor, str]
"""A tensor of a graph or of its model, a layer with one output, or the name of a tensor or layer."""


def _unless_ended(value: object, text: Callable[[], str]) -> str:
    """Describes a part of a graph. Debuggers and prompts call ``repr`` also after the batch has ended."""
    try:
        return text()
    except (ValueError, LookupError):
        return f"<{type(value).__name__.lstrip('_')} of an ended batch>"


class GraphTensor:
    """An output of a layer in a batch of edits."""

    __slots__ = ("_graph", "_id", "_port")

    def __init__(self, graph: Graph, id: int, port: int) -> None:
        self._graph = graph
        self._id = id
        self._port = port

    @property
    def layer(self) -> GraphLayer:
        """The layer that produces it."""
        return GraphLayer(self._graph, self._id)

    @property
    def index(self) -> int:
        """The output of the layer, from 0."""
        return self._port

    def _of(self) -> tuple[int, int]:
        """The identity of the tensor for the native part."""
        return self._id, self._port

    def _port_of(self) -> tuple[str, str, list[str]]:
        return self._graph._native.outputs(self._id)[self._port]

    @property
    def element_type(self) -> str:
        """The element type, as inferred when its layer was added or by :meth:`Graph.infer`."""
        return self._port_of()[0]

    @property
    def shape(self) -> Shape:
        """The shape, as inferred when its layer was added or by :meth:`Graph.infer`."""
        return Shape.parse(self._port_of()[1])

    @property
    def names(self) -> list[str]:
        """The names. Assign to change them."""
        return self._port_of()[2]

    @names.setter
    def names(self, names: Iterable[str]) -> None:
        self._graph._native.set_names((self._id, self._port), list(names))

    @property
    def consumers(self) -> list[tuple[GraphLayer, int]]:
        """The consumers: layers, each with the input that uses this tensor."""
        used = self._graph._native.consumers((self._id, self._port))
        return [(GraphLayer(self._graph, id), port) for id, port in used]

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, GraphTensor) and (self._id, self._port) == (other._id, other._port)
        return same and self._graph == other._graph  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self._id, self._port))

    def __repr__(self) -> str:
        return _unless_ended(self, lambda: f"<GraphTensor {self._id}.{self._port}: {self.element_type}{self.shape}>")


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
        raise TypeError(f"an attribute is not taken away; replace_in_place the layer without `{name}`")

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return _unless_ended(self, lambda: repr(self._all()))


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
        return _unless_ended(self, lambda: repr(self._all()))


class GraphLayer:
    """A layer in a batch of edits. Its properties are those of the current state of the graph."""

    __slots__ = ("_graph", "_id")

    def __init__(self, graph: Graph, id: int) -> None:
        self._graph = graph
        self._id = id

    @property
    def id(self) -> int:
        """The id, which no edit changes."""
        return self._id

    @property
    def name(self) -> str:
        """The name. Assign to change it."""
        return self._graph._native.name(self._id)

    @name.setter
    def name(self, name: str) -> None:
        self._graph._native.set_name(self._id, name)

    @property
    def type(self) -> str:
        """The operation, as the file spells it."""
        return self._graph._native.operation(self._id)[0]

    @property
    def version(self) -> str:
        """The operation set, such as ``opset1``."""
        return self._graph._native.operation(self._id)[1]

    @property
    def attributes(self) -> MutableMapping[str, Any]:
        """The attributes. Assign to change one. Numbers, booleans, lists and element types are spelled as files spell
        them."""
        return _Attributes(self._graph, self._id)

    @property
    def rt_info(self) -> MutableMapping[str, str]:
        """The metadata by name. Assign to set a value, ``del`` to remove one."""
        return _Metadata(self._graph, self._id)

    @property
    def inputs(self) -> list[Optional[GraphTensor]]:
        """The tensors of its inputs; ``None`` for an input that is not connected."""
        producers = self._graph._native.producers(self._id)
        return [None if of is None else GraphTensor(self._graph, *of) for of in producers]

    @property
    def outputs(self) -> list[GraphTensor]:
        """The tensors that it produces."""
        return [GraphTensor(self._graph, self._id, at) for at in range(len(self._graph._native.outputs(self._id)))]

    @property
    def output(self) -> GraphTensor:
        """The first output."""
        return GraphTensor(self._graph, self._id, 0)

    @property
    def bodies(self) -> dict[str, Graph]:
        """The graphs inside it, for editing: ``body``, or ``then_body`` and ``else_body``."""
        native = self._graph._native
        return {name: Graph(None, native.body(self._id, at)) for at, name in enumerate(native.bodies(self._id))}

    def numpy(self) -> numpy.typing.NDArray[Any]:
        """Returns the values of a constant, as :meth:`typelift.Layer.numpy` does."""
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
        return _unless_ended(self, lambda: f"<GraphLayer {self._id} {self.name!r}: {self.type}>")


def _text(value: Any) -> str:
    """Spells the value of an attribute as files do."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, Iterable):
        return ",".join(_text(item) for item in value)
    return element_type(value)


class Removed(list[int]):
    """The ids of removed layers. `kept` has the names of the layers that were to be removed and stay, with the reason."""

    def __init__(self, removed: Iterable[int], kept: dict[str, str]) -> None:
        super().__init__(removed)
        self.kept = kept


class Graph:
    """Graph of a model during ``with model.edit() as graph``. At the end of the batch the model gets all edits; after
    an exception it gets none.

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

    def __init__(self, model: Optional[_typelift.Model] = None, batch: Optional[_typelift.Graph] = None) -> None:
        """Created by :meth:`typelift.Model.edit`, and for parts of a batch."""
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
        self._batch = _typelift.begin(self._model)
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._native.finish(kind is None)

    def __eq__(self, other: object) -> bool:
        """True if both are the same graph of the same batch."""
        return self is other or (isinstance(other, Graph) and self._native.same(other._native))

    def __hash__(self) -> int:
        return hash(Graph)

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[GraphLayer]:
        """Iterates over the current layers, in the order of the file."""
        return (GraphLayer(self, id) for id in self._native.ids())

    def __getitem__(self, key: Union[str, int]) -> GraphLayer:
        """Returns the layer with this name, tensor name or id. The lookup time does not depend on the size of the
        graph. In the model's own graph, ``graph["loop/body/x"]`` is a layer of a body.

        Raises:
            KeyError: There is no such layer or tensor, or more than one.
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
        """Returns the tensor with this name, or the first output of the layer with this name.

        Raises:
            KeyError: There is no such layer or tensor, or more than one.
        """
        return GraphTensor(self, *self._native.find_tensor(name))

    def body(self, layer: Union[GraphLayer, str, int], body: Union[str, int] = 0) -> Graph:
        """Returns the graph of a layer's body for editing, by its name or number.

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
        ...     then.replace_in_place("b", "Relu", "a")
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
        """Iterates over the graphs of all bodies, innermost ones first, and then this one."""
        for owner in self._native.owners():
            if self._native.has(owner):
                for body in GraphLayer(self, owner).bodies.values():
                    yield from body.everywhere()
        yield self

    def _own(self, part: Union[GraphTensor, GraphLayer]) -> None:
        """The ids of other graphs overlap with those of this one, so their parts are refused."""
        if part._graph is not self and part._graph != self:
            raise ValueError(f"{part!r} is not of this graph")

    def _tensor(self, tensor: TensorLike) -> tuple[int, int]:
        if isinstance(tensor, str):
            return self._native.find_tensor(tensor)
        if isinstance(tensor, GraphLayer):
            self._own(tensor)
            return tensor.id, 0
        if not isinstance(tensor, GraphTensor):
            known = self._known(tensor)
            if known:
                return known
            raise TypeError(f"{tensor!r} is not a tensor of a graph; `graph.tensor(name)` is, and `graph.constant(values)`")
        self._own(tensor)
        return tensor._of()

    def _known(self, tensor: object) -> Optional[tuple[int, int]]:
        """Returns a tensor of the model outside of bodies, if it is still in this graph."""
        if not isinstance(tensor, Tensor) or self._model is None or tensor.layer.path != tensor.layer.name:
            return None
        id = tensor.layer.id
        is_there = self._native.has(id) and self._native.name(id) == tensor.layer.name
        return (id, tensor.index) if is_there else None

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
        """Adds a layer. Its types and shapes are inferred from its inputs.

        Args:
            type: The operation: ``"Softmax"`` is the oldest revision that accepts the inputs; ``"Softmax-8"`` is one
                revision.
            inputs: The tensors for its inputs.
            name: The name; by default operation and id.
            version: The operation set, for an operation of an extension.
            attributes: The attributes. An element type may be one of NumPy's.

        Raises:
            ValueError: The operation does not accept these inputs or attributes.
        """
        return GraphLayer(self, self._native.add(self._kind(type, version, name, attributes), self._tensors(inputs)))

    def replace_in_place(
        self,
        layer: Union[GraphLayer, str, int],
        type: str,
        *inputs: TensorLike,
        name: Optional[str] = None,
        version: Optional[str] = None,
        **attributes: Any,
    ) -> GraphLayer:
        """Replaces a layer in place: it keeps its id, name and consumers, and gets this operation, these inputs and
        attributes. Returns the layer.

        Raises:
            ValueError: The operation does not accept these inputs or attributes, or has a result type that the
                consumers do not accept.
        """
        id = self._layer(layer)
        self._native.replace_in_place(id, self._kind(type, version, name, attributes), self._tensors(inputs))
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
        """Adds a layer whose first input is the tensor. All consumers of the tensor use the layer instead."""
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
        """Adds a layer between one input of a layer and its producer."""
        kind = self._kind(type, version, name, attributes)
        return GraphLayer(self, self._native.insert_before((self._layer(layer), input), kind, self._tensors(others)))

    def connect(self, tensor: TensorLike, layer: Union[GraphLayer, str, int], input: int) -> None:
        """Connects a tensor to an input of a layer, in place of the former tensor."""
        self._native.connect(self._tensor(tensor), (self._layer(layer), input))

    def replace_uses(self, old: TensorLike, new: TensorLike) -> None:
        """Makes all consumers of `old` use `new`, which gets the names of `old`."""
        self._native.replace_uses(self._tensor(old), self._tensor(new))

    def remove(self, *layers: Union[GraphLayer, str, int]) -> None:
        """Removes layers that no other layer uses.

        Raises:
            ValueError: Another layer uses one of them.
        """
        self._native.remove([self._layer(layer) for layer in layers])

    def remove_unused(self, *layers: Union[GraphLayer, str, int]) -> Removed:
        """Removes the given layers that are unused, and everything that becomes unused. Returns the removed and the
        kept layers. Inputs, outputs and writes of state are always kept: :meth:`remove_outputs` removes outputs,
        :meth:`remove` inputs.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[2]\\ny = Relu(x)\\nz = Abs(x)\\nr = Result(z)")
        >>> with model.edit() as graph:
        ...     removed = graph.remove_unused("y", "r", "z")
        >>> len(removed), removed.kept
        (1, {'r': 'it is an output of the model', 'z': '`r` uses it'})
        """
        removed, kept = self._native.remove_unused([self._layer(layer) for layer in layers])
        return Removed(removed, dict(kept))

    def redirect(self, old: TensorLike, new: TensorLike) -> Removed:
        """Makes all consumers of `old` use `new`, and removes the layers, inputs and state that only `old` needed.
        Layers that `new` is computed from keep `old`.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f32[2]\\ny = Relu(x)\\nz = Abs(y)\\nr = Result(z)")
        >>> with model.edit() as graph:
        ...     _ = graph.redirect("y", "x")
        >>> [layer.name for layer in model]
        ['x', 'z', 'r']
        """
        return Removed(self._native.redirect(self._tensor(old), self._tensor(new)), {})

    def remove_outputs(self, *outputs: Union[GraphLayer, str, int]) -> Removed:
        """Removes outputs, each the Result or the name of its tensor, and the layers, inputs and state that only they
        needed."""
        return Removed(self._native.remove_outputs([self._result(output) for output in outputs]), {})

    def order(self, *ends: Union[GraphLayer, str, int]) -> None:
        """Puts these inputs or outputs first, in this order. The others follow in the order that they have."""
        found = [self._layer(end) for end in ends]
        if any(GraphLayer(self, id).type != "Parameter" for id in found):
            found = [self._result(end) for end in ends]
        self._native.order(found)

    def _result(self, output: Union[GraphLayer, str, int]) -> int:
        layer = GraphLayer(self, self._layer(output))
        if layer.type == "Result":
            return layer.id
        results = [user for tensor in layer.outputs for user, _ in tensor.consumers if user.type == "Result"]
        if len(results) != 1:
            raise ValueError(f"{output!r} is not an output of the model")
        return results[0].id

    def make_stateful(self, pairs: Mapping[str, str], beam: Optional[TensorLike] = None) -> None:
        """Turns inputs, and the outputs that give their next values, into variables. Each is named by both names, as
        OpenVINO's own transformation does.

        >>> import typelift
        >>> model = typelift.from_text('''
        ...     x = Parameter : f32[1,1,4]
        ...     past = Parameter : f32[1,?,4]
        ...     all = Concat(past, x) {axis=1}
        ...     present = Result(all)
        ...     y = Abs(all)
        ...     r = Result(y)
        ... ''')
        >>> with model.edit() as graph:
        ...     graph.make_stateful({"past": "present"})
        >>> model["past"].attributes["variable_id"]
        'pastpresent'

        Args:
            pairs: The names of inputs, each with that of the output.
            beam: A tensor of indices. Each variable is gathered by it when it is read.
        """
        native = [(self._layer(past), self._result(present), past + present) for past, present in pairs.items()]
        self._native.make_stateful(native, None if beam is None else self._tensor(beam))

    def make_stateless(self, variables: Mapping[str, tuple[str, str]]) -> None:
        """Turns variables into inputs and outputs: the names of both by that of the variable."""
        for variable, (past, present) in variables.items():
            self._native.make_stateless(variable, past, present)

    def rename(self, old: str, new: str) -> None:
        """Renames a layer, a tensor, an input or an output."""
        self._native.rename(old, new)

    def constant(self, values: Any, *, type: Any = None, name: Optional[str] = None) -> GraphTensor:
        """Adds a constant from an array, or from numbers in lists: those with a fraction are f32, others i64.

        >>> import typelift
        >>> model = typelift.from_text("x = Parameter : f16[2]\\nr = Result(x)")
        >>> with model.edit() as graph:
        ...     _ = graph.insert_after("x", "Add", graph.constant([1, 2], type="f16", name="bias"))
        >>> model["bias"].numbers()
        [1.0, 2.0]

        Args:
            values: The values.
            type: The element type to store them in, rounding to nearest even and saturating. By default that of the
                array.
            name: The name of its layer.
        """
        return GraphTensor(self, *self._constant(None, values, type, name))

    def set_constant(self, layer: Union[GraphLayer, str, int], values: Any, *, type: Any = None) -> None:
        """Changes the values and shape of a constant. Without `type` it keeps its element type.

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

    def expose(self, tensor: TensorLike, name: Optional[str] = None) -> GraphLayer:
        """Adds an output for a tensor, keeps the other outputs, and returns the Result."""
        return GraphLayer(self, self._native.expose(self._tensor(tensor), name))

    def cut(self, tensor: TensorLike) -> GraphLayer:
        """Makes a tensor an output of the model, and removes the layers after it. Returns the Result."""
        return GraphLayer(self, self._native.cut(self._tensor(tensor)))

    def extract(self, inputs: Iterable[TensorLike] = (), outputs: Iterable[TensorLike] = ()) -> None:
        """Extracts the part between tensors: each of `inputs` becomes an input of its type and shape, each of `outputs`
        an output. Without `inputs` the part begins at the model's inputs. Without `outputs` it ends at the model's
        outputs.
        """
        self._native.extract(self._tensors(inputs), self._tensors(outputs))

    def inline(self, layer: Union[GraphLayer, str, int], body: int = 0) -> None:
        """Replaces an If by one of its bodies, regardless of its condition. 0 is the body for true."""
        self._native.inline(self._layer(layer), body)

    def inline_model(self, other: _Owner, feeds: Optional[Mapping[str, TensorLike]] = None, *, prefix: str = "") -> None:
        """Inlines another model, including its bodies and the bytes of its constants.

        Args:
            other: The other model.
            feeds: Inputs of the other model, with the tensors of this model that replace them.
            prefix: A prefix for all names of the other model.

        Raises:
            ValueError: An input does not accept a tensor, or both models have tensors, inputs or outputs of one name.
        """
        pairs = [(name, self._tensor(tensor)) for name, tensor in (feeds or {}).items()]
        self._native.inline_model(other._native, pairs, prefix)

    def infer(self) -> None:
        """Infers the types and shapes of all tensors. The end of the batch does this too."""
        self._native.infer()

    def __repr__(self) -> str:
        return "<Graph>" if self._batch is None else f"<Graph: {len(self)} layers>"
