"""The error function, its complement, and their inverses."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.normal_distribution import normal_quantile
from dovetail.scipy.special.operands import computed, real_operands
from dovetail.typing import Array, ArrayLike


@compiled
def erf(x: ArrayLike) -> Array:
    """The error function. Source: DLMF 7.2.1.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> from dovetail.scipy.special import erf
        >>> print(f"{erf(0.5):.4f}")
        0.5205
    """
    return lax.erf(*real_operands("erf", x=x))


@compiled
def erfc(x: ArrayLike) -> Array:
    """One minus the error function, without cancellation. Source: DLMF 7.2.2.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> from dovetail.scipy.special import erfc
        >>> print(f"{erfc(0.5):.4f} {erfc(9.):.4g}")
        0.4795 4.137e-37
    """
    return lax.erfc(*real_operands("erfc", x=x))


@compiled
def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`; nan outside [-1, 1].

    Example:
        >>> from dovetail.scipy.special import erfinv
        >>> print(f"{erfinv(0.5):.4f} {erfinv(-1.):.4f}")
        0.4769 -inf
    """
    return lax.erf_inv(*real_operands("erfinv", x=x))


def _erfcinv(y: Any) -> Any:
    # One minus `y` is exact there, or close to one half or more.
    near = (y > 0.3) & (y < 1.85)
    centre = lax.erf_inv(jnp.where(near, 1 - y, 0))
    return jnp.where(near, centre, normal_quantile(jnp.where(near, 1, y) / 2) * -math.sqrt(0.5))


@compiled
def erfcinv(y: ArrayLike) -> Array:
    """The inverse of `erfc`, accurate near 0.

    It is `erfinv` of ``1 - y``, and in the tails ``-ndtri(y / 2) / sqrt(2)``.

    Args:
        y: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `y`; nan outside [0, 2].

    Example:
        >>> from dovetail.scipy.special import erfcinv
        >>> print(f"{erfcinv(0.5):.4f} {erfcinv(1e-30):.4f}")
        0.4769 8.1486
    """
    return computed(_erfcinv, real_operands("erfcinv", y=y), weak=False)
