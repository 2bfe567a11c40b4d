"""The gamma function, its logarithm and derivatives, and what is made of it."""

from __future__ import annotations

import functools
import math
from typing import Any

from dovetail import custom_jvp, lax
from dovetail.extend.arguments import integer
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.scipy.special.operands import computed, filled, in_double, real_operands, where
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


#: Coefficients B[2n] / (2n (2n - 1)) of Stirling's series in odd powers of 1 / x. DLMF 5.11.1.
STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
#: From where on these terms give the correction to float64's precision.
STIRLING_START = 10.0


def stirling_correction(x: Any) -> Any:
    """The logarithm of gamma(x) minus its leading terms, for `x` from `STIRLING_START` on."""
    inverse = 1 / x
    square = inverse * inverse
    total = STIRLING[-1]
    for coefficient in reversed(STIRLING[:-1]):
        total = total * square + coefficient
    return total * inverse


@in_double
def _betaln_value(a: Any, b: Any) -> Any:
    """Logarithms of the beta function in float64.

    Where an operand is large, the logarithms of gamma functions cancel; Stirling's series for the
    quotient of two of them does not. Source: A. R. DiDonato and A. H. Morris, Algorithm 708, ACM
    Transactions on Mathematical Software 18 (1992), equations 8 to 11.
    """
    swapped = a > b
    small, large = where(swapped, b, a), where(swapped, a, b)
    near = lax.lgamma(small) + lax.lgamma(large) - lax.lgamma(small + large)
    far = (large >= STIRLING_START) & (small > 0)
    y = where(far, large, STIRLING_START)
    x = where(far, small, 1)
    quotient = lax.log1p(x / y)
    difference = stirling_correction(y) - stirling_correction(x + y)
    one_large = lax.lgamma(x) + (difference - (x + y - 0.5) * quotient - x * (lax.log(y) - 1))
    z = lax.max(x, filled(x, STIRLING_START))
    both_large = (
        (stirling_correction(z) + difference + math.log(2 * math.pi) / 2 - lax.log(y) / 2)
        - (z - 0.5) * lax.log1p(y / z)
        - y * lax.log1p(z / y)
    )
    result = where(far, where(x >= STIRLING_START, both_large, one_large), near)
    # Infinite operands: the limit, unless the other is zero.
    return where((large == math.inf) & (small > 0), -math.inf, result)


@custom_jvp
def _betaln(a: Any, b: Any) -> Any:
    return _betaln_value(a, b)


@_betaln.defjvp
def _betaln_jvp(primals: Any, tangents: Any) -> Any:
    a, b = primals
    both = lax.digamma(a + b)
    slope = (lax.digamma(a) - both) * tangents[0] + (lax.digamma(b) - both) * tangents[1]
    return _betaln(a, b), slope


@compiled
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the magnitude of the beta function.

    It is computed in float64. Large arguments lose no digits: Stirling's series of the quotient
    of two gamma functions replaces the difference of their logarithms.

    Args:
        a: array or scalar of a real dtype.
        b: array or scalar that broadcasts with `a`.

    Returns:
        A float array of the common shape.

    Example:
        >>> from dovetail.scipy.special import betaln
        >>> print(f"{betaln(2., 3.):.4f} {betaln(1e-3, 1e10):.4f}")
        -2.4849 6.8842
    """
    return computed(_betaln, real_operands("betaln", a=a, b=b))


@compiled
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function.

    It is the integral of ``t**(a - 1) * (1 - t)**(b - 1)`` from 0 to `x`, divided by that to 1: the
    distribution function of the beta distribution. It is differentiable in `x` only.

    Args:
        a: array or scalar of a real dtype: nonnegative numbers.
        b: array or scalar that broadcasts with `a`: nonnegative numbers.
        x: array or scalar that broadcasts with both: numbers from 0 to 1.

    Returns:
        A float array of the common shape; nan outside the domain.

    Example:
        >>> from dovetail.scipy.special import betainc
        >>> print(f"{betainc(2, 2, 0.25):.4f}")
        0.1562
    """
    return lax.betainc(*real_operands("betainc", a=a, b=b, x=x))


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
        ValueError: `d` is not positive.

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
    operands = real_operands("multigammaln", a=a)
    return computed(lambda a: _multigammaln(a, count), operands, weak=False)


def _dimension(d: Any) -> int:
    if isinstance(d, float) and d.is_integer():
        d = int(d)
    count = integer("multigammaln", "d", d)
    if count < 1:
        raise ValueError(f"multigammaln: d must be positive, got {count}")
    return count


@functools.cache
def _multigammaln_program(count: int) -> Any:
    @in_double
    def multigammaln(a: Any) -> Any:
        total = filled(a, count * (count - 1) / 4 * math.log(math.pi))
        for half in range(count):
            total = total + lax.lgamma(a - half / 2)
        return where(a > (count - 1) / 2, total, math.nan)

    return multigammaln


def _multigammaln_value(a: Any, count: int) -> Any:
    return _multigammaln_program(count)(a)


_multigammaln: Any = custom_jvp(_multigammaln_value, nondiff_argnums=(1,))


def _multigammaln_jvp(count: int, primals: Any, tangents: Any) -> Any:
    (a,) = primals
    slope = filled(a, 0)
    for half in range(count):
        slope = slope + lax.digamma(a - half / 2)
    return _multigammaln(a, count), tangents[0] * slope


_multigammaln.defjvp(_multigammaln_jvp)
