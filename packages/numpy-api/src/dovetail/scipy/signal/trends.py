"""Signals without their trends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, canonical_axis, inexact_dtype, integer
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in, real_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray[Any, Any] = 0,
    overwrite_data: None = None,
) -> Array:
    """A signal minus its mean, or minus the line that fits it best, along one dimension.

    Args:
        data: array of any numeric dtype.
        axis: dimension.
        type: "linear" subtracts lines of least squares, "constant" the mean.
        bp: places between which the lines are fitted, for "linear".
        overwrite_data: None.

    Returns:
        A float or complex array of the shape of `data`.

    Raises:
        NotImplementedError: `overwrite_data` is given.
        ValueError: `axis` or a place is out of bounds, or `type` is none of these.

    Differs:
        The lines have closed forms, whose errors are some units in the last place of the data. Of
        16-bit floats they are computed in float32.

        >>> from dovetail.scipy.signal import detrend
        >>> print(detrend(jnp.arange(3, dtype="float16")))
        [0. 0. 0.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import detrend
        >>> print(detrend(jnp.array([1., 2., 6.]), type="constant"))
        [-2. -1.  3.]
    """
    name = "scipy.signal.detrend"
    if overwrite_data is not None:
        raise NotImplementedError(f"{name} has no overwrite_data: arrays cannot be overwritten")
    if not isinstance(type, str) or type not in ("linear", "constant"):
        raise ValueError(f"{name}: type must be 'linear' or 'constant', got {type!r}")
    aval = aval_of(array_like(data, name, "data"))
    if dtypes.kind_of(aval.dtype) is None:
        raise TypeError(f"{name} does not accept the dtype {aval.dtype}")
    dimension = canonical_axis(name, axis, aval.ndim)
    size = aval.shape[dimension]
    if type == "constant":
        return _detrend(data, dimension, None)
    given = np.ravel(bp).tolist() if isinstance(bp, np.ndarray) else bp
    several = given if isinstance(given, (tuple, list)) else (given,)
    places = {integer(name, "bp", place) for place in several}
    if size and not all(0 <= place < size for place in places):
        raise ValueError(f"{name}: bp must be places from 0 to {size - 1}, got {bp}")
    return _detrend(data, dimension, tuple(sorted({0, size, *places})) if size else (0,))


@compiled_with("axis", "places")
def _detrend(data: Any, axis: Any, places: Any) -> Any:
    x = jnp.asarray(data)
    dtype = inexact_dtype(x.dtype)
    x = x.astype(computed_in(dtype))
    return without_trend(x, axis, places).astype(dtype)


def without_trend(x: Any, axis: int, places: tuple[int, ...] | None) -> Any:
    """An array of floats or complex numbers minus lines between places; minus its mean if None."""
    size = x.shape[axis]
    if not size:
        return x
    if places is None:
        return x - x.mean(axis, keepdims=True)
    pieces = []
    for start, stop in itertools.pairwise(places):
        part = lax.slice_in_dim(x, start, stop, axis=axis)
        part = part - part.mean(axis, keepdims=True)
        count = stop - start
        if count > 1:
            # Twice the numbers of points from the middle: integers, whose mean is 0.
            sizes = [1] * x.ndim
            sizes[axis] = count
            t = 2.0 * np.arange(count) - (count - 1)
            line = jnp.asarray(t.reshape(sizes), real_dtype(x.dtype))
            slope = (part * line).sum(axis, keepdims=True) / float(t @ t)
            part = part - line * slope
        pieces.append(part)
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis)
