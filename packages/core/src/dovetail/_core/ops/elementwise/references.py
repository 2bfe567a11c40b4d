"""NumPy functions that the references of elementwise primitives share.

They favour accuracy over speed: 16-bit and 32-bit arguments are computed in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail._core.base import dtypes

NDArray = np.ndarray[Any, Any]


def widen(x: Any) -> Any:
    """A floating point or complex array with 64-bit parts; other arrays as they are."""
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return x.astype(np.complex128)
    return x.astype(np.float64) if dtypes.issubdtype(x.dtype, np.floating) else x


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` computed in 64 bits."""

    def computed(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(widen, args))

    return computed


def each(function: Callable[[float], float], pole: float = math.nan) -> Callable[..., Any]:
    """A function of one float, applied to each element; `pole` where it is undefined."""

    def one(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan if math.isnan(x) else pole
        except OverflowError:
            return math.inf

    return wide(np.vectorize(one, otypes=[np.float64]))


def truncated_division(x: Any, y: Any) -> Any:
    """Integer division that rounds towards zero; division of other numbers.

    Dividing by zero gives all bits set, and the lowest integer divided by -1 is itself, as XLA has
    it.
    """
    if x.dtype.kind not in "iu":
        return wide(np.divide)(x, y)
    with np.errstate(all="ignore"):
        down = x // np.where(y == 0, y + 1, y)
        inexact = down * y != x
        result = down + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)
        result = np.where(y == 0, ~np.zeros_like(x), result)
        return np.where(y == -1, -x, result) if x.dtype.kind == "i" else result


def remainder(x: Any, y: Any) -> Any:
    """The remainder of division that rounds towards zero; the dividend where the divisor is 0."""
    if x.dtype.kind not in "iu":
        return wide(np.fmod)(x, y)
    with np.errstate(all="ignore"):
        return np.where(y == 0, x, x - truncated_division(x, y) * y)


def signed_complex(x: Any) -> Any:
    """The sign; for complex numbers, the unit number in their direction."""
    with np.errstate(all="ignore"):
        if np.iscomplexobj(x):
            # Where one part is infinite, NumPy gives the axis too, but only positive zeros.
            on_axis = np.isinf(x.real) != np.isinf(x.imag)
            return np.where(x == 0, x, np.where(on_axis, np.sign(x), x / np.abs(x)))
        return np.copysign(np.sign(x), x) if x.dtype.kind == "f" else np.sign(x)


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def expm1(x: Any) -> Any:
    """exp(x) - 1, without cancellation for small x."""
    if not np.iscomplexobj(x):
        return np.expm1(x)
    a, b = x.real, x.imag
    out = np.exp(x) - 1
    small = np.abs(a) < 1
    out.real[small] = (np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2)[small]
    return out


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x); 0 at every complex infinity."""
    y = 1 / np.sqrt(x)
    return np.where(np.isinf(x), 0, y) if np.iscomplexobj(x) else y


def log1p(x: Any) -> Any:
    """log(1 + x); for complex numbers, with the modulus of 1 + x in extended precision."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    a, b = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    small = np.log1p(a * (2 + a) + b * b) / 2
    large = np.log(np.hypot(1 + a, b))
    out = np.empty(x.shape, np.complex128)
    out.real = np.where(np.abs(x) < 2, small, large)
    out.imag = np.arctan2(b, 1 + a)
    return out


def half_away(x: Any) -> Any:
    """Rounded to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, np.abs(whole) + 1, np.abs(whole)), x)


def total_order_key(x: Any) -> Any:
    """Integers in the same order as the floats of an array; other arrays as they are."""
    x = np.asarray(x)
    if not dtypes.issubdtype(x.dtype, np.floating):
        return x
    bits = x.view(f"int{8 * x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def high_product(x: Any, y: Any) -> Any:
    """The upper half of the bits of the product of integers."""
    bits = 8 * x.dtype.itemsize
    return ((x.astype(object) * y.astype(object)) >> bits).astype(x.dtype)


def bit_count(x: Any) -> Any:
    """The number of bits that are set."""
    return np.unpackbits(_bytes(x), axis=-1).sum(-1).astype(x.dtype)


def leading_zeros(x: Any) -> Any:
    """The number of leading zeros."""
    bits = np.unpackbits(_bytes(x)[..., ::-1], axis=-1)
    return np.where(bits.any(-1), bits.argmax(-1), bits.shape[-1]).astype(x.dtype)


def _bytes(x: Any) -> NDArray:
    """The bytes of each element, least significant first."""
    little = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"))
    return little.reshape((*x.shape, 1)).view(np.uint8)
