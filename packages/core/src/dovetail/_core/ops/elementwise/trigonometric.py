"""Trigonometric functions and their inverses."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import mul, neg
from dovetail._core.basis.families import Binary
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.bitwise import or_p
from dovetail._core.ops.elementwise.comparison import eq_p, lt_p
from dovetail._core.ops.elementwise.complex import complex_p, imag, real
from dovetail._core.ops.elementwise.complex_formulas import (
    doubled,
    endless,
    equal,
    halved,
    infinite,
    nan_beside,
    sign_or_one,
    where,
    with_sign,
)
from dovetail._core.ops.elementwise.exponential import exp, expm1, log1p, scaled_cosh, scaled_sinh
from dovetail._core.ops.elementwise.functions import COMPLEX, Accuracy, ElementaryFunction, Function
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.ops.elementwise.powers import one_minus_square_p, rsqrt, square_p
from dovetail._core.ops.elementwise.signs import abs_p


class Sin(ElementaryFunction):
    """The sine."""

    name, hlo, numpy = "sin", "sine", references.wide(np.sin)
    formula_dtypes = COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return cos(x)

    def formula(self, x: Any) -> Any:
        """sin(a + ib) is sinh(b + ia) with its parts swapped."""
        imaginary, turned = sinh_parts(imag(x), real(x))
        return complex_p.bind(turned, imaginary)


class Cos(ElementaryFunction):
    """The cosine."""

    name, hlo, numpy = "cos", "cosine", references.wide(np.cos)
    formula_dtypes = COMPLEX

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return neg(mul(t, sin(x)))

    def formula(self, x: Any) -> Any:
        """cos(a + ib) is the conjugate of cosh(b + ia)."""
        a, b = cosh_parts(imag(x), real(x))
        return complex_p.bind(a, neg(b))


def sinh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """The parts of sinh(a + ib) = sinh(a) cos(b) + i cosh(a) sin(b).

    On the axes, a zero factor makes the product zero even if the other factor is not finite.
    """
    cosine, sine = cos(b), sin(b)
    # Where a equals 2 a: zero or infinite.
    edge = eq_p.bind(a, doubled(a))
    on_imaginary_axis = mul(a, sign_or_one(cosine))
    return (
        where(edge, on_imaginary_axis, scaled_sinh(a, cosine)),
        where(equal(b, 0), b, scaled_cosh(a, sine)),
    )


def cosh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """The parts of cosh(a + ib) = cosh(a) cos(b) + i sinh(a) sin(b); see `sinh_parts`."""
    cosine, sine = cos(b), sin(b)
    size, on_axis = abs_p.bind(a), mul(sign_or_one(a), sign_or_one(sine))
    imaginary = where(or_p.bind(equal(a, 0), equal(b, 0)), on_axis, scaled_sinh(a, sine))
    at_infinity = mul(size, sign_or_one(cosine))
    return where(infinite(a), at_infinity, scaled_cosh(a, cosine)), imaginary


def tanh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """The parts of tanh(a + ib) = (sinh(a) cosh(a) + i sin(b) cos(b)) / (sinh(a)**2 + cos(b)**2).

    Numerator and denominator are multiplied by 4 exp(-2|a|): nothing overflows, and
    nothing cancels near the poles.
    """
    opposite = mul(literal_like(-2, a), abs_p.bind(a))
    p, q = exp(opposite), neg(expm1(opposite))
    angle = where(endless(a, b), 0, b)
    cosine, four = cos(angle), mul(literal_like(4, p), p)
    modulus = add_p.bind(mul(q, q), mul(four, mul(cosine, cosine)))
    numerator = mul(q, add_p.bind(literal_like(1, p), p))
    part = with_sign(div_p.bind(numerator, modulus), a)
    imaginary = div_p.bind(mul(four, mul(sin(angle), cosine)), modulus)
    return where(equal(a, 0), a, part), where(equal(b, 0), b, imaginary)


def atanh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """The parts of atanh(z) = (log(1 + z) - log(1 - z)) / 2.

    The real part is log1p(4 |a| / h**2) / 4, where h = |1 - |a| + ib|. Where h**2 would underflow,
    near the poles, it is log(2 / h) / 2. The imaginary part is a sum of angles of the same sign.
    """
    size, one = abs_p.bind(a), literal_like(1, a)
    rest = sub_p.bind(one, size)
    distance = abs_p.bind(complex_p.bind(rest, b))
    pole = 1e-18 if aval_of(a).dtype == np.float32 else 1e-150
    near = lt_p.bind(distance, literal_like(pole, a))
    twice = where(near, 1, doubled(div_p.bind(size, distance)))
    quotient = doubled(div_p.bind(twice, distance))
    logarithm = halved(log1p(where(infinite(distance), 0, quotient)))
    part = with_sign(where(near, logarithm, halved(logarithm)), a)
    angles = add_p.bind(atan2_p.bind(b, add_p.bind(one, size)), atan2_p.bind(b, rest))
    imaginary = where(infinite(b), with_sign(math.pi / 2, b), halved(angles))
    return where(equal(a, 0), a, part), imaginary


class Tan(ElementaryFunction):
    """The tangent."""

    name, hlo, numpy = "tan", "tan", references.wide(np.tan)
    formula_dtypes = COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return add_p.bind(literal_like(1, y), square_p.bind(y))

    def formula(self, x: Any) -> Any:
        """tan(a + ib) is tanh(b + ia) with its parts swapped."""
        imaginary, turned = tanh_parts(imag(x), real(x))
        return complex_p.bind(turned, imaginary)


class Asin(Function):
    """The inverse sine."""

    name, hlo, numpy = "asin", "chlo.asin", references.wide(np.arcsin)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return rsqrt(one_minus_square_p.bind(x))

    def corrected(self, x: Any, y: Any) -> Any:
        """The parts have the signs of those of x, even where they are zero."""
        a = real(x)
        size = with_sign(nan_beside(imag(y), x), imag(x))
        return complex_p.bind(where(equal(a, 0), a, real(y)), size)


class Acos(Function):
    """The inverse cosine."""

    name, hlo, numpy = "acos", "chlo.acos", references.wide(np.arccos)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return neg(rsqrt(one_minus_square_p.bind(x)))

    def corrected(self, x: Any, y: Any) -> Any:
        """The imaginary part has the opposite sign to that of x, even where it is zero."""
        right = where(equal(real(x), 0), math.pi / 2, real(y))
        return complex_p.bind(right, with_sign(nan_beside(imag(y), x), neg(imag(x))))


class Atan(Function):
    """The inverse tangent."""

    name, hlo, numpy = "atan", "chlo.atan", references.wide(np.arctan)
    formula_dtypes = COMPLEX

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, add_p.bind(literal_like(1, x), square_p.bind(x)))

    def formula(self, x: Any) -> Any:
        """atan(a + ib) is atanh(b + ia) with its parts swapped."""
        imaginary, turned = atanh_parts(imag(x), real(x))
        return complex_p.bind(turned, imaginary)


class Atan2(Binary):
    """The angle of the point (y, x), where x is the first and y the second operand."""

    name, hlo, kinds = "atan2", "atan2", "fc"

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """For complex numbers, -i log((y + i x) / sqrt(x**2 + y**2))."""
        if not np.iscomplexobj(x):
            return references.wide(np.arctan2)(x, y)
        x, y = references.widen(x), references.widen(y)
        with np.errstate(all="ignore"):
            return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, div_p.bind(y, _sum_of_squares(x, y)))

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, div_p.bind(neg(x), _sum_of_squares(x, y)))


def _sum_of_squares(x: Any, y: Any) -> Any:
    return add_p.bind(square_p.bind(x), square_p.bind(y))


sin_p: Final = Sin()
cos_p: Final = Cos()
tan_p: Final = Tan()
asin_p: Final = Asin()
acos_p: Final = Acos()
atan_p: Final = Atan()
atan2_p: Final = Atan2()


# Public functions


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The sine of each element.

    Args:
        x: angles in radians, floating point or complex.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sin(0.0))
        0.0
    """
    return sin_p.bind(as_operand(x, "lax.sin"), accuracy=accuracy)


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cosine of each element.

    Args:
        x: angles in radians, floating point or complex.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.cos(0.0))
        1.0
    """
    return cos_p.bind(as_operand(x, "lax.cos"), accuracy=accuracy)


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The tangent of each element.

    Args:
        x: angles in radians, floating point or complex.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.tan(0.0))
        0.0
    """
    return tan_p.bind(as_operand(x, "lax.tan"), accuracy=accuracy)


def asin(x: ArrayLike) -> Array:
    """The inverse sine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        Angles in radians, of the shape and dtype of `x`, real ones in [-pi/2, pi/2]; NaN for real
        numbers outside [-1, 1].

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.asin(0.0))
        0.0
    """
    return asin_p.bind(as_operand(x, "lax.asin"))


def acos(x: ArrayLike) -> Array:
    """The inverse cosine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        Angles in radians, of the shape and dtype of `x`, real ones in [0, pi]; NaN for real
        numbers outside [-1, 1].

    Raises:
        TypeError: `x` is boolean or integer.

    Differs:
        Functions of complex numbers are exact to a few units in the last place in each part. On
        the axes, on both sides of their cuts (also at -0.0) and at infinity they have the
        values of C99, annex G.

        >>> print(lax.acos(jnp.array([complex(2, 0.0), complex(2, -0.0)])))
        [0.-1.316958j 0.+1.316958j]

    Example:
        >>> from dovetail import lax
        >>> float(lax.acos(1.0))
        0.0
    """
    return acos_p.bind(as_operand(x, "lax.acos"))


def atan(x: ArrayLike) -> Array:
    """The inverse tangent of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        Angles in radians, of the shape and dtype of `x`, real ones in [-pi/2, pi/2].

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.atan(0.0))
        0.0
    """
    return atan_p.bind(as_operand(x, "lax.atan"))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle in radians of the point with ordinate `x` and abscissa `y`.

    It is the inverse tangent of ``x / y``, in the quadrant of the point.

    Args:
        x: floating point or complex numbers.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands, real ones in [-pi, pi].

    Raises:
        TypeError: dtypes differ or are not floating point or complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.atan2(1.0, -1.0)), 4)
        2.3562
    """
    return atan2_p.bind(*operands("atan2", x, y))
