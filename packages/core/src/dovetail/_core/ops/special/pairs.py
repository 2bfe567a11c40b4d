"""Sums of two float64 numbers: twice the precision where an exponent must be exact.

Only numbers of 26 bits are multiplied, whose products are exact: so it makes no difference whether
a compiler joins a product and a sum into one operation with one rounding, as XLA's does or not from
place to place. Source: T. J. Dekker, A floating-point technique for extending the available
precision, Numerische Mathematik 18 (1971).
"""

from __future__ import annotations

from typing import Any

from dovetail._core.ops.special.terms import Term


class Pair:
    """The exact sum of `high`, and of `low`, which is at most half a unit of its last place."""

    __slots__ = ("high", "low")

    def __init__(self, high: Term, low: Term) -> None:
        self.high = high
        self.low = low

    def __add__(self, other: Any) -> Pair:
        other = paired(other, self.high)
        total = sum_of(self.high, other.high)
        return _renormalized(total.high, total.low + (self.low + other.low))

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    def __sub__(self, other: Any) -> Pair:
        return self + -paired(other, self.high)

    def __mul__(self, other: Any) -> Pair:
        other = paired(other, self.high)
        product = product_of(self.high, other.high)
        cross = self.high * other.low + self.low * other.high
        return _renormalized(product.high, product.low + cross)

    def __truediv__(self, other: Any) -> Pair:
        other = paired(other, self.high)
        quotient = self.high / other.high
        rest = self - other * quotient
        return _renormalized(quotient, rest.high / other.high)

    def scaled(self, power: Term) -> Pair:
        """The product with a power of two."""
        return Pair(self.high * power, self.low * power)

    def exp(self) -> Term:
        """The exponential, rounded."""
        high = self.high.exp()
        return high + high * self.low


def paired(x: Any, like: Term) -> Pair:
    """A pair from a pair, a term, a number, or the parts of a number."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, Term):
        return Pair(x, x.constant(0.0))
    high, low = x if isinstance(x, tuple) else (x, 0.0)
    return Pair(like.constant(high), like.constant(low))


def sum_of(x: Term, y: Term) -> Pair:
    """The exact sum of two numbers, neither of which is a constant."""
    total = x + y
    second = total - x
    return Pair(total, (x - (total - second)) + (y - second))


def product_of(x: Term, y: Term) -> Pair:
    """The product of two numbers, exact to 2**-79."""
    (a, b), (c, d) = _halves(x), _halves(y)
    return _renormalized(a * c, (a * d + b * c) + b * d)


def _halves(x: Term) -> tuple[Term, Term]:
    """Two numbers of 26 bits whose sum is `x`."""
    context = x.context
    bits = {"exponent_bits": context.i32(11), "mantissa_bits": context.i32(25)}
    high = Term(context, context.op("reduce_precision", [x.value], x.aval, bits), x.aval)
    return high, x - high


def _renormalized(high: Term, low: Term) -> Pair:
    total = high + low
    return Pair(total, low - (total - high))
