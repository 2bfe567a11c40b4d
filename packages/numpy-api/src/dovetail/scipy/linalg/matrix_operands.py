"""Checks of matrices and right-hand sides, and loops over the columns of triangular matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    convert,
    counted,
    literal,
    same_dtype,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import diagonal, real_dtype, solve_triangular, zeros_of
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.linalg.decompositions import checked_matrices, factored
from dovetail.numpy.shapes import reshaped

INT32 = np.dtype(np.int32)


def choice(function: str, argument: str, given: Any, choices: tuple[Any, ...]) -> None:
    """Refuse an argument that is none of some values."""
    if not any(given is c or (isinstance(given, type(c)) and given == c) for c in choices):
        names = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{function}: {argument} must be one of {names}, got {given!r}")


def is_complex(x: Any) -> bool:
    """Whether an array holds complex numbers."""
    return bool(dtypes.kind_of(aval_of(x).dtype) == "c")


def real_of(dtype: Any) -> Any:
    """The dtype of real results beside results of this dtype."""
    return real_dtype(dtype) if dtypes.kind_of(dtype) == "c" else dtype


def as_complex(x: Any) -> Any:
    """Floats as complex numbers of the same precision."""
    dtype = aval_of(x).dtype
    wide = np.dtype("complex128" if dtype.itemsize == 8 else "complex64")
    return x if is_complex(x) else convert(x, wide)


def number(value: complex, x: Any) -> Any:
    """A constant in the dtype of an array."""
    return literal(value, aval_of(x).dtype)


def with_sides(
    function: str, a: Any, b: Any, names: tuple[str, str] = ("a", "b")
) -> tuple[Any, Any, Any, bool]:
    """Square matrices and right-hand sides, in one dtype and with equal batch dimensions.

    Returns:
        The matrices, the right-hand sides as matrices, the dtype of results, and whether the
        right-hand side was one vector.

    Raises:
        ValueError: the shapes do not match.
    """
    left, right = same_dtype([array_like(a, function, names[0]), array_like(b, function, names[1])])
    left, dtype = factored(function, checked_matrices(function, left, names[0], square=True))
    right, _ = factored(function, right, names[1])
    shape, right_shape = aval_of(left).shape, aval_of(right).shape
    size, rank = shape[-1], len(right_shape)
    if not rank:
        raise ShapeError(f"{function}: {names[1]} must be a vector or matrices, got a scalar")
    if 1 < rank == len(shape) - 1:
        raise ShapeError(
            f"{function}: {names[1]} with the shape {right_shape} beside {names[0]} with the shape "
            f"{shape} may be vectors or a matrix; write {names[1]}[..., None] for vectors, and "
            f"[..., 0] of the result, or {names[1]}[None] for a matrix"
        )
    if right_shape[0 if rank == 1 else -2] != size:
        raise ShapeError(
            f"{function}: {names[1]} must have {counted(size, 'row')}, as the matrices in "
            f"{names[0]}, got the shapes {shape} of {names[0]} and {right_shape} of {names[1]}"
        )
    single = rank == 1
    if single:
        right = reshaped(right, (size, 1))
        right_shape = (size, 1)
    stack = broadcast_result(function, (shape[:-2], right_shape[:-2]), explicit=True)
    left = spread(left, (*stack, size, size))
    return left, spread(right, (*stack, size, right_shape[-1])), dtype, single


def without_column(x: Any, single: bool) -> Any:
    """Solutions without the dimension of columns, if the right-hand side was one vector."""
    return reshaped(x, aval_of(x).shape[:-1]) if single else x


def kept_in_triangle(x: Any, lower: bool = False, offset: int = 0) -> Any:
    """Matrices with zeros below (or above) a diagonal: 1 is the one above the main diagonal."""
    shape = aval_of(x).shape[-2:]
    row = lax.broadcasted_iota(INT32, shape, 0)
    column = lax.broadcasted_iota(INT32, shape, 1)
    shifted = lax.add(row, literal(offset, aval_of(row).dtype))
    inside = lax.ge(shifted, column) if lower else lax.le(shifted, column)
    return pick(inside, x, zeros_of(x))


def column_of(x: Any, k: Any) -> Any:
    """Column `k`, which may be traced, as a matrix of one column."""
    return lax.dynamic_slice_in_dim(x, k, 1, aval_of(x).ndim - 1)


def with_column(x: Any, column: Any, k: Any) -> Any:
    """Matrices with another column `k`."""
    return lax.dynamic_update_slice_in_dim(x, column, k, aval_of(x).ndim - 1)


def each_column(count: int, step: Callable[[Any, Any], Any], start: Any) -> Any:
    """Columns of a matrix, one after the other.

    Args:
        count: number of columns.
        step: from the number of a column and the matrix, whose further columns are zero, to it.
        start: the matrix at first.
    """
    if not aval_of(start).size:
        return start

    def body(k: Any, x: Any) -> Any:
        return with_column(x, step(k, x), k)

    return lax.fori_loop(0, count, body, start)


def shifted_solution(t: Any, shift: Any, b: Any) -> Any:
    """``(t + shift)^-1 @ b`` for upper triangular matrices and a number for each.

    Args:
        t: matrices of shape ``(..., n, n)``.
        shift: numbers of shape ``(..., 1, 1)``.
        b: matrices of one column.
    """
    size = aval_of(t).shape[-1]
    row, column = (lax.broadcasted_iota(INT32, (size, size), i) for i in (0, 1))
    moved = lax.add(t, spread(shift, aval_of(t).shape))
    return solve_triangular(pick(lax.eq(row, column), moved, t), b, lower=False)


def column_element(column: Any, k: Any) -> Any:
    """Element `k` of matrices of one column, as a matrix of one element."""
    return lax.dynamic_slice_in_dim(column, k, 1, aval_of(column).ndim - 2)


def diagonal_column(x: Any) -> Any:
    """The diagonals of square matrices, as matrices of one column."""
    return lax.expand_dims(diagonal(x), (aval_of(x).ndim - 1,))


def before(k: Any, x: Any) -> Any:
    """Matrices of one column with zeros from row `k` on."""
    row = lax.broadcasted_iota(INT32, aval_of(x).shape, aval_of(x).ndim - 2)
    return pick(lax.lt(row, convert(k, INT32)), x, zeros_of(x))
