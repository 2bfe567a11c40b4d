"""Parts of the incomplete gamma and beta functions: exponents, the gamma function, expansions.

They are formulas of float64 expressions. With `exact` the exponents are double-double, as float64
results require; for narrower results plain float64 is enough.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from dovetail._core.hlo.expressions import Expression, by_kind
from dovetail._core.ops.elementwise.exponential import log1p
from dovetail._core.ops.special import special_references
from dovetail._core.ops.special.double_double import DoubleDouble
from dovetail._core.ops.special.error_functions import erf, scaled_erfc_series

#: From here on Stirling's series gives the logarithm of the gamma function.
STIRLING: Final = 8

#: log(2), the first part with 40 bits.
LOG2: Final = (0.6931471805592082, 7.371002565167799e-13)
_THIRD: Final = (1 / 3, 1.850371707708594e-17)


def nearest_power(x: Expression) -> tuple[Expression, Expression]:
    """The exponent of the power of two that brings `x` nearest to one, and the power."""
    integer = np.dtype(np.int64)
    bits = x.apply("maximum", 2.0**-900).apply("minimum", 2.0**900).bits(integer)
    above = bits - int(np.float64(math.sqrt(0.5)).view(np.int64))
    exponent = above.apply("shift_right_arithmetic", 52)
    power = ((exponent + 1023) << 52).bits(np.float64)
    return exponent.convert(np.float64), power


def excess(a: Expression, x: Any, distance: Any = None) -> Any:
    """``x - a - a * log(x / a)``, which is not negative, accurate even where it is small.

    With s = 2**n a near x, and z = (x - s) / (x + s), log(x / a) is n log(2) + 2 atanh(z); the
    first term of the series of atanh is combined with x - a.

    Args:
        a: positive numbers.
        x: positive numbers, an expression or a double-double.
        distance: ``x - a``, if the expression `x` is not exact.

    Returns:
        Of the type of `x`.
    """
    exact = isinstance(x, DoubleDouble)
    exponent, power = nearest_power((x.high if exact else x) / a)
    scaled, inverse = a * power, 1.0 / power
    from_scaled = x - scaled
    distance = from_scaled if distance is None else distance.where(exponent == 0.0, from_scaled)
    z = distance / (x + scaled)
    square = z * z
    head = square.high if exact else square
    rest = head * head.polynomial([1 / (2 * k + 5) for k in range(13 if exact else 9)])
    if exact:
        shift = DoubleDouble(exponent * LOG2[0], exponent * LOG2[1]) * a
        cube = square * z
        # Not 1 / 3 + rest: XLA simplifies (1 / 3 + rest) - 1 / 3 to rest, and the lost digits to
        # zero.
        curve = (cube * _THIRD + cube.high * rest) * (a + a)
        return x - x.scaled(inverse) - shift + distance.scaled(inverse) * z - curve
    bend = (rest + 1 / 3) * square * z * (a + a)
    return x - x * inverse - exponent * math.log(2) * a + distance * inverse * z - bend


@functools.cache
def _reciprocal_series(terms: int) -> list[float]:
    """Coefficients of 1 / gamma(1 + t). Source: DLMF 5.7.2."""
    zetas = [0.0, 0.57721566490153286] + [
        1 + special_references.zeta(float(k), 2.0) for k in range(2, terms + 1)
    ]
    coefficients = [1.0]
    for n in range(1, terms):
        total = sum((-1) ** (k + 1) * zetas[k] * coefficients[n - k] for k in range(1, n + 1))
        coefficients.append(total / n)
    return coefficients


def reciprocal_gamma(a: Expression, largest: int = STIRLING) -> tuple[Expression, Expression]:
    """Numerator and denominator of ``1 / gamma(1 + a)`` for 0 <= a <= `largest`."""
    whole = a.nearest()
    fraction = a - whole
    product = a.constant(1.0)
    for k in range(1, largest + 1):
        product = (product * (fraction + k)).where(whole >= k, product)
    return fraction.polynomial(_reciprocal_series(20)), product


def log_gamma1(a: Expression) -> Expression:
    """The logarithm of gamma(1 + a) for 0 < a <= 1, accurate near zero and one too.

    By a series around 2. Source: DLMF 5.7.3.
    """
    small = a < 0.5
    t = a.where(small, a - 1.0)
    series = t * t.polynomial(special_references.log_gamma_series(28))
    return (series - a.call(log1p)).where(small, series)


def stirling_correction(a: Expression) -> Expression:
    """log(gamma(a)) - (a - 1/2) log(a) + a - log(2 pi) / 2 for a >= 8. Source: DLMF 5.11.1."""
    inverse = 1.0 / a
    return inverse * (inverse * inverse).polynomial(_stirling_series())


def stirling_slope(a: Expression, b: Expression) -> Expression:
    """The difference of `stirling_correction` at a and b, divided by that of b and a."""
    x, y = 1.0 / a, 1.0 / b
    # (x**n - y**n) / (x - y) is the sum of x**i y**j with i + j = n - 1 = 2 k.
    total, sums, power = a.constant(0.0), a.constant(1.0), x
    square = y * y
    for coefficient in _stirling_series():
        total = total + sums * coefficient
        sums = sums * square + power * (x + y)
        power = power * x * x
    return -(total * x * y)


def _stirling_series() -> list[float]:
    return [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(), 1)]


def log_minus_digamma(a: Expression) -> Expression:
    """log(a) - digamma(a) for a >= 8. Source: DLMF 5.11.2."""
    terms = [b / (2 * k) for k, b in enumerate(_bernoulli(), 1)]
    inverse = 1.0 / a
    square = inverse * inverse
    return inverse * 0.5 + square * square.polynomial(terms)


def _bernoulli() -> list[float]:
    return [float(b) for b in special_references.bernoulli(9)]


def power_weight(a: Expression, x: Any, power: Expression | None = None) -> Expression:
    """``x**a * exp(-x) / gamma(a)`` for a below 8, or with another `power` of x."""
    power = a if power is None else power
    head = x.high if isinstance(x, DoubleDouble) else x
    root = (head * -0.5).exp()
    numerator, denominator = reciprocal_gamma(a)
    # Two roots, because exp(-x) may vanish where the result does not.
    result = head.apply("power", power) * root * numerator * root * (a / denominator)
    if isinstance(x, DoubleDouble):
        result = result + result * (x.low * (power / head - 1.0))
    return result


def scaled_excess(a: Expression, x: Any, distance: Expression | None = None) -> Any:
    """`excess`, for large numbers too: they are scaled down, and results with them.

    That changes no exponential: either these numbers are equal, or their excess is large.
    """
    head = x.high if isinstance(x, DoubleDouble) else x
    scale = a.constant(2.0**-200).where((a > 1e280) | (head > 1e280), 1.0)
    if isinstance(x, DoubleDouble):
        return excess(a * scale, x.scaled(scale))
    return excess(a * scale, x * scale, None if distance is None else distance * scale)


def gamma_kernel(a: Expression, x: Any) -> Expression:
    """The reciprocal of ``exp(x - a) * (a / x)**a``, for a >= 8; accurate for a double-double."""
    kinds = (a >= STIRLING).convert(np.int32)
    return by_kind(kinds, [None, lambda: (-scaled_excess(a, x)).exp()], a.constant(0.0))


def gamma_weight(
    a: Expression, x: Expression, kernel: Expression, power: Expression | None = None
) -> Expression:
    """``x**a * exp(-x) / gamma(a)``.

    Args:
        a: positive numbers.
        x: positive numbers.
        kernel: `gamma_kernel` of them.
        power: the power of `x` to use instead of `a` where `a` is below 8.
    """
    kinds = (a >= STIRLING).convert(np.int32)
    large = lambda: stirling_weight(a) * kernel  # noqa: E731
    return by_kind(kinds, [lambda: power_weight(a, x, power), large], a.constant(0.0))


def stirling_weight(a: Expression) -> Expression:
    """``(a / e)**a / gamma(a)`` for a >= 8."""
    return (a / (2 * math.pi)).sqrt() * (-stirling_correction(a)).exp()


class NormalTail:
    """The distance of numbers from the mean of a distribution that is close to normal.

    Args:
        exponent: the drop in log density from the mean.
        kernel: ``exp(-exponent)``.
        shape: the inverse of the variance, for a mean of one.
        above: where the number is above the mean.
    """

    def __init__(
        self, exponent: Expression, kernel: Expression, shape: Expression, above: Expression
    ) -> None:
        self.exponent = exponent
        self.kernel = kernel
        self.shape = shape
        distance = (exponent * 2.0 / shape).sqrt()
        #: The square root of ``2 * exponent / shape``, negative below the mean.
        self.distance = distance.where(above, -distance)

    def probability(self, correction: Expression) -> Expression:
        """``erfc(sqrt(exponent)) / 2 + kernel * correction``: nearly a normal tail.

        exp(x**2) erfc(x) has an expansion for x >= 0, which loses digits near zero.
        """
        x = self.exponent.sqrt()
        t = (x - 3.75) / (x + 3.75)
        far = t.polynomial(scaled_erfc_series()) / (x + x + 1.0) * 0.5
        near = (1.0 - x.call(erf)) * 0.5 + self.kernel * correction
        return near.where(x < 0.5, self.kernel * (far + correction))
