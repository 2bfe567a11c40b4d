"""Products with logarithms, logistic functions, sums of exponentials, powers of Box and Cox."""

from __future__ import annotations

from typing import Any, Literal, overload

from dovetail import custom_jvp, lax
from dovetail.extend.arguments import Axis
from dovetail.nn import normalisation
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.scipy.special.operands import computed, inexact_operands, where
from dovetail.typing import Array, ArrayLike


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    absent = (x == 0) & (y == y)
    return where(absent, 0, x * lax.log(where(absent, 1, y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    absent = (x == 0) & (y == y)
    slope = where(absent, 0, x / where(absent, 1, y))
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
        >>> print(xlogy(jnp.array([0., 1., 2.]), jnp.array([0., 1., math.inf])))
        [ 0.  0. inf]
    """
    return computed(_xlogy, inexact_operands("xlogy", x=x, y=y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    absent = (x == 0) & (y == y)
    return where(absent, 0, x * lax.log1p(where(absent, 0, y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    absent = (x == 0) & (y == y)
    slope = where(absent, 0, x / (1 + where(absent, 0, y)))
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
        >>> print(logsumexp(jnp.array([0., -math.inf]), b=jnp.array([-1., 5.]), return_sign=True))
        (Array(0., dtype=float32), Array(-1., dtype=float32))
    """
    function: Any = plain(normalisation.logsumexp)
    result: Array | tuple[Array, Array] = function(a, axis, b, keepdims, return_sign, where)
    return result
