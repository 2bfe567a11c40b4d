"""Products of matrices by a kernel that reads them as they lie, transposed ones too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernel_library, kernels

TABLE: Final = LoweringTable()

#: The least products of numbers in one product of matrices, and in each of several.
MANY: Final = 1 << 12
MANY_IN_EACH: Final = 1 << 14
#: The least rows, and numbers that are summed over where there are more than few columns.
LEAST_ROWS: Final = 8
LEAST_SUMMED: Final = 32
#: What the kernel, like XLA, multiplies in float32.
NARROW_FLOATS: Final = ("bfloat16", "float16")
#: The sizes of the real numbers that are multiplied, other than 4.
_ITEMSIZES: Final = {"float64": 8, "complex128": 8}
#: Where the columns and the distances of the result are among the numbers of an attention.
_WIDTH_OF_ATTENTION: Final = 3
_ROW_OF_ATTENTION: Final = 12
_EACH_OF_ATTENTION: Final = 6
#: The bytes of a vector, of which at least this part must be in use.
_VECTOR: Final = 64
_USED: Final = 0.6

#: The size of a dimension, and the distances of neighbours in one operand or in both.
_Dimension = tuple[int, ...]


class Product(NamedTuple):
    """A product of matrices, or several.

    Attributes:
        operands: what is read.
        rows: those of each left matrix.
        columns: those of each right matrix.
        summed: how many products are added up.
        several: whether there are several.
        numbers: what the kernels are told: the sizes, and distances in the operands.
    """

    operands: list[Any]
    rows: int
    columns: int
    summed: int
    several: bool
    numbers: list[int]


def product(context: Any, operands: Any, dimension_numbers: Any, precision: Any) -> Any:
    """The product of arrays of one dtype; NotImplemented where XLA's own is as fast."""
    avals, (out,) = context.avals_in, context.avals_out
    dtype = avals[0].dtype
    if (
        not _suits(dtype_name(dtype), dtype_name(out.dtype))
        or not is_plain(precision)
        or any(aval.dtype != dtype or aval.symbolic for aval in avals)
        or out.size == 0
        or context.divides
        or not kernels.usable(context)
    ):
        return NotImplemented
    found = placed(context, operands, dimension_numbers)
    if found is None or not _gains(found, _ITEMSIZES.get(dtype_name(dtype), 4)):
        return NotImplemented
    target = kernels.PRODUCTS[dtype_name(dtype)]
    return kernels.call(context, target, found.operands, [out], 0, sizes=found.numbers)[0]


def placed(context: Any, operands: Any, dimension_numbers: Any) -> Product | None:
    """A product as the kernels take it; None if its dimensions do not lie as they need it."""
    avals = context.avals_in
    (x, along_x), (y, along_y) = map(as_it_lies, operands)
    (over, over_y), (batch, batch_y) = dimension_numbers
    sizes = avals[0].shape
    each: list[_Dimension] = [
        (sizes[d], along_x[d], along_y[e]) for d, e in zip(batch, batch_y, strict=True)
    ]
    summed: list[_Dimension] = [
        (sizes[d], along_x[d], along_y[e]) for d, e in zip(over, over_y, strict=True)
    ]
    summed = merged(sorted(summed, key=lambda one: -one[1]))
    rows = merged(_others(sizes, along_x, (*over, *batch)))
    columns = merged(_others(avals[1].shape, along_y, (*over_y, *batch_y)))
    if len(summed) != 1 or len(columns) != 1 or not rows:
        return None
    each = merged([*each, *[(size, step, 0) for size, step in rows[:-1]]])
    (m, x_row), (n, y_column), (k, x_step, y_step) = rows[-1], columns[0], summed[0]
    if 1 not in (x_row, x_step) or 1 not in (y_column, y_step):
        return None
    numbers = [m, n, k, x_row, x_step, y_step, y_column, *[i for one in each for i in one]]
    return Product([x, y], m, n, k, bool(each), numbers)


def _suits(dtype: str, out: str) -> bool:
    """Whether the kernel has products of such numbers: of 16 bits XLA's are faster with AVX-512."""
    if dtype in ("float32", "float64"):
        return dtype == out
    if dtype not in kernels.PRODUCTS:
        return False
    if dtype in NARROW_FLOATS and kernel_library.has_long_vectors():
        return False
    return dtype == out or (dtype in NARROW_FLOATS and out == "float32")


def fills_vectors(count: int, itemsize: int) -> bool:
    """Whether few lanes of vectors with so many numbers are of no use."""
    lanes = _VECTOR // itemsize
    return count >= _USED * lanes * -(-count // lanes)


def is_plain(precision: Any) -> bool:
    """Whether no algorithm is asked for: the others are one on the CPU."""
    if isinstance(precision, tuple):
        return all(map(is_plain, precision))
    return precision is None or type(precision).__name__ == "Precision"


def _gains(found: Product, itemsize: int) -> bool:
    """Whether the kernel is faster than XLA's product, on one thread and on several."""
    lanes = _VECTOR // itemsize
    _, m, n, k, several, _ = found
    return (
        m * n * k >= (MANY_IN_EACH if several else MANY)
        and m >= LEAST_ROWS
        and fills_vectors(n, itemsize)
        and (k >= LEAST_SUMMED or n <= 2 * lanes)
        and 4 * m * n >= k
    )


def as_it_lies(value: Any) -> tuple[Any, Sequence[int]]:
    """An array that has the elements of another in memory, and how far neighbours are apart."""
    order: Sequence[int] = range(value.type.rank)
    while getattr(value.owner, "name", "") == "stablehlo.transpose":
        permutation = list(value.owner.attributes["permutation"])
        order = [permutation[d] for d in order]
        value = value.owner.operands[0]
    shape = value.type.shape
    return value, [prod(shape[d + 1 :]) for d in order]


def _others(sizes: Sequence[int], along: Sequence[int], but: Sequence[int]) -> list[_Dimension]:
    return [(size, along[d]) for d, size in enumerate(sizes) if d not in but]


def merged(dimensions: Iterable[_Dimension]) -> list[_Dimension]:
    """Fewer dimensions, by taking for one what lies as one."""
    merged: list[_Dimension] = []
    for size, *steps in dimensions:
        if size == 1:
            continue
        if merged and merged[-1][1:] == tuple([size * step for step in steps]):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    return merged


@TABLE.rule("transpose")
def transpose(context: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
    """The transpose of a product that is used for nothing else: the product of the transposes."""
    owner, (out,) = x.owner, context.avals_out
    if getattr(owner, "name", "") != "stablehlo.custom_call" or not context.uses_once():
        return NotImplemented
    called, last = owner.attributes["call_target_name"].value, out.ndim - 1
    if called == kernels.ATTENTION:
        return _of_attention(context, x, permutation)
    target = kernels.PRODUCTS.get(dtype_name(out.dtype), "")
    if called != target or tuple(permutation) != (*range(last - 1), last, last - 1):
        return NotImplemented
    m, n, k, x_row, x_step, y_step, y_column, *each = owner.attributes["backend_config"]["sizes"]
    if out.shape[-2:] != (n, m):
        return NotImplemented
    numbers = [n, m, k, y_column, y_step, x_step, x_row]
    for i in range(0, len(each), 3):
        numbers += [each[i], each[i + 2], each[i + 1]]
    operands = list(owner.operands)[::-1]
    return kernels.call(context, target, operands, [out], 0, sizes=numbers)[0]


def _of_attention(context: Any, x: Any, permutation: tuple[int, ...]) -> Any:
    """The transpose of an attention's result, whose columns stay the last: written in its order."""
    owner, (out,) = x.owner, context.avals_out
    settings = owner.attributes["backend_config"]
    numbers = [int(i) for i in settings["sizes"]]
    moved = [d for d, old in enumerate(permutation) if d != old]
    if moved and prod(out.shape[moved[-1] + 1 :]) < numbers[_WIDTH_OF_ATTENTION]:
        return NotImplemented
    placed = {
        prod(x.type.shape[old + 1 :]): prod(out.shape[new + 1 :])
        for new, old in enumerate(permutation)
        if out.shape[new] > 1
    }
    for i in range(_ROW_OF_ATTENTION, len(numbers), _EACH_OF_ATTENTION):
        numbers[i] = placed[numbers[i]]
    (result,) = kernels.call(
        context,
        kernels.ATTENTION,
        list(owner.operands),
        [out],
        0,
        sizes=numbers,
        divides=np.bool_(settings["divides"].value),
        fill=np.float32(settings["fill"].value),
    )
    return result
