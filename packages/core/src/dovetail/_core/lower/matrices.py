"""Building blocks for rules that call a library on stacks of matrices.

Batch dimensions come first. Most functions take the builder that a rule receives as `context`,
values, and their avals, and return values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.mlir import Value
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.ops.elementwise.operands import real_dtype

__all__ = [
    "adjoint",
    "columns_from",
    "conjugate",
    "divided_by_power_of_two",
    "multiplied_by_power_of_two",
    "pivots_from_one",
    "report_of",
    "rows_from",
    "transpose",
    "transposed",
    "triangle",
    "where_succeeded",
    "with_finite",
]

_BOOL: Final = np.dtype(bool)
_INT32: Final = np.dtype(np.int32)


def transposed(aval: ShapedArray) -> ShapedArray:
    """The aval of transposed matrices."""
    *batch, rows, columns = aval.shape
    return aval.update(shape=(*batch, columns, rows))


def report_of(aval: ShapedArray) -> ShapedArray:
    """The aval of a library's status report: an int32 for each matrix of `aval`."""
    return aval.update(shape=aval.shape[:-2], dtype=_INT32)


def _parts(context: Builder, x: Value, aval: ShapedArray) -> tuple[list[Value], ShapedArray]:
    """Real and imaginary parts, and their aval; a real array is its only part."""
    if aval.dtype.kind != "c":
        return [x], aval
    part = aval.update(dtype=real_dtype(aval.dtype))
    return [context.real(x, part), context.imag(x, part)], part


def _joined(context: Builder, parts: Sequence[Value], aval: ShapedArray) -> Value:
    return parts[0] if len(parts) == 1 else context.complex(parts[0], parts[1], aval)


def _over_batch(context: Builder, x: Value, out: ShapedArray, batch: int) -> Value:
    """Broadcast one element per matrix to the shape of `out`."""
    return context.broadcast_in_dim(x, out, tuple(range(batch)))


def transpose(context: Builder, x: Value, aval: ShapedArray) -> Value:
    """The transposes of matrices; a call with column-major operands reads them in place."""
    rank = aval.ndim
    return context.transpose(x, transposed(aval), (*range(rank - 2), rank - 1, rank - 2))


def conjugate(context: Builder, x: Value, aval: ShapedArray) -> Value:
    """The complex conjugate; a real array is its own conjugate."""
    parts, part = _parts(context, x, aval)
    return _joined(context, [*parts[:1], *(context.neg(p, part) for p in parts[1:])], aval)


def adjoint(context: Builder, x: Value, aval: ShapedArray) -> Value:
    """The conjugate transposes of matrices."""
    return conjugate(context, transpose(context, x, aval), transposed(aval))


def triangle(
    context: Builder,
    x: Value,
    aval: ShapedArray,
    lower: bool = True,
    other: Value | None = None,
) -> Value:
    """The lower triangles of matrices, or the upper ones, with their diagonals.

    Args:
        context: the builder.
        x: the matrices.
        aval: their aval.
        lower: which triangles.
        other: the values outside of the triangles, of the same aval; zeros by default.
    """
    flat = aval.update(shape=aval.shape[-2:], dtype=_INT32)
    direction = "GE" if lower else "LE"
    inside = context.compare(context.iota(flat, 0), context.iota(flat, 1), direction, flat)
    mask = aval.update(dtype=_BOOL)
    inside = context.broadcast_in_dim(inside, mask, (aval.ndim - 2, aval.ndim - 1))
    return context.select(inside, x, context.constant(0, aval) if other is None else other, aval)


def columns_from(context: Builder, x: Value, out: ShapedArray, start: int) -> Value:
    """Columns of matrices, or elements of vectors, from index `start`; as many as `out` has."""
    return _slice_from(context, x, out, (*[0] * (out.ndim - 1), start))


def rows_from(context: Builder, x: Value, out: ShapedArray, start: int) -> Value:
    """Rows of matrices from index `start`; as many as `out` has."""
    return _slice_from(context, x, out, (*[0] * (out.ndim - 2), start, 0))


def _slice_from(context: Builder, x: Value, out: ShapedArray, first: Sequence[int]) -> Value:
    return context.slice(x, out, first, [n + i for n, i in zip(out.shape, first, strict=True)])


def with_finite(context: Builder, x: Value, aval: ShapedArray) -> tuple[Value, Value]:
    """Replace matrices that contain NaN or infinities by zeros, and report them.

    Iterative algorithms of LAPACK and similar libraries are not documented to terminate for such
    matrices, or to report them.

    Args:
        context: the builder.
        x: the matrices, floating point or complex.
        aval: their aval.

    Returns:
        The matrices; and a report with the aval `report_of(aval)`: 1 where a matrix was replaced,
        otherwise 0. Combine it with the library's report by `context.or_`, and pass the result to
        `where_succeeded`.
    """
    rank, report = aval.ndim, report_of(aval)
    parts, part = _parts(context, x, aval)
    zero, none = context.constant(0.0, part), context.constant(0, report)
    scalar, totals = part.update(shape=()), part.update(shape=aval.shape[:-2])
    broken = none
    for values in parts:
        # Zero times a number is zero unless that is NaN or infinite; the sum vectorises.
        (total,) = context.reduce(
            [context.mul(values, zero, part)],
            [context.constant(0.0, scalar)],
            (rank - 2, rank - 1),
            [totals],
            lambda a, b: [context.add(a, b, scalar)],
        )
        odd = context.compare(total, total, "NE", totals)
        broken = context.select(odd, context.constant(1, report), broken, report)
    good = context.compare(broken, none, "EQ", report)
    mask = _over_batch(context, good, aval.update(dtype=_BOOL), report.ndim)
    return context.select(mask, x, context.constant(0, aval), aval), broken


def where_succeeded(
    context: Builder,
    report: Value,
    report_aval: ShapedArray,
    values: Sequence[Value],
    avals: Sequence[ShapedArray],
) -> list[Value]:
    """Fill results with NaN where a library reports a failure.

    Args:
        context: the builder.
        report: the library's report for each matrix; 0 is success.
        report_aval: its aval, of the batch dimensions.
        values: floating point or complex, with the batch dimensions first.
        avals: their avals.
    """
    good = context.compare(report, context.constant(0, report_aval), "EQ", report_aval)
    results = []
    for value, aval in zip(values, avals, strict=True):
        mask = _over_batch(context, good, aval.update(dtype=_BOOL), report_aval.ndim)
        nan = np.nan if aval.dtype.kind != "c" else complex(np.nan, np.nan)
        results.append(context.select(mask, value, context.constant(nan, aval), aval))
    return results


def divided_by_power_of_two(context: Builder, x: Value, aval: ShapedArray) -> tuple[Value, Value]:
    """Scale matrices so that their largest elements are between 1 and 2.

    For algorithms that are linear in the matrix, and overflow or lose digits far from that range.

    Args:
        context: the builder.
        x: the matrices, floating point or complex.
        aval: their aval.

    Returns:
        Each matrix divided by the power of two of its largest real or imaginary part, which is
        exact except for underflow; and these powers, one for each matrix, 1 for zero matrices.
        `multiplied_by_power_of_two` undoes it.
    """
    parts, part = _parts(context, x, aval)
    rank = aval.ndim
    scalar, largest = part.update(shape=()), part.update(shape=aval.shape[:-2])
    sizes = []
    for values in parts:
        sizes += context.reduce(
            [context.op("abs", [values], part)],
            [context.constant(0.0, scalar)],
            (rank - 2, rank - 1),
            [largest],
            lambda a, b: [context.max(a, b, scalar)],
        )
    maximum = sizes[0] if len(sizes) == 1 else context.max(sizes[0], sizes[1], largest)
    # Keep only the bits of the exponent.
    bits = largest.update(dtype=np.dtype(f"int{part.dtype.itemsize * 8}"))
    exponent = np.array(np.inf, part.dtype).view(bits.dtype)
    masked = context.and_(
        context.bitcast_convert(maximum, bits), context.constant(exponent, bits), bits
    )
    power = context.bitcast_convert(masked, largest)
    none = context.compare(power, context.constant(0.0, largest), "EQ", largest)
    power = context.select(none, context.constant(1.0, largest), power, largest)
    divisor = _over_batch(context, power, part, largest.ndim)
    return _joined(context, [context.div(p, divisor, part) for p in parts], aval), power


def multiplied_by_power_of_two(
    context: Builder, values: Value, aval: ShapedArray, power: Value
) -> Value:
    """Undo `divided_by_power_of_two` on a result that is linear in the matrices.

    Args:
        context: the builder.
        values: an array with the batch dimensions first, with the dtype of the matrices or the
            corresponding complex dtype.
        aval: its aval.
        power: the second result of `divided_by_power_of_two`.
    """
    parts, part = _parts(context, values, aval)
    factor = _over_batch(context, power, part, power.type.rank)
    return _joined(context, [context.mul(p, factor, part) for p in parts], aval)


def pivots_from_one(
    context: Builder, pivots: Value, aval: ShapedArray, permutation: ShapedArray
) -> tuple[Value, Value]:
    """Convert a library's pivots of LU decompositions to those of the primitive `lu`.

    Args:
        context: the builder.
        pivots: rows that are exchanged, numbered from 1.
        aval: their aval.
        permutation: aval of the second result.

    Returns:
        The pivots, numbered from 0, and the permutation that they compose to.
    """
    from dovetail._core.ops.linalg.lu import (
        lu_pivots_to_permutation,
    )  # deferred: few programs have such pivots

    pivots = context.sub(pivots, context.constant(1, aval), aval)
    size = permutation.shape[-1]
    (order,) = context.lower_function(lambda p: lu_pivots_to_permutation(p, size), [aval])(pivots)
    return pivots, order
