"""The geometric distribution: how many trials there are up to the first success.

The probabilities are ``p * (1 - p)**(k - 1)``.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import xlog1py
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


def _valid(p: Any) -> Any:
    return (p > 0) & (p <= 1)


_FAMILY: Final = Family("geom", ("p",), (0.5,), _valid, low=1.0, typical=1.0, discrete=True)


def _log_probability(k: Any, p: Any) -> Any:
    return xlog1py(k - 1, -p) + lax.log(p)


@compiled
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithms of the probabilities of the geometric distribution.

    Args:
        k: values; array or scalar of a real dtype.
        p: chance of success, above 0 and at most 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: -inf outside the support, of integers from 1 on, nan
        where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.geom.logpmf(2, 0.25):.4f}")
        -1.6740
    """
    return _FAMILY.at("logpmf", _log_probability, k, p, loc=loc)


@compiled
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probabilities of the geometric distribution.

    Args:
        k: values; array or scalar of a real dtype.
        p: chance of success, above 0 and at most 1.
        loc: shift of the distribution.

    Returns:
        A float array of the common shape: 0 outside the support, of integers from 1 on, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.geom.pmf(2, 0.25):.4f}")
        0.1875
    """
    return _FAMILY.at("pmf", _log_probability, k, p, loc=loc)
