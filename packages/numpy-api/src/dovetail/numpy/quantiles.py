"""Medians, quantiles and percentiles."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Axis,
    array_like,
    canonical_axes,
    convert,
    divided,
    inexact_dtype,
    literal,
    no_out,
    refuse_complex,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.indexing import order_statistics
from dovetail.numpy.averages import computed_in
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick
from dovetail.numpy.gathering import take, take_along_axis
from dovetail.numpy.reductions import strong
from dovetail.numpy.shapes import reshaped
from dovetail.typing import Array, ArrayLike, Sharding

#: Where methods place a share q among n sorted elements, counted from 0: ``n * q + a + b * q``.
_PLACES: Final = {
    "linear": (0.0, -1.0),
    "lower": (0.0, -1.0),
    "higher": (0.0, -1.0),
    "nearest": (0.0, -1.0),
    "midpoint": (0.0, -1.0),
    "inverted_cdf": (-1.0, 0.0),
    "averaged_inverted_cdf": (-1.0, 0.0),
    "closest_observation": (-1.5, 0.0),
    "interpolated_inverted_cdf": (-1.0, 0.0),
    "hazen": (-0.5, 0.0),
    "weibull": (-1.0, 1.0),
    "median_unbiased": (-2.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": (-5.0 / 8.0, 1.0 / 4.0),
}
#: The methods among these that interpolate linearly between two elements.
_CONTINUOUS: Final = (
    "linear",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
)


# --------------------------------------------------------------------------- functions for users


@compiled_with("axis", "keepdims")
def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median of elements along dimensions; for an even number, the mean of the middle two.

    Args:
        a: array or scalar of a real dtype.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        A float array without these dimensions; nan if any element is nan or there are none.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.median(jnp.array([4., 1., 3., 2.])))
        2.5
    """
    no_out("median", out)
    return _quantile("median", a, _half(), axis, "midpoint", keepdims)


@compiled_with("axis", "keepdims")
def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` of the elements that are not nan; nan if there are none.

    Args:
        a: array or scalar of a real dtype.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        A float array without these dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanmedian(jnp.array([4., jnp.nan, 3., 1.])))
        3.0
    """
    no_out("nanmedian", out)
    return _quantile("nanmedian", a, _half(), axis, "midpoint", keepdims, skip_nan=True)


@compiled_with("axis", "method", "keepdims")
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The quantiles of elements along dimensions: numbers below which a given share of them is.

    Shares outside [0, 1] are clipped, where NumPy raises an error. Float shares are rounded
    numbers: methods that choose one element treat a position as whole if it is whole up to
    rounding.

    Args:
        a: array or scalar of a real dtype.
        q: share, or array of shares, in [0, 1].
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        method: how to place a share among n sorted elements, and what to take between two of them.
            With the first element at 0 and the last at 1: "linear" interpolates, "lower", "higher"
            and "nearest" take one of them (in a tie, the even one), "midpoint" their mean. With the
            first element at 1/n: "inverted_cdf" takes the higher one; "averaged_inverted_cdf" too,
            but exactly at an element the mean of it and the next; "closest_observation" the nearest
            (in a tie, the even one, counted from 1); "interpolated_inverted_cdf" interpolates.
            "hazen", "weibull", "median_unbiased" and "normal_unbiased" interpolate, with the first
            element at 0.5/n, 1/(n + 1), (2/3)/(n + 1/3) and (5/8)/(n + 1/4).
        keepdims: whether to keep the dimensions, with size one.
        weights: weights of the elements, only for the method "inverted_cdf": an array of the shape
            of `a`, or with the sizes of the dimensions `axis`.

    Returns:
        A float array with the dimensions of `q` in front of the remaining ones; nan where an
        element or the share is nan, and where weights are negative, nan, or all zero.

    Raises:
        ValueError: the method is not one of these, or the weights do not fit.

    References:
        R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
        Statistician 50 (1996), whose methods 1 to 9 are "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "linear", "median_unbiased" and "normal_unbiased".

    Differs:
        All methods of NumPy are there. Places among elements that are whole but for the
        rounding of the share count as whole, so that float32 chooses what float64 would.
        Elements of no weight are never chosen.

        >>> print(jnp.quantile(jnp.arange(11.0), 0.7, method="inverted_cdf"))
        7.0

        In a tie "nearest" takes the element in the even place, as in NumPy; JAX the lower one.

        >>> print(jnp.quantile(jnp.arange(4.0), 0.5, method="nearest"))
        2.0

        Shares may be an array of any rank, as in NumPy.

        >>> print(jnp.quantile(jnp.arange(11.0), jnp.array([[0.1, 0.5], [0.7, 0.9]])))
        [[1. 5.]
         [7. 9.]]

        Of a scalar no dimension is kept, as in NumPy; JAX makes one.

        >>> print(jnp.quantile(2.0, 0.5, keepdims=True).shape)
        ()

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.quantile(jnp.arange(5.), jnp.array([0.1, 0.5])))
        [0.4 2. ]
        >>> x, weights = jnp.array([1., 2., 3.]), jnp.array([1., 1., 8.])
        >>> print(jnp.quantile(x, 0.5, method="inverted_cdf", weights=weights))
        3.0
    """
    no_out("quantile", out)
    return _quantile("quantile", a, q, axis, method, keepdims, weights=weights)


@compiled_with("axis", "method", "keepdims")
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` of the elements that are not nan; nan if there are none.

    Args:
        a: array or scalar of a real dtype.
        q: share, or array of shares, in [0, 1].
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        method: as for `quantile`.
        keepdims: whether to keep the dimensions, with size one.
        weights: as for `quantile`.

    Returns:
        A float array with the dimensions of `q` in front of the remaining ones.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanquantile(jnp.array([0., jnp.nan, 1., 2.]), 0.25))
        0.5
    """
    no_out("nanquantile", out)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights=weights, skip_nan=True)


@compiled_with("axis", "method", "keepdims", "out_sharding")
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """`quantile` with shares in percent.

    Args:
        a: array or scalar of a real dtype.
        q: share, or array of shares, in [0, 100].
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        method: as for `quantile`.
        keepdims: whether to keep the dimensions, with size one.
        weights: as for `quantile`.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        A float array with the dimensions of `q` in front of the remaining ones.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.percentile(jnp.arange(5.), 25))
        1.0
    """
    no_out("percentile", out)
    share = _share("percentile", q)
    return divided(
        "percentile",
        out_sharding,
        lambda: _quantile("percentile", a, share, axis, method, keepdims, weights=weights),
    )


@compiled_with("axis", "method", "keepdims")
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` of the elements that are not nan; nan if there are none.

    Args:
        a: array or scalar of a real dtype.
        q: share, or array of shares, in [0, 100].
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        overwrite_input: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        method: as for `quantile`.
        keepdims: whether to keep the dimensions, with size one.
        weights: as for `quantile`.

    Returns:
        A float array with the dimensions of `q` in front of the remaining ones.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanpercentile(jnp.array([0., jnp.nan, 1., 2.]), 25))
        0.5
    """
    no_out("nanpercentile", out)
    share = _share("nanpercentile", q)
    return _quantile(
        "nanpercentile", a, share, axis, method, keepdims, weights=weights, skip_nan=True
    )


# ------------------------------------------------------------------------------------ computing


def _half() -> Any:
    return literal(0.5, dtypes.default_dtype("f"))


def _share(function: str, q: Any) -> Any:
    """Percentages as shares."""
    share = array_like(q, function, "q")
    dtype = inexact_dtype(aval_of(share).dtype)
    share = value(convert(share, dtype))
    # XLA turns division by a constant into multiplication, and 100 * 0.01 is less than 1.
    hundred = lax.add(lax.mul(share, literal(0, dtype)), literal(100, dtype))
    return lax.div(share, hundred)


def _quantile(
    function: str,
    a: Any,
    q: Any,
    axis: Any,
    method: str,
    keepdims: bool,
    *,
    weights: Any = None,
    skip_nan: bool = False,
) -> Any:
    if not isinstance(method, str) or method not in _PLACES:
        raise ValueError(f"{function}: method must be one of {', '.join(_PLACES)}, got {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(
            f"{function} takes weights with method='inverted_cdf' only, got method={method!r}"
        )
    x = array_like(a, function, "a")
    out = inexact_dtype(aval_of(x).dtype)
    x = value(strong(convert(x, out)))
    refuse_complex(function, x)
    share = array_like(q, function, "q")
    refuse_complex(function, share)
    shape = aval_of(x).shape
    axes = canonical_axes(function, axis, len(shape))
    others = tuple(d for d in range(len(shape)) if d not in axes)
    count = math.prod(shape[d] for d in axes)
    rest = tuple(shape[d] for d in others)
    turned = others + axes
    x = reshaped(lax.transpose(x, turned), (*rest, count))
    if weights is not None:
        weights = _weights(function, weights, shape, axis, axes, turned, (*rest, count))
    shares = aval_of(share).shape
    if count == 0:
        result = lax.full((*shares, *rest), float("nan"), out)
    elif weights is not None:
        result = _weighted(x, share, weights, skip_nan)
    else:
        result = _between(x, share, method, count, skip_nan)
    if keepdims:
        sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
        result = reshaped(result, (*shares, *sizes))
    return convert(result, out)


def _between(x: Any, share: Any, method: str, count: int, skip_nan: bool) -> Any:
    """Quantiles along the last dimension; the dimensions of `share` come first in the result."""
    dtype = aval_of(x).dtype
    rest, rank = aval_of(x).shape[:-1], aval_of(x).ndim
    shares = aval_of(share).shape
    shape = shares + rest
    wide = _wide(dtype, aval_of(share).dtype)
    share = value(convert(share, wide))
    if skip_nan:
        # Rows differ in their number of elements, so each share has its own position in each row.
        numbers = lax.reduce_sum(convert(lax.eq(x, x), np.dtype("int32")), (rank - 1,))
        numbers = _last_dimensions(convert(numbers, wide), shape)
        share = _first_dimensions(share, shape)
    else:
        numbers = literal(count, wide)
    low, high, weight = _places(share, numbers, method)
    values = _selected(x, low, high, len(shares))
    undefined = lax.bitwise_or(
        _last_dimensions(_no_number(x, skip_nan), shape),
        _first_dimensions(lax.ne(share, share), shape),
    )
    result = values[0]
    if weight is not None:
        weight = convert(_first_dimensions(weight, shape), dtype)
        result = _mixed(values[0], values[1], weight)
    return pick(undefined, literal(float("nan"), dtype), result)


def _wide(*given: Any) -> Any:
    """The dtype in which to compute positions, from the dtypes of shares and elements."""
    return max([computed_in(inexact_dtype(d)) for d in given], key=lambda dtype: dtype.itemsize)


def _places(share: Any, numbers: Any, method: str) -> tuple[Any, Any, Any]:
    """The positions below and above a share, and the weight of the latter (None for 0)."""
    dtype = aval_of(share).dtype
    zero, one = literal(0, dtype), literal(1, dtype)
    share = lax.clamp(zero, share, one)
    offset, slope = _PLACES[method]
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        position = lax.add(_whole(lax.mul(share, numbers)), literal(offset, dtype))
    else:
        position = lax.add(
            lax.mul(share, lax.add(numbers, literal(slope, dtype))), literal(offset, dtype)
        )
        if method not in _CONTINUOUS:
            position = _whole(position)
    last = lax.max(lax.sub(numbers, one), zero)
    if method not in ("averaged_inverted_cdf", "closest_observation"):
        position = lax.clamp(zero, position, last)
    low, high = lax.floor(position), lax.ceil(position)
    if method in _CONTINUOUS:
        return low, high, lax.sub(position, low)
    if method == "midpoint":
        return low, high, pick(lax.eq(low, high), zero, literal(0.5, dtype))
    if method == "averaged_inverted_cdf":
        whole = lax.eq(low, high)
        above = lax.clamp(zero, lax.add(low, one), last)
        return lax.clamp(zero, low, last), above, pick(whole, literal(0.5, dtype), one)
    if method == "closest_observation":
        # The even position counted from 1 is the odd one counted from 0.
        even = lax.eq(lax.rem(low, literal(2, dtype)), zero)
        keep = lax.bitwise_and(lax.eq(low, high), lax.bitwise_not(even))
        low = lax.clamp(zero, pick(keep, low, lax.add(low, one)), last)
    elif method in ("higher", "inverted_cdf"):
        low = high
    elif method == "nearest":
        low = lax.round(position, lax.RoundingMethod.TO_NEAREST_EVEN)
    return low, low, None


def _whole(position: Any) -> Any:
    """A position, rounded if it is whole up to rounding errors."""
    dtype = aval_of(position).dtype
    nearest = lax.round(position, lax.RoundingMethod.TO_NEAREST_EVEN)
    error = lax.abs(lax.sub(position, nearest))
    bound = lax.mul(lax.abs(position), literal(2 * float(dtypes.finfo(dtype).eps), dtype))
    return pick(lax.le(error, bound), nearest, position)


def _mixed(lower: Any, upper: Any, weight: Any) -> Any:
    dtype = aval_of(lower).dtype
    mixed = lax.add(lax.mul(lower, lax.sub(literal(1, dtype), weight)), lax.mul(upper, weight))
    # Equal neighbours give exactly their value, with gradients for both unless they are infinite.
    equal = lax.add(lower, lax.mul(weight, lax.sub(upper, lower)))
    equal = pick(lax.is_finite(lower), equal, lower)
    result = pick(lax.eq(lower, upper), equal, mixed)
    # For infinite neighbours, take an element itself if the other has no weight.
    result = pick(lax.eq(weight, literal(0, dtype)), lower, result)
    return pick(lax.eq(weight, literal(1, dtype)), upper, result)


def _selected(x: Any, low: Any, high: Any, leading: int) -> tuple[Any, Any]:
    """Elements of the sorted order of the last dimension, as `_at` takes them."""
    shape = aval_of(low).shape
    rest, count = shape[leading:], math.prod(shape[:leading])
    rows = len(rest)
    last = (*range(1, rows + 1), 0)
    columns = [
        lax.transpose(reshaped(convert(p, np.dtype("int32")), (count, *rest)), last)
        for p in (low, high)
    ]
    found = order_statistics(x, lax.concatenate(columns, rows))
    rank = aval_of(x).ndim
    shape = (*shape[:leading], *aval_of(x).shape[:-1])
    first, second = (
        reshaped(lax.transpose(part, (rank - 1, *range(rank - 1))), shape)
        for part in lax.split(found, (count, count), axis=rank - 1)
    )
    return first, second


def _at(x: Any, positions: Any, leading: int) -> Any:
    """Elements along the last dimension; the dimensions of `positions` come first in the result.

    Args:
        x: array.
        positions: positions for all rows, or, after `leading` dimensions, for each row.
        leading: number of dimensions that come first.
    """
    rank = aval_of(x).ndim
    if aval_of(positions).ndim == leading:
        moved = lax.transpose(x, (rank - 1, *range(rank - 1)))
        return take(moved, positions, axis=0, mode="clip")
    shape = aval_of(positions).shape
    rest, count = shape[leading:], math.prod(shape[:leading])
    last = lax.transpose(reshaped(positions, (count, *rest)), (*range(1, rank), 0))
    taken = take_along_axis(x, last, -1, mode="clip")
    return reshaped(lax.transpose(taken, (rank - 1, *range(rank - 1))), shape)


def _first_dimensions(x: Any, shape: tuple[int, ...]) -> Any:
    return lax.broadcast_in_dim(x, shape, tuple(range(aval_of(x).ndim)))


def _last_dimensions(x: Any, shape: tuple[int, ...]) -> Any:
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - aval_of(x).ndim, len(shape))))


# -------------------------------------------------------------------------------------- weights


def _weights(
    function: str,
    weights: Any,
    shape: tuple[int, ...],
    axis: Any,
    axes: tuple[int, ...],
    turned: tuple[int, ...],
    rows: tuple[int, ...],
) -> Any:
    """Weights as rows, alongside their elements."""
    w = array_like(weights, function, "weights")
    w = value(strong(convert(w, computed_in(inexact_dtype(aval_of(w).dtype)))))
    refuse_complex(function, w)
    if aval_of(w).shape == shape:
        return reshaped(lax.transpose(w, turned), rows)
    sizes = tuple(shape[d] for d in axes)
    if axis is None or aval_of(w).shape != sizes:
        expected = f"{shape}, the shape of a" + (
            "" if axis is None else f", or {sizes}, along axis"
        )
        raise ValueError(
            f"{function}: weights must have the shape {expected}; got {aval_of(w).shape}"
        )
    return _last_dimensions(reshaped(w, rows[-1:]), rows)


def _weighted(x: Any, share: Any, weights: Any, skip_nan: bool) -> Any:
    """The first elements at which the cumulative weight reaches a share of the total."""
    dtype, rank = aval_of(x).dtype, aval_of(x).ndim
    wide = _wide(aval_of(weights).dtype, aval_of(share).dtype)
    weights, share = convert(weights, wide), value(convert(share, wide))
    zero = literal(0, wide)
    if skip_nan:
        weights = pick(lax.eq(x, x), weights, zero)
    bad = lax.bitwise_not(lax.ge(weights, zero))
    bad = lax.bitwise_or(lax.reduce_or(bad, (rank - 1,)), _no_number(x, skip_nan))
    ordered, weights = lax.sort((x, weights), dimension=rank - 1, num_keys=1)
    sums = lax.cumsum(weights, axis=rank - 1)
    count = aval_of(x).shape[-1]
    total = lax.index_in_dim(sums, count - 1, rank - 1, keepdims=False)
    bad = lax.bitwise_or(bad, lax.eq(total, zero))
    shares = aval_of(share).shape
    shape = (*shares, *aval_of(x).shape)
    # Rounded down, so that a sum that reaches the share up to rounding counts.
    enough = literal(1 - 2 * float(dtypes.finfo(wide).eps), wide)
    thresholds = lax.mul(lax.clamp(zero, share, literal(1, wide)), enough)
    thresholds = lax.mul(
        _first_dimensions(thresholds, shape[:-1]), _last_dimensions(total, shape[:-1])
    )
    sums = _last_dimensions(sums, shape)
    below = lax.bitwise_or(lax.lt(sums, _first_dimensions(thresholds, shape)), lax.eq(sums, zero))
    places = lax.reduce_sum(convert(below, np.dtype("int32")), (len(shape) - 1,))
    quantiles = _at(ordered, places, len(shares))
    undefined = lax.bitwise_or(
        _last_dimensions(bad, shape[:-1]), _first_dimensions(lax.ne(share, share), shape[:-1])
    )
    return pick(undefined, literal(float("nan"), dtype), quantiles)


def _no_number(x: Any, skip_nan: bool) -> Any:
    """Which rows have nan as their result: those with any nan, or with only nan."""
    nan, axes = lax.ne(x, x), (aval_of(x).ndim - 1,)
    return lax.reduce_and(nan, axes) if skip_nan else lax.reduce_or(nan, axes)
