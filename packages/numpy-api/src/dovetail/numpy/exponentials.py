"""Exponential functions and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import convert, inexact, inexact_pair, literal, weak_of
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import elementwise
from dovetail.numpy.conditions import literal_beside, pick
from dovetail.numpy.ufuncs import universal
from dovetail.typing import Array, ArrayLike


@elementwise
def exp(x: ArrayLike, /) -> Array:
    """The exponential function, e raised to the power of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.exp(1.):.4f}")
        2.7183
    """
    return lax.exp(inexact("exp", x))


@elementwise
def exp2(x: ArrayLike, /) -> Array:
    """Two raised to the power of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.exp2(jnp.array([0., 3.])))
        [1. 8.]
    """
    return lax.exp2(inexact("exp2", x))


@elementwise
def expm1(x: ArrayLike, /) -> Array:
    """``exp(x) - 1``, accurate even near 0.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.expm1(jnp.array([0., 1e-8])))
        [0.e+00 1.e-08]
    """
    return lax.expm1(inexact("expm1", x))


@elementwise
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm of each element; nan for negative real numbers, -inf for 0.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.log(10.):.4f}")
        2.3026
    """
    return lax.log(inexact("log", x))


@elementwise
def log1p(x: ArrayLike, /) -> Array:
    """``log(1 + x)``, accurate even near 0.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.log1p(jnp.array([0., 1e-8])))
        [0.e+00 1.e-08]
    """
    return lax.log1p(inexact("log1p", x))


@elementwise
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2 of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.log2(jnp.array([1., 8.])))
        [0. 3.]
    """
    x = inexact("log2", x)
    # The primitive is exact of powers of two; for float64 that takes longer.
    exact = not _is_complex(x) and x.dtype.itemsize < 8
    return lax.log2(x) if exact else _log_to_base(x, _LOG_2)


@elementwise
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10 of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.log10(jnp.array([1., 1000.])))
        [0. 3.]
    """
    x = inexact("log10", x)
    return convert(_log_to_base(x, _LOG_10), x.dtype)


def _log_to_base(x: Any, log_of_base: float) -> Any:
    result = lax.log(x)
    if _is_complex(x):
        return _by_parts(lax.div, result, log_of_base)
    return lax.div(result, literal(log_of_base, x.dtype, weak_of(x)))


def _by_parts(scale: Callable[[Any, Any], Any], x: Any, factor: float) -> Any:
    """A complex operand multiplied or divided by a real number.

    Complex arithmetic would turn infinite parts into nan.
    """
    parts = (lax.real(x), lax.imag(x))
    number = literal(factor, parts[0].dtype, weak_of(x))
    return lax.complex(*(scale(part, number) for part in parts))


@universal(2, -math.inf)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``log(exp(x1) + exp(x2))`` without overflow.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A float or complex array of the common shape. Imaginary parts of complex results are at most
        pi.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.logaddexp(1000., 1000.):.3f}")
        1000.693
    """
    x, y = inexact_pair("logaddexp", x1, x2)
    if dtypes.kind_of(x.dtype) == "c":
        return _complex_logaddexp(x, y)
    return _log_of_sum(x, y)


@universal(2, -math.inf)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``log2(2**x1 + 2**x2)`` without overflow.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A float or complex array of the common shape. Imaginary parts of complex results are at most
        ``pi / log(2)``.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.logaddexp2(3., jnp.array([3., -jnp.inf])))
        [4. 3.]
    """
    x, y = inexact_pair("logaddexp2", x1, x2)
    if _is_complex(x):
        natural = _complex_logaddexp(*(_by_parts(lax.mul, v, _LOG_2) for v in (x, y)))
        return _by_parts(lax.div, natural, _LOG_2)
    log_2 = literal(_LOG_2, x.dtype, weak_of(x))
    result = lax.div(_log_of_sum(lax.mul(x, log_2), lax.mul(y, log_2)), log_2)
    weak = weak_of(result) and not aval_of(result).ndim
    return convert(result, aval_of(result).dtype, weak)


def _log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of two real operands."""
    zero = literal(0, x.dtype, weak_of(x))
    difference = lax.sub(x, y)
    # It is nan if both are infinite and equal.
    same = lax.bitwise_and(lax.eq(x, y), lax.ne(difference, difference))
    difference = pick(same, zero, difference)
    # Using only the sign of the difference keeps derivatives at x = y right to every order.
    larger = pick(lax.ge(difference, zero), x, y)
    magnitude = pick(lax.ge(difference, zero), difference, lax.neg(difference))
    return lax.add(larger, lax.log1p(lax.exp(lax.neg(magnitude))))


def _complex_logaddexp(x: Any, y: Any) -> Any:
    first = lax.ge(lax.real(x), lax.real(y))
    larger, smaller = pick(first, x, y), pick(first, y, x)
    infinite = lax.eq(lax.real(larger), literal(float("-inf"), lax.real(x).dtype))
    weak = weak_of(x) and not (aval_of(x).ndim or aval_of(y).ndim)
    difference = pick(infinite, literal(0, x.dtype, weak), lax.sub(smaller, larger))
    result = lax.add(larger, lax.log1p(lax.exp(difference)))
    pi = literal(_PI, lax.real(x).dtype, weak)
    two_pi = literal(2 * _PI, lax.real(x).dtype, weak)
    angle = lax.imag(result)
    turned = lax.sub(angle, lax.mul(two_pi, lax.ceil(lax.div(lax.sub(angle, pi), two_pi))))
    wrapped = lax.complex(lax.real(result), turned)
    return pick(infinite, larger, wrapped)


_LOG_2 = 0.6931471805599453
_LOG_10 = 2.302585092994046
_PI = 3.141592653589793


@elementwise
def sinc(x: ArrayLike, /) -> Array:
    """The normalised sinc function: ``sin(pi x) / (pi x)``, and 1 at 0.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`; 0 at real infinities. (NumPy has nan there.)

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.sinc(0.5):.4f}")
        0.6366
    """
    x = inexact("sinc", x)
    far = _is_far_and_real(x)
    scaled = lax.mul(pick(far, literal_beside(1, x), x), literal_beside(_PI, x))
    # Near 0 use the Taylor series: the derivatives of the quotient are 0 / 0 there. Elsewhere its
    # own would be infinite.
    near = lax.lt(
        lax.abs(scaled), literal(_SERIES_BELOW, lax.real(x).dtype if _is_complex(x) else x.dtype)
    )
    squared = lax.square(pick(near, scaled, literal_beside(0, scaled)))
    series = literal_beside(0, scaled)
    for coefficient in _SINC_SERIES:
        series = lax.add(lax.mul(series, squared), literal_beside(coefficient, scaled))
    safe = pick(near, literal_beside(1, scaled), scaled)
    found = pick(near, series, lax.div(lax.sin(safe), safe))
    return pick(far, literal_beside(0, found), found)


def _is_far_and_real(x: Any) -> Any:
    """Where pi times a real number is infinite."""
    real = lax.real(x) if _is_complex(x) else x
    limit = float(dtypes.finfo(real.dtype).max) / 4
    far = lax.gt(lax.abs(real), literal(limit, real.dtype))
    if not _is_complex(x):
        return far
    return lax.bitwise_and(far, lax.eq(lax.imag(x), literal(0, real.dtype)))


_SERIES_BELOW = 0.2
#: Coefficients of sin(z) / z in powers of z squared, highest first: 1 / 11!, 1 / 9! ...
_SINC_SERIES = (
    -1 / 39916800,
    1 / 362880,
    -1 / 5040,
    1 / 120,
    -1 / 6,
    1.0,
)


def _is_complex(x: Any) -> bool:
    return dtypes.kind_of(x.dtype) == "c"
