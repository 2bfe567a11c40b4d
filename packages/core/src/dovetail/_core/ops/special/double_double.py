"""Double-double arithmetic: sums of two float64 numbers, for accurate exponents.

Only 26-bit numbers are multiplied, so products are exact. It therefore makes no difference whether
a compiler fuses a product and a sum into one operation with one rounding, as XLA does in some
places. Source: T. J. Dekker, A floating-point technique for extending the available precision,
Numerische Mathematik 18 (1971).
"""

from __future__ import annotations

from typing import Any

from dovetail._core.hlo.expressions import Expression


class DoubleDouble:
    """The exact sum of `high` and a `low` of at most half a unit in its last place."""

    __slots__ = ("high", "low")

    def __init__(self, high: Expression, low: Expression) -> None:
        self.high = high
        self.low = low

    def __add__(self, other: Any) -> DoubleDouble:
        other = as_double_double(other, self.high)
        total = two_sum(self.high, other.high)
        return _renormalized(total.high, total.low + (self.low + other.low))

    def __neg__(self) -> DoubleDouble:
        return DoubleDouble(-self.high, -self.low)

    def __sub__(self, other: Any) -> DoubleDouble:
        return self + -as_double_double(other, self.high)

    def __mul__(self, other: Any) -> DoubleDouble:
        other = as_double_double(other, self.high)
        product = two_product(self.high, other.high)
        cross = self.high * other.low + self.low * other.high
        return _renormalized(product.high, product.low + cross)

    def __truediv__(self, other: Any) -> DoubleDouble:
        other = as_double_double(other, self.high)
        quotient = self.high / other.high
        rest = self - other * quotient
        return _renormalized(quotient, rest.high / other.high)

    def scaled(self, power: Expression) -> DoubleDouble:
        """The product with a power of two."""
        return DoubleDouble(self.high * power, self.low * power)

    def exp(self) -> Expression:
        """The exponential, rounded."""
        high = self.high.exp()
        return high + high * self.low


def as_double_double(x: Any, like: Expression) -> DoubleDouble:
    """Convert a double-double, an expression, a number, or the two parts of a number."""
    if isinstance(x, DoubleDouble):
        return x
    if isinstance(x, Expression):
        return DoubleDouble(x, x.constant(0.0))
    high, low = x if isinstance(x, tuple) else (x, 0.0)
    return DoubleDouble(like.constant(high), like.constant(low))


def two_sum(x: Expression, y: Expression) -> DoubleDouble:
    """The exact sum of two numbers, neither of which is a constant."""
    total = x + y
    second = total - x
    return DoubleDouble(total, (x - (total - second)) + (y - second))


def two_product(x: Expression, y: Expression) -> DoubleDouble:
    """The product of two numbers, accurate to 2**-79."""
    (a, b), (c, d) = _halves(x), _halves(y)
    return _renormalized(a * c, (a * d + b * c) + b * d)


def _halves(x: Expression) -> tuple[Expression, Expression]:
    """Two 26-bit numbers whose sum is `x`."""
    context = x.context
    bits = {"exponent_bits": context.i32(11), "mantissa_bits": context.i32(25)}
    high = Expression(context, context.op("reduce_precision", [x.value], x.aval, bits), x.aval)
    return high, x - high


def _renormalized(high: Expression, low: Expression) -> DoubleDouble:
    total = high + low
    return DoubleDouble(total, low - (total - high))
