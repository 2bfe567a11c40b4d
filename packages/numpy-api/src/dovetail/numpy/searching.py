"""Positions of elements: extremes, nonzero elements, places in a sorted array."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    dtype_by_value,
    literal,
    no_out,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.indexing import precedes, search_sorted
from dovetail.extend.unchecked import position_dtype
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.gathering import take
from dovetail.numpy.nonzeros import shown_indices
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike


def _argument_extreme(function: str, compute: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    x = value(array_like(a, function, "a"))
    shape = aval_of(x).shape
    if axis is None:
        flat, dimension = reshaped(x, (math.prod(shape),)), 0
        sizes = (1,) * len(shape)
    else:
        flat, dimension = x, canonical_axis(function, axis, len(shape))
        sizes = tuple(1 if d == dimension else n for d, n in enumerate(shape))
    if not aval_of(flat).shape[dimension]:
        raise ValueError(f"{function} of no elements is undefined: the array has shape {shape}")
    result = compute(flat, dimension, dtypes.default_dtype("i"))
    return reshaped(result, sizes) if keepdims else result


@compiled_with("axis", "keepdims")
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first largest element along a dimension, or of the first nan if any.

    Args:
        a: array or scalar.
        axis: dimension; None for the position in row-major order.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimension, with size one.

    Returns:
        An integer array without this dimension.

    Raises:
        ValueError: there are no elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[1, 9], [7, 2]])
        >>> print(jnp.argmax(x), jnp.argmax(x, axis=0))
        1 [1 0]
    """
    no_out("argmax", out)
    return _argument_extreme("argmax", lax.argmax, a, axis, keepdims)


@compiled_with("axis", "keepdims")
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The position of the first smallest element along a dimension, or of the first nan if any.

    Args:
        a: array or scalar.
        axis: dimension; None for the position in row-major order.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimension, with size one.

    Returns:
        An integer array without this dimension.

    Raises:
        ValueError: there are no elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.argmin(jnp.array([4, 2, 3])))
        1
    """
    no_out("argmin", out)
    return _argument_extreme("argmin", lax.argmin, a, axis, keepdims)


def _nan_argument(
    function: str, compute: Any, worst: float, a: Any, axis: Any, keepdims: Any
) -> Any:
    x = value(array_like(a, function, "a"))
    dtype = aval_of(x).dtype
    kind = dtypes.kind_of(dtype)
    if kind in ("f", "c"):
        filler = literal(complex(worst, worst) if kind == "c" else worst, dtype)
        filled = pick(lax.ne(x, x), filler, x)
        result = _argument_extreme(function, compute, filled, axis, keepdims)
        nothing = plain(_all_nan)(x, axis, keepdims)
        return pick(nothing, literal(-1, aval_of(result).dtype), result)
    return _argument_extreme(function, compute, x, axis, keepdims)


def _all_nan(x: Any, axis: Any, keepdims: Any) -> Any:
    from dovetail.numpy.reductions import all as all_of  # deferred: needed only for nan

    return plain(all_of)(lax.ne(x, x), axis, None, bool(keepdims))


@compiled_with("axis", "keepdims")
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """`argmax` that ignores nan; -1 where all elements are nan (NumPy raises an error).

    Args:
        a: array or scalar.
        axis: dimension; None for the position in row-major order.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimension, with size one.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanargmax(jnp.array([1., jnp.nan, 3.])))
        2
    """
    no_out("nanargmax", out)
    return _nan_argument("nanargmax", lax.argmax, -math.inf, a, axis, keepdims)


@compiled_with("axis", "keepdims")
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """`argmin` that ignores nan; -1 where all elements are nan (NumPy raises an error).

    Args:
        a: array or scalar.
        axis: dimension; None for the position in row-major order.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimension, with size one.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanargmin(jnp.array([1., jnp.nan, 3.])))
        0
    """
    no_out("nanargmin", out)
    return _nan_argument("nanargmin", lax.argmin, math.inf, a, axis, keepdims)


# ------------------------------------------------------------------------------------ non-zeros


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Find the indices of nonzero elements, in row-major order.

    Args:
        a: array of rank 1 or more.
        size: number of indices to return; required if `a` is traced, because the number of results
            would otherwise depend on values. Any others are left out.
        fill_value: index for missing entries: an integer, or one for each dimension; 0 if None.

    Returns:
        A tuple of integer vectors, one for each dimension.

    Raises:
        ConcretizationTypeError: `a` is traced and `size` is not given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> rows, columns = jnp.nonzero(jnp.array([[1, 0], [2, 3]]))
        >>> print(rows, columns)
        [0 1 1] [0 0 1]
        >>> print(jnp.nonzero(jnp.array([5, 0, 6]), size=3, fill_value=-1)[0])
        [ 0  2 -1]
    """
    return shown_indices("nonzero", operand(a, "nonzero"), size, fill_value)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the positions of nonzero elements in the flattened array.

    Args:
        a: array or scalar.
        size: number of positions to return; required if `a` is traced.
        fill_value: position for missing entries; 0 if None.

    Returns:
        An integer vector.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.flatnonzero(jnp.array([[1, 0], [2, 3]])))
        [0 2 3]
    """
    x = operand(a, "flatnonzero")
    return nonzero(reshaped(x, (aval_of(x).size,)), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the indices of nonzero elements, as rows of a matrix.

    Args:
        a: array or scalar.
        size: number of rows to return; required if `a` is traced.
        fill_value: index for missing rows; 0 if None.

    Returns:
        An integer matrix with one column for each dimension.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.argwhere(jnp.array([[1, 0], [2, 3]])))
        [[0 0]
         [1 0]
         [1 1]]
    """
    x = operand(a, "argwhere")
    if not aval_of(x).ndim:
        # A scalar has no dimensions, so its rows have no columns.
        rows = nonzero(reshaped(x, (1,)), size=size, fill_value=fill_value)[0]
        return lax.slice_in_dim(reshaped(rows, (aval_of(rows).size, 1)), 0, 0, axis=1)
    return lax.stack(nonzero(x, size=size, fill_value=fill_value), axis=1)


# ------------------------------------------------------------------------------- sorted arrays


@compiled_with("side", "method")
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Find where to insert values so that a vector stays sorted.

    Args:
        a: sorted vector.
        v: array of values.
        side: "left" for the first suitable position, "right" for the last one.
        sorter: positions that sort `a`, if it is not sorted itself.
        method: "scan" (binary search), "scan_unrolled" (the same), "compare_all" (compares with
            every element, fast for short vectors), "sort" (the same as "scan" here).

    Returns:
        An array of the shape of `v`, of int32 if that holds the size of `a`. nan counts as the
        largest number.

    Raises:
        ValueError: `side` or `method` is not one of these, or `a` is not a vector.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9])))
        [0 1 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(
            "searchsorted: method must be 'scan', 'scan_unrolled', 'sort' or 'compare_all', got "
            f"{method!r}"
        )
    x = operand(a, "searchsorted")
    if aval_of(x).ndim != 1:
        raise ValueError(f"searchsorted needs a vector to search in, got shape {aval_of(x).shape}")
    if sorter is not None:
        positions = aval_of(operand(sorter, "searchsorted", "sorter")).shape
        if len(positions) != 1:
            raise ValueError(
                f"searchsorted: sorter must be a vector of positions, got shape {positions}"
            )
        x = take(x, sorter, mode="clip")
    return _searchsorted(x, operand(v, "searchsorted", "v"), side, method == "compare_all")


def _searchsorted(x: Any, v: Any, side: str, compare_all: bool) -> Any:
    shape = aval_of(v).shape
    (count,) = aval_of(x).shape
    default = position_dtype(count)
    zero = literal(0, default)
    if not count:
        return lax.broadcast_in_dim(zero, shape, ())
    flat = reshaped(v, (math.prod(shape),))
    x, flat = _same(x, flat)
    if compare_all or not flat.size:
        rows = lax.broadcast_in_dim(x, (flat.size, count), (1,))
        values = lax.broadcast_in_dim(flat, (flat.size, count), (0,))
        if side == "left":
            below = precedes(rows, values)
        else:
            below = lax.bitwise_not(precedes(values, rows))
        return reshaped(lax.reduce_sum(convert(below, default), (1,)), shape)
    return reshaped(search_sorted(x, flat, side), shape)


def _same(x: Any, y: Any) -> tuple[Any, Any]:
    dtype = dtype_by_value(x, y)
    return convert(x, dtype), convert(y, dtype)
