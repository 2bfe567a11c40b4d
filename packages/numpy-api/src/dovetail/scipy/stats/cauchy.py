"""The Cauchy distribution, with the density ``1 / (pi * (1 + x**2))``."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.stats._families import Family, choose
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("cauchy")


def _log_density(y: Any) -> Any:
    # Squares of great numbers would overflow.
    great = lax.abs(y) > 1e9
    near = lax.log1p(lax.square(choose(great, 0, y)))
    far = 2 * lax.log(lax.abs(choose(~great, 1, y)))
    return -math.log(math.pi) - pick(great, far, near)


def _survival(y: Any) -> Any:
    return lax.atan2(lax.full_like(y, 1), y) / math.pi


def _probability(y: Any) -> Any:
    return _survival(-y)


def _log_survival(y: Any) -> Any:
    positive = y > 0
    far = lax.log(_survival(choose(~positive, 1, y)))
    return pick(positive, far, lax.log1p(-_survival(-choose(positive, 0, y))))


def _log_probability(y: Any) -> Any:
    return _log_survival(-y)


def _quantile(q: Any) -> Any:
    # The cotangent of the nearer end: what is close to 0 or 1 keeps its digits.
    middle = lax.abs(q - 0.5) < 0.25
    low = q < 0.5
    nearer = choose(middle, 0.25, pick(low, q, 1 - q))
    outer = 1 / lax.tan(math.pi * nearer)
    inner = lax.tan(math.pi * (choose(~middle, 0.5, q) - 0.5))
    return pick(middle, inner, pick(low, -outer, outer))


def _upper_quantile(q: Any) -> Any:
    return -_quantile(q)


@compiled
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the Cauchy distribution.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.logpdf(0.5):.4f}")
        -1.3679
    """
    return _FAMILY.at("logpdf", _log_density, x, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the Cauchy distribution.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.pdf(0.5):.4f}")
        0.2546
    """
    return _FAMILY.at("pdf", _log_density, x, loc=loc, scale=scale)


@compiled
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `cdf`, without its underflow.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.logcdf(0.5):.4f}")
        -0.4345
    """
    return _FAMILY.at("logcdf", _log_probability, x, loc=loc, scale=scale)


@compiled
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `sf`, without its underflow.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.logsf(0.5):.4f}")
        -1.0429
    """
    return _FAMILY.at("logsf", _log_survival, x, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Cauchy distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.cdf(0.5):.4f}")
        0.6476
    """
    return _FAMILY.at("cdf", _probability, x, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Cauchy distribution exceeds `x`.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.sf(0.5):.4f}")
        0.3524
    """
    return _FAMILY.at("sf", _survival, x, loc=loc, scale=scale)


@compiled
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantiles of the Cauchy distribution: the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1; array or scalar.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.ppf(0.25):.4f}")
        -1.0000
    """
    return _FAMILY.quantile("ppf", _quantile, q, loc=loc, scale=scale)


@compiled
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Upper quantiles of the Cauchy distribution: the inverse of `sf`.

    Args:
        q: probabilities, from 0 to 1; array or scalar.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.cauchy.isf(0.125):.4f}")
        2.4142
    """
    return _FAMILY.quantile("isf", _upper_quantile, q, loc=loc, scale=scale)
