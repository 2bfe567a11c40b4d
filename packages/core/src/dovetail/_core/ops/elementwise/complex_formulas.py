"""Formulas of complex functions in terms of their real and imaginary parts.

Values on the axes, on both sides of a cut and at infinity follow C99, annex G.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail._core.basis.elementwise import convert_element_type, mul, neg
from dovetail._core.basis.operands import literal_like, make_literal
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise.arithmetic import add_p, sub_p
from dovetail._core.ops.elementwise.bitwise import and_p, not_p, or_p
from dovetail._core.ops.elementwise.comparison import eq_p, lt_p, ne_p
from dovetail._core.ops.elementwise.complex import imag, real
from dovetail._core.ops.elementwise.conversion import bitcast_convert_type_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p, sign_p


def where(condition: Any, chosen: Any, other: Any) -> Any:
    """`chosen` (an array or a number) where the condition holds, `other` elsewhere."""
    if isinstance(chosen, (int, float)):
        chosen = broadcast_to(literal_like(chosen, other), shape_of(other))
    return select_n_p.bind(condition, other, chosen)


def equal(x: Any, number: float) -> Any:
    """Where `x` equals the number."""
    return eq_p.bind(x, literal_like(number, x))


def infinite(x: Any) -> Any:
    """Where `x` is infinite."""
    return equal(abs_p.bind(x), math.inf)


def unknown(x: Any) -> Any:
    """Where `x` is not a number."""
    return ne_p.bind(x, x)


def endless(a: Any, b: Any) -> Any:
    """Where `a` is infinite and `b` is infinite or NaN."""
    return and_p.bind(infinite(a), unknown(sub_p.bind(b, b)))


def nan_beside(size: Any, x: Any) -> Any:
    """`size`, but NaN where one part of a complex `x` is NaN and the other is finite."""
    a, b = real(x), imag(x)
    unbounded = or_p.bind(infinite(a), infinite(b))
    lost = and_p.bind(unknown(add_p.bind(a, b)), not_p.bind(unbounded))
    return where(lost, math.nan, size)


def sign_or_one(x: Any) -> Any:
    """The sign of x; 1 where x is not a number."""
    nan = unknown(x)
    return select_n_p.bind(nan, sign_p.bind(x), convert_element_type(nan, aval_of(x).dtype))


def with_sign(x: Any, y: Any) -> Any:
    """`x` (an array or a number) with the sign of `y`, signed zeros included."""
    integer = np.dtype(np.int32 if aval_of(y).dtype == np.float32 else np.int64)
    bits = bitcast_convert_type_p.bind(y, new_dtype=integer)
    size = abs_p.bind(broadcast_to(literal_like(x, y), shape_of(y)) if type(x) is float else x)
    return where(lt_p.bind(bits, make_literal(0, integer)), neg(size), size)


def doubled(x: Any) -> Any:
    """2 x."""
    return mul(literal_like(2, x), x)


def halved(x: Any) -> Any:
    """x / 2."""
    return mul(literal_like(0.5, x), x)
