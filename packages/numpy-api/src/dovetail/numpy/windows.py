"""Window functions, which taper a signal towards its ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    inexact,
    integer,
    literal,
    refuse_complex,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.numpy.conditions import pick
from dovetail.numpy.modified_bessel import modified_bessel
from dovetail.typing import Array, ArrayLike


def _size(function: str, M: Any) -> int:
    if getattr(M, "dtype", None) == np.bool_ and not M.shape:
        M = int(M)  # NumPy takes any number for a size
    count = integer(function, "M", M)
    if count < 0:
        raise ShapeError(f"{function}: M, the number of points, must not be negative, got {count}")
    return count


def _rise(size: int) -> Any:
    """Evenly spaced numbers from 0 at both ends to 1 in the middle, exactly symmetric."""
    dtype = dtypes.default_dtype("f")
    places = lax.iota(dtype, size)
    last = literal(max(size - 1, 1), dtype)
    nearer = lax.min(places, lax.sub(literal(size - 1, dtype), places))
    # A window of one point consists of its middle.
    middle = literal(1.0 if size == 1 else 0.0, dtype)
    return lax.add(lax.div(lax.mul(nearer, literal(2, dtype)), last), middle)


def _squared_sine(size: int) -> Any:
    """``(1 - cos) / 2`` of a full turn; written in terms of it, windows have no cancellation."""
    rise = _rise(size)
    return lax.square(lax.sin(lax.mul(rise, literal(math.pi / 2, aval_of(rise).dtype))))


@compiled_with("size", "shape")
def _window(size: int, shape: Callable[[int], Any]) -> Any:
    return value(shape(size))


def _blackman(size: int) -> Any:
    s = _squared_sine(size)
    dtype = aval_of(s).dtype
    slope = lax.add(literal(0.36, dtype), lax.mul(literal(0.64, dtype), s))
    return lax.mul(s, slope)


def _hamming(size: int) -> Any:
    s = _squared_sine(size)
    dtype = aval_of(s).dtype
    return lax.add(literal(0.08, dtype), lax.mul(literal(0.92, dtype), s))


def bartlett(M: int) -> Array:
    """The Bartlett window, a triangle that rises linearly from 0 to 1 and falls again.

    Args:
        M: number of points; it must be known while tracing.

    Returns:
        A vector of `M` numbers of the default float dtype.

    Raises:
        ValueError: `M` is negative.

    Differs:
        A number of points is an integer, here and in the other windows; JAX drops a fraction.

        >>> jnp.bartlett(2.5)
        Traceback (most recent call last):
            ...
        TypeError: bartlett requires M to be an integer, got float 2.5; // divides integers

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bartlett(5))
        [0.  0.5 1.  0.5 0. ]
    """
    return _window(_size("bartlett", M), _rise)


def blackman(M: int) -> Array:
    """The Blackman window, ``0.42 - 0.5 cos t + 0.08 cos 2t`` for t from 0 to a full turn.

    It is exactly 0 at both ends, where NumPy's is about -1e-17.

    Args:
        M: number of points; it must be known while tracing.

    Returns:
        A vector of `M` numbers of the default float dtype.

    Raises:
        ValueError: `M` is negative.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.blackman(5).round(2))
        [0.   0.34 1.   0.34 0.  ]
    """
    return _window(_size("blackman", M), _blackman)


def hamming(M: int) -> Array:
    """The Hamming window, ``0.54 - 0.46 cos t`` for t from 0 to a full turn.

    Args:
        M: number of points; it must be known while tracing.

    Returns:
        A vector of `M` numbers of the default float dtype.

    Raises:
        ValueError: `M` is negative.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.hamming(3))
        [0.08 1.   0.08]
    """
    return _window(_size("hamming", M), _hamming)


def hanning(M: int) -> Array:
    """The Hann window, ``0.5 - 0.5 cos t`` for t from 0 to a full turn.

    Args:
        M: number of points; it must be known while tracing.

    Returns:
        A vector of `M` numbers of the default float dtype.

    Raises:
        ValueError: `M` is negative.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.hanning(5).round(2))
        [0.  0.5 1.  0.5 0. ]
    """
    return _window(_size("hanning", M), _squared_sine)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window, ``i0(beta sqrt(1 - r**2)) / i0(beta)`` for r from -1 to 1.

    Args:
        M: number of points; it must be known while tracing.
        beta: real scalar; the larger, the narrower the window. With 0 all points are 1. It can be
            differentiated.

    Returns:
        A vector of `M` numbers of the default float dtype.

    Raises:
        ValueError: `M` is negative.
        TypeError: `beta` is complex or not a scalar.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.kaiser(5, 2.0).round(2))
        [0.44 0.83 1.   0.83 0.44]
    """
    return _kaiser(_size("kaiser", M), beta)


@compiled_with("size")
def _kaiser(size: int, beta: Any) -> Any:
    beta = value(array_like(beta, "kaiser", "beta"))
    refuse_complex("kaiser", beta)
    if aval_of(beta).size != 1:
        raise TypeError(f"kaiser: beta must be a scalar, got shape {aval_of(beta).shape}")
    rise = _rise(size)
    dtype = aval_of(rise).dtype
    if not size:
        return rise
    # 1 - r**2, without subtracting numbers that are nearly equal at the ends.
    height = lax.mul(rise, lax.sub(literal(2, dtype), rise))
    at_end = lax.eq(height, literal(0, dtype))
    root = pick(at_end, height, lax.sqrt(pick(at_end, literal(1, dtype), height)))
    scale = _magnitude(lax.reshape(convert(beta, dtype), ()))
    argument = lax.mul(scale, root)
    # Both functions are scaled: their exponential growth would overflow.
    ratio = lax.div(lax.bessel_i0e(argument), lax.bessel_i0e(scale))
    return lax.mul(ratio, lax.exp(lax.sub(argument, scale)))


def _magnitude(x: Any) -> Any:
    """The absolute value, with derivative 0 at 0, as even functions need."""
    return lax.max(x, lax.neg(x))


@compiled
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Args:
        x: array or scalar of real numbers.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex.

    Source:
        DLMF, 10.25.

    Differs:
        It is infinite at infinity.

        >>> print(jnp.i0(jnp.inf))
        inf

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.i0(jnp.array([0., 1.])).round(3))
        [1.    1.266]
    """
    number = value(inexact("i0", x))
    refuse_complex("i0", number)
    aval = aval_of(number)
    dtype = aval.dtype
    if dtypes.itemsize_bits(dtype) < 32:
        number = convert(number, dtypes.canonicalize_dtype("float32"))
    return convert(modified_bessel(0, number), dtype, aval.weak_type)
