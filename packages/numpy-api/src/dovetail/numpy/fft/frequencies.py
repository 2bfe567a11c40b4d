"""The frequencies of Fourier transforms, and shifts of the zero frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    literal,
    refuse_complex,
    requested_dtype,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import iota_like, position_dtype
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.creation import on_device
from dovetail.numpy.fft.fourier import length
from dovetail.numpy.rolling import roll
from dovetail.typing import Array, ArrayLike, DeviceLike, DTypeLike


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Array:
    """The frequencies of the coefficients of `fft`, in their order.

    Args:
        n: number of points of the signal.
        d: distance between points, a scalar; frequencies are in cycles per its unit.
        dtype: floating-point dtype of the result; the default one if None.
        device: device on which the array is placed and stays.

    Returns:
        An array of shape ``(n,)``: the frequencies from zero up, then the negative ones, in
        ascending order.

    Raises:
        TypeError: `n` is not an integer, `d` is not a real number, or `dtype` is not a float dtype.
        ValueError: `n` is not positive, or `d` is not a scalar.

    Differs:
        Frequencies of no points, of points at a complex distance, or of a dtype that is not
        floating point, are refused, here and by `rfftfreq`.

        >>> jnp.fft.fftfreq(0)
        Traceback (most recent call last):
            ...
        ValueError: fft.fftfreq: n must be positive, got 0

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.fftfreq(4))
        [ 0.    0.25 -0.5  -0.25]
    """
    return _frequencies("fft.fftfreq", n, d, dtype, device, False)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Array:
    """The frequencies of the coefficients of `rfft`, in their order.

    Args:
        n: number of points of the signal.
        d: distance between points, a scalar; frequencies are in cycles per its unit.
        dtype: floating-point dtype of the result; the default one if None.
        device: device on which the array is placed and stays.

    Returns:
        An array of shape ``(n // 2 + 1,)``: the frequencies from zero up.

    Raises:
        TypeError: `n` is not an integer, `d` is not a real number, or `dtype` is not a float dtype.
        ValueError: `n` is not positive, or `d` is not a scalar.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.rfftfreq(4))
        [0.   0.25 0.5 ]
    """
    return _frequencies("fft.rfftfreq", n, d, dtype, device, True)


def _frequencies(function: str, n: Any, d: Any, dtype: Any, device: Any, half: bool) -> Any:
    count = length(function, "n", n)
    spacing = array_like(d, function, "d")
    refuse_complex(function, spacing)
    if aval_of(spacing).shape:
        raise ValueError(f"{function}: d must be a scalar, got the shape {aval_of(spacing).shape}")
    target = requested_dtype(function, dtype) or dtypes.default_dtype("f")
    if dtypes.kind_of(target) != "f":
        raise TypeError(f"{function}: dtype must be one of floating point, got {target}")
    return on_device(_frequency_array(count, d, target, half), device)


@compiled_with("n", "dtype", "half")
def _frequency_array(n: int, d: Any, dtype: Any, half: bool) -> Any:
    wide = dtypes.common_dtype(dtype, dtypes.default_dtype("f"))
    numbers = iota_like(position_dtype(n), (n // 2 + 1 if half else n,), 0)
    if not half:
        middle = literal((n - 1) // 2, numbers.dtype)
        numbers = lax.sub(
            numbers,
            lax.mul(convert(lax.gt(numbers, middle), numbers.dtype), literal(n, numbers.dtype)),
        )
    spacing = convert(array_like(d, "fft.fftfreq", "d"), wide)
    span = lax.mul(spacing, literal(float(n), wide))
    return convert(lax.div(convert(numbers, wide), span), dtype)


@compiled_with("axes")
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Reorder the coefficients of a transform by frequency, with zero in the middle.

    Args:
        x: array.
        axes: dimension or dimensions; all if None.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        ValueError: a dimension is out of bounds.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.fftshift(jnp.array([0, 1, 2, -2, -1])))
        [-2 -1  0  1  2]
    """
    return _shifted("fft.fftshift", x, axes, False)


@compiled_with("axes")
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`: restore the order in which transforms return coefficients.

    Args:
        x: array.
        axes: dimension or dimensions; all if None.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        ValueError: a dimension is out of bounds.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2])))
        [ 0  1  2 -2 -1]
    """
    return _shifted("fft.ifftshift", x, axes, True)


def _shifted(function: str, a: Any, axes: Any, back: bool) -> Any:
    x = value(array_like(a, function, "x"))
    shape = aval_of(x).shape
    requested = range(len(shape)) if axes is None else axes
    requested = requested if isinstance(requested, (tuple, list, range)) else (requested,)
    dimensions = tuple(canonical_axis(function, d, len(shape), "axes") for d in requested)
    halves = tuple(-(shape[d] // 2) if back else shape[d] // 2 for d in dimensions)
    return plain(roll)(x, halves, dimensions)
