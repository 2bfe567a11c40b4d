"""Arrays at places between their elements."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    array_sequence,
    broadcast_result,
    inexact_dtype,
    integer,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in, real_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike

#: The modes, and those of SciPy that they are.
_MODES = {
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "nearest",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "mirror": "mirror",
    "reflect": "reflect",
    "grid-mirror": "reflect",
}


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike] | Array,
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """An array at places between its elements, by the nearest element or by linear interpolation.

    Args:
        input: array of any numeric dtype.
        coordinates: real arrays that broadcast, one for each dimension of `input`.
        order: 0 for the nearest element (of two the one farther from 0), 1 for linear
            interpolation.
        mode: what is beyond the edges: "constant" for `cval`, "nearest" for the element at the
            edge, "wrap" for the other side, "mirror" for the mirror image without, "reflect" for
            that with the element at the edge. These are "grid-constant", "grid-wrap" and
            "grid-mirror" of SciPy, whose names are taken as well.
        cval: number.

    Returns:
        An array of the shape of the coordinates and the dtype of `input`; integers are rounded.

    Raises:
        NotImplementedError: `order` is greater than 1, or there is no such mode.
        TypeError: coordinates are no real numbers.
        ValueError: there are not as many coordinates as dimensions, they do not broadcast, `order`
            is negative, or `input` has no elements.

    Differs:
        Infinite places are at the edge for the mode "nearest". There is nothing between the
        elements of an array that has none, which is an error.

        >>> from dovetail.scipy.ndimage import map_coordinates
        >>> print(map_coordinates(jnp.array([1., 2.]), [jnp.array([jnp.inf])], 1, "nearest"))
        [2.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.ndimage import map_coordinates
        >>> x = jnp.array([[1., 2.], [3., 4.]])
        >>> print(map_coordinates(x, [jnp.array([0.5, 1.]), jnp.array([0.5, 0.])], 1))
        [2.5 3. ]
    """
    name = "scipy.ndimage.map_coordinates"
    aval = aval_of(array_like(input, name, "input"))
    if dtypes.kind_of(aval.dtype) is None:
        raise TypeError(f"{name} does not accept the dtype {aval.dtype}")
    given = array_sequence(coordinates, name, "coordinates")
    places = tuple(array_like(c, name, "coordinates") for c in given)
    if len(places) != aval.ndim:
        raise ValueError(
            f"{name}: coordinates must have an array for each dimension of input, which has "
            f"{aval.ndim}, got {len(places)}"
        )
    for place in places:
        if dtypes.kind_of(aval_of(place).dtype) not in ("b", "i", "u", "f"):
            raise TypeError(f"{name}: coordinates must be real, got {aval_of(place).dtype}")
    shape = broadcast_result(name, [aval_of(c).shape for c in places], explicit=True)
    degree = integer(name, "order", order)
    if degree < 0:
        raise ValueError(f"{name}: order must not be negative, got {degree}")
    if degree > 1:
        raise NotImplementedError(f"{name} has the orders 0 and 1, got {degree}")
    if not isinstance(mode, str) or mode not in _MODES:
        raise NotImplementedError(f"{name}: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if 0 in aval.shape and 0 not in shape:
        raise ShapeError(f"{name} needs elements, got an input of shape {aval.shape}")
    if aval_of(array_like(cval, name, "cval")).shape:
        raise ShapeError(f"{name}: cval must be a number")
    return _sampled(input, list(places), cval, degree, _MODES[mode], shape)


@compiled_with("order", "mode", "shape")
def _sampled(input: Any, places: Any, cval: Any, order: Any, mode: Any, shape: Any) -> Any:
    x = jnp.asarray(input)
    if 0 in x.shape:
        return jnp.zeros(shape, x.dtype)
    exact = dtypes.kind_of(x.dtype) in ("b", "i", "u")
    work = computed_in(inexact_dtype(x.dtype))
    filling = jnp.asarray(cval).astype(x.dtype).astype(work)
    nodes = [_nodes(jnp.asarray(c), n, order, mode) for c, n in zip(places, x.shape, strict=True)]
    total: Any = jnp.zeros(shape, work)
    for corner in itertools.product(*nodes):
        at = tuple(jnp.broadcast_to(index, shape) for index, _, _ in corner)
        value = x.at[at].get(mode="promise_in_bounds", wrap_negative_indices=False).astype(work)
        if mode == "constant":
            inside = functools.reduce(operator.and_, [inside for _, inside, _ in corner])
            value = jnp.where(inside, value, filling)
        weights = [weight for _, _, weight in corner if weight is not None]
        if weights:
            value = value * functools.reduce(operator.mul, weights).astype(real_dtype(work))
        total = total + value
    if not exact:
        return total.astype(x.dtype)
    rounded = lax.round(total, lax.RoundingMethod.AWAY_FROM_ZERO)
    return rounded != 0 if x.dtype == np.bool_ else rounded.astype(x.dtype)


def _nodes(place: Any, size: int, order: int, mode: str) -> list[tuple[Any, Any, Any]]:
    """The elements of a dimension around a place: numbers, whether they are inside, weights."""
    if dtypes.kind_of(place.dtype) != "f":
        place = place.astype(np.int32) if place.dtype.itemsize < 4 else place
        return [(*_within(place, size, mode), None)]
    place = place.astype(computed_in(place.dtype))
    if mode == "nearest":
        place = jnp.clip(place, 0, size - 1)
    if order == 0:
        nearest = lax.round(place, lax.RoundingMethod.AWAY_FROM_ZERO)
        return [(*_within(nearest, size, mode), None)]
    lower = lax.stop_gradient(jnp.floor(place))
    part = place - lower
    above = (*_within(lower + 1, size, mode), part)
    return [(*_within(lower, size, mode), 1 - part), above]


def _within(number: Any, size: int, mode: str) -> tuple[Any, Any]:
    """The element that stands at a number, and whether that is inside."""
    if mode == "wrap":
        number = jnp.mod(number, size)
    elif mode == "mirror":
        period = max(2 * (size - 1), 1)
        number = jnp.mod(number, period)
        number = jnp.minimum(number, period - number) if size > 1 else number
    elif mode == "reflect":
        number = jnp.mod(number, 2 * size)
        number = jnp.minimum(number, 2 * size - 1 - number)
    inside = (number >= 0) & (number <= size - 1)
    # What is outside, or no number, has no element: any will do.
    index = number.astype(np.int64 if number.dtype.itemsize == 8 else np.int32)
    return jnp.clip(index, 0, size - 1), inside
