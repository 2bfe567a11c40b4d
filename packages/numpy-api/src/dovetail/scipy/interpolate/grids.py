"""Interpolation between values on a rectangular grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, array_sequence, counted, inexact_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.tracebacks import bounded
from dovetail.numpy.averages import computed_in, real_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike

_NAME = "scipy.interpolate.RegularGridInterpolator"


@bounded
class RegularGridInterpolator:
    """Interpolation between values on a grid whose lines need not be evenly spaced.

    Args:
        points: a vector for each of the first dimensions of `values`: where the lines of the grid
            are, strictly ascending, which is not checked.
        values: array of any numeric dtype, of as many elements along these dimensions; further
            dimensions are interpolated alike.
        method: "linear", or "nearest" (the lower line of two).
        bounds_error: False; outside the grid there is `fill_value`.
        fill_value: number outside the grid; None to go on as in the cells at the edge.

    Attributes:
        grid: the points.
        values: the values.
        method: the method of calls without one.
        bounds_error: False.
        fill_value: an array of one number, or None.

    Raises:
        NotImplementedError: `bounds_error` is true.
        TypeError: an argument is no array of numbers.
        ValueError: shapes do not fit, there is no such method, or `fill_value` does not fit the
            dtype of `values`.

    Differs:
        Points that do not fit the values are an error, and a single line has one cell.

        >>> from dovetail.scipy.interpolate import RegularGridInterpolator
        >>> RegularGridInterpolator((jnp.arange(3.),), jnp.ones(4))
        Traceback (most recent call last):
            ...
        dovetail.errors.ShapeError: scipy.interpolate.RegularGridInterpolator: ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.interpolate import RegularGridInterpolator
        >>> x, y = jnp.array([0., 1., 4.]), jnp.array([0., 2.])
        >>> f = RegularGridInterpolator((x, y), x[:, None] + 10 * y)
        >>> print(f(jnp.array([[2., 1.], [0.5, 2.], [5., 0.]])))
        [12.  20.5  nan]
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        if bounds_error:
            raise NotImplementedError(
                f"{_NAME} has no bounds_error: compiled programs do not raise errors. What is "
                "outside the grid has fill_value"
            )
        self.method = _method(method)
        self.bounds_error = False
        self.values: Array = jnp.asarray(array_like(values, _NAME, "values"))
        self.grid: tuple[Array, ...] = tuple(
            jnp.asarray(array_like(p, _NAME, "points"))
            for p in array_sequence(points, _NAME, "points")
        )
        shape = self.values.shape
        if dtypes.kind_of(self.values.dtype) is None:
            raise TypeError(f"{_NAME} does not accept the dtype {self.values.dtype}")
        if not 0 < len(self.grid) <= len(shape):
            raise ValueError(
                f"{_NAME}: points are {len(self.grid)} vectors, and values have {len(shape)} "
                "dimensions"
            )
        for line, size in zip(self.grid, shape, strict=False):
            if dtypes.kind_of(line.dtype) not in ("b", "i", "u", "f"):
                raise TypeError(f"{_NAME}: points must be real, got {line.dtype}")
            if line.shape != (size,) or not size:
                raise ShapeError(
                    f"{_NAME}: points must be vectors of at least one number for each element "
                    f"along a dimension, got {line.shape} for {counted(size, 'element')}"
                )
        self.fill_value: Array | None = None
        if fill_value is not None:
            filling = jnp.asarray(array_like(fill_value, _NAME, "fill_value"))
            kinds = [dtypes.kind_of(d) for d in (filling.dtype, inexact_dtype(self.values.dtype))]
            if kinds[0] == "c" and kinds[1] != "c":
                raise ValueError(
                    f"{_NAME}: fill_value must be None or a number that {self.values.dtype} holds, "
                    f"got {fill_value}"
                )
            self.fill_value = filling

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The values at places.

        Args:
            xi: array of shape ``(..., n)`` of places in `n` dimensions; or a tuple of `n` arrays
                that broadcast. A vector holds one place after the other.
            method: "linear" or "nearest"; that of the interpolator if None.

        Returns:
            A float or complex array of the leading shape of `xi` and the further dimensions of the
            values. It is nan where a place is.

        Raises:
            TypeError: `xi` is no real array, or tuple of such.
            ValueError: there are not as many coordinates as dimensions, or there is no such method.
        """
        count = len(self.grid)
        if isinstance(xi, tuple):
            if len(xi) != count:
                raise ShapeError(f"{_NAME}: xi must have {count} coordinates, got {len(xi)}")
            parts = jnp.broadcast_arrays(*(array_like(x, _NAME, "xi") for x in xi))
            places = jnp.stack(parts, -1)
        else:
            places = jnp.asarray(array_like(xi, _NAME, "xi"))
            if places.ndim < 2 and places.size % count == 0:
                shape = (-1, count) if places.ndim else (1,)
                places = places.reshape(shape)
        if dtypes.kind_of(aval_of(places).dtype) not in ("b", "i", "u", "f"):
            raise TypeError(f"{_NAME}: xi must be real, got {places.dtype}")
        if not places.ndim or places.shape[-1] != count:
            raise ShapeError(
                f"{_NAME}: xi must have {count} coordinates in its last dimension, got shape "
                f"{places.shape}"
            )
        chosen = self.method if method is None else _method(method)
        return _interpolated(places, list(self.grid), self.values, self.fill_value, chosen)


def _method(method: Any) -> str:
    if isinstance(method, str) and method in ("linear", "nearest"):
        return method
    raise ValueError(f"{_NAME}: method must be 'linear' or 'nearest', got {method!r}")


@compiled_with("method")
def _interpolated(places: Any, grid: Any, values: Any, fill_value: Any, method: Any) -> Any:
    dtype = inexact_dtype(values.dtype)
    real = real_dtype(dtypes.result_type(dtype, *(inexact_dtype(v.dtype) for v in (*grid, places))))
    result = dtypes.result_type(dtype, real)
    work, real = computed_in(result), computed_in(real)
    values = values.astype(work)
    further = values.ndim - len(grid)
    places = places.astype(real)
    nodes = []
    outside: Any = False
    for k, line in enumerate(grid):
        x, line = places[..., k], line.astype(real)
        outside = outside | (x < line[0]) | (x > line[-1])
        nodes.append(_cell(x, line, method))
    total: Any = 0
    for corner in itertools.product(*nodes):
        term = values[tuple(index for index, _ in corner)]
        for _, weight in corner:
            if weight is not None:
                term = term * _spread(weight, further)
        total = total + term
    if fill_value is not None:
        total = jnp.where(_spread(outside, further), fill_value.astype(work), total)
    unknown = jnp.isnan(places).any(-1)
    return jnp.where(_spread(unknown, further), np.nan, total).astype(result)


def _cell(x: Any, line: Any, method: str) -> list[tuple[Any, Any]]:
    """The lines around coordinates, and their weights."""
    size = line.shape[0]
    if size == 1:
        return [(jnp.zeros(x.shape, np.int32), None)]
    fixed = lax.stop_gradient(x)
    lower = jnp.clip(jnp.searchsorted(lax.stop_gradient(line), fixed) - 1, 0, size - 2)
    part = (x - line[lower]) / (line[lower + 1] - line[lower])
    if method == "nearest":
        return [(jnp.where(part <= 0.5, lower, lower + 1), None)]
    return [(lower, 1 - part), (lower + 1, part)]


def _spread(x: Any, further: int) -> Any:
    return x.reshape((*x.shape, *(1,) * further))
