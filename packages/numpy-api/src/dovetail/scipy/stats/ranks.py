"""Ranks of elements."""

from __future__ import annotations

from typing import Any

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.numpy.compiled import compiled_with
from dovetail.scipy.stats._groups import (
    along_last,
    bounds_of_each,
    check_nan_policy,
    first_of_each,
)
from dovetail.typing import Array, ArrayLike

_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(
    a: ArrayLike,
    method: str = "average",
    *,
    axis: int | None = None,
    nan_policy: str = "propagate",
) -> Array:
    """Ranks of elements in ascending order, from 1 on.

    Args:
        a: array.
        method: the rank of equal elements: ``"average"``, ``"min"`` or ``"max"`` of the places they
            take, ``"dense"`` (as ``"min"``, and the next greater element has the next rank) or
            ``"ordinal"`` (ranks of their own, in the order in which they stand).
        axis: dimension along which elements are ranked; all elements, as one row, if None.
        nan_policy: ``"propagate"``: where there is a nan, all ranks are nan.

    Returns:
        An array of the shape of `a`, or of one dimension if `axis` is None, of the default float
        dtype.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `method`, `axis` or `nan_policy` is not one of these.
        NotImplementedError: `nan_policy` is ``"omit"`` or ``"raise"``.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(stats.rankdata(jnp.array([30, 10, 20, 20])))
        [4.  1.  2.5 2.5]
    """
    if not isinstance(method, str) or method not in _METHODS:
        raise ValueError(f"rankdata: method must be one of {_METHODS}, got {method!r}")
    check_nan_policy("rankdata", nan_policy)
    return _rankdata(a, method, axis)


@compiled_with("method", "axis")
def _rankdata(a: Any, method: str, axis: Any) -> Any:
    x, place = along_last("rankdata", a, axis)
    dtype = dtypes.default_dtype("f")
    if not x.size:
        ranks = jnp.zeros(x.shape, dtype)
    else:
        order = jnp.argsort(x, axis=-1, stable=True)
        ordered = jnp.take_along_axis(x, order, axis=-1)
        sorted_ranks = _ranks_of_sorted(ordered, method, dtype)
        ranks = jnp.take_along_axis(sorted_ranks, jnp.argsort(order, axis=-1), axis=-1)
        unknown = (x != x).any(axis=-1, keepdims=True)
        ranks = jnp.where(unknown, jnp.nan, ranks)
    return ranks if place is None else ranks.swapaxes(place, -1)


def _ranks_of_sorted(ordered: Any, method: str, dtype: Any) -> Any:
    if method == "ordinal":
        return 1 + lax.broadcasted_iota(dtype, ordered.shape, ordered.ndim - 1)
    first = first_of_each(ordered)
    if method == "dense":
        return jnp.cumsum(first, axis=-1).astype(dtype)
    starts, ends = (places.astype(dtype) for places in bounds_of_each(first))
    ranks = {"min": starts, "max": ends, "average": (starts + ends) / 2}
    return 1 + ranks[method]
