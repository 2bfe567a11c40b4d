"""Statistics of samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import dovetail.numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    inexact,
    require_real_number,
    value,
)
from dovetail.numpy.compiled import compiled_with
from dovetail.scipy.stats._groups import (
    along_last,
    bounds_of_each,
    check_nan_policy,
    first_of_each,
)
from dovetail.typing import Array, ArrayLike


class ModeResult(NamedTuple):
    """The most frequent elements, and how many of each there are."""

    mode: Array
    count: Array  # type: ignore[assignment]  # SciPy's name, also that of a method of tuples


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent elements along a dimension; the least of those that are equally frequent.

    Args:
        a: array.
        axis: dimension; all elements, as one row, if None.
        nan_policy: ``"propagate"``: a nan is an element, equal to other nan and greater than
            numbers.
        keepdims: whether to keep the dimension, with size one.

    Returns:
        A named tuple of `mode`, of the dtype of `a`, and `count`, of the default integer dtype,
        both without the dimension. Of no elements the mode is nan, a float.

    Raises:
        TypeError: `a` is not an array, or `ddof` no number.
        ValueError: `axis` or `nan_policy` is not one of these.
        NotImplementedError: `nan_policy` is ``"omit"`` or ``"raise"``.

    Differs:
        Counts are integers, also where there is nothing to count.

        >>> from dovetail.scipy import stats
        >>> print(stats.mode(jnp.zeros(0)).count)
        0

    Example:
        >>> from dovetail.scipy import stats
        >>> most = stats.mode(jnp.array([3, 1, 2, 2, 3]))
        >>> print(most.mode, most.count)
        2 2
    """
    check_nan_policy("mode", nan_policy)
    found, count = _mode(a, axis, bool(keepdims))
    return ModeResult(found, count)


@compiled_with("axis", "keepdims")
def _mode(a: Any, axis: Any, keepdims: bool) -> Any:
    x, place = along_last("mode", a, axis)
    counts = dtypes.default_dtype("i")
    if not x.shape[-1]:
        found = jnp.full((*x.shape[:-1], 1), jnp.nan, dtypes.default_dtype("f"))
        count = jnp.zeros(found.shape, counts)
    else:
        ordered = jnp.sort(x, axis=-1)
        starts, ends = bounds_of_each(first_of_each(ordered))
        lengths = ends - starts + 1
        best = jnp.argmax(lengths, axis=-1, keepdims=True)
        found = jnp.take_along_axis(ordered, best, axis=-1)
        count = jnp.take_along_axis(lengths, best, axis=-1).astype(counts)
    if place is not None:
        found, count = found.swapaxes(place, -1), count.swapaxes(place, -1)
        return (found, count) if keepdims else (found.squeeze(place), count.squeeze(place))
    shape = (1,) * jnp.ndim(a) if keepdims else ()
    return found.reshape(shape), count.reshape(shape)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The standard error of a mean: the standard deviation over the root of how many there are.

    Args:
        a: array.
        axis: dimension; all elements if None.
        ddof: what is subtracted from the number of elements in the deviation.
        nan_policy: ``"propagate"`` (nan gives nan) or ``"omit"`` (nan is left out).
        keepdims: whether to keep the dimension, with size one.

    Returns:
        A float array without the dimension: nan where there are no more than `ddof` elements.

    Raises:
        TypeError: `a` is not an array, or `ddof` no number.
        ValueError: `axis` or `nan_policy` is not one of these.

    Differs:
        A deviation is real, also that of complex numbers.

        >>> from dovetail.scipy import stats
        >>> print(stats.sem(jnp.array([1j, 1.])).dtype)
        float32

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.sem(jnp.array([1., 2., 4.])):.4f}")
        0.8819
    """
    if not isinstance(nan_policy, str) or nan_policy not in ("propagate", "omit"):
        raise ValueError(f"sem: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}")
    require_real_number("sem", "ddof", ddof)
    return _sem(a, axis, ddof, nan_policy == "omit", bool(keepdims))


@compiled_with("axis", "ddof", "omit", "keepdims")
def _sem(a: Any, axis: Any, ddof: Any, omit: bool, keepdims: bool) -> Any:
    x = value(inexact("sem", array_like(a, "sem", "a")))
    if axis is None or not x.ndim:
        if axis is not None:
            canonical_axis("sem", axis, 1)
        places = tuple(range(x.ndim))
    else:
        places = (canonical_axis("sem", axis, x.ndim),)
    known = x == x if omit else jnp.ones(x.shape, bool)
    number = known.sum(places, keepdims=True).astype(x.real.dtype)
    centre = jnp.where(known, x, 0).sum(places, keepdims=True) / number
    distance = jnp.where(known, x - centre, 0)
    squares = (distance.real**2 + distance.imag**2) if x.dtype.kind == "c" else distance**2
    freedom = number - ddof
    variance = squares.sum(places, keepdims=True) / jnp.where(freedom > 0, freedom, jnp.nan)
    result = jnp.sqrt(variance / number)
    return result if keepdims else result.squeeze(places)
