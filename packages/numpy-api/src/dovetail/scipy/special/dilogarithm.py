"""The dilogarithm."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import jvp, lax
from dovetail import numpy as jnp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.chebyshev_series import chebyshev_between
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import real_operands
from dovetail.typing import Array, ArrayLike

# spence(1 + u) / u in u, between -0.5 and 0.5: Chebyshev coefficients computed with 45 digits from
# the values at 50 nodes, to 4e-18 of the function.
_SPENCE: Final = (
    -1.0149416064096537,
    0.13148012838765802,
    -0.015313452518102082,
    0.002272188943655959,
    -0.00038516199300815945,
    7.103404374209115e-05,
    -1.3885622487404779e-05,
    2.8323954583854513e-06,
    -5.968314737835964e-07,
    1.2902312437546724e-07,
    -2.8475309127972237e-08,
    6.392641519505728e-09,
    -1.4558235675968631e-09,
    3.356030027905024e-10,
    -7.818019409066589e-11,
    1.8379324194103908e-11,
    -4.355524622917214e-12,
    1.0395111785603755e-12,
    -2.496666278162975e-13,
    6.030470288343577e-14,
    -1.4640624936086265e-14,
    3.570903196070032e-15,
    -8.746346791364233e-16,
    2.1505456792131715e-16,
    -5.3064798693556575e-17,
    1.3136479985932125e-17,
)


def _spence_formula(x: Any) -> Any:
    """DLMF, 25.12.4 and 25.12.6, bring the argument to within 0.5 of 1."""
    inverted = x > 1.5
    y = jnp.where(inverted, 1 / x, x)
    reflected = y < 0.5
    distance = jnp.where(reflected, y, jnp.where(inverted, (x - 1) / x, 1 - x))
    # The factors are such that the result at 1 is not -0.
    result = distance * -chebyshev_between(_SPENCE, -0.5, 0.5, -distance)
    logarithm = lax.log(x)
    inner = jnp.where(inverted, -logarithm, logarithm)
    # At 0 the logarithm is infinite, and its product with y is 0.
    product = jnp.where(y > 0, inner * lax.log1p(-jnp.where(reflected, y, 0.0)), 0.0)
    result = jnp.where(reflected, math.pi**2 / 6 - product - result, result)
    result = jnp.where(inverted, -result - logarithm * logarithm / 2, result)
    return jnp.where((x >= 0) & (x < jnp.inf), result, jnp.nan)


def _slope_formula(x: Any) -> Any:
    near = jvp(_spence_formula, (x,), (jnp.ones_like(x),))[1]
    return jnp.where(x < 0.4, lax.log(x) / (1 - x), near)


_spence = in_double(_spence_formula, {0: in_double(_slope_formula)})


@compiled
def spence(x: ArrayLike) -> Array:
    """Spence's function, the dilogarithm of ``1 - x``: the integral of ``log(t) / (1 - t)`` from 1.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`; not a number below 0.

    Raises:
        TypeError: `x` is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 25.12.

    Differs:
        Every real dtype is taken, where JAX takes float32 and float64 alone.

        >>> from dovetail.scipy.special import spence
        >>> print(f"{spence(2):.4f}")
        -0.8225

    Example:
        >>> from dovetail.scipy.special import spence
        >>> print(f"{spence(0.0):.5f} {spence(1.0):.1f}")
        1.64493 0.0
    """
    return _spence(*real_operands("spence", x=x))
