"""The beta distribution, with the density ``x**(a - 1) * (1 - x)**(b - 1) / B(a, b)``."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.special import betainc, betaln, xlog1py, xlogy
from dovetail.scipy.stats._families import Family, choose, log_of_probability
from dovetail.typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def __dir__() -> list[str]:
    return __all__


def _positive(a: Any, b: Any) -> Any:
    return (a > 0) & (b > 0)


_FAMILY: Final = Family("beta", ("a", "b"), (1.0, 1.0), _positive, low=0.0, high=1.0, typical=0.5)


def _log_density(y: Any, a: Any, b: Any) -> Any:
    return xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)


def _smaller_tail(y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Whether it is the lower tail, up to the mean, and its probability.

    The other tail is what it lacks to 1: each has the digits that it can have.
    """
    lower = y * (a + b) < a
    result = betainc(pick(lower, a, b), pick(lower, b, a), pick(lower, y, 1 - y))
    return lower, result


def _probability(y: Any, a: Any, b: Any) -> Any:
    lower, tail = _smaller_tail(y, a, b)
    return pick(lower, tail, 1 - tail)


def _survival(y: Any, a: Any, b: Any) -> Any:
    lower, tail = _smaller_tail(y, a, b)
    return pick(lower, 1 - tail, tail)


def _log_probability(y: Any, a: Any, b: Any) -> Any:
    lower, tail = _smaller_tail(y, a, b)
    return pick(
        lower, log_of_probability(choose(~lower, 1, tail)), lax.log1p(-choose(lower, 0, tail))
    )


def _log_survival(y: Any, a: Any, b: Any) -> Any:
    lower, tail = _smaller_tail(y, a, b)
    return pick(
        lower, lax.log1p(-choose(~lower, 0, tail)), log_of_probability(choose(lower, 1, tail))
    )


@compiled
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of the density of the beta distribution.

    Args:
        x: values; array or scalar of a real dtype.
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, from 0 to 1, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.beta.logpdf(0.25, 1.5, 2.5):.4f}")
        0.5032
    """
    return _FAMILY.at("logpdf", _log_density, x, a, b, loc=loc, scale=scale)


@compiled
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Density of the beta distribution.

    Args:
        x: values; array or scalar of a real dtype.
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, from 0 to 1, nan where a parameter
        is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.beta.pdf(0.25, 1.5, 2.5):.4f}")
        1.6540
    """
    return _FAMILY.at("pdf", _log_density, x, a, b, loc=loc, scale=scale)


@compiled
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of `cdf`: -inf where that underflows.

    Args:
        x: values; array or scalar of a real dtype.
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.beta.logcdf(0.25, 1.5, 2.5):.4f}")
        -1.0986
    """
    return _FAMILY.at("logcdf", _log_probability, x, a, b, loc=loc, scale=scale)


@compiled
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Logarithm of `sf`: -inf where that underflows.

    Args:
        x: values; array or scalar of a real dtype.
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.beta.logsf(0.25, 1.5, 2.5):.4f}")
        -0.4055
    """
    return _FAMILY.at("logsf", _log_survival, x, a, b, loc=loc, scale=scale)


@compiled
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Probability that a value of the beta distribution is at most `x`.

    Args:
        x: values; array or scalar of a real dtype.
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.beta.cdf(0.25, 1.5, 2.5):.4f}")
        0.3333
    """
    return _FAMILY.at("cdf", _probability, x, a, b, loc=loc, scale=scale)


@compiled
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability that a value of the beta distribution exceeds `x`.

    Args:
        x: values; array or scalar of a real dtype.
        a: first shape parameter, positive.
        b: second shape parameter, positive.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.beta.sf(0.25, 1.5, 2.5):.4f}")
        0.6667
    """
    return _FAMILY.at("sf", _survival, x, a, b, loc=loc, scale=scale)
