"""The normal distribution between two numbers."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.nn import log1mexp
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.special import log_ndtr, ndtr
from dovetail.scipy.stats._families import Family, choose
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


def _ordered(a: Any, b: Any) -> Any:
    return a < b


def _low(a: Any, b: Any) -> Any:
    return a


def _high(a: Any, b: Any) -> Any:
    return b


def _between(a: Any, b: Any) -> Any:
    return lax.clamp(-_GREAT, a, _GREAT) / 2 + lax.clamp(-_GREAT, b, _GREAT) / 2


_FAMILY: Final = Family(
    "truncnorm", ("a", "b"), (-1.0, 1.0), _ordered, low=_low, high=_high, typical=_between
)


# A mass of the normal distribution is exp(-nearest**2 / 2 + rest), where `nearest` is the number
# in its interval that is nearest to 0 if 0 is not in it: far out the squares, which are great, are
# subtracted from each other before anything is rounded.
# Infinite bounds have derivatives, zeros, once they are great numbers.
_GREAT: Final = 1e15


def _scaled_log_tail(y: Any) -> Any:
    """``log(ndtr(-y)) + y**2 / 2`` for positive numbers: far out by DLMF 7.12.1."""
    far = y > (6 if y.dtype == "float32" else 20)
    close = choose(far, 1, y)
    y = choose(~far, 30, y)
    r, series = 1 / lax.square(y), lax.full_like(y, 1)
    for odd in range(19, 0, -2):
        series = 1 - odd * r * series
    outer = lax.log(series / y) - math.log(2 * math.pi) / 2
    return pick(far, outer, log_ndtr(-close) + lax.square(close) / 2)


def _mass(low: Any, high: Any) -> tuple[Any, Any]:
    """The number nearest to 0, and the rest of the logarithm."""
    low, high = (lax.clamp(-_GREAT, x, _GREAT) for x in (low, high))
    upper, lower = low > 0, high < 0
    tail = upper | lower
    # What lies in one tail, as if it were the upper one.
    near = choose(~tail, 1, pick(upper, low, -high))
    end = choose(~tail, 2, pick(upper, high, -low))
    inner, outer = _scaled_log_tail(near), _scaled_log_tail(end)
    apart = (end - near) * (end + near) / 2 + inner - outer
    in_tail = inner + log1mexp(apart)
    # On both sides of 0: what is left by both tails, or where that is little, the difference of two
    # error functions, which have different signs.
    first, second = choose(tail, -1, low), choose(tail, 1, high)
    small = second - first < 1
    wide = lax.log1p(-ndtr(choose(small, -1, first)) - ndtr(-choose(small, 1, second)))
    root = math.sqrt(0.5)
    narrow = lax.log((lax.erf(second * root) - lax.erf(first * root)) / 2)
    return choose(~tail, 0, near), pick(tail, in_tail, pick(small, narrow, wide))


def _log_ratio(inner: tuple[Any, Any], whole: tuple[Any, Any]) -> Any:
    """The logarithm of one mass over another."""
    (y, rest), (z, other) = inner, whole
    return (z - y) * (z + y) / 2 + (rest - other)


def _log_density(y: Any, a: Any, b: Any) -> Any:
    nearest, rest = _mass(a, b)
    return (nearest - y) * (nearest + y) / 2 - rest - math.log(2 * math.pi) / 2


def _log_probability(y: Any, a: Any, b: Any) -> Any:
    return _log_ratio(_mass(a, y), _mass(a, b))


def _log_survival(y: Any, a: Any, b: Any) -> Any:
    return _log_ratio(_mass(y, b), _mass(a, b))


def _probability(y: Any, a: Any, b: Any) -> Any:
    return lax.exp(_log_probability(y, a, b))


def _survival(y: Any, a: Any, b: Any) -> Any:
    return lax.exp(_log_survival(y, a, b))


@compiled
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the density of the truncated normal distribution.

    Args:
        x: values; array or scalar of a real dtype.
        a: least standard value: a value is at least ``loc + scale * a``.
        b: greatest standard value, above `a`.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, from `a` to `b`, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.truncnorm.logpdf(0.5, -1.0, 2.0):.4f}")
        -0.8438
    """
    return _FAMILY.at("logpdf", _log_density, x, a, b, loc=loc, scale=scale)


@compiled
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Density of the truncated normal distribution.

    Args:
        x: values; array or scalar of a real dtype.
        a: least standard value: a value is at least ``loc + scale * a``.
        b: greatest standard value, above `a`.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, from `a` to `b`, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.truncnorm.pdf(0.5, -1.0, 2.0):.4f}")
        0.4301
    """
    return _FAMILY.at("pdf", _log_density, x, a, b, loc=loc, scale=scale)


@compiled
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of `cdf`, without its underflow.

    Args:
        x: values; array or scalar of a real dtype.
        a: least standard value: a value is at least ``loc + scale * a``.
        b: greatest standard value, above `a`.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.truncnorm.logcdf(0.5, -1.0, 2.0):.4f}")
        -0.4294
    """
    return _FAMILY.at("logcdf", _log_probability, x, a, b, loc=loc, scale=scale)


@compiled
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of `sf`, without its underflow.

    Args:
        x: values; array or scalar of a real dtype.
        a: least standard value: a value is at least ``loc + scale * a``.
        b: greatest standard value, above `a`.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.truncnorm.logsf(0.5, -1.0, 2.0):.4f}")
        -1.0523
    """
    return _FAMILY.at("logsf", _log_survival, x, a, b, loc=loc, scale=scale)


@compiled
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Probability that a value of the truncated normal distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        a: least standard value: a value is at least ``loc + scale * a``.
        b: greatest standard value, above `a`.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.truncnorm.cdf(0.5, -1.0, 2.0):.4f}")
        0.6509
    """
    return _FAMILY.at("cdf", _probability, x, a, b, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the truncated normal distribution exceeds `x`.

    Args:
        x: values; array or scalar of a real dtype.
        a: least standard value: a value is at least ``loc + scale * a``.
        b: greatest standard value, above `a`.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.truncnorm.sf(0.5, -1.0, 2.0):.4f}")
        0.3491
    """
    return _FAMILY.at("sf", _survival, x, a, b, loc=loc, scale=scale)
