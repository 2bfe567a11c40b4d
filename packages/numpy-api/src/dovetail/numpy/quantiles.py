"""Medians, quantiles and percentiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.core.base import dtypes
from dovetail.core.ir.avals import aval_of
from dovetail.core.ops.reduction import reduce_or_p
from dovetail.numpy.arguments import (
    Axis,
    array_like,
    canonical_axes,
    convert,
    inexact_dtype,
    literal,
    no_out,
    refuse_complex,
    value,
)
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.gathering import take
from dovetail.numpy.reductions import computed_in, strong
from dovetail.numpy.selection import pick


@compiled_with("axis", "keepdims")
def median(
    a: Any,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """The median of elements along some dimensions; the mean of the two middle ones of an even
    number.

    Args:
        a: array or scalar of a real dtype.
        axis: dimension, or several of them; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: has no effect, since arrays are immutable; there for NumPy's sake.
        keepdims: whether the dimensions stay, with size one.

    Returns:
        A float array without these dimensions; nan where there is one, and for no elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.median(jnp.array([4., 1., 3., 2.])))
        2.5
    """
    no_out("median", out)
    return _quantile(
        "median", a, literal(0.5, dtypes.default_dtype("f")), axis, "midpoint", keepdims
    )


@compiled_with("axis", "method", "keepdims")
def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Numbers below which a given share of the elements along some dimensions is.

    Args:
        a: array or scalar of a real dtype.
        q: share, or array of shares, in [0, 1].
        axis: dimension, or several of them; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: has no effect, since arrays are immutable; there for NumPy's sake.
        method: what to do between two elements: "linear", "lower", "higher", "nearest" or
            "midpoint".
        keepdims: whether the dimensions stay, with size one.

    Returns:
        A float array with the dimensions of `q` in front of those that are left; nan where one is
        among the elements, and where the share is.

    Raises:
        ValueError: the method is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.quantile(jnp.arange(5.), jnp.array([0.1, 0.5])))
        [0.4 2. ]
    """
    no_out("quantile", out)
    return _quantile("quantile", a, q, axis, method, keepdims)


@compiled_with("axis", "method", "keepdims")
def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """`quantile` with shares in percent.

    Args:
        a: array or scalar of a real dtype.
        q: share, or array of shares, in [0, 100].
        axis: dimension, or several of them; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: has no effect, since arrays are immutable; there for NumPy's sake.
        method: what to do between two elements: "linear", "lower", "higher", "nearest" or
            "midpoint".
        keepdims: whether the dimensions stay, with size one.

    Returns:
        A float array with the dimensions of `q` in front of those that are left.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.percentile(jnp.arange(5.), 25))
        1.0
    """
    no_out("percentile", out)
    share = array_like(q, "percentile", "q")
    dtype = inexact_dtype(aval_of(share).dtype)
    share = value(convert(share, dtype))
    # XLA turns division by a constant into multiplication, and 100 * 0.01 is less than 1.
    hundred = lax.add(lax.mul(share, literal(0, dtype)), literal(100, dtype))
    share = lax.div(share, hundred)
    return _quantile("percentile", a, share, axis, method, keepdims)


_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def _quantile(function: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    if method not in _METHODS:
        raise ValueError(f"{function}: method must be one of {', '.join(_METHODS)}, got {method!r}")
    x = array_like(a, function, "a")
    out = inexact_dtype(aval_of(x).dtype)
    x = value(strong(convert(x, out)))
    refuse_complex(function, x)
    share = array_like(q, function, "q")
    shape = aval_of(x).shape
    axes = canonical_axes(function, axis, len(shape))
    others = tuple(d for d in range(len(shape)) if d not in axes)
    count = math.prod(shape[d] for d in axes)
    rest = tuple(shape[d] for d in others)
    x = lax.reshape(lax.transpose(x, others + axes), (*rest, count))
    shares = aval_of(share).shape
    if count == 0:
        result = lax.full((*shares, *rest), float("nan"), out)
    else:
        result = _between(x, share, method, count)
    if keepdims:
        sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
        result = lax.reshape(result, (*shares, *sizes))
    return convert(result, out)


def _between(x: Any, share: Any, method: str, count: int) -> Any:
    """Quantiles along the last dimension; dimensions of `share` come first in the result."""
    dtype = aval_of(x).dtype
    rank = aval_of(x).ndim
    ordered = lax.sort(x, dimension=rank - 1)
    nan = reduce_or_p.bind(lax.ne(x, x), axes=(rank - 1,))
    wide = dtypes.promote_types(computed_in(dtype), inexact_dtype(aval_of(share).dtype))
    position = lax.mul(convert(share, wide), literal(count - 1, wide))
    position = lax.clamp(literal(0, wide), position, literal(count - 1, wide))
    low, high = lax.floor(position), lax.ceil(position)
    if method == "lower":
        high = low
    elif method == "higher":
        low = high
    elif method == "nearest":
        low = high = lax.round(position, lax.RoundingMethod.TO_NEAREST_EVEN)
    values = [_at(ordered, convert(p, np.dtype("int32"))) for p in (low, high)]
    shape = aval_of(values[0]).shape
    if method == "linear":
        weight = lax.sub(position, low)
    elif method == "midpoint":
        half = literal(0.5, wide)
        weight = pick(lax.eq(low, high), literal(0, wide), half)
    else:
        weight = lax.full_like(position, 0)
    count_first = aval_of(weight).ndim
    weight = convert(lax.broadcast_in_dim(weight, shape, tuple(range(count_first))), dtype)
    lower, upper = values
    mixed = lax.add(lax.mul(lower, lax.sub(literal(1, dtype), weight)), lax.mul(upper, weight))
    # Of equal neighbours exactly the same, with gradients for both unless they are infinite.
    equal = lax.add(lower, lax.mul(weight, lax.sub(upper, lower)))
    equal = pick(lax.is_finite(lower), equal, lower)
    result = pick(lax.eq(lower, upper), equal, mixed)
    # Infinite neighbours: an element itself where the weight leaves no other.
    result = pick(lax.eq(weight, literal(0, dtype)), lower, result)
    undefined = lax.bitwise_or(
        lax.broadcast_in_dim(nan, shape, tuple(range(count_first, len(shape)))),
        lax.broadcast_in_dim(lax.ne(share, share), shape, tuple(range(count_first))),
    )
    return pick(undefined, literal(float("nan"), dtype), result)


def _at(x: Any, positions: Any) -> Any:
    """Elements of the last dimension at positions, whose dimensions come first in the result."""
    rank = aval_of(x).ndim
    moved = lax.transpose(x, (rank - 1, *range(rank - 1)))
    return take(moved, positions, axis=0, mode="clip")
