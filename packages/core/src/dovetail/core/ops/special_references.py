"""Special functions of one float, as references and sources of coefficients.

They are apart from other references because their exact arithmetic takes time to import.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction


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
