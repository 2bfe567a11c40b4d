"""The Pareto distribution, with the density ``b / x**(b + 1)`` for ``x >= 1``."""

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


_FAMILY: Final = Family("pareto", ("b",), (1.0,), lambda b: b > 0, low=1.0, typical=2.0)


def _log_density(y: Any, b: Any) -> Any:
    return lax.log(b) - (b + 1) * lax.log(y)


def _log_survival(y: Any, b: Any) -> Any:
    return -b * lax.log(y)


def _survival(y: Any, b: Any) -> Any:
    return lax.exp(_log_survival(y, b))


def _probability(y: Any, b: Any) -> Any:
    return -lax.expm1(_log_survival(y, b))


def _log_probability(y: Any, b: Any) -> Any:
    return log1mexp(-_log_survival(y, b))


def _quantile(q: Any, b: Any) -> Any:
    return lax.exp(-lax.log1p(-q) / b)


@compiled
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the Pareto distribution.

    Args:
        x: values; array or scalar of a real dtype.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, below 1, nan where a parameter
        is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.logpdf(2.5, 1.5):.4f}")
        -1.8853
    """
    return _FAMILY.at("logpdf", _log_density, x, b, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the Pareto distribution.

    Args:
        x: values; array or scalar of a real dtype.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, below 1, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.pdf(2.5, 1.5):.4f}")
        0.1518
    """
    return _FAMILY.at("pdf", _log_density, x, b, loc=loc, scale=scale)


@compiled
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `cdf`, without its underflow.

    Args:
        x: values; array or scalar of a real dtype.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.logcdf(2.5, 1.5):.4f}")
        -0.2917
    """
    return _FAMILY.at("logcdf", _log_probability, x, b, loc=loc, scale=scale)


@compiled
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of `sf`, without its underflow.

    Args:
        x: values; array or scalar of a real dtype.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.logsf(2.5, 1.5):.4f}")
        -1.3744
    """
    return _FAMILY.at("logsf", _log_survival, x, b, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Pareto distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.cdf(2.5, 1.5):.4f}")
        0.7470
    """
    return _FAMILY.at("cdf", _probability, x, b, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Pareto distribution exceeds `x`.

    Args:
        x: values; array or scalar of a real dtype.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.sf(2.5, 1.5):.4f}")
        0.2530
    """
    return _FAMILY.at("sf", _survival, x, b, loc=loc, scale=scale)


@compiled
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantiles of the Pareto distribution: the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1; array or scalar.
        b: shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.pareto.ppf(0.25, 1.5):.4f}")
        1.2114
    """
    return _FAMILY.quantile("ppf", _quantile, q, b, loc=loc, scale=scale)
