"""Associated Legendre functions."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.errors import ShapeError
from dovetail.extend.arguments import integer
from dovetail.numpy.compiled import compiled_with
from dovetail.scipy.special.operands import real_operands
from dovetail.typing import Array, ArrayLike


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of all orders and degrees up to some.

    Upwards in the degree, from the degree that equals the order: DLMF, 14.10.3 and 14.7.15.

    Args:
        m: the largest order.
        n: the largest degree.
        z: vector of real numbers between -1 and 1.
        is_normalized: whether they are those of spherical harmonics, whose squares integrate to 1
            over the sphere.

    Returns:
        An array of shape (m + 1, n + 1, size of z), zero where the order exceeds the degree.

    Raises:
        ShapeError: `z` is not a vector.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.special import lpmn_values
        >>> print(lpmn_values(1, 1, jnp.array([0.6]), False)[..., 0])
        [[ 1.   0.6]
         [ 0.  -0.8]]
    """
    orders, degrees = integer("lpmn_values", "m", m), integer("lpmn_values", "n", n)
    if orders < 0 or degrees < 0:
        raise ValueError(f"lpmn_values: m and n must not be negative, got {orders} and {degrees}")
    return _lpmn_values(z, orders, degrees, bool(is_normalized))


@compiled_with("orders", "degrees", "normalized")
def _lpmn_values(z: Any, orders: int, degrees: int, normalized: bool) -> Any:
    (x,) = real_operands("lpmn_values", z=z)
    if x.ndim != 1:
        raise ShapeError(f"lpmn_values requires z to be a vector, got shape {x.shape}")
    zero = jnp.zeros_like(x)
    square = (1 - x) * (1 + x)
    scale = math.sqrt(0.25 / math.pi) if normalized else 1.0
    rows = []
    for order in range(orders + 1):
        row, below = [zero] * min(order, degrees + 1), zero
        # Even powers of the sine have derivatives at the ends.
        current = scale * lax.integer_pow(square, order // 2)
        if order % 2:
            current = current * lax.sqrt(square)
        for degree in range(order, degrees + 1):
            row.append(current)
            rise, fall = _coefficients(order, degree, normalized)
            below, current = current, rise * x * current - fall * below
        rows.append(jnp.stack(row))
        factor = (2 * order + 3) / (2 * order + 2)
        scale *= -math.sqrt(factor) if normalized else -(2 * order + 1)
    return jnp.stack(rows)


def _coefficients(order: int, degree: int, normalized: bool) -> tuple[float, float]:
    """Those of the functions of this degree, times z, and of the one below, in the next one."""
    if not normalized:
        left = degree + 1 - order
        return (2 * degree + 1) / left, (degree + order) / left
    below = (degree + 1) ** 2 - order**2
    rise = math.sqrt((2 * degree + 1) * (2 * degree + 3) / below)
    if degree == order:
        return rise, 0.0
    fall = (degree**2 - order**2) * (2 * degree + 3) / (below * (2 * degree - 1))
    return rise, math.sqrt(fall)
