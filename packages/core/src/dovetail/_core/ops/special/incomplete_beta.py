"""The incomplete beta function.

Source of the methods: A. R. DiDonato and A. H. Morris, Significant digit computation of the
incomplete beta function ratios, ACM TOMS 18 (1992); DLMF 8.17.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import add_tangents, mul, neg
from dovetail._core.basis.operands import equal_dtypes, literal_like
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.hlo.expressions import Expression, by_kind, repeat_downwards, stacked, unstacked
from dovetail._core.ir.avals import shape_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.exponential import expm1, log, log1p
from dovetail._core.ops.special import special_references
from dovetail._core.ops.special.double_double import (
    DoubleDouble,
    as_double_double,
    two_product,
    two_sum,
)
from dovetail._core.ops.special.gamma_functions import digamma
from dovetail._core.ops.special.gamma_weights import (
    STIRLING,
    NormalTail,
    log_gamma1,
    power_weight,
    reciprocal_gamma,
    scaled_excess,
    stirling_correction,
    stirling_slope,
    stirling_weight,
)
from dovetail._core.ops.special.interior_functions import InteriorFunction
from dovetail._core.ops.special.normal_expansion import Expansion, beta_series
from dovetail._core.trace.zeros import Zero


class BetaFunction(InteriorFunction):
    """A function of the shapes `a` and `b` and the argument `x` of a beta distribution."""

    interior_point = 0.5

    def inside(self, *operands: Expression) -> Expression:
        a, b, x = operands
        shapes = (a > 0.0) & (a < math.inf) & (b > 0.0) & (b < math.inf)
        return shapes & (x > 0.0) & (x < 1.0)


class RegularizedIncompleteBeta(BetaFunction):
    """The distribution function of the beta distribution."""

    name = "regularized_incomplete_beta"
    numpy = references.wide(np.vectorize(special_references.betainc, [float]))

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals)
        *shapes, t = tangents
        for name, tangent in zip("ab", shapes, strict=True):
            if type(tangent) is not Zero:
                raise ValueError(
                    f"lax.betainc is not differentiable in its argument {name}, only in x"
                )
        if type(t) is Zero:
            return out, Zero.of(out)
        return out, broadcast_to(mul(t, beta_density_p.bind(*primals)), shape_of(out))

    def formula(self, *operands: Expression, exact: bool) -> Expression:
        a, b, x = (t.apply("minimum", 2.0**1022) for t in operands)
        weight = _Weight(a, b, x, exact)
        ways = _ways(a, b, x)
        lower = (ways & 1) == 0
        y = 1.0 - x

        def fraction() -> Expression:
            shapes, places = _exchanged(lower, a, b), _exchanged(lower, x, y)
            steps = _steps(*shapes, places[1], exact)
            count = steps.where(ways < 2, 0.0).largest()
            below = weight.below_mean()
            difference = below.where(lower, -below)
            return weight.value() / _fraction(*shapes, *places, difference, count)

        def complement() -> Expression:
            shapes, places = _exchanged(lower, b, a), _exchanged(lower, y, x)
            return _complement(*shapes, places[0], exact)

        def expansion() -> Expression:
            share, rest = a / (a + b), b / (a + b)
            exponent = _excess(a, b, x, weight.below_mean())
            tail = NormalTail(exponent, weight.kernel, a * rest, ~lower)
            series = beta_series(exact)
            total = Expansion(tail.shape, tail.distance, series, share * rest, rest - share).total
            return tail.probability((-total).where(lower, total))

        kinds = ways >> 1
        tail = by_kind(kinds, [fraction, complement, expansion], a.constant(0.0))
        return tail.where(lower, 1.0 - tail)

    def edges(self, *operands: Expression) -> Sequence[tuple[Expression, Any]]:
        a, b, x = operands
        valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
        low, high = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
        return (
            (valid & (high | (x == 0.0)), 0.0),
            (valid & ((low & (x > 0.0)) | (x == 1.0)), 1.0),
            (valid & (((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))), math.nan),
        )


class BetaDensity(BetaFunction):
    """The density of the beta distribution, the derivative of `betainc` in `x`."""

    name = "beta_density"
    numpy = references.wide(np.vectorize(special_references.beta_density, [float]))

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        a, b, x = primals
        out = self.bind(a, b, x)
        one = literal_like(1, x)

        def change(number: int) -> Any:
            """The derivative of the logarithm in an operand."""
            if number == 2:
                left, right = (div_p.bind(sub_p.bind(a, one), x), sub_p.bind(b, one))
                return sub_p.bind(left, div_p.bind(right, sub_p.bind(one, x)))
            shape, place = (a, log(x)) if number == 0 else (b, log1p(neg(x)))
            return sub_p.bind(place, sub_p.bind(digamma(shape), digamma(add_p.bind(a, b))))

        result: Any = Zero.of(out)
        for number, t in enumerate(tangents):
            if type(t) is not Zero:
                part = broadcast_to(mul(mul(t, out), change(number)), shape_of(out))
                result = add_tangents(result, part)
        return out, result

    def formula(self, *operands: Expression, exact: bool) -> Expression:
        a, b, x = (t.apply("minimum", 2.0**1022) for t in operands)
        return _Weight(a, b, x, exact, density=True).value()

    def edges(self, *operands: Expression) -> Sequence[tuple[Expression, Any]]:
        a, b, x = operands
        valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
        point = (a == 0.0) | (b == 0.0) | (a == math.inf) | (b == math.inf)
        both = (a == b) & ((a == 0.0) | (a == math.inf))
        first, last = valid & (x == 0.0), valid & (x == 1.0)
        return (
            (first | last, 0.0),
            (first & (a == 1.0), b),
            (last & (b == 1.0), a),
            ((first & (a < 1.0)) | (last & (b < 1.0)), math.inf),
            (valid & point, 0.0),
            (valid & both, math.nan),
        )


regularized_incomplete_beta_p: Final = RegularizedIncompleteBeta()
beta_density_p: Final = BetaDensity()


class _Weight:
    """``x**a * (1 - x)**b / beta(a, b)`` and its parts; or the density, that over x (1 - x)."""

    def __init__(
        self, a: Expression, b: Expression, x: Expression, exact: bool, density: bool = False
    ) -> None:
        self.a, self.b, self.x = a, b, x
        self.exact = exact
        self.density = density
        large = (a >= STIRLING) | (b >= STIRLING)
        self.kinds = large.convert(np.int32)
        #: The drop in log density from the mean, to the accuracy of Stirling's series.
        self.kernel = by_kind(self.kinds, [None, self._kernel], a.constant(0.0))

    def value(self) -> Expression:
        """The weight or density."""
        zero = self.a.constant(0.0)
        return by_kind(self.kinds, [self._small, self._large], zero)

    def _complement(self) -> Any:
        """``1 - x``; a double-double if the result has to be exact."""
        # The maximum keeps XLA from simplifying 1 - (1 - x) to x.
        y = (1.0 - self.x).apply("maximum", 0.0)
        return DoubleDouble(y, (1.0 - y) - self.x) if self.exact else y

    def below_mean(self) -> Expression:
        """``a * (1 - x) - b * x``, positive where x is below the mean."""
        y = self._complement()
        if not self.exact:
            result: Expression = self.a * y - self.b * self.x
            return result
        left: DoubleDouble = two_product(self.a, y.high) + self.a * y.low
        return (left - two_product(self.b, self.x)).high

    def _ordered(self, first: Expression) -> tuple[Expression, Expression, Any, Any]:
        """Shapes and arguments, those of the second parameter first where the condition fails."""
        y = self._complement()
        shapes = _exchanged(first, self.a, self.b)
        return *shapes, _chosen(first, self.x, y), _chosen(first, y, self.x)

    def _small(self) -> Expression:
        """For shapes below 8, with three gamma functions."""
        p, q, *places = self._ordered(self.x < 0.5)
        x, y = map(_head, places)
        total = p + q
        up, down = reciprocal_gamma(stacked(p, q, total), 2 * STIRLING)
        (p_up, q_up, up), (p_down, q_down, down) = unstacked(up), unstacked(down)
        power, divisor = self._power(p, x)
        result = x.apply("power", power) / divisor * y.apply("power", q)
        result = result * (p_up * q_up / up) * (down / (p_down * q_down)) * (p * (q / total))
        if self.exact:
            # The effect of rounding the arguments and the sum of the shapes, to first order.
            change = places[0].low * (power / x) + places[1].low * (q / y)
            change = change + two_sum(p, q).low * (total + 0.5615).log()
            result = result + result * change
        return result / y if self.density else result

    def _large(self) -> Expression:
        """For one or two large shapes, the larger one q, by Stirling's series.

        It is the weight of the gamma distribution with shape p at p + q times the argument, times a
        factor of the same form for q.
        """
        p, q, *places = self._ordered(self.a <= self.b)
        x, y = map(_head, places)
        total: Any = two_sum(p, q) if self.exact else p + q
        head = _head(total)
        of_q, of_total = unstacked(stirling_correction(stacked(q, head)))
        factor = (q / head).sqrt() * (of_total - of_q).exp() * self.kernel
        power, divisor = self._power(p, x)
        low, high = power_weight(p, places[0] * total, power), stirling_weight(p)
        if self.density:
            # x**(p - 1) is (p + q)**(1 - p) times that of the argument.
            low = low * head.where(p >= 1.0, 1.0) / divisor
            high, factor = high / x, factor / y
        return low.where(p < STIRLING, high) * factor

    def _kernel(self) -> Expression:
        """The exponential of the excess of q, and of that of p if it is large too."""
        p, q, x, y = self._ordered(self.a <= self.b)
        total: Any = two_sum(p, q) if self.exact else p + q
        x, y = x * total, y * total
        near, far = scaled_excess(p, x), scaled_excess(q, y)
        kernel: Expression = (-_chosen(p < STIRLING, far, near + far)).exp()
        return kernel

    def _power(self, p: Expression, x: Expression) -> tuple[Expression, Expression]:
        """The power of an argument, and its divisor; see `GammaDensity`."""
        if not self.density:
            return p, p.constant(1.0)
        lowered = p >= 1.0
        return (p - 1.0).where(lowered, p), p.constant(1.0).where(lowered, x)


def _head(x: Any) -> Expression:
    return x.high if isinstance(x, DoubleDouble) else x


def _chosen(condition: Expression, x: Any, y: Any) -> Any:
    """`x` where the condition holds, `y` elsewhere; expressions or double-doubles."""
    if isinstance(x, DoubleDouble) or isinstance(y, DoubleDouble):
        like = x if isinstance(x, Expression) else y
        x, y = as_double_double(x, like), as_double_double(y, like)
        return DoubleDouble(x.high.where(condition, y.high), x.low.where(condition, y.low))
    return x.where(condition, y)


def _exchanged(keep: Expression, x: Expression, y: Expression) -> tuple[Expression, Expression]:
    """Both expressions, swapped where the condition fails."""
    return x.where(keep, y), y.where(keep, x)


def _excess(a: Expression, b: Expression, x: Expression, below: Expression) -> Expression:
    """The drop of the log weight from its maximum, for large shapes.

    Args:
        a: first shape.
        b: second shape.
        x: the argument.
        below: ``a * (1 - x) - b * x``.
    """
    total = a + b
    near: Expression = scaled_excess(a, total * x, -below)
    far: Expression = scaled_excess(b, total * (1.0 - x), below)
    return near + far


def _ways(a: Expression, b: Expression, x: Expression) -> Expression:
    """The method: 0 a fraction, 2 a complement, 4 an expansion; one more for 1 - x.

    A complement is one minus the result, computed without subtracting from one. It is used where
    the fraction would be slow, or give numbers near one.
    """
    y, total = 1.0 - x, a + b
    low, high = _is_small(a, total * x), _is_small(b, total * y)
    near = _excess(a, b, x, a * y - b * x) <= a.apply("minimum", b) * 0.18
    upper = ~low & (x * b.apply("maximum", 5.0) <= 0.75) & (high | (b >= a))
    lower = ~high & (y * a.apply("maximum", 5.0) <= 0.75) & (low | (a > b))
    number = a.convert(np.int32)
    way = number.constant(0).where(low | (~high & (a >= b)), 1)
    way = number.constant(3).where(upper, number.constant(2).where(lower, way))
    expansion = number.constant(5).where(a * y < b * x, 4)
    return expansion.where((a >= 16.0) & (b >= 16.0) & near, way)


def _is_small(a: Expression, z: Expression) -> Expression:
    """Whether the incomplete gamma function of `a` and `z` is below one half, roughly."""
    small = math.log(0.5) / (z.apply("minimum", 0.5) * 0.5).log()
    return a > (z + 0.25).where(z >= 0.5, small)


def _fraction(
    a: Expression,
    b: Expression,
    x: Expression,
    y: Expression,
    difference: Expression,
    count: Expression,
) -> Expression:
    """The denominator of the weight in the function. Source: DiDonato and Morris (1992), (9).

    Args:
        a: first shape.
        b: second shape.
        x: the argument, mostly below the mean.
        y: ``1 - x``.
        difference: ``a * y - b * x``.
        count: the number of steps.
    """
    total = a + b

    def step(k: Expression, t: Expression, inverse: Expression) -> Sequence[Expression]:
        before = k - 1.0
        # Where k is 1 this is multiplied by zero, so it only has to be finite.
        next_inverse = 1.0 / (a + (k + k - 3.0).apply("maximum", 0.0))
        shifted = (a + before) * inverse
        numerator = k * x * ((b - k) * x) * shifted * ((total + before) * inverse)
        rest = before * ((b - before) * x) * next_inverse
        slope = shifted * (difference + 1.0 + before * (y + 1.0))
        return before + rest + slope + numerator / t, next_inverse

    # The error from truncating the fraction here is negligible.
    result, _ = repeat_downwards(count, step, a.constant(math.inf), a.constant(0.0))
    return result


def _steps(a: Expression, b: Expression, y: Expression, exact: bool) -> Expression:
    """The number of steps the fraction needs, found by experiment."""
    least, root, most = (8.0, 7.0, 110.0) if exact else (5.0, 4.0, 37.0)
    smaller = a.apply("minimum", b).apply("minimum", 16.0)
    slow = (root / y.sqrt()).apply("minimum", most / ((a + b) * y))
    return slow + smaller + least


def _complement(a: Expression, b: Expression, x: Expression, exact: bool) -> Expression:
    """One minus the function, for small a and b x, without subtracting from one.

    (1 - f) - f a (1 - b) x (1 / (a + 1) + (2 - b) x / (2 (a + 2)) + ...), where f is x**a gamma(a +
    b) / (gamma(1 + a) gamma(b)). Source: DLMF 8.17.7 and 15.2.1.
    """

    def step(k: Expression, s: Expression) -> Sequence[Expression]:
        following = k + 1.0
        return (1.0 / (a + k) + (following - b) * x / following * s,)

    (total,) = repeat_downwards(20 if exact else 12, step, a.constant(0.0))
    shifted = b + float(STIRLING)
    raised = b < float(STIRLING)
    large = shifted.where(raised, b)
    # log(gamma(a + b) / gamma(b)) - a log(b), for b + 8 if b is small.
    ratio = a / large
    growth = ratio.call(log1p)
    exponent = large * (growth - ratio) + (a - 0.5) * growth
    exponent = exponent + a * stirling_slope(large, a + large)
    # Correct that for b: subtract the logarithm of the product of 1 + a / (b + k).
    product = a.constant(0.0)
    for k in range(STIRLING):
        part = a / (b + float(k))
        product = product + part + product * part
    exponent = exponent - product.call(log1p).where(raised, 0.0)
    factor = (exponent + a * (large * x).log() - log_gamma1(a)).call(expm1)
    return (factor + 1.0) * a * ((b - 1.0) * x) * total - factor


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, the distribution function of the beta distribution.

    It is the integral of ``t**(a - 1) * (1 - t)**(b - 1)`` from 0 to `x`, divided by that to 1. It
    is differentiable in `x` only.

    Args:
        a: non-negative numbers, floating point.
        b: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.
        x: numbers between 0 and 1, likewise.

    Returns:
        An array of the dtype of the operands; NaN outside these domains, and where `a` and `b` are
        both zero or both infinite.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.betainc(2.0, 2.0, 0.25)), 4)
        0.1562
    """
    return regularized_incomplete_beta_p.bind(*equal_dtypes("betainc", a, b, x))
