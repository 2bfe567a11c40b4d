"""Student's t distribution.

Its density is ``(1 + x**2 / df)**(-(df + 1) / 2) / (sqrt(df) * B(1 / 2, df / 2))``.
"""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick
from dovetail.scipy.special import betaln
from dovetail.scipy.stats._families import Family, choose
from dovetail.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


_FAMILY: Final = Family("t", ("df",), (1.0,), lambda df: df > 0)


def _log_density(y: Any, df: Any) -> Any:
    # Without end of `df` it is the normal distribution.
    normal = df == math.inf
    df = choose(normal, 1, df)
    # Squares of great numbers would overflow.
    root = y / lax.sqrt(df)
    great = lax.abs(root) > 1e9
    near = lax.log1p(lax.square(choose(great, 0, root)))
    far = 2 * lax.log(lax.abs(choose(~great, 1, root)))
    power = -(df + 1) / 2 * pick(great, far, near)
    result = power - lax.log(df) / 2 - betaln(df / 2, lax.full_like(df, 0.5))
    return pick(normal, -lax.square(y) / 2 - math.log(2 * math.pi) / 2, result)


@compiled
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density of the Student's t distribution.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive; inf gives the normal distribution.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: -inf outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.t.logpdf(0.5, 2.5):.4f}")
        -1.1834
    """
    return _FAMILY.at("logpdf", _log_density, x, df, loc=loc, scale=scale)


@compiled
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Density of the Student's t distribution.

    Args:
        x: values; array or scalar of a real dtype.
        df: degrees of freedom, positive; inf gives the normal distribution.
        loc: shift of the distribution.
        scale: factor by which the distribution is stretched, positive.

    Returns:
        A float array of the common shape: 0 outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.t.pdf(0.5, 2.5):.4f}")
        0.3062
    """
    return _FAMILY.at("pdf", _log_density, x, df, loc=loc, scale=scale)
