"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import mul, neg
from dovetail._core.basis.operands import as_operand, literal_like, make_literal
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.bitwise import and_p
from dovetail._core.ops.elementwise.comparison import eq_p, gt_p, lt_p
from dovetail._core.ops.elementwise.conversion import bitcast_convert_type_p
from dovetail._core.ops.elementwise.exponential import exp, log
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.elementwise.functions import (
    Accuracy,
    ElementaryFunction,
    Function,
    horner,
)
from dovetail._core.ops.elementwise.powers import sqrt, square_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p, sign_p
from dovetail._core.ops.special import special_references

_WIDE: Final = frozenset({np.dtype(np.float32), np.dtype(np.float64)})

# Chebyshev coefficients of (1 + 2 x) exp(x**2) erfc(x) in t = (x - 3.75) / (x + 3.75) for x >= 0,
# computed with 60 digits. Source of the expansion: Shepherd and Laframboise, Math. Comp. 36 (1981),
# 249.
_ERFC_COEFFICIENTS: Final = (
    1.1775789345674017541,
    -0.0045900545806464773309,
    -0.084249133366517915584,
    0.059209939998191890498,
    -0.026658668435305752277,
    0.0090749976707052650939,
    -0.0024131635404176081909,
    0.00049077583652580863229,
    -0.000069169733025012063671,
    4.1390279860730101675e-6,
    7.7403830661984906686e-7,
    -2.1886401049234395661e-7,
    1.0764999465670910377e-8,
    4.5219598112182868979e-9,
    -7.7544002088313511065e-10,
    -6.3180883408866844944e-11,
    2.8687950109306698981e-11,
    1.945586854577734723e-13,
    -9.6546967484334389059e-13,
    3.2525481481487398415e-14,
    3.3478119482868053878e-14,
    -1.8645628804193131015e-15,
    -1.2507950530688647085e-15,
    7.418235256624043463e-17,
)


def scaled_erfc_series() -> list[float]:
    """Coefficients of powers of t = (x - 3.75) / (x + 3.75) in (1 + 2 x) exp(x**2) erfc(x)."""
    coefficients: list[float] = np.polynomial.chebyshev.cheb2poly(_ERFC_COEFFICIENTS).tolist()
    return coefficients


#: Below, 1 - erf(x) is more accurate.
_NEAR: Final = 0.8
# erf(x) / x - 1 in x**2 up to there, constant first, for float32 and float64. By Chebyshev
# interpolation, computed with 60 digits.
_SINGLE_NEAR: Final = (
    0.12837916702258234,
    -0.3761263780773535,
    0.11283764756321829,
    -0.02686368334307811,
    0.005212973687462776,
    -0.0008295773351477173,
    9.105260218141435e-05,
)

_DOUBLE_NEAR: Final = (
    0.12837916709551256,
    -0.37612638903183593,
    0.11283791670945482,
    -0.026866170642830287,
    0.005223977597260937,
    -0.0008548325007479734,
    0.00012055242908392664,
    -1.4923057959949194e-05,
    1.6413927150258502e-06,
    -1.580365664251546e-07,
    1.1000943985110626e-08,
)

# (1 + 2 x) exp(x**2) erfc(x) in t = (x - 3.25) / (x + 3.25) from there to 30, likewise.
_SINGLE_FAR: Final = (
    1.243609661840595,
    -0.13978356141271553,
    -0.014505323812853273,
    0.10146392185162219,
    -0.11632394493715059,
    0.08637491818115213,
    -0.04605882468382882,
    0.016810645009724772,
    -0.002946290473557945,
    -0.0006626027708273304,
    0.0004042685697687122,
)
_DOUBLE_FAR: Final = (
    1.24360966005198,
    -0.13978355901361716,
    -0.01450510227017901,
    0.10146381752837146,
    -0.11632837312365661,
    0.08637672991596392,
    -0.04602698492011109,
    0.01679634851813036,
    -0.0030458016547553835,
    -0.0006130027606459862,
    0.0005359906609330594,
    -6.639664092162364e-05,
    -5.459577169300439e-05,
    1.84561787878256e-05,
    5.314630475629883e-06,
    -3.2850587570895114e-06,
    -5.829839323476588e-07,
    5.5075190961842e-07,
    5.2782846274083974e-08,
    -7.792687724662625e-08,
    8.18093019986354e-09,
)

# Coefficients for float32, constant first; see `ErfInv.formula`.
_CENTRAL: Final = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_TAIL: Final = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


class Erf(Function):
    """The error function."""

    name, hlo, numpy, kinds = "erf", "chlo.erf", references.each(math.erf), "f"

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return _scaled_gaussian(t, x, 2 / math.sqrt(math.pi))


def _scaled_gaussian(t: Any, x: Any, factor: float) -> Any:
    return mul(literal_like(factor, x), mul(t, exp(neg(square_p.bind(x)))))


class Erfc(ElementaryFunction):
    """One minus the error function, accurate where that is small."""

    name, hlo, numpy, kinds = "erfc", "chlo.erfc", references.each(math.erfc), "f"
    formula_dtypes = _WIDE

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return _scaled_gaussian(t, x, -2 / math.sqrt(math.pi))

    def formula(self, x: Any) -> Any:
        """exp(-x**2) times an expansion of the slowly varying rest; negative numbers are reflected.

        The rounding error of x**2 would be multiplied by x**2. So x is split into a number h with
        half of the bits, whose square and sum with others are exact, and a small rest r. The
        integral of exp(h**2 - x**2) over that rest is r (1 + y / 2 + y**2 / 6 + ...) with y = h**2
        - x**2, which is at most 0.05 in float32 and 2e-5 in float64.

        Near zero it is 1 - erf(x), in an order in which little is rounded.
        """
        one, half, center = (literal_like(c, x) for c in (1, 0.5, 3.4375))
        single = aval_of(x).dtype == np.float32
        size = abs_p.bind(x)
        # Beyond 30 the result is zero in every format, and infinity would give NaN.
        a = min_p.bind(size, literal_like(30, x))
        h = _leading_half(a)
        # XLA's CPU compiler would give a division with several uses a loop of its own; the maximum,
        # which changes nothing, has them.
        t = max_p.bind(div_p.bind(sub_p.bind(h, center), add_p.bind(h, center)), neg(one))
        series = horner(_SINGLE_FAR if single else _DOUBLE_FAR, t)
        rest, y = sub_p.bind(h, a), mul(sub_p.bind(h, a), add_p.bind(h, a))
        weights = [2 / math.sqrt(math.pi) / n for n in ((1, 2, 6, 24) if single else (1, 2))]
        scaled = div_p.bind(series, add_p.bind(one, add_p.bind(h, h)))
        far = mul(exp(neg(square_p.bind(h))), add_p.bind(scaled, mul(rest, horner(weights, y))))
        negative = lt_p.bind(x, literal_like(0, x))
        far = select_n_p.bind(negative, far, sub_p.bind(literal_like(2, x), far))
        excess = mul(x, horner(_SINGLE_NEAR if single else _DOUBLE_NEAR, square_p.bind(x)))
        near = add_p.bind(half, sub_p.bind(sub_p.bind(half, x), excess))
        return select_n_p.bind(lt_p.bind(size, literal_like(_NEAR, x)), far, near)


def _leading_half(a: Any) -> Any:
    """Positive numbers rounded to half of their bits."""
    single = aval_of(a).dtype == np.float32
    integer, dropped = (np.dtype(np.int32), 12) if single else (np.dtype(np.int64), 27)
    bits = bitcast_convert_type_p.bind(a, new_dtype=integer)
    rounded = add_p.bind(bits, make_literal(1 << (dropped - 1), integer))
    kept = and_p.bind(rounded, make_literal(-1 << dropped, integer))
    return bitcast_convert_type_p.bind(kept, new_dtype=aval_of(a).dtype)


class ErfInv(Function):
    """The inverse error function."""

    name, hlo, kinds = "erf_inv", "chlo.erf_inv", "f"
    numpy = references.each(special_references.inverse_erf)
    formula_dtypes = _WIDE

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return mul(literal_like(math.sqrt(math.pi) / 2, x), mul(t, exp(square_p.bind(y))))

    def emit_formula(self, context: Any, x: Any, out: Any) -> Any:
        if out.dtype == np.float32:
            (result,) = context.lower_function(self.formula, [out])(x)
        else:
            start = context.op(self.hlo, [x], out)
            (result,) = context.lower_function(self.refined, [out, out])(x, start)
        return result

    def formula(self, x: Any) -> Any:
        """x times a polynomial in w = -log((1 - x) (1 + x)) or, in the tails, in sqrt(w).

        Source: M. Giles, Approximating the erfinv function, GPU Computing Gems 2 (2011), table 5.
        """
        one, a = literal_like(1, x), abs_p.bind(x)
        w = neg(log(mul(sub_p.bind(one, x), add_p.bind(one, x))))
        central = horner(_CENTRAL, sub_p.bind(w, literal_like(2.5, x)))
        tail = horner(_TAIL, sub_p.bind(sqrt(w), literal_like(3, x)))
        factor = select_n_p.bind(lt_p.bind(w, literal_like(5, x)), tail, central)
        limit = mul(x, literal_like(math.inf, x))
        return select_n_p.bind(eq_p.bind(a, one), mul(factor, x), limit)

    def refined(self, x: Any, y: Any) -> Any:
        """One step of Halley's iteration on erfc(y) = 1 - x, from `y`, where abs(x) > 0.5.

        There 1 - abs(x) is exact, and float64 approximations lose up to half of their digits.
        """
        one, a, b = literal_like(1, x), abs_p.bind(x), abs_p.bind(y)
        residual = sub_p.bind(erfc(b), sub_p.bind(one, a))
        slope = mul(literal_like(math.sqrt(math.pi) / 2, x), exp(square_p.bind(b)))
        step = mul(residual, slope)
        better = add_p.bind(b, div_p.bind(step, sub_p.bind(one, mul(b, step))))
        inside = and_p.bind(gt_p.bind(a, literal_like(0.5, x)), lt_p.bind(a, one))
        return select_n_p.bind(inside, y, mul(sign_p.bind(x), better))


erf_p: Final = Erf()
erfc_p: Final = Erfc()
erf_inv_p: Final = ErfInv()


# Public functions


def erf(x: ArrayLike) -> Array:
    """The error function of each element: 2 / sqrt(pi) times the integral of exp(-t**2) from 0.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> float(lax.erf(0.0))
        0.0
    """
    return erf_p.bind(as_operand(x, "lax.erf"))


def erfc(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """One minus the error function of each element, accurate where that is small.

    Args:
        x: floating point numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> float(lax.erfc(0.0))
        1.0
    """
    return erfc_p.bind(as_operand(x, "lax.erfc"), accuracy=accuracy)


def erf_inv(x: ArrayLike) -> Array:
    """The inverse error function of each element.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`; infinite at -1 and 1, NaN outside [-1, 1].

    Raises:
        TypeError: `x` is not floating point.

    Differs:
        It is accurate in its tails. StableHLO's operation, which loses digits there, is the
        primitive `erf_inv_fast`, used for normal random numbers alone, whose published streams
        are made so.

        >>> print(lax.erf_inv(np.float32(1 - 2**-24)))
        3.8325067

    Example:
        >>> from dovetail import lax
        >>> float(lax.erf_inv(0.0))
        0.0
    """
    return erf_inv_p.bind(as_operand(x, "lax.erf_inv"))
