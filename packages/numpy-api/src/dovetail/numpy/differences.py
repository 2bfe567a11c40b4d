"""Derivatives and differences of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axes,
    canonical_axis,
    convert,
    counted,
    inexact,
    inexact_dtype,
    literal,
    promoted_pair,
    refuse_complex,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import slice_dimension
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.cumulative import diff
from dovetail.numpy.joining import concatenate
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """The gradient of a sampled function, by central differences.

    Args:
        f: array of samples.
        *varargs: spacing of the points: one number for all dimensions, or for each dimension a
            number or a vector of the points' coordinates. 1 by default.
        axis: dimension or dimensions; all if None.
        edge_order: order of the one-sided differences at the ends: 1 (the default, also for None)
            or 2.

    Returns:
        An array of the shape of `f` for one dimension, a list of arrays for several (NumPy: a
        tuple). Integers become floats.

    Raises:
        ValueError: there are fewer than ``edge_order + 1`` points, or the coordinates do not fit.
        TypeError: the number of spacings differs from the number of dimensions.

    Differs:
        `edge_order` is supported.

        >>> print(jnp.gradient(jnp.arange(4.0) ** 2, edge_order=2))
        [0. 2. 4. 6.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.gradient(jnp.array([1., 4., 9., 16.])))
        [3. 4. 6. 7.]
        >>> print(jnp.gradient(jnp.array([0., 1., 9.]), jnp.array([0., 1., 3.])))
        [1. 2. 4.]
    """
    axes = tuple(axis) if isinstance(axis, (list, np.ndarray)) else axis
    gradients = _gradient(f, varargs, axes, 1 if edge_order is None else edge_order)
    return gradients[0] if len(gradients) == 1 else gradients


@compiled_with("axis", "order")
def _gradient(f: Any, varargs: tuple[Any, ...], axis: Any, order: int) -> list[Any]:
    f = array_like(f, "gradient", "f")
    x = value(inexact("gradient", f, "f"))
    shape = aval_of(x).shape
    axes = canonical_axes("gradient", axis, len(shape))
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {order!r}")
    for dimension in axes:
        if shape[dimension] <= order:
            raise ValueError(
                f"gradient needs at least {order + 1} points along each dimension with "
                f"edge_order={order}, got {shape[dimension]} along axis {dimension}"
            )
    given: list[Any] = [array_like(h, "gradient", f"varargs[{i}]") for i, h in enumerate(varargs)]
    if len(given) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient takes one distance, or one for each of {counted(len(axes), 'dimension')}, "
            f"got {len(given)}"
        )
    distances: list[Any] = given * len(axes) if len(given) == 1 else given or [None] * len(axes)
    for h, dimension in zip(distances, axes, strict=True):
        if h is not None and aval_of(h).shape not in ((), (shape[dimension],)):
            raise ValueError(
                "gradient: distances must be scalars, or vectors of the "
                f"{shape[dimension]} places along axis {dimension}, got shape {aval_of(h).shape}"
            )
    dtype = aval_of(x).dtype
    results = []
    for h, dimension in zip(distances, axes, strict=True):
        if h is None:
            results.append(_derivative(x, literal(1, dtype, weak_of(x)), dimension, order))
            continue
        if aval_of(h).ndim:
            # Take differences of coordinates in their own dtype first, so that integers lose
            # nothing.
            h = plain(diff)(h)
        common, weak = dtypes.result_type(f, h, return_weak_type_flag=True)
        target = inexact_dtype(common)
        samples, h = value(convert(f, target, weak)), value(convert(h, target, weak))
        results.append(_derivative(samples, h, dimension, order))
    return results


def _derivative(x: Any, h: Any, dimension: int, order: int) -> Any:
    """The derivative along one dimension; `h` holds one distance, or one for each step."""
    size = aval_of(x).shape[dimension]
    rank = aval_of(x).ndim
    is_even = not aval_of(h).ndim

    def steps(first: int, last: int) -> Any:
        if is_even:
            return h
        part = slice_dimension(h, first, last, 0)
        return reshaped(part, tuple(last - first if d == dimension else 1 for d in range(rank)))

    def points(first: int, last: int) -> Any:
        return slice_dimension(x, first, last, dimension)

    slopes = lax.div(lax.sub(points(1, size), points(0, size - 1)), steps(0, size - 1))

    def slope(first: int, last: int) -> Any:
        return slice_dimension(slopes, first, last, dimension)

    if is_even:
        across = lax.sub(points(2, size), points(0, size - 2)) if size > 2 else points(0, 0)
        inner = lax.div(across, lax.mul(h, literal(2, aval_of(x).dtype, weak_of(h))))
    else:
        # The slope of the parabola through three points: the nearer neighbour has more weight.
        left, right = steps(0, size - 2), steps(1, size - 1)
        width = lax.add(left, right)
        before, after = slope(0, size - 2), slope(1, size - 1)
        inner = lax.add(
            lax.mul(before, lax.div(right, width)), lax.mul(after, lax.div(left, width))
        )
    first, last = slope(0, 1), slope(size - 2, size - 1)
    if order == 2:
        # The slope of the parabola at its ends.
        first = lax.add(first, _bend(first, slope(1, 2), steps(0, 1), steps(1, 2)))
        last = lax.add(
            last,
            _bend(
                last,
                slope(size - 3, size - 2),
                steps(size - 2, size - 1),
                steps(size - 3, size - 2),
            ),
        )
    return concatenate([first, inner, last], dimension)


def _bend(outer: Any, inner: Any, outer_step: Any, inner_step: Any) -> Any:
    """The difference between the slope at an end and that between the last two points."""
    ratio = lax.div(outer_step, lax.add(outer_step, inner_step))
    return lax.mul(lax.sub(outer, inner), ratio)


@compiled
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Differences of neighbouring elements in row-major order.

    Args:
        ary: array of numbers; it is flattened.
        to_end: numbers to append to the differences, converted to the dtype of `ary`.
        to_begin: numbers to put before them, likewise.

    Returns:
        A vector of the dtype of `ary`.

    Raises:
        TypeError: `ary` is boolean.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0, to_end=jnp.array([7, 8])))
        [0 3 5 7 8]
    """
    x = operand(ary, "ediff1d", "ary")
    dtype = aval_of(x).dtype
    if dtypes.kind_of(dtype) == "b":
        raise TypeError(
            "ediff1d: booleans have no differences; write x.astype(int), or jnp.diff, which tells "
            "where they change"
        )
    parts = [plain(diff)(reshaped(x, (math.prod(aval_of(x).shape),)))]
    if to_begin is not None:
        parts.insert(0, _flat(to_begin, "to_begin", dtype))
    if to_end is not None:
        parts.append(_flat(to_end, "to_end", dtype))
    return concatenate(parts) if len(parts) > 1 else parts[0]


def _flat(x: Any, argument: str, dtype: Any) -> Any:
    x = operand(x, "ediff1d", argument)
    return convert(reshaped(x, (math.prod(aval_of(x).shape),)), dtype)


@compiled_with("axis")
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Remove jumps from angles by adding multiples of the period.

    Args:
        p: array of real numbers.
        discont: the smallest jump to remove; half the period if None or smaller.
        axis: dimension.
        period: the period; jumps are changed by multiples of it.

    Returns:
        An array of the shape of `p`, of the common dtype of `p` and the period.

    Raises:
        TypeError: `p` is complex.
        AxisError: `p` has no such dimension.

    Differs:
        Turns are counted, so that errors do not add up, and integers get multiples of the
        period.

        >>> print(jnp.unwrap(jnp.array([0, 3, 6, 9, 2]), period=10))
        [ 0  3  6  9 12]

        Unsigned integers have no negative differences, and are refused.

        >>> jnp.unwrap(jnp.array([9, 1], "uint32"), period=10)
        Traceback (most recent call last):
            ...
        TypeError: unwrap does not accept dtype uint32, which has no negative ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.unwrap(jnp.array([0., 3., -3., 0.]), period=6.))
        [0. 3. 3. 6.]
        >>> print(jnp.unwrap(jnp.array([0, 1, 2, -1, 0]), period=4))
        [0 1 2 3 4]
    """
    from dovetail.numpy.arithmetic import remainder  # deferred: needed here only

    x = operand(p, "unwrap", "p")
    refuse_complex("unwrap", x)
    dimension = canonical_axis("unwrap", axis, aval_of(x).ndim)
    if type(period) is float and dtypes.kind_of(aval_of(x).dtype) in ("b", "i", "u"):
        x = convert(x, dtypes.default_dtype("f"), True)
    x, cycle = same_dtype([x, value(array_like(period, "unwrap", "period"))])
    dtype = aval_of(x).dtype
    kind = dtypes.kind_of(dtype)
    if kind not in ("i", "f"):
        raise TypeError(
            f"unwrap does not accept dtype {dtype}, which has no negative differences; write "
            "p.astype(int)"
        )
    size = aval_of(x).shape[dimension]
    if not size:
        return x
    jumps = slice_dimension(x, 1, size, dimension)
    jumps = lax.sub(jumps, slice_dimension(x, 0, size - 1, dimension))
    halved = lax.mul(cycle, literal(0.5, dtype)) if kind == "f" else lax.div(cycle, _two(cycle))
    shape = aval_of(jumps).shape
    high, whole = spread(halved, shape), spread(cycle, shape)
    closed = lax.sub(plain(remainder)(lax.add(jumps, high), whole), high)
    # A jump by half of the period keeps its direction.
    is_high = lax.bitwise_and(lax.eq(closed, lax.neg(high)), lax.gt(jumps, literal(0, dtype)))
    if kind == "i":
        is_odd = lax.ne(lax.rem(whole, _two(whole)), literal(0, dtype))
        is_high = lax.bitwise_and(is_high, lax.bitwise_not(is_odd))
    closed = pick(is_high, high, closed)
    # Count turns, so that nothing is rounded before they are multiplied by the period.
    turns = lax.div(lax.sub(closed, jumps), whole)
    if kind == "f":
        turns = lax.round(turns, lax.RoundingMethod.TO_NEAREST_EVEN)
    if discont is None:
        is_small = lax.lt(lax.mul(lax.abs(jumps), _two(jumps)), whole)
    else:
        limit = value(array_like(discont, "unwrap", "discont"))
        sizes, limit = promoted_pair("unwrap", lax.abs(jumps), limit)
        is_small = lax.lt(sizes, limit)
    turns = pick(is_small, literal(0, dtype), turns)
    added = lax.mul(lax.cumsum(turns, dimension), whole)
    first = slice_dimension(x, 0, 1, dimension)
    rest = lax.add(slice_dimension(x, 1, size, dimension), added)
    return concatenate([first, rest], dimension)


def _two(x: Any) -> Any:
    return literal(2, aval_of(x).dtype)
