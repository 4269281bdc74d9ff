"""Values of constants as arrays, and element types of Python packages."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

if TYPE_CHECKING:
    import mmap

    import numpy
    import numpy.typing

Buffer = Union[bytes, bytearray, "mmap.mmap"]
"""Source of a constant's bytes."""

# The element types that NumPy has, under the names that differ.
_NUMPY = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "boolean": "bool",
}
# The element types of the package ml_dtypes, which use one byte or more.
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu"}
_BY_NAME = {name: ty for ty, name in {**_NUMPY, **_ML_DTYPES}.items()}


def element_type(of: Any) -> str:
    """Returns the element type for a text, a NumPy or ml_dtypes type, or OpenVINO's ``ov.Type``.

    >>> import typelift
    >>> [typelift.element_type(of) for of in ("f16", "float16", bool)]
    ['f16', 'f16', 'boolean']

    Raises:
        ValueError: The argument stands for no element type.
    """
    if isinstance(of, str):
        return _BY_NAME.get(of, of)
    of_openvino = getattr(of, "get_type_name", None)
    if of_openvino is not None:
        return str(of_openvino())
    name = {bool: "bool", int: "int64", float: "float32"}.get(of)
    if name is None:
        name = getattr(of, "name", None) or getattr(of, "__name__", None)
    if name not in _BY_NAME:
        raise ValueError(f"{of!r} is not an element type; write one as text, such as 'f16'")
    return _BY_NAME[name]


def array_of(values: Any) -> tuple[str, list[int], bytes]:
    """Returns element type, dimensions and bytes of an array, or of numbers in lists. Numbers with a fraction are f32,
    others i64."""
    if isinstance(values, (bool, int, float, list, tuple)):
        return _of_numbers(values)
    import numpy

    if numpy.ma.isMaskedArray(values):
        raise ValueError("a masked array is not a constant; give `values.filled(...)` or `values.data`")
    array = numpy.asarray(values)
    native = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return element_type(array.dtype), list(array.shape), native.tobytes()


def _of_numbers(values: Any) -> tuple[str, list[int], bytes]:
    dims, numbers = [], [values]
    while numbers and isinstance(numbers[0], (list, tuple)):
        dims.append(len(numbers[0]))
        if any(not isinstance(row, (list, tuple)) or len(row) != dims[-1] for row in numbers):
            raise ValueError("the lists of a constant must be of one length at each depth")
        numbers = [item for row in numbers for item in row]
    if not all(isinstance(number, (bool, int, float)) for number in numbers):
        raise ValueError("a constant is an array, or numbers in lists")
    kinds = {type(number) for number in numbers}
    ty, code = ("boolean", "?") if kinds == {bool} else ("i64", "q") if kinds <= {bool, int} and kinds else ("f32", "f")
    return ty, dims, struct.pack(f"<{len(numbers)}{code}", *numbers)


def constant_array(
    name: str,
    type: str,
    dims: Iterable[object],
    data: Callable[[], Optional[tuple[Buffer, int, int]]],
    values: Callable[[str], Optional[bytes]],
    copy: bool = False,
) -> numpy.typing.NDArray[Any]:
    """Returns values as an array in their element type. They are not copied if the weights hold them in NumPy's layout.
    If neither NumPy nor ml_dtypes has the type, the nearest type of NumPy is used.
    """
    import numpy

    dtype: Any = _NUMPY.get(type)
    if dtype is None and type in _ML_DTYPES:
        try:
            dtype = getattr(importlib.import_module("ml_dtypes"), _ML_DTYPES[type], None)
        except ImportError:
            dtype = None
    held: Optional[tuple[Buffer, int, int]]
    if dtype is not None:
        held = _read(values(type)) if copy else data()
    else:
        dtype = {"i": "int8", "u": "uint8"}.get(type[0], "float32")
        converted = values(_BY_NAME[dtype])
        held = None if converted is None else (converted, 0, len(converted))
    if held is None:
        raise ValueError(f"`{name}` is not a constant of numbers, or the weights do not have its values")
    buffer, offset, size = held
    shape = tuple(dim for dim in dims if isinstance(dim, int))
    if size == 0:
        return numpy.empty(shape, dtype)
    return numpy.frombuffer(buffer, dtype, size // numpy.dtype(dtype).itemsize, offset).reshape(shape)


def _read(read: Optional[bytes]) -> Optional[tuple[Buffer, int, int]]:
    """Returns bytes of one's own, which can be changed, as a buffer."""
    return None if read is None else (bytearray(read), 0, len(read))
