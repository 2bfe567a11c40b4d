"""Products of integers, of numbers of fewer than 8 bits, and of vectors.

XLA's CPU compiler multiplies matrices of integers in scalar loops, but for int32 and for int8 with
sums of int32: 512x512 of int8 take 180 ms, and so 0.4. Modulo a power of two the sums are the same
in any wider dtype, of either sign, so that narrower ones are computed in these. A kernel computes
others. Numbers of fewer than 8 bits XLA refuses or misplaces. Products of vectors are sums.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail_cpu import kernels
from dovetail_cpu.lowerings import reduction

TABLE: Final = LoweringTable()

INT8: Final = np.dtype(np.int8)
INT32: Final = np.dtype(np.int32)

#: With fewer products of numbers than this, nothing is gained.
MANY: Final = 1 << 16


def _is_below_a_byte(dtype: Any) -> bool:
    return dtypes.kind_of(dtype) != "b" and dtypes.itemsize_bits(dtype) < 8


def _working(dtype: Any) -> Any:
    """The dtype to compute in: sums of integers wrap around to the same numbers in any width."""
    if dtypes.itemsize_bits(dtype) >= 32:
        return dtype
    return np.dtype(np.float32 if dtypes.kind_of(dtype) == "f" else np.int32)


@TABLE.rule("dot_general")
def dot_general(
    context: Any, x: Any, y: Any, *, dimension_numbers: Any, precision: Any, **params: Any
) -> Any:
    """Operands are converted before, and results after; NotImplemented where XLA's own is fast."""
    (a, b), (out,) = context.avals_in, context.avals_out
    if any(_is_below_a_byte(aval.dtype) for aval in (a, b, out)):
        work = _working(out.dtype)
        return _converted(context, (x, y), work, work, dimension_numbers)
    if _are_sums_alone(a, b, out, dimension_numbers):
        return reduction.sum_of_products(context, x, y, a, out)
    if not _are_matrices_of_integers(a, b, out, dimension_numbers):
        return NotImplemented
    widths = [aval.dtype.itemsize for aval in (a, b)]
    if widths == [1, 1] and (out.dtype.itemsize == 1 or a.dtype == b.dtype == INT8):
        if a.dtype == b.dtype == INT8 and out.dtype == INT32:
            return NotImplemented
        return _converted(context, (x, y), INT8, INT32, dimension_numbers)
    if kernels.usable(context) and not context.divides:
        return _by_kernel(context, (x, y), dimension_numbers)
    if out.dtype.itemsize == 8 or a.dtype == b.dtype == out.dtype == INT32:
        return NotImplemented
    return _converted(context, (x, y), INT32, INT32, dimension_numbers)


def _are_sums_alone(a: Any, b: Any, out: Any, dimension_numbers: Any) -> bool:
    """Whether arrays of one shape are multiplied element by element, and then added up."""
    (over, over_b), (batch, batch_b) = dimension_numbers
    return bool(
        (a.shape, a.dtype) == (b.shape, b.dtype)
        and a.dtype == out.dtype
        and tuple(over) == tuple(over_b) == tuple(range(out.ndim, a.ndim))
        and tuple(batch) == tuple(batch_b) == tuple(range(out.ndim))
    )


def _are_matrices_of_integers(a: Any, b: Any, out: Any, dimension_numbers: Any) -> bool:
    """Whether these are many integers to be multiplied, and not a matrix with a vector."""
    if any(dtypes.kind_of(aval.dtype) not in "iu" for aval in (a, b, out)):
        return False
    if not all(isinstance(size, int) for aval in (a, b, out) for size in aval.shape):
        return False
    (over, _), (batch, _) = dimension_numbers
    summed, each = (prod([a.shape[d] for d in ds]) for ds in (over, batch))
    rows, columns = (aval.size // max(1, each * summed) for aval in (a, b))
    return bool(rows > 1 and columns > 1 and out.size * summed >= MANY)


def _converted(context: Any, operands: Any, factors: Any, sums: Any, dimension_numbers: Any) -> Any:
    """The product of operands of the dtype `factors`, summed in another."""
    (a, b), (out,) = context.avals_in, context.avals_out
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    attributes = {
        "dot_dimension_numbers": context.dot_dimension_numbers(
            lhs_contracting=lhs,
            rhs_contracting=rhs,
            lhs_batching=lhs_batch,
            rhs_batching=rhs_batch,
        )
    }
    values = [
        context.convert(operand, aval, aval.update(dtype=factors))
        for operand, aval in zip(operands, (a, b), strict=True)
    ]
    product = context.op("dot_general", values, out.update(dtype=sums), attributes)
    return context.convert(product, out.update(dtype=sums), out)


def _by_kernel(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """The product by a convolution with a kernel of one place, whose positions are the rows."""
    (a, b), (out,) = context.avals_in, context.avals_out
    dtype = out.dtype if out.dtype.itemsize >= 4 else INT32
    (over, over_b), (batch, batch_b) = dimension_numbers
    free = [d for d in range(a.ndim) if d not in (*over, *batch)]
    free_b = [d for d in range(b.ndim) if d not in (*over_b, *batch_b)]
    groups = prod([a.shape[d] for d in batch])
    summed = prod([a.shape[d] for d in over])
    rows, columns = prod([a.shape[d] for d in free]), prod([b.shape[d] for d in free_b])

    def arranged(value: Any, aval: Any, order: Any, shape: tuple[int, ...]) -> Any:
        value = context.convert(value, aval, aval.update(dtype=dtype))
        moved = ShapedArray(tuple([aval.shape[d] for d in order]), dtype)
        if list(order) != list(range(aval.ndim)):
            value = context.transpose(value, moved, order)
        return context.reshape(value, ShapedArray(shape, dtype))

    x = arranged(operands[0], a, [*batch, *free, *over], (groups, rows, summed))
    y = arranged(operands[1], b, [*batch_b, *over_b, *free_b], (groups, summed, columns))
    sizes = [groups, 1, summed, columns]
    sizes += [rows * summed, 0, 1, 0, summed * columns, 1, columns, rows * columns, 0, 1]
    alone = [1, 1, 1, 0, 0, 0, 1, 0, 1, 1]
    sizes += [*alone, *alone, rows, 1, rows, summed, 0, columns, 1, 0, 1, 1]
    product = ShapedArray((groups, rows, columns), dtype)
    (value,) = kernels.call(context, kernels.CONVOLVE_INTEGERS, [x, y], [product], 1, sizes=sizes)
    wide = out.update(dtype=dtype)
    return context.convert(context.reshape(value, wide), wide, out)
