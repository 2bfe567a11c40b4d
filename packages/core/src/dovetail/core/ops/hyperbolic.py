"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.core.base import dtypes
from dovetail.core.basis.elementwise import mul
from dovetail.core.basis.operands import literal_like, operand
from dovetail.core.ir.avals import aval_of
from dovetail.core.ops import references
from dovetail.core.ops.arithmetic import abs_p, add_p, div_p, sign_p, sub_p
from dovetail.core.ops.comparison import eq_p, gt_p
from dovetail.core.ops.complex import complex_p, imag, real
from dovetail.core.ops.exponential import exp, expm1, log1p
from dovetail.core.ops.functions import Accuracy, ElementaryFunction, Function
from dovetail.core.ops.powers import one_minus_square_p, rsqrt, square_p
from dovetail.core.ops.selection import select_n_p
from dovetail.core.ops.trigonometric import cos, sin

_COMPLEX: Final = (np.dtype(np.complex64), np.dtype(np.complex128))
_FLOATS: Final = tuple(np.dtype(t) for t in (np.float16, dtypes.bfloat16, np.float32, np.float64))


class Sinh(Function):
    """The hyperbolic sine."""

    name, hlo, numpy = "sinh", "chlo.sinh", references.wide(np.sinh)
    formula_dtypes = (*_FLOATS, *_COMPLEX)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return cosh(x)

    def formula(self, x: Any) -> Any:
        """(e + e / (e + 1)) / 2 with e = exp(|x|) - 1; (r / 2) r with r = exp(|x| / 2) for large x.

        The first is exact for small x; in the second no step overflows before the result does.
        sinh(a + ib) = sinh(a) cos(b) + i cosh(a) sin(b).
        """
        if aval_of(x).dtype.kind == "c":
            a, b = real(x), imag(x)
            # On the real axis the imaginary part is 0, also where cosh(a) is infinite.
            turned = mul(cosh(a), sin(b))
            turned = select_n_p.bind(eq_p.bind(b, literal_like(0, b)), turned, b)
            return complex_p.bind(mul(sinh(a), cos(b)), turned)
        half = literal_like(0.5, x)
        size = abs_p.bind(x)
        e = expm1(size)
        small = mul(half, add_p.bind(e, div_p.bind(e, add_p.bind(e, literal_like(1, x)))))
        root = exp(mul(half, size))
        large = mul(mul(half, root), root)
        return mul(
            sign_p.bind(x), select_n_p.bind(gt_p.bind(size, literal_like(20, x)), small, large)
        )


class Cosh(Function):
    """The hyperbolic cosine."""

    name, hlo, numpy = "cosh", "chlo.cosh", references.wide(np.cosh)
    formula_dtypes = _FLOATS

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return sinh(x)

    def formula(self, x: Any) -> Any:
        """(r / 2) r + (1 / 2 / r) / r with r = exp(|x| / 2): no overflow before the result."""
        half = literal_like(0.5, x)
        root = exp(mul(half, abs_p.bind(x)))
        return add_p.bind(mul(mul(half, root), root), div_p.bind(div_p.bind(half, root), root))


class Tanh(ElementaryFunction):
    """The hyperbolic tangent."""

    name, hlo, numpy = "tanh", "tanh", references.wide(np.tanh)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return mul(t, one_minus_square_p.bind(y))


class Asinh(Function):
    """The inverse of the hyperbolic sine."""

    name, hlo, numpy = "asinh", "chlo.asinh", references.wide(np.arcsinh)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return rsqrt(add_p.bind(square_p.bind(x), literal_like(1, x)))


class Acosh(Function):
    """The inverse of the hyperbolic cosine."""

    name, hlo, numpy = "acosh", "chlo.acosh", references.wide(np.arccosh)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        # Not 1 / sqrt(x**2 - 1), which is on the wrong branch where the real part is negative.
        one = literal_like(1, x)
        return mul(rsqrt(sub_p.bind(x, one)), rsqrt(add_p.bind(x, one)))


class Atanh(Function):
    """The inverse of the hyperbolic tangent."""

    name, hlo, numpy = "atanh", "chlo.atanh", references.wide(np.arctanh)
    formula_dtypes = (np.dtype(np.float64),)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, one_minus_square_p.bind(x))

    def formula(self, x: Any) -> Any:
        """log1p(2 a / (1 - a)) / 2 with a = abs(x), and the sign of x."""
        size = abs_p.bind(x)
        quotient = div_p.bind(mul(literal_like(2, x), size), sub_p.bind(literal_like(1, x), size))
        return mul(sign_p.bind(x), mul(literal_like(0.5, x), log1p(quotient)))


sinh_p: Final = Sinh()
cosh_p: Final = Cosh()
tanh_p: Final = Tanh()
asinh_p: Final = Asinh()
acosh_p: Final = Acosh()
atanh_p: Final = Atanh()


# Users' functions


def sinh(x: Any) -> Any:
    """The hyperbolic sine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sinh(0.0))
        0.0
    """
    return sinh_p.bind(operand(x, "lax.sinh"))


def cosh(x: Any) -> Any:
    """The hyperbolic cosine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.cosh(0.0))
        1.0
    """
    return cosh_p.bind(operand(x, "lax.cosh"))


def tanh(x: Any, *, accuracy: Accuracy = None) -> Any:
    """The hyperbolic tangent of each element.

    Args:
        x: floating point or complex numbers.
        accuracy: how exact the result has to be; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.tanh(0.0))
        0.0
    """
    return tanh_p.bind(operand(x, "lax.tanh"), accuracy=accuracy)


def asinh(x: Any) -> Any:
    """The inverse of the hyperbolic sine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.asinh(0.0))
        0.0
    """
    return asinh_p.bind(operand(x, "lax.asinh"))


def acosh(x: Any) -> Any:
    """The inverse of the hyperbolic cosine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`; NaN for real numbers below 1.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.acosh(1.0))
        0.0
    """
    return acosh_p.bind(operand(x, "lax.acosh"))


def atanh(x: Any) -> Any:
    """The inverse of the hyperbolic tangent of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`; infinite at -1 and 1, NaN for real numbers beyond.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.atanh(0.0))
        0.0
    """
    return atanh_p.bind(operand(x, "lax.atanh"))
