"""The negative binomial distribution: how many trials fail before `n` succeed.

The probabilities are ``gamma(k + n) / (k! gamma(n)) * p**n * (1 - p)**k``.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import betaln, xlog1py
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


def _valid(n: Any, p: Any) -> Any:
    return (n > 0) & (p > 0) & (p <= 1)


_FAMILY: Final = Family("nbinom", ("n", "p"), (1.0, 0.5), _valid, low=0.0, discrete=True)


def _log_probability(k: Any, n: Any, p: Any) -> Any:
    ways = -betaln(k + 1, n) - lax.log(k + n)
    return ways + n * lax.log(p) + xlog1py(k, -p)


@compiled
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithms of the probabilities of the negative binomial distribution.

    Args:
        k: values; array or scalar of a real dtype.
        n: number of successes, positive.
        p: chance of success, above 0 and at most 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: -inf outside the support, of integers from 0 on, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.nbinom.logpmf(2, 5, 0.25):.4f}")
        -4.7988
    """
    return _FAMILY.at("logpmf", _log_probability, k, n, p, loc=loc)


@compiled
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probabilities of the negative binomial distribution.

    Args:
        k: values; array or scalar of a real dtype.
        n: number of successes, positive.
        p: chance of success, above 0 and at most 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: 0 outside the support, of integers from 0 on, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.nbinom.pmf(2, 5, 0.25):.4f}")
        0.0082
    """
    return _FAMILY.at("pmf", _log_probability, k, n, p, loc=loc)
