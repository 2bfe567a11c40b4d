"""Hypergeometric functions of real numbers."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike

#: Series end where their terms are below this part of the sum, or after so many terms.
_SMALL: Final = 1e-19
_MOST_TERMS: Final = 3000
#: Terms of each continuation of the Gaussian function half the way to 1, and how many of these.
_STEP_TERMS: Final = 80
_MOST_STEPS: Final = 1100
_ASYMPTOTIC_TERMS: Final = 60


def _whole(x: Any) -> Any:
    """Which numbers are 0 or negative integers."""
    return (x <= 0) & (x == lax.floor(x))


def _series(upper: list[Any], lower: Any, x: Any, first: Any) -> tuple[Any, Any]:
    """The sum of ``first * prod((a)_k) / (b)_k x**k / k!``, and its derivative.

    A factor 0 above ends the series before a factor 0 below can make it infinite.
    """
    x_size = lax.stop_gradient(lax.abs(x))
    fixed = [lax.stop_gradient(a) for a in upper]
    below = lax.stop_gradient(lower)

    def active(state: Any) -> Any:
        k, _, total, _, bound = state
        going = bound > _SMALL * lax.abs(total)
        return (k < _MOST_TERMS) & jnp.any(going)

    def step(state: Any) -> Any:
        k, term, total, slope, bound = state
        n = lax.convert_element_type(k, x.dtype)
        divisor = lower + n
        pole = divisor == 0
        next_term = term / jnp.where(pole, 1.0, divisor) / (n + 1)
        for a in upper:
            next_term = next_term * (a + n)
        # The term without x gives the derivative.
        ends = jnp.where(pole & (next_term != 0), jnp.inf, 0.0)
        slope = slope + (n + 1) * next_term + ends
        next_term = next_term * x + ends
        # A bound of what derivatives of the terms are, also where a factor is 0.
        bound = bound * x_size / (n + 1) / jnp.maximum(lax.abs(below + n), 0.5)
        for a in fixed:
            bound = bound * jnp.maximum(lax.abs(a + n), 0.5)
        return k + 1, next_term, total + next_term, slope, bound

    ones = first + 0 * x
    state = (jnp.asarray(0, "int32"), ones, ones, 0 * ones, lax.stop_gradient(ones))
    final = lax.while_loop(active, step, state)
    return final[2], final[3]


def _gamma_sign(x: Any) -> Any:
    odd = lax.rem(lax.floor(x), 2.0 + 0 * x) != 0
    return jnp.where((x < 0) & odd, -1.0, 1.0)


def _kummer_formula(a: Any, b: Any, x: Any) -> Any:
    ends = _whole(a)
    # DLMF, 13.2.39: the other function has no terms of either sign. A polynomial stays one.
    turned = (x < 0) & ~ends
    first, size = jnp.where(turned, b - a, a), jnp.where(turned, -x, x)
    other = b - first
    far = _far_enough(first, other, size) & ~_whole(first) & ~_whole(b)
    moderate = jnp.where(far | ~(lax.abs(size) < jnp.inf), 1.0, size)
    scale = jnp.where(turned, lax.exp(-moderate), 1.0)
    near, _ = _series([first], b, moderate, scale)
    # DLMF, 13.7.1 and 13.2.4: gamma(b) / gamma(a) exp(x) x^(a - b) times a series in 1 / x.
    y = jnp.where(far, size, 200.0)
    total = term = jnp.ones_like(y)
    for k in range(_ASYMPTOTIC_TERMS):
        term = term * ((other + k) / y) * ((1 - first + k) / (k + 1))
        # From the least term on the series does not tell more.
        used = lax.abs(lax.stop_gradient(term)) < 1
        total = total + jnp.where(used, term, 0.0)
    power = lax.lgamma(b) - lax.lgamma(first) - other * lax.log(y)
    half = jnp.where(turned, 0.0, y) / 2
    root = lax.exp(half + power / 2)
    sign = _gamma_sign(b) * _gamma_sign(first)
    asymptotic = sign * (root * total) * root
    result = jnp.where(far, asymptotic, near)
    endless = jnp.where(x == jnp.inf, jnp.inf, 0.0) * sign
    result = jnp.where(lax.abs(x) == jnp.inf, jnp.where(ends, jnp.nan, endless), result)
    result = jnp.where((a == 0) & ~_whole(b), 1.0 + 0 * result, result)
    poles = _whole(b) & ~(ends & (a >= b))
    result = jnp.where(poles, jnp.inf, result)
    return jnp.where((a == a) & (b == b) & (x == x), result, jnp.nan)


def _far_enough(first: Any, other: Any, x: Any) -> Any:
    """Where the asymptotic series reaches float64."""
    return x > 60 + 2 * (lax.abs(other) + 1) * (lax.abs(1 - first) + 1)


_kummer: Any = in_double(_kummer_formula, {2: lambda a, b, x: a / b * _kummer(a + 1, b + 1, x)})


@compiled
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function, the sum of ``(a)_k / (b)_k * x**k / k!``.

    Args:
        a: array or scalar of a real dtype.
        b: array or scalar of a real dtype.
        x: array or scalar of a real dtype.

    Returns:
        A float array of the common shape; infinite where `b` is 0 or a negative integer, unless the
        series ends before.

    Raises:
        TypeError: an argument is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 13.2.2, 13.2.39 and 13.7.1.

    Example:
        >>> from dovetail.scipy.special import hyp1f1
        >>> print(f"{hyp1f1(1.0, 2.0, 1.0):.5f}")
        1.71828
    """
    return _kummer(*of_one_shape(real_operands("hyp1f1", a=a, b=b, x=x)))


def _continued(a: Any, b: Any, c: Any, distance: Any, value: Any, slope: Any) -> Any:
    """The Gaussian function at ``1 - distance`` from its value and slope at 0.5.

    Each step solves the differential equation, DLMF, 15.10.1, by a power series at one point, half
    the way to 1, where it has converged to float64.
    """

    def active(state: Any) -> Any:
        j, left, _, _ = state
        return (j < _MOST_STEPS) & jnp.any(left > lax.stop_gradient(distance))

    def step(state: Any) -> Any:
        j, left, value, slope = state
        going = left > distance
        stop = lax.max(left / 2, distance)
        length = jnp.where(going, left - stop, 0.0)
        point = 1 - left
        product = point * left
        second = 1 - 2 * point
        third = c - (a + b + 1) * point

        def term(k: Any, sums: Any) -> Any:
            n = lax.convert_element_type(k, value.dtype)
            now, after, total, change = sums
            following = (n + a) * (n + b) * now * length * length
            following = following - (n + 1) * (n * second + third) * after * length
            following = following / ((n + 1) * (n + 2) * product)
            return after, following, total + following, change + (n + 2) * following

        now, after = value, slope * length
        sums = (now, after, now + after, after)
        _, _, total, change = lax.fori_loop(0, _STEP_TERMS, term, sums)
        divisor = jnp.where(going, length, 1.0)
        value = jnp.where(going, total, value)
        slope = jnp.where(going, change / divisor, slope)
        return j + 1, jnp.where(going, left / 2, left), value, slope

    state = (jnp.asarray(0, "int32"), jnp.full_like(value, 0.5), value, slope)
    return lax.while_loop(active, step, state)[2]


def _gauss_formula(a: Any, b: Any, c: Any, x: Any) -> Any:
    # A polynomial is summed where the series would not converge.
    ends = (_whole(a) | _whole(b)) & (lax.abs(x) >= 1)
    ends = ends & (x > 0)
    inside = (lax.abs(x) < jnp.inf) & ((x < 1) | ends)
    turned = inside & (x < 0)
    # DLMF, 15.8.1, brings negative numbers to between 0 and 1.
    negative = jnp.where(turned, x, 0.0)
    y = jnp.where(turned, negative / (negative - 1), jnp.where(inside, x, 0.0))
    distance = jnp.where(turned, 1 / (1 - negative), 1 - y)
    other = jnp.where(turned, c - b, b)
    near = (distance >= 0.5) | ends
    value, slope = _series([a, other], c, jnp.where(near, y, 0.5), 1.0)
    far = _continued(a, other, c, jnp.where(near, 0.5, distance), value, slope)
    result = jnp.where(near, value, far)
    result = jnp.where(turned, result * lax.exp(-a * lax.log1p(-negative)), result)
    # DLMF, 15.4.20.
    excess = c - a - b
    gammas = lax.lgamma(c) + lax.lgamma(excess) - lax.lgamma(c - a) - lax.lgamma(c - b)
    sign = _gamma_sign(c) * _gamma_sign(excess) * _gamma_sign(c - a) * _gamma_sign(c - b)
    at_one = jnp.where(_whole(c - a) | _whole(c - b), 0.0, sign * lax.exp(gammas))
    at_one = jnp.where(excess > 0, at_one, jnp.inf)
    result = jnp.where((x == 1) & ~ends, at_one, result)
    result = jnp.where((x > 1) & ~ends, jnp.inf, result)
    poles = _whole(c) & ~((_whole(a) & (a >= c)) | (_whole(b) & (b >= c)))
    result = jnp.where(poles, jnp.inf, result)
    known = (a == a) & (b == b) & (c == c) & (x == x) & (x > -jnp.inf)
    return jnp.where(known, result, jnp.nan)


_gauss: Any = in_double(
    _gauss_formula, {3: lambda a, b, c, x: a * b / c * _gauss(a + 1, b + 1, c + 1, x)}
)


@compiled
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """The Gaussian hypergeometric function, the sum of ``(a)_k * (b)_k / (c)_k * x**k / k!``.

    Args:
        a: array or scalar of a real dtype.
        b: array or scalar of a real dtype.
        c: array or scalar of a real dtype.
        x: array or scalar of a real dtype, not above 1 unless the series ends.

    Returns:
        A float array of the common shape; infinite where the function is not real or not finite.

    Raises:
        TypeError: an argument is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 15.2.1, 15.8.1, 15.4.20, and the
        differential equation 15.10.1, which continues the function from 0.5 towards 1.

    Differs:
        Arguments below -1 have a value, where JAX gives an infinity.

        >>> from dovetail.scipy.special import hyp2f1
        >>> print(f"{hyp2f1(1.0, 2.0, 3.0, -3.0):.5f}")
        0.35860

    Example:
        >>> from dovetail.scipy.special import hyp2f1
        >>> print(f"{hyp2f1(1.0, 1.0, 2.0, 0.5):.5f}")
        1.38629
    """
    operands = of_one_shape(real_operands("hyp2f1", a=a, b=b, c=c, x=x))
    return _gauss(*operands)
