"""Logarithms and exponentials by short polynomials.

XLA's CPU compiler calls the C library for each logarithm of a float64. For float32 its polynomials
are long chains, in which each operation waits for the one before; of `log1p` it computes two.

A positive number is 2**n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). The product of n and the
leading part of log(2) is exact. What is added to f is small, so that its errors hardly matter.
Errors are below a unit in the last place, of `log1p` below 1.4, of `log2` below 1.1.

The polynomials come from Chebyshev interpolation, computed with 60 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import Expression
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.elementary import (
    COUNTER,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    MANY,
    NAMES,
    SHIFTER,
    by_kernel,
    constant_of,
    is_made_by,
    is_used_once,
    polynomial,
)

TABLE: Final = LoweringTable()

Formula = Callable[[Expression], Expression]

#: (log(1 + f) - f + f**2 / 2) / f**3, for float32.
SINGLE: Final = (
    0.33333331180030046,
    -0.24999996957950882,
    0.200007157488921,
    -0.16667802319501254,
    0.1424905764569748,
    -0.12425687331451106,
    0.1168541992348674,
    -0.11479733846637635,
    0.06971611471451178,
)
#: (log((1 + s) / (1 - s)) / s - 2) / s**2 in s**2, for float64.
DOUBLE: Final = (
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
)
#: (2**r - 1) / r for r up to 1/2, for float32.
POWER: Final = (
    0.6931471805599453,
    0.24022650925021063,
    0.055504108841199315,
    0.009618056096717177,
    0.0013333501938341237,
    0.00015461676975973325,
    1.5297502543635438e-05,
)
#: (exp(r) - 1 - r) / r**2 for r up to log(2) / 2, for float64.
EXPONENTIAL: Final = (
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326084,
    0.0013888888888883711,
    0.0001984126987500228,
    2.480158732567746e-05,
    2.755725517000089e-06,
    2.755727347871858e-07,
    2.5105312729622103e-08,
    2.09147553258932e-09,
)

#: log(2) in two parts: few digits, and the rest.
LOG2: Final = {
    FLOAT32: (0.693359375, -2.1219444005469057e-4),
    FLOAT64: (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
INTEGERS: Final = {FLOAT32: INT32, FLOAT64: INT64}


def _formula(primitive: str, names: Collection[str]) -> Callable[[Formula], Formula]:
    """Make a kernel, and a formula for dtypes of these names, the rule of a primitive."""

    def register(formula: Formula) -> Formula:
        def lower(context: Any, x: Any, *, accuracy: Any = None) -> Any:
            (out,) = context.avals_out
            default = accuracy is None or getattr(accuracy, "name", "") == "DEFAULT"
            if out.size < MANY or not default:
                return NotImplemented
            called = by_kernel(context, primitive, [x])
            if called is not NotImplemented or dtype_name(out.dtype) not in names:
                return called
            wide = FLOAT64 if out.dtype == FLOAT64 else FLOAT32
            return formula(Expression(context, x, out).convert(wide)).convert(out.dtype).value

        TABLE.rule(primitive)(lower)
        return formula

    return register


@_formula("log", {*NAMES, "float64"})
def _log(x: Expression) -> Expression:
    """The natural logarithm."""
    # XLA would give a division or root with several uses a loop of its own. So x has this one.
    bits = x.bits(INTEGERS[x.aval.dtype])
    return _limits(bits, _sum(*_parts(bits, x.aval)))


@_formula("log2", NAMES)
def _log2(x: Expression) -> Expression:
    """The logarithm to base two, exact of powers of two."""
    bits = x.bits(INT32)
    count, rest = _parts(bits, x.aval)
    square = rest * rest
    bend = square * 0.5 - rest * square * polynomial(rest, SINGLE)
    scale = 1 / math.log(2)
    # The product of 1 and the rest is exact.
    return _limits(bits, count + (rest + (rest * (scale - 1) - bend * scale)))


@_formula("log1p", {*NAMES, "float64"})
def _log1p(x: Expression) -> Expression:
    """The logarithm of 1 + x.

    The sum is rounded; it only tells n. Both its terms are divided by 2**n, of which that from 1
    and 1 subtracted is exact.
    """
    one, digits = _form(x.aval)
    bits = (x + 1.0).bits(INTEGERS[x.aval.dtype])
    biased = _exponent(bits, x.aval)
    # 16 / 2**n, because 1 / 2**128 is no normal float32.
    scale = ((2 * (one >> digits) + 4 - biased) << digits).bits(x.aval.dtype)
    rest = (x * scale + (scale - 16.0)) * (1 / 16)
    return x.where(x == 0.0, _limits(bits, _sum(_count(biased, x.aval), rest)))


@_formula("exp2", NAMES)
def _exp2(x: Expression) -> Expression:
    """Two to the power of x; zero where the result is no normal number."""
    nearest = x.nearest()
    rest = x - nearest
    power = 1.0 + (rest * POWER[0] + rest * rest * polynomial(rest, POWER[1:]))
    result = (power.bits(INT32) + (nearest.convert(INT32) << 23)).bits(FLOAT32)
    result = x.constant(0.0).where(x < -126.0, x.constant(math.inf).where(x >= 128.0, result))
    return result.where(x == x, math.nan)


@_formula("exp", {"float64"})
def _exp(x: Expression) -> Expression:
    """The exponential; zero where it is no normal number."""
    high, low = LOG2[FLOAT64]
    nearest = (x * (1 / math.log(2))).nearest()
    rest = (x - nearest * high) - nearest * low
    power = 1.0 + (rest + rest * rest * polynomial(rest, EXPONENTIAL))
    scale = (nearest + SHIFTER).bits(INT64) << _form(x.aval)[1]
    result = (power.bits(INT64) + scale).bits(FLOAT64)
    limits = np.finfo(FLOAT64)
    result = x.constant(0.0).where(x < math.log(limits.smallest_normal), result)
    result = x.constant(math.inf).where(x > math.log(limits.max), result)
    return result.where(x == x, math.nan)


@TABLE.rule("add")
def add(context: Any, x: Any, y: Any) -> Any:
    """``logaddexp`` of arrays, or of one and a number, in one kernel instead of three loops."""
    (out,) = context.avals_out
    if out.size < MANY or out.dtype != FLOAT32:
        return NotImplemented
    pair = _of_exponentials(x, y)
    if pair is None or not _is_chain(context, context.equation.invars[1]):
        return NotImplemented
    first, second = pair
    fixed = constant_of(second)
    return kernels.call(
        context,
        kernels.LOG_OF_EXPONENTIALS,
        [first, first if fixed is not None else second],
        [out],
        out.ndim,
        is_fixed=np.bool_(fixed is not None),
        fixed=np.float32(fixed or 0),
    )


def _of_exponentials(larger: Any, rest: Any) -> list[Any] | None:
    """Two values, if these are the larger of both and ``log1p(exp(-abs(x - y)))`` by a kernel.

    The difference is chosen to be zero where both are infinite and equal.
    """
    if not is_made_by(rest, "custom_call") or not is_made_by(larger, "select"):
        return None
    if rest.owner.attributes["call_target_name"].value != kernels.ELEMENTARY["log1p", "float32"]:
        return None
    (magnitude,) = rest.owner.operands
    for operation in ("exponential", "negate"):
        if not is_made_by(magnitude, operation):
            return None
        (magnitude,) = magnitude.owner.operands
    if not is_made_by(magnitude, "select"):
        return None
    positive, apart, negative = magnitude.owner.operands
    above, *pair = larger.owner.operands
    if (
        not all(_compares(x, "GE", apart) == 0 for x in (positive, above))
        or not is_made_by(negative, "negate")
        or list(negative.owner.operands) != [apart]
        or not is_made_by(apart, "select")
    ):
        return None
    same, none, difference = apart.owner.operands
    if not is_made_by(difference, "subtract") or not is_made_by(same, "and"):
        return None
    terms, (equal, missing) = list(difference.owner.operands), same.owner.operands
    other = _known(terms[1])
    if (
        constant_of(none) != 0
        or _compares(equal, "EQ", terms[0]) != other
        or _compares(missing, "NE", difference) != difference
        or terms[0] != pair[0]
        or _known(pair[1]) != other
    ):
        return None
    return terms


def _compares(x: Any, direction: str, first: Any) -> Any:
    """The constant or value that a value is compared with, by such a comparison; or None."""
    if not is_made_by(x, "compare") or x.owner.operands[0] != first:
        return None
    found = direction in str(x.owner.attributes["comparison_direction"])
    return _known(x.owner.operands[1]) if found else None


def _known(x: Any) -> Any:
    """The constant that a value is, or the value."""
    constant = constant_of(x)
    return x if constant is None else constant


def _is_chain(context: Any, var: Any) -> bool:
    """Whether nothing else uses a variable, nor that which it was computed of."""
    maker = context.uses_in(context.jaxpr).makers.get(var)
    given = () if maker is None else maker.invars
    return all(is_used_once(context, v) for v in (var, *given))


def _form(aval: Any) -> tuple[int, int]:
    """The bits of 1, and how many of them are the mantissa."""
    return int(aval.dtype.type(1).view(INTEGERS[aval.dtype])), int(np.finfo(aval.dtype).nmant)


def _exponent(bits: Expression, aval: Any) -> Expression:
    """n of a positive number, with the bias of exponents."""
    one, digits = _form(aval)
    root = int(aval.dtype.type(0.5**0.5).view(INTEGERS[aval.dtype]))
    return (bits + (one - root)) >> digits


def _count(biased: Expression, aval: Any) -> Expression:
    """n as a float."""
    if aval.dtype == FLOAT32:
        return biased.convert(FLOAT32) - 127.0
    return (biased | COUNTER).bits(FLOAT64) - (2.0**52 + 1023)


def _parts(bits: Expression, aval: Any) -> tuple[Expression, Expression]:
    """n and f of a positive number."""
    one, digits = _form(aval)
    biased = _exponent(bits, aval)
    mantissa = (bits - (biased << digits) + one).bits(aval.dtype)
    return _count(biased, aval), mantissa - 1.0


def _sum(count: Expression, rest: Expression) -> Expression:
    """n log(2) + log(1 + f)."""
    high, low = LOG2[rest.aval.dtype]
    half = rest * rest * 0.5
    if rest.aval.dtype == FLOAT32:
        tail = rest * (rest * rest) * polynomial(rest, SINGLE)
    else:
        quotient = rest * (1.0 / (rest + 2.0))
        square = quotient * quotient
        tail = quotient * (half + square * polynomial(square, DOUBLE))
    leading = count * high
    total = leading + rest
    # What rounding took from the sum, whose first term is zero or the larger one.
    lost = rest - (total - leading)
    return total + (lost - (half - (tail + count * low)))


def _limits(bits: Expression, result: Expression) -> Expression:
    """The result of a positive, normal number; that of others. Subnormal numbers are zeros."""
    dtype = result.aval.dtype
    smallest = 1 << _form(result.aval)[1]
    infinity = int(dtype.type(math.inf).view(INTEGERS[dtype]))
    zero = (bits & ((1 << (8 * dtype.itemsize - 1)) - 1)) < smallest
    other = result.constant(math.inf).where(bits == infinity, math.nan)
    other = result.constant(-math.inf).where(zero, other)
    return result.where((bits >= smallest) & (bits < infinity), other)
