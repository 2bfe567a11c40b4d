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

# The function of Dawson, F: F(x) / x in x^2, up to 2; x F(x) in x, from 2 to 3.5 and from 3.5 to 6;
# x F(x) in 1 / x^2, from 6.
_DAWSN_0: Final = (
    0.4410406953812108,
    -0.39123921020678876,
    0.12750248104023815,
    -0.03226539423443118,
    0.006621382082397935,
    -0.0011383378087073276,
    0.0001680248882818195,
    -2.170167693150586e-05,
    2.489630283036481e-06,
    -2.567687962431865e-07,
    2.4044785516810898e-08,
    -2.061400624084799e-09,
    1.629312713332284e-10,
    -1.1943935250188665e-11,
    8.162835366150306e-13,
    -5.224558681934986e-14,
    3.144145283086303e-15,
    -1.7853929949067343e-16,
    9.596492555002001e-18,
)
_DAWSN_2: Final = (
    0.5537577522369531,
    -0.03826330745060605,
    0.00958251059015059,
    -0.0013797864933454836,
    -0.00012379199350888483,
    0.0001356111714458368,
    -3.851283259925806e-05,
    5.0963824319925646e-06,
    1.8125899750903796e-07,
    -2.1347102514133793e-07,
    3.8291600452392907e-08,
    -1.3155660655341475e-09,
    -7.307997740467171e-10,
    1.4626605889466378e-10,
    -6.051343820472027e-12,
    -2.059646328083154e-12,
    3.7838568667906974e-13,
    -1.0318787389589852e-14,
    -5.005558950200346e-15,
    7.0559657661476e-16,
    3.2525040587923355e-19,
    -9.875509605188496e-18,
)
_DAWSN_35: Final = (
    0.5136117469717638,
    -0.007817671132492003,
    0.0017719063131459475,
    -0.00037447396262607917,
    7.834171030020112e-05,
    -1.6720348833222185e-05,
    3.676996598924099e-06,
    -8.208596060076177e-07,
    1.7801415910270702e-07,
    -3.461917812495526e-08,
    5.073321910916977e-09,
    -1.5590113592803315e-10,
    -2.3516686611839055e-10,
    1.0572288989612266e-10,
    -2.8712776269130373e-11,
    5.3017267094370835e-12,
    -4.991522060852823e-13,
    -7.031237711728446e-14,
    4.3070808641056114e-14,
    -1.0066068500155025e-14,
    1.2296413610273907e-15,
    3.157322818452352e-17,
    -5.127916877945859e-17,
    1.1836698577927008e-17,
)
_DAWSN_6: Final = (
    0.5035876129645751,
    0.0036272895370968276,
    4.043227794147476e-05,
    7.765781114870023e-07,
    2.1642658791578287e-08,
    8.061553832188654e-10,
    3.8293208699328153e-11,
    2.253688704681202e-12,
    1.6150561891539438e-13,
    1.3978659939493424e-14,
    1.462595325998312e-15,
    1.8626981994519345e-16,
    2.875450915602032e-17,
    5.130382996476323e-18,
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
    near = x * chebyshev_between(_DAWSN_0, 0.0, 4.0, square)
    far = jnp.where(
        size < 3.5,
        chebyshev_between(_DAWSN_2, 2.0, 3.5, size),
        jnp.where(
            size < 6,
            chebyshev_between(_DAWSN_35, 3.5, 6.0, size),
            chebyshev_between(_DAWSN_6, 0.0, 1 / 36, 1 / square),
        ),
    )
    return jnp.where(size < 2, near, far / x)


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
    dtype = dtypes.result_type(z.dtype, np.complex64)
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
