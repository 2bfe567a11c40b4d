"""The native functions of small arrays, which are called where a call needs no program."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dovetail.extend import HostFunction
from dovetail_cpu import kernel_library

#: The most multiplications in a product of matrices, and in one that fills tiles of registers.
_MOST_PRODUCTS: Final = 2**16
_MOST_IN_TILES: Final = 2**18
_DTYPES: Final = ("float32", "int32", "bool")

_Numbers = Callable[[Mapping[str, Any], Sequence[Any], Any], Sequence[int] | None]


class _Entry(ctypes.Structure):
    """An entry of the tables in `native/host_functions.cc` and `native/host_arrays.cc`."""

    _fields_ = (
        ("primitive", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("most", ctypes.c_ssize_t),
    )


def _around(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int, int] | None:
    """The sizes outside, along and inside axes that follow each other."""
    if not axes:
        return None
    first, last = min(axes), max(axes)
    if len(axes) != last - first + 1:
        return None
    sizes = shape[:first], shape[first : last + 1], shape[last + 1 :]
    outer, along, inner = map(math.prod, sizes)
    return outer, along, inner


def _reduction(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    if params.get("out_sharding") is not None:
        return None
    return _around(operands[0].shape, params["axes"])


def _position(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    sizes = _around(operands[0].shape, params["axes"])
    return sizes if sizes and sizes[1] and out.dtype == "int32" else None


def _cumulative(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    sizes = _around(operands[0].shape, (params["axis"],))
    return sizes and (*sizes, int(params["reverse"]))


def _product(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    known = ("dimension_numbers", "preferred_element_type")
    if out.dtype != "float32" or any(v is not None for k, v in params.items() if k not in known):
        return None
    x, y = operands
    batches = len(left_batch)
    leading = tuple(range(batches))
    if x.dtype != y.dtype or tuple(left_batch) != leading or tuple(right_batch) != leading:
        return None
    if len(left) != 1 or len(x.shape) > batches + 2 or len(y.shape) > batches + 2:
        return None
    batch, size = math.prod(x.shape[:batches]), x.shape[left[0]]
    rows, x_row, x_sum = _strides(x.shape, batches, left[0])
    columns, y_column, y_sum = _strides(y.shape, batches, right[0])
    most = _MOST_IN_TILES if min(rows, columns) >= 8 else _MOST_PRODUCTS
    if batch * rows * columns * size > most:
        return None
    return batch, rows, columns, size, x_row, x_sum, y_sum, y_column


def _strides(shape: Sequence[int], batches: int, summed: int) -> tuple[int, int, int]:
    """Of a vector or matrix the size of the axis that is not summed over, and how far apart
    elements are along that and the other."""
    if len(shape) == batches + 1:
        return 1, 0, 1
    if summed == batches + 1:
        return shape[batches], shape[batches + 1], 1
    return shape[batches + 1], 1, shape[batches + 1]


def _conversion(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    if params.get("sharding") is not None or out.dtype.name not in _DTYPES:
        return None
    return (_DTYPES.index(out.dtype.name),)


def _power(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return (params["y"],) if abs(params["y"]) <= 64 else None


def _transpose(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    permutation, shape = tuple(params["permutation"]), operands[0].shape
    batches = len(shape) - 2
    if batches < 0 or permutation != (*range(batches), batches + 1, batches):
        return None
    return math.prod(shape[:batches]), *shape[batches:]


def _rows(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    x, indices = operands
    numbers, trailing = params["dimension_numbers"], tuple(x.shape[1:])
    rank = len(indices.shape) - 1
    if (
        params["mode"].name not in ("PROMISE_IN_BOUNDS", "CLIP")
        or x.dtype.name not in ("float32", "int32")
        or 0 in x.shape
        or tuple(params["slice_sizes"]) != (1, *trailing)
        or tuple(numbers.collapsed_slice_dims) != (0,)
        or tuple(numbers.start_index_map) != (0,)
        or tuple(numbers.offset_dims) != tuple(range(rank, rank + len(trailing)))
        or numbers.operand_batching_dims
    ):
        return None
    return x.shape[0], math.prod(trailing)


def _scatter(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    x, indices, updates = operands
    numbers = params["dimension_numbers"]
    if (
        params["mode"].name not in ("PROMISE_IN_BOUNDS", "FILL_OR_DROP")
        or (len(x.shape), len(updates.shape)) != (1, 1)
        or indices.dtype != "int32"
        or x.dtype != updates.dtype
        or numbers.update_window_dims
        or tuple(numbers.inserted_window_dims) != (0,)
        or tuple(numbers.scatter_dims_to_operand_dims) != (0,)
        or numbers.operand_batching_dims
    ):
        return None
    return (updates.shape[0],)


_NUMBERS: Final[Mapping[str, _Numbers]] = {
    "argmax": _position,
    "argmin": _position,
    "convert_element_type": _conversion,
    "cumsum": _cumulative,
    "dot_general": _product,
    "gather": _rows,
    "integer_pow": _power,
    "reduce_and": _reduction,
    "reduce_max": _reduction,
    "reduce_max_of_numbers": _reduction,
    "reduce_min": _reduction,
    "reduce_or": _reduction,
    "reduce_prod": _reduction,
    "reduce_sum": _reduction,
    "scatter-add": _scatter,
    "transpose": _transpose,
}


def host_functions() -> Mapping[tuple[str, str], HostFunction]:
    """The functions by primitive and dtype; none if no kernels were built."""
    file = kernel_library.library()
    if file is None:
        return {}
    table = ctypes.CDLL(str(file)).dovetail_host_functions
    table.restype = ctypes.POINTER(_Entry)
    count = ctypes.c_size_t()
    entries = table(ctypes.byref(count))[: count.value]
    functions = {}
    for entry in entries:
        primitive = entry.primitive.decode()
        functions[primitive, entry.dtype.decode()] = HostFunction(
            entry.function, entry.most, _NUMBERS.get(primitive)
        )
    return functions
