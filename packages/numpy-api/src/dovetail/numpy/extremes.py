"""Both extremes at once, and the k largest or smallest elements."""

from __future__ import annotations

import math

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Axis,
    array_like,
    canonical_axis,
    integer,
    literal,
    no_out,
    refuse_complex,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import iota_like
from dovetail.lax import sort_p
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.reductions import max, min
from dovetail.typing import Array, ArrayLike


@compiled_with("axis", "keepdims")
def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element along dimensions; nan if any element is nan.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: further value to compare with, or a tuple of one for each extreme.
        where: boolean array that broadcasts with `a`: which elements to include; requires
            `initial`.

    Returns:
        A pair of arrays without these dimensions.

    Raises:
        ValueError: there are no elements and no `initial`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> low, high = jnp.minmax(jnp.array([[1, 5], [7, 2]]), axis=1)
        >>> print(low, high)
        [1 2] [5 7]
    """
    no_out("minmax", out)
    x = array_like(a, "minmax", "a")
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return (
        plain(min)(x, axis, None, keepdims, low, where),
        plain(max)(x, axis, None, keepdims, high, where),
    )


@compiled_with("k", "axis", "mode", "sorted")
def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The k largest or smallest elements along a dimension, and their positions.

    Of equal elements, the first ones are taken. Nan is larger than all numbers.

    Args:
        a: array of rank 1 or more, of a real dtype.
        k: number of elements; at most the size of the dimension.
        axis: dimension.
        mode: "largest" or "smallest".
        sorted: whether they must be sorted, the most extreme first. They always are.

    Returns:
        A pair of arrays with size `k` along the dimension: elements, and their positions.

    Raises:
        TypeError: `a` is complex.
        ValueError: the dimension has fewer than `k` elements.

    Differs:
        The pair is a tuple, as the array API standard says. That of `dovetail.lax.top_k` is a
        list, as in JAX.

        >>> type(jnp.top_k(jnp.arange(3), 2)).__name__, type(lax.top_k(jnp.arange(3), 2)).__name__
        ('tuple', 'list')

    Example:
        >>> import dovetail.numpy as jnp
        >>> values, positions = jnp.top_k(jnp.array([1, 4, 3, 0]), 2)
        >>> print(values, positions)
        [4 3] [1 2]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    x = value(array_like(a, "top_k", "a"))
    refuse_complex("top_k", x)
    shape = aval_of(x).shape
    if not shape:
        raise ValueError("top_k needs an array of rank 1 or more, got a scalar")
    dimension = canonical_axis("top_k", axis, len(shape))
    count = integer("top_k", "k", k)
    if not 0 <= count <= shape[dimension]:
        raise ValueError(
            f"top_k: k must be from 0 to {shape[dimension]}, the size of dimension {dimension}, "
            f"got {count}"
        )
    if mode == "largest":
        if dtypes.kind_of(aval_of(x).dtype) == "f":
            # lax.top_k orders nan by its sign, and the nan of 0 / 0 may have one.
            x = pick(lax.ne(x, x), literal(math.nan, aval_of(x).dtype, weak_of(x)), x)
        largest, order = lax.top_k(x, count, axis=dimension)
        return largest, order
    places = iota_like(np.dtype(np.int32), shape, dimension)
    values, order = sort_p.bind(x, places, dimension=dimension, is_stable=True, num_keys=1)
    return (
        lax.slice_in_dim(values, 0, count, axis=dimension),
        lax.slice_in_dim(order, 0, count, axis=dimension),
    )
