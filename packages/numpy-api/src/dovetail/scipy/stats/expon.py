"""The exponential distribution, with the density ``exp(-x)`` for ``x >= 0``."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.nn import log1mexp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("expon", low=0.0, typical=1.0)


def _log_density(y: Any) -> Any:
    return -y


def _quantile(q: Any) -> Any:
    return -lax.log1p(-q)


@compiled
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the exponential distribution.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, below 0, nan where a parameter
        is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.expon.logpdf(0.5):.4f}")
        -0.5000
    """
    return _FAMILY.at("logpdf", _log_density, x, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the exponential distribution.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, below 0, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.expon.pdf(0.5):.4f}")
        0.6065
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
        >>> print(f"{stats.expon.logcdf(0.5):.4f}")
        -0.9328
    """
    return _FAMILY.at("logcdf", log1mexp, x, loc=loc, scale=scale)


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
        >>> print(f"{stats.expon.logsf(0.5):.4f}")
        -0.5000
    """
    return _FAMILY.at("logsf", lax.neg, x, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the exponential distribution is at most `x`.

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
        >>> print(f"{stats.expon.cdf(0.5):.4f}")
        0.3935
    """
    return _FAMILY.at("cdf", lambda y: -lax.expm1(-y), x, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the exponential distribution exceeds `x`.

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
        >>> print(f"{stats.expon.sf(0.5):.4f}")
        0.6065
    """
    return _FAMILY.at("sf", lambda y: lax.exp(-y), x, loc=loc, scale=scale)


@compiled
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantiles of the exponential distribution: the inverse of `cdf`.

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
        >>> print(f"{stats.expon.ppf(0.5):.4f}")
        0.6931
    """
    return _FAMILY.quantile("ppf", _quantile, q, loc=loc, scale=scale)
