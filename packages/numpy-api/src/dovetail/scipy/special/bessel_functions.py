"""Bessel functions."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend.arguments import convert, integer, weak_of
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.numpy.modified_bessel import modified_bessel, single_modified_bessel
from dovetail.scipy.special.double_precision import exact_product, in_double, sum_of_pairs
from dovetail.scipy.special.operands import DOUBLE, real_operands
from dovetail.typing import Array, ArrayLike

#: Below the greater one of this and the order the recurrence is run downwards; above, the
#: expansion of Hankel gives the first two functions.
_EXPANSION: Final = 30.0
_EXPANSION_TERMS: Final = 14
#: A power of two by which the downward recurrence is scaled down when it gets too large.
_SCALE: Final = 2.0**400


#: A number in one part, or in two.
_Parts = tuple[Any, ...]


def _i0_formula(x: Any) -> Any:
    return modified_bessel(0, x)


def _i1_formula(x: Any) -> Any:
    return modified_bessel(1, x)


def _single_i0_formula(x: Any) -> Any:
    return single_modified_bessel(0, x)


def _single_i1_formula(x: Any) -> Any:
    return single_modified_bessel(1, x)


def _i1_slope_formula(x: Any) -> Any:
    """``(I0 + I2) / 2``, which DLMF, 10.29.2, gives; near 0 by the series of DLMF, 10.25.2."""
    small = lax.abs(x) < 0.5
    quarter = x * x / 4
    near: Any = 0.0
    for k in range(8, -1, -1):
        near = (2 * k + 1) / (2 * math.factorial(k) * math.factorial(k + 1)) + quarter * near
    y = jnp.where(small, 1.0, x)
    zeroth = modified_bessel(0, y)
    # By the quotient of scaled functions: those of large numbers are infinite.
    far = zeroth * (1 - lax.bessel_i1e(y) / (lax.bessel_i0e(y) * y))
    return jnp.where(small, near, jnp.where(zeroth < jnp.inf, far, zeroth))


_i1_slopes = {0: in_double(_i1_slope_formula)}
_i1_of_single: Any = in_double(_single_i1_formula, _i1_slopes)
_i1_of_double: Any = in_double(_i1_formula, _i1_slopes)
_i0_slopes = {0: lambda x: _i1(x)}
_i0_of_single: Any = in_double(_single_i0_formula, _i0_slopes)
_i0_of_double: Any = in_double(_i0_formula, _i0_slopes)


def _i0(x: Any) -> Any:
    return (_i0_of_double if aval_of(x).dtype == DOUBLE else _i0_of_single)(x)


def _i1(x: Any) -> Any:
    return (_i1_of_double if aval_of(x).dtype == DOUBLE else _i1_of_single)(x)


@compiled
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 10.25.

    Example:
        >>> from dovetail.scipy.special import i0
        >>> print(f"{i0(1.0):.5f}")
        1.26607
    """
    return _applied("i0", _i0, x)


@compiled
def i0e(x: ArrayLike) -> Array:
    """`i0` times ``exp(-abs(x))``, which does not overflow.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> from dovetail.scipy.special import i0e
        >>> print(f"{i0e(1.0):.5f} {i0e(1000.0):.5f}")
        0.46576 0.01262
    """
    return _applied("i0e", lax.bessel_i0e, x)


@compiled
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 1.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex.

    Source:
        DLMF, 10.25.

    Example:
        >>> from dovetail.scipy.special import i1
        >>> print(f"{i1(1.0):.5f}")
        0.56516
    """
    return _applied("i1", _i1, x)


@compiled
def i1e(x: ArrayLike) -> Array:
    """`i1` times ``exp(-abs(x))``, which does not overflow.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> from dovetail.scipy.special import i1e
        >>> print(f"{i1e(1.0):.5f} {i1e(-1000.0):.5f}")
        0.20791 -0.01261
    """
    return _applied("i1e", lax.bessel_i1e, x)


def _applied(name: str, function: Any, x: Any) -> Any:
    (x,) = real_operands(name, x=x)
    return convert(function(x), x.dtype, weak_of(x))


def _first_two(z: Any) -> tuple[Any, Any]:
    """J0 and J1 of large numbers: DLMF, 10.17.3."""
    results = []
    for order in (0, 1):
        even, odd, term = jnp.ones_like(z), jnp.zeros_like(z), jnp.ones_like(z)
        for k in range(1, 2 * _EXPANSION_TERMS):
            term = term * ((4 * order * order - (2 * k - 1) ** 2) / (8 * k)) / z
            sign = -1 if k // 2 % 2 else 1
            if k % 2:
                odd = odd + sign * term
            else:
                even = even + sign * term
        sine, cosine = lax.sin(z), lax.cos(z)
        # The cosine and the sine of z - pi / 4 or z - 3 pi / 4, times the square root of 2.
        c, s = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -cosine - sine)
        results.append((even * c - odd * s) / lax.sqrt(math.pi * z))
    return results[0], results[1]


def _times(x: _Parts, factor: Any) -> _Parts:
    return tuple(part * factor for part in x)


def _sum(x: _Parts, y: _Parts) -> _Parts:
    return (x[0] + y[0],) if len(x) == 1 else sum_of_pairs((x[0], x[1]), (y[0], y[1]))


def _following(n: Any, z: Any, current: _Parts, above: _Parts) -> _Parts:
    """``2 * n / z * current - above``, which is DLMF, 10.6.1."""
    factor = 2 * n / z
    if len(current) == 1:
        return (factor * current[0] - above[0],)
    product, rest = exact_product(factor, z)
    lacking = ((2 * n - product) - rest) / z
    product, rest = exact_product(factor, current[0])
    rest = rest + (factor * current[1] + lacking * current[0])
    return _sum((product, rest), _times(above, -1))


def _downwards(z: Any, order: int, exact: bool) -> Any:
    """The algorithm of Miller: DLMF, 3.6(iii), normalised by DLMF, 10.12.4.

    Near its zeros a function is small beside the terms of the recurrence, whose errors would be
    hundreds of its own units in the last place. To be exact, numbers have a second part, which
    they lack.
    """
    reach = max(order, _EXPANSION)
    start = int(reach + 20 * reach ** (1 / 3)) // 2 * 2 + 2
    scale = jnp.asarray(_SCALE, z.dtype)

    def step(state: Any, n: Any) -> Any:
        # The value of order n + 1 and n; the sum of even orders above; how often it was scaled.
        above, current, total, times = state
        even = lax.rem(n, jnp.asarray(2.0, z.dtype)) == 0
        total = _sum(total, _times(current, jnp.where(n == 0, 1.0, jnp.where(even, 2.0, 0.0))))
        below = _following(n, z, current, above)
        large = lax.abs(below[0]) > scale
        shrunk = jnp.where(large, 1 / scale, 1.0)
        state = (
            *(_times(x, shrunk) for x in (current, below, total)),
            times + jnp.where(large, 1.0, 0),
        )
        return state, (current, times)

    zeros = jnp.zeros_like(z)
    rest = (zeros,) * exact
    state = ((zeros, *rest), (zeros + 2.0**-100, *rest), (zeros, *rest), zeros)
    orders = jnp.arange(start, -1, -1, dtype=z.dtype)
    # What belongs to greater orders is not kept.
    state, _ = lax.scan(lambda state, n: (step(state, n)[0], None), state, orders[: -order - 1])
    (_, _, total, times), (values, scaled) = lax.scan(step, state, orders[-order - 1 :])
    # The last step has gone beyond order 0, maybe with one more scaling.
    less = times - scaled[::-1]
    value = [part[::-1] for part in values]
    result = value[0] / total[0]
    if exact:
        result = result + (value[1] - result * total[1]) / total[0]
    for i in range(4):
        result = jnp.where(less > i, result / scale, result)
    return result


def _upwards(z: Any, order: int) -> Any:
    first, second = _first_two(z)
    if order > 32:
        # What is written out for many orders takes minutes to compile.
        def step(state: Any, n: Any) -> Any:
            before, current = state
            following = (2 * n / z) * current - before
            return (current, following), following

        _, rest = lax.scan(step, (first, second), jnp.arange(1, order, dtype=z.dtype))
        return jnp.concatenate([first[None], second[None], rest])
    values = [first, second]
    for n in range(1, order):
        values.append((2 * n / z) * values[-1] - values[-2])
    return jnp.stack(values[: order + 1])


def _bessel_formula(z: Any, order: int, exact: bool) -> Any:
    size = lax.abs(z)
    far = (size >= max(_EXPANSION, order)) & (size < jnp.inf)
    tiny = size < 1e-30
    # The recurrence would overflow; what is above order 1 is below 1e-60.
    near = _downwards(jnp.where(far | tiny | ~(size < jnp.inf), 1.0, size), order, exact)
    orders = jnp.arange(order + 1, dtype=z.dtype).reshape((-1,) + (1,) * z.ndim)
    smallest = jnp.where(orders == 0, 1.0, jnp.where(orders == 1, size / 2, 0.0))
    result = jnp.where(far, _upwards(jnp.where(far, size, _EXPANSION), order), near)
    result = jnp.where(tiny, smallest, result)
    # Functions of odd order are odd. All vanish at infinity.
    result = jnp.where((z < 0) & (orders % 2 == 1), -result, result)
    return jnp.where(size == jnp.inf, 0.0, jnp.where(z == z, result, jnp.nan))


@functools.cache
def _bessel(order: int, exact: bool) -> Any:
    """The functions of all orders up to one, for float64 numbers or for others."""

    def formula(z: Any) -> Any:
        return _bessel_formula(z, order, exact)

    def slopes(z: Any) -> Any:
        # DLMF, 10.6.1 and 10.6.3.
        values = _bessel(order + 1, exact)(z)
        below = jnp.concatenate([-values[1:2], values[:order]])
        above = jnp.concatenate([values[1:2], values[2:]])
        return (below - above) / 2

    return in_double(formula, {0: slopes})


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders from 0 to `v`.

    Args:
        z: array or scalar of a real dtype.
        v: the greatest order, not negative.
        n_iter: taken for compatibility. The recurrence is as long as the result needs.

    Returns:
        A float array of shape ``(v + 1, *z.shape)``.

    Raises:
        TypeError: `z` is complex, or `v` or `n_iter` not an integer.
        ValueError: `v` is negative.

    Source:
        DLMF, 10.17.3, 10.6.1 and 3.6(iii), the algorithm of Miller.

    Differs:
        `n_iter` changes nothing. JAX's recurrence overflows where it is long and `z` is small, and
        is wrong where `z` is large.

        >>> from dovetail.scipy.special import bessel_jn
        >>> print(f"{bessel_jn(100.0, v=1)[1]:.5f}")
        -0.07715

    Example:
        >>> from dovetail.scipy.special import bessel_jn
        >>> print([f"{x:.4f}" for x in bessel_jn(2.0, v=2)])
        ['0.2239', '0.5767', '0.3528']
    """
    order = integer("bessel_jn", "v", v)
    integer("bessel_jn", "n_iter", n_iter)
    if order < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {order}")
    return _bessel_jn(z, order)


@compiled_with("order")
def _bessel_jn(z: Any, order: int) -> Any:
    (z,) = real_operands("bessel_jn", z=z)
    return _bessel(order, aval_of(z).dtype == DOUBLE)(z)
