"""The beta function and its logarithm."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.gamma_functions import gamma_sign
from dovetail.scipy.special.operands import computed, real_operands
from dovetail.scipy.special.stirling import STIRLING_START, stirling_correction
from dovetail.typing import Array, ArrayLike


def _off_the_poles(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The lesser and the greater operand, and a sign.

    A lesser one that is a pole is reflected where the sum is a pole as well, so that both cancel:
    ``beta(a, b) = (-1)**b beta(1 - a - b, b)`` for whole numbers `b`, from DLMF 5.5.3.
    """
    swapped = a > b
    small, large = jnp.where(swapped, b, a), jnp.where(swapped, a, b)
    whole = (small == lax.floor(small)) & (large == lax.floor(large))
    cancels = whole & (small <= 0) & (large > 0) & (small + large <= 0)
    half = large / 2
    sign = jnp.where(cancels & (half != lax.floor(half)), -1.0, 1.0)
    reflected = jnp.where(cancels, 1 - small - large, small)
    greater = jnp.where(cancels, lax.max(reflected, large), large)
    return jnp.where(cancels, lax.min(reflected, large), small), greater, sign


def log_of_magnitude(a: Any, b: Any) -> Any:
    """Logarithms of the beta function in float64.

    Where an operand is large, the logarithms of gamma functions cancel; Stirling's series for the
    quotient of two of them does not. Source: A. R. DiDonato and A. H. Morris, Algorithm 708, ACM
    Transactions on Mathematical Software 18 (1992), equations 8 to 11.
    """
    small, large, _ = _off_the_poles(a, b)
    near = lax.lgamma(small) + lax.lgamma(large) - lax.lgamma(small + large)
    far = (large >= STIRLING_START) & (small > 0)
    y = jnp.where(far, large, STIRLING_START)
    x = jnp.where(far, small, 1)
    quotient = lax.log1p(x / y)
    difference = stirling_correction(y) - stirling_correction(x + y)
    one_large = lax.lgamma(x) + (difference - (x + y - 0.5) * quotient - x * (lax.log(y) - 1))
    z = lax.max(x, jnp.full_like(x, STIRLING_START))
    both_large = (
        (stirling_correction(z) + difference + math.log(2 * math.pi) / 2 - lax.log(y) / 2)
        - (z - 0.5) * lax.log1p(y / z)
        - y * lax.log1p(z / y)
    )
    result = jnp.where(far, jnp.where(x >= STIRLING_START, both_large, one_large), near)
    # Two poles, of which the lower one is a pole of the sum as well, were replaced; others stay.
    result = jnp.where((small <= 0) & (small == lax.floor(small)), math.inf, result)
    # Infinite operands: the limit, unless the other is zero.
    return jnp.where((large == math.inf) & (small > 0), -math.inf, result)


def _beta_formula(a: Any, b: Any) -> Any:
    small, large, sign = _off_the_poles(a, b)
    sign = sign * gamma_sign(small) * gamma_sign(large) * gamma_sign(small + large)
    magnitude = lax.exp(log_of_magnitude(a, b))
    return jnp.where(magnitude < math.inf, sign * magnitude, magnitude)


def _slope(a: Any, b: Any) -> Any:
    """The derivative of the logarithm in the first operand."""
    return lax.digamma(a) - lax.digamma(a + b)


_betaln = in_double(log_of_magnitude, {0: _slope, 1: lambda a, b: _slope(b, a)})
_beta: Any = in_double(
    _beta_formula,
    {0: lambda a, b: _beta(a, b) * _slope(a, b), 1: lambda a, b: _beta(a, b) * _slope(b, a)},
)


@compiled
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function. Source: DLMF 5.12.1. It is computed in float64.

    Args:
        a: array or scalar of a real dtype.
        b: array or scalar that broadcasts with `a`.

    Returns:
        A float array of the common shape; inf at poles.

    Differs:
        Where poles cancel the value is the limit along the integers, as in SciPy.

        >>> from dovetail.scipy.special import beta
        >>> print(f"{beta(-3., 2.):.4f}")
        0.1667

    Example:
        >>> from dovetail.scipy.special import beta
        >>> print(f"{beta(2., 3.):.4f} {beta(-0.5, 2.):.4f}")
        0.0833 -4.0000
    """
    return computed(_beta, real_operands("beta", a=a, b=b), weak=False)


@compiled
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the magnitude of the beta function.

    It is computed in float64. Large arguments lose no digits: Stirling's series of the quotient
    of two gamma functions replaces the difference of their logarithms.

    Args:
        a: array or scalar of a real dtype.
        b: array or scalar that broadcasts with `a`.

    Returns:
        A float array of the common shape.

    Example:
        >>> from dovetail.scipy.special import betaln
        >>> print(f"{betaln(2., 3.):.4f} {betaln(1e-3, 1e10):.4f}")
        -2.4849 6.8842
    """
    return computed(_betaln, real_operands("betaln", a=a, b=b))


@compiled
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function.

    It is the integral of ``t**(a - 1) * (1 - t)**(b - 1)`` from 0 to `x`, divided by that to 1: the
    distribution function of the beta distribution. It is differentiable in `x` only.

    Args:
        a: array or scalar of a real dtype: nonnegative numbers.
        b: array or scalar that broadcasts with `a`: nonnegative numbers.
        x: array or scalar that broadcasts with both: numbers from 0 to 1.

    Returns:
        A float array of the common shape; nan outside the domain.

    Example:
        >>> from dovetail.scipy.special import betainc
        >>> print(f"{betainc(2, 2, 0.25):.4f}")
        0.1562
    """
    return lax.betainc(*real_operands("betainc", a=a, b=b, x=x))
