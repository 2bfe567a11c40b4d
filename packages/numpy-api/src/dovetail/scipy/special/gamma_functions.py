"""The gamma function, its logarithm and derivatives, and what is made of it."""

from __future__ import annotations

import functools
import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, convert, integer
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.scipy.special.complex_gamma import complex_gamma, complex_loggamma
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import computed, inexact_operands, of_one_shape, real_operands
from dovetail.scipy.special.stirling import STIRLING_START, stirling_correction
from dovetail.typing import Array, ArrayLike


@compiled
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the magnitude of the gamma function.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`: inf at 0, at negative integers and at infinity.

    Example:
        >>> from dovetail.scipy.special import gammaln
        >>> print(f"{gammaln(5.):.4f} {gammaln(-0.5):.4f} {gammaln(0.):.4f}")
        3.1781 1.2655 inf
    """
    return lax.lgamma(*real_operands("gammaln", x=x))


@compiled
def digamma(x: ArrayLike) -> Array:
    """The derivative of `gammaln`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`: nan at negative integers, -inf at 0.

    Example:
        >>> from dovetail.scipy.special import digamma
        >>> print(f"{digamma(1.):.4f}")
        -0.5772
    """
    return lax.digamma(*real_operands("digamma", x=x))


@compiled
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function.

    It is the integral of ``t**(a - 1) * exp(-t)`` from 0 to `x`, divided by the gamma function of
    `a`: the distribution function of the gamma distribution. It has derivatives in both arguments.

    Args:
        a: array or scalar of a real dtype: nonnegative numbers.
        x: array or scalar that broadcasts with `a`: nonnegative numbers.

    Returns:
        A float array of the common shape; nan outside the domain.

    Example:
        >>> from dovetail.scipy.special import gammainc
        >>> print(f"{gammainc(1., 2.):.4f}")
        0.8647
    """
    return lax.igamma(*real_operands("gammainc", a=a, x=x))


@compiled
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function: one minus `gammainc`, without cancellation.

    Args:
        a: array or scalar of a real dtype: nonnegative numbers.
        x: array or scalar that broadcasts with `a`: nonnegative numbers.

    Returns:
        A float array of the common shape; nan outside the domain.

    Example:
        >>> from dovetail.scipy.special import gammaincc
        >>> print(f"{gammaincc(1., 2.):.4f} {gammaincc(1., 50.):.4g}")
        0.1353 1.929e-22
    """
    return lax.igammac(*real_operands("gammaincc", a=a, x=x))


@compiled_with("d")
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function. Source: DLMF 35.3.4.

    Args:
        a: array or scalar of a real dtype: numbers above ``(d - 1) / 2``.
        d: dimension of the space of integration: a positive integer that is known when the
            function is traced.

    Returns:
        A float array of the shape of `a`; nan outside the domain.

    Raises:
        TypeError: `d` is no integer.
        ValueError: `d` is not positive, or above 2**20.

    Differs:
        Outside the domain, where SciPy raises an error, the result is nan.

        >>> from dovetail.scipy.special import multigammaln
        >>> print(multigammaln(0.2, 3))
        nan

    Example:
        >>> from dovetail.scipy.special import multigammaln
        >>> print(f"{multigammaln(5., 2):.4f}")
        6.2042
    """
    count = _dimension(d)
    return computed(_multigammaln(count), real_operands("multigammaln", a=a), weak=False)


#: More would be computed for minutes.
_MOST_DIMENSIONS = 2**20


def _dimension(d: Any) -> int:
    if isinstance(d, float) and d.is_integer():
        d = int(d)
    count = integer("multigammaln", "d", d)
    if count < 1:
        raise ValueError(f"multigammaln: d must be positive, got {count}")
    if count > _MOST_DIMENSIONS:
        raise ValueError(f"multigammaln: d must be {_MOST_DIMENSIONS} or less, got {count}")
    return count


def _with_halves(function: Any, a: Any, count: int, total: Any) -> Any:
    """A sum plus a function of ``a``, ``a - 1 / 2``, and so on."""
    if count <= 16:
        for half in range(count):
            total = total + function(a - half / 2)
        return total

    def add(half: Any, total: Any) -> Any:
        return total + function(a - convert(half, a.dtype) / 2)

    # What is written out for many dimensions takes minutes to compile.
    return lax.fori_loop(0, count, add, total)


@functools.cache
def _multigammaln(count: int) -> Any:
    def formula(a: Any) -> Any:
        total = jnp.full_like(a, count * (count - 1) / 4 * math.log(math.pi))
        total = _with_halves(lax.lgamma, a, count, total)
        return jnp.where(a > (count - 1) / 2, total, math.nan)

    def slope(a: Any) -> Any:
        return _with_halves(lax.digamma, a, count, jnp.zeros_like(a))

    return in_double(formula, {0: slope})


def gamma_sign(x: Any) -> Any:
    """`gammasgn` of float32 or float64."""
    floor = lax.floor(x)
    half = floor / 2
    negative = jnp.where(half == lax.floor(half), 1.0, -1.0)
    negative = jnp.where((x == floor) | (x != x), math.nan, negative)
    return jnp.where((x > 0), 1, jnp.where(x == 0, lax.sign(1 / x), negative))


@compiled
def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`: 1 or -1, that of the zero at zeros; nan at negative
        integers.

    Example:
        >>> from dovetail.scipy.special import gammasgn
        >>> print(gammasgn(jnp.array([-1.5, -1., -0.5, 2.])))
        [ 1. nan -1.  1.]
    """
    operands = [lax.stop_gradient(x) for x in real_operands("gammasgn", x=x)]
    return computed(gamma_sign, operands, weak=False)


def gamma_rule(x: Any) -> Any:
    """The gamma function of float64, by Stirling's formula and recurrence. DLMF 5.11.3, 5.5.1.

    Below 0 it is reflected, DLMF 5.5.3. What is lost when operands are shifted is given back.
    """
    magnitude = abs(x)
    steps = 12
    near = magnitude < steps
    z = jnp.where(near, magnitude + steps, magnitude)
    lost = jnp.where(near, magnitude - (z - steps), 0)
    product = jnp.full_like(x, 1)
    for k in range(1, steps):
        product = product * (jnp.where(near, magnitude, 1) + k)
    # The power would overflow before the result does.
    root = lax.exp(-z / 2) * lax.pow(z, z / 2 - 0.25)
    value = math.sqrt(2 * math.pi) * root * (root * lax.exp(stirling_correction(z)))
    value = value * (1 + lost * lax.log(z))
    # At 0 this is infinite, with the sign of the zero.
    value = jnp.where(near, value / (jnp.where(near & (x != 0), magnitude, 1) * product), value)
    value = jnp.where(magnitude > 172, math.inf, value)
    turn = magnitude - lax.round(magnitude, lax.RoundingMethod.TO_NEAREST_EVEN)
    half = lax.round(magnitude, lax.RoundingMethod.TO_NEAREST_EVEN) / 2
    sine = lax.sin(math.pi * turn) * jnp.where(half == lax.floor(half), 1.0, -1.0)
    reflected = -math.pi / (magnitude * sine * value)
    reflected = jnp.where((turn == 0) | (magnitude == math.inf), math.nan, reflected)
    return jnp.where(x < 0, reflected, jnp.where(x == 0, 1 / x, value))


_gamma: Any = in_double(gamma_rule, {0: lambda x: _gamma(x) * lax.digamma(x)})
_complex_gamma = in_double(complex_gamma)
_complex_loggamma = in_double(complex_loggamma)


def _is_complex(x: Any) -> bool:
    return dtypes.kind_of(aval_of(x).dtype) == "c"


@compiled
def gamma(x: ArrayLike) -> Array:
    """The gamma function. It is computed in float64.

    Args:
        x: array or scalar, real or complex.

    Returns:
        A float or complex array of the shape of `x`: infinite at 0, nan at negative integers.

    Example:
        >>> from dovetail.scipy.special import gamma
        >>> print(f"{gamma(5.):.4f} {gamma(-0.5):.4f}")
        24.0000 -3.5449
    """
    (x,) = operands = inexact_operands("gamma", x=x)
    rule = _complex_gamma if _is_complex(x) else _gamma
    return computed(rule, operands, weak=False)


def _real_loggamma(x: Any) -> Any:
    return jnp.where(x < 0, math.nan, lax.lgamma(x))


@compiled
def loggamma(x: ArrayLike) -> Array:
    """The principal logarithm of the gamma function.

    For complex numbers it is the branch that is continuous off the negative real axis, not the
    logarithm of `gamma`.

    Args:
        x: array or scalar, real or complex.

    Returns:
        A float or complex array of the shape of `x`; nan for negative real numbers.

    Example:
        >>> from dovetail.scipy.special import loggamma
        >>> print(f"{loggamma(5.):.4f} {loggamma(-1.):.4f} {complex(loggamma(-1.5+0j)):.4f}")
        3.1781 nan 0.8600-6.2832j
    """
    (x,) = operands = inexact_operands("loggamma", x=x)
    if _is_complex(x):
        return computed(_complex_loggamma, operands)
    return computed(_real_loggamma, operands)


@compiled
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order `n` of `digamma`.

    Args:
        n: array or scalar of an integer dtype: nonnegative numbers.
        x: array or scalar of a real dtype that broadcasts with `n`.

    Returns:
        A float array of the common shape; nan for negative orders.

    Raises:
        ValueError: `n` has no integer dtype.

    Example:
        >>> from dovetail.scipy.special import polygamma
        >>> print(f"{polygamma(0, 1.):.4f} {polygamma(1, 1.):.4f}")
        -0.5772 1.6449
    """
    order = array_like(n, "polygamma", "n")
    if dtypes.kind_of(aval_of(order).dtype) not in ("i", "u"):
        raise ValueError(f"polygamma: n must have an integer dtype, got {aval_of(order).dtype}")
    return lax.polygamma(*real_operands("polygamma", n=n, x=x))


def _log_of_poch(z: Any, m: Any) -> Any:
    """The logarithm of the magnitude of ``gamma(z + m) / gamma(z)``; by Stirling's series if large.

    As for the beta function, see `log_of_magnitude` in beta_functions.py.
    """
    far = (z >= STIRLING_START) & (z + m >= STIRLING_START)
    x, n = jnp.where(far, z, STIRLING_START), jnp.where(far, m, 0)
    ratio = (x + n - 0.5) * lax.log1p(n / x) + n * (lax.log(x) - 1)
    series = ratio + (stirling_correction(x + n) - stirling_correction(x))
    return jnp.where(far, series, lax.lgamma(z + m) - lax.lgamma(z))


def _poch_formula(z: Any, m: Any) -> Any:
    end = z + m
    from_pole = (z <= 0) & (z == lax.floor(z))
    to_pole = (end <= 0) & (end == lax.floor(end))
    both = from_pole & to_pole
    # Where both are poles they cancel: (-1)**m gamma(1 - z) / gamma(1 - z - m). DLMF 5.5.3.
    start = jnp.where(both, 1 - end, z)
    half = m / 2
    odd = jnp.where(half == lax.floor(half), 1.0, -1.0)
    sign = jnp.where(both, odd, gamma_sign(z) * gamma_sign(end))
    result = sign * lax.exp(_log_of_poch(start, m))
    result = jnp.where(to_pole & ~from_pole, math.inf, result)
    return jnp.where(m == 0, 1, jnp.where(from_pole & ~to_pole, 0, result))


_poch: Any = in_double(
    _poch_formula,
    {
        0: lambda z, m: _poch(z, m) * (lax.digamma(z + m) - lax.digamma(z)),
        1: lambda z, m: _poch(z, m) * lax.digamma(z + m),
    },
)


@compiled
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol ``gamma(z + m) / gamma(z)``: the rising factorial. DLMF 5.2.5.

    It is computed in float64, and for large `z` without cancellation.

    Args:
        z: array or scalar of a real dtype.
        m: array or scalar that broadcasts with `z`.

    Returns:
        A float array of the common shape.

    Differs:
        Where both gamma functions have poles the value is their quotient's limit, as in SciPy.

        >>> from dovetail.scipy.special import poch
        >>> print(f"{poch(-3., 2.):.4f}")
        6.0000

    Example:
        >>> from dovetail.scipy.special import poch
        >>> print(f"{poch(2., 3.):.4f}")
        24.0000
    """
    return computed(_poch, of_one_shape(real_operands("poch", z=z, m=m)), weak=False)
