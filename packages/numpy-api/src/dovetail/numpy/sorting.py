"""Sorting and partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    array_sequence,
    canonical_axis,
    convert,
    counted,
    inexact_dtype,
    integer,
    literal,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.dimensions import is_symbolic_dim
from dovetail.extend.indexing import order_statistics, take_along, true_positions
from dovetail.extend.unchecked import iota_like, move_dimension
from dovetail.lax import rev_p, sort_p
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.shapes import reshaped
from dovetail.typing import Array, ArrayLike, DTypeLike

#: Fewer elements are sorted as quickly as they are partitioned.
_MANY: Final = 4096


def _prepared(function: str, a: Any, axis: Any, kind: Any, order: Any) -> tuple[Any, int]:
    if kind is not None:
        raise TypeError(f"{function}: kind cannot be chosen; give stable=True or False instead")
    if order is not None:
        raise TypeError(f"{function}: order is for arrays with fields, which there are none of")
    x = value(array_like(a, function, "a"))
    if axis is None:
        return reshaped(x, (aval_of(x).size,)), 0
    if not aval_of(x).ndim:
        raise ValueError(f"{function} needs an array of rank 1 or more, got a scalar")
    return x, canonical_axis(function, axis, aval_of(x).ndim)


@compiled_with("axis", "kind", "order", "stable", "descending")
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sort the elements along a dimension in ascending order, nan last.

    Args:
        a: array of rank 1 or more. Complex numbers are ordered by real part, then by imaginary
            part.
        axis: dimension; None to flatten the array first.
        kind: must be None.
        order: must be None.
        stable: whether equal elements keep their order.
        descending: whether to sort in descending order instead, with nan first.

    Returns:
        An array of the shape of `a`, or a vector.

    Differs:
        Complex numbers with a nan come last, as in NumPy.

        >>> print(jnp.sort(jnp.array([complex(-1, np.nan), 2, 1])))
        [ 1. +0.j  2. +0.j -1.+nanj]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.sort(jnp.array([3, 1, 2])), jnp.sort(jnp.array([3, 1, 2]), descending=True))
        [1 2 3] [3 2 1]
    """
    x, dimension = _prepared("sort", a, axis, kind, order)
    (result,) = sort_p.bind(x, dimension=dimension, is_stable=bool(stable), num_keys=1)
    return rev_p.bind(result, dimensions=(dimension,)) if descending else result


@compiled_with("axis", "kind", "order", "stable", "descending", "dtype")
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions that sort the elements along a dimension.

    Args:
        a: array of rank 1 or more.
        axis: dimension; None to flatten the array first.
        kind: must be None.
        order: must be None.
        stable: whether equal elements keep their order.
        descending: whether to sort in descending order instead; equal elements still keep their
            order.
        dtype: integer dtype of the result, which must hold every position; the default one if None.

    Returns:
        An integer array of the shape of `a`, or a vector.

    Raises:
        TypeError: `dtype` is not an integer dtype.
        OverflowError: the dtype cannot hold every position.

    Differs:
        Positions are integers that hold every position.

        >>> jnp.argsort(jnp.ones(2), dtype="float32")
        Traceback (most recent call last):
            ...
        TypeError: argsort: dtype must be one of integers, got float32

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.argsort(jnp.array([30, 10, 20])))
        [1 2 0]
    """
    x, dimension = _prepared("argsort", a, axis, kind, order)
    shape = aval_of(x).shape
    position_dtype = _position_dtype(dtype, shape[dimension])
    positions = iota_like(position_dtype, shape, dimension)
    keys = x
    if descending:
        # Reversed, sorted and reversed again, so that equal elements keep their order.
        keys = rev_p.bind(x, dimensions=(dimension,))
        last = literal(max(shape[dimension] - 1, 0), position_dtype)
        positions = lax.sub(last, positions)
    _, result = sort_p.bind(
        keys, positions, dimension=dimension, is_stable=bool(stable), num_keys=1
    )
    return rev_p.bind(result, dimensions=(dimension,)) if descending else result


def _position_dtype(dtype: Any, size: int) -> Any:
    canonical = dtypes.default_dtype("i")
    if dtype is not None:
        canonical = dtypes.check_user_dtype(dtype, "argsort")
    if dtypes.kind_of(canonical) not in ("i", "u"):
        raise TypeError(f"argsort: dtype must be one of integers, got {canonical}")
    dtypes.check_holds(size - 1, canonical, "argsort")
    return canonical


@compiled_with("axis", "batch_size")
def lexsort(
    keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int | None = 16
) -> Array:
    """The positions that sort by several keys, the last of which is the primary one.

    Args:
        keys: sequence of arrays of the same shape, or an array of stacked keys.
        axis: dimension.
        batch_size: has no effect; accepted for compatibility with JAX, which compiles many keys in
            batches.

    Returns:
        An integer array of the shape of one key.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.lexsort((jnp.array([2, 1, 3]), jnp.array([0, 1, 0]))))
        [0 2 1]
    """
    values = [value(k) for k in array_sequence(keys, "lexsort", "keys")]
    if not values:
        raise TypeError("lexsort needs at least one key")
    shape = aval_of(values[0]).shape
    if any(aval_of(v).shape != shape for v in values):
        raise ValueError(
            "lexsort needs keys of one shape, got "
            f"{', '.join(str(aval_of(v).shape) for v in values)}"
        )
    if not shape:
        return lax.full((), 0, dtypes.default_dtype("i"))
    dimension = canonical_axis("lexsort", axis, len(shape))
    positions = iota_like(dtypes.default_dtype("i"), shape, dimension)
    *_, result = sort_p.bind(
        *reversed(values), positions, dimension=dimension, is_stable=True, num_keys=len(values)
    )
    return result


def _place(function: str, kth: Any, size: int) -> int:
    place = integer(function, "kth", kth)
    if not -size <= place < size:
        raise ValueError(
            f"{function}: kth={place} is out of bounds for {counted(size, 'element')}"
            + (f"; it must be from {-size} to {size - 1}" if size else "")
        )
    return place % size


def _is_sorted_as_quickly(x: Any, dimension: int) -> bool:
    size = aval_of(x).shape[dimension]
    return is_symbolic_dim(size) or size < _MANY or dtypes.kind_of(aval_of(x).dtype) == "c"


def _parting_order(x: Any, place: int, dimension: int) -> Any:
    """Positions of what is less than the element that belongs to a place, equals it, is greater."""
    shape = aval_of(x).shape
    size, last = shape[dimension], len(shape) - 1
    rows = move_dimension(lax.stop_gradient(x), dimension, last)
    pivot = order_statistics(rows, value(np.array([place], np.int32)))
    pivots = lax.broadcast_in_dim(pivot, aval_of(rows).shape, tuple(range(last + 1)))
    # Before nan comes what is none, after it nothing.
    unordered = lax.ne(pivots, pivots)
    before = lax.select(unordered, lax.eq(rows, rows), lax.lt(rows, pivots))
    not_after = lax.bitwise_or(unordered, lax.le(rows, pivots))
    parts = [before, lax.bitwise_xor(before, not_after), lax.bitwise_not(not_after)]
    order = true_positions(lax.concatenate(parts, last), size)
    length = literal(size, aval_of(order).dtype)
    for _ in range(2):  # cheaper than a remainder
        order = lax.select(lax.ge(order, length), lax.sub(order, length), order)
    return move_dimension(order, last, dimension)


@compiled_with("kth", "axis")
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Partition elements around a position: none before it is greater, none after it smaller.

    A short array is in fact sorted, which takes no longer; but as in NumPy, this is not guaranteed.
    Nan counts as the largest number.

    Args:
        a: array of rank 1 or more.
        kth: the position, whose element is the one that would be there in sorted order; negative
            ones count from the end.
        axis: dimension; None to flatten the array first.

    Returns:
        An array of the shape of `a`, or a vector.

    Raises:
        ValueError: there is no such position or dimension.

    Differs:
        The result is sorted as a whole, or elements keep their order on either side.

        >>> print(jnp.partition(jnp.array([3, 1, 2, 0]), 1))
        [0 1 2 3]

        The positions of `argpartition` are not weakly typed.

        >>> print(jnp.argpartition(jnp.stack([1.0, 0.5]), 1).weak_type)
        False

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.partition(jnp.array([7, 1, 5, 3]), 1)
        >>> print(x[1], set(x[2:].tolist()) == {5, 7})
        3 True
    """
    x, dimension = _prepared("partition", a, axis, None, None)
    place = _place("partition", kth, aval_of(x).shape[dimension])
    if _is_sorted_as_quickly(x, dimension):
        return plain(sort)(x, dimension)
    return take_along(x, _parting_order(x, place, dimension), dimension)


@compiled_with("kth", "axis")
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions that partition the elements along a dimension, as in `partition`.

    Args:
        a: array of rank 1 or more.
        kth: the position, whose element is the one that would be there in sorted order; negative
            ones count from the end.
        axis: dimension; None to flatten the array first.

    Returns:
        An integer array of the shape of `a`, or a vector.

    Raises:
        ValueError: there is no such position or dimension.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.argpartition(jnp.array([7, 1, 5, 3]), 0)[0])
        1
    """
    x, dimension = _prepared("argpartition", a, axis, None, None)
    size = aval_of(x).shape[dimension]
    place = _place("argpartition", kth, size)
    if not _is_sorted_as_quickly(x, dimension):
        return _parting_order(x, place, dimension)
    return plain(argsort)(x, dimension, dtype=np.dtype("int32") if size <= 2**31 else None)


@compiled
def sort_complex(a: ArrayLike) -> Array:
    """Sort the last dimension as complex numbers, by real part and then by imaginary part.

    Args:
        a: array of rank 1 or more.

    Returns:
        A complex array of the shape of `a`, with 64 bits for each part if `a` has 64 bits,
        otherwise 32 (in NumPy 64 for most dtypes).

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.sort_complex(jnp.array([2 - 1j, 1, 2 - 2j])))
        [1.+0.j 2.-2.j 2.-1.j]
    """
    x, dimension = _prepared("sort_complex", a, -1, None, None)
    dtype = inexact_dtype(aval_of(x).dtype)
    if dtypes.kind_of(dtype) == "f":
        dtype = np.dtype(np.complex128 if dtype.itemsize == 8 else np.complex64)
    return plain(sort)(convert(x, dtype), dimension)
