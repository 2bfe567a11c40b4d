"""The wrapped Cauchy distribution of angles from 0 to 2 pi.

Its density is ``(1 - c**2) / (2 pi (1 + c**2 - 2 c cos(x)))``.
"""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.stats._families import Family
from dovetail.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


def _between(c: Any) -> Any:
    return (c > 0) & (c < 1)


_FAMILY: Final = Family(
    "wrapcauchy", ("c",), (0.5,), _between, low=0.0, high=2 * math.pi, typical=1.0
)


def _log_density(y: Any, c: Any) -> Any:
    # The denominator as a sum of squares, so that nothing cancels where c is almost 1.
    spread = lax.square(1 - c) + 4 * c * lax.square(lax.sin(y / 2))
    return lax.log1p(-c) + lax.log1p(c) - math.log(2 * math.pi) - lax.log(spread)


@compiled
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Logarithm of the density of the wrapped Cauchy distribution.

    Args:
        x: values; array or scalar of a real dtype.
        c: shape parameter, between 0 and 1.

    Returns:
        A float array of the common shape: -inf outside the support, from 0 to 2 pi, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.wrapcauchy.logpdf(1.0, 0.5):.4f}")
        -1.7826
    """
    return _FAMILY.at("logpdf", _log_density, x, c)


@compiled
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Density of the wrapped Cauchy distribution.

    Args:
        x: values; array or scalar of a real dtype.
        c: shape parameter, between 0 and 1.

    Returns:
        A float array of the common shape: 0 outside the support, from 0 to 2 pi, nan where a
        parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.wrapcauchy.pdf(1.0, 0.5):.4f}")
        0.1682
    """
    return _FAMILY.at("pdf", _log_density, x, c)
