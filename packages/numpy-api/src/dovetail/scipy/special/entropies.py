"""Elementwise entropies: terms of sums over distributions."""

from __future__ import annotations

import math
from typing import Any

from dovetail import custom_jvp, lax
from dovetail import numpy as jnp
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import DOUBLE, computed, of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike


@custom_jvp
def _entr(x: Any) -> Any:
    positive = x > 0
    term = -x * lax.log(jnp.where(positive, x, 1))
    return jnp.where(positive, term, jnp.where(x < 0, -math.inf, x))


@_entr.defjvp
def _entr_jvp(primals: Any, tangents: Any) -> Any:
    (x,) = primals
    slope = -1 - lax.log(jnp.where(x < 0, 1, x))
    return _entr(x), tangents[0] * jnp.where(x < 0, math.nan, slope)


@compiled
def entr(x: ArrayLike) -> Array:
    """The term of an entropy: ``-x * log(x)``, 0 at 0, -inf below.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> from dovetail.scipy.special import entr
        >>> print(jnp.round(entr(jnp.array([-1., 0., 0.5, 1.])), 4))
        [  -inf 0.     0.3466 -0.    ]
    """
    return computed(_entr, real_operands("entr", x=x))


def _logarithm_of_quotient(p: Any, q: Any) -> Any:
    """``log(p / q)`` of positive numbers, which may be close to each other or far apart."""
    quotient = p / q
    near = (quotient > 0.5) & (quotient < 2)
    known = (quotient > 1e-30) & (quotient < 1e30)
    far = jnp.where(known, lax.log(quotient), lax.log(p) - lax.log(q))
    return jnp.where(near, lax.log1p((p - q) / q), far)


def _inside(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Where both operands are positive, and the operands there."""
    inside = (p > 0) & (q > 0)
    return inside, jnp.where(inside, p, 1), jnp.where(inside, q, 1)


def _outside(p: Any, q: Any, at_zero: Any) -> Any:
    """What both functions are where an operand is not positive."""
    unknown = (p != p) | (q != q)
    return jnp.where(unknown, math.nan, jnp.where((p == 0) & (q >= 0), at_zero, math.inf))


@custom_jvp
def _rel_entr(p: Any, q: Any) -> Any:
    inside, a, b = _inside(p, q)
    return jnp.where(inside, a * _logarithm_of_quotient(a, b), _outside(p, q, 0.0))


@_rel_entr.defjvp
def _rel_entr_jvp(primals: Any, tangents: Any) -> Any:
    p, q = primals
    first = lax.log(p / q) + 1
    return _rel_entr(p, q), tangents[0] * first - tangents[1] * (p / q)


@compiled
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The term of a relative entropy: ``p * log(p / q)``.

    Args:
        p: array or scalar of a real dtype.
        q: array or scalar that broadcasts with `p`.

    Returns:
        A float array of the common shape: 0 where `p` is 0 and `q` is not negative; inf where an
        operand is negative, or only `q` is 0.

    Example:
        >>> from dovetail.scipy.special import rel_entr
        >>> print(jnp.round(rel_entr(jnp.array([0., 0.5, 1.]), jnp.array([1., 0.25, 0.])), 4))
        [0.     0.3466    inf]
    """
    return computed(_rel_entr, of_one_shape(real_operands("rel_entr", p=p, q=q)))


def _kl_div_formula(p: Any, q: Any) -> Any:
    inside, a, b = _inside(p, q)
    distance = (a - b) / b
    near = abs(distance) < 0.25
    small = jnp.where(near, distance, 0)
    # (1 + d) log(1 + d) - d is the sum of (-d)**k / (k (k - 1)) from k = 2 on.
    series = jnp.full_like(p, 0)
    for k in range(28, 1, -1):
        series = 1 / (k * (k - 1)) - small * series
    far = a * _logarithm_of_quotient(a, b) - a + b
    return jnp.where(inside, jnp.where(near, b * small * small * series, far), _outside(p, q, q))


def _kl_div_slope(p: Any, q: Any) -> Any:
    inside, a, b = _inside(p, q)
    return jnp.where(inside, _logarithm_of_quotient(a, b), lax.log(p / q))


def _single_kl_div_formula(p: Any, q: Any) -> Any:
    """Of float32 in float64: quotients are in range, and half of the digits may be lost."""
    inside, a, b = _inside(p, q)
    distance = (a - b) / b
    near = abs(distance) < 2**-8
    small = jnp.where(near, distance, 0)
    series = 1 / 2 - small * (1 / 6 - small * (1 / 12 - small / 20))
    found = jnp.where(near, b * small * small * series, a * lax.log(a / b) - (a - b))
    return jnp.where(inside, found, _outside(p, q, q))


_slopes = {0: _kl_div_slope, 1: lambda p, q: (q - p) / q}
_of_single: Any = in_double(_single_kl_div_formula, _slopes)
_of_double: Any = in_double(_kl_div_formula, _slopes)


def _kl_div(p: Any, q: Any) -> Any:
    return (_of_double if aval_of(p).dtype == DOUBLE else _of_single)(p, q)


@compiled
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The term of a divergence of Kullback and Leibler: ``p * log(p / q) - p + q``.

    It is computed in float64, and by its power series where the operands are close.

    Args:
        p: array or scalar of a real dtype.
        q: array or scalar that broadcasts with `p`.

    Returns:
        A float array of the common shape, never negative: `q` where `p` is 0; inf where an operand
        is negative, or only `q` is 0.

    Example:
        >>> from dovetail.scipy.special import kl_div
        >>> print(f"{kl_div(1., 2.):.4f} {kl_div(1.25, 1.):.4f}")
        0.3069 0.0289
    """
    return computed(_kl_div, of_one_shape(real_operands("kl_div", p=p, q=q)))
