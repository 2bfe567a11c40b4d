"""The Gumbel distribution of least values, with the density ``exp(x - exp(x))``."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.stats import _extreme_values as least
from dovetail.scipy.stats._families import Family, choose
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("gumbel_l")


def _quantile(q: Any) -> Any:
    # Where the derivative is infinite, the chain rule alone would give nan.
    end = q == 1
    return choose(end, math.inf, lax.log(-lax.log1p(-choose(end, 0.5, q))))


@compiled
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the Gumbel distribution of least values.

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
        >>> print(f"{stats.gumbel_l.logpdf(0.5):.4f}")
        -1.1487
    """
    return _FAMILY.at("logpdf", least.log_density, x, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the Gumbel distribution of least values.

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
        >>> print(f"{stats.gumbel_l.pdf(0.5):.4f}")
        0.3170
    """
    return _FAMILY.at("pdf", least.log_density, x, loc=loc, scale=scale)


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
        >>> print(f"{stats.gumbel_l.logcdf(0.5):.4f}")
        -0.2136
    """
    return _FAMILY.at("logcdf", least.log_probability, x, loc=loc, scale=scale)


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
        >>> print(f"{stats.gumbel_l.logsf(0.5):.4f}")
        -1.6487
    """
    return _FAMILY.at("logsf", least.log_survival, x, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Gumbel distribution of least values is at most `x`.

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
        >>> print(f"{stats.gumbel_l.cdf(0.5):.4f}")
        0.8077
    """
    return _FAMILY.at("cdf", least.probability, x, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Gumbel distribution of least values exceeds `x`.

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
        >>> print(f"{stats.gumbel_l.sf(0.5):.4f}")
        0.1923
    """
    return _FAMILY.at("sf", least.survival, x, loc=loc, scale=scale)


@compiled
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantiles of the Gumbel distribution of least values: the inverse of `cdf`.

    Args:
        p: probabilities, from 0 to 1; array or scalar.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gumbel_l.ppf(0.25):.4f}")
        -1.2459
    """
    return _FAMILY.quantile("ppf", _quantile, p, loc=loc, scale=scale)
