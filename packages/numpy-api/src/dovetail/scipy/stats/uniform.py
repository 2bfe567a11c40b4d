"""The uniform distribution from 0 to 1."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("uniform", low=0.0, high=1.0, typical=0.5)


def _log_density(y: Any) -> Any:
    return lax.full_like(y, 0)


def _same(y: Any) -> Any:
    return y


@compiled
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the uniform distribution.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, which its ends belong to, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.uniform.logpdf(0.5, 0, 2):.4f}")
        -0.6931
    """
    return _FAMILY.at("logpdf", _log_density, x, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the uniform distribution.

    Args:
        x: values; array or scalar of a real dtype.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, which its ends belong to, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.uniform.pdf(0.5, 0, 2):.4f}")
        0.5000
    """
    return _FAMILY.at("pdf", _log_density, x, loc=loc, scale=scale)


@compiled
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the uniform distribution is at most `x`.

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
        >>> print(f"{stats.uniform.cdf(0.5, 0, 2):.4f}")
        0.2500
    """
    return _FAMILY.at("cdf", _same, x, loc=loc, scale=scale)


@compiled
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantiles of the uniform distribution: the inverse of `cdf`.

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
        >>> print(f"{stats.uniform.ppf(0.5, 0, 2):.4f}")
        1.0000
    """
    return _FAMILY.quantile("ppf", _same, q, loc=loc, scale=scale)
