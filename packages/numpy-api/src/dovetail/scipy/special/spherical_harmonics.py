"""Spherical harmonics."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.errors import DTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, integer, value
from dovetail.numpy.averages import computed_in
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike


def _legendre(n: Any, m: Any, theta: Any) -> Any:
    """The associated Legendre functions of cosines, normalised, for the orders ``abs(m)``.

    Upwards in the degree, from the degree that equals the order: DLMF, 14.10.3 and 14.7.15.
    """
    order = lax.abs(m)
    cosine, sine = lax.cos(theta), lax.sin(theta)

    def active(state: Any) -> Any:
        return state[0] < jnp.max(n, initial=0.0)

    def step(state: Any) -> Any:
        degree, previous, current = state
        following = degree + 1
        rises = degree < order
        diagonal = -current * sine * lax.sqrt((2 * degree + 3) / (2 * degree + 2))
        square = jnp.where(rises, 0.0, order * order)
        below = following * following - square
        first = lax.sqrt((4 * following * following - 1) / below)
        second = lax.sqrt(
            jnp.maximum(degree * degree - square, 0.0)
            * (2 * degree + 3)
            / (below * jnp.where(degree > 0, 2 * degree - 1, 1.0))
        )
        recurred = first * cosine * current - second * previous
        going = degree < n
        new = jnp.where(rises, diagonal, recurred)
        previous = jnp.where(going, jnp.where(rises, 0.0, current), previous)
        return following, previous, jnp.where(going, new, current)

    start = jnp.full_like(theta, math.sqrt(0.25 / math.pi)) + 0 * theta
    state = (jnp.asarray(0.0, theta.dtype), jnp.zeros_like(theta), start)
    result = lax.while_loop(active, step, state)[2]
    odd = lax.rem(order, 2.0 + 0 * order) == 1
    result = jnp.where((m < 0) & odd, -result, result)
    return jnp.where((order > n) | (n < 0), 0.0, result)


def _real_formula(n: Any, m: Any, phi: Any, theta: Any) -> Any:
    return _legendre(n, m, theta) * lax.cos(m * phi)


def _imaginary_formula(n: Any, m: Any, phi: Any, theta: Any) -> Any:
    return _legendre(n, m, theta) * lax.sin(m * phi)


_real = in_double(_real_formula)
_imaginary = in_double(_imaginary_formula)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonics, with the phase of Condon and Shortley.

    Args:
        n: degrees: integers, from 0 on.
        m: orders: integers. Where the size of one is above its degree the harmonic is 0.
        theta: polar angles, of a real dtype.
        phi: azimuthal angles, of a real dtype.
        diff_n: None.
        n_max: taken for compatibility: the greatest degree. It need not be known.

    Returns:
        A complex array of the common shape.

    Raises:
        TypeError: `n` or `m` does not hold integers, `theta` or `phi` is complex, or `n_max` is not
            an integer.
        NotImplementedError: `diff_n` is not None.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 14.30.1 and 14.10.3.

    Differs:
        Arguments may be scalars and arrays that broadcast, and degrees may be traced without
        `n_max`, and above it.

        >>> from dovetail.scipy.special import sph_harm_y
        >>> print(f"{dt.jit(sph_harm_y)(1, 0, 0.0, 0.0):.4f}")
        0.4886+0.0000j

    Example:
        >>> from dovetail.scipy.special import sph_harm_y
        >>> print(f"{sph_harm_y(2, 1, 0.5, 1.0):.4f}")
        -0.1756-0.2735j
    """
    if diff_n is not None:
        raise NotImplementedError(
            "sph_harm_y: diff_n is not supported; take derivatives with dovetail.jvp or grad"
        )
    if n_max is not None:
        integer("sph_harm_y", "n_max", n_max)
    for name, x in (("n", n), ("m", m)):
        dtype = array_like(x, "sph_harm_y", name).dtype
        if dtypes.kind_of(dtype) not in ("i", "u", "b"):
            raise DTypeError(f"sph_harm_y requires {name} to hold integers, got dtype {dtype}")
    return _sph_harm_y(n, m, theta, phi)


@compiled
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    polar, azimuth = of_one_shape(real_operands("sph_harm_y", theta=theta, phi=phi))
    work = computed_in(polar.dtype)
    polar, azimuth = polar.astype(work), azimuth.astype(work)
    degree, order = value(array_like(n, "sph_harm_y")), value(array_like(m, "sph_harm_y", "m"))
    shape = jnp.broadcast_shapes(degree.shape, order.shape, polar.shape)
    operands = [jnp.broadcast_to(x, shape) for x in (degree, order, azimuth, polar)]
    return lax.complex(_real(*operands), _imaginary(*operands))
