"""Histograms: the number of elements, or the total weight, in each bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    counted,
    inexact_dtype,
    integer,
    literal,
    placed,
    refuse_complex,
    same_dtype,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import position_dtype
from dovetail.numpy.averages import computed_in
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick
from dovetail.numpy.reductions import strong
from dovetail.numpy.searching import searchsorted
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike, Sharding


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute the edges of the bins that `histogram` uses.

    Args:
        a: array or scalar of a real dtype.
        bins: number of bins of equal width; or a vector of edges, which is returned.
        range: first and last edge; the smallest and the largest element if None.
        weights: ignored; in NumPy it affects the number of bins.

    Returns:
        A float vector with one element more than there are bins.

    Raises:
        TypeError: `a` is complex, or `bins` is a list or the name of a rule, which NumPy accepts.
        ValueError: the number of bins is not positive, or the range is invalid.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.histogram_bin_edges(jnp.array([1., 2., 7.]), bins=3))
        [1. 3. 5. 7.]
    """
    x = operand(a, "histogram_bin_edges")
    count, edges = _bins("histogram_bin_edges", bins)
    limits = _range("histogram_bin_edges", range)
    return _edges("histogram_bin_edges", x, count, edges, limits)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: Sharding | None = None,
) -> tuple[Array, Array]:
    """Count the elements in each of several bins.

    A bin contains its left edge; the last one contains its right edge, too. Differs from NumPy's in
    that counts are floats, and that without a range a nan in the array makes all edges nan and all
    bins empty.

    Args:
        a: array or scalar of a real dtype.
        bins: number of bins of equal width; or a vector of increasing edges.
        range: first and last edge; the smallest and the largest element if None. Elements outside
            are not counted.
        weights: array of the shape of `a`: the weight of each element; 1 if None.
        density: whether to divide by the sum and by the widths of the bins, so that the integral
            over all bins is 1.
        out_sharding: how the counts are divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`. The edges are not divided.

    Returns:
        A vector of floats, or of complex numbers if the weights are complex, and the float vector
        of edges, which has one element more.

    Raises:
        TypeError: `a` is complex, or `bins` is a list or the name of a rule, which NumPy accepts.
        ValueError: the number of bins is not positive, the range is invalid, or the weights have a
            different shape.

    Differs:
        Elements are counted in integers, and counts are float32 also for floats of 16 bits.
        Each edge is rounded once. The dtype of edges is the common one of elements and bins,
        whatever the dtype of weights.

        >>> x = jnp.zeros(3000, "bfloat16")
        >>> counts, edges = jnp.histogram(x, bins=2, weights=jnp.ones(3000))
        >>> print(counts, counts.dtype, edges.dtype)
        [   0. 3000.] float32 bfloat16

        Complex numbers lie in no bin, and are refused as elements and as edges; so by `digitize`.
        JAX counts them in complex numbers, and NumPy drops their imaginary parts with a warning.

        >>> try:
        ...     jnp.histogram(jnp.array([1j, 2.0]))
        ... except TypeError as error:
        ...     print(error)
        histogram is defined for real numbers only, got dtype complex64; ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> counts, edges = jnp.histogram(jnp.array([1., 2., 2., 7.]), bins=3)
        >>> print(counts, edges)
        [3. 0. 1.] [1. 3. 5. 7.]
    """
    x = operand(a, "histogram")
    count, edges = _bins("histogram", bins)
    counted = _weights("histogram", weights, aval_of(x).shape, "a")
    counts, (edges,) = _histogram(
        "histogram",
        (x,),
        (edges,),
        (_range("histogram", range),),
        counted,
        (count,),
        bool(density),
        True,
    )
    return placed("histogram", counts, out_sharding), edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: ArrayLike | Sequence[Sequence[ArrayLike] | ArrayLike | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count the points of a plane in each of several rectangles.

    Args:
        x: vector of a real dtype: the first coordinates of the points.
        y: vector of the same size: the second coordinates.
        bins: number of bins of equal width in both directions; a vector of three or more edges for
            both; or a pair of these, one for each direction.
        range: pair of first and last edge for each direction, None for the smallest and largest
            coordinate.
        weights: vector of the weights of the points; 1 if None.
        density: whether to divide by the sum and by the areas of the rectangles.

    Returns:
        A matrix, of integers unless there are weights or a density (NumPy: floats), and the float
        vectors of edges in both directions.

    Raises:
        TypeError: the coordinates are complex.
        ValueError: the arguments do not fit together.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x, y = jnp.array([0., 1., 2., 2.]), jnp.array([0., 0., 1., 1.])
        >>> counts, first, second = jnp.histogram2d(x, y, bins=2)
        >>> print(counts, first, second)
        [[1 0]
         [1 2]] [0. 1. 2.] [0.  0.5 1. ]
    """
    columns = tuple(same_dtype([operand(x, "histogram2d", "x"), operand(y, "histogram2d", "y")]))
    shapes = [aval_of(c).shape for c in columns]
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        raise ShapeError(
            "histogram2d needs vectors of equal size as x and y, got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    given: Any = bins
    if getattr(bins, "ndim", 0) == 1 and len(given) > 2:
        given = [bins, bins]
    counts, (first, second) = _of_points(
        "histogram2d", columns, given, range, weights, density, shapes[0][0], 2
    )
    return counts, first, second


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: ArrayLike | Sequence[Sequence[ArrayLike] | ArrayLike | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count the points in each of several boxes.

    Args:
        sample: matrix of a real dtype, with a row for each point and a column for each dimension of
            space.
        bins: number of bins of equal width in all dimensions; or a sequence with a number or a
            vector of edges for each dimension.
        range: pair of first and last edge for each dimension, None for the smallest and largest
            coordinate.
        weights: vector of the weights of the points; 1 if None.
        density: whether to divide by the sum and by the volumes of the boxes.

    Returns:
        An array with a dimension for each dimension of space, of integers unless there are weights
        or a density (NumPy: floats), and a list of the float vectors of edges.

    Raises:
        TypeError: the coordinates are complex, or `sample` is a list.
        ValueError: the arguments do not fit together.

    Example:
        >>> import dovetail.numpy as jnp
        >>> points = jnp.array([[0., 0., 0.], [1., 1., 1.], [1., 0., 1.]])
        >>> counts, edges = jnp.histogramdd(points, bins=(2, 1, 2))
        >>> print(counts.shape, counts[:, 0, :], edges[1])
        (2, 1, 2) [[1 0]
         [0 2]] [0. 1.]
    """
    points = operand(sample, "histogramdd", "sample")
    shape = aval_of(points).shape
    if len(shape) != 2:
        raise ValueError(
            f"histogramdd needs a matrix with a row for each point, got shape {shape}; write "
            "sample[:, None] for points on a line"
        )
    counts, edges = _of_points(
        "histogramdd", points, bins, range, weights, density, shape[0], shape[1]
    )
    return counts, list(edges)


# ----------------------------------------------------------------------------- checking arguments


def _bins(function: str, bins: Any) -> tuple[int | None, Any]:
    """The number of bins, or their edges."""
    if isinstance(bins, str):
        raise TypeError(
            f"{function}: bins must be a number or a vector of edges, got {bins!r}; the number of "
            "bins is part of the program, so that no rule can find it from values: write "
            "bins=numpy.histogram_bin_edges(...) for concrete arrays"
        )
    if type(bins) is not int:
        edges = array_like(bins, function, "bins")
        rank = aval_of(edges).ndim
        if rank == 1:
            return None, value(edges)
        if rank:
            raise ValueError(
                f"{function}: bins must be a number or a vector of edges, got shape "
                f"{aval_of(edges).shape}"
            )
    count = integer(function, "bins", bins)
    if count < 1:
        raise ValueError(f"{function}: the number of bins must be positive, got {count}")
    return count, None


def _range(function: str, limits: Any) -> Any:
    """None, a pair of numbers, or an array of two."""
    if limits is None:
        return None
    if not isinstance(limits, (tuple, list)):
        limits = operand(limits, function, "range")
        if aval_of(limits).shape != (2,):
            raise ValueError(
                f"{function}: range must be a pair of numbers, got shape {aval_of(limits).shape}"
            )
        return limits
    if len(limits) != 2:
        raise ValueError(f"{function}: range must be a pair of numbers, got {len(limits)} of them")
    low, high = limits
    are_numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
    if are_numbers and not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(
            f"{function}: range must be finite, with the smaller number first, got ({low}, {high})"
        )
    return tuple([array_like(v, function, f"range[{i}]") for i, v in enumerate(limits)])


def _weights(function: str, weights: Any, shape: tuple[int, ...], argument: str) -> Any:
    if weights is None:
        return None
    counted = operand(weights, function, "weights")
    if aval_of(counted).shape != shape:
        raise ValueError(
            f"{function}: weights must have one entry for each element of {argument}, shape "
            f"{shape}; got shape {aval_of(counted).shape}"
        )
    return counted


def _of_points(
    function: str,
    points: Any,
    bins: Any,
    range: Any,
    weights: Any,
    density: Any,
    count: int,
    rank: int,
) -> tuple[Any, list[Any]]:
    """A histogram in several dimensions, of columns or of a matrix."""
    several = isinstance(bins, (tuple, list)) or getattr(bins, "ndim", 0) == 1
    each: Sequence[Any] = list(bins) if several else [bins] * rank
    if len(each) != rank:
        raise ValueError(
            f"{function}: bins must be a number, or have one entry for each of the {rank} "
            f"dimensions, got {len(each)}"
        )
    limits = [None] * rank if range is None else list(range) if np.iterable(range) else [range]
    if len(limits) != rank:
        raise ValueError(
            f"{function}: range must have a pair of numbers or None for each of the {rank} "
            f"dimensions, got {counted(len(limits), 'entry', 'entries')}"
        )
    checked = [_bins(function, b) for b in each]
    return _histogram(
        function,
        points,
        tuple([edges for _, edges in checked]),
        tuple([_range(function, r) for r in limits]),
        _weights(function, weights, (count,), "the sample"),
        tuple([number for number, _ in checked]),
        bool(density),
        False,
    )


# ------------------------------------------------------------------------------------- computing


@compiled_with("function", "count")
def _edges(function: str, x: Any, count: int | None, edges: Any, limits: Any) -> Any:
    return _made_edges(function, x, count, edges, limits)


def _made_edges(function: str, x: Any, count: int | None, edges: Any, limits: Any) -> Any:
    refuse_complex(function, x)
    dtype = inexact_dtype(aval_of(x).dtype)
    if edges is not None:
        refuse_complex(function, edges)
        dtype = dtypes.common_dtype(dtype, inexact_dtype(aval_of(edges).dtype))
        return value(strong(convert(edges, dtype)))
    assert count is not None
    wide = computed_in(dtype)
    low, high = _limits(x, limits, wide)
    same = lax.eq(low, high)
    half = literal(0.5, wide)
    low, high = pick(same, lax.sub(low, half), low), pick(same, lax.add(high, half), high)
    number = literal(count, wide)
    # Each edge is rounded by itself. The divisor is not a constant, because XLA would turn the
    # division into a multiplication.
    number = lax.add(number, lax.mul(low, literal(0, wide)))
    places = lax.iota(wide, count + 1)
    result = lax.div(lax.mul(places, lax.sub(high, low)), number)
    result = lax.add(result, low)
    result = pick(lax.eq(places, literal(count, wide)), high, result)
    return convert(result, dtype)


def _limits(x: Any, limits: Any, dtype: Any) -> list[Any]:
    if isinstance(limits, tuple):
        return [reshaped(value(convert(v, dtype)), ()) for v in limits]
    if limits is not None:
        ends = convert(limits, dtype)
        return [lax.index_in_dim(ends, i, keepdims=False) for i in (0, 1)]
    shape = aval_of(x).shape
    if not math.prod(shape):
        return [value(literal(end, dtype)) for end in (0, 1)]
    flat = reshaped(x, (math.prod(shape),))
    return [convert(reduce(flat, (0,)), dtype) for reduce in (lax.reduce_min, lax.reduce_max)]


@compiled_with("function", "counts", "density", "floating")
def _histogram(
    function: str,
    columns: Any,
    edges: tuple[Any, ...],
    limits: tuple[Any, ...],
    weights: Any,
    counts: tuple[int | None, ...],
    density: bool,
    floating: bool,
) -> tuple[Any, list[Any]]:
    """The sums of weights in boxes, and the edges of the boxes.

    Args:
        function: name of the user's function.
        columns: coordinates of points in each dimension, a tuple of arrays; or a matrix.
        edges: for each dimension the edges, or None.
        limits: for each dimension the first and the last edge, or None.
        weights: an array of the weights of the points, or None.
        counts: for each dimension the number of bins, or None if there are edges.
        density: whether to divide by the sum and by volumes.
        floating: whether counts are floats.
    """
    if not isinstance(columns, tuple):
        columns = [
            lax.index_in_dim(columns, d, axis=1, keepdims=False) for d, _ in enumerate(counts)
        ]
    all_edges = [
        _made_edges(function, x, count, e, r)
        for x, count, e, r in zip(columns, counts, edges, limits, strict=True)
    ]
    sizes = tuple([aval_of(e).size - 1 for e in all_edges])
    if any(n < 0 for n in sizes):
        raise ValueError(f"{function}: bins must have at least one edge, got none")
    sums = _sums(columns, all_edges, weights, sizes)
    kinds = [inexact_dtype(aval_of(x).dtype) for x in columns]
    if density or floating:
        # Counts in 16-bit floats would stop at 2,048.
        out = computed_in(dtypes.common_dtype(*kinds))
        if weights is not None:
            out = dtypes.common_dtype(out, inexact_dtype(aval_of(weights).dtype))
        sums = convert(sums, out)
        if density:
            sums = _density(sums, all_edges)
    return sums, all_edges


def _sums(
    columns: Sequence[Any], edges: Sequence[Any], weights: Any, sizes: tuple[int, ...]
) -> Any:
    default = dtypes.default_dtype("i")
    total = math.prod(sizes)
    if not total:
        return lax.full(sizes, 0, default)
    places = position_dtype(total + 1)
    flat: Any = None
    inside: Any = None
    for x, bounds, size in zip(columns, edges, sizes, strict=True):
        x = reshaped(x, (aval_of(x).size,))
        edge = aval_of(bounds).dtype
        if dtypes.kind_of(edge) == "f" and dtypes.kind_of(aval_of(x).dtype) != "f":
            # Explicit, for numpy_dtype_promotion="strict": edges for integers are floats.
            x = convert(x, edge)
        place = convert(searchsorted(bounds, x, side="right"), places)
        x = convert(x, edge)
        last = lax.eq(x, lax.index_in_dim(bounds, size, keepdims=False))
        place = pick(last, literal(size, places), place)
        here = lax.bitwise_and(
            lax.ge(place, literal(1, places)), lax.le(place, literal(size, places))
        )
        place = lax.sub(place, literal(1, places))
        flat = place if flat is None else lax.add(lax.mul(flat, literal(size, places)), place)
        inside = here if inside is None else lax.bitwise_and(inside, here)
    flat = pick(inside, flat, literal(total, places))
    if weights is None:
        amounts: Any = 1
        dtype = default
    else:
        dtype = _summed_in(aval_of(weights).dtype)
        amounts = convert(reshaped(weights, (aval_of(weights).size,)), dtype)
    sums = value(lax.full((total,), 0, dtype)).at[flat].add(amounts, mode="drop")
    if weights is not None and dtypes.kind_of(dtype) == "f":
        sums = convert(sums, aval_of(weights).dtype)
    return reshaped(sums, sizes)


def _summed_in(dtype: Any) -> Any:
    """The dtype in which weights are added: small integers and floats would overflow."""
    kind = dtypes.kind_of(dtype)
    if kind not in ("b", "i", "u"):
        return computed_in(dtype)
    default = dtypes.default_dtype("u" if kind == "u" else "i")
    return default if dtype.itemsize < default.itemsize else dtype


def _density(sums: Any, edges: Sequence[Any]) -> Any:
    dtype, shape = aval_of(sums).dtype, aval_of(sums).shape
    total = lax.reduce_sum(reshaped(sums, (math.prod(shape),)), (0,))
    result = lax.div(sums, lax.broadcast_in_dim(total, shape, ()))
    for d, bounds in enumerate(edges):
        bounds = convert(bounds, dtype)
        size = aval_of(bounds).size
        widths = lax.sub(lax.slice_in_dim(bounds, 1, size), lax.slice_in_dim(bounds, 0, size - 1))
        result = lax.div(result, lax.broadcast_in_dim(widths, shape, (d,)))
    return result
