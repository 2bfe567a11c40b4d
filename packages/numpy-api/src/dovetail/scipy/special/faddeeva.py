"""The Faddeeva function and its values on the imaginary and the real axis: erfcx and dawsn.

The Chebyshev coefficients were computed with 45 digits from their values at 64 nodes, and end where
the terms are below 4e-18 of the function.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import inexact, value
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.chebyshev_series import chebyshev, chebyshev_between
from dovetail.scipy.special.double_precision import in_double, leading_half
from dovetail.scipy.special.operands import real_operands
from dovetail.typing import Array, ArrayLike

# (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75), for x >= 0.
_ERFCX: Final = (
    1.1775789345674017,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.0764999465670902e-08,
    4.521959811218278e-09,
    -7.754400208831422e-10,
    -6.318088340887232e-11,
    2.8687950109303248e-11,
    1.9455868545659023e-13,
    -9.654696748421755e-13,
    3.2525481484920246e-14,
    3.347811948831491e-14,
    -1.864562873354153e-15,
    -1.2507950448975515e-15,
    7.418236125220511e-17,
    5.068149762055784e-17,
)

# The function of Dawson, F: (F(x) / x - 1) / x^2 in x^2, up to 1; F(x) in x, from 1 to 2;
# 2 x F(x) - 1 in x, from 2 to 3.5 and from 3.5 to 6, and in 1 / x^2, from 6.
_DAWSN_0: Final = (
    -0.5573517869919347,
    0.10200010523357744,
    -0.006925228354240326,
    0.0003723552312422614,
    -1.654392381613679e-05,
    6.257250174088984e-07,
    -2.0591302569068454e-08,
    5.995102293038345e-10,
    -1.5647416843182606e-11,
    3.7003548618669086e-13,
    -7.998480873161828e-15,
    1.5919403076092492e-16,
)
_DAWSN_1: Final = (
    0.4249709592324099,
    -0.12437588974168187,
    -0.004289748184587396,
    0.0060069922213063665,
    -0.0009913442665079823,
    1.5000611944375411e-06,
    2.018824782874311e-05,
    -2.2004169364844247e-06,
    -1.0550194278124848e-07,
    3.9211380455910086e-08,
    -1.6464108988012e-09,
    -3.307349535821643e-10,
    3.7877771609020084e-11,
    9.725182183050123e-13,
    -3.896551380883203e-13,
    1.1501604207371514e-14,
    2.4958277140504187e-15,
    -1.9507162463037393e-16,
    -9.135697855370298e-18,
)
_DAWSN_2: Final = (
    0.10751550447390629,
    -0.0765266149012121,
    0.01916502118030118,
    -0.0027595729866909673,
    -0.00024758398701776966,
    0.0002712223428916736,
    -7.702566519851612e-05,
    1.0192764863985129e-05,
    3.625179950180759e-07,
    -4.2694205028267587e-07,
    7.658320090478581e-08,
    -2.631132131068295e-09,
    -1.4615995480934342e-09,
    2.9253211778932756e-10,
    -1.2102687640944054e-11,
    -4.119292656166308e-12,
    7.567713733581395e-13,
    -2.0637574779179704e-14,
    -1.0011117900400691e-14,
    1.41119315322952e-15,
    6.505008117584671e-19,
    -1.9751019210376992e-17,
)
_DAWSN_35: Final = (
    0.02722349394352773,
    -0.015635342264984007,
    0.003543812626291895,
    -0.0007489479252521583,
    0.00015668342060040223,
    -3.344069766644437e-05,
    7.353993197848198e-06,
    -1.6417192120152355e-06,
    3.5602831820541405e-07,
    -6.923835624991052e-08,
    1.0146643821833954e-08,
    -3.118022718560663e-10,
    -4.703337322367811e-10,
    2.1144577979224532e-10,
    -5.7425552538260745e-11,
    1.0603453418874167e-11,
    -9.983044121705646e-13,
    -1.4062475423456891e-13,
    8.614161728211223e-14,
    -2.013213700031005e-14,
    2.4592827220547814e-15,
    6.314645636904703e-17,
    -1.0255833755891719e-16,
    2.3673397155854016e-17,
)
_DAWSN_6: Final = (
    0.007175225929150168,
    0.007254579074193655,
    8.086455588294952e-05,
    1.5531562229740047e-06,
    4.328531758315657e-08,
    1.6123107664377309e-09,
    7.658641739865631e-11,
    4.507377409362404e-12,
    3.2301123783078875e-13,
    2.7957319878986848e-14,
    2.925190651996624e-15,
    3.725396398903869e-16,
    5.750901831204063e-17,
    1.0260765992952646e-17,
)

#: Nodes of the quadrature, and the distance between them.
_NODES: Final = 12
_STEP: Final = math.sqrt(math.pi / _NODES)
#: From here on the first term of the asymptotic series is exact; squares of squares overflow later.
_LARGE: Final = 1e60


def _square_exponential(x: Any) -> Any:
    """``exp(x**2)``, with the square in two parts, the first of which is exact."""
    high = leading_half(x)
    first = lax.exp(high * high)
    # Not a product of two exponentials, which XLA would make one of the sum.
    return first + first * lax.expm1((x - high) * (x + high))


def _erfcx_formula(x: Any) -> Any:
    size = jnp.where(x < 0, -x, x)
    t = 1 - 7.5 / (size + 3.75)
    positive = chebyshev(_ERFCX, t) / (1 + 2 * size)
    # Below -27 the square exponential overflows.
    growth = jnp.where(size < 28, _square_exponential(jnp.where(size < 28, size, 0.0)), jnp.inf)
    return jnp.where(x < 0, 2 * growth - positive, positive)


_erfcx_real = in_double(_erfcx_formula)


def _dawsn_formula(x: Any) -> Any:
    square = x * x
    size = jnp.where(x < 0, -x, x)
    near = x + x * (square * chebyshev_between(_DAWSN_0, 0.0, 1.0, square))
    middle = chebyshev_between(_DAWSN_1, 1.0, 2.0, size)
    far = jnp.where(
        size < 3.5,
        chebyshev_between(_DAWSN_2, 2.0, 3.5, size),
        jnp.where(
            size < 6,
            chebyshev_between(_DAWSN_35, 3.5, 6.0, size),
            chebyshev_between(_DAWSN_6, 0.0, 1 / 36, 1 / square),
        ),
    )
    # The leading term alone is rounded to the precision of the result.
    leading = 0.5 / size
    far = jnp.where(size < 2, middle, leading + leading * far)
    return jnp.where(size < 1, near, jnp.where(x < 0, -far, far))


_dawsn_real = in_double(_dawsn_formula)


@compiled
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to `x`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 7.2.5.

    Example:
        >>> from dovetail.scipy.special import dawsn
        >>> print(f"{dawsn(1.0):.5f}")
        0.53808
    """
    return _dawsn_real(*real_operands("dawsn", x=x))


def _wofz_formula(z: Any) -> Any:
    """S. Al Azah and S. N. Chandler-Wilde, SIAM Journal on Numerical Analysis 59 (2021).

    The integral of ``exp(-t**2) / (z - t)`` by the midpoint rule, or by the trapezoidal rule where
    that would have a node near `z`, with the residue of the pole. The rules are computed in the
    first quadrant, part by part, and each is a sum that has the factor of its part.
    """
    a, b = lax.real(z), lax.imag(z)
    x, y = jnp.where(a < 0, -a, a), jnp.where(b < 0, -b, b)
    large = (x > _LARGE) | (y > _LARGE)
    u, v = jnp.where(large, 1.0, x), jnp.where(large, 1.0, y)
    phase = u / _STEP
    phase = phase - jnp.floor(phase)
    trapezoid = (v < u) & (phase >= 0.25) & (phase <= 0.75)
    shift = jnp.where(trapezoid, 0.0, 0.5)
    along = u * u + v * v
    real = imag = jnp.where(trapezoid, 1 / along, 0.0)
    for k in range(_NODES):
        node = _STEP * (k + shift)
        square = node * node
        # At the node 0 both terms are one, which stands above.
        weight = jnp.where(node > 0, 2 * lax.exp(-square), 0.0)
        # (u^2 + v^2 - t^2)^2 + (2 t v)^2, without the difference of squares of large numbers.
        product = (lax.square(u - node) + v * v) * (lax.square(u + node) + v * v)
        quotient = weight / product
        real = real + quotient * (along + square)
        imag = imag + quotient * (along - square)
    real, imag = real * v * (_STEP / math.pi), imag * u * (_STEP / math.pi)
    # The residue, 2 exp(-z^2) / (1 +- exp(-2 pi i z / step)).
    size = _exponential_of_squares(u, v)
    sign = jnp.where(trapezoid, -1.0, 1.0)
    growth = lax.exp((2 * math.pi / _STEP) * lax.min(v, 25.0 + 0 * v))
    turn = (2 * math.pi / _STEP) * u
    below_real, below_imag = 1 + sign * growth * lax.cos(turn), -sign * growth * lax.sin(turn)
    below = lax.square(below_real) + lax.square(below_imag)
    cosine, sine = lax.cos(2 * u * v), lax.sin(2 * u * v)
    alone = v >= lax.max(u, math.pi / _STEP + 0 * u)
    scale = 2 * size / below
    real = real + jnp.where(alone, 0.0, scale * (cosine * below_real - sine * below_imag))
    imag = imag + jnp.where(alone, 0.0, scale * (-sine * below_real - cosine * below_imag))
    far_real, far_imag = _far(x, y)
    real, imag = jnp.where(large, far_real, real), jnp.where(large, far_imag, imag)
    # w(-x + i y) is the conjugate of w(x + i y), and w(-z) = 2 exp(-z^2) - w(z).
    size = 2 * _exponential_of_squares(x, y)
    turn = jnp.where((x == 0) | (y == 0), 0.0, 2 * x * y)
    # A product with 0 is 0 here, also where the other factor is not known.
    low_real = jnp.where(size == 0, 0.0, size * lax.cos(turn)) - real
    low_imag = jnp.where((size == 0) | (turn == 0), 0.0, size * lax.sin(turn)) + imag
    real, imag = jnp.where(b < 0, low_real, real), jnp.where(b < 0, low_imag, imag)
    return lax.complex(real, jnp.where(a < 0, -imag, imag))


def _exponential_of_squares(x: Any, y: Any) -> Any:
    """``exp(y**2 - x**2)``, with the squares in two parts."""
    x_high, y_high = leading_half(x), leading_half(y)
    rest = (y - y_high) * (y + y_high) - (x - x_high) * (x + x_high)
    first = y_high * y_high - x_high * x_high
    bounded = jnp.where(lax.abs(first) < 1e5, rest, 0.0)
    leading = lax.exp(first)
    return leading + jnp.where(leading < jnp.inf, leading * lax.expm1(bounded), 0.0)


def _far(x: Any, y: Any) -> tuple[Any, Any]:
    """``i / (sqrt(pi) * z)``."""
    largest = lax.max(x, y)
    endless = largest == jnp.inf
    divisor = jnp.where(endless, 1.0, largest)
    u, v = x / divisor, y / divisor
    below = math.sqrt(math.pi) * (u * u + v * v) * divisor
    missing = (x != x) | (y != y)
    ends = jnp.where(missing, jnp.nan, 0.0)
    return jnp.where(endless, ends, v / below), jnp.where(endless, ends, u / below)


_wofz = in_double(_wofz_formula)


@compiled
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function, ``exp(-z**2) * erfc(-1j * z)``.

    Args:
        z: array or scalar.

    Returns:
        A complex array of the shape of `z`.

    Source:
        S. Al Azah and S. N. Chandler-Wilde, Computation of the complex error function using
        modified trapezoidal rules, SIAM Journal on Numerical Analysis 59 (2021).

    Example:
        >>> from dovetail.scipy.special import wofz
        >>> print(f"{wofz(1j):.5f}")
        0.42758+0.00000j
    """
    z = inexact("wofz", z, "z")
    dtype = dtypes.common_dtype(z.dtype, np.dtype(np.complex64))
    return _wofz(lax.convert_element_type(value(z), dtype))


@compiled
def erfcx(x: ArrayLike) -> Array:
    """The scaled complementary error function, ``exp(x**2) * erfc(x)``.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Source:
        DLMF, 7.2; M. M. Shepherd and J. G. Laframboise, Chebyshev approximation of
        (1 + 2 x) exp(x^2) erfc x, Mathematics of Computation 36 (1981), for the variable. A complex
        `x` has the value of `wofz` at ``1j * x``.

    Example:
        >>> from dovetail.scipy.special import erfcx
        >>> print(f"{erfcx(1.0):.5f} {erfcx(1000.0):.7f}")
        0.42758 0.0005642
    """
    x = value(inexact("erfcx", x))
    if dtypes.kind_of(x.dtype) == "c":
        return _wofz(lax.complex(lax.neg(lax.imag(x)), lax.real(x)))
    return _erfcx_real(x)
