"""The native functions of small arrays, which are called where a call needs no program."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dovetail.extend import HostFunction
from dovetail_cpu import host_moves, kernel_library

#: The most multiplications in products of matrices, in those that fill tiles of registers, and in
#: one of these alone.
_MOST_PRODUCTS: Final = 2**16
_MOST_IN_TILES: Final = 2**18
_MOST_ALONE: Final = 2**21
#: The same where programs have one thread, of any products that fill tiles, but for those that may
#: be of a matrix and its transpose, of which a program computes half.
_MOST_ON_ONE_THREAD: Final = 2**24
#: As in `native/host_arrays.cc` and `native/short_rows.h`.
_LEAST_IN_TILES: Final = 2048
_SHORT: Final = 8
_LONG: Final = 4096
#: The most elements that are reduced, and raised to powers, where programs have many threads, or
#: two, of which one may help; and of which positions are found other than in long rows.
_MOST_REDUCED: Final = 2**19
_MOST_IN_COMPANY: Final = 2**20
_MOST_SEARCHED: Final = 2**15
#: The product of two longer vectors on few threads has a program.
_MOST_OF_VECTORS: Final = 2**20
#: The most numbers that are transformed whatever the threads and lengths, and the longest of more.
_MOST_TRANSFORMED: Final = 2**15
_LONGEST_OF_MANY: Final = 2**12
#: Truths of rows of so many bytes are looked through as fast as by a program of so many threads.
_LONG_OF_TRUTHS: Final = 64
_FEW_THREADS: Final = 2
#: Those of conversions, in the order of `native/host_arrays.cc`.
_DTYPES: Final = (
    *("float32", "int32", "bool", "uint32", "float64", "int64"),
    *("complex64", "complex128"),
)

_Numbers = Callable[[Mapping[str, Any], Sequence[Any], Any], Sequence[int] | None]


class _Entry(ctypes.Structure):
    """An entry of the tables of `native/host_functions.cc` and the files beside it."""

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


def _threads() -> int:
    from dovetail_cpu import runtime  # deferred: loads jaxlib

    return runtime.num_threads()


def _if_quick(sizes: Any, is_bool: bool, most: int = _MOST_REDUCED) -> Any:
    """The sizes, if the elements are at most so many, or in long rows, and too many threads of a
    program would not be faster."""
    if sizes is None or math.prod(sizes) <= most:
        return sizes
    if sizes[2] > 1 or sizes[1] < (_LONG_OF_TRUTHS if is_bool else _LONG):
        return None
    return sizes if is_bool and _threads() <= _FEW_THREADS else _within(math.prod(sizes), sizes)


def _within(elements: int, numbers: Any) -> Any:
    """The numbers, if threads of a program would not be faster for so many elements."""
    threads = _threads()
    if threads == 1:
        return numbers
    return (
        numbers
        if elements <= (_MOST_REDUCED if threads > _FEW_THREADS else _MOST_IN_COMPANY)
        else None
    )


def _reduction(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    if params.get("out_sharding") is not None:
        return None
    (x,) = operands
    return _if_quick(_around(x.shape, params["axes"]), x.dtype == "bool")


#: As in `native/host_arrays.cc`.
_TERMS: Final = ("numbers", "numbers counted", "nonzero counted", "squares")
_OF_FLOATS: Final = frozenset(_TERMS)
_OF_INTEGERS: Final = frozenset({"nonzero counted", "squares"})


def _sum(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    sizes, terms = _reduction(params, operands, out), params.get("terms")
    if sizes is None or terms is None:
        return sizes and (*sizes, 0)
    if sizes[2] != 1 or out.dtype.itemsize != operands[0].dtype.itemsize:
        return None
    return *sizes, 1 + _TERMS.index(terms)


def _terms(primitive: str, dtype: str) -> frozenset[str]:
    """What can be added besides elements."""
    if primitive != "reduce_sum":
        return frozenset()
    return _OF_FLOATS if dtype.startswith("float") else _OF_INTEGERS


def _position(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    (x,) = operands
    sizes = _around(x.shape, params["axes"])
    if not sizes or not sizes[1] or out.dtype != "int32":
        return None
    return _if_quick(sizes, x.dtype == "bool", _MOST_SEARCHED)


def _cumulative(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    sizes = _around(operands[0].shape, (params["axis"],))
    return sizes and (*sizes, int(params["reverse"]))


def _transform(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    from dovetail_cpu.lowerings.fourier import is_fast  # deferred: few calls need it

    lengths, kind = params["fft_lengths"], int(params["fft_type"])
    shapes = operands[0].shape, out.shape
    if not lengths or any(0 in shape for shape in shapes) or not all(map(is_fast, lengths)):
        return None
    if max(map(math.prod, shapes)) > _MOST_TRANSFORMED and (
        _threads() > _FEW_THREADS or max(lengths) > _LONGEST_OF_MANY
    ):
        return None
    return kind, math.prod(out.shape[: -len(lengths)]), len(lengths), *lengths


def _product(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    known = ("dimension_numbers", "preferred_element_type")
    if any(v is not None for k, v in params.items() if k not in known):
        return None
    x, y = operands
    batches = len(left_batch)
    leading = tuple(range(batches))
    if (
        x.dtype != y.dtype
        or out.dtype != x.dtype
        or tuple(left_batch) != leading
        or tuple(right_batch) != leading
    ):
        return None
    if len(left) != 1:
        return None
    if len(y.shape) == 1 and left[0] == len(x.shape) - 1 and 2 <= y.shape[0] <= _SHORT:
        return _short_rows(x.shape, out)
    if len(x.shape) > batches + 2 or len(y.shape) > batches + 2:
        return None
    batch, size = math.prod(x.shape[:batches]), x.shape[left[0]]
    rows, x_row, x_sum = _strides(x.shape, batches, left[0])
    columns, y_column, y_sum = _strides(y.shape, batches, right[0])
    each = rows * columns * size
    in_tiles = min(rows, columns) >= 8 and each >= _LEAST_IN_TILES
    most = _MOST_PRODUCTS if not in_tiles else _MOST_IN_TILES if batch > 1 else _MOST_ALONE
    if out.dtype != "float32" and not in_tiles:
        return None
    is_half_computed = rows == columns and out.dtype.kind == "f"
    if in_tiles and not is_half_computed and _threads() == 1:
        most = _MOST_ON_ONE_THREAD
    if batch == rows == columns == 1 and _threads() <= _FEW_THREADS:
        most = _MOST_OF_VECTORS
    if batch * each > most:
        return None
    return batch, rows, columns, size, x_row, x_sum, y_sum, y_column


def _short_rows(shape: Sequence[int], out: Any) -> Any:
    """Rows of few numbers times a vector, by the loop of the kernel."""
    rows, size = math.prod(shape[:-1]), shape[-1]
    most = _MOST_ALONE if _threads() <= _FEW_THREADS else _MOST_PRODUCTS
    if out.dtype != "float32" or rows * size > most:
        return None
    return 1, rows, 1, size, size, 1, 1, 1


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
    return None if abs(params["y"]) > 64 else _within(math.prod(out.shape), (params["y"],))


def _rounding(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return (int(params["rounding_method"]),) if int(params["rounding_method"]) < 2 else None


def _rows(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    x, indices = operands
    numbers, trailing = params["dimension_numbers"], tuple(x.shape[1:])
    rank = len(indices.shape) - 1
    if (
        params["mode"].name not in ("PROMISE_IN_BOUNDS", "CLIP")
        or 0 in x.shape
        or host_moves.is_key(x)
        or tuple(params["slice_sizes"]) != (1, *trailing)
        or tuple(numbers.collapsed_slice_dims) != (0,)
        or tuple(numbers.start_index_map) != (0,)
        or tuple(numbers.offset_dims) != tuple(range(rank, rank + len(trailing)))
        or numbers.operand_batching_dims
    ):
        return None
    return x.shape[0], math.prod(trailing) * host_moves.item_size(x), math.prod(indices.shape[:-1])


def _written_rows(params: Mapping[str, Any], operands: Sequence[Any]) -> tuple[int, int] | None:
    """How many rows are written, and the elements of each; None if anything else is."""
    x, indices, updates = operands
    numbers = params["dimension_numbers"]
    rank = len(indices.shape) - 1
    if (
        params["mode"].name not in ("PROMISE_IN_BOUNDS", "FILL_OR_DROP")
        or indices.dtype != "int32"
        or x.dtype != updates.dtype
        or host_moves.is_key(x)
        or tuple(numbers.inserted_window_dims) != (0,)
        or tuple(numbers.scatter_dims_to_operand_dims) != (0,)
        or numbers.operand_batching_dims
        or tuple(updates.shape[rank:]) != tuple(x.shape[1:])
        or tuple(numbers.update_window_dims) != tuple(range(rank, rank + len(x.shape) - 1))
    ):
        return None
    return math.prod(updates.shape[:rank]), math.prod(x.shape[1:])


def _scatter_add(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return _written_rows(params, operands)


def _scatter(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    rows = _written_rows(params, operands)
    if rows is None or params.get("update_jaxpr") is not None:
        return None
    x = operands[0]
    return x.shape[0], rows[1] * x.dtype.itemsize, rows[0]


def _sorted(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    shape = operands[0].shape
    kinds = [_KINDS.get(x.dtype.kind) for x in operands]
    if None in kinds or params["dimension"] != len(shape) - 1 or 0 in shape:
        return None
    each = [n for x, kind in zip(operands, kinds, strict=True) for n in (x.dtype.itemsize, kind)]
    return math.prod(shape[:-1]), shape[-1], params["num_keys"], len(operands), *each


#: How `native/sorting.cc` calls kinds of dtypes.
_KINDS: Final = {"b": 0, "u": 0, "i": 1, "f": 2}


def _searched(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    row, values = operands
    sizes = row.shape[-1], values.shape[-1]
    if 0 in values.shape or not sizes[0] or out.dtype != "int32" or row.dtype != values.dtype:
        return None
    if row.shape[:-1] != values.shape[:-1]:
        return None
    return math.prod(row.shape[:-1]), *sizes, int(params["side"] == "right")


def _true_positions(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    *rows, count = operands[0].shape
    if out.dtype != "int32" or 0 in out.shape or not count:
        return None
    return math.prod(rows), count, params["size"]


def _is_threefry(keys: Any) -> bool:
    from dovetail.extend.random import threefry_prng_impl  # deferred: calls with keys need it

    return keys.dtype.implementation is threefry_prng_impl


def _bits(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    (keys,) = operands
    if not _is_threefry(keys):
        return None
    return math.prod(keys.shape), math.prod(params["shape"]), params["bit_width"] // 8


def _seeded_keys(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return (math.prod(out.shape),) if _is_threefry(out) else None


def _split_keys(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    (keys,) = operands
    return (math.prod(keys.shape), math.prod(params["shape"])) if _is_threefry(keys) else None


def _folded_keys(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return (math.prod(operands[0].shape),) if _is_threefry(operands[0]) else None


_NUMBERS: Final[Mapping[str, _Numbers]] = {
    **host_moves.NUMBERS,
    "argmax": _position,
    "argmin": _position,
    "convert_element_type": _conversion,
    "cummax": _cumulative,
    "cummin": _cumulative,
    "cumprod": _cumulative,
    "cumsum": _cumulative,
    "dot_general": _product,
    "fft": _transform,
    "gather": _rows,
    "integer_pow": _power,
    "random_bits": _bits,
    "random_fold_in": _folded_keys,
    "random_seed": _seeded_keys,
    "random_split": _split_keys,
    "reduce_and": _reduction,
    "reduce_max": _reduction,
    "reduce_max_of_numbers": _reduction,
    "reduce_min": _reduction,
    "reduce_or": _reduction,
    "reduce_prod": _reduction,
    "reduce_sum": _sum,
    "round": _rounding,
    "scatter": _scatter,
    "scatter-add": _scatter_add,
    "searchsorted": _searched,
    "sort": _sorted,
    "true_positions": _true_positions,
}

#: Those of functions for any dtype.
_ANY_DTYPE: Final = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


def host_functions() -> Mapping[tuple[str, str], HostFunction]:
    """The functions by primitive and dtype; none if no kernels were built."""
    file = kernel_library.library()
    if file is None:
        return {}
    library = ctypes.CDLL(str(file))
    in_rows = ctypes.cast(library.dovetail_in_rows, ctypes.c_void_p).value or 0
    table = library.dovetail_host_functions
    table.restype = ctypes.POINTER(_Entry)
    count = ctypes.c_size_t()
    entries = table(ctypes.byref(count))[: count.value]
    functions = {}
    for entry in entries:
        primitive = entry.primitive.decode()
        dtype = entry.dtype.decode()
        numbers = _NUMBERS.get(primitive)
        function = HostFunction(
            entry.function, entry.most, numbers, _terms(primitive, dtype), 0 if numbers else in_rows
        )
        functions.update(
            {(primitive, name): function for name in (_ANY_DTYPE if dtype == "*" else (dtype,))}
        )
    return functions
