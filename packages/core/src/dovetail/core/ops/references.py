"""NumPy functions that the references of elementwise primitives share.

They are slow and meant to be exact: 16-bit and 32-bit arguments are computed in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.core.base import dtypes

NDArray = np.ndarray[Any, Any]


def widen(x: Any) -> Any:
    """A floating point or complex array with 64 bits for each part; other arrays as they are."""
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
    """A function of one float, applied to each element; `pole` where it has no value."""

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


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function.

    Source: recurrence and asymptotic expansion, DLMF 5.5.2, 5.5.4 and 5.11.2, in extended
    precision.
    """
    if math.isnan(x) or x == -math.inf or x == 0:
        return math.nan
    if x == math.inf:
        return math.inf
    z = np.longdouble(x)
    reflection = np.longdouble(0)
    if x < 0:
        if x == math.floor(x):
            return math.nan
        pi = np.longdouble("3.14159265358979323846264338327950288")
        reflection = pi / np.tan(pi * (z - np.rint(z)))
        z = 1 - z
    shift = np.longdouble(0)
    while z < 30:
        shift -= 1 / z
        z = z + 1
    square = 1 / (z * z)
    bernoulli = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510))
    series = np.longdouble(0)
    for k in range(len(bernoulli), 0, -1):
        top, bottom = bernoulli[k - 1]
        series = (series + np.longdouble(top) / bottom / (2 * k)) * square
    return float(np.log(z) - 1 / (2 * z) - series + shift - reflection)


def lgamma(x: float) -> float:
    """The logarithm of the absolute value of the gamma function."""
    return math.inf if math.isinf(x) else math.lgamma(x)


def inverse_erf(x: float) -> float:
    """The inverse of the error function, by Halley's iteration on `math.erf` and `math.erfc`."""
    if math.isnan(x) or abs(x) > 1:
        return math.nan
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    a = abs(x)
    if a < 1e-8:
        return x * math.sqrt(math.pi) / 2
    # A start that is close enough for the iteration (Winitzki 2008).
    w = math.log1p(-a * a)
    u = 2 / (math.pi * 0.147) + w / 2
    y = math.sqrt(math.sqrt(u * u - w / 0.147) - u)
    for _ in range(4):
        residual = (1 - a) - math.erfc(y) if a > 0.5 else math.erf(y) - a
        step = residual * math.sqrt(math.pi) / 2 * math.exp(y * y)
        y -= step / (1 + y * step)
    return math.copysign(y, x)


def zeta(s: float, q: float) -> float:
    """The Hurwitz zeta function.

    Source: Euler-Maclaurin summation, DLMF 25.11.5 and 25.11.28.
    """
    if math.isnan(s) or math.isnan(q) or s < 1:
        return math.nan
    if s == 1:
        return math.inf
    if q <= 0:
        if q == math.floor(q):
            return math.inf
        if s != math.floor(s):
            return math.nan
    if math.isinf(q):
        return 0.0
    terms = [math.pow(q + k, -s) for k in range(20)]
    z = q + 20
    terms.append(math.pow(z, 1 - s) / (s - 1))
    terms.append(math.pow(z, -s) / 2)
    factor = s * math.pow(z, -s - 1) / 2
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    for k, b in enumerate(bernoulli, 1):
        terms.append(b * factor)
        factor *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2)) / (z * z)
    return math.fsum(terms)


def polygamma(m: float, x: float) -> float:
    """The derivative of order `m` of the digamma function."""
    if m == 0:
        return digamma(x)
    if m != math.floor(m) or m < 0:
        return math.nan
    sign = 1 if m % 2 else -1
    return sign * math.gamma(m + 1) * zeta(m + 1, x)


def signed_complex(x: Any) -> Any:
    """The sign, for complex numbers the number of modulus one in their direction."""
    with np.errstate(all="ignore"):
        if np.iscomplexobj(x):
            return np.where(x == 0, x, x / np.abs(x))
        return np.copysign(np.sign(x), x) if x.dtype.kind == "f" else np.sign(x)


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def log1p(x: Any) -> Any:
    """log(1 + x); of complex numbers with the modulus of 1 + x in extended precision."""
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


def bit_count(x: Any) -> Any:
    """The number of bits that are set."""
    return np.unpackbits(_bytes(x), axis=-1).sum(-1).astype(x.dtype)


def leading_zeros(x: Any) -> Any:
    """The number of bits before the first that is set."""
    bits = np.unpackbits(_bytes(x)[..., ::-1], axis=-1)
    return np.where(bits.any(-1), bits.argmax(-1), bits.shape[-1]).astype(x.dtype)


def _bytes(x: Any) -> NDArray:
    """Bytes of each element, the least significant first."""
    little = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"))
    return little.reshape((*x.shape, 1)).view(np.uint8)
