"""NumPy functions that the references of elementwise primitives share.

They are slow and meant to be exact: 16-bit and 32-bit arguments are computed in 64 bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
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


@functools.cache
def bernoulli(count: int) -> tuple[Fraction, ...]:
    """The Bernoulli numbers B(2), B(4), ... B(2 count). Source: DLMF 24.5.3."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum((math.comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-total / (n + 1))
    return tuple(numbers[2::2])


def _series(z: Decimal, coefficients: Iterable[Fraction]) -> Decimal:
    """The sum of c / z, c / z**3, c / z**5, ..."""
    total, power = Decimal(0), 1 / z
    for c in coefficients:
        total += Decimal(c.numerator) / Decimal(c.denominator) * power
        power /= z * z
    return total


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function.

    Source: recurrence and asymptotic expansion, DLMF 5.5.2, 5.5.4 and 5.11.2, with 40 digits.
    """
    if math.isnan(x) or x == -math.inf or x == 0:
        return math.nan
    if x == math.inf:
        return math.inf
    if x < 0:
        distance = x - round(x)
        if not distance:
            return math.nan
        return digamma(-x) - 1 / x - math.pi / math.tan(math.pi * distance)
    with localcontext(prec=40):
        z, shift = Decimal(x), Decimal(0)
        while z < 30:
            shift += 1 / z
            z += 1
        terms = (b / (2 * k) for k, b in enumerate(bernoulli(15), 1))
        return float(z.ln() - 1 / (2 * z) - _series(z, terms) / z - shift)


def lgamma(x: float) -> float:
    """The logarithm of the absolute value of the gamma function.

    Source: recurrence, reflection, Stirling's series, DLMF 5.5.1, 5.5.3, 5.11.1, with 40 digits.
    """
    if math.isnan(x):
        return x
    if math.isinf(x) or x == 0:
        return math.inf
    if x < 0:
        sine = abs(math.sin(math.pi * (x - round(x))))
        if not sine:
            return math.inf
        return math.log(math.pi / sine) - math.log(-x) - lgamma(-x)
    with localcontext(prec=40):
        z, product = Decimal(x), Decimal(1)
        while z < 30:
            product *= z
            z += 1
        terms = (b / (2 * k * (2 * k - 1)) for k, b in enumerate(bernoulli(15), 1))
        half_log = Decimal("0.9189385332046727417803297364056176398613974736377834")
        result = (z - Decimal("0.5")) * z.ln() - z + half_log + _series(z, terms) - product.ln()
        # What is left of zero at 1 and 2 is the error of these steps.
        return float(result) if abs(result) > Decimal("1e-34") else 0.0


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
    for k, b in enumerate(bernoulli(8), 1):
        terms.append(float(b) * factor)
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
