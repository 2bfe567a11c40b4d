"""Powers and roots."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, mul, neg
from dovetail._core.basis.families import Binary, Unary
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.bitwise import and_p, or_p
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p, gt_p, lt_p
from dovetail._core.ops.elementwise.complex import complex_p, imag, real
from dovetail._core.ops.elementwise.complex_formulas import (
    doubled,
    equal,
    halved,
    infinite,
    where,
    with_sign,
)
from dovetail._core.ops.elementwise.exponential import log
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.elementwise.functions import COMPLEX, Accuracy, ElementaryFunction
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero


class IntegerPow(Unary):
    """A power with an integer exponent known at trace time, by repeated multiplication."""

    name = "integer_pow"

    def abstract(self, x: Any, *, y: int) -> Any:
        if y < 0 and dtypes.kind_of(x.dtype) in "iu":
            raise TypeError(
                f"integer_pow: integers have no power with the negative exponent {y}; convert to "
                "floating point first"
            )
        return super().abstract(x)

    @staticmethod
    def numpy(x: Any, *, y: int) -> Any:
        """Integers wrap around."""
        if x.dtype.kind in "iu":
            result = np.ones_like(x)
            for _ in range(y):
                result = result * x
            return result
        return references.wide(lambda a: np.power(a, np.float64(y)))(x)

    def tangent(self, t: Any, x: Any, result: Any, *, y: int) -> Any:
        if y == 0:
            return Zero.of(result)
        if y == 1:
            return t
        power = x if y == 2 else self.bind(x, y=y - 1)
        return mul(t, mul(literal_like(y, x), power))

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        return emit_integer_power(context, values[0], params["y"], out)


def emit_integer_power(context: Any, x: Any, exponent: int, out: ShapedArray) -> Any:
    """Repeated squaring; for a negative exponent, the reciprocal of the power."""
    result = None
    square, remaining = x, abs(exponent)
    while remaining:
        if remaining & 1:
            result = square if result is None else context.mul(result, square, out)
        remaining >>= 1
        if remaining:
            square = emit_square(context, square, out)
    one = context.constant(1, out)
    if result is None:
        return one
    return context.div(one, result, out) if exponent < 0 else result


integer_pow_p: Final = IntegerPow()


class Pow(Binary):
    """A power; the exponent may be of an integer dtype."""

    name, hlo, kinds = "pow", "power", "fc"

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """An integer exponent is used exactly."""
        return references.wide(np.power)(x, y if y.dtype.kind in "fc" else references.widen(y))

    def check_dtypes(self, *avals: ShapedArray) -> None:
        base, exponent = avals
        super().check_dtypes(base)
        if dtypes.kind_of(exponent.dtype) not in ("i", "u") or dtypes.kind_of(exponent.dtype) == "":
            super().check_dtypes(base, exponent)

    def abstract(self, *avals: Any, **params: Any) -> Any:
        out = super().abstract(*avals)
        base, exponent = avals
        if exponent.dtype != base.dtype:
            return make_aval(out.shape, out.dtype, base.weak_type and exponent.weak_type)
        return out

    def reference(self, *args: Any, **params: Any) -> Any:
        return super().reference(*args)

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        dtype = aval_of(y).dtype
        integer = dtype != aval_of(x).dtype
        if integer and type(y) is Literal:
            exponent = int(y.val)
            if exponent in (0, 1):
                return t if exponent else Zero.of(out)
            power = self.bind(x, literal_like(exponent - 1, y))
            return mul(t, mul(literal_like(exponent, x), power))
        # y x**(y - 1), but 0 where x and y are 0, instead of zero times infinity.
        zero = eq_p.bind(y, literal_like(0, y))
        if not integer:
            zero = and_p.bind(zero, eq_p.bind(x, literal_like(0, x)))
        lower = sub_p.bind(y, literal_like(1, y))
        lower = add_p.bind(lower, convert_element_type(zero, dtype))
        factor = convert_element_type(y, aval_of(x).dtype)
        return mul(t, mul(factor, self.bind(x, lower)))

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        # log(x) x**y, but 0 where x is 0, by taking log(1).
        zero = convert_element_type(eq_p.bind(x, literal_like(0, x)), aval_of(x).dtype)
        return mul(t, mul(log(add_p.bind(x, zero)), out))

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        x, y = values
        exponent = context.avals_in[1]
        if exponent.dtype == out.dtype:
            power = context.op("power", [x, y], out)
            if dtypes.kind_of(out.dtype) != "c":
                return power
            (power,) = context.lower_function(self.corrected, [out] * 3)(x, y, power)
            return power
        given = context.equation.invars[1]
        if type(given) is Literal and abs(int(given.val)) <= 64:
            return emit_integer_power(context, x, int(given.val), out)
        spread = exponent.update(shape=out.shape)
        kind, size = dtypes.kind_of(out.dtype), out.dtype.itemsize
        # A wide enough format holds the exponents exactly.
        wide = out
        if kind == "f" and exponent.dtype.itemsize >= size:
            wide = out.update(dtype=np.dtype(np.float32 if size == 2 else np.float64))
            if exponent.dtype.itemsize >= wide.dtype.itemsize:
                wide = out.update(dtype=np.dtype(np.float64))
        power = context.op(
            "power", [context.convert(x, out, wide), context.convert(y, spread, wide)], wide
        )
        return context.convert(power, wide, out)

    def corrected(self, x: Any, y: Any, power: Any) -> Any:
        """Complex powers: zero to the power of a number with positive real part is zero."""
        zero = eq_p.bind(x, literal_like(0, x))
        return where(and_p.bind(zero, gt_p.bind(real(y), literal_like(0, real(y)))), 0, power)


pow_p: Final = Pow()


class Square(Unary):
    """The square."""

    name, numpy = "square", np.square

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return mul(literal_like(2, x), x)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        return emit_square(context, values[0], out)


def emit_square(context: Any, x: Any, out: ShapedArray) -> Any:
    """The square; for complex numbers (a - b)(a + b) + 2iab, which does not cancel."""
    if dtypes.kind_of(out.dtype) != "c":
        return context.mul(x, x, out)
    (square,) = context.lower_function(_complex_square, [out])(x)
    return square


def _complex_square(x: Any) -> Any:
    a, b = real(x), imag(x)
    return complex_p.bind(mul(sub_p.bind(a, b), add_p.bind(a, b)), doubled(mul(a, b)))


square_p: Final = Square()


class OneMinusSquare(Unary):
    """One minus the square, without cancellation near 1 and -1."""

    name = "one_minus_square"
    numpy = references.wide(lambda x: 1 - x * x if x.dtype.kind in "iu" else (1 - x) * (1 + x))

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return mul(literal_like(-2, x), x)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        (x,), one = values, context.constant(1, out)
        return context.mul(context.add(one, x, out), context.sub(one, x, out), out)


one_minus_square_p: Final = OneMinusSquare()


class Sqrt(ElementaryFunction):
    """The square root."""

    name, hlo, numpy = "sqrt", "sqrt", references.wide(np.sqrt)
    formula_dtypes = COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(literal_like(0.5, x), y)

    def formula(self, x: Any) -> Any:
        """The larger part is sqrt(m) k (see `_scaled_root`); twice the product of both is |b|."""
        a, b = real(x), imag(x)
        root, _, k, _ = _scaled_root(a, b)
        larger, size = mul(root, k), abs_p.bind(b)
        smaller = where(infinite(b), math.inf, div_p.bind(size, doubled(larger)))
        return _with_larger_part(a, larger, where(equal(larger, 0), 0, smaller), b)


class Rsqrt(ElementaryFunction):
    """The reciprocal of the square root."""

    name, hlo, numpy = "rsqrt", "rsqrt", references.wide(references.rsqrt)
    formula_dtypes = COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return mul(literal_like(-0.5, x), div_p.bind(y, x))

    def formula(self, x: Any) -> Any:
        """The larger part is k / (sqrt(m) h) (see `_scaled_root`); 1 / 0 at zero."""
        a, b = real(x), imag(x)
        root, h, k, ratio = _scaled_root(a, b)
        inverse = div_p.bind(literal_like(1, a), mul(root, h))
        smaller = div_p.bind(ratio, doubled(k))
        return _with_larger_part(a, mul(k, inverse), mul(smaller, inverse), neg(b))


def _scaled_root(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """sqrt(m), h, k and |b| / m, where |a + ib| = m h and (|a| + |a + ib|) / 2 = m k**2.

    m is the larger of |a| and |b|, to avoid overflow. It is infinite where either of them is.
    """
    x, y = abs_p.bind(a), abs_p.bind(b)
    flat, steep = ge_p.bind(x, y), lt_p.bind(x, y)
    endless = or_p.bind(infinite(a), infinite(b))
    m = where(endless, math.inf, max_p.bind(x, y))
    least = literal_like(np.finfo(aval_of(a).dtype).smallest_normal, a)
    r = where(endless, 0, div_p.bind(min_p.bind(x, y), max_p.bind(m, least)))
    h = sqrt(add_p.bind(literal_like(1, a), mul(r, r)))
    k = sqrt(halved(add_p.bind(where(flat, 1, r), h)))
    return sqrt(m), h, k, where(steep, 1, r)


def _with_larger_part(a: Any, larger: Any, smaller: Any, b: Any) -> Any:
    """A root in the right half plane, below the real axis where b is negative."""
    left = lt_p.bind(a, literal_like(0, a))
    size = select_n_p.bind(left, smaller, larger)
    return complex_p.bind(select_n_p.bind(left, larger, smaller), with_sign(size, b))


class Cbrt(ElementaryFunction):
    """The cube root."""

    name, hlo, numpy, kinds = "cbrt", "cbrt", references.wide(np.cbrt), "f"

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return mul(literal_like(1 / 3, x), integer_pow_p.bind(y, y=-2))


sqrt_p: Final = Sqrt()
rsqrt_p: Final = Rsqrt()
cbrt_p: Final = Cbrt()


# Public functions


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise power ``x ** y``.

    ``x ** 0`` is 1 for every `x`. The derivative in `x` is 0 where `y` is 0; in `y` it is 0
    where `x` is 0.

    Args:
        x: floating point or complex numbers.
        y: numbers of the same dtype, or integers; the same shape, a scalar, or broadcastable along
            dimensions of size 1.

    Returns:
        An array of the dtype of `x`; NaN for a negative `x` with a `y` that is not an integer.

    Raises:
        TypeError: `x` is of an integer dtype (use `integer_pow`), or dtypes or shapes are
            incompatible.

    Example:
        >>> from dovetail import lax
        >>> float(lax.pow(2.0, 3)), float(lax.pow(4.0, 0.5))
        (8.0, 2.0)
    """
    y = as_operand(y, "lax.pow", "y")
    x = as_operand(x, "lax.pow", "x")
    if dtypes.kind_of(aval_of(y).dtype) in ("i", "u") and dtypes.kind_of(aval_of(x).dtype) in (
        "f",
        "c",
    ):
        return pow_p.bind(x, y)
    return pow_p.bind(*operands("pow", x, y))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """The elementwise power with an integer exponent known at trace time.

    Args:
        x: numbers, not booleans; integers wrap around.
        y: the exponent.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool, or `y` is negative and `x` of an integer dtype, or `y` is not an
            integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.integer_pow(2.0, -2))
        0.25
    """
    x = as_operand(x, "lax.integer_pow")
    try:
        exponent = operator.index(y)
    except TypeError:
        if isinstance(y, Tracer):
            raise
        raise TypeError(
            f"lax.integer_pow requires an exponent y that is an integer, got {y!r}; use lax.pow "
            "for other exponents"
        ) from None
    return integer_pow_p.bind(x, y=exponent)


def reciprocal(x: ArrayLike) -> Array:
    """The elementwise reciprocal ``1 / x``.

    Args:
        x: floating point or complex numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.reciprocal(4.0))
        0.25
    """
    return integer_pow_p.bind(as_operand(x, "lax.reciprocal"), y=-1)


def square(x: ArrayLike) -> Array:
    """The elementwise square ``x * x``; integers wrap around.

    Args:
        x: numbers, not booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool.

    Differs:
        The square of ``a + bi`` is ``(a - b)(a + b) + 2iab``, which loses nothing where a and b
        are near each other.

        >>> z = complex(1 + 2**-12, 1)
        >>> print(complex(lax.square(z)).real == 2**-11 + 2**-24)
        True

    Example:
        >>> from dovetail import lax
        >>> float(lax.square(1.5))
        2.25
    """
    return square_p.bind(as_operand(x, "lax.square"))


def one_minus_square(x: ArrayLike) -> Array:
    """``1 - x * x`` of each element, accurate near 1 and -1 too; integers wrap around.

    Args:
        x: numbers, not booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool.

    Example:
        >>> from dovetail import lax
        >>> float(lax.one_minus_square(0.5))
        0.75
    """
    return one_minus_square_p.bind(as_operand(x, "lax.one_minus_square"))


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The elementwise square root; NaN for negative real numbers. Its derivative at 0 is infinite.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`; for complex numbers the root with real part >= 0.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sqrt(2.25))
        1.5
    """
    return sqrt_p.bind(as_operand(x, "lax.sqrt"), accuracy=accuracy)


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The reciprocal of the square root of each element.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`; infinite at 0, NaN for negative real numbers.

    Raises:
        TypeError: `x` is boolean or integer.

    Differs:
        It is 0 at every infinity of the complex plane, and symmetric about the real axis.

        >>> infinities = jnp.array([complex(np.inf, np.nan), complex(-np.inf, 1)])
        >>> print(lax.rsqrt(infinities) == 0)
        [ True  True]

    Example:
        >>> from dovetail import lax
        >>> float(lax.rsqrt(4.0))
        0.5
    """
    return rsqrt_p.bind(as_operand(x, "lax.rsqrt"), accuracy=accuracy)


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The real cube root of each element.

    Args:
        x: floating point numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> float(lax.cbrt(-8.0))
        -2.0
    """
    return cbrt_p.bind(as_operand(x, "lax.cbrt"), accuracy=accuracy)
