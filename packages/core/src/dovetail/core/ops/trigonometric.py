"""Trigonometric functions and their inverses."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.core.basis.elementwise import mul, neg
from dovetail.core.basis.families import Binary
from dovetail.core.basis.operands import literal_like, operand
from dovetail.core.ir.avals import ShapedArray
from dovetail.core.ops import references
from dovetail.core.ops.arithmetic import add_p, div_p
from dovetail.core.ops.functions import Accuracy, ElementaryFunction, Function
from dovetail.core.ops.operands import operands, real_dtype
from dovetail.core.ops.powers import one_minus_square_p, rsqrt, square_p


class Sin(ElementaryFunction):
    """The sine."""

    name, hlo, numpy = "sin", "sine", references.wide(np.sin)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return cos(x)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        result = super().emit(context, *values, out=out, **params)
        if out.dtype.kind != "c":
            return result
        # The real part is sin(a) cosh(b), 0 where a is 0, also where b is infinite.
        a, zero, part = _on_imaginary_axis(context, values[0], out)
        real = context.select(zero, a, context.real(result, part), part)
        return context.complex(real, context.imag(result, part), out)


class Cos(ElementaryFunction):
    """The cosine."""

    name, hlo, numpy = "cos", "cosine", references.wide(np.cos)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return neg(mul(t, sin(x)))

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        result = super().emit(context, *values, out=out, **params)
        if out.dtype.kind != "c":
            return result
        # The imaginary part is -sin(a) sinh(b), 0 where a is 0, also where b is infinite.
        a, zero, part = _on_imaginary_axis(context, values[0], out)
        sign = context.op("sign", [context.imag(values[0], part)], part)
        none = context.neg(context.mul(a, sign, part), part)
        imag = context.select(zero, none, context.imag(result, part), part)
        return context.complex(context.real(result, part), imag, out)


def _on_imaginary_axis(context: Any, x: Any, out: ShapedArray) -> tuple[Any, Any, ShapedArray]:
    """The real part of complex numbers, whether it is zero, and its aval."""
    part = out.update(dtype=real_dtype(out.dtype))
    real = context.real(x, part)
    return real, context.compare(real, context.constant(0.0, part), "EQ", part), part


class Tan(ElementaryFunction):
    """The tangent."""

    name, hlo, numpy = "tan", "tan", references.wide(np.tan)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return add_p.bind(literal_like(1, y), square_p.bind(y))


class Asin(Function):
    """The inverse of the sine."""

    name, hlo, numpy = "asin", "chlo.asin", references.wide(np.arcsin)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return rsqrt(one_minus_square_p.bind(x))


class Acos(Function):
    """The inverse of the cosine."""

    name, hlo, numpy = "acos", "chlo.acos", references.wide(np.arccos)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return neg(rsqrt(one_minus_square_p.bind(x)))


class Atan(Function):
    """The inverse of the tangent."""

    name, hlo, numpy = "atan", "chlo.atan", references.wide(np.arctan)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, add_p.bind(literal_like(1, x), square_p.bind(x)))


class Atan2(Binary):
    """The angle of the point (y, x), where x is the first and y the second operand."""

    name, hlo, kinds = "atan2", "atan2", "fc"

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """Of complex numbers -i log((y + i x) / sqrt(x**2 + y**2))."""
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


# Users' functions


def sin(x: Any, *, accuracy: Accuracy = None) -> Any:
    """The sine of each element.

    Args:
        x: angles in radians, floating point or complex.
        accuracy: how exact the result has to be; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sin(0.0))
        0.0
    """
    return sin_p.bind(operand(x, "lax.sin"), accuracy=accuracy)


def cos(x: Any, *, accuracy: Accuracy = None) -> Any:
    """The cosine of each element.

    Args:
        x: angles in radians, floating point or complex.
        accuracy: how exact the result has to be; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.cos(0.0))
        1.0
    """
    return cos_p.bind(operand(x, "lax.cos"), accuracy=accuracy)


def tan(x: Any, *, accuracy: Accuracy = None) -> Any:
    """The tangent of each element.

    Args:
        x: angles in radians, floating point or complex.
        accuracy: how exact the result has to be; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.tan(0.0))
        0.0
    """
    return tan_p.bind(operand(x, "lax.tan"), accuracy=accuracy)


def asin(x: Any) -> Any:
    """The inverse of the sine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        Angles in radians, of the shape and dtype of `x`, real ones in [-pi/2, pi/2]; NaN for real
        numbers beyond -1 and 1.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.asin(0.0))
        0.0
    """
    return asin_p.bind(operand(x, "lax.asin"))


def acos(x: Any) -> Any:
    """The inverse of the cosine of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        Angles in radians, of the shape and dtype of `x`, real ones in [0, pi]; NaN for real
        numbers beyond -1 and 1.

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.acos(1.0))
        0.0
    """
    return acos_p.bind(operand(x, "lax.acos"))


def atan(x: Any) -> Any:
    """The inverse of the tangent of each element.

    Args:
        x: floating point or complex numbers.

    Returns:
        Angles in radians, of the shape and dtype of `x`, real ones in [-pi/2, pi/2].

    Raises:
        TypeError: `x` is bool or of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> float(lax.atan(0.0))
        0.0
    """
    return atan_p.bind(operand(x, "lax.atan"))


def atan2(x: Any, y: Any) -> Any:
    """The angle in radians of the point with ordinate `x` and abscissa `y`.

    It is the inverse tangent of ``x / y`` in the quadrant of the point.

    Args:
        x: floating point or complex numbers.
        y: of the same dtype; the same shape, or a scalar, or sizes of one that are repeated.

    Returns:
        An array of the dtype of the operands, real ones in [-pi, pi].

    Raises:
        TypeError: dtypes differ or are not floating point or complex, or shapes do not go together.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.atan2(1.0, -1.0)), 4)
        2.3562
    """
    return atan2_p.bind(*operands("atan2", x, y))
