"""The binomial distribution: how many of `n` trials succeed.

The probabilities are ``n! / (k! (n - k)!) * p**k * (1 - p)**(n - k)``.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import betaln, xlog1py, xlogy
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


def _valid(n: Any, p: Any) -> Any:
    return (n >= 0) & (lax.floor(n) == n) & (p >= 0) & (p <= 1)


_FAMILY: Final = Family(
    "binom", ("n", "p"), (1.0, 0.5), _valid, low=0.0, high=lambda n, p: n, discrete=True
)


def _log_probability(k: Any, n: Any, p: Any) -> Any:
    ways = -betaln(n - k + 1, k + 1) - lax.log1p(n)
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


@compiled
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithms of the probabilities of the binomial distribution.

    Args:
        k: values; array or scalar of a real dtype.
        n: number of trials, not negative.
        p: chance of success, from 0 to 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: -inf outside the support, of integers from 0 to `n`, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.binom.logpmf(2, 5, 0.25):.4f}")
        -1.3330
    """
    return _FAMILY.at("logpmf", _log_probability, k, n, p, loc=loc)


@compiled
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probabilities of the binomial distribution.

    Args:
        k: values; array or scalar of a real dtype.
        n: number of trials, not negative.
        p: chance of success, from 0 to 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: 0 outside the support, of integers from 0 to `n`, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.binom.pmf(2, 5, 0.25):.4f}")
        0.2637
    """
    return _FAMILY.at("pmf", _log_probability, k, n, p, loc=loc)
