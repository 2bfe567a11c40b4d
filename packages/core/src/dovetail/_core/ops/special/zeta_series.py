"""Formulas of the Hurwitz zeta function and of its product with the gamma function.

They are formulas of float64 expressions. With `exact` they are accurate enough for float64 results;
narrower results need fewer terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dovetail._core.hlo.expressions import Expression, by_kind, repeat_downwards
from dovetail._core.ops.elementwise.exponential import log1p
from dovetail._core.ops.special import special_references
from dovetail._core.ops.special.double_double import DoubleDouble, two_sum
from dovetail._core.ops.special.gamma_weights import (
    LOG2,
    excess,
    nearest_power,
    stirling_correction,
)

#: From here on Stirling's series gives the gamma function.
_STIRLING: Final = 8

#: Represents infinity: a number whose square is infinite.
_HUGE: Final = 1e300

#: The zeta function from s, q, and the exact `q` minus the given one.
_Zeta = Callable[[Expression, Expression, Expression], Expression]


def hurwitz_zeta(s: Expression, q: Expression, exact: bool) -> Expression:
    """The Hurwitz zeta function for 1 < s; for q < 0 where s is an integer and q is not."""

    def zeta(s: Expression, q: Expression, rest: Expression) -> Expression:
        return _joined(s, q, rest, _half_power(s, q), s.constant(1.0), exact)

    return _reflected(zeta, s, q)


def gamma_zeta(s: Expression, q: Expression, exact: bool) -> Expression:
    """The zeta function times gamma(s) for integers s >= 2, even where a factor overflows."""

    def zeta(s: Expression, q: Expression, rest: Expression) -> Expression:
        kinds = (s >= _STIRLING).convert(np.int32)
        large = lambda: _root_of_weight(s, q, exact)  # noqa: E731
        root = by_kind(kinds, [lambda: _half_power(s, q), large], s.constant(0.0))
        gamma = s.constant(1.0)
        for k in range(2, _STIRLING - 1):
            gamma = (gamma * k).where(s > k, gamma)
        bounded = s.apply("maximum", float(_STIRLING))
        weight = (2 * math.pi / bounded).sqrt() * stirling_correction(bounded).exp()
        return _joined(s, q, rest, root, weight.where(s >= _STIRLING, gamma), exact)

    return _reflected(zeta, s, q)


def _reflected(zeta: _Zeta, s: Expression, q: Expression) -> Expression:
    """A zeta-like function, from its values for q > 0.

    The sum over all integers k of ``(k + q) ** -s`` has period one in q. The terms before those of
    the zeta function are, up to sign, those of another one.
    """
    negative = q < 0.0
    # The distances of a negative q from the integers around it; their sum is one.
    below = two_sum(q, -q.apply("floor"))
    above = q.apply("ceil") - q

    def step(k: Expression, *before: Expression) -> Sequence[Expression]:
        """The bases are taken in turn, so the program contains one zeta function."""
        first = k == 1.0
        base = below.high.where(negative, q).where(first, above.where(k == 2.0, 1.0 - q))
        return zeta(s, abs(base), below.low.where(first & negative, 0.0)), *before[:-1]

    count = (s.constant(2.0).where(negative, 0.0)).largest() + 1.0
    head, near, far = repeat_downwards(count, step, *[s.constant(0.0)] * 3, steps_in_a_turn=1)
    half = s * 0.5
    odd = half.apply("floor") < half
    # Overflow goes to the side of the nearest integer.
    difference = head - near
    difference = difference.where(difference == difference, (above - below.high) * math.inf)
    difference = difference.where(~(above == below.high), 0.0)
    two = difference.where(odd, head + near)
    three = two + far.where(odd, -far)
    return three.where(three == three, two).where(negative, head)


def _half_power(s: Expression, q: Expression) -> Expression:
    """``q ** (-s / 2)``: the full power may underflow where the result does not."""
    return q.apply("power", s * -0.5)


def _root_of_weight(s: Expression, q: Expression, exact: bool) -> Expression:
    """``(s / (e q)) ** (s / 2)`` for s >= 8."""
    # Beyond these bounds the result is infinity or zero, as it is at them.
    s = s.apply("minimum", 1e250)
    q = q.apply("maximum", s * 2.0**-300).apply("minimum", s * 2.0**300)
    if not exact:
        return (s * 0.5 * ((s / q).log() - 1.0)).exp()
    exponent, power = nearest_power(q / s)
    scaled = q / power
    place = DoubleDouble(scaled, s.constant(0.0))
    shift = DoubleDouble(exponent * LOG2[0], exponent * LOG2[1]) * s
    logarithm: DoubleDouble = (excess(s, place) - place - shift).scaled(s.constant(0.5))
    return logarithm.exp().where(logarithm.high < math.log(_HUGE), _HUGE)


def _joined(
    s: Expression,
    q: Expression,
    rest: Expression,
    root: Expression,
    weight: Expression,
    exact: bool,
) -> Expression:
    """``zeta(s, q) * q**s * root**2 * weight``, without intermediate overflow.

    Euler-Maclaurin summation. The terms are divided by the first one, and no rounding error of
    ``q + k`` is multiplied by s. Source: DLMF 25.11.28.

    Args:
        s: exponents greater than one.
        q: positive numbers.
        rest: the correction to `q`, at most half a unit in its last place.
        root: the factor that is applied twice.
        weight: another factor.
        exact: whether results are float64.
    """
    count, orders = (8, 10) if exact else (4, 5)
    # If q is as large as s, no terms need to be summed before the expansion.
    needed = (s - q + (count - 1.0)).apply("minimum", float(count)).largest()
    turns = (needed / 4.0).apply("ceil")
    step = lambda k, total: (total + (s * -(k / q).call(log1p)).exp(),)  # noqa: E731
    (total,) = repeat_downwards(turns * 4.0, step, s.constant(0.0))
    number = (turns * 4.0 + 1.0).broadcast(s.aval.shape)
    z = q + number
    ratio = (s * -(number / q).call(log1p)).exp()
    # For small q the logarithm is large, and s near one.
    ratio = (q / z).apply("power", s).where(q < 1.0, ratio)
    inverse = 1.0 / z
    # Beyond the bound the ratio vanishes.
    t = (s * inverse).apply("minimum", 50.0)
    numbers = special_references.bernoulli(orders)
    coefficients = [float(b / math.factorial(2 * k)) for k, b in enumerate(numbers, 1)]
    bend = t.constant(coefficients[-1])
    for k in range(orders - 1, 0, -1):
        growth = (t + inverse * (2 * k - 1)) * (t + inverse * (2 * k))
        bend = bend * growth + coefficients[k - 1]
    root = root.apply("minimum", _HUGE)
    first = (total + ratio * (t * bend + 0.5)) + 1.0
    weight = weight - weight * (s * (rest / q))
    # The integral may overflow before it is multiplied by the root.
    integral = root * weight * (ratio * z) * root / (s - 1.0)
    return root * weight * first * root + integral
