"""Elementary functions in float32, computed in float64.

XLA's CPU compiler calls the C library for each element of a sine, a remainder or a cube root, and
for some of them loses digits. The formulas here consist of arithmetic that it vectorises. In
float64 ten digits are enough for results that are rounded correctly but in one case in a hundred,
so that polynomials are short and no step needs care, but for the arguments of sines: these are
reduced with all the digits of pi that a float32 can need.

XLA lets the processor take subnormal numbers for zeros. A zero is therefore returned as it is where
the function is the identity near zero; elsewhere a subnormal operand is made from its bits.

The polynomials are those of Chebyshev interpolation, computed with 60 digits. A test of all float32
found errors of up to 0.502 units in the last place, a sample of powers up to 0.504.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray
from dovetail_cpu.lowerings.formulas import Term

TABLE: Final = LoweringTable()

Formula = Callable[..., Term]

#: Fewer elements take as long by the C library, in a smaller program, which XLA then runs in the
#: caller's thread.
MANY: Final = 1024
NAMES: Final = ("bfloat16", "float16", "float32")

FLOAT32: Final = np.dtype(np.float32)
FLOAT64: Final = np.dtype(np.float64)
INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)

#: Added to an integer of less than 2**51, this leaves it in the lowest bits of a float64.
SHIFTER: Final = 1.5 * 2.0**52
#: The smallest float32, the unit of subnormal ones.
SMALLEST: Final = 2.0**-149
#: Stands for infinity where the formula would have the difference or quotient of two.
HUGE: Final = 1e300

#: The product of a smaller integer and a float32 is exact.
EXACT_QUOTIENT: Final = 2.0**28

#: The bits of 2**52: with others in the mantissa it is the float64 that counts them.
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
#: As many of these products can be 4 or more.
LARGE_PARTS: Final = 5

#: What the bits of sqrt(1/2) lack of those of 1.
TO_ONE: Final = int(np.float64(1).view(np.int64) - np.float64(0.5**0.5).view(np.int64))
#: Exponents of results beyond those of float32.
BEYOND: Final = 200.0

# In the squares of the argument: sin(pi / 2 r) / r and cos(pi / 2 r) for r**2 up to 1/4;
# atan(t) / t for t**2 up to 1.
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


def _elementwise(primitive: str) -> Callable[[Formula], Formula]:
    """Make a formula for float32 the rule of a primitive, for narrower floats too."""

    def register(formula: Formula) -> Formula:
        @TABLE.rule(primitive)
        def lower(context: Any, *values: Any, accuracy: Any = None) -> Any:
            (out,) = context.avals_out
            if (
                out.size < MANY
                or out.dtype.name not in NAMES
                or any(aval.dtype != out.dtype for aval in context.avals_in)
                or not (accuracy is None or getattr(accuracy, "name", "") == "DEFAULT")
            ):
                return NotImplemented

            def body(*arguments: Any) -> Any:
                operands = [Term(context, value, out).to(FLOAT32) for value in arguments]
                return formula(*operands).to(out.dtype).value

            # Fused with what uses it, it would be computed anew for each use, in chains of such
            # functions very often.
            (result,) = context.outlined(
                body, context.broadcast_operands(values, out), [out], primitive, cache_key=primitive
            )
            return result

        return formula

    return register


def _size(x: Term) -> Term:
    """The absolute value of a float32 in float64, of subnormal numbers too."""
    bits = x.bits(INT32) & 0x7FFFFFFF
    return x.equals(0.0).choose(bits.to(FLOAT64) * SMALLEST, abs(x).to(FLOAT64))


def _single(size: Term, sign: Term) -> Term:
    """A positive float64 as a float32, with a sign bit (of an int32 with that bit alone)."""
    normal = size.to(FLOAT32).bits(INT32)
    small = (size * (1 / SMALLEST) + SHIFTER).bits(INT64).to(INT32)
    bits = (size < float(np.finfo(FLOAT32).smallest_normal)).choose(small, normal)
    return (bits | sign).bits(FLOAT32)


def _sign(x: Term) -> Term:
    return x.bits(INT32) & -0x80000000


def _identity_at_zero(x: Term, result: Term) -> Term:
    """The float32 result of a function, `x` itself where the processor takes it for zero."""
    return x.equals(0.0).choose(x, result.to(FLOAT32))


def _sine_and_cosine(x: Term) -> tuple[Term, Term, Term]:
    """sin and cos of pi / 2 r, and an int64 n, where n + r = 2 / pi x modulo 4, abs(r) <= 1/2.

    Multiples of 4 are taken from each product before anything is rounded. The nearest integer is
    subtracted from the largest part first: the sum then keeps its digits where it is small.
    """
    wide = x.to(FLOAT64)
    parts = [wide * part for part in TWO_OVER_PI]
    for i, part in enumerate(parts[:LARGE_PARTS]):
        parts[i] = part - (part * 0.25).rounded() * 4.0
    total = parts[0]
    for part in parts[1:LARGE_PARTS]:
        total = total + part
    nearest = total.rounded()
    rest = parts[0] - nearest
    for part in parts[1:]:
        rest = rest + part
    square = rest * rest
    quadrant = (nearest + SHIFTER).bits(INT64)
    return rest * square.polynomial(SINE), square.polynomial(COSINE), quadrant


def _wave(x: Term, quarters: int) -> Term:
    """The sine of x + quarters * pi / 2."""
    sine, cosine, quadrant = _sine_and_cosine(x)
    if quarters:
        quadrant = quadrant + quarters
    found = (quadrant & 1).equals(0).choose(sine, cosine)
    return (found.bits(INT64) ^ ((quadrant & 2) << 62)).bits(FLOAT64)


@_elementwise("sin")
def _sin(x: Term) -> Term:
    """The sine."""
    return _identity_at_zero(x, _wave(x, 0))


@_elementwise("cos")
def _cos(x: Term) -> Term:
    """The cosine."""
    return _wave(x, 1).to(FLOAT32)


@_elementwise("tan")
def _tan(x: Term) -> Term:
    """The tangent."""
    sine, cosine, quadrant = _sine_and_cosine(x)
    even = (quadrant & 1).equals(0)
    return _identity_at_zero(x, even.choose(sine, -cosine) / even.choose(cosine, sine))


def _angle(y: Term, x: Term) -> Term:
    """The angle from 0 to pi / 2 of a point with finite coordinates >= 0, of which one is not 0."""
    # A division with several uses would get a loop of its own, so this one has a single use.
    quotient = y.at_most(x) * (1.0 / x.at_least(y))
    angle = quotient * (quotient * quotient).polynomial(ARC_TANGENT)
    return (y > x).choose(math.pi / 2 - angle, angle)


@_elementwise("atan2")
def _atan2(y: Term, x: Term) -> Term:
    """The angle of a point."""
    height, width = (_size(v).at_most(HUGE) for v in (y, x))
    angle = _angle(height, width.at_least(1 / HUGE))
    # The sign of zeros counts as well.
    left = x.bits(INT32) < 0
    return _single(left.choose(math.pi - angle, angle), _sign(y))


@_elementwise("atan")
def _atan(x: Term) -> Term:
    """The inverse of the tangent."""
    angle = _angle(abs(x).to(FLOAT64).at_most(HUGE), x.to(FLOAT64).constant(1.0))
    return _identity_at_zero(x, _with_sign(angle, x))


def _with_sign(size: Term, x: Term) -> Term:
    return (x < 0.0).choose(-size, size)


@_elementwise("asin")
def _asin(x: Term) -> Term:
    """The inverse of the sine."""
    return _identity_at_zero(x, _with_sign(_arc_sine(abs(x).to(FLOAT64)), x))


@_elementwise("acos")
def _acos(x: Term) -> Term:
    """The inverse of the cosine."""
    angle = math.pi / 2 - _with_sign(_arc_sine(abs(x).to(FLOAT64)), x)
    return angle.to(FLOAT32)


def _arc_sine(y: Term) -> Term:
    """The angle of the point (sqrt(1 - y**2), y) with y >= 0."""
    rise, run = y * y, (1.0 - y) * (y + 1.0)
    square = rise.at_most(run) * (1.0 / run.at_least(rise))
    angle = square.op("sqrt") * square.polynomial(ARC_TANGENT)
    return (rise > run).choose(math.pi / 2 - angle, angle)


@_elementwise("cbrt")
def _cbrt(x: Term) -> Term:
    """The cube root, as x r**2 with the inverse root r.

    The first r is made by dividing the bits by -3, as if they were a logarithm: it is exact to 4 %.
    With h = 1 - x r**3 the exact one is r (1 - h)**(-1/3), of which two terms are taken, twice.
    """
    size = _size(x)
    counted = ((size.bits(INT64) >> 12) | COUNTER).bits(FLOAT64)
    root = ((counted * (-1 / 3) + ROOT_START).bits(INT64) << 12).bits(FLOAT64)
    for _ in range(2):
        rest = 1.0 - size * root * root * root
        root = root + root * rest * rest.polynomial((1 / 3, 2 / 9))
    # Infinities and NaN are their own roots.
    found = (size < math.inf).choose(size * root * root, size)
    return (found.to(FLOAT32).bits(INT32) | _sign(x)).bits(FLOAT32)


@_elementwise("rem")
def _rem(x: Term, y: Term) -> Term:
    """The remainder, exactly: if no quotient is too large, from the quotients.

    A quotient that was rounded to an integer above it makes the rest negative, and one rounded from
    it to below leaves the divisor.
    """
    context = x.context
    size, divisor = _size(x), _size(y)
    quotient = size / divisor
    large = (quotient > EXACT_QUOTIENT) & (quotient < math.inf)
    truth, falsehood = context.scalar(large.aval), context.constant(False)
    (some,) = context.reduce(
        [large.value],
        [falsehood],
        range(len(large.aval.shape)),
        [truth],
        lambda a, b: context.op("or", [a, b], truth),
    )

    def from_quotients() -> Any:
        rest = size - quotient.op("floor") * divisor
        rest = (rest < 0.0).choose(rest + divisor, rest)
        rest = (rest < divisor).choose(rest, rest - divisor)
        return (size < divisor).choose(size, rest).value

    def by_the_library() -> Any:
        return size.op("remainder", divisor).value

    (found,) = context.case(
        context.convert(some, truth, ShapedArray((), INT32)),
        [from_quotients, by_the_library],
        [size.aval],
    )
    return _single(Term(context, found, size.aval), _sign(x))


@_elementwise("pow")
def _pow(x: Term, y: Term) -> Term:
    """The power, with the special cases of IEEE 754."""
    size, exponent = _size(x), _size(y)
    logarithm = (size < HUGE).choose(_log2(size), size.constant(HUGE))
    logarithm = size.equals(0.0).choose(size.constant(-HUGE), logarithm)
    product = logarithm * (y.bits(INT32) < 0).choose(-exponent, exponent)
    power = _exp2(product.at_most(BEYOND).at_least(-BEYOND))
    half, integer = exponent * 0.5, exponent.equals(exponent.op("floor"))
    even, none = half.equals(half.op("floor")), _sign(x) & 0
    result = _single(power, integer.choose(even.choose(none, _sign(x)), none))
    real = integer | (x.bits(INT32) > -1) | size.equals(0.0) | size.equals(math.inf)
    number = x.equals(x) & y.equals(y) & real
    one = exponent.equals(0.0) | x.equals(1.0) | (size.equals(1.0) & exponent.equals(math.inf))
    return one.choose(x.constant(1.0), number.choose(result, x.constant(math.nan)))


def _log2(size: Term) -> Term:
    """n + log2(m) of a positive number, which is 2**n m with m from sqrt(1/2) to sqrt(2)."""
    bits = size.bits(INT64)
    biased = (bits + TO_ONE) >> 52
    mantissa = (bits - (biased << 52) + (1023 << 52)).bits(FLOAT64)
    count = (biased | COUNTER).bits(FLOAT64) - (2.0**52 + 1023)
    quotient = (mantissa - 1.0) * (1.0 / (mantissa + 1.0))
    return count + quotient * (quotient * quotient).polynomial(LOGARITHM)


def _exp2(x: Term) -> Term:
    """Two to the power of a number, where the result is a normal one."""
    nearest = x.rounded()
    scale = (nearest + SHIFTER).bits(INT64) << 52
    return ((x - nearest).polynomial(POWER).bits(INT64) + scale).bits(FLOAT64)
