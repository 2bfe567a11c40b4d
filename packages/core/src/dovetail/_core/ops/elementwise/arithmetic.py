"""Sums, products, quotients, signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, mul_p, neg_p
from dovetail._core.basis.elementwise import mul as multiply
from dovetail._core.basis.elementwise import neg as negate
from dovetail._core.basis.families import Binary, Discrete, Unary
from dovetail._core.basis.operands import as_operand, literal_like, make_literal
from dovetail._core.basis.structural import broadcast_to, is_linear, not_linear, sum_to
from dovetail._core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail._core.ops.elementwise import invariant_division, references
from dovetail._core.ops.elementwise.bitwise import (
    and_p,
    or_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
)
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p, gt_p, ne_p
from dovetail._core.ops.elementwise.complex import complex_p, conj, imag, real
from dovetail._core.ops.elementwise.operands import operands, real_dtype
from dovetail._core.ops.elementwise.rounding import RoundingMethod, round_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Add(Binary):
    """The sum."""

    name, hlo, numpy = "add", "add", np.add
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        s, t = tangents
        if type(s) is Zero or type(t) is Zero:
            one = add_tangents(s, t)
            return out, Zero.of(out) if type(one) is Zero else broadcast_to(one, shape_of(out))
        return out, self.bind(s, t)

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        return tuple(sum_to(ct, a.shape) if is_linear(a) else None for a in (x, y))


add_p: Final = Add()


class Sub(Binary):
    """The difference."""

    name, hlo, numpy = "sub", "subtract", np.subtract
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        s, t = tangents
        if type(s) is Zero and type(t) is Zero:
            return out, Zero.of(out)
        if type(t) is Zero:
            return out, broadcast_to(s, shape_of(out))
        if type(s) is Zero:
            return out, broadcast_to(negate(t), shape_of(out))
        return out, self.bind(s, t)

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        return (
            sum_to(ct, x.shape) if is_linear(x) else None,
            sum_to(negate(ct), y.shape) if is_linear(y) else None,
        )


sub_p: Final = Sub()


class Division(Binary):
    """A quotient or its remainder."""

    #: The result for an integer divided by zero; the dividend if None.
    by_zero: ClassVar[int | None] = None

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        """StableHLO in which no integer is divided by zero.

        XLA defines the result, but folds constants with the processor's division, which crashes.
        If the divisor is known, the checks fold away; otherwise they repeat XLA's own.
        """
        if dtypes.kind_of(out.dtype) not in ("i", "u"):
            return context.op(self.hlo, values, out)
        x, y = values
        is_zero = context.compare(y, context.constant(0, out), "EQ", out)
        divisor = context.select(is_zero, context.constant(1, out), y, out)
        result = context.op(self.hlo, [x, divisor], out)
        other = x if self.by_zero is None else context.constant(self.by_zero, out)
        return context.select(is_zero, other, result, out)


class Div(Division):
    """The quotient; for integers, rounded towards zero."""

    by_zero = -1

    name, hlo, numpy = "div", "divide", references.truncated_division
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return self.bind(t, y)

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        # Not -t x / y**2, because the square may overflow.
        return multiply(negate(t), self.bind(out, y))

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        if is_linear(y):
            raise not_linear("a quotient whose denominator depends on a tangent")
        return (sum_to(self.bind(ct, y), x.shape), None)

    def taylor(self, operands: Sequence[Any], results: Sequence[Any]) -> Callable[[int], Any]:
        from dovetail._core.transform.taylor import Series  # deferred: few take such derivatives

        (x, y), (out,) = operands, results
        # Not (x - y out) / y, because the product may overflow.
        ratios = Series(
            lambda order: y[order] if type(y[order]) is Zero else self.bind(y[order], y[0])
        )

        def term(order: int) -> Any:
            if order == 0:
                return self.bind(x[0], y[0])
            shape = shape_of(out[0])
            total: Any = Zero.of(out[0])
            if type(x[order]) is not Zero:
                total = broadcast_to(self.bind(x[order], y[0]), shape)
            for k in range(1, order + 1):
                ratio, before = ratios[k], out[order - k]
                if not (type(ratio) is Zero or type(before) is Zero):
                    part = broadcast_to(multiply(negate(ratio), before), shape)
                    total = add_tangents(total, part)
            return total

        return term

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        checks.check_divisor(args[1])
        return self.bind(*args, **params)


div_p: Final = Div()


class Rem(Division):
    """The remainder of the division rounded towards zero; it has the sign of the dividend."""

    name, hlo, numpy = "rem", "remainder", references.remainder
    kinds = "iuf"

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return t

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        # (x - out) / y is an integer up to rounding.
        quotient = div_p.bind(sub_p.bind(x, out), y)
        whole = round_p.bind(quotient, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
        return multiply(negate(t), whole)

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        x, y = context.avals_in
        large = not x.symbolic and x.size >= invariant_division.WORTHWHILE
        if x.dtype == np.uint32 and not y.shape and large:
            remainder = invariant_division.remainder_by_scalar
            return context.lower_function(remainder, context.avals_in)(*values)
        return super().lower(context, *values, **params)

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        checks.check_divisor(args[1])
        return self.bind(*args, **params)


rem_p: Final = Rem()


class Mulhi(Discrete):
    """The upper half of the bits of the product of integers."""

    name, numpy, kinds = "mulhi", references.high_product, "iu"

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        bits = dtypes.iinfo(out.dtype).bits
        if bits == 64:
            (result,) = context.lower_function(self.formula, [out, out])(*values)
            return result
        kind = np.int64 if dtypes.kind_of(out.dtype) == "i" else np.uint64
        wide = out.update(dtype=np.dtype(kind))
        product = context.mul(*(context.convert(v, out, wide) for v in values), wide)
        shifted = context.op("shift_right_logical", [product, context.constant(bits, wide)], wide)
        return context.convert(shifted, wide, out)

    def formula(self, x: Any, y: Any) -> Any:
        """For 64 bits, from four products of the unsigned 32-bit halves.

        A negative number is 2**64 less than its unsigned bits: subtract the other factor.
        """
        signed = aval_of(x).dtype == np.int64
        unsigned = np.dtype(np.uint64)
        lows, highs = [], []
        for v in (x, y):
            bits = convert_element_type(v, unsigned)
            lows.append(and_p.bind(bits, make_literal(0xFFFFFFFF, unsigned)))
            highs.append(_upper_half(bits))
        middle = add_p.bind(multiply(highs[0], lows[1]), _upper_half(multiply(lows[0], lows[1])))
        other = add_p.bind(
            multiply(lows[0], highs[1]), and_p.bind(middle, make_literal(0xFFFFFFFF, unsigned))
        )
        carried = add_p.bind(_upper_half(middle), _upper_half(other))
        result = add_p.bind(multiply(highs[0], highs[1]), carried)
        if not signed:
            return result
        result, last = convert_element_type(result, np.dtype(np.int64)), literal_like(63, x)
        for v, w in ((x, y), (y, x)):
            negative = shift_right_arithmetic_p.bind(v, last)
            result = sub_p.bind(result, and_p.bind(negative, w))
        return result


def _upper_half(x: Any) -> Any:
    return shift_right_logical_p.bind(x, literal_like(32, x))


mulhi_p: Final = Mulhi()


class Sign(Unary):
    """-1, 0 or 1; for complex numbers z / abs(z)."""

    name, hlo, numpy = "sign", "sign", references.signed_complex
    generates_nan = False

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        if dtypes.kind_of(aval_of(x).dtype) != "c":
            return Zero.of(y)
        # d(z / |z|) = i y Im(conj(y) dz) / |z|, where y = z / |z|; zero at z = 0 by convention.
        modulus = abs_p.bind(x)
        zero = convert_element_type(eq_p.bind(modulus, literal_like(0, modulus)), modulus.dtype)
        turned = div_p.bind(imag(multiply(conj(y), t)), add_p.bind(modulus, zero))
        return multiply(y, complex_p.bind(literal_like(0, turned), turned))

    def formula(self, x: Any) -> Any:
        """For complex numbers, scaled down if large, to keep the modulus finite.

        If one part is infinite, the result points along its axis, like the limit.
        """
        a, b = self._on_axes(real(x), imag(x))
        bound = literal_like(np.finfo(aval_of(a).dtype).max / 2, a)
        large = or_p.bind(*(gt_p.bind(abs_p.bind(part), bound) for part in (a, b)))
        quarter, one = (broadcast_to(literal_like(v, a), shape_of(a)) for v in (0.25, 1))
        scale = select_n_p.bind(large, one, quarter)
        a, b = multiply(a, scale), multiply(b, scale)
        modulus = abs_p.bind(complex_p.bind(a, b))
        zero = convert_element_type(eq_p.bind(modulus, literal_like(0, modulus)), modulus.dtype)
        modulus = add_p.bind(modulus, zero)
        return complex_p.bind(div_p.bind(a, modulus), div_p.bind(b, modulus))

    @staticmethod
    def _on_axes(a: Any, b: Any) -> tuple[Any, Any]:
        """Real and imaginary parts; 1 or -1 and 0 where exactly one of them is infinite."""
        zero, infinity = (broadcast_to(literal_like(v, a), shape_of(a)) for v in (0, float("inf")))
        first, second = (eq_p.bind(abs_p.bind(part), infinity) for part in (a, b))
        single = ne_p.bind(first, second)
        on_axes = [
            select_n_p.bind(single, part, select_n_p.bind(infinite, zero, sign_p.bind(part)))
            for part, infinite in ((a, first), (b, second))
        ]
        return on_axes[0], on_axes[1]

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        (x,) = values
        if dtypes.kind_of(out.dtype) == "c":
            (result,) = context.lower_function(self.formula, [out])(x)
            return result
        if dtypes.kind_of(out.dtype) != "u":
            return context.op("sign", [x], out)
        nonzero = context.compare(x, context.constant(0, out), "NE", out)
        return context.op("convert", [nonzero], out)


sign_p: Final = Sign()


class Abs(Unary):
    """The absolute value; for complex numbers the real modulus."""

    name, hlo, numpy = "abs", "abs", references.wide(np.abs)
    kinds = "ifc"
    generates_nan = False

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        dtype = avals[0].dtype
        return real_dtype(dtype) if dtypes.kind_of(dtype) == "c" else dtype

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        if dtypes.kind_of(aval_of(x).dtype) != "c":
            return select_n_p.bind(ge_p.bind(x, literal_like(0, x)), negate(t), t)
        # Re(conj(z) dz) / |z|, zero at z = 0 by convention.
        return real(multiply(t, conj(sign_p.bind(x))))

    def corrected(self, x: Any, y: Any) -> Any:
        """The modulus; infinite where either part is, even if the other is NaN."""
        parts = (eq_p.bind(v, literal_like(np.inf, v)) for v in map(self.bind, (real(x), imag(x))))
        return select_n_p.bind(or_p.bind(*parts), y, broadcast_to(literal_like(np.inf, y), y.shape))

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        result = context.op("abs", values, out)
        aval = context.avals_in[0]
        if dtypes.kind_of(aval.dtype) != "c":
            return result
        whole = aval.update(shape=out.shape)
        (result,) = context.lower_function(self.corrected, [whole, out])(*values, result)
        return result


abs_p: Final = Abs()


# Public functions


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise sum ``x + y``; integers wrap around.

    Args:
        x: numbers, not booleans.
        y: numbers of the same dtype; the same shape, a scalar, or broadcastable along dimensions of
            size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool.

    Differs:
        A scalar of Python and any other weakly typed scalar takes the dtype of the other
        operand where promotion allows it, here and in all functions of this module. Arrays of
        different dtypes are refused.

        >>> print(lax.add(jnp.ones(2), 2))
        [3. 3.]
        >>> lax.add(jnp.ones(2), jnp.ones(2, int))
        Traceback (most recent call last):
            ...
        TypeError: lax.add requires arguments of equal dtypes, got float32, int32; ...

    Example:
        >>> from dovetail import lax
        >>> float(lax.add(1.5, 2.0))
        3.5
    """
    return add_p.bind(*operands("add", x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise difference ``x - y``; integers wrap around.

    Args:
        x: numbers, not booleans.
        y: numbers of the same dtype; the same shape, a scalar, or broadcastable along dimensions of
            size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sub(1.5, 2.0))
        -0.5
    """
    return sub_p.bind(*operands("sub", x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """The elementwise product ``x * y``; integers wrap around.

    Args:
        x: numbers.
        y: numbers of the same dtype; the same shape, a scalar, or broadcastable along dimensions of
            size 1.
        out_dtype: dtype of the result, to which the operands are converted first: of their kind, or
            of one that holds theirs, such as floats for integers. None for theirs.

    Returns:
        An array of the dtype of the operands, or of `out_dtype`.

    Raises:
        TypeError: dtypes differ, `out_dtype` has another kind, or shapes are incompatible.

    Differs:
        A dtype that was asked for, with `out_dtype` or `preferred_element_type`, must be of a kind
        that holds what it is made from: numbers lose no fractions, imaginary parts or signs. It is
        not weak.

        >>> lax.mul(jnp.ones(2), jnp.ones(2), out_dtype="int8")
        Traceback (most recent call last):
            ...
        TypeError: lax.mul: out_dtype int8 does not hold the values of float32
        >>> print(lax.mul(1.0, 2.0, out_dtype="float32").weak_type)
        False

    Example:
        >>> from dovetail import lax
        >>> float(lax.mul(1.5, 2.0))
        3.0
    """
    x, y = operands("mul", x, y)
    if out_dtype is not None:
        dtype, kinds = dtypes.canonicalize_dtype(out_dtype), "buifc"
        given, asked = (dtypes.kind_of(d) or "?" for d in (aval_of(x).dtype, dtype))
        if kinds.find(given) > kinds.find(asked):
            raise TypeError(
                f"lax.mul: out_dtype {dtype} does not hold the values of {aval_of(x).dtype}"
            )
        x, y = convert_element_type(x, dtype), convert_element_type(y, dtype)
    return mul_p.bind(x, y)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the elementwise product of integers.

    For 32-bit integers it is ``(x * y) >> 32`` with a product that does not wrap around.

    Args:
        x: integers.
        y: integers of the same dtype; the same shape, a scalar, or broadcastable along dimensions
            of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not those of integers, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.mulhi(2**30, 2**4))
        4
    """
    return mulhi_p.bind(*operands("mulhi", x, y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise quotient ``x / y``; unlike in NumPy, integers give an integer.

    Integer division rounds towards zero. Dividing an integer by zero gives the number with
    all bits set (-1 for signed ones) and no error.

    Args:
        x: dividends, not booleans.
        y: divisors of the same dtype; the same shape, a scalar, or broadcastable along dimensions
            of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool.

    Differs:
        What a division by zero gives depends on nothing else; in JAX ``x / x`` is 1 where it is
        compiled.

        >>> print(dt.jit(lambda x: lax.div(x, x))(0))
        -1

    Example:
        >>> from dovetail import lax
        >>> int(lax.div(-7, 2))
        -3
    """
    return div_p.bind(*operands("div", x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise remainder of division rounded towards zero, like C's ``%`` and ``fmod``.

    It has the sign of the dividend. For integers, the remainder by zero is the dividend.

    Args:
        x: dividends, integers or floating point.
        y: divisors of the same dtype; the same shape, a scalar, or broadcastable along dimensions
            of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool or complex.

    Example:
        >>> from dovetail import lax
        >>> int(lax.rem(-7, 2))
        -1
    """
    return rem_p.bind(*operands("rem", x, y))


def neg(x: ArrayLike) -> Array:
    """The elementwise negative ``-x``; unsigned integers wrap around.

    Args:
        x: numbers, not booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool.

    Example:
        >>> from dovetail import lax
        >>> float(lax.neg(1.5))
        -1.5
    """
    return neg_p.bind(as_operand(x, "lax.neg"))


def sign(x: ArrayLike) -> Array:
    """The elementwise sign: -1, 0 (with the sign of `x`) or 1; NaN for NaN.

    For complex numbers ``x / abs(x)``, and 0 for 0.

    Args:
        x: numbers, not booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool.

    Differs:
        Where one part of a complex number is infinite the sign is 1, -1, i or -i, as in NumPy.

        >>> print(lax.sign(jnp.array([complex(3, -np.inf)])))
        [0.-1.j]

        The sign of complex numbers has a derivative.

        >>> z, t = dt.jvp(lax.sign, (4j,), (1.0 + 0j,))
        >>> print(t)
        (0.25+0j)

    Example:
        >>> from dovetail import lax
        >>> float(lax.sign(-2.5))
        -1.0
    """
    return sign_p.bind(as_operand(x, "lax.sign"))


def abs(x: ArrayLike) -> Array:
    """The elementwise absolute value; the lowest integer maps to itself.

    Its derivative at zero is 1 by convention (0 for complex numbers).

    Args:
        x: signed integers, floating point or complex.

    Returns:
        An array of the shape and dtype of `x`; for complex numbers, of the dtype of their parts.

    Raises:
        TypeError: `x` is bool or unsigned.

    Example:
        >>> from dovetail import lax
        >>> float(lax.abs(3 + 4j))
        5.0
    """
    return abs_p.bind(as_operand(x, "lax.abs"))
