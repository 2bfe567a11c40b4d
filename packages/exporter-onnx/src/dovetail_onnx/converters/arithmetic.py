"""Sums, products, quotients, powers, extrema, rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, lowest, named, where
from dovetail_onnx.converters.softmax import as_softmax
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Value
from dovetail_onnx.types import BOOL, I64, is_float, stand_in

table = LoweringTable()

for _primitive, _operator in {
    "add": "Add",
    "add_any": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "abs": "Abs",
    "floor": "Floor",
    "ceil": "Ceil",
    "sqrt": "Sqrt",
}.items():
    table.rule(_primitive)(named(_operator))


@table.rule("neg")
def neg(c: Context, x: Value) -> Value:
    """The number with the other sign; modulo a power of two without one."""
    return c.op("Sub", 0, x) if x.dtype.kind == "u" else c.op("Neg", x)


@table.rule("sign")
def sign(c: Context, x: Value) -> Value:
    """-1, 0 or 1; zeros keep their sign, and NaN is NaN."""
    if not is_float(x.dtype):
        return c.op("Sign", x)
    zero = c.op("Equal", x, 0)
    kept = c.op("Or", zero, c.op("IsNaN", x))
    return where(c, kept, x, c.op("Sign", x), x)


@table.rule("div")
def div(c: Context, x: Value, y: Value) -> Value:
    """The quotient; of integers without its fraction, and -1 if one divides by zero."""
    if is_float(x.dtype):
        softmax = as_softmax(c.graph, x, y)
        return c.op("Div", x, y) if softmax is None else softmax
    zero, divisor = _divisor(c, x, y)
    quotient = c.op("Div", x, divisor)
    if zero is None:
        return quotient
    every_bit = np.array(-1).astype(x.dtype) if x.dtype.kind == "i" else lowest(x.dtype, True)
    return where(c, zero, every_bit, quotient, x)


@table.rule("rem")
def rem(c: Context, x: Value, y: Value) -> Value:
    """The remainder, with the sign of the dividend; the dividend if one divides by zero."""
    if is_float(x.dtype):
        return c.op("Mod", x, y, fmod=1)
    zero, divisor = _divisor(c, x, y)
    quotient = c.op("Div", x, divisor)
    remainder = c.op("Sub", x, c.op("Mul", divisor, quotient))
    return remainder if zero is None else where(c, zero, x, remainder, x)


def _divisor(c: Context, x: Value, y: Value) -> tuple[Value | None, Value]:
    """Where a divisor is zero, and one that a processor can divide by.

    Dividing by zero, and the lowest number by -1, ends the process that computes it.
    """
    zero = None
    if y.known is None or (y.known == 0).any():
        zero = c.op("Equal", y, 0)
        y = where(c, zero, 1, y, y)
    if x.dtype.kind == "i" and (y.known is None or (y.known == -1).any()):
        overflow = c.op("And", c.op("Equal", y, -1), c.op("Equal", x, lowest(x.dtype)))
        y = where(c, overflow, 1, y, y)
    return zero, y


# ---------------------------------------------------------------------------------------- powers


@table.rule("integer_pow")
@in_wide
def integer_pow(c: Context, x: Value, *, y: int) -> Value:
    """A power with a known integer exponent, by multiplication."""
    if y == 0:
        return c.graph.expand(1, x.shape, x.dtype)
    power, square, rest = None, x, abs(y)
    while rest:
        if rest & 1:
            power = square if power is None else c.op("Mul", power, square)
        rest >>= 1
        if rest:
            square = c.op("Mul", square, square)
    assert power is not None
    return c.op("Div", 1, power) if y < 0 else power


@table.rule("pow")
def pow_(c: Context, x: Value, y: Value, **params: Any) -> Value:
    """A power."""
    if is_float(x.dtype):
        return _float_pow(c, x, y)
    # ONNX says nothing of integers that overflow: by squaring, one bit of the exponent at a time.
    result = c.graph.expand(1, c.shape, x.dtype)
    square = x
    exponent = c.graph.cast(y, I64)
    bits = 8 * y.dtype.itemsize - (y.dtype.kind == "i")
    for bit in range(bits):
        mask = c.graph.constant(np.int64(1 << bit) if bit < 63 else np.int64(-(2**63)))
        is_set = c.op("Not", c.op("Equal", c.op("BitwiseAnd", exponent, mask), 0))
        result = where(c, is_set, c.op("Mul", result, square), result, result)
        square = c.op("Mul", square, square)
    return result


@in_wide
def _float_pow(c: Context, x: Value, y: Value) -> Value:
    if not is_float(y.dtype):
        y = c.graph.cast(y, stand_in("Pow", y.dtype))
    return c.op("Pow", x, y)


@table.rule("square")
@in_wide
def square(c: Context, x: Value) -> Value:
    """The product of a number with itself."""
    return c.op("Mul", x, x)


@table.rule("one_minus_square")
@in_wide
def one_minus_square(c: Context, x: Value) -> Value:
    """``1 - x**2``, as a product."""
    return c.op("Mul", c.op("Sub", 1, x), c.op("Add", 1, x))


@table.rule("rsqrt")
@in_wide
def rsqrt(c: Context, x: Value, **params: Any) -> Value:
    """One divided by the square root."""
    return c.op("Div", 1, c.op("Sqrt", x))


@table.rule("cbrt")
@in_wide
def cbrt(c: Context, x: Value, **params: Any) -> Value:
    """The cube root: a power, and one step of Newton's method."""
    size = c.op("Abs", x)
    guess = c.op("Pow", size, 1 / 3)
    square_ = c.op("Mul", guess, guess)
    off = c.op("Sub", c.op("Mul", guess, square_), size)
    better = c.op("Sub", guess, c.op("Div", off, c.op("Mul", square_, 3)))
    plain = c.op("Or", c.op("Equal", x, 0), c.op("IsInf", x))
    root = where(c, c.op("Less", x, 0), c.op("Neg", better), better, x)
    return where(c, plain, x, root, x)


# ----------------------------------------------------------------------------- extrema, rounding


def _extremum(operator: str) -> Callable[..., Value]:
    def convert(c: Context, x: Value, y: Value) -> Value:
        if x.dtype == BOOL:
            return c.op("Or" if operator == "Max" else "And", x, y)
        return c.op(operator, x, y)

    return convert


table.rule("max")(_extremum("Max"))
table.rule("min")(_extremum("Min"))


@table.rule("clamp")
def clamp(c: Context, low: Value, x: Value, high: Value) -> Value:
    """A number moved to the nearest one between two bounds."""
    return _extremum("Min")(c, _extremum("Max")(c, x, low), high)


@table.rule("round")
def round_(c: Context, x: Value, *, rounding_method: Any) -> Value:
    """The nearest integer; halves go to the even one, or away from zero."""
    if int(rounding_method) == 1:
        return c.op("Round", x)
    return _round_away(c, x)


@in_wide
def _round_away(c: Context, x: Value) -> Value:
    size = c.op("Abs", x)
    whole = c.op("Floor", size)
    up = c.op("GreaterOrEqual", c.op("Sub", size, whole), 0.5)
    rounded = where(c, up, c.op("Add", whole, 1), whole, x)
    signed = where(c, c.op("Less", x, 0), c.op("Neg", rounded), rounded, x)
    # A zero keeps the sign of the number.
    return where(c, c.op("Equal", rounded, 0), c.op("Mul", x, 0), signed, x)


@table.rule("is_finite")
def is_finite(c: Context, x: Value) -> Value:
    """Whether a number is neither infinite nor NaN."""
    if not is_float(x.dtype):
        return c.graph.expand(True, c.shape, BOOL)
    return c.op("Not", c.op("Or", c.op("IsInf", x), c.op("IsNaN", x)))


@table.rule("mulhi")
def mulhi(c: Context, x: Value, y: Value) -> Value:
    """The upper half of a product."""
    if x.dtype.itemsize == 8:
        raise Refusal("ONNX has no integers of 128 bits")
    product = c.op("Mul", c.graph.cast(x, I64), c.graph.cast(y, I64))
    bits = 8 * x.dtype.itemsize
    unsigned = np.dtype(np.uint64)
    upper = c.op(
        "BitShift",
        c.graph.cast(product, unsigned),
        c.graph.constant(np.uint64(bits)),
        direction="RIGHT",
    )
    return c.graph.cast(upper, x.dtype)
