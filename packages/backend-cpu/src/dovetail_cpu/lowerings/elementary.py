"""Elementary functions in float32, computed in float64.

XLA's CPU compiler calls the C library for each element of a sine, a remainder or a cube root, and
for some of them loses digits. The formulas here consist of arithmetic that it vectorizes. In
float64, ten digits suffice for results that are rounded correctly but in one case in a hundred.
Polynomials are therefore short, and no step needs care except the arguments of sines: these are
reduced with all the digits of pi that a float32 can need.

XLA lets the processor flush subnormal numbers to zero. A zero is therefore returned as it is where
the function is the identity near zero; elsewhere, a subnormal operand is rebuilt from its bits.

There are kernels of them (`native/elementary.cc`), mostly with the same formulas, and of others.

The polynomials come from Chebyshev interpolation, computed with 60 digits. A test of all float32
values found errors of up to 0.502 units in the last place, a sample of powers up to 0.504.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.core import primitives
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import Expression
from dovetail_cpu import kernel_library, kernels
from dovetail_cpu.lowerings import differences, distances, kronecker

TABLE: Final = LoweringTable()

Formula = Callable[..., Expression]

#: For fewer elements the C library is as fast, in a smaller program, which XLA then runs in the
#: caller's thread.
MANY: Final = 1024
NAMES: Final = ("bfloat16", "float16", "float32")

#: With fewer elements, the call of a kernel takes longer than a loop of XLA's for a short formula.
WORTH_A_CALL: Final = 4096
#: In a loop that calls a kernel XLA calls each operation by itself.
MANY_IN_A_LOOP: Final = 32768

FLOAT32: Final = np.dtype(np.float32)
FLOAT64: Final = np.dtype(np.float64)
INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)

#: What XLA, or the rule for it, fuses where no kernel is called.
FUSED: Final = frozenset(
    ("acosh", "asinh", "atanh", "cosh", "erf", "erfc", "exp", "expm1", "log", "log1p", "log2")
) | {"logistic", "sinh", "tanh"}
#: Kernels that gain no more than it costs to store their operands,
OF_ARGUMENTS: Final = frozenset({"log", "log2", "logistic"})
#: or their results;
WHERE_ALONE: Final = frozenset({"erf", "exp", "tanh"})
#: of float64.
WIDE_WHERE_ALONE: Final = frozenset({"exp", "tanh"})
#: Kernels of float32 that gain where instructions look numbers up.
BY_TABLES: Final = frozenset({"erf", "tanh"})
#: The same where vectors of kernels are no longer than XLA's.
SHORT_WHERE_ALONE: Final = WHERE_ALONE | {"cosh", "expm1"}

#: Adding this to an integer of less than 2**51 puts it in the lowest bits of a float64.
SHIFTER: Final = 1.5 * 2.0**52
#: The smallest float32, the unit of subnormal numbers.
SMALLEST: Final = 2.0**-149
#: Replaces infinity where the formula would take the difference or quotient of two.
HUGE: Final = 1e300

#: The product of a smaller integer and a float32 is exact.
EXACT_QUOTIENT: Final = 2.0**28

#: The bits of 2**52: with others in the mantissa, it is the float64 of that count.
COUNTER: Final = 0x433 << 52
#: 4/3 of the exponent of 1, and the shift that makes the largest error of a straight line smallest.
ROOT_START: Final = 2.0**52 * (4 / 3) + (4 / 3 * 1023 - 0.068) * 2.0**40

#: 2 / pi in parts of 28 bits, whose products with a float32 are exact.
TWO_OVER_PI: Final = tuple(
    float.fromhex(part)
    for part in (
        "0x1.45f306cp-1",
        "0x1.c9c882ap-29",
        "0x1.4fe13a8p-59",
        "0x1.f47d4dp-86",
        "0x1.bb81b6cp-113",
        "0x1.4acc9ep-143",
        "0x1.0e4107cp-170",
    )
)
#: This many of these products can be 4 or more.
LARGE_PARTS: Final = 5

#: The difference of the bits of 1 and sqrt(1/2).
TO_ONE: Final = int(np.float64(1).view(np.int64) - np.float64(0.5**0.5).view(np.int64))
#: Exponents of results outside the range of float32.
BEYOND: Final = 200.0

# In the squares of the argument: sin(pi / 2 r) / r and cos(pi / 2 r) for r**2 up to 1/4; atan(t) /
# t for t**2 up to 1.
SINE: Final = (
    1.5707963267881,
    -0.6459640961467954,
    0.07969258272563062,
    -0.004681266256726245,
    0.00015820630355647733,
)
COSINE: Final = (
    0.9999999999524894,
    -1.2337005406331623,
    0.2536692036551135,
    -0.02086006950026408,
    0.0009036280663802505,
)
ARC_TANGENT: Final = (
    0.9999999999293037,
    -0.3333333129088999,
    0.19999901102171555,
    -0.14283813255743194,
    0.11091922963683302,
    -0.08974171958363882,
    0.07228278345377252,
    -0.05395668057137172,
    0.033826218952786875,
    -0.015828322749149415,
    0.00473248419342192,
    -0.0006633954571104787,
)

# log2((1 + t) / (1 - t)) / t in t**2, for t up to (sqrt(2) - 1) / (sqrt(2) + 1); 2**f for f up to
# 1/2.
LOGARITHM: Final = (
    2.885390081789987,
    0.9617966734515485,
    0.5770835660048659,
    0.41167376623771057,
    0.3407120415619086,
)
POWER: Final = (
    0.9999999999595618,
    0.6931471805568324,
    0.24022651213498092,
    0.055504109063258665,
    0.009618025613318034,
    0.0013333478473685416,
    0.00015469729214118296,
    1.5303700711365693e-05,
)


def _by_formula(primitive: str, formula: Formula | None) -> Callable[..., Any]:
    """The rule of a primitive by a formula for float32, for narrower floats as well; or none."""

    def lower(context: Any, *values: Any, accuracy: Any = None) -> Any:
        (out,) = context.avals_out
        if (
            out.size < MANY
            or dtype_name(out.dtype) not in {*NAMES, "float64"}
            or any(aval.dtype != out.dtype for aval in context.avals_in)
            or not (accuracy is None or getattr(accuracy, "name", "") == "DEFAULT")
        ):
            return NotImplemented

        values = context.broadcast_operands(values, out)
        called = by_kernel(context, primitive, values)
        if called is not NotImplemented:
            return called
        if formula is None or out.dtype == FLOAT64:
            return NotImplemented

        def body(*arguments: Any) -> Any:
            operands = [Expression(context, value, out).convert(FLOAT32) for value in arguments]
            return formula(*operands).convert(out.dtype).value

        # If fused with its uses, it would be recomputed for each of them, which multiplies in
        # chains of such functions.
        (result,) = context.outlined(body, values, [out], primitive, cache_key=primitive)
        return result

    return lower


def _elementwise(primitive: str) -> Callable[[Formula], Formula]:
    """Make a formula for float32 the rule of a primitive."""

    def register(formula: Formula) -> Formula:
        TABLE.rule(primitive)(_by_formula(primitive, formula))
        return formula

    return register


def by_kernel(context: Any, primitive: str, values: Sequence[Any], **attributes: Any) -> Any:
    """Call the kernel of a primitive; NotImplemented if there is none, or XLA's loop is better.

    What follows a kernel is a loop of its own.
    """
    if primitive == "exp":
        for rule in (differences.with_sums, distances.exponentials):
            powers = rule(context, values[0])
            if powers is not NotImplemented:
                return powers
    (out,) = context.avals_out
    wide = out.dtype == FLOAT64
    kernel = kernels.ELEMENTARY.get((primitive, dtype_name(out.dtype)))
    if kernel is None or not kernels.usable(context):
        return NotImplemented
    if primitive in BY_TABLES and not wide and not kernel_library.has_long_vectors():
        return NotImplemented
    where_alone = WHERE_ALONE if kernel_library.has_long_vectors() else SHORT_WHERE_ALONE
    if primitive in (WIDE_WHERE_ALONE if wide else where_alone):
        suits = out.size >= WORTH_A_CALL and context.stands_alone()
    elif primitive in OF_ARGUMENTS and not wide:
        stored = context.runs_once() and not hasattr(values[0].owner, "name")
        suits = out.size >= WORTH_A_CALL and stored
        # XLA's vectors are as long: its loop with what follows is no slower than two passes.
        if primitive == "logistic" and not kernel_library.has_long_vectors():
            suits = suits and (context.stands_alone() or _is_gate(context))
    else:
        suits = primitive not in FUSED or out.size >= MANY_IN_A_LOOP or context.runs_once()
    if not suits:
        return NotImplemented
    return kernels.call(context, kernel, values, [out], out.ndim, **attributes)


def _is_gate(context: Any) -> bool:
    """Whether the result is only multiplied by as many numbers, which a kernel does, too."""
    (out,), uses = context.avals_out, context.uses()
    return (
        out.dtype == FLOAT32
        and [eqn.primitive for eqn in uses] == [primitives.mul_p]
        and all(var.aval.shape == out.shape for var in uses[0].invars)
    )


@TABLE.rule("mul")
def multiply(context: Any, x: Any, y: Any) -> Any:
    """The product of a kernel's result, which nothing else uses, and as many numbers."""
    (out,) = context.avals_out
    whole = kronecker.product(context, x, y)
    if whole is not NotImplemented:
        return whole
    if out.size < MANY or out.dtype != FLOAT32:
        return NotImplemented
    for gate, other, var in zip((x, y), (y, x), context.equation.invars, strict=True):
        if not is_made_by(gate, "custom_call") or gate.type != other.type:
            continue
        kernel = kernels.GATES.get(gate.owner.attributes["call_target_name"].value)
        if kernel is None or not is_used_once(context, var):
            continue
        given = gate.owner.attributes["backend_config"]
        scale = given["scale"].value if "scale" in given else 1.0
        number, factor = constant_product(other)
        return kernels.call(
            context,
            kernel,
            [gate.owner.operands[0], number],
            [out],
            out.ndim,
            scale=np.float32(scale),
            factor=np.float32(factor),
        )
    return NotImplemented


def is_made_by(x: Any, operation: str) -> bool:
    """Whether a value is the result of such an operation."""
    return bool(getattr(x.owner, "name", "") == f"stablehlo.{operation}")


def is_used_once(context: Any, var: Any) -> bool:
    """Whether the jaxpr that holds the current equation uses a variable once."""
    return bool(context.times_used(var) == 1)


def constant_product(x: Any) -> tuple[Any, float]:
    """A value and the constant that it was multiplied by, which a kernel does in passing."""
    if is_made_by(x, "multiply"):
        first, second = x.owner.operands
        for number, factor in ((first, second), (second, first)):
            constant = constant_of(factor)
            if constant is not None:
                return number, constant
    return x, 1.0


def constant_of(x: Any) -> float | None:
    """The constant that all elements of a value are; None if they are no constant."""
    if is_made_by(x, "broadcast_in_dim"):
        (x,) = x.owner.operands
    if not is_made_by(x, "constant"):
        return None
    value = x.owner.attributes["value"]
    return value.get_splat_value().value if value.is_splat else None


# What XLA computes by itself where there is no kernel; functions of gamma take it long to compile.
for _name in (
    *("acosh", "asinh", "atanh", "cosh", "digamma", "expm1"),
    *("lgamma", "logistic", "sinh", "tanh"),
):
    TABLE.rule(_name)(_by_formula(_name, None))


def polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """A polynomial, constant coefficient first.

    Pairs of terms are added first, then pairs of these (Estrin's scheme). Few operations then wait
    for others, and a processor does several at once.
    """
    terms: list[Any] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [power * high + low for low, high in pairs] + terms[len(terms) & ~1 :]
        if len(terms) > 1:
            power = power * power
    result: Expression = terms[0]
    return result


def _at_most(x: Expression, limit: Expression | float) -> Expression:
    """The smaller of both; NaN where `x` is. This form is one instruction."""
    beyond = x > limit
    return _like(x, limit).where(beyond, x)


def _at_least(x: Expression, limit: Expression | float) -> Expression:
    """The larger of both; NaN where `x` is. This form is one instruction."""
    beyond = x < limit
    return _like(x, limit).where(beyond, x)


def _like(x: Expression, other: Expression | float) -> Expression:
    return other if isinstance(other, Expression) else x.constant(other)


def _size(x: Expression) -> Expression:
    """The absolute value of a float32 in float64, subnormal numbers included."""
    bits = x.bits(INT32) & 0x7FFFFFFF
    tiny = x == 0.0
    return (bits.convert(FLOAT64) * SMALLEST).where(tiny, abs(x).convert(FLOAT64))


def _single(size: Expression, sign: Expression) -> Expression:
    """A positive float64 as a float32, with a sign bit (an int32 with only that bit)."""
    normal = size.convert(FLOAT32).bits(INT32)
    small = (size * (1 / SMALLEST) + SHIFTER).bits(INT64).convert(INT32)
    bits = small.where(size < float(np.finfo(FLOAT32).smallest_normal), normal)
    return (bits | sign).bits(FLOAT32)


def _sign(x: Expression) -> Expression:
    return x.bits(INT32) & -0x80000000


def _identity_at_zero(x: Expression, result: Expression) -> Expression:
    """The float32 result of a function; `x` itself where the processor flushes it to zero."""
    return x.where(x == 0.0, result.convert(FLOAT32))


def _sine_and_cosine(x: Expression) -> tuple[Expression, Expression, Expression]:
    """sin and cos of pi / 2 r, and an int64 n, where n + r = 2 / pi x modulo 4, abs(r) <= 1/2.

    Multiples of 4 are subtracted from each product before anything is rounded. The nearest integer
    is subtracted from the largest part first, which keeps the digits of the sum where it is small.
    """
    wide = x.convert(FLOAT64)
    parts = [wide * part for part in TWO_OVER_PI]
    for i, part in enumerate(parts[:LARGE_PARTS]):
        parts[i] = part - (part * 0.25).nearest() * 4.0
    total = parts[0]
    for part in parts[1:LARGE_PARTS]:
        total = total + part
    nearest = total.nearest()
    rest = parts[0] - nearest
    for part in parts[1:]:
        rest = rest + part
    square = rest * rest
    quadrant = (nearest + SHIFTER).bits(INT64)
    return rest * polynomial(square, SINE), polynomial(square, COSINE), quadrant


def _wave(x: Expression, quarters: int) -> Expression:
    """The sine of x + quarters * pi / 2."""
    sine, cosine, quadrant = _sine_and_cosine(x)
    if quarters:
        quadrant = quadrant + quarters
    value = sine.where((quadrant & 1) == 0, cosine)
    return (value.bits(INT64) ^ ((quadrant & 2) << 62)).bits(FLOAT64)


@_elementwise("sin")
def _sin(x: Expression) -> Expression:
    """The sine."""
    return _identity_at_zero(x, _wave(x, 0))


@_elementwise("cos")
def _cos(x: Expression) -> Expression:
    """The cosine."""
    return _wave(x, 1).convert(FLOAT32)


@_elementwise("tan")
def _tan(x: Expression) -> Expression:
    """The tangent."""
    sine, cosine, quadrant = _sine_and_cosine(x)
    even = (quadrant & 1) == 0
    return _identity_at_zero(x, sine.where(even, -cosine) / cosine.where(even, sine))


def _angle(y: Expression, x: Expression) -> Expression:
    """The angle from 0 to pi / 2 of a point with finite coordinates >= 0, of which one is not 0."""
    # A division with several uses would get its own loop, so this one has a single use.
    quotient = _at_most(y, x) * (1.0 / _at_least(x, y))
    angle = quotient * polynomial(quotient * quotient, ARC_TANGENT)
    steep = y > x
    return (math.pi / 2 - angle).where(steep, angle)


@_elementwise("atan2")
def _atan2(y: Expression, x: Expression) -> Expression:
    """The angle of a point."""
    height, width = (_at_most(_size(v), HUGE) for v in (y, x))
    angle = _angle(height, _at_least(width, 1 / HUGE))
    # The sign of zeros matters too.
    left = x.bits(INT32) < 0
    return _single((math.pi - angle).where(left, angle), _sign(y))


@_elementwise("atan")
def _atan(x: Expression) -> Expression:
    """The inverse of the tangent."""
    angle = _angle(_at_most(abs(x).convert(FLOAT64), HUGE), x.convert(FLOAT64).constant(1.0))
    return _identity_at_zero(x, _with_sign(angle, x))


def _with_sign(size: Expression, x: Expression) -> Expression:
    negative = x < 0.0
    return (-size).where(negative, size)


@_elementwise("asin")
def _asin(x: Expression) -> Expression:
    """The inverse of the sine."""
    return _identity_at_zero(x, _with_sign(_arc_sine(abs(x).convert(FLOAT64)), x))


@_elementwise("acos")
def _acos(x: Expression) -> Expression:
    """The inverse of the cosine."""
    angle = math.pi / 2 - _with_sign(_arc_sine(abs(x).convert(FLOAT64)), x)
    return angle.convert(FLOAT32)


def _arc_sine(y: Expression) -> Expression:
    """The angle of the point (sqrt(1 - y**2), y) with y >= 0."""
    rise, run = y * y, (1.0 - y) * (y + 1.0)
    square = _at_most(rise, run) * (1.0 / _at_least(run, rise))
    angle = square.sqrt() * polynomial(square, ARC_TANGENT)
    steep = rise > run
    return (math.pi / 2 - angle).where(steep, angle)


@_elementwise("cbrt")
def _cbrt(x: Expression) -> Expression:
    """The cube root, as x r**2 with the inverse root r.

    The first r comes from dividing the bits by -3, as if they were a logarithm; it is accurate to 4
    %. With h = 1 - x r**3, the exact root is r (1 - h)**(-1/3). Two terms of it are used, twice.
    """
    size = _size(x)
    counted = ((size.bits(INT64) >> 12) | COUNTER).bits(FLOAT64)
    root = ((counted * (-1 / 3) + ROOT_START).bits(INT64) << 12).bits(FLOAT64)
    for _ in range(2):
        rest = 1.0 - size * root * root * root
        root = root + root * rest * polynomial(rest, (1 / 3, 2 / 9))
    # Infinities and NaN are their own roots.
    finite = size < math.inf
    root_size = (size * root * root).where(finite, size)
    return (root_size.convert(FLOAT32).bits(INT32) | _sign(x)).bits(FLOAT32)


def _rem(x: Expression, y: Expression) -> Expression:
    """The exact remainder: from the quotients, if none is too large.

    A quotient that was rounded up to an integer makes the remainder negative; one that was rounded
    down from an integer leaves the divisor.
    """
    context = x.context
    size, divisor = _size(x), _size(y)
    quotient = size / divisor
    large = (quotient > EXACT_QUOTIENT) & (quotient < math.inf)
    some = large.any_bits().convert(INT32)

    def from_quotients() -> Any:
        rest = size - quotient.apply("floor") * divisor
        below = rest < 0.0
        rest = (rest + divisor).where(below, rest)
        rest = rest.where(rest < divisor, rest - divisor)
        return size.where(size < divisor, rest).value

    def by_the_library() -> Any:
        return size.apply("remainder", divisor).value

    (remainder,) = context.case(some.value, [from_quotients, by_the_library], [size.aval])
    return _single(Expression(context, remainder, size.aval), _sign(x))


#: The rule of `rem` where there is no kernel.
remainder: Final = _by_formula("rem", _rem)


@_elementwise("pow")
def _pow(x: Expression, y: Expression) -> Expression:
    """The power, with the special cases of IEEE 754."""
    size, exponent = _size(x), _size(y)
    finite = size < HUGE
    logarithm = _log2(size).where(finite, HUGE)
    zero = size == 0.0
    logarithm = size.constant(-HUGE).where(zero, logarithm)
    negative = y.bits(INT32) < 0
    product = logarithm * (-exponent).where(negative, exponent)
    power = _exp2(_at_least(_at_most(product, BEYOND), -BEYOND))
    half, integer = exponent * 0.5, exponent == exponent.apply("floor")
    even, none = half == half.apply("floor"), _sign(x) & 0
    result = _single(power, none.where(even, _sign(x)).where(integer, none))
    real = integer | (x.bits(INT32) > -1) | (size == 0.0) | (size == math.inf)
    number = (x == x) & (y == y) & real
    one = (exponent == 0.0) | (x == 1.0) | ((size == 1.0) & (exponent == math.inf))
    return x.constant(1.0).where(one, result.where(number, math.nan))


def _log2(size: Expression) -> Expression:
    """n + log2(m) of a positive number 2**n m with m from sqrt(1/2) to sqrt(2)."""
    bits = size.bits(INT64)
    biased = (bits + TO_ONE) >> 52
    mantissa = (bits - (biased << 52) + (1023 << 52)).bits(FLOAT64)
    count = (biased | COUNTER).bits(FLOAT64) - (2.0**52 + 1023)
    quotient = (mantissa - 1.0) * (1.0 / (mantissa + 1.0))
    return count + quotient * polynomial(quotient * quotient, LOGARITHM)


def _exp2(x: Expression) -> Expression:
    """Two to the power of a number, if the result is a normal number."""
    nearest = x.nearest()
    scale = (nearest + SHIFTER).bits(INT64) << 52
    return (polynomial(x - nearest, POWER).bits(INT64) + scale).bits(FLOAT64)
