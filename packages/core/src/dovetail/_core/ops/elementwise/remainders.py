"""Remainders, and the upper halves of products, by which they are computed of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.elementwise import mul as multiply
from dovetail._core.basis.elementwise import neg as negate
from dovetail._core.basis.families import Discrete
from dovetail._core.basis.operands import literal_like, make_literal
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.ops.elementwise import invariant_division, references
from dovetail._core.ops.elementwise.arithmetic import Division, add_p, div_p, sub_p
from dovetail._core.ops.elementwise.bitwise import (
    and_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
)
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.ops.elementwise.rounding import RoundingMethod, round_p

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


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


# Public functions


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
