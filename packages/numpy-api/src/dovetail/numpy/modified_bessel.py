"""The modified Bessel functions of the first kind, of order 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.extend.arguments import literal
from dovetail.extend.avals import aval_of
from dovetail.numpy.conditions import pick

#: The power series is used up to the first one; from the second on, what `lax` has.
_LOW, _HIGH = 3.0, 8.0
#: Chebyshev coefficients of ``sqrt(x) exp(-x) I(x)`` in 1 / x between them, for order 0 and 1,
#: computed with 45 digits from the values at 64 nodes. They end where terms are below 3e-18.
_MIDDLE: Final = (
    (
        0.412879972470119,
        0.007591380810823345,
        0.00041531313389237505,
        1.070076463439073e-05,
        -7.901179979212895e-06,
        -7.826143501438752e-07,
        2.783849942948871e-07,
        8.252472600612028e-09,
        -1.2044639455201991e-08,
        1.5596485985060765e-09,
        2.2925563671033166e-10,
        -1.1916228842790646e-10,
        1.75785491603241e-11,
        1.1282244632189005e-12,
        -1.1468486259272989e-12,
        2.715592054803663e-13,
        -2.4158746665626878e-14,
        -6.084469888255125e-15,
        3.1457050771754773e-15,
        -7.172212924871188e-16,
        7.874493403454103e-17,
        1.0048027530094623e-17,
        -7.566895365350535e-18,
    ),
    (
        0.3607662790905926,
        -0.019229532314432207,
        -0.0006115185857943788,
        -2.0699712533502276e-05,
        8.585619145810725e-06,
        1.049498246711591e-06,
        -2.9183389184479024e-07,
        -1.559378146631739e-08,
        1.3180123671449447e-08,
        -1.4484234181830783e-09,
        -2.908512243993142e-10,
        1.2663889178753824e-10,
        -1.6649477729192206e-11,
        -1.666653644609433e-12,
        1.2426024142907682e-12,
        -2.731549379672432e-13,
        2.0239478816458037e-14,
        7.307950018116884e-15,
        -3.332905634404675e-15,
        7.175346558512954e-16,
        -6.982530324796256e-17,
        -1.2999442015627607e-17,
        8.1209428642428e-18,
    ),
)
#: How many terms the power series has there.
_TERMS: Final = 15

#: For float32, which needs fewer digits: ``I0(x)`` and ``I1(x) / (x / 2)`` in the square of x / 2,
#: for x up to 8, and ``sqrt(x) exp(-x) I(x)`` in 1 / x beyond, by Chebyshev interpolation, computed
#: with 60 digits. Errors are below 2e-11.
_SINGLE_NEAR: Final = (
    (
        1.000000000005979,
        0.9999999998740834,
        0.2500000004391217,
        0.02777777717654779,
        0.0017361115383802005,
        6.944426397859005e-05,
        1.9290611844102732e-06,
        3.9358764434414796e-08,
        6.162085929915323e-10,
        7.502267103433918e-12,
        8.111083558339292e-14,
        4.4320245180964873e-16,
        8.011702565874583e-18,
    ),
    (
        0.9999999999805895,
        0.5000000003481265,
        0.08333333230062498,
        0.006944445643128206,
        0.00034722150428836057,
        1.1574327364982706e-05,
        2.755166710510361e-07,
        4.92922476354175e-09,
        6.754261435080375e-11,
        8.105203074262385e-13,
        4.880275859700226e-15,
        9.61904680796699e-17,
    ),
)
_SINGLE_FAR: Final = (
    (
        0.3989422803912025,
        0.04986779335647463,
        0.02804861429856165,
        0.029437858678332172,
        0.032030580833801274,
        0.526961726092352,
        -9.021475807306992,
        122.90342967358721,
        -974.2736558822087,
        4298.523270064069,
        -7747.224924429042,
    ),
    (
        0.39894228041273627,
        -0.14960336431246424,
        -0.04674883176691072,
        -0.041146823863894705,
        -0.04362292437151258,
        -0.5864675130608052,
        9.781490978281479,
        -133.15109821989205,
        1051.283103769898,
        -4621.9037218251015,
        8291.74933554001,
    ),
)


def modified_bessel(order: int, x: Any) -> Any:
    """The function of order 0 or 1 of an array of float32 or float64.

    Source: NIST Digital Library of Mathematical Functions (DLMF), 10.25.2, near 0. Farther out the
    terms of that series grow, and so would the error of the square.
    """
    dtype = aval_of(x).dtype

    def number(value: float) -> Any:
        return literal(value, dtype)

    size = lax.max(x, lax.neg(x))  # its derivative at 0 is 0, as even functions need
    factorials = [math.factorial(k) * math.factorial(k + order) for k in range(_TERMS)]
    is_small = lax.lt(size, number(_LOW))
    # What is not meant for a formula must not make its derivative NaN.
    half = lax.mul(pick(is_small, x, number(0.0)), number(0.5))
    near = _horner([1 / f for f in factorials], lax.mul(half, half))
    if order:
        near = lax.mul(near, half)

    is_far = lax.ge(size, number(_HIGH))
    moderate = pick(lax.bitwise_or(is_small, is_far), number(_LOW), size)
    low, high = 1 / _HIGH, 1 / _LOW
    centred = lax.sub(lax.div(number(1.0), moderate), number((low + high) / 2))
    t = lax.mul(centred, number(2 / (high - low)))
    coefficients = np.polynomial.chebyshev.cheb2poly(_MIDDLE[order]).tolist()
    # XLA makes a quotient by a square root alone a product with rsqrt, which is off by more.
    root = lax.max(lax.sqrt(moderate), number(1.0))
    middle = lax.div(_horner(coefficients, t), root)
    scaled = pick(is_far, (lax.bessel_i0e, lax.bessel_i1e)[order](size), middle)
    # The exponential overflows before the product does. Up to there the second factor is 1.
    most = number(88.0 if dtype.itemsize == 4 else 704.0)
    first = lax.min(size, most)
    grown = lax.mul(lax.mul(scaled, lax.exp(first)), lax.exp(lax.sub(size, first)))
    grown = pick(lax.eq(size, number(math.inf)), size, grown)
    if order:
        grown = lax.mul(grown, lax.sign(x))
    return pick(is_small, near, grown)


def single_modified_bessel(order: int, x: Any) -> Any:
    """The function of float32 numbers in float64, without derivatives."""
    one = np.float64(1)
    # Beyond, the result is infinite.
    size = lax.min(lax.abs(x), np.float64(700))
    half = lax.mul(x, np.float64(0.5))
    near = _horner(_SINGLE_NEAR[order], lax.mul(half, half))
    inverse = lax.div(one, lax.max(size, one))
    grown = lax.mul(lax.exp(size), lax.sqrt(inverse))
    far = lax.mul(grown, _horner(_SINGLE_FAR[order], inverse))
    if order:
        near = lax.mul(near, half)
        far = lax.mul(far, lax.sign(x))
    return pick(lax.lt(size, np.float64(_HIGH)), near, far)


def _horner(coefficients: Sequence[float], x: Any) -> Any:
    dtype = aval_of(x).dtype
    total = literal(coefficients[-1], dtype)
    for coefficient in coefficients[-2::-1]:
        total = lax.add(lax.mul(total, x), literal(coefficient, dtype))
    return total
