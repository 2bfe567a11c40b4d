"""The incomplete gamma functions and their derivatives.

Source of the methods: W. Gautschi, A computational procedure for incomplete gamma functions, ACM
TOMS 5 (1979); N. M. Temme, On the computation of the incomplete gamma functions for large values of
the parameters (1987); DLMF 8.7, 8.9, 8.12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, mul, neg
from dovetail._core.basis.families import Binary
from dovetail._core.basis.operands import literal_like
from dovetail._core.hlo.expressions import Expression, by_kind, repeat_downwards
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.exponential import expm1, log
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.ops.special import special_references
from dovetail._core.ops.special.double_double import as_double_double
from dovetail._core.ops.special.gamma_functions import digamma
from dovetail._core.ops.special.gamma_weights import (
    STIRLING,
    NormalTail,
    gamma_kernel,
    gamma_weight,
    log_gamma1,
    log_minus_digamma,
    scaled_excess,
)
from dovetail._core.ops.special.interior_functions import InteriorFunction
from dovetail._core.ops.special.normal_expansion import Expansion, gamma_series


class GammaFunction(InteriorFunction, Binary):
    """A function of the shape `a` and the argument `x` of a gamma distribution."""

    def inside(self, *operands: Expression) -> Expression:
        a, x = operands
        return (a > 0.0) & (a < math.inf) & (x > 0.0) & (x < math.inf)


class Regularized(GammaFunction):
    """The distribution function (lower) or its complement (upper)."""

    upper: ClassVar[bool]

    def formula(self, a: Expression, x: Expression, exact: bool) -> Expression:
        # Only the upper function is computed for tiny a, where it is a multiple of a.
        bounded = a.apply("maximum", TINY)
        tail, is_upper = _tail(bounded, x, exact)
        tail = tail * (a / bounded)
        is_tail = is_upper if self.upper else ~is_upper
        return tail.where(is_tail, 1.0 - tail)

    def edges(self, a: Expression, x: Expression) -> Sequence[tuple[Expression, Any]]:
        none, all_ = (1.0, 0.0) if self.upper else (0.0, 1.0)
        valid = (a >= 0.0) & (x >= 0.0)
        return (
            (valid & ((x == 0.0) | (a == math.inf)), none),
            (valid & ((a == 0.0) | (x == math.inf)), all_),
            (valid & (((a == 0.0) & (x == 0.0)) | ((a == math.inf) & (x == math.inf))), math.nan),
        )

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        tangent = mul(t, igamma_grad_a_p.bind(x, y))
        return neg(tangent) if self.upper else tangent

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        tangent = mul(t, gamma_density_p.bind(x, y))
        return neg(tangent) if self.upper else tangent


#: Below this shape, derivatives are those at zero.
TINY: Final = 1e-20


class Igamma(Regularized):
    """The regularized lower incomplete gamma function."""

    name, numpy = "igamma", references.wide(np.vectorize(special_references.igamma, [float]))
    upper = False


class Igammac(Regularized):
    """The regularized upper incomplete gamma function."""

    name, numpy = "igammac", references.wide(np.vectorize(special_references.igammac, [float]))
    upper = True


#: The methods: where the lower function is small, its series; where the upper one is, its continued
#: fraction, or for small x a form without subtraction from one; for large a and x near a, an
#: expansion.
SERIES, FRACTION, COMPLEMENT, EXPANSION = range(4)


def _ways(a: Expression, x: Expression) -> Expression:
    """The method for each element."""
    # The median is near x = a; for small a it is near 2 exp(-log(2) / a).
    small = math.log(0.5) / (x * 0.5).log()
    lower = a > (x + 0.25).where(x >= 0.5, small)
    expansion = (a >= LARGE) & (x >= a * 0.5) & (x <= a * 1.5)
    way = _number(a, FRACTION).where(x >= 0.75, COMPLEMENT)
    way = _number(a, SERIES).where(lower, way)
    return _number(a, EXPANSION).where(expansion, way)


def _number(like: Expression, value: int) -> Expression:
    return like.convert(np.int32).constant(value)


#: From here on an expansion is used for x near a.
LARGE: Final = 16.0


def _steps(a: Expression, x: Expression, way: int, used: Expression, exact: bool) -> Expression:
    """The largest number of steps for the elements of a mask, found by experiment."""
    if way == SERIES:
        most, slope, least = (55.0, 1.75, 20.0) if exact else (29.0, 1.75, 10.5)
        steps = x * slope + least
    else:
        most, slope, least = (18.0, 95.0, 8.0) if exact else (10.0, 35.0, 4.0)
        steps = slope / x + a + least
    return a.constant(most).where(a >= LARGE, steps).where(used, 0.0).largest()


def _tail(a: Expression, x: Expression, exact: bool) -> tuple[Expression, Expression]:
    """The lower or upper function, whichever is not near one, and a mask for the upper."""
    kernel = gamma_kernel(a, as_double_double(x, x) if exact else x)
    weight = gamma_weight(a, x, kernel)
    ways = _ways(a, x)

    def series() -> Expression:
        """Source: DLMF 8.7.1."""
        step = lambda k, s: (s * (x / (a + k)) + 1.0,)  # noqa: E731
        count = _steps(a, x, SERIES, ways == SERIES, exact)
        (total,) = repeat_downwards(count, step, a.constant(1.0))
        return weight / a * total

    def fraction() -> Expression:
        """Source: DLMF 8.9.2, contracted."""
        step = lambda k, t: (_denominator(a, x, k) + k * (a - k) / t,)  # noqa: E731
        count = _steps(a, x, FRACTION, ways == FRACTION, exact)
        (total,) = repeat_downwards(count, step, a.constant(math.inf))
        return weight / total

    def expansion() -> Expression:
        """Source: Temme (1987)."""
        tail = NormalTail(scaled_excess(a, x), kernel, a, x >= a)
        correction = Expansion(a, tail.distance, gamma_series(exact)).total
        return tail.probability(correction.where(x >= a, -correction))

    functions = [series, fraction, lambda: _complement(a, x, exact), expansion]
    tail = by_kind(ways, functions, a.constant(0.0))
    upper = (x >= a).where(ways == EXPANSION, ways > SERIES)
    return tail, upper


def _denominator(a: Expression, x: Expression, k: Expression) -> Expression:
    return x - a + (k + k - 1.0)


def _complement(a: Expression, x: Expression, exact: bool) -> Expression:
    """The upper function for small a and x, without subtracting from one.

    (1 - f) - f a (-x / (a + 1) + x**2 / (2 (a + 2)) - ...) with f = x**a / gamma(1 + a). Source:
    Gautschi (1979), section 4.
    """
    exponent = x.log() * a - log_gamma1(a)
    factor = exponent.call(expm1)
    step = lambda k, s: (1.0 / (a + k) - x / (k + 1.0) * s,)  # noqa: E731
    (total,) = repeat_downwards(16 if exact else 8, step, a.constant(0.0))
    return (factor + 1.0) * a * x * total - factor


def _slope(a: Expression, x: Expression, exact: bool) -> Expression:
    """The derivative of log(x) in `a` at a fixed value of the lower function.

    It is the derivative of the function, divided by minus the weight, without cancellation.
    """
    ways = _ways(a, x)
    ways = (ways * 0).where(ways == COMPLEMENT, ways)
    inverse, zero = 1.0 / a, a.constant(0.0)

    def drift(next_a: bool) -> Expression:
        """log(x) - digamma(a), or - digamma(a + 1), for large a without cancellation."""
        far = (x * inverse).log() + log_minus_digamma(a)
        far = far - inverse if next_a else far
        near = x.log() - (a + 1.0 if next_a else a).call(digamma)
        return far.where(a >= float(STIRLING), near)

    def series() -> Expression:
        def step(k: Expression, s: Expression, d: Expression) -> Sequence[Expression]:
            inverse = 1.0 / (a + k)
            ratio = x * inverse
            return s * ratio + 1.0, (d - s * inverse) * ratio

        count = _steps(a, x, SERIES, ways == SERIES, exact)
        s, d = repeat_downwards(count, step, a.constant(1.0), a.constant(0.0))
        return -(s * drift(True) + d) * inverse

    def fraction() -> Expression:
        def step(k: Expression, t: Expression, d: Expression) -> Sequence[Expression]:
            inverse = 1.0 / t
            ratio = k * inverse
            part = (a - k) * ratio
            return _denominator(a, x, k) + part, ratio - 1.0 - part * d * inverse

        count = _steps(a, x, FRACTION, ways == FRACTION, exact)
        t, d = repeat_downwards(count, step, a.constant(math.inf), a.constant(0.0))
        return (drift(False) - d / t) / t

    def expansion() -> Expression:
        y = NormalTail(scaled_excess(a, x), zero, a, x >= a).distance
        parts = Expansion(a, y, gamma_series(exact))
        shift = (y * y + inverse) * parts.sum + y
        return ((parts.derivative - shift * 0.5) * parts.factor + 1.0) * inverse

    return by_kind(ways, [series, fraction, None, expansion], zero)


class IgammaGradA(GammaFunction):
    """The derivative of the regularized lower incomplete gamma function in `a`."""

    name = "igamma_grad_a"
    numpy = references.wide(np.vectorize(special_references.igamma_grad_a, [float]))

    def formula(self, a: Expression, x: Expression, exact: bool) -> Expression:
        a = a.apply("maximum", TINY)
        kernel = gamma_kernel(a, as_double_double(x, x) if exact else x)
        return -gamma_weight(a, x, kernel) * _slope(a, x, exact)

    def edges(self, a: Expression, x: Expression) -> Sequence[tuple[Expression, Any]]:
        valid = (a > 0.0) & (x >= 0.0)
        ends = (x == 0.0) | (x == math.inf) | (a == math.inf)
        return (
            (valid & ends, 0.0),
            (valid & (a == math.inf) & (x == math.inf), math.nan),
        )

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        raise ValueError("lax.igamma_grad_a is not differentiable in its first argument a")

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, mul(gamma_density_p.bind(x, y), sub_p.bind(log(y), digamma(x))))


class RandomGammaGrad(GammaFunction):
    """The derivative of a gamma distributed number in the shape `a`, at a fixed probability."""

    name = "random_gamma_grad"
    numpy = references.wide(np.vectorize(special_references.random_gamma_grad, [float]))

    def formula(self, a: Expression, x: Expression, exact: bool) -> Expression:
        return x * _slope(a, x, exact)

    def edges(self, a: Expression, x: Expression) -> Sequence[tuple[Expression, Any]]:
        return (((a > 0.0) & (x == 0.0), 0.0),)

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        raise ValueError("lax.random_gamma_grad is not differentiable in its first argument a")

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        one = literal_like(1, y)
        relative = sub_p.bind(div_p.bind(sub_p.bind(x, one), y), one)
        change = add_p.bind(sub_p.bind(log(y), digamma(x)), mul(out, relative))
        return neg(mul(t, change))


class GammaDensity(GammaFunction):
    """The density of the gamma distribution, the derivative of `igamma` in `x`."""

    name = "gamma_density"
    numpy = references.wide(np.vectorize(special_references.gamma_density, [float]))

    def formula(self, a: Expression, x: Expression, exact: bool) -> Expression:
        # x**a may underflow where x**(a - 1) does not; below 1, a - 1 is not exact.
        lower = (a >= 1.0) & (a < float(STIRLING))
        kernel = gamma_kernel(a, as_double_double(x, x) if exact else x)
        weight = gamma_weight(a, x, kernel, (a - 1.0).where(lower, a))
        return weight / a.constant(1.0).where(lower, x)

    def edges(self, a: Expression, x: Expression) -> Sequence[tuple[Expression, Any]]:
        valid = (a >= 0.0) & (x >= 0.0)
        return (
            (valid & ((a == 0.0) | (a == math.inf) | (x == math.inf) | (x == 0.0)), 0.0),
            (valid & (x == 0.0) & (a == 1.0), 1.0),
            (valid & (x == 0.0) & (a < 1.0), math.inf),
            (valid & (a == 0.0) & (x == 0.0), math.nan),
            (valid & (a == math.inf) & (x == math.inf), math.nan),
        )

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, mul(out, sub_p.bind(log(y), digamma(x))))

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        one = literal_like(1, y)
        return mul(t, mul(out, sub_p.bind(div_p.bind(sub_p.bind(x, one), y), one)))


igamma_p: Final = Igamma()
igammac_p: Final = Igammac()
igamma_grad_a_p: Final = IgammaGradA()
random_gamma_grad_p: Final = RandomGammaGrad()
gamma_density_p: Final = GammaDensity()


# Public functions


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x).

    It is the integral of ``t**(a - 1) * exp(-t)`` from 0 to `x`, divided by gamma(a): the
    distribution function of the gamma distribution.

    Args:
        a: positive numbers, floating point.
        x: non-negative numbers of the same dtype; the same shape, a scalar, or broadcastable along
            dimensions of size 1.

    Returns:
        An array of the dtype of the operands; NaN for negative operands.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Differs:
        It is accurate for large arguments, too.

        >>> print(lax.igamma(1e8, 1e8))
        0.5000133

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.igamma(1.0, 2.0)), 4)
        0.8647
    """
    return igamma_p.bind(*operands("igamma", a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where small.

    Args:
        a: positive numbers, floating point.
        x: non-negative numbers of the same dtype; the same shape, a scalar, or broadcastable along
            dimensions of size 1.

    Returns:
        An array of the dtype of the operands; NaN for negative operands.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.igammac(1.0, 2.0)), 4)
        0.1353
    """
    return igammac_p.bind(*operands("igammac", a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma` in its first argument, which is not positive.

    It is not itself differentiable in `a`.

    Args:
        a: positive numbers, floating point.
        x: non-negative numbers of the same dtype; the same shape, a scalar, or broadcastable along
            dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.igamma_grad_a(1.0, 2.0)), 4)
        -0.2208
    """
    return igamma_grad_a_p.bind(*operands("igamma_grad_a", a, x))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a gamma distributed number with respect to the shape.

    If `x` was drawn with the shape `a`, this is how fast it changes with `a` while ``igamma(a, x)``
    stays fixed. It is not itself differentiable in `a`.

    Args:
        a: positive numbers, floating point.
        x: positive numbers of the same dtype; the same shape, a scalar, or broadcastable along
            dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Differs:
        The result is never weakly typed, in a compiled function, too.

        >>> print(dt.jit(lax.random_gamma_grad)(1.0, 2.0).weak_type)
        False

        Operands of different dtypes are refused, as in the other functions of this module; JAX
        promotes them here.

        >>> lax.random_gamma_grad(jnp.ones((), "float16"), jnp.float32(1))
        Traceback (most recent call last):
            ...
        TypeError: lax.random_gamma_grad requires arguments of equal dtypes, got ...

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.random_gamma_grad(1.0, 2.0)), 4)
        1.6317
    """
    slope = random_gamma_grad_p.bind(*operands("random_gamma_grad", a, x))
    return convert_element_type(slope, slope.dtype)
