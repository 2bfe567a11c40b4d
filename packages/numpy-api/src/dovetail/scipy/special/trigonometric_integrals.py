"""Sine and cosine integrals, and Fresnel's integrals.

Near 0 polynomials; farther out auxiliary functions times sines and cosines. The Chebyshev
coefficients were computed with 45 digits from their values at 64 nodes, and end where the terms are
below 4e-18 of the function.
"""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special.chebyshev_series import chebyshev_between
from dovetail.scipy.special.double_precision import in_double, leading_half
from dovetail.scipy.special.operands import real_operands
from dovetail.typing import Array, ArrayLike

# Si(x) / x and Ci(x) - log(x) in x^2, up to 4.
_SI_NEAR: Final = (
    0.684217670090758,
    -0.2776578526973602,
    0.03544140548666592,
    -0.0025631631447933976,
    0.00011623653904970093,
    -3.5904327241606043e-06,
    8.023421237057102e-08,
    -1.3562997692540251e-09,
    1.7944072159973677e-11,
    -1.9083873430871455e-13,
    1.6669989586824331e-15,
    -1.2173098836850304e-17,
)
_CI_NEAR: Final = (
    -0.6700214092802769,
    -1.0330216640117746,
    0.19388222659917081,
    -0.019182604360198658,
    0.0011078925258478497,
    -4.157234558247209e-05,
    1.092785243002287e-06,
    -2.1232859541834652e-08,
    3.1733482164348545e-10,
    -3.761415479876837e-12,
    3.622653488483964e-14,
    -2.891152849365185e-16,
    1.943278606764944e-18,
)

# x f(x) and x^2 g(x) in 1 / x^2, from 4 to 8 and from 8: DLMF, 6.2.17 and 6.2.18.
_F_4: Final = (
    0.9433310442324392,
    -0.027972069650662484,
    0.0015348107300124439,
    -0.00013766978575076115,
    1.608069568013896e-05,
    -2.2184546509800333e-06,
    3.434555115274505e-07,
    -5.7893383175975086e-08,
    1.0420310693484687e-08,
    -1.976318642775858e-09,
    3.912294548758787e-10,
    -8.026831361851602e-11,
    1.6976880364073418e-11,
    -3.6859117937513656e-12,
    8.187409597959808e-13,
    -1.8555742955378434e-13,
    4.281192516297946e-14,
    -1.0036715383073806e-14,
    2.387107082934234e-15,
    -5.752016876925928e-16,
    1.4025972184954495e-16,
    -3.45759510074795e-17,
    8.609201983423576e-18,
)
_G_4: Final = (
    0.8549479116469482,
    -0.0647070282614815,
    0.005109766976730459,
    -0.0005666134475728348,
    7.654417192248943e-05,
    -1.1777406929058732e-05,
    1.9883885404379633e-06,
    -3.600122480887079e-07,
    6.88534450576737e-08,
    -1.376398717440868e-08,
    2.8539221923437894e-09,
    -6.102620340704591e-10,
    1.33978390267823e-10,
    -3.009345512668001e-11,
    6.896064043281099e-12,
    -1.6084941526249265e-12,
    3.8114948452372747e-13,
    -9.160757953398525e-14,
    2.2301616324405213e-14,
    -5.492928633884168e-15,
    1.367405544768064e-15,
    -3.437450691723792e-16,
    8.719440469663739e-17,
    -2.230285981649242e-17,
    5.749002333938244e-18,
)
_F_8: Final = (
    0.9860406569623826,
    -0.013471738208295213,
    0.00045329284116522655,
    -3.067288651655165e-05,
    3.1319919760108725e-06,
    -4.2110196496309775e-07,
    6.907244830281719e-08,
    -1.3183212904229397e-08,
    2.8369743299741647e-09,
    -6.732923425486324e-10,
    1.7339686939790845e-10,
    -4.7869389042489193e-11,
    1.40323465212929e-11,
    -4.334957125531991e-12,
    1.4027265342681547e-12,
    -4.730617346429996e-13,
    1.6557877505805563e-13,
    -5.993808246042817e-14,
    2.2372132982506768e-14,
    -8.588065231433418e-15,
    3.3829238741050624e-15,
    -1.364728176890462e-15,
    5.628689985613522e-16,
    -2.3698003543410957e-16,
    1.0171106526868841e-16,
    -4.44475164215311e-17,
    1.9754855213207925e-17,
    -8.921083556115416e-18,
    4.0896792688566056e-18,
)
_G_8: Final = (
    0.9607478397520359,
    -0.03711389621239806,
    0.0019414398889919036,
    -0.0001716598842514708,
    2.1126377532314656e-05,
    -3.2716325671153157e-06,
    6.006921161477705e-07,
    -1.2586794403387074e-07,
    2.932563457995776e-08,
    -7.456959206276285e-09,
    2.0410547835874715e-09,
    -5.950223038763333e-10,
    1.8322967411118143e-10,
    -5.92050607828413e-11,
    1.9965165181282273e-11,
    -6.995114007847224e-12,
    2.536857739286041e-12,
    -9.492851164356655e-13,
    3.6552311529158363e-13,
    -1.4448739149813032e-13,
    5.851312143767554e-14,
    -2.423290214812307e-14,
    1.0247042520028651e-14,
    -4.417960820697268e-15,
    1.9396807770775258e-15,
    -8.662331164331828e-16,
    3.930926051912992e-16,
    -1.8109729263460377e-16,
    8.462994316463077e-17,
    -4.0086785185553694e-17,
    1.923276874134529e-17,
    -9.340477377370797e-18,
    4.589110055376637e-18,
)

# S(x) / x^3 and C(x) / x in x^4, up to 1.6.
_S_NEAR: Final = (
    0.3142743195347836,
    -0.18188587850106117,
    0.025424557742876257,
    -0.0019214582098450639,
    8.966525954745101e-05,
    -2.830802868181572e-06,
    6.442546962604405e-08,
    -1.1068235106036057e-09,
    1.4862338485609142e-11,
    -1.6028109554824476e-13,
    1.4188008517448966e-15,
    -1.0494270345038239e-17,
)
_C_NEAR: Final = (
    0.5282931311708557,
    -0.37676220250161824,
    0.08537377549656906,
    -0.009010259972062552,
    0.0005393127720408215,
    -2.075044934605623e-05,
    5.564687021283882e-07,
    -1.0999812843114444e-08,
    1.6696510396208076e-10,
    -2.00773053966069e-12,
    1.9601599749420958e-14,
    -1.5849094421108914e-16,
    1.0788395601770007e-18,
)

# x f(x) and x^3 g(x) in 1 / x^4, from 1.6 to 2.4 and from 2.4: DLMF, 7.2.10 and 7.2.11.
_FF_16: Final = (
    0.3113829907776023,
    -0.004049003265408848,
    0.00019115985020477872,
    -1.6652983058505394e-05,
    1.9863620065947067e-06,
    -2.8753787140873744e-07,
    4.750888537165373e-08,
    -8.646398423060083e-09,
    1.6945706671107997e-09,
    -3.522117966536589e-10,
    7.679774544498487e-11,
    -1.7426595030412488e-11,
    4.090251176331613e-12,
    -9.883226703191312e-13,
    2.449167131601171e-13,
    -6.205557852153882e-14,
    1.6035938690303754e-14,
    -4.217451996913483e-15,
    1.1268926477135943e-15,
    -3.054500773986938e-16,
    8.388109283125342e-17,
    -2.331149819000775e-17,
    6.54993173754495e-18,
    -1.859061578585947e-18,
)
_FG_16: Final = (
    0.09182241817895766,
    -0.005091035724614703,
    0.00037307128820090015,
    -4.140267183014735e-05,
    5.804994975499219e-06,
    -9.46894247608279e-07,
    1.7184601771990492e-07,
    -3.3774575883747415e-08,
    7.063050316151878e-09,
    -1.5525648066935535e-09,
    3.555794499805195e-10,
    -8.42933696352801e-11,
    2.0578892972209306e-11,
    -5.15339709448704e-12,
    1.319537892743734e-12,
    -3.44569317345596e-13,
    9.156369252014028e-14,
    -2.4716081165607356e-14,
    6.766801742401902e-15,
    -1.8765886167327403e-15,
    5.265612782486258e-16,
    -1.4934804279365543e-16,
    4.278096914028968e-17,
    -1.2367339554102426e-17,
    3.605687616340061e-18,
    -1.0595694496084259e-18,
)
_FF_24: Final = (
    0.3169480757514078,
    -0.0013325029222365041,
    2.7827574279627677e-05,
    -1.35862601678453e-06,
    1.0764750399804588e-07,
    -1.173257854015409e-08,
    1.6064320446982146e-09,
    -2.6138141788083167e-10,
    4.871961520446328e-11,
    -1.0140207909568818e-11,
    2.313281196087311e-12,
    -5.703923512044311e-13,
    1.5037836151317797e-13,
    -4.202885103138238e-14,
    1.2366982297812762e-14,
    -3.809586254038466e-15,
    1.222778427864508e-15,
    -4.0733810541596677e-16,
    1.403581200523477e-16,
    -4.98814977297162e-17,
    1.8237825243546893e-17,
    -6.845240782338248e-18,
    2.632400919498744e-18,
)
_FG_24: Final = (
    0.09925726716967448,
    -0.0019884309373052185,
    7.03087862660973e-05,
    -4.654236728916869e-06,
    4.5381750589659276e-07,
    -5.773467572297073e-08,
    8.93094118183746e-09,
    -1.6062310377520676e-09,
    3.258313638677134e-10,
    -7.296000186864365e-11,
    1.7748679182356296e-11,
    -4.634126512532115e-12,
    1.286396885632373e-12,
    -3.767940139181169e-13,
    1.1574122183737312e-13,
    -3.709603459000102e-14,
    1.2353317274050946e-14,
    -4.2589397888399664e-15,
    1.5154889007789801e-15,
    -5.551265963191511e-16,
    2.0884486516406938e-16,
    -8.053347252538737e-17,
    3.1774718066794346e-17,
    -1.2807328413005651e-17,
    5.266229573097147e-18,
    -2.2062843407226387e-18,
    9.4070636759111e-19,
    -4.077886619841814e-19,
)


def _auxiliary(x: Any) -> tuple[Any, Any]:
    u = 1 / (x * x)
    low, middle = 1 / 64, 1 / 16
    near = x < 8
    f = jnp.where(
        near, chebyshev_between(_F_4, low, middle, u), chebyshev_between(_F_8, 0.0, low, u)
    )
    g = jnp.where(
        near, chebyshev_between(_G_4, low, middle, u), chebyshev_between(_G_8, 0.0, low, u)
    )
    return f / x, g * u


def _si_formula(x: Any) -> Any:
    size = lax.abs(x)
    near = x * chebyshev_between(_SI_NEAR, 0.0, 16.0, x * x)
    f, g = _auxiliary(size)
    # Sines of infinity are no numbers.
    angle = jnp.where(size < jnp.inf, size, 0.0)
    far = math.pi / 2 - f * lax.cos(angle) - g * lax.sin(angle)
    return jnp.where(size < 4, near, jnp.where(x < 0, -far, far))


def _ci_formula(x: Any) -> Any:
    size = lax.abs(x)
    near = lax.log(size) + chebyshev_between(_CI_NEAR, 0.0, 16.0, x * x)
    f, g = _auxiliary(size)
    angle = jnp.where(size < jnp.inf, size, 0.0)
    far = f * lax.sin(angle) - g * lax.cos(angle)
    return jnp.where(x == -jnp.inf, jnp.nan, jnp.where(size < 4, near, far))


def _sinc_formula(x: Any) -> Any:
    square = x * x
    near: Any = 0.0
    for k in range(9, -1, -1):
        near = 1 / math.factorial(2 * k + 1) - square * near
    small = lax.abs(x) < 1
    safe = jnp.where(small, 1.0, x)
    far = jnp.where(lax.abs(x) < jnp.inf, lax.sin(safe) / safe, 0.0)
    return jnp.where(small, near, far)


def _cosine_ratio_formula(x: Any) -> Any:
    return jnp.where(lax.abs(x) < jnp.inf, lax.cos(x) / x, 0.0)


_si = in_double(_si_formula, {0: in_double(_sinc_formula)})
_ci = in_double(_ci_formula, {0: in_double(_cosine_ratio_formula)})


@compiled
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and the cosine integral.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        Two float arrays of the shape of `x`: the integral of ``sin(t) / t`` from 0, and Euler's
        constant plus ``log(abs(x))`` plus the integral of ``(cos(t) - 1) / t`` from 0.

    Raises:
        TypeError: `x` is complex.

    Source:
        NIST Digital Library of Mathematical Functions (DLMF), 6.2.

    Example:
        >>> from dovetail.scipy.special import sici
        >>> si, ci = sici(1.0)
        >>> print(f"{si:.5f} {ci:.5f}")
        0.94608 0.33740
    """
    (x,) = real_operands("sici", x=x)
    return _si(x), _ci(x)


def _quarter_turns(x: Any) -> Any:
    """``x**2`` modulo 4, between -2 and 2, from an exact square."""
    high = leading_half(x)
    low = x - high
    rest = (x + high) * low
    four = 4.0 + 0 * x
    turns = lax.rem(lax.rem(high * high, four) + lax.rem(rest, four), four)
    return jnp.where(turns > 2, turns - 4, jnp.where(turns < -2, turns + 4, turns))


def _sine_of_quarters(turns: Any) -> Any:
    """The sine of quarter turns between -3 and 3."""
    folded = jnp.where(turns > 1, 2 - turns, jnp.where(turns < -1, -2 - turns, turns))
    return lax.sin((math.pi / 2) * folded)


def _sine_formula(x: Any) -> Any:
    # The square of a number from 1e100 on is a whole number of turns to all that is known.
    return _sine_of_quarters(_quarter_turns(jnp.where(lax.abs(x) < 1e100, x, 0.0)))


def _cosine_formula(x: Any) -> Any:
    turns = _quarter_turns(jnp.where(lax.abs(x) < 1e100, x, 0.0))
    return _sine_of_quarters(1 - jnp.where(turns < 0, -turns, turns))


_sine: Any = in_double(_sine_formula, {0: lambda x: x * math.pi * _cosine(x)})
_cosine: Any = in_double(_cosine_formula, {0: lambda x: x * -math.pi * _sine(x)})


def _fresnel_auxiliary(x: Any) -> tuple[Any, Any]:
    square = x * x
    u = 1 / (square * square)
    low, middle = 2.4**-4, 1.6**-4
    near = x < 2.4
    f = jnp.where(
        near, chebyshev_between(_FF_16, low, middle, u), chebyshev_between(_FF_24, 0.0, low, u)
    )
    g = jnp.where(
        near, chebyshev_between(_FG_16, low, middle, u), chebyshev_between(_FG_24, 0.0, low, u)
    )
    return f / x, g / (square * x)


def _fresnel_s_formula(x: Any) -> Any:
    size = lax.abs(x)
    square = x * x
    near = square * x * chebyshev_between(_S_NEAR, 0.0, 1.6**4, square * square)
    f, g = _fresnel_auxiliary(size)
    far = 0.5 - f * _cosine_formula(x) - g * _sine_formula(x)
    return jnp.where(size < 1.6, near, jnp.where(x < 0, -far, far))


def _fresnel_c_formula(x: Any) -> Any:
    size = lax.abs(x)
    square = x * x
    near = x * chebyshev_between(_C_NEAR, 0.0, 1.6**4, square * square)
    f, g = _fresnel_auxiliary(size)
    far = 0.5 + f * _sine_formula(x) - g * _cosine_formula(x)
    return jnp.where(size < 1.6, near, jnp.where(x < 0, -far, far))


_fresnel_s = in_double(_fresnel_s_formula, {0: _sine})
_fresnel_c = in_double(_fresnel_c_formula, {0: _cosine})


@compiled
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        Two float arrays of the shape of `x`: the integrals of ``sin(pi * t**2 / 2)`` and of
        ``cos(pi * t**2 / 2)`` from 0.

    Raises:
        TypeError: `x` is complex.

    Source:
        DLMF, 7.2.

    Example:
        >>> from dovetail.scipy.special import fresnel
        >>> s, c = fresnel(1.0)
        >>> print(f"{s:.5f} {c:.5f}")
        0.43826 0.77989
    """
    (x,) = real_operands("fresnel", x=x)
    return _fresnel_s(x), _fresnel_c(x)
