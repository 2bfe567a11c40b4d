"""The binomial distribution with a chance of success from a beta distribution."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import betaln
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


def _valid(n: Any, a: Any, b: Any) -> Any:
    return (n >= 0) & (lax.floor(n) == n) & (a > 0) & (b > 0)


def _trials(n: Any, a: Any, b: Any) -> Any:
    return n


_FAMILY: Final = Family(
    "betabinom", ("n", "a", "b"), (1.0, 1.0, 1.0), _valid, low=0.0, high=_trials, discrete=True
)


def _log_probability(k: Any, n: Any, a: Any, b: Any) -> Any:
    ways = -betaln(n - k + 1, k + 1) - lax.log1p(n)
    return ways + betaln(k + a, n - k + b) - betaln(a, b)


@compiled
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithms of the probabilities of the beta-binomial distribution.

    Args:
        k: values; array or scalar of a real dtype.
        n: number of trials, not negative.
        a: first shape parameter of the beta distribution, positive.
        b: second shape parameter of the beta distribution, positive.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: -inf outside the support, of integers from 0 to `n`, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.betabinom.logpmf(2, 5, 1.5, 2.5):.4f}")
        -1.5154
    """
    return _FAMILY.at("logpmf", _log_probability, k, n, a, b, loc=loc)


@compiled
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probabilities of the beta-binomial distribution.

    Args:
        k: values; array or scalar of a real dtype.
        n: number of trials, not negative.
        a: first shape parameter of the beta distribution, positive.
        b: second shape parameter of the beta distribution, positive.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: 0 outside the support, of integers from 0 to `n`, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.betabinom.pmf(2, 5, 1.5, 2.5):.4f}")
        0.2197
    """
    return _FAMILY.at("pmf", _log_probability, k, n, a, b, loc=loc)
