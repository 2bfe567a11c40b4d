"""Remainders of many numbers by one divisor, without division."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail._core.basis.elementwise import convert_element_type, mul_p
from dovetail._core.basis.operands import make_literal
from dovetail._core.ops.elementwise import bitwise, comparison
from dovetail._core.trace.primitive import primitive

_UINT32: Final = np.dtype(np.uint32)
_UINT64: Final = np.dtype(np.uint64)

#: Smaller arrays are not worth computing the constants, which takes a 64-bit division.
WORTHWHILE: Final = 4096


def remainder_by_scalar(x: Any, divisor: Any) -> Any:
    """``x % divisor`` for uint32 numbers `x` and one `divisor`; `x` where that is zero.

    The quotient is the high word of a product with a scaled reciprocal. Processors vectorize
    the product, but not the division.

    Source: Granlund and Montgomery, Division by Invariant Integers using Multiplication, PLDI 1994,
    figure 4.1.
    """
    add_p, sub_p, div_p = (primitive(name) for name in ("add", "sub", "div"))
    shift_left, shift_right = bitwise.shift_left_p.bind, bitwise.shift_right_logical_p.bind
    one, word = make_literal(1, _UINT32), make_literal(32, _UINT64)

    def wide(value: Any) -> Any:
        return convert_element_type(value, _UINT64)

    def narrow(value: Any) -> Any:
        return convert_element_type(value, _UINT32)

    positive = add_p.bind(divisor, narrow(comparison.eq_p.bind(divisor, make_literal(0, _UINT32))))
    # 2**digits is the least power of two that is not below the divisor.
    digits = sub_p.bind(make_literal(32, _UINT32), bitwise.clz_p.bind(sub_p.bind(positive, one)))
    power = shift_left(make_literal(1, _UINT64), wide(digits))
    scaled = shift_left(sub_p.bind(power, wide(positive)), word)
    reciprocal = narrow(add_p.bind(div_p.bind(scaled, wide(positive)), make_literal(1, _UINT64)))
    first = narrow(comparison.gt_p.bind(positive, one))
    high = narrow(shift_right(mul_p.bind(wide(x), wide(reciprocal)), word))
    halved = add_p.bind(high, shift_right(sub_p.bind(x, high), first))
    quotient = shift_right(halved, sub_p.bind(digits, first))
    return sub_p.bind(x, mul_p.bind(quotient, divisor))
