"""The generalised normal distribution.

Its density is ``beta * exp(-|x|**beta) / (2 * gamma(1 / beta))``.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.special import gammainc, gammaincc, gammaln
from dovetail.scipy.stats._families import Family, choose
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("gennorm", ("beta",), (1.0,), lambda beta: beta > 0)


def _power(y: Any, beta: Any) -> Any:
    # The derivative at 0 is 0: the power has a logarithm in it, which has none.
    zero = y == 0
    return choose(zero, 0, lax.exp(beta * lax.log(choose(zero, 1, lax.abs(y)))))


def _log_density(y: Any, beta: Any) -> Any:
    return lax.log(beta / 2) - gammaln(1 / beta) - _power(y, beta)


def _probability(y: Any, beta: Any) -> Any:
    power, order = _power(y, beta), 1 / beta
    return pick(y < 0, gammaincc(order, power), 1 + gammainc(order, power)) / 2


@compiled
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Logarithm of the density of the generalised normal distribution.

    Args:
        x: values; array or scalar of a real dtype.
        beta: shape parameter, positive: 1 gives the Laplace distribution, 2 a normal one.

    Returns:
        A float array of the common shape: -inf outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gennorm.logpdf(0.5, 1.5):.4f}")
        -0.9444
    """
    return _FAMILY.at("logpdf", _log_density, x, beta)


@compiled
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Density of the generalised normal distribution.

    Args:
        x: values; array or scalar of a real dtype.
        beta: shape parameter, positive: 1 gives the Laplace distribution, 2 a normal one.

    Returns:
        A float array of the common shape: 0 outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gennorm.pdf(0.5, 1.5):.4f}")
        0.3889
    """
    return _FAMILY.at("pdf", _log_density, x, beta)


@compiled
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Probability that a value of the generalised normal distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        beta: shape parameter, positive: 1 gives the Laplace distribution, 2 a normal one.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.gennorm.cdf(0.5, 1.5):.4f}")
        0.7417
    """
    return _FAMILY.at("cdf", _probability, x, beta)
