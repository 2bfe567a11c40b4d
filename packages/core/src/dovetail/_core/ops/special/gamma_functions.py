"""The logarithm of the gamma function, its derivatives, and the Hurwitz zeta function."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, mul, neg
from dovetail._core.basis.families import Binary
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.basis.structural import full
from dovetail._core.hlo.expressions import Expression, by_kind
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p, gt_p, lt_p
from dovetail._core.ops.elementwise.exponential import log, log1p
from dovetail._core.ops.elementwise.extrema import max_p
from dovetail._core.ops.elementwise.functions import FLOATS, Function, horner
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.ops.elementwise.powers import reciprocal, square
from dovetail._core.ops.elementwise.rounding import RoundingMethod, round_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p
from dovetail._core.ops.elementwise.trigonometric import sin, tan
from dovetail._core.ops.special import special_references
from dovetail._core.ops.special.interior_functions import InteriorFunction
from dovetail._core.ops.special.zeta_series import gamma_zeta, hurwitz_zeta

# The zero of the digamma function between 1 and 2.
_DIGAMMA_ZERO: Final = "1.461632144968362341262659542325721328468196204"


def _bernoulli(single: bool) -> list[float]:
    return [float(b) for b in special_references.bernoulli(4 if single else 9)]


def _where(condition: Any, x: Any, y: Any) -> Any:
    return select_n_p.bind(condition, y, x)


class Lgamma(Function):
    """The logarithm of the absolute value of the gamma function."""

    name, hlo, kinds = "lgamma", "chlo.lgamma", "f"
    numpy = references.each(special_references.lgamma, pole=math.inf)
    formula_dtypes = FLOATS

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return digamma(x)

    def formula(self, x: Any) -> Any:
        """A Taylor series around 2, reached by recurrence; from 8 on Stirling's series.

        The series has the zeros at 1 and 2 as factors, so results near them are accurate.
        Negative arguments by reflection. Source: DLMF 5.5.1, 5.5.3, 5.7.3, 5.11.1.
        """
        single = aval_of(x).dtype == np.float32
        one = literal_like(1, x)
        z = abs_p.bind(x)
        # Down to less than 2.5, collecting the product of the arguments passed.
        w, product = z, mul(z, literal_like(0, z))
        product = add_p.bind(product, one)
        for _ in range(6):
            passed = ge_p.bind(w, literal_like(2.5, x))
            w = sub_p.bind(w, convert_element_type(passed, aval_of(x).dtype))
            product = _where(passed, mul(product, w), product)
        tiny = lt_p.bind(z, literal_like(0.5, x))
        low = lt_p.bind(z, literal_like(1.5, x))
        t = _where(low, _where(tiny, z, sub_p.bind(z, one)), sub_p.bind(w, literal_like(2, x)))
        series = mul(t, horner(special_references.log_gamma_series(13 if single else 28), t))
        small = sub_p.bind(series, log1p(t))
        small = _where(tiny, sub_p.bind(small, log(z)), small)
        small = _where(low, small, add_p.bind(series, log(product)))
        inverse = reciprocal(z)
        terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(single), 1)]
        tail = mul(inverse, horner(terms, square(inverse)))
        stirling = mul(sub_p.bind(z, literal_like(0.5, x)), sub_p.bind(log(z), one))
        constant = literal_like((math.log(2 * math.pi) - 1) / 2, x)
        stirling = add_p.bind(stirling, add_p.bind(constant, tail))
        positive = _where(lt_p.bind(z, literal_like(8, x)), small, stirling)
        sine = abs_p.bind(sin(mul(literal_like(math.pi, x), _to_nearest(z))))
        reflected = add_p.bind(log(mul(sine, literal_like(1 / math.pi, x))), log(z))
        negative = sub_p.bind(neg(reflected), positive)
        result = _where(lt_p.bind(x, literal_like(0, x)), negative, positive)
        infinite = eq_p.bind(z, literal_like(math.inf, x))
        return _where(infinite, z, result)


def _to_nearest(x: Any) -> Any:
    """The signed distance from the nearest integer, exact."""
    return sub_p.bind(x, round_p.bind(x, rounding_method=RoundingMethod.TO_NEAREST_EVEN))


@functools.cache
def _digamma_series(terms: int) -> list[float]:
    """Coefficients of digamma(r + h) / h at its zero r. Source: DLMF 5.15.1."""
    zero = float(_DIGAMMA_ZERO)
    return [(-1) ** (n + 1) * special_references.zeta(n + 1.0, zero) for n in range(1, terms + 1)]


class Digamma(Function):
    """The derivative of the logarithm of the gamma function."""

    name, hlo, kinds = "digamma", "chlo.digamma", "f"
    numpy = references.each(special_references.digamma)
    formula_dtypes = FLOATS

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return polygamma(literal_like(1, x), x)

    def formula(self, x: Any) -> Any:
        """A Taylor series around the zero at 1.46, reached by recurrence; another from 10 on.

        Negative arguments by reflection. Source: DLMF 5.5.2, 5.5.4, 5.11.2.
        """
        dtype = aval_of(x).dtype
        single = dtype == np.float32
        one, half = literal_like(1, x), literal_like(0.5, x)
        z = abs_p.bind(x)
        low = lt_p.bind(z, one)
        w = _where(low, add_p.bind(z, one), z)
        shift = mul(z, literal_like(0, z))
        for _ in range(8):
            above = gt_p.bind(w, literal_like(2, x))
            w = sub_p.bind(w, convert_element_type(above, dtype))
            shift = _where(above, add_p.bind(shift, reciprocal(w)), shift)
        # The zero in two parts, to make the distance from it exact.
        first = dtype.type(float(_DIGAMMA_ZERO))
        rest = float(Decimal(_DIGAMMA_ZERO) - Decimal(float(first)))
        # XLA would fold the sum of the parts; it does not see that the maximum changes nothing.
        h = max_p.bind(sub_p.bind(w, literal_like(first, x)), literal_like(-10, x))
        h = sub_p.bind(h, literal_like(rest, x))
        series = mul(h, horner(_digamma_series(18 if single else 40), h))
        inverse = reciprocal(z)
        small = _where(low, sub_p.bind(series, inverse), add_p.bind(series, shift))
        terms = [-b / (2 * k) for k, b in enumerate(_bernoulli(single), 1)]
        squared = square(inverse)
        tail = mul(squared, horner(terms, squared))
        large = add_p.bind(sub_p.bind(log(z), mul(half, inverse)), tail)
        positive = _where(lt_p.bind(z, literal_like(10, x)), small, large)
        pole = literal_like(math.pi, x)
        distance = _to_nearest(z)
        cotangent = div_p.bind(pole, tan(mul(pole, distance)))
        negative = add_p.bind(positive, add_p.bind(inverse, cotangent))
        on_pole = eq_p.bind(distance, literal_like(0, x))
        negative = _where(on_pole, literal_array(math.nan, x), negative)
        result = _where(lt_p.bind(x, literal_like(0, x)), negative, positive)
        return _where(eq_p.bind(x, literal_like(0, x)), literal_array(-math.inf, x), result)


def literal_array(value: float, like: Any) -> Any:
    """An array of one value, with the shape and dtype of another."""
    return full(aval_of(like).shape, value, aval_of(like).dtype)


class Polygamma(InteriorFunction, Binary):
    """The derivative of the digamma function, of the order in the first operand."""

    name = "polygamma"
    numpy = references.wide(np.vectorize(special_references.polygamma, otypes=[np.float64]))

    def inside(self, *operands: Expression) -> Expression:
        m, x = operands
        whole: Expression = (m >= 0.0) & (m < math.inf) & (m == m.apply("floor"))
        return whole & (x < math.inf) & ((x > 0.0) | (x > x.apply("floor")))

    def formula(self, *operands: Expression, exact: bool) -> Expression:
        m, x = operands
        half = m * 0.5
        even = half.apply("floor") == half
        first = m == 0.0
        derivative = gamma_zeta((m + 1.0).where(~first, 2.0), x, exact)
        derivative = (-derivative).where(even, derivative)
        kinds = first.convert(np.int32)
        return by_kind(kinds, [None, lambda: x.call(digamma)], derivative)

    def edges(self, *operands: Expression) -> Sequence[tuple[Expression, Any]]:
        m, x = operands
        valid = (m >= 1.0) & (m == m.apply("floor")) & (m < math.inf)
        half = m * 0.5
        pole = m.constant(-math.inf).where(half.apply("floor") == half, math.inf)
        return (
            (valid & (x <= 0.0) & (x == x.apply("floor")), pole),
            (valid & (x == math.inf), 0.0),
            ((m == 0.0) & (x == math.inf), math.inf),
            ((m == 0.0) & (x == 0.0), -math.inf),
        )

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        raise ValueError("lax.polygamma is not differentiable in m, the order of the derivative")

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, self.bind(add_p.bind(x, literal_like(1, x)), y))


class Zeta(InteriorFunction, Binary):
    """The Hurwitz zeta function."""

    name = "zeta"
    numpy = references.wide(np.vectorize(special_references.zeta, otypes=[np.float64]))

    #: With equal operands s and q.
    interior_point = 2.0

    def inside(self, *operands: Expression) -> Expression:
        s, q = operands
        reflected: Expression = (q > q.apply("floor")) & (s == s.apply("floor"))
        return (s > 1.0) & (s < math.inf) & (q < math.inf) & ((q > 0.0) | reflected)

    def formula(self, *operands: Expression, exact: bool) -> Expression:
        s, q = operands
        return hurwitz_zeta(s, q, exact)

    def edges(self, *operands: Expression) -> Sequence[tuple[Expression, Any]]:
        s, q = operands
        endless = s == math.inf
        return (
            (endless & (q < 1.0), math.inf),
            (endless & (q == 1.0), 1.0),
            ((s > 1.0) & ((endless & (q > 1.0)) | (q == math.inf)), 0.0),
            ((s > 1.0) & (q <= 0.0) & (q == q.apply("floor")), math.inf),
            ((s == 1.0) & (q == q), math.inf),
        )

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        raise ValueError("lax.zeta is not differentiable in its first argument x, the exponent")

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, mul(neg(x), self.bind(add_p.bind(x, literal_like(1, x)), y)))


lgamma_p: Final = Lgamma()
digamma_p: Final = Digamma()
polygamma_p: Final = Polygamma()
zeta_p: Final = Zeta()


# Public functions


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function of each element.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`; infinite at 0 and the negative integers.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> float(lax.lgamma(1.0))
        0.0
    """
    return lgamma_p.bind(as_operand(x, "lax.lgamma"))


def digamma(x: ArrayLike) -> Array:
    """The derivative of `lgamma` at each element.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`; minus infinity at 0 and NaN at the negative
        integers.

    Raises:
        TypeError: `x` is not floating point.

    Differs:
        It is minus infinity at 0, not nan.

        >>> print(lax.digamma(0.0))
        -inf

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.digamma(1.0)), 4)
        -0.5772
    """
    return digamma_p.bind(as_operand(x, "lax.digamma"))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order `m` of the digamma function.

    It is not differentiable in `m`.

    Args:
        m: non-negative whole numbers, as floating point.
        x: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands; for positive orders, infinite at 0 and the negative
        integers; NaN for orders that are negative or not integers.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Differs:
        It is infinite at every pole, where JAX has nan for some.

        >>> print(lax.polygamma(jnp.array([1.0, 3.0]), jnp.array([0.0, -2.0])))
        [inf inf]

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.polygamma(1.0, 1.0)), 4)
        1.6449
    """
    return polygamma_p.bind(*operands("polygamma", m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function, the sum of ``(k + q) ** -x`` over the integers k >= 0.

    It is not differentiable in `x`.

    Args:
        x: exponents greater than 1, floating point.
        q: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands; infinite for x = 1 and where q is 0 or a negative
        integer; NaN for x < 1, and for other negative q unless x is an integer.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Differs:
        It is infinite at every pole, and exact also for large and negative arguments.

        >>> print(lax.zeta(jnp.array([3.0, 3.0]), jnp.array([0.0, -2.0])))
        [inf inf]

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.zeta(2.0, 1.0)), 4)
        1.6449
    """
    return zeta_p.bind(*operands("zeta", x, q))
