"""The von Mises distribution of angles.

Its density is ``exp(kappa * cos(x)) / (2 pi I0(kappa))``.
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


_FAMILY: Final = Family("vonmises", ("kappa",), (1.0,), lambda kappa: kappa >= 0)


def _log_density(y: Any, kappa: Any) -> Any:
    # Without the greatest value of the exponential, which would overflow; its logarithm is kappa.
    smaller = -2 * kappa * lax.square(lax.sin(y / 2))
    return smaller - math.log(2 * math.pi) - lax.log(lax.bessel_i0e(kappa))


@compiled
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Logarithm of the density of the von Mises distribution.

    Args:
        x: values; array or scalar of a real dtype.
        kappa: concentration, not negative; 0 gives the uniform distribution.

    Returns:
        A float array of the common shape: -inf outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.vonmises.logpdf(0.5, 1.5):.4f}")
        -1.0203
    """
    return _FAMILY.at("logpdf", _log_density, x, kappa)


@compiled
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Density of the von Mises distribution.

    Args:
        x: values; array or scalar of a real dtype.
        kappa: concentration, not negative; 0 gives the uniform distribution.

    Returns:
        A float array of the common shape: 0 outside the support, nan where a parameter is out of
        its range.

    Raises:
        TypeError: an argument is complex, or no array or scalar.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.vonmises.pdf(0.5, 1.5):.4f}")
        0.3605
    """
    return _FAMILY.at("pdf", _log_density, x, kappa)
