"""Elementwise entropies: terms of sums over distributions."""

from __future__ import annotations

import math
from typing import Any

from dovetail import custom_jvp, lax
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.operands import computed, real_operands, where
from dovetail.typing import Array, ArrayLike


@custom_jvp
def _entr(x: Any) -> Any:
    positive = x > 0
    term = -x * lax.log(where(positive, x, 1))
    return where(positive, term, where(x < 0, -math.inf, x))


@_entr.defjvp
def _entr_jvp(primals: Any, tangents: Any) -> Any:
    (x,) = primals
    slope = -1 - lax.log(where(x < 0, 1, x))
    return _entr(x), tangents[0] * where(x < 0, 0, slope)


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
