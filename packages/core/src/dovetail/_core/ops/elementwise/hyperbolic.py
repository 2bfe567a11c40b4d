"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import mul, neg
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.comparison import gt_p
from dovetail._core.ops.elementwise.complex import complex_p, imag, real
from dovetail._core.ops.elementwise.complex_formulas import equal, nan_beside, where, with_sign
from dovetail._core.ops.elementwise.exponential import exp, log1p, scaled_sinh
from dovetail._core.ops.elementwise.functions import (
    COMPLEX,
    FLOATS,
    Accuracy,
    ElementaryFunction,
    Function,
)
from dovetail._core.ops.elementwise.powers import one_minus_square_p, rsqrt, square_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p, sign_p
from dovetail._core.ops.elementwise.trigonometric import (
    atanh_parts,
    cosh_parts,
    sinh_parts,
    tanh_parts,
)


class Sinh(Function):
    """The hyperbolic sine."""

    name, hlo, numpy = "sinh", "chlo.sinh", references.wide(np.sinh)
    formula_dtypes = FLOATS | COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return cosh(x)

    def formula(self, x: Any) -> Any:
        if aval_of(x).dtype.kind == "c":
            return complex_p.bind(*sinh_parts(real(x), imag(x)))
        return scaled_sinh(x, literal_like(1, x))


class Cosh(Function):
    """The hyperbolic cosine."""

    name, hlo, numpy = "cosh", "chlo.cosh", references.wide(np.cosh)
    formula_dtypes = FLOATS | COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return sinh(x)

    def formula(self, x: Any) -> Any:
        if aval_of(x).dtype.kind == "c":
            return complex_p.bind(*cosh_parts(real(x), imag(x)))
        # Where exp(x) overflows, 1 is subtracted, which is exact, and compensated at the end.
        size = abs_p.bind(x)
        limit = math.floor(math.log(float(np.finfo(aval_of(x).dtype).max)))
        far = gt_p.bind(size, literal_like(limit, x))
        e = exp(select_n_p.bind(far, size, sub_p.bind(size, literal_like(1, x))))
        half = mul(literal_like(0.5, x), add_p.bind(e, div_p.bind(literal_like(1, x), e)))
        scales = [broadcast_to(literal_like(scale, x), shape_of(x)) for scale in (1, math.e)]
        return mul(half, select_n_p.bind(far, *scales))


class Tanh(ElementaryFunction):
    """The hyperbolic tangent."""

    name, hlo, numpy = "tanh", "tanh", references.wide(np.tanh)
    formula_dtypes = COMPLEX

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return mul(t, one_minus_square_p.bind(y))

    def formula(self, x: Any) -> Any:
        return complex_p.bind(*tanh_parts(real(x), imag(x)))


class Asinh(Function):
    """The inverse hyperbolic sine."""

    name, hlo, numpy = "asinh", "chlo.asinh", references.wide(np.arcsinh)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        one = literal_like(1, x)
        if aval_of(x).dtype.kind == "c":
            turned = complex_p.bind(neg(imag(x)), real(x))
            return mul(rsqrt(add_p.bind(one, turned)), rsqrt(sub_p.bind(one, turned)))
        # The square of a large number is infinite. Either case is computed where it is needed, so
        # that neither spoils the next derivative.
        size = abs_p.bind(x)
        is_far = gt_p.bind(
            size, literal_like(2 * float(dtypes.finfo(aval_of(x).dtype).eps) ** -0.5, x)
        )
        near = rsqrt(add_p.bind(square_p.bind(where(is_far, 0, x)), one))
        return where(
            is_far, div_p.bind(one, where(is_far, size, broadcast_to(one, shape_of(x)))), near
        )

    def corrected(self, x: Any, y: Any) -> Any:
        """The parts have the signs of those of x, even where they are zero."""
        b = imag(x)
        size = with_sign(nan_beside(real(y), x), real(x))
        return complex_p.bind(size, where(equal(b, 0), b, imag(y)))


class Acosh(Function):
    """The inverse hyperbolic cosine."""

    name, hlo, numpy = "acosh", "chlo.acosh", references.wide(np.arccosh)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        # Not 1 / sqrt(x**2 - 1), which is on the wrong branch where the real part is negative.
        one = literal_like(1, x)
        return mul(rsqrt(sub_p.bind(x, one)), rsqrt(add_p.bind(x, one)))

    def corrected(self, x: Any, y: Any) -> Any:
        """The imaginary part has the sign of that of x, even where it is zero."""
        right = where(equal(real(x), 0), math.pi / 2, imag(y))
        return complex_p.bind(nan_beside(real(y), x), with_sign(right, imag(x)))


class Atanh(Function):
    """The inverse hyperbolic tangent."""

    name, hlo, numpy = "atanh", "chlo.atanh", references.wide(np.arctanh)
    formula_dtypes = COMPLEX | {np.dtype(np.float64)}

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, one_minus_square_p.bind(x))

    def formula(self, x: Any) -> Any:
        """log1p(2 a / (1 - a)) / 2 with a = abs(x), and the sign of x."""
        if aval_of(x).dtype.kind == "c":
            return complex_p.bind(*atanh_parts(real(x), imag(x)))
        size = abs_p.bind(x)
        quotient = div_p.bind(mul(literal_like(2, x), size), sub_p.bind(literal_like(1, x), size))
        return mul(sign_p.bind(x), mul(literal_like(0.5, x), log1p(quotient)))


sinh_p: Final = Sinh()
cosh_p: Final = Cosh()
tanh_p: Final = Tanh()
asinh_p: Final = Asinh()
acosh_p: Final = Acosh()
atanh_p: Final = Atanh()


# Public functions


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sinh(0.0))
        0.0
    """
    return sinh_p.bind(as_operand(x, "lax.sinh"))


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.cosh(0.0))
        1.0
    """
    return cosh_p.bind(as_operand(x, "lax.cosh"))


def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The hyperbolic tangent of each element.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Differs:
        Functions of floats of 8 bits and fewer are computed in float32, and rounded once.

        >>> x = jnp.array(0.3, "float8_e4m3fn")
        >>> print(lax.tanh(x) == lax.tanh(x.astype("float32")).astype(x.dtype))
        True

    Example:
        >>> from dovetail import lax
        >>> float(lax.tanh(0.0))
        0.0
    """
    return tanh_p.bind(as_operand(x, "lax.tanh"), accuracy=accuracy)


def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.asinh(0.0))
        0.0
    """
    return asinh_p.bind(as_operand(x, "lax.asinh"))


def acosh(x: ArrayLike) -> Array:
    """The inverse hyperbolic cosine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`; NaN for real numbers below 1.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.acosh(1.0))
        0.0
    """
    return acosh_p.bind(as_operand(x, "lax.acosh"))


def atanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`; infinite at -1 and 1, NaN for real numbers outside.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.atanh(0.0))
        0.0
    """
    return atanh_p.bind(as_operand(x, "lax.atanh"))
