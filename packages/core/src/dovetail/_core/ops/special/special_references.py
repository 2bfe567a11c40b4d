"""Special functions of one float, as references and sources of coefficients.

They are in a module of their own because their exact arithmetic takes time to import.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
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
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == 0:
        return -math.inf
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
        result = _log_gamma(Decimal(x))
        # The remainder at 1 and 2, where the result is zero, is the error of these steps.
        return float(result) if abs(result) > Decimal("1e-34") else 0.0


def inverse_erf(x: float) -> float:
    """The inverse error function, by Halley's iteration on `math.erf` and `math.erfc`."""
    if math.isnan(x) or abs(x) > 1:
        return math.nan
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    a = abs(x)
    if a < 1e-8:
        return x * math.sqrt(math.pi) / 2
    # An initial value close enough for the iteration (Winitzki 2008).
    w = math.log1p(-a * a)
    u = 2 / (math.pi * 0.147) + w / 2
    y = math.sqrt(math.sqrt(u * u - w / 0.147) - u)
    for _ in range(4):
        residual = (1 - a) - math.erfc(y) if a > 0.5 else math.erf(y) - a
        step = residual * math.sqrt(math.pi) / 2 * math.exp(y * y)
        y -= step / (1 + y * step)
    return math.copysign(y, x)


def _zeta(s: float, q: float) -> Decimal:
    """The sum of ``(q + k) ** -s`` over k >= 0, for s > 1 and finite q that is not a pole.

    Source: Euler-Maclaurin summation, DLMF 25.11.5 and 25.11.28, with 40 digits.
    """
    exponent, z = -Decimal(s), Decimal(q)
    if q < 0:
        # The terms with negative bases, as the difference of two sums.
        distance = -(z % 1)
        ahead, behind, rest = (_zeta_sum(exponent, x) for x in (1 - distance, distance, 1 - z))
        return ahead + (behind - rest) * (-1 if s % 2 else 1)
    return _zeta_sum(exponent, z)


def _zeta_sum(exponent: Decimal, z: Decimal) -> Decimal:
    total = Decimal(0)
    for _ in range(20):
        total += z**exponent
        z += 1
    power = z**exponent
    total += power / 2 - power * z / (exponent + 1)
    factor = -exponent * power / z / 2
    for k, b in enumerate(bernoulli(20), 1):
        total += factor * b.numerator / b.denominator
        factor *= (2 * k - 1 - exponent) * (2 * k - exponent)
        factor /= (2 * k + 1) * (2 * k + 2) * z * z
    return total


def zeta(s: float, q: float) -> float:
    """The Hurwitz zeta function."""
    if math.isnan(s) or math.isnan(q) or s < 1:
        return math.nan
    if s == 1 or q == -math.inf or (q <= 0 and q == math.floor(q)):
        return math.inf
    if q == math.inf or (s == math.inf and q > 1):
        return 0.0
    if s == math.inf:
        return 1.0 if q == 1 else math.inf
    if q < 0 and s != math.floor(s):
        return math.nan
    with _wide():
        return float(_zeta(s, q))


@functools.cache
def log_gamma_series(terms: int) -> list[float]:
    """Coefficients of lgamma(2 + t) / t. Source: DLMF 5.7.3, where zeta(k) - 1 = zeta(k, 2)."""
    euler = 0.57721566490153286
    return [1 - euler] + [(-1) ** k * zeta(float(k), 2.0) / k for k in range(2, terms + 1)]


def polygamma(m: float, x: float) -> float:
    """The derivative of order `m` of the digamma function."""
    if m == 0:
        return digamma(x)
    if math.isnan(x) or not (0 < m < math.inf) or m != math.floor(m):
        return math.nan
    sign = 1 if m % 2 else -1
    if x == -math.inf or (x <= 0 and x == math.floor(x)):
        return sign * math.inf
    if x == math.inf:
        return 0.0
    with _wide():
        return sign * float(_zeta(m + 1, x) * _log_gamma(Decimal(m + 1)).exp())


def _wide() -> AbstractContextManager[Context]:
    """Decimal arithmetic with large exponents, in which overflow is not an error."""
    return localcontext(Context(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[]))


_DIGITS = 40


def _log_gamma(x: Decimal) -> Decimal:
    """The logarithm of the gamma function for x > 0, with 40 digits. Source: as `lgamma`."""
    z, product = x, Decimal(1)
    while z < 30:
        product *= z
        z += 1
    terms = (b / (2 * k * (2 * k - 1)) for k, b in enumerate(bernoulli(15), 1))
    half_log = Decimal("0.9189385332046727417803297364056176398613974736377834")
    return (z - Decimal("0.5")) * z.ln() - z + half_log + _series(z, terms) - product.ln()


def _gamma_tail(a: Decimal, x: Decimal, upper: bool) -> Decimal:
    """The lower incomplete gamma function, or the upper one, roughly for x > a.

    Source: the power series and the continued fraction, DLMF 8.7.1 and 8.9.2.
    """
    weight = (a * x.ln() - x - _log_gamma(a)).exp()
    if not upper:
        term = total = 1 / a
        k = 0
        while term > total.scaleb(-_DIGITS - 5):
            k += 1
            term *= x / (a + k)
            total += term
        return weight * total
    before, last, count = Decimal(-1), Decimal(0), 32
    while abs(before - last) > abs(last).scaleb(-_DIGITS + 5):
        before, total = last, x
        for k in range(count, 0, -1):
            total = x - a + 2 * k - 1 + k * (a - k) / total
        last, count = 1 / total, 2 * count
    return weight * last


def _incomplete_gamma(a: float, x: float, upper: bool) -> float:
    if not (a >= 0 and x >= 0) or (a == x and a in (0, math.inf)):
        return math.nan
    if x == 0 or a == math.inf:
        return float(upper)
    if a == 0 or x == math.inf:
        return float(not upper)
    with localcontext(prec=_DIGITS + 10, Emin=-(10**9), Emax=10**9):
        tail = _gamma_tail(Decimal(a), Decimal(x), x > a + 1)
        return float(tail if (x > a + 1) == upper else 1 - tail)


def igamma(a: float, x: float) -> float:
    """The regularized lower incomplete gamma function."""
    return _incomplete_gamma(a, x, False)


def igammac(a: float, x: float) -> float:
    """The regularized upper incomplete gamma function."""
    return _incomplete_gamma(a, x, True)


def gamma_density(a: float, x: float) -> float:
    """The density of the gamma distribution."""
    if not (a >= 0 and x >= 0) or (a == x and a in (0, math.inf)):
        return math.nan
    if x == 0 and a <= 1:
        return 1.0 if a == 1 else math.inf
    if 0 in (a, x) or math.inf in (a, x):
        return 0.0
    with localcontext(prec=_DIGITS, Emin=-(10**9), Emax=10**9):
        z, shape = Decimal(x), Decimal(a)
        return float(((shape - 1) * z.ln() - z - _log_gamma(shape)).exp())


def _gamma_slope(a: float, x: float) -> Decimal:
    """The derivative of the lower incomplete gamma function in `a`, by central differences."""
    step, upper = min(Decimal(a), Decimal(1)).scaleb(-15), x > a + 1
    ahead, behind = (_gamma_tail(Decimal(a) + s, Decimal(x), upper) for s in (step, -step))
    return (behind - ahead if upper else ahead - behind) / (2 * step)


def igamma_grad_a(a: float, x: float) -> float:
    """The derivative of the regularized lower incomplete gamma function in `a`."""
    if not (a > 0 and x >= 0) or a == x == math.inf:
        return math.nan
    if x == 0 or math.inf in (a, x):
        return 0.0
    with localcontext(prec=_DIGITS + 10, Emin=-(10**9), Emax=10**9):
        return float(_gamma_slope(a, x))


def random_gamma_grad(a: float, x: float) -> float:
    """The derivative of a gamma distributed number in the shape of its distribution."""
    if a > 0 and x == 0:
        return 0.0
    if not (0 < a < math.inf and 0 < x < math.inf):
        return math.nan
    with localcontext(prec=_DIGITS + 10, Emin=-(10**9), Emax=10**9):
        z, shape = Decimal(x), Decimal(a)
        density = ((shape - 1) * z.ln() - z - _log_gamma(shape)).exp()
        return float(-_gamma_slope(a, x) / density)


def _beta_tail(a: Decimal, b: Decimal, x: Decimal) -> Decimal:
    """The incomplete beta function for x below its mean. Source: continued fraction, DLMF 8.17.22.

    Its coefficients are contracted in pairs.
    """
    weight = _beta_weight(a, b, x)
    before, last, count = Decimal(-1), Decimal(0), 32
    while abs(before - last) > abs(last).scaleb(-_DIGITS + 5):
        before, total = last, Decimal(1)
        for m in range(count, 0, -1):
            even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
            odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            total = 1 + even / (1 + odd / total)
        total = 1 - (a + b) * x / ((a + 1) * total)
        last, count = 1 / total, 2 * count
    return weight / a * last


def _beta_weight(a: Decimal, b: Decimal, x: Decimal) -> Decimal:
    log_beta = _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)
    return (a * x.ln() + b * (1 - x).ln() - log_beta).exp()


def betainc(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function."""
    edge = _beta_edge(a, b, x)
    if edge is not None:
        return edge
    with localcontext(prec=_DIGITS + 20, Emin=-(10**9), Emax=10**9):
        p, q, z = Decimal(a), Decimal(b), Decimal(x)
        if z * (p + q + 2) < p + 1:
            return float(_beta_tail(p, q, z))
        return float(1 - _beta_tail(q, p, 1 - z))


def _beta_edge(a: float, b: float, x: float) -> float | None:
    """The function where it needs no computation."""
    if not (a >= 0 and b >= 0 and 0 <= x <= 1) or (a == b and a in (0, math.inf)):
        return math.nan
    if x in (0, 1):
        return float(x == 1)
    if a == 0 or b == math.inf:
        return 1.0
    return 0.0 if b == 0 or a == math.inf else None


def beta_density(a: float, b: float, x: float) -> float:
    """The density of the beta distribution."""
    edge = _beta_edge(a, b, x)
    if edge is not None:
        if math.isnan(edge):
            return edge
        shape, other = (a, b) if x == 0 else (b, a)
        if x not in (0, 1) or 0 in (a, b) or math.inf in (a, b) or shape > 1:
            return 0.0
        return other if shape == 1 else math.inf
    with localcontext(prec=_DIGITS, Emin=-(10**9), Emax=10**9):
        p, q, z = Decimal(a), Decimal(b), Decimal(x)
        return float(_beta_weight(p, q, z) / (z * (1 - z)))


def _scaled_bessel(order: int, x: float) -> float:
    """A modified Bessel function times exp(-abs(x)). Source: DLMF 10.25.2 and 10.40.1."""
    if math.isnan(x) or math.isinf(x):
        return x if math.isnan(x) else math.copysign(0.0, x) if order else 0.0
    with localcontext(prec=_DIGITS, Emin=-(10**9), Emax=10**9):
        z = Decimal(abs(x))
        term = total = Decimal(1)
        k = 0
        if z > 1000:
            while k < 30:
                k += 1
                term *= -(4 * order - (2 * k - 1) ** 2) / (8 * k * z)
                total += term
            pi = Decimal("3.1415926535897932384626433832795028841972")
            result = total / (2 * pi * z).sqrt()
        else:
            while term > total.scaleb(-_DIGITS):
                k += 1
                term *= z * z / (4 * k * (k + order))
                total += term
            result = total * (-z).exp() * (z / 2 if order else 1)
        return math.copysign(float(result), x) if order else float(result)


def bessel_i0e(x: float) -> float:
    """The modified Bessel function of order 0 times exp(-abs(x))."""
    return _scaled_bessel(0, x)


def bessel_i1e(x: float) -> float:
    """The modified Bessel function of order 1 times exp(-abs(x))."""
    return _scaled_bessel(1, x)
