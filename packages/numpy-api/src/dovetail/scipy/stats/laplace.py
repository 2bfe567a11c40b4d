"""The Laplace distribution, with the density ``exp(-|x|) / 2``."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("laplace")


def _log_density(y: Any) -> Any:
    return -lax.abs(y) - math.log(2)


def _probability(y: Any) -> Any:
    tail = lax.exp(-lax.abs(y)) / 2
    return pick(y < 0, tail, 1 - tail)


@compiled
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the Laplace distribution.

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
        >>> print(f"{stats.laplace.logpdf(0.5):.4f}")
        -1.1931
    """
    return _FAMILY.at("logpdf", _log_density, x, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the Laplace distribution.

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
        >>> print(f"{stats.laplace.pdf(0.5):.4f}")
        0.3033
    """
    return _FAMILY.at("pdf", _log_density, x, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the Laplace distribution is at most `x`.

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
        >>> print(f"{stats.laplace.cdf(0.5):.4f}")
        0.6967
    """
    return _FAMILY.at("cdf", _probability, x, loc=loc, scale=scale)
