"""The distribution function of the normal distribution, its logarithm and its inverse."""

from __future__ import annotations

import math
from typing import Any

from dovetail import custom_jvp, lax
from dovetail import numpy as jnp
from dovetail.extend.arguments import integer
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import DOUBLE, SINGLE, computed, real_operands
from dovetail.typing import Array, ArrayLike

#: The square root of 2 pi, and what float64 lacks of it.
_SQRT_TWO_PI, _SQRT_TWO_PI_LOW = 2.5066282746310007, -1.8328579980459167e-16
#: What float64 lacks of ``-sqrt(1/2)``.
_LOW = 4.833646656726457e-17


def _halves(x: Any) -> tuple[Any, Any]:
    """The leading half of the digits of numbers, and what is left."""
    exponent, digits = (8, 11) if aval_of(x).dtype == SINGLE else (11, 25)
    high = lax.reduce_precision(x, exponent, digits)
    return high, x - high


def _scaled(x: Any) -> tuple[Any, Any]:
    """``-x / sqrt(2)`` as a number and what it lacks.

    The error function changes by ``2 * t * dt`` of its own, so that the rounding of t would cost
    hundreds of units in the last place far out. Factors are cut to half of their digits, as by T.
    J. Dekker, A floating-point technique for extending the available precision (1971), so that
    their product is exact; it makes no difference whether a compiler fuses it with a sum.
    """
    single = aval_of(x).dtype == SINGLE
    factor = -math.sqrt(0.5)
    scale = 2.0**12 if single else 2.0**26
    high_factor = round(factor * scale) / scale
    low_factor = (factor - high_factor) + _LOW
    high, low = _halves(x)
    # One bit less than the numbers have, so that no compiler takes the cut for none.
    t = lax.reduce_precision(x * factor, *((8, 22) if single else (11, 51)))
    return t, (high * high_factor - t) + (high * low_factor + low * factor)


@custom_jvp
def _ndtr(x: Any) -> Any:
    # Beyond, it is 0 or 1 in every format.
    t, rest = _scaled(jnp.clip(x, -50, 50))
    # The relative slope at t, to 0.2 / t, which is a tenth of a unit in the last place.
    falling = lax.max(1 + 0.376 * t, jnp.zeros_like(t))
    slope = jnp.where(
        t > 0, t + lax.sqrt(t * t + 2), 2 / math.sqrt(math.pi) * (falling * falling * falling)
    )
    rough = lax.erfc(t) / 2
    return rough - rough * (rest * slope)


@_ndtr.defjvp
def _ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,) = primals
    return _ndtr(x), tangents[0] * _density(x)


def _density(x: Any) -> Any:
    """The density; the square of `x` is not rounded."""
    x = jnp.where(abs(x) == math.inf, 1e3, x)
    high, low = _halves(x)
    return lax.exp(-(high * high) / 2) * lax.exp(-low * (x + high) / 2) / _SQRT_TWO_PI


@compiled
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    It is half of the complementary error function (DLMF 7.2.2) of ``-x / sqrt(2)``, which is not
    rounded, so that the lower tail is accurate.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Differs:
        Integers, and floats narrower than float32, are taken as well, as by other functions.

        >>> from dovetail.scipy.special import ndtr
        >>> print(ndtr(0))
        0.5

    Example:
        >>> from dovetail.scipy.special import ndtr
        >>> print(f"{ndtr(1.):.4f} {ndtr(-10.):.4g}")
        0.8413 7.62e-24
    """
    return computed(_ndtr, real_operands("ndtr", x=x), weak=False)


def _log_tail(x: Any, terms: int) -> Any:
    """The logarithm by the asymptotic series, for great negative numbers. Source: DLMF 7.12.1.

    The leading terms stand in front, so that derivatives of every order keep their digits.
    """
    inverse = 1 / x
    square = inverse * inverse
    total = jnp.full_like(x, 0)
    for k in range(terms, 0, -1):
        total = -(2 * k - 1) * square * (1 + total)
    return lax.log1p(total) - (x * x) / 2 - lax.log(-x) - math.log(2 * math.pi) / 2


@custom_jvp
def _log_centre(x: Any) -> Any:
    """The logarithm where the probability does not underflow."""
    probability = _ndtr(-abs(x))
    return jnp.where(x > 0, lax.log1p(-probability), lax.log(probability))


@_log_centre.defjvp
def _log_centre_jvp(primals: Any, tangents: Any) -> Any:
    (x,) = primals
    return _log_centre(x), tangents[0] * (_density(x) / _ndtr(x))


def _log_ndtr(x: Any) -> Any:
    # From there on the terms of the series reach the precision.
    start, terms = (-7, 8) if aval_of(x).dtype == SINGLE else (-14, 12)
    far = x < start
    tail = _log_tail(jnp.where(far, x, start), terms)
    return jnp.where(far, tail, _log_centre(jnp.where(far, start, x)))


@compiled_with("series_order")
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, accurate far out in both tails, and so are its derivatives.

    Args:
        x: array or scalar of a real dtype.
        series_order: checked for JAX's sake, and otherwise without effect: the asymptotic series of
            the lower tail has as many terms as the precision needs.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `series_order` is no integer.
        ValueError: `series_order` is negative or above 30.

    Differs:
        Derivatives keep their digits in the tails: far below 0 the first is close to ``-x``.

        >>> from dovetail.scipy.special import log_ndtr
        >>> print(dt.grad(log_ndtr)(-10000.))
        10000.0

        Integers, and floats narrower than float32, are taken as well.

        >>> from dovetail.scipy.special import log_ndtr
        >>> print(f"{log_ndtr(0):.4f}")
        -0.6931

    Example:
        >>> from dovetail.scipy.special import log_ndtr
        >>> print(f"{log_ndtr(-100.):.3f} {log_ndtr(10.):.4g}")
        -5005.524 -7.62e-24
    """
    if integer("log_ndtr", "series_order", series_order) < 0:
        raise ValueError(f"log_ndtr: series_order must not be negative, got {series_order}")
    if series_order > 30:
        raise ValueError(f"log_ndtr: series_order must be at most 30, got {series_order}")
    return computed(_log_ndtr, real_operands("log_ndtr", x=x), weak=False)


#: Numerator and denominator of ``(ndtri(1/2 + c) / c - sqrt(2 pi)) / c**2`` in 0.180625 - c**2,
#: from 0 to 0.180625: the weighted least squares of 100 nodes, computed with 70 digits. The
#: quantile is off by 8e-18 of itself.
_CENTRE = (
    (
        4.874765941399952,
        189.94605903446381,
        2779.9522467756415,
        19029.600057799747,
        61819.875923717256,
        85446.80773973875,
        36269.84757340073,
        562.7627637463847,
    ),
    (
        1.0,
        44.98948277993346,
        789.8046999762093,
        6860.902836564401,
        30913.71980499619,
        69284.56070324623,
        67223.23798316992,
        19692.969824962747,
    ),
)
#: Numerators and denominators of PPND16: M. J. Wichura, Algorithm AS 241: the percentage points of
#: the normal distribution, Applied Statistics 37 (1988).
_OUTER = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def _quotient(x: Any, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    results = []
    for polynomial in coefficients:
        total: Any = polynomial[-1]
        for coefficient in reversed(polynomial[:-1]):
            total = total * x + coefficient
        results.append(total)
    return results[0] / results[1]


def _quantile(p: Any, exact: bool) -> Any:
    centred = p - 0.5
    central = abs(centred) <= 0.425
    # The leading term alone is rounded to the precision of the result.
    square = jnp.where(central, centred * centred, 0.0)
    rest = square * _quotient(0.180625 - square, _CENTRE) + _SQRT_TWO_PI_LOW
    middle = centred * (_SQRT_TWO_PI + rest)
    tail = jnp.where(central, 0.5, lax.min(p, 1 - p))
    r = lax.sqrt(-lax.log(tail))
    far = r > 5
    outer = jnp.where(
        far,
        _quotient(jnp.where(far, r - 5, 0), _FAR),
        _quotient(jnp.where(far, 0, r - 1.6), _OUTER),
    )
    if exact:
        # A step of Newton's method: out there errors of the probability count for less.
        change = (_ndtr(-outer) - tail) / _density(outer)
        outer = outer + jnp.where(tail > 0, change, 0.0)
    outer = jnp.where(tail == 0, math.inf, outer)
    return jnp.where(central, middle, jnp.where(centred < 0, -outer, outer))


def _quantile_formula(p: Any) -> Any:
    return _quantile(p, exact=False)


def _exact_quantile_formula(p: Any) -> Any:
    return _quantile(p, exact=True)


_slopes = {0: lambda p: 1 / _density(normal_quantile(p))}
_of_single: Any = in_double(_quantile_formula, _slopes)
_of_double: Any = in_double(_exact_quantile_formula, _slopes)


def normal_quantile(p: Any) -> Any:
    """`ndtri` of float32 or float64."""
    return (_of_double if aval_of(p).dtype == DOUBLE else _of_single)(p)


@compiled
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution.

    Source: M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988), for the tails, followed
    by a step of Newton's method. It is computed in float64.

    Args:
        p: array or scalar of a real dtype: probabilities.

    Returns:
        A float array of the shape of `p`; nan outside [0, 1].

    Differs:
        Integers, and floats narrower than float32, are taken as well.

        >>> from dovetail.scipy.special import ndtri
        >>> print(ndtri(1))
        inf

    Example:
        >>> from dovetail.scipy.special import ndtri
        >>> print(f"{ndtri(0.975):.4f} {ndtri(1e-30):.4f}")
        1.9600 -11.4640
    """
    return computed(normal_quantile, real_operands("ndtri", p=p), weak=False)
