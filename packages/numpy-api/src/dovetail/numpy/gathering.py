"""Taking elements by their positions along a dimension, or by a condition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail import index_mode, lax
from dovetail.errors import IndexShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    canonical_axis,
    convert,
    literal,
    no_out,
    require_kind,
    value,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.indexing.plan import index_dtype, normalized
from dovetail.numpy.indexing.reading import get
from dovetail.numpy.nonzeros import indices_of_nonzero
from dovetail.numpy.shapes import broadcast_to, operand, reshaped
from dovetail.typing import Array, ArrayLike


def _mode(function: str, mode: Any) -> Any:
    if mode == "raise":
        raise ValueError(
            f"{function}: mode 'raise' is not one of this argument; leave it out, and write "
            "with dovetail.index_mode(\"raise\"): ..., or use 'fill', 'clip' or 'wrap'"
        )
    if mode is None and index_mode.value == "raise":
        return None
    return "fill" if mode is None else mode


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take elements, or slices, at positions along a dimension.

    Differs from NumPy's at positions out of bounds, which raise an error only with the option
    ``index_mode="raise"``.

    Args:
        a: array.
        indices: integer array of any shape; negative ones count from the end, except in mode
            "clip". Booleans are the positions 0 and 1; `compress` takes a mask.
        axis: dimension; None to flatten the array first.
        out: not supported, since arrays are immutable.
        mode: what to return for positions out of bounds: "fill" (the default) for `fill_value`,
            "clip" for the nearest element, which is the first for negative positions, "wrap" for
            the element at the position modulo the size.
        unique_indices: a promise that no position is repeated.
        indices_are_sorted: a promise that positions are in ascending order.
        fill_value: by default nan, or the smallest (unsigned: largest) integer.

    Returns:
        An array with the dimensions of `indices` in place of the dimension.

    Raises:
        TypeError: the indices are not integers.
        IndexError: there are some, and the dimension has no elements.

    Differs:
        Indices of no elements take their place in the shape, as in NumPy.

        >>> jnp.take(jnp.zeros((0, 3)), jnp.zeros((0, 2), int), axis=0).shape
        (0, 2, 3)

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.take(jnp.array([10., 20., 30.]), jnp.array([2, 0, 7])))
        [30. 10. nan]
    """
    no_out("take", out)
    promises = bool(unique_indices), bool(indices_are_sorted)
    if fill_value is None and index_mode.value != "raise":
        if promises == (False, False):
            return _take(a, indices, axis, mode)  # static arguments cost time
        return _take(a, indices, axis, mode, *promises)
    # Known positions are checked at once; a fill value may be an array.
    return plain(_take)(a, indices, axis, mode, *promises, fill_value)


@compiled_with("axis", "mode", "unique_indices", "indices_are_sorted")
def _take(
    a: Any,
    indices: Any,
    axis: int | None,
    mode: str | None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    x = operand(a, "take")
    where = array_like(indices, "take", "indices")
    require_kind("take", where, "biu", "integer indices")
    if dtypes.kind_of(where.dtype) == "b":
        where = convert(where, dtypes.default_dtype("i"))
    if axis is None:
        x, dimension = reshaped(x, (aval_of(x).size,)), 0
    else:
        dimension = canonical_axis("take", axis, aval_of(x).ndim)
    if aval_of(where).size and not aval_of(x).shape[dimension]:
        raise IndexError(f"take: there are positions, and axis {dimension} has no elements")
    chosen = _mode("take", mode)
    if chosen == "wrap":
        where = _wrapped(where, aval_of(x).shape[dimension])
        chosen = "promise_in_bounds"
    where = value(where)
    return get(
        x,
        (slice(None),) * dimension + (where,),
        mode=chosen,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        wrap_negative_indices=chosen != "clip",
    )


def _wrapped(where: Any, size: int) -> Any:
    """Positions modulo the size of a dimension; modulo one where it is empty."""
    dtype = aval_of(where).dtype
    divisor = literal(max(size, 1), dtype, function="take")
    rest = lax.rem(value(where), divisor)
    if dtypes.kind_of(dtype) == "u":
        return rest
    return pick(lax.lt(rest, literal(0, dtype)), lax.add(rest, divisor), rest)


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | lax.GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """Take elements along a dimension at positions that differ from row to row.

    It applies the result of `argsort`: ``take_along_axis(x, argsort(x, axis), axis)`` is ``sort(x,
    axis)``.

    Args:
        arr: array.
        indices: integer array of the same rank, which broadcasts with `arr` in the other
            dimensions.
        axis: dimension; None to flatten the array first.
        mode: what to return for positions out of bounds: "fill" (the default) for `fill_value`,
            "clip" for the nearest element. "one_hot" gives zero there, and finds elements by
            comparing all positions, which is faster than looking them up on some devices.
        fill_value: for the mode "fill"; by default nan, or the smallest (unsigned: largest)
            integer.
        wrap_negative_indices: whether negative positions count from the end.

    Returns:
        An array with the size of `indices` along the dimension.

    Raises:
        TypeError: the indices are not integers.
        ValueError: the ranks differ.

    Differs:
        In the mode "one_hot", nan and infinities reach only those who ask for them.

        >>> x = jnp.array([jnp.nan, 2.0])
        >>> print(jnp.take_along_axis(x, jnp.array([1, 5]), 0, mode="one_hot"))
        [2. 0.]

        The result is weakly typed as `arr` is, whether that has elements or not.

        >>> x = jnp.full(0, 1.0)
        >>> print(jnp.take_along_axis(x, jnp.arange(0), 0).weak_type)
        True

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[7, 3, 5], [2, 9, 4]])
        >>> print(jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1))
        [[3 5 7]
         [2 4 9]]
    """
    x = operand(arr, "take_along_axis", "arr")
    where = operand(indices, "take_along_axis", "indices")
    require_kind("take_along_axis", where, "iu", "integer indices")
    if axis is None:
        if aval_of(where).ndim != 1:
            raise ValueError(
                "take_along_axis with axis=None takes a vector of indices, got shape "
                f"{aval_of(where).shape}"
            )
        x, axis = reshaped(x, (math.prod(aval_of(x).shape),)), 0
    shape, places = aval_of(x).shape, aval_of(where).shape
    if len(shape) != len(places):
        raise ValueError(
            f"take_along_axis needs indices of the rank of the array, got shapes {shape} and "
            f"{places}"
        )
    dimension = canonical_axis("take_along_axis", axis, len(shape))
    common = broadcast_result(
        "take_along_axis",
        [s[:dimension] + (1,) + s[dimension + 1 :] for s in (shape, places)],
    )
    before, after = common[:dimension], common[dimension + 1 :]
    x = broadcast_to(x, before + (shape[dimension],) + after)
    full = before + (places[dimension],) + after
    where = broadcast_to(where, full)
    if mode == "one_hot":
        return _by_comparison(x, where, dimension, wrap_negative_indices)
    how = _mode("take_along_axis", mode)
    if how is not None and 0 not in (*full, shape[dimension]):
        # By dimensions in pairs: positions along all dimensions would be an array of their own.
        dtype = index_dtype(shape[dimension : dimension + 1], [where])
        where = normalized(where, shape[dimension], not wrap_negative_indices, dtype)
        return _row_by_row(x, where, dimension, how, fill_value)
    index = tuple(where if d == dimension else _open(n, d, len(full)) for d, n in enumerate(full))
    return get(
        x,
        index,
        mode=_mode("take_along_axis", mode),
        fill_value=fill_value,
        indices_are_sorted=False,
        unique_indices=False,
        wrap_negative_indices=wrap_negative_indices,
    )


def _row_by_row(x: Any, where: Any, dimension: int, mode: Any, fill_value: Any) -> Any:
    """Elements of a gather with a batch, whose dimensions may be divided over devices."""
    rank = aval_of(x).ndim
    rows = tuple(d for d in range(rank) if d != dimension)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(dimension,),
        start_index_map=(dimension,),
        operand_batching_dims=rows,
        start_indices_batching_dims=rows,
    )
    where = lax.expand_dims(where, (rank,))
    return lax.gather(x, where, numbers, (1,) * rank, mode=mode, fill_value=fill_value)


def _by_comparison(x: Any, where: Any, dimension: int, wrap_negative_indices: bool) -> Any:
    """Sums along a dimension in which one element is left at most: that at the position."""
    shape, places = aval_of(x).shape, aval_of(where).shape
    # Both get a dimension that the other one has: that of the positions, and that of the elements.
    full = (*places[: dimension + 1], shape[dimension], *places[dimension + 1 :])
    without = [tuple(d for d in range(len(full)) if d != new) for new in (dimension, dimension + 1)]
    dtype = index_dtype(shape, [where])
    where = normalized(where, shape[dimension], not wrap_negative_indices, dtype)
    found = lax.eq(
        lax.broadcast_in_dim(where, full, without[1]),
        lax.broadcasted_iota(dtype, full, dimension + 1),
    )
    x = lax.broadcast_in_dim(x, full, without[0])
    x = pick(found, x, literal(0, aval_of(x).dtype))
    reduce = lax.reduce_or if dtypes.kind_of(aval_of(x).dtype) == "b" else lax.reduce_sum
    return reduce(x, (dimension + 1,))


def _open(size: int, dimension: int, rank: int) -> Any:
    """Positions along one dimension, with size one in all others."""
    shape = tuple(size if d == dimension else 1 for d in range(rank))
    return lax.broadcasted_iota(dtypes.default_dtype("i"), shape, dimension)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Select the slices along a dimension for which a condition holds.

    Args:
        condition: boolean vector; positions beyond its end are left out.
        a: array.
        axis: dimension; None to flatten the array first.
        size: number of slices in the result, required if the condition is traced.
        fill_value: value for missing slices.
        out: not supported, since arrays are immutable.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.compress(jnp.array([True, False, True]), jnp.arange(3)))
        [0 2]
    """
    no_out("compress", out)
    x = operand(a, "compress")
    if axis is None:
        x, axis = reshaped(x, (aval_of(x).size,)), 0
    test = operand(condition, "compress", "condition")
    if aval_of(test).ndim != 1:
        raise ValueError(f"compress needs a vector as condition, got shape {aval_of(test).shape}")
    dimension = canonical_axis("compress", axis, aval_of(x).ndim)
    count = aval_of(x).shape[dimension]
    if size is None:
        (places,) = indices_of_nonzero(test)
        last = np.asarray(places)[-1] if aval_of(places).size else -1
        if last >= count:
            raise IndexShapeError(
                f"compress: condition has {aval_of(test).size} elements and holds at position "
                f"{last}, which is out of bounds for axis {dimension} of size {count}"
            )
        return take(x, places, axis=dimension)
    (places,) = indices_of_nonzero(test, size, count)
    taken = take(x, places, axis=dimension, mode="fill", fill_value=fill_value)
    return convert(taken, aval_of(x).dtype)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Select the elements for which a condition holds, as a vector.

    Args:
        condition: boolean array of the shape of `arr`.
        arr: array.
        size: number of elements in the result, required if the condition is traced.
        fill_value: value for missing elements.

    Returns:
        A vector.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(5)
        >>> print(jnp.extract(x % 2 == 0, x))
        [0 2 4]
    """
    test = operand(condition, "extract", "condition")
    if size is None and not isinstance(test, Tracer):
        flat: Any = np.asarray(test).ravel()  # which nothing traces
    else:
        flat = reshaped(test, (aval_of(test).size,))
    return compress(flat, arr, size=size, fill_value=fill_value)
