"""Sorting by a kernel, and where none was built by a single integer that holds key and position.

XLA's CPU compiler calls a function for each comparison, unless it sorts one array by plain
comparison of its elements. Here, a key of up to 32 bits and the position of the element are packed
into one 64-bit integer, and the operands are gathered in the resulting order. The result is bitwise
the same, and always stable. A million float32 numbers take a fifth of the time, with or without
values that go along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.elementary import is_made_by, is_used_once

TABLE: Final = LoweringTable()

#: So few columns are made rows before, each of which all threads sort.
FEW_COLUMNS: Final = 16
#: Shorter arrays sort as fast with a comparison function, in a smaller program.
MANY: Final = 128

BOOL: Final = np.dtype(bool)
INT32: Final = np.dtype(np.int32)
UINT32: Final = np.dtype(np.uint32)
INT64: Final = np.dtype(np.int64)
FLOAT32: Final = np.dtype(np.float32)


#: Keys that the kernel orders; what goes along may be of any dtype of whole bytes.
_KEYS: Final = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64"),
    }
)


@TABLE.rule("sort")
def sort(context: Any, *values: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    """Sort by a kernel or by packed integers; NotImplemented where nothing is gained."""
    avals = context.avals_in
    if kernels.usable(context) and _suits_kernel(context, avals, dimension, num_keys):
        shuffled = _shuffle(context, values, avals)
        if shuffled is not NotImplemented:
            return shuffled
        return _sort_by_kernel(context, values, avals, dimension, num_keys)
    return _sort_packed(context, values, avals, dimension, num_keys)


def _suits_kernel(context: Any, avals: Any, dimension: int, num_keys: int) -> bool:
    return (
        avals[0].size > 0
        and avals[0].shape[dimension] < 2**32
        and all(dtype_name(a.dtype) in _KEYS for a in avals[:num_keys])
        and not any(context.physical_dimensions(a) for a in avals)
        and all(dtypes.itemsize_bits(a.dtype) >= 8 for a in avals)
    )


def _shuffle(context: Any, values: Sequence[Any], avals: Any) -> Any:
    """A vector sorted by random words that nothing else needs, by a kernel that draws them.

    Permutations are sorted so several times, all by one kernel. NotImplemented for other sorts.
    """
    if len(avals) != 2 or avals[1].ndim != 1 or context.times_used(context.equation.outvars[0]):
        return NotImplemented
    words, value = values
    if not _is_called(words, kernels.THREEFRY_BITS):
        return NotImplemented
    (key,) = words.owner.operands
    if key.type.rank > 1:  # Words of several keys.
        return NotImplemented
    operands = [value]
    if avals[1].dtype in (INT32, INT64) and is_made_by(value, "iota"):
        operands = []
    elif _is_called(value, kernels.SHUFFLE) and is_used_once(context, context.equation.invars[1]):
        operands = [*value.owner.operands]
    operands.append(key)
    # Keys are of another type than numbers.
    numbers = int(operands[0].type != value.type)
    (out,) = kernels.call(context, kernels.SHUFFLE, operands, avals[1:], 0, numbers=numbers)
    return [words, out]


def _is_called(x: Any, kernel: str) -> bool:
    """Whether a value is the result of a kernel."""
    return is_made_by(x, "custom_call") and x.owner.attributes["call_target_name"].value == kernel


def _sort_by_kernel(
    context: Any, values: Sequence[Any], avals: Any, dimension: int, num_keys: int
) -> Any:
    """The kernel sorts along any dimension, along the last one also elements of two words."""
    last = avals[0].ndim - 1
    few = avals[0].size < FEW_COLUMNS * avals[0].shape[dimension]
    if dimension == last or not (few or any(a.dtype.itemsize > 8 for a in avals)):
        attributes = {"num_keys": num_keys, "after": last - dimension}
        return kernels.call(context, kernels.SORT, values, avals, dimension, **attributes)
    order = [*(i for i in range(last + 1) if i != dimension), dimension]
    back = [*range(dimension), last, *range(dimension, last)]
    moved = [a.update(shape=tuple(a.shape[i] for i in order)) for a in avals]
    values = [context.transpose(x, a, order) for x, a in zip(values, moved, strict=True)]
    outs = kernels.call(context, kernels.SORT, values, moved, last, num_keys=num_keys, after=0)
    return [context.transpose(x, a, back) for x, a in zip(outs, avals, strict=True)]


def _sort_packed(
    context: Any, values: Sequence[Any], avals: Any, dimension: int, num_keys: int
) -> Any:
    key = avals[0]
    size = key.shape[dimension]
    if (
        num_keys != 1
        or key.size < MANY
        or size >= 2**31
        or key.dtype.itemsize > 4
        or any(context.physical_dimensions(a) for a in avals)
    ):
        return NotImplemented
    if len(avals) == 1 and (key.dtype == BOOL or key.dtype.kind in "iu"):
        return NotImplemented
    wide = ShapedArray(key.shape, INT64)
    scalar = ShapedArray((), INT64)
    packed = context.op(
        "shift_left", [_ordered(context, values[0], key), context.constant(32, wide)], wide
    )
    packed = context.or_(packed, context.iota(wide, dimension), wide)
    (packed,) = context.sort(
        [packed], [wide], dimension, True, lambda a, b: context.compare(a, b, "LT", scalar)
    )
    low = context.and_(packed, context.constant(0xFFFFFFFF, wide), wide)
    positions = context.convert(low, wide, ShapedArray(key.shape, INT32))
    vectors = context.reshape(positions, ShapedArray((*key.shape, 1), INT32))
    others = tuple(i for i in range(key.ndim) if i != dimension)
    attributes = {
        "dimension_numbers": context.gather_dimension_numbers(
            offset_dims=(),
            collapsed_slice_dims=(dimension,),
            start_index_map=(dimension,),
            index_vector_dim=key.ndim,
            operand_batching_dims=others,
            start_indices_batching_dims=others,
        ),
        "slice_sizes": context.i64_array((1,) * key.ndim),
        "indices_are_sorted": False,
    }
    return [
        context.op("gather", [value, vectors], aval, attributes)
        for value, aval in zip(values, avals, strict=True)
    ]


def _ordered(context: Any, x: Any, aval: Any) -> Any:
    """Integers in the 32-bit range, in the order of the elements of `x`, equal where these are."""
    wide = ShapedArray(aval.shape, INT64)
    if aval.dtype == BOOL or aval.dtype.kind in "iu":
        x = context.convert(x, aval, wide)
        if aval.dtype == UINT32:
            # Shifted into the signed range, to preserve the sign.
            x = context.sub(x, context.constant(2**31, wide), wide)
        return x
    single, bits = ShapedArray(aval.shape, FLOAT32), ShapedArray(aval.shape, INT32)
    x = context.convert(x, aval, single)
    zero = context.constant(0.0, single)
    x = context.select(context.compare(x, zero, "EQ", single), zero, x, single)
    nan = context.constant(np.nan, single)
    x = context.select(context.compare(x, x, "NE", single), nan, x, single)
    # The bits of floats, as integers, are in order; for negative floats, in reverse order.
    integer = context.op("bitcast_convert", [x], bits)
    negative = context.compare(integer, context.constant(0, bits), "LT", bits)
    turned = context.xor(integer, context.constant(0x7FFFFFFF, bits), bits)
    return context.convert(context.select(negative, turned, integer, bits), bits, wide)
