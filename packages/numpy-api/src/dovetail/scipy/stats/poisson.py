"""The Poisson distribution, with the probabilities ``mu**k * exp(-mu) / k!``."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.extend.arguments import broadcast_ranks
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.special import gammaincc, gammaln, xlogy
from dovetail.scipy.stats._families import Family, choose, exp_of_log, finished, real_operands
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family(
    "poisson", ("mu",), (1.0,), lambda mu: mu >= 0, low=0.0, typical=1.0, discrete=True
)


def _log_probability(k: Any, mu: Any) -> Any:
    return xlogy(k, mu) - gammaln(k + 1) - mu


def _up_to(k: Any, mu: Any) -> Any:
    return gammaincc(lax.floor(k) + 1, mu)


def _entropy_by_sum(mu: Any) -> Any:
    k = lax.broadcasted_iota(mu.dtype, (*mu.shape, 320), mu.ndim)
    logs = _log_probability(k, mu[..., None])
    known = logs > -math.inf
    return -lax.reduce_sum(exp_of_log(logs) * choose(~known, 0, logs), (mu.ndim,))


def _entropy_by_series(mu: Any) -> Any:
    # Evans, Boersma, Blachman and Jagers, The entropy of a Poisson distribution, SIAM Review 30
    # (1988): powers of 1 / mu.
    r = 1 / mu
    terms = r * (1 / 12 + r * (1 / 24 + r * (19 / 360 + r * (9 / 80 + r * 863 / 2520))))
    return (math.log(2 * math.pi) + 1 + lax.log(mu)) / 2 - terms


@compiled
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithms of the probabilities of the Poisson distribution.

    Args:
        k: values; array or scalar of a real dtype.
        mu: mean, not negative.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: -inf outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.poisson.logpmf(2, 1.5):.4f}")
        -1.3822
    """
    return _FAMILY.at("logpmf", _log_probability, k, mu, loc=loc)


@compiled
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probabilities of the Poisson distribution.

    Args:
        k: values; array or scalar of a real dtype.
        mu: mean, not negative.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: 0 outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.poisson.pmf(2, 1.5):.4f}")
        0.2510
    """
    return _FAMILY.at("pmf", _log_probability, k, mu, loc=loc)


@compiled
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability that a value of the Poisson distribution is at most `k`.

    Args:
        k: values; array or scalar of a real dtype.
        mu: mean, not negative.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.poisson.cdf(2, 1.5):.4f}")
        0.8088
    """
    return _FAMILY.at("cdf", _up_to, k, mu, loc=loc)


@compiled
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Entropy of the Poisson distribution, in nats.

    Args:
        mu: mean, not negative.
        loc: shift of the distribution. It changes nothing.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.poisson.entropy(1.5):.4f}")
        1.5394
    """
    function = "poisson.entropy"
    operands, dtype, weak = real_operands(function, ("mu", "loc"), (mu, loc))
    mean, shift = broadcast_ranks(function, operands)
    valid = (mean >= 0) & (shift == shift)
    mean = mean + lax.full_like(shift, 0)
    # Above this mean a series has all digits, below it a sum.
    limit = 30.0 if mean.dtype == "float32" else 150.0
    large = mean > limit
    small = _entropy_by_sum(choose(large | ~valid, 1, mean))
    series = _entropy_by_series(choose(~large | (mean == math.inf), limit, mean))
    series = choose(mean == math.inf, math.inf, series)
    return finished(choose(~valid, math.nan, pick(large, series, small)), dtype, weak)
