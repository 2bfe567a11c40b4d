"""The logistic distribution, with the density ``exp(-x) / (1 + exp(-x))**2``."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.nn import softplus
from dovetail.numpy.compiled import compiled
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("logistic")


def _log_density(y: Any) -> Any:
    return y - 2 * softplus(y)


def _survival(y: Any) -> Any:
    return lax.logistic(-y)


def _quantile(q: Any) -> Any:
    return lax.log(q) - lax.log1p(-q)


def _upper_quantile(q: Any) -> Any:
    return lax.log1p(-q) - lax.log(q)


@compiled
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the logistic distribution.

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
        >>> print(f"{stats.logistic.logpdf(0.5):.4f}")
        -1.4482
    """
    return _FAMILY.at("logpdf", _log_density, x, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the logistic distribution.

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
        >>> print(f"{stats.logistic.pdf(0.5):.4f}")
        0.2350
    """
    return _FAMILY.at("pdf", _log_density, x, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the logistic distribution is at most `x`.

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
        >>> print(f"{stats.logistic.cdf(0.5):.4f}")
        0.6225
    """
    return _FAMILY.at("cdf", lax.logistic, x, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the logistic distribution exceeds `x`.

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
        >>> print(f"{stats.logistic.sf(0.5):.4f}")
        0.3775
    """
    return _FAMILY.at("sf", _survival, x, loc=loc, scale=scale)


@compiled
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantiles of the logistic distribution: the inverse of `cdf`.

    Args:
        x: probabilities, from 0 to 1; array or scalar.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.logistic.ppf(0.25):.4f}")
        -1.0986
    """
    return _FAMILY.quantile("ppf", _quantile, x, loc=loc, scale=scale)


@compiled
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Upper quantiles of the logistic distribution: the inverse of `sf`.

    Args:
        x: probabilities, from 0 to 1; array or scalar.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.logistic.isf(0.25):.4f}")
        1.0986
    """
    return _FAMILY.quantile("isf", _upper_quantile, x, loc=loc, scale=scale)
