"""The function of Owen."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.normal_distribution import ndtr
from dovetail.scipy.special.operands import of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike

#: From here on ``exp(-u**2 / 2)`` adds nothing to its integral from 0.
_END: Final = 8.7
#: Points of the quadrature, which is exact to float64 on the interval up to the end.
_POINTS: Final = 40
_ROOT: Final = math.sqrt(0.5)


def _within(h: Any, a: Any) -> Any:
    """The integral for ``0 <= a <= 1`` by the quadrature of Gauss and Legendre."""
    end = jnp.where(a * h > _END, _END / jnp.where(a * h > _END, h, 1.0), a)
    half = h * h / 2
    total = jnp.zeros_like(end)
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        square = lax.square(end * float(node))
        total = total + float(weight) * lax.exp(-half * square) / (1 + square)
    return lax.exp(-half) * (total * end) / (2 * math.pi)


def _owens_formula(h: Any, a: Any) -> Any:
    size, slope = lax.abs(h), lax.abs(a)
    # Far out the function is 0, and products with infinity are kept away.
    bounded = jnp.minimum(size, 1e3)
    steep = slope > 1
    scaled = jnp.where((bounded == 0) & (slope == jnp.inf), 0.0, bounded * slope)
    scaled = jnp.minimum(scaled, 1e3)
    part = _within(
        jnp.where(steep, scaled, bounded),
        jnp.where(steep, 1 / jnp.where(steep, slope, 1.0), slope),
    )
    # D. B. Owen, equation 2.3: the integrals for a and 1 / a together.
    low, high = ndtr(-bounded), ndtr(-scaled)
    result = jnp.where(steep, (low + high) / 2 - low * high - part, part)
    result = jnp.where(a < 0, -result, result)
    return jnp.where((h == h) & (a == a), result, jnp.nan)


def _slope_h(h: Any, a: Any) -> Any:
    product = jnp.where((h == 0) & (lax.abs(a) == jnp.inf), 0.0, h * a)
    density = lax.exp(-h * h / 2) / math.sqrt(8 * math.pi)
    return -density * lax.erf(product * _ROOT)


def _slope_a(h: Any, a: Any) -> Any:
    square = 1 + a * a
    return lax.exp(-h * h * square / 2) / (2 * math.pi * square)


_owens = in_double(_owens_formula, {0: in_double(_slope_h), 1: in_double(_slope_a)})


@compiled
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T: the chance that of two standard normal numbers ``x > h`` and ``0 < y < a * x``.

    Args:
        h: array or scalar of a real dtype.
        a: array or scalar of a real dtype.

    Returns:
        A float array of the common shape.

    Raises:
        TypeError: an argument is complex.

    Source:
        D. B. Owen, Tables for computing bivariate normal probabilities, Annals of Mathematical
        Statistics 27 (1956): the integral of ``exp(-h**2 * (1 + t**2) / 2) / (1 + t**2)`` from 0
        to `a`, over ``2 * pi``.

    Differs:
        An infinite `a` at ``h = 0`` has its limit, a quarter, which in JAX is not a number, and
        complex arguments are refused.

        >>> from dovetail.scipy.special import owens_t
        >>> print(owens_t(0.0, jnp.inf))
        0.25

    Example:
        >>> from dovetail.scipy.special import owens_t
        >>> print(f"{owens_t(1.0, 0.5):.5f}")
        0.04306
    """
    return _owens(*of_one_shape(real_operands("owens_t", h=h, a=a)))
