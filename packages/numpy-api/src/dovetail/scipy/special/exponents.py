"""Products with logarithms, logistic functions, sums of exponentials, powers of Box and Cox."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from dovetail import custom_jvp, lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import Axis
from dovetail.extend.avals import aval_of
from dovetail.nn import normalisation
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.operands import SINGLE, computed, inexact_operands, of_one_shape
from dovetail.typing import Array, ArrayLike


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    absent = (x == 0) & (y == y)
    return jnp.where(absent, 0, x * lax.log(jnp.where(absent, 1, y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    absent = (x == 0) & (y == y)
    slope = jnp.where(absent, 0, x / jnp.where(absent, 1, y))
    return _xlogy(x, y), tangents[0] * lax.log(y) + tangents[1] * slope


@compiled
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """``x * log(y)``, and 0 where `x` is 0, whatever `y` is unless it is nan.

    Args:
        x: array or scalar, real or complex.
        y: array or scalar that broadcasts with `x`.

    Returns:
        A float or complex array of the common shape.

    Example:
        >>> from dovetail.scipy.special import xlogy
        >>> print(xlogy(jnp.array([0., 1., 2.]), jnp.array([0., 1., jnp.inf])))
        [ 0.  0. inf]
    """
    return computed(_xlogy, inexact_operands("xlogy", x=x, y=y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    absent = (x == 0) & (y == y)
    return jnp.where(absent, 0, x * lax.log1p(jnp.where(absent, 0, y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    absent = (x == 0) & (y == y)
    slope = jnp.where(absent, 0, x / (1 + jnp.where(absent, 0, y)))
    return _xlog1py(x, y), tangents[0] * lax.log1p(y) + tangents[1] * slope


@compiled
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """``x * log1p(y)``, and 0 where `x` is 0, whatever `y` is unless it is nan.

    Args:
        x: array or scalar, real or complex.
        y: array or scalar that broadcasts with `x`.

    Returns:
        A float or complex array of the common shape.

    Example:
        >>> from dovetail.scipy.special import xlog1py
        >>> print(xlog1py(jnp.array([0., 2.]), jnp.array([-1., 1e-10])))
        [0.e+00 2.e-10]
    """
    return computed(_xlog1py, inexact_operands("xlog1py", x=x, y=y))


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@compiled_with("axis", "keepdims", "return_sign")
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """The logarithm of a sum of exponentials along dimensions, without overflow.

    Args:
        a: array or scalar, real or complex: the exponents.
        axis: dimension or dimensions; all if None.
        b: factors of the exponentials: an array that broadcasts with `a`.
        keepdims: whether to keep the dimensions, with size one.
        return_sign: whether to return the sign of the sum too, and the logarithm of its magnitude;
            otherwise the logarithm of a negative sum is nan.
        where: boolean array that broadcasts with `a`: which elements to include.

    Returns:
        A float or complex array without these dimensions, or a pair of it and the sign; -inf if
        there are no elements or all are -inf.

    Example:
        >>> from dovetail.scipy.special import logsumexp
        >>> print(f"{logsumexp(jnp.array([1000., 1000.])):.3f}")
        1000.693
        >>> print(logsumexp(jnp.array([0., -jnp.inf]), b=jnp.array([-1., 5.]), return_sign=True))
        (Array(0., dtype=float32), Array(-1., dtype=float32))
    """
    function: Any = plain(normalisation.logsumexp)
    result: Array | tuple[Array, Array] = function(a, axis, b, keepdims, return_sign, where)
    return result


@compiled_with("axis")
def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Exponentials divided by their sum along dimensions: positive numbers that add up to 1.

    Args:
        x: array or scalar, real or complex.
        axis: dimension or dimensions; all if None.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> from dovetail.scipy.special import softmax
        >>> print(softmax(jnp.array([[1000., 1000.], [-jnp.inf, 0.]])))
        [[0.5 0.5]
         [0.  0. ]]
    """
    return plain(normalisation.softmax)(x, axis)


@compiled_with("axis")
def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """The logarithm of `softmax`, without overflow or underflow.

    Args:
        x: array or scalar, real or complex.
        axis: dimension or dimensions; all if None.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> from dovetail.scipy.special import log_softmax
        >>> print(log_softmax(jnp.array([0., 1000.])))
        [-1000.     0.]
    """
    return plain(normalisation.log_softmax)(x, axis)


@compiled
def expit(x: ArrayLike) -> Array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Args:
        x: array or scalar, real or complex.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> from dovetail.scipy.special import expit
        >>> print(expit(jnp.array([-jnp.inf, 0., jnp.inf])))
        [0.  0.5 1. ]
    """
    return lax.logistic(*inexact_operands("expit", x=x))


#: (2 atanh(c) / c - 2) / c**2 in c**2 up to 1/4, for float64 and float32, by Chebyshev
#: interpolation, computed with 60 digits.
_LOGIT = (
    (
        0.6666666666666862,
        0.3999999999949829,
        0.2857142862217459,
        0.2222221954973318,
        0.1818190225142279,
        0.15382908438564277,
        0.13356740555173768,
        0.11542569115585177,
        0.11996397194205942,
        0.028036885126601994,
        0.29231259323950465,
        -0.3090262590810773,
        0.45144930098281594,
    ),
    (
        0.6666657096814034,
        0.4000597966034256,
        0.2843258258487796,
        0.23733517444954066,
        0.09997257994359028,
        0.35674641662209366,
    ),
)


@custom_jvp
def _logit(x: Any) -> Any:
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        return lax.log(x / (1 - x))
    # Near one half the quotient is close to one, and its logarithm would lose digits.
    centred = 2 * x - 1
    square = centred * centred
    series = jnp.full_like(x, 0)
    for coefficient in reversed(_LOGIT[aval_of(x).dtype == SINGLE]):
        series = series * square + coefficient
    centre = 2 * centred + centred * (square * series)
    return jnp.where(square < 0.25, centre, lax.log(x / (1 - x)))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    (x,) = primals
    slope = 1 / (x * (1 - x))
    if dtypes.kind_of(aval_of(x).dtype) != "c":
        slope = jnp.where((x < 0) | (x > 1), math.nan, slope)
    return _logit(x), tangents[0] * slope


@compiled
def logit(x: ArrayLike) -> Array:
    """``log(x / (1 - x))``, the inverse of `expit`.

    Args:
        x: array or scalar, real or complex.

    Returns:
        A float or complex array of the shape of `x`; real numbers outside [0, 1] give nan.

    Example:
        >>> from dovetail.scipy.special import logit
        >>> print(logit(jnp.array([0., 0.5, 1.])))
        [-inf   0.  inf]
    """
    return computed(_logit, inexact_operands("logit", x=x))


def _mean_exponential(y: Any) -> Any:
    """``expm1(y) / y``, by its power series near 0, so that derivatives keep their digits too."""
    near = abs(y) < 0.5
    small, great = jnp.where(near, y, 0), jnp.where(near, 1, y)
    series = jnp.full_like(y, 1)
    for k in range(18, 1, -1):
        series = 1 + small / k * series
    return jnp.where(near, series, lax.expm1(great) / great)


def _power(x: Any, logarithm: Any, power: Any) -> Any:
    """``(exp(power * logarithm) - 1) / power``, where `x` is 0 if the logarithm is infinite."""
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        return logarithm * _mean_exponential(power * logarithm)
    at_zero = jnp.where(power > 0, -1 / jnp.where(power > 0, power, 1), -math.inf)
    return jnp.where(x == 0, at_zero, logarithm * _mean_exponential(power * logarithm))


def _boxcox_rule(x: Any, power: Any) -> Any:
    real = dtypes.kind_of(aval_of(x).dtype) != "c"
    return _power(x, lax.log(jnp.where(x == 0, 1, x) if real else x), power)


def _boxcox1p_rule(x: Any, power: Any) -> Any:
    real = dtypes.kind_of(aval_of(x).dtype) != "c"
    return _power(x + 1, lax.log1p(jnp.where(x == -1, 0, x) if real else x), power)


_boxcox = in_double(_boxcox_rule)
_boxcox1p = in_double(_boxcox1p_rule)


@compiled
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transformation of Box and Cox: ``(x**lmbda - 1) / lmbda``, or its limit ``log(x)``.

    Source: G. E. P. Box and D. R. Cox, An analysis of transformations (1964). It is computed in
    float64.

    Args:
        x: array or scalar, real or complex.
        lmbda: array or scalar that broadcasts with `x`.

    Returns:
        A float or complex array of the common shape; negative real `x` give nan.

    Differs:
        The derivative in `lmbda` is right where that is 0: ``log(x)**2 / 2``.

        >>> from dovetail.scipy.special import boxcox
        >>> print(f"{dt.grad(boxcox, 1)(2., 0.):.4f}")
        0.2402

    Example:
        >>> from dovetail.scipy.special import boxcox
        >>> print(boxcox(jnp.array([1., 3.]), 2.))
        [0. 4.]
    """
    operands = of_one_shape(inexact_operands("boxcox", x=x, lmbda=lmbda))
    return computed(_boxcox, operands)


@compiled
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox` of ``1 + x``, accurate near 0.

    Args:
        x: array or scalar, real or complex.
        lmbda: array or scalar that broadcasts with `x`.

    Returns:
        A float or complex array of the common shape; real `x` below -1 give nan.

    Example:
        >>> from dovetail.scipy.special import boxcox1p
        >>> print(boxcox1p(jnp.array([0., 2.]), 2.), f"{boxcox1p(1e-10, 0.5):.2g}")
        [0. 4.] 1e-10
    """
    operands = of_one_shape(inexact_operands("boxcox1p", x=x, lmbda=lmbda))
    return computed(_boxcox1p, operands)
