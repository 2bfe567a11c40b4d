"""Exponential integrals.

Near 0 the logarithm and a polynomial; farther out the exponential times a polynomial in ``1 / x``.
The Chebyshev coefficients were computed with 45 digits from their values at 64 nodes, and end where
the terms are below 4e-18 of the function.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, convert, refuse_complex, value
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.chebyshev_series import chebyshev_between
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike

# E1(x) + log(x) in x, from 0 to 1.
_E1_NEAR: Final = (
    -0.15608954289343577,
    0.39708785273195646,
    -0.02277106547144326,
    0.0012097775028096784,
    -5.5182563885653714e-05,
    2.1671613488351387e-06,
    -7.426313409051455e-08,
    2.2509122178774545e-09,
    -6.107395323643698e-11,
    1.498675699736102e-12,
    -3.354930941889216e-14,
    6.90235852390662e-16,
    -1.3134361119396419e-17,
    2.3243770351138904e-19,
)

# x exp(x) E1(x) in 1 / x, from 1 to 3, from 3 to 12 and from 12.
_E1_MIDDLE: Final = (
    0.6816892860850003,
    -0.09379060923368537,
    0.009453772833817093,
    -0.0011386962482865595,
    0.000152773164977458,
    -2.207185847588652e-05,
    3.3683632382723563e-06,
    -5.36412688593576e-07,
    8.840754984656585e-08,
    -1.4990736675188905e-08,
    2.603697247306203e-09,
    -4.616645828096168e-10,
    8.334469913009074e-11,
    -1.528685287941207e-11,
    2.8437348876416398e-12,
    -5.357499165171501e-13,
    1.0209591286599097e-13,
    -1.965976494171357e-14,
    3.821959403260785e-15,
    -7.495443947191738e-16,
    1.4819053484014705e-16,
    -2.951881916906605e-17,
    5.92115089574917e-18,
)
_E1_FAR: Final = (
    0.8522267698225539,
    -0.070402422225718,
    0.004811205435179538,
    -0.00042361011746135666,
    4.3782296831215906e-05,
    -5.0679969277782725e-06,
    6.390742230861889e-07,
    -8.622736332213915e-08,
    1.2294726895396069e-08,
    -1.8359076930895169e-09,
    2.8515784367438045e-10,
    -4.5827797102551455e-11,
    7.588567625297817e-12,
    -1.2903325019887258e-12,
    2.2466665425389295e-13,
    -3.9962727167292005e-14,
    7.247569136464439e-15,
    -1.3378779029318814e-15,
    2.510119583763225e-16,
    -4.780524486554647e-17,
    9.231609183720489e-18,
)
_E1_LAST: Final = (
    0.9626903168780379,
    -0.035980139962508983,
    0.0012625076768749952,
    -6.276279999182916e-05,
    3.948565740024556e-06,
    -2.95924679496297e-07,
    2.5450144588936412e-08,
    -2.4491216837904046e-09,
    2.589974818444055e-10,
    -2.969465138955344e-11,
    3.652773901273303e-12,
    -4.781126869395366e-13,
    6.614297308281008e-14,
    -9.617827907316851e-15,
    1.4631732432624974e-15,
    -2.3197010927219444e-16,
    3.8196341897325185e-17,
    -6.5132522158661555e-18,
)

# The zero of Ei, in two parts, and (Ei(x) - log(x / zero)) / (x - zero) from 0 to 6.
_ZERO: Final = 0.3725074107813666
_ZERO_REST: Final = 1.3140183414386028201e-17
_EI_NEAR: Final = (
    5.257958226943482,
    6.004639395661629,
    2.469688170948231,
    0.7902956029932626,
    0.2071548491532639,
    0.04602682604407321,
    0.008880237057344323,
    0.0015146911094885722,
    0.00023159134968734474,
    3.2092485124027427e-05,
    4.066921310320624e-06,
    4.748419512679941e-07,
    5.140302084703391e-08,
    5.187110649842181e-09,
    4.902148216697985e-10,
    4.356558086355594e-11,
    3.6539244499196015e-12,
    2.901505315385807e-13,
    2.1876473555324577e-14,
    1.5701440360230516e-15,
    1.0752799606371169e-16,
    7.041144635241966e-18,
)

# x exp(-x) Ei(x) in 1 / x, from 6 to 12, 12 to 24, 24 to 48, and from 48.
_EI_6: Final = (
    1.186519731605943,
    0.08867277799156566,
    0.004538849615854891,
    -0.0007360917133533506,
    -0.0001311802094421383,
    1.860281858277769e-05,
    1.7610424153850599e-06,
    -6.410426692376372e-07,
    4.3431190977401596e-08,
    9.457713014017885e-09,
    -2.804867660824966e-09,
    2.9077513809389464e-10,
    1.5005396668585005e-11,
    -1.1038674953026538e-11,
    2.0752769575841014e-12,
    -1.824894014255641e-13,
    -1.3060424323093775e-14,
    8.22817443438954e-15,
    -1.7064640854405607e-15,
    2.0895115006185691e-16,
    -6.96952388785186e-18,
)
_EI_12: Final = (
    1.0733284937260361,
    0.028589376984320986,
    0.0009877354599019657,
    6.535142674684368e-05,
    4.080867437625506e-06,
    -3.589926611838061e-07,
    -1.3445734356897559e-07,
    -3.096554001036047e-09,
    2.9939580378560676e-09,
    6.636901195446687e-11,
    -7.580298873512545e-11,
    2.91093271006445e-12,
    1.6949183480316525e-12,
    -2.4843531143767757e-13,
    -1.4921371160913075e-14,
    8.569592517547666e-15,
    -8.552327771250706e-16,
    -9.567382338710219e-17,
    3.92278471915959e-17,
    -4.34268592032165e-18,
)
_EI_24: Final = (
    1.0335633144954905,
    0.01194944774791583,
    0.00014984654203383354,
    3.1020372988441315e-06,
    9.655715284928462e-08,
    4.421953602438201e-09,
    2.961811656103438e-10,
    2.532877233740852e-11,
    1.759338647355267e-12,
    -8.195941935743879e-14,
    -5.291781796133732e-14,
    -6.672672088083768e-15,
    3.4527393101734467e-16,
    1.8789530911802142e-16,
    5.122811993425012e-18,
    -4.2991421600959165e-18,
)
_EI_48: Final = (
    1.0107605092742287,
    0.010878323438924555,
    0.00011979560394849838,
    2.026995752581765e-06,
    4.6900702245060815e-08,
    1.3931421596912e-09,
    5.108132848770682e-11,
    2.251871069398116e-12,
    1.1717193052565767e-13,
    7.102165089449786e-15,
    4.968725666498446e-16,
    3.988627092302658e-17,
)

#: How many terms of the continued fraction reach float64 from 1 on: the error after n of them is
#: near exp(-4 sqrt(n x)).
_FRACTION: Final = 90
#: How many terms of the series reach float64 up to 1.
_SERIES: Final = 20
#: Orders from 0 down, which derivatives need.
_NEGATIVE: Final = 5


def _scaled_e1(x: Any) -> Any:
    """``x * exp(x) * E1(x)`` from 1 on."""
    u = 1 / x
    middle = chebyshev_between(_E1_MIDDLE, 1 / 3, 1.0, u)
    far = chebyshev_between(_E1_FAR, 1 / 12, 1 / 3, u)
    last = chebyshev_between(_E1_LAST, 0.0, 1 / 12, u)
    return jnp.where(x < 3, middle, jnp.where(x < 12, far, last))


def _e1(x: Any) -> Any:
    near = chebyshev_between(_E1_NEAR, 0.0, 1.0, x) - lax.log(x)
    far = lax.exp(-x) * (_scaled_e1(x) / x)
    # The logarithm is not a number below 0.
    return jnp.where(x < 1, near, far)


def _ei(x: Any) -> Any:
    below = -_e1(-x)
    # The maximum keeps XLA from joining both constants.
    distance = lax.max(x - _ZERO, -1.0) - _ZERO_REST
    ratio = lax.log(x / _ZERO)
    close = lax.abs(distance) < 0.1
    ratio = jnp.where(close, lax.log1p(jnp.where(close, distance, 0.0) / _ZERO), ratio)
    near = ratio + distance * chebyshev_between(_EI_NEAR, 0.0, 6.0, x)
    u = 1 / x
    scaled = jnp.where(
        x < 12,
        chebyshev_between(_EI_6, 1 / 12, 1 / 6, u),
        jnp.where(
            x < 24,
            chebyshev_between(_EI_12, 1 / 24, 1 / 12, u),
            jnp.where(
                x < 48,
                chebyshev_between(_EI_24, 1 / 48, 1 / 24, u),
                chebyshev_between(_EI_48, 0.0, 1 / 48, u),
            ),
        ),
    )
    # The exponential overflows before the integral does.
    root = lax.exp(x / 2)
    far = jnp.where(x == jnp.inf, jnp.inf, (root * (scaled / x)) * root)
    return jnp.where(x < 0, below, jnp.where(x < 6, near, far))


_decay = in_double(lambda x: -lax.exp(-x) / x)


def _growth_formula(x: Any) -> Any:
    root = lax.exp(x / 2)
    return jnp.where(x == jnp.inf, jnp.inf, (root / x) * root)


_growth = in_double(_growth_formula)
_exp1 = in_double(_e1, {0: _decay})
_expi = in_double(_ei, {0: _growth})


@compiled
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E1: the integral of ``exp(-t) / t`` from `x` to infinity.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`; infinite at 0, and not a number below it.

    Raises:
        TypeError: `x` is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 6.2.

    Example:
        >>> from dovetail.scipy.special import exp1
        >>> print(f"{exp1(1.0):.5f}")
        0.21938
    """
    return _exp1(*real_operands("exp1", x=x))


@compiled
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei: the principal value of the integral of ``exp(t) / t`` up to `x`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`; ``-inf`` at 0.

    Raises:
        TypeError: `x` is complex.

    Source:
        DLMF, 6.2. Near its zero as in Cody and Thacher, Chebyshev approximations for the
        exponential integral Ei(x), Mathematics of Computation 23 (1969).

    Example:
        >>> from dovetail.scipy.special import expi
        >>> print(f"{expi(1.0):.5f} {expi(-1.0):.5f}")
        1.89512 -0.21938
    """
    return _expi(*real_operands("expi", x=x))


def _en(n: Any, x: Any) -> Any:
    series = _en_series(n, jnp.where(x < 1, x, 1.0))
    fraction = _en_fraction(n, jnp.where(x < 1, 1.0, x))
    result = jnp.where(x < 1, series, fraction)
    result = jnp.where(n == 1, _e1(x), result)
    # Derivatives have lower orders: DLMF, 8.19.12.
    lower = lax.exp(-x) / x
    for k in range(_NEGATIVE):
        result = jnp.where(n == -k, lower, result)
        lower = (lax.exp(-x) + (k + 1) * lower) / x
    at_zero = jnp.where(n <= 1, jnp.inf, 1 / (n - 1))
    result = jnp.where(x == 0, at_zero, result)
    result = jnp.where(x == jnp.inf, 0.0, result)
    return jnp.where((n <= -_NEGATIVE) | (x < 0) | (n != n), jnp.nan, result)


def _en_series(n: Any, x: Any) -> Any:
    """DLMF, 8.19.8, for n > 1."""
    m = jnp.maximum(n, 2.0) - 1
    total = jnp.zeros_like(x)
    power = jnp.ones_like(x)
    for k in range(_SERIES):
        if k:
            power = power * (-x / k)
        own = m == k
        total = total + jnp.where(own, 0.0, power / jnp.where(own, 1.0, m - k))
    # The sign is that of (-1)^m; for a great m the power vanishes.
    size = jnp.where(x > 0, lax.exp(m * lax.log(x) - lax.lgamma(m + 1)), 0.0)
    sign = jnp.where(lax.rem(m, 2.0 + 0 * m) == 0, 1.0, -1.0)
    own_term = sign * size * (lax.digamma(m + 1) - lax.log(jnp.where(x > 0, x, 1.0)))
    return total + own_term


def _en_fraction(n: Any, x: Any) -> Any:
    """DLMF, 8.19.17, contracted to its even part and evaluated backwards."""
    n = jnp.maximum(n, 1.0)

    def step(i: Any, tail: Any) -> Any:
        k = lax.convert_element_type(_FRACTION - i, x.dtype)
        return k * (n + (k - 1)) / (x + n + 2 * k - tail)

    tail = lax.fori_loop(0, _FRACTION, step, jnp.zeros_like(x))
    return lax.exp(-x) / (x + n - tail)


_expn: Any = in_double(_en, {1: lambda n, x: lax.neg(_expn(n - 1, x))})


@compiled
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The generalised exponential integral: the integral of ``exp(-x * t) / t**n`` from 1 on.

    Args:
        n: orders, whole numbers from 0 on; the fraction of a float is cut off. No derivative is
            taken with respect to it.
        x: nonnegative array or scalar of a real dtype.

    Returns:
        A float array of the common shape; not a number where an argument is negative.

    Raises:
        TypeError: an argument is complex.

    Source:
        DLMF, 8.19.

    Differs:
        In JAX a float order that is not whole is taken as the order below, too, but derivatives
        at 0 are not numbers.

        >>> from dovetail.scipy.special import expn
        >>> print(dt.grad(expn, 1)(3, 0.0))
        -1.0

    Example:
        >>> from dovetail.scipy.special import expn
        >>> print(f"{expn(2, 1.0):.5f}")
        0.14850
    """
    order = array_like(n, "expn", "n")
    _, wanted = of_one_shape(real_operands("expn", n=n, x=x))
    x = array_like(x, "expn")
    refuse_complex("expn", x)
    order = value(order)
    if dtypes.kind_of(order.dtype) == "f":
        order = lax.stop_gradient(jnp.trunc(order))
    order = jnp.broadcast_to(order, wanted.shape)
    x = jnp.broadcast_to(convert(x, wanted.dtype), wanted.shape)
    if dtypes.kind_of(order.dtype) in ("u", "b"):
        order = lax.convert_element_type(order, np.dtype("int32"))
    return jnp.where(order < 0, np.nan, _expn(order, x)).astype(x.dtype)
