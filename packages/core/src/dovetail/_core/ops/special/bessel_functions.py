"""Modified Bessel functions, exponentially scaled to keep them bounded."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import mul, neg
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.comparison import gt_p, lt_p
from dovetail._core.ops.elementwise.exponential import exp
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.elementwise.functions import FLOATS, Function, horner
from dovetail._core.ops.elementwise.powers import sqrt, square_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p, sign_p
from dovetail._core.ops.special import special_references

# Chebyshev coefficients of sqrt(x) exp(-x) I(x) in t = 16 / x - 1 for x >= 8, where I is the
# function of order 0 and of order 1, computed with 80 digits.
_FAR_0: Final = (
    0.4022452055070544158,
    0.0033691164782556940899,
    0.000068897583469168239843,
    2.891370520834756483e-6,
    2.0489185894690637418e-7,
    2.2666689904981780646e-8,
    3.3962320257083863452e-9,
    4.9406023882249695891e-10,
    1.1889147107846438342e-11,
    -3.1499165279632413645e-11,
    -1.3215811840447713119e-11,
    -1.7941785315068061178e-12,
    7.1801244513836662337e-13,
    3.8527783827421427011e-13,
    1.5400862175214098269e-14,
    -4.1505693472872220866e-14,
    -9.5548466988283076487e-15,
    3.8116806693526224207e-15,
    1.7725601330565263836e-15,
    -3.4254856196772191346e-16,
    -2.8276239805165834849e-16,
    3.4612228676974610931e-17,
    4.465621420296759999e-17,
    -4.8305044859441820713e-18,
    -7.2331804878747539546e-18,
)
_FAR_1: Final = (
    0.38928811750914006024,
    -0.0097610974913614684078,
    -0.00011058893876262371629,
    -3.8825648088776903935e-6,
    -2.5122362378702089253e-7,
    -2.6314688468895195068e-8,
    -3.835380385964237022e-9,
    -5.5897434621965838069e-10,
    -1.8974958123505412345e-11,
    3.2526035830154882386e-11,
    1.4125807436613781332e-11,
    2.0356285441470895072e-12,
    -7.1985517762459085121e-13,
    -4.0835511110921973182e-13,
    -2.101541842772664313e-14,
    4.2724400167119513543e-14,
    1.0420276984128802764e-14,
    -3.8144030724370078048e-15,
    -1.8803547755107824485e-15,
    3.3082023109209282827e-16,
    2.9626289976459501391e-16,
    -3.2095259219934239588e-17,
    -4.6503053684893583256e-17,
    4.4143483230717079499e-18,
    7.5172963108421048054e-18,
)
#: The power series is used up to here.
_NEAR: Final = 8.0


class ScaledBessel(Function):
    """``exp(-abs(x)) * I(x)``, where I is a modified Bessel function of the first kind."""

    hlo, kinds = "", "f"
    formula_dtypes = FLOATS
    order: ClassVar[int]
    far: ClassVar[tuple[float, ...]]

    def formula(self, x: Any) -> Any:
        """The power series in (x / 2)**2, whose terms are positive; an expansion in 1 / x.

        Source: DLMF 10.25.2.
        """
        single = aval_of(x).dtype == np.float32
        size, bound = abs_p.bind(x), literal_like(_NEAR, x)
        near = min_p.bind(size, bound)
        terms = 15 if single else 23
        factorials = [math.factorial(k) * math.factorial(k + self.order) for k in range(terms)]
        half = mul(near, literal_like(0.5, x))
        series = horner([1 / f for f in factorials], square_p.bind(half))
        series = mul(series, exp(neg(near)))
        if self.order:
            series = mul(series, half)
        t = sub_p.bind(div_p.bind(literal_like(2 * _NEAR, x), size), literal_like(1, x))
        coefficients = np.polynomial.chebyshev.cheb2poly(self.far[: 8 if single else None])
        # XLA makes a quotient by a square root alone a product with rsqrt, which is off by more.
        root = max_p.bind(sqrt(size), literal_like(1, x))
        far = div_p.bind(horner(coefficients.tolist(), t), root)
        result = select_n_p.bind(lt_p.bind(size, bound), far, series)
        return mul(result, sign_p.bind(x)) if self.order else result


class BesselI0e(ScaledBessel):
    """The function of order 0."""

    name, order, far = "bessel_i0e", 0, _FAR_0
    numpy = references.each(special_references.bessel_i0e)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return sub_p.bind(bessel_i1e_p.bind(x), mul(sign_p.bind(x), y))


class BesselI1e(ScaledBessel):
    """The function of order 1."""

    name, order, far = "bessel_i1e", 1, _FAR_1
    numpy = references.each(special_references.bessel_i1e)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        # The function divided by x is 1 / 2 at 0.
        least = literal_like(float(dtypes.finfo(aval_of(x).dtype).eps), x)
        away = gt_p.bind(abs_p.bind(x), least)
        safe = select_n_p.bind(away, add_p.bind(mul(x, literal_like(0, x)), least), x)
        factor = add_p.bind(sign_p.bind(safe), div_p.bind(literal_like(1, x), safe))
        change = sub_p.bind(bessel_i0e_p.bind(safe), mul(y, factor))
        half = add_p.bind(mul(x, literal_like(0, x)), literal_like(0.5, x))
        return select_n_p.bind(away, half, change)


bessel_i0e_p: Final = BesselI0e()
bessel_i1e_p: Final = BesselI1e()


# Public functions


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0 of each element, times ``exp(-abs(x))``.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.bessel_i0e(1.0)), 4)
        0.4658
    """
    return bessel_i0e_p.bind(as_operand(x, "lax.bessel_i0e"))


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1 of each element, times ``exp(-abs(x))``.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.bessel_i1e(1.0)), 4)
        0.2079
    """
    return bessel_i1e_p.bind(as_operand(x, "lax.bessel_i1e"))
