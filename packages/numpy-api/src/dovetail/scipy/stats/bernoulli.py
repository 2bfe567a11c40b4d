"""The Bernoulli distribution: 1 with the probability `p`, or else 0."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.special import xlog1py, xlogy
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def __dir__() -> list[str]:
    return __all__


def _valid(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


_FAMILY: Final = Family("bernoulli", ("p",), (0.5,), _valid, low=0.0, high=1.0, discrete=True)


def _log_probability(k: Any, p: Any) -> Any:
    return xlogy(k, p) + xlog1py(1 - k, -p)


def _up_to(k: Any, p: Any) -> Any:
    return pick(k < 1, 1 - p, lax.full_like(p, 1))


def _quantile(q: Any, p: Any) -> Any:
    return pick(q <= 1 - p, lax.full_like(q, 0), lax.full_like(q, 1))


@compiled
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithms of the probabilities of the Bernoulli distribution.

    Args:
        k: values; array or scalar of a real dtype.
        p: chance of success, from 0 to 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: -inf outside the support, 0 and 1, nan where a parameter
        is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.bernoulli.logpmf(1, 0.25):.4f}")
        -1.3863
    """
    return _FAMILY.at("logpmf", _log_probability, k, p, loc=loc)


@compiled
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probabilities of the Bernoulli distribution.

    Args:
        k: values; array or scalar of a real dtype.
        p: chance of success, from 0 to 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: 0 outside the support, 0 and 1, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.bernoulli.pmf(1, 0.25):.4f}")
        0.2500
    """
    return _FAMILY.at("pmf", _log_probability, k, p, loc=loc)


@compiled
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Probability that a value of the Bernoulli distribution is at most `k`.

    Args:
        k: values; array or scalar of a real dtype.
        p: chance of success, from 0 to 1.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.bernoulli.cdf(0, 0.25):.4f}")
        0.7500
    """
    return _FAMILY.at("cdf", _up_to, k, p)


@compiled
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Quantiles of the Bernoulli distribution: the inverse of `cdf`.

    Args:
        q: probabilities, from 0 to 1; array or scalar.
        p: chance of success, from 0 to 1.

    Returns:
        A float array of the common shape: nan where a probability is none, nan where a parameter is
        out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.bernoulli.ppf(0.9, 0.25):.4f}")
        1.0000
    """
    return _FAMILY.quantile("ppf", _quantile, q, p)
