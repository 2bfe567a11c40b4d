"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axes,
    convert,
    inexact,
    literal,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.linalg.decompositions import checked_matrices, factored, rounded
from dovetail.numpy.linalg.solvers import inverse, squares
from dovetail.numpy.reductions import kept, strong
from dovetail.numpy.reductions import max as largest
from dovetail.numpy.reductions import min as smallest
from dovetail.numpy.reductions import sum as total
from dovetail.typing import Array, ArrayLike, AxisLike


@compiled_with("ord", "axis", "keepdims")
def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | tuple[int, int] | None = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors or matrices along dimensions.

    Args:
        x: array.
        ord: order of the norm: None for the square root of the sum of squares. For vectors a number
            p for the p-norm, 0 for the count of nonzero elements, inf or -inf for the largest or
            smallest magnitude. For matrices "fro", 1 or -1 (largest or smallest sum of a column),
            inf or -inf (of a row), 2 or -2 (largest or smallest singular value), "nuc" (their sum).
        axis: dimension of vectors, or pair of dimensions of matrices; all if None.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        A float array without these dimensions.

    Raises:
        ValueError: `ord` is not one of these, or does not match the rank.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.norm(jnp.array([3., 4.])))
        5.0
    """
    x = value(strong(inexact("linalg.norm", array_like(x, "linalg.norm"))))
    shape = aval_of(x).shape
    if axis is None and ord is None:
        return _root_of_squares(x, tuple(range(len(shape))), keepdims)
    if axis is None and len(shape) not in (1, 2):
        raise ValueError(
            f"linalg.norm of an array of rank {len(shape)} needs axis: a dimension of vectors or a "
            "pair of dimensions of matrices"
        )
    axes = canonical_axes("linalg.norm", axis, len(shape))
    if len(axes) == 1:
        return _vector("linalg.norm", x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix("linalg.norm", x, ord, axes, keepdims)
    raise ValueError(f"linalg.norm: axis must name one or two dimensions, got {axis}")


def _finish(result: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return kept(result, aval_of(x).shape, axes) if keepdims else result


def _root_of_squares(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return _finish(lax.sqrt(lax.reduce_sum(squares(x), axes)), x, axes, keepdims)


def _extreme(function: str, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The largest of nonnegative numbers, or the smallest for a negative `ord`.

    The largest of no numbers is zero.

    Raises:
        ValueError: the smallest of no numbers is requested.
    """
    if all(aval_of(x).shape[d] for d in axes):
        return plain(largest if ord > 0 else smallest)(x, axes, None, keepdims)
    if ord < 0:
        raise ValueError(f"{function} with ord {ord} is not defined for arrays without elements")
    return plain(total)(x, axes, None, None, keepdims)


def _vector(function: str, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(
            f"{function}: ord {ord!r} is a norm of matrices, and the array has vectors"
        )
    if ord is not None and not isinstance(ord, (int, float, np.integer, np.floating)):
        raise TypeError(
            f"{function}: ord of vectors must be a real number, got {type(ord).__name__}"
        )
    if ord is None or ord == 2:
        return _root_of_squares(x, axes, keepdims)
    size = lax.abs(x)
    dtype = aval_of(size).dtype
    if abs(ord) == float("inf"):
        return _extreme(function, size, ord, axes, keepdims)
    if ord == 0:
        return plain(total)(
            convert(lax.ne(x, literal(0, aval_of(x).dtype)), dtype), axes, None, None, keepdims
        )
    if ord == 1:
        return plain(total)(size, axes, None, None, keepdims)
    power = lax.reduce_sum(lax.pow(size, literal(ord, dtype)), axes)
    zero, one = literal(0, dtype), literal(1, dtype)
    # At zero, the infinite derivative of the root would meet the zero derivative of the power.
    is_zero = lax.eq(power, zero)
    root = lax.pow(pick(is_zero, one, power), literal(1 / ord, dtype))
    return _finish(
        pick(is_zero, power, root) if ord > 0 else lax.pow(power, literal(1 / ord, dtype)),
        x,
        axes,
        keepdims,
    )


def _matrix(function: str, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord is None or ord == "fro":
        return _root_of_squares(x, axes, keepdims)
    if ord in (1, -1, float("inf"), -float("inf")):
        row, column = axes
        sums = plain(total)(lax.abs(x), row if abs(ord) == 1 else column, None, None, True)
        return _extreme(function, sums, ord, axes, keepdims)
    if ord in (2, -2, "nuc"):
        others = [d for d in range(x.ndim) if d not in axes]
        matrices, dtype = factored(function, lax.transpose(x, (*others, *axes)), "x")
        values = rounded(lax.linalg.svd(matrices, compute_uv=False), dtype)
        if ord == "nuc":
            norms = plain(total)(values, -1, None, None, False)
        else:
            norms = _extreme(function, values, ord, (values.ndim - 1,), False)
        return lax.expand_dims(norms, axes) if keepdims else norms
    raise ValueError(f"{function}: ord {ord!r} is not a norm of matrices")


def vector_norm(
    x: ArrayLike, /, *, axis: AxisLike = None, keepdims: bool = False, ord: int | float = 2
) -> Array:
    """The norm of vectors along dimensions; of all elements if no dimension is given.

    Args:
        x: array.
        axis: dimension, or several that are treated as one; all if None.
        keepdims: whether to keep the dimensions, with size one.
        ord: order of the norm, as for `norm`.

    Returns:
        A float array without these dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.vector_norm(jnp.array([[3., 4.], [0., 0.]])))
        5.0
    """
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else axis
    return _vector_norm(x, axes, keepdims, ord)


@compiled_with("axis", "keepdims", "ord")
def _vector_norm(x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    x = array_like(x, "linalg.vector_norm")
    if dtypes.kind_of(x.dtype) in ("b", "i", "u"):
        x = convert(x, dtypes.default_dtype("f"))
    x = value(strong(inexact("linalg.vector_norm", x)))
    axes = canonical_axes("linalg.vector_norm", axis, aval_of(x).ndim)
    return _vector("linalg.vector_norm", x, ord, axes, keepdims)


def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro"
) -> Array:
    """The norm of matrices in the last two dimensions.

    Args:
        x: array of rank 2 or more.
        keepdims: whether to keep the dimensions, with size one.
        ord: order of the norm, as for `norm`.

    Returns:
        A float array without these dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.matrix_norm(jnp.array([[1., -2.], [3., 4.]]), ord=1))
        6.0
    """
    return _matrix_norm(x, keepdims, ord)


@compiled_with("keepdims", "ord")
def _matrix_norm(x: Any, keepdims: bool, ord: Any) -> Any:
    x = value(strong(inexact("linalg.matrix_norm", array_like(x, "linalg.matrix_norm"))))
    rank = aval_of(checked_matrices("linalg.matrix_norm", x, "x")).ndim
    return _matrix("linalg.matrix_norm", x, ord, (rank - 2, rank - 1), keepdims)


@compiled_with("p")
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition numbers of matrices: how sensitive solutions are to the right-hand side.

    Args:
        x: matrices of shape ``(..., m, n)``; square ones unless `p` is None, 2 or -2.
        p: order of the norm, as for `norm`; None for 2.

    Returns:
        A float array of shape ``(...)``: the norm of a matrix times that of its inverse; for None
        and 2 the ratio of the largest singular value to the smallest one, for -2 the inverse of
        this. It is infinite (for -2 zero) for singular matrices, including matrices of zeros, as in
        NumPy, and nan for matrices with nan.

    Raises:
        ValueError: `x` does not hold matrices, or they are empty or not square, or there is no such
            norm.

    Differs:
        It is infinite for a matrix of zeros, as in NumPy.

        >>> print(jnp.linalg.cond(jnp.zeros((2, 2))))
        inf

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.cond(jnp.array([[1., 0.], [0., 4.]])))
        4.0
    """
    function = "linalg.cond"
    by_values = p is None or p in (2, -2)
    a = checked_matrices(function, array_like(x, function), "x", square=not by_values)
    a, dtype = factored(function, a, "x")
    shape = aval_of(a).shape
    if 0 in shape[-2:]:
        raise ValueError(f"{function} is not defined for empty matrices, got the shape {shape}")
    if by_values:
        s = lax.linalg.svd(a, compute_uv=False)
        first, last = (lax.index_in_dim(s, i, axis=-1, keepdims=False) for i in (0, -1))
        conditions = lax.div(last, first) if p == -2 else lax.div(first, last)
    else:
        planes = (len(shape) - 2, len(shape) - 1)
        conditions = lax.mul(*(_matrix(function, m, p, planes, False) for m in (a, inverse(a))))
    # If undefined without a nan in the matrix, the matrix is singular.
    without_nan = lax.reduce_and(lax.eq(a, a), (len(shape) - 2, len(shape) - 1))
    singular = lax.bitwise_and(lax.ne(conditions, conditions), without_nan)
    infinity = literal(float("inf"), aval_of(conditions).dtype)
    result = rounded(pick(singular, infinity, conditions), dtype)
    return convert(result, result.dtype, weak_of(a))
