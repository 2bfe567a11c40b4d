"""The gamma distribution, with the density ``x**(a - 1) * exp(-x) / gamma(a)`` for ``x >= 0``."""

from __future__ import annotations

from typing import Any, Final

from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import gammainc, gammaincc, gammaln, xlogy
from dovetail.scipy.stats._families import Family, log_of_probability
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("gamma", ("a",), (1.0,), lambda a: a > 0, low=0.0, typical=1.0)


def _log_density(y: Any, a: Any) -> Any:
    return xlogy(a - 1, y) - y - gammaln(a)


def _probability(y: Any, a: Any) -> Any:
    return gammainc(a, y)


def _survival(y: Any, a: Any) -> Any:
    return gammaincc(a, y)


def _log_probability(y: Any, a: Any) -> Any:
    return log_of_probability(gammainc(a, y))


def _log_survival(y: Any, a: Any) -> Any:
    return log_of_probability(gammaincc(a, y))


@compiled
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the gamma distribution.

    Args:
        x: values; array or scalar of a real dtype.
        a: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, below 0, nan where a parameter
        is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gamma.logpdf(1.5, 2.5):.4f}")
        -1.1765
    """
    return _FAMILY.at("logpdf", _log_density, x, a, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the gamma distribution.

    Args:
        x: values; array or scalar of a real dtype.
        a: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, below 0, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gamma.pdf(1.5, 2.5):.4f}")
        0.3084
    """
    return _FAMILY.at("pdf", _log_density, x, a, loc=loc, scale=scale)


@compiled
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `cdf`: -inf where that underflows.

    Args:
        x: values; array or scalar of a real dtype.
        a: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gamma.logcdf(1.5, 2.5):.4f}")
        -1.2039
    """
    return _FAMILY.at("logcdf", _log_probability, x, a, loc=loc, scale=scale)


@compiled
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `sf`: -inf where that underflows.

    Args:
        x: values; array or scalar of a real dtype.
        a: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gamma.logsf(1.5, 2.5):.4f}")
        -0.3567
    """
    return _FAMILY.at("logsf", _log_survival, x, a, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the gamma distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        a: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gamma.cdf(1.5, 2.5):.4f}")
        0.3000
    """
    return _FAMILY.at("cdf", _probability, x, a, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the gamma distribution exceeds `x`.

    Args:
        x: values; array or scalar of a real dtype.
        a: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gamma.sf(1.5, 2.5):.4f}")
        0.7000
    """
    return _FAMILY.at("sf", _survival, x, a, loc=loc, scale=scale)
