"""The zeta functions of Riemann and Hurwitz."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

from dovetail import jvp, lax
from dovetail import numpy as jnp
from dovetail.extend.arguments import convert, weak_of
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.chebyshev_series import chebyshev_between
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike

# (s - 1) zeta(s) from 0 to 1: Chebyshev coefficients computed with 45 digits from the values at 40
# nodes, to 4e-18 of the function.
_ZETA: Final = (
    0.7400933857846578,
    0.2501206253988943,
    0.009911375021353608,
    -0.0001208475965667641,
    -4.7585866367662555e-06,
    2.2229946694466392e-07,
    -2.2237496498030257e-09,
    -1.0173226513229029e-10,
    4.375664345042456e-12,
    -6.222963259310055e-14,
    -6.611620100327221e-16,
    4.947727953337391e-17,
)
#: Terms of the sum, and B(2 j) / (2 j)! for the correction of Euler and Maclaurin.
_TERMS: Final = 12
_CORRECTIONS: Final = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
)


def _power(q: Any, s: Any) -> Any:
    """``abs(q) ** -s``, differentiable in s."""
    return lax.exp(-s * lax.log(lax.abs(q)))


def _series(s: Any, q: Any) -> Any:
    """The Hurwitz zeta function for positive q, by the formula of Euler and Maclaurin.

    NIST Digital Library of Mathematical Functions (DLMF), 25.11.5.
    """
    total = jnp.zeros_like(s)
    for k in range(_TERMS):
        total = total + _power(q + k, s)
    end = q + _TERMS
    last = _power(end, s)
    total = total + last * end / (s - 1) + last / 2
    factor = s / end
    for j, correction in enumerate(_CORRECTIONS):
        total = total + correction * factor * last
        factor = factor * (s + (2 * j + 1)) / end * (s + (2 * j + 2)) / end
    return total


@functools.cache
def _exponent_derivative(order: int) -> Callable[..., Any]:
    """A derivative of the Hurwitz zeta function with respect to the exponent."""

    def formula(s: Any, q: Any) -> Any:
        function = _series
        for _ in range(order):
            function = _derivative(function)
        result = function(s, q)
        result = jnp.where(s == 1, (-1.0) ** order * jnp.inf, result)
        # Derivatives are not defined where a power of a negative number is not.
        return jnp.where((s >= 1) & (q > 0) & (s < jnp.inf), result, jnp.nan)

    def in_exponent(s: Any, q: Any) -> Any:
        return _exponent_derivative(order + 1)(s, q)

    def in_shift(s: Any, q: Any) -> Any:
        product = lax.neg(lax.mul(s, _exponent_derivative(order)(s + 1, q)))
        return product - order * _lower(order, s + 1, q)

    return in_double(formula, {0: in_exponent, 1: in_shift})


def _lower(order: int, s: Any, q: Any) -> Any:
    return _hurwitz(s, q) if order == 1 else _exponent_derivative(order - 1)(s, q)


def _derivative(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda s, q: jvp(lambda s: function(s, q), (s,), (jnp.ones_like(s),))[1]


def _hurwitz_formula(s: Any, q: Any) -> Any:
    return lax.zeta(s, q)


_hurwitz: Any = in_double(
    _hurwitz_formula,
    {
        0: lambda s, q: _exponent_derivative(1)(s, q),
        1: lambda s, q: lax.neg(lax.mul(s, _hurwitz(s + 1, q))),
    },
)


def _riemann_formula(s: Any) -> Any:
    above = _right(jnp.where(s > 1, s, 2.0))
    within = chebyshev_between(_ZETA, 0.0, 1.0, s) / (s - 1)
    # DLMF, 25.4.1, with the product of the powers and the gamma function in two halves.
    t = jnp.where(s < 0, 1 - s, 2.0)
    root = lax.exp((lax.lgamma(t) - t * math.log(2 * math.pi)) / 2)
    four = 4.0 + 0 * s
    turns = lax.rem(s, four)
    sine = _sine_of_quarters(turns)
    below = (root * (2 * sine * _right(t))) * root
    result = jnp.where(s > 1, above, jnp.where(s >= 0, within, below))
    result = jnp.where(s == jnp.inf, 1.0, jnp.where(s == 1, jnp.inf, result))
    return jnp.where(s > -jnp.inf, result, jnp.nan)


def _right(s: Any) -> Any:
    """The function to the right of 1."""
    return jnp.where(s < 64, _series(jnp.where(s < 64, s, 2.0), jnp.ones_like(s)), 1.0 + 0 * s)


def _sine_of_quarters(turns: Any) -> Any:
    """The sine of quarter turns between -4 and 0."""
    folded = jnp.where(turns < -3, turns + 4, jnp.where(turns < -1, -2 - turns, turns))
    return lax.sin((math.pi / 2) * folded)


_riemann = in_double(_riemann_formula)


@compiled
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function, the sum of ``(q + k) ** -x`` for k from 0, or that of Riemann.

    Args:
        x: exponent: array or scalar of a real dtype. At 1 the function is infinite; below, only the
            function of Riemann is defined.
        q: shift: array or scalar of a real dtype. If None, the function is that of Riemann, which
            has ``q = 1``.

    Returns:
        A float array of the common shape.

    Raises:
        TypeError: an argument is complex.

    Source:
        DLMF, 25.11.5 and 25.4.1.

    Differs:
        The function of Riemann, without `q`, is here; in JAX it is not.

        >>> from dovetail.scipy.special import zeta
        >>> print(f"{zeta(2.0):.5f} {zeta(-1.0):.5f}")
        1.64493 -0.08333

    Example:
        >>> from dovetail.scipy.special import zeta
        >>> print(f"{zeta(2.0, 2.0):.5f}")
        0.64493
    """
    if q is None:
        (s,) = real_operands("zeta", x=x)
        return convert(_riemann(s), s.dtype, weak_of(s))
    s, shift = of_one_shape(real_operands("zeta", x=x, q=q))
    return convert(_hurwitz(s, shift), s.dtype, weak_of(s) and weak_of(shift))
