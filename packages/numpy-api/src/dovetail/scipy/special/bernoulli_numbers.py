"""Bernoulli numbers."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np

from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import integer
from dovetail.typing import Array

#: The last number that float64 holds.
_LAST = 258
#: The last number that is made: all beyond `_LAST` are infinite or 0.
_MOST = 2**24


@functools.cache
def _numbers(count: int) -> tuple[float, ...]:
    """The numbers of even order from 0 on, by the tangent numbers, which are whole.

    Source: R. P. Brent and D. Harvey, Fast computation of Bernoulli, tangent and secant numbers
    (2013), algorithm TangentNumbers and equation 14.
    """
    tangents = [math.factorial(k) for k in range(count)]
    for start in range(1, count):
        for k in range(start, count):
            factor = k - start
            tangents[k] = factor * tangents[k - 1] + (factor + 2) * tangents[k]
    result = [1.0]
    for n, tangent in enumerate(tangents, 1):
        power = 4**n
        size = Fraction(2 * n * tangent, power * (power - 1))
        result.append(float(size) * (-1) ** (n - 1))
    return tuple(result)


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers from 0 to `n`, with -1/2 as the one of order 1.

    Source: R. P. Brent and D. Harvey, Fast computation of Bernoulli, tangent and secant numbers
    (2013). They are computed exactly, and rounded once.

    Args:
        n: order of the last number: a nonnegative integer.

    Returns:
        An array of ``n + 1`` numbers of the default float dtype; infinite where they overflow.

    Raises:
        TypeError: `n` is no integer.
        ValueError: `n` is negative, or above 2**24.

    Example:
        >>> from dovetail.scipy.special import bernoulli
        >>> print(", ".join(f"{number:.4f}" for number in bernoulli(4)))
        1.0000, -0.5000, 0.1667, 0.0000, -0.0333
    """
    last = integer("bernoulli", "n", n)
    if last < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {last}")
    if last > _MOST:
        raise ValueError(f"bernoulli: n must be {_MOST} or less, got {last}")
    order = np.arange(last + 1)
    # Of the others, only the sign is known.
    values = np.where(order % 2 == 0, np.where(order % 4 == 0, -np.inf, np.inf), 0.0)
    known = np.array(_numbers(_LAST // 2))[: last // 2 + 1]
    values[: 2 * len(known) : 2][: len(known)] = known
    if last >= 1:
        values[1] = -0.5
    with np.errstate(over="ignore", under="ignore"):
        return jnp.asarray(values.astype(dtypes.default_dtype("f")))
