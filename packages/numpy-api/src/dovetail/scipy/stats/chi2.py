"""The distribution of a sum of `df` squares of standard normal numbers.

The density is ``(x / 2)**(df / 2 - 1) * exp(-x / 2) / (2 * gamma(df / 2))`` for ``x >= 0``.
"""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import gammainc, gammaincc, gammaln, xlogy
from dovetail.scipy.stats._families import Family, log_of_probability
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("chi2", ("df",), (2.0,), lambda df: df > 0, low=0.0, typical=1.0)


# Half of a value has a gamma distribution, the parameter of which is half of `df`.


def _log_density(y: Any, df: Any) -> Any:
    return xlogy(df / 2 - 1, y / 2) - y / 2 - gammaln(df / 2) - math.log(2)


def _probability(y: Any, df: Any) -> Any:
    return gammainc(df / 2, y / 2)


def _survival(y: Any, df: Any) -> Any:
    return gammaincc(df / 2, y / 2)


def _log_probability(y: Any, df: Any) -> Any:
    return log_of_probability(gammainc(df / 2, y / 2))


def _log_survival(y: Any, df: Any) -> Any:
    return log_of_probability(gammaincc(df / 2, y / 2))


@compiled
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the chi-squared distribution.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, below 0, nan where a parameter
        is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.chi2.logpdf(1.5, 2.5):.4f}")
        -1.4168
    """
    return _FAMILY.at("logpdf", _log_density, x, df, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the chi-squared distribution.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, below 0, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.chi2.pdf(1.5, 2.5):.4f}")
        0.2425
    """
    return _FAMILY.at("pdf", _log_density, x, df, loc=loc, scale=scale)


@compiled
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `cdf`: -inf where that underflows.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.chi2.logcdf(1.5, 2.5):.4f}")
        -0.8796
    """
    return _FAMILY.at("logcdf", _log_probability, x, df, loc=loc, scale=scale)


@compiled
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `sf`: -inf where that underflows.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.chi2.logsf(1.5, 2.5):.4f}")
        -0.5361
    """
    return _FAMILY.at("logsf", _log_survival, x, df, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the chi-squared distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.chi2.cdf(1.5, 2.5):.4f}")
        0.4150
    """
    return _FAMILY.at("cdf", _probability, x, df, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the chi-squared distribution exceeds `x`.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.chi2.sf(1.5, 2.5):.4f}")
        0.5850
    """
    return _FAMILY.at("sf", _survival, x, df, loc=loc, scale=scale)
