"""The error function by a kernel, and its complement of float32, with an exponential of its own.

XLA's exponential also treats numbers that cannot occur here, and its polynomial is a chain.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import Expression
from dovetail_cpu.lowerings.elementary import (
    FLOAT32,
    INT32,
    MANY,
    NAMES,
    by_kernel,
    constant_product,
)

TABLE: Final = LoweringTable()

#: Beyond, the result is no normal float32.
LIMIT: Final = 9.3
#: Below, 1 - erf(x) is as accurate.
NEAR: Final = 0.5
#: Where u of the expansion is 0.
CENTER: Final = 2.0
#: The leading digits of log(2), and the rest.
LOG2_HIGH: Final = 0.693359375
LOG2_LOW: Final = math.log(2) - LOG2_HIGH

# By Chebyshev interpolation, computed with 60 digits: erf(x) / x in x**2; exp(x**2) erfc(x) / (1 -
# u) in u = (x - 2) / (x + 2) for x from 0.5 to 9.35; (exp(r) - 1 - r) / r**2.
SERIES_NEAR: Final = (1.12837917, -0.37612609, 0.112828314, -0.0267577327, 0.00471908257)
SERIES_FAR: Final = (
    0.25539567682355147,
    -0.17179016774079775,
    0.06986795731253324,
    -0.009110702620983414,
    -0.005376297438790958,
    0.001621469961096964,
    0.0007625553513301078,
    -0.00021676869179135404,
    -0.00013460399949642135,
    2.1896677041797854e-05,
)
EXPONENTIAL: Final = (
    0.500000002385121,
    0.16666666693156343,
    0.041666371295781254,
    0.008333300528261051,
    0.0013943056064750444,
    0.00019901435710577845,
)


@TABLE.rule("erf")
def erf(context: Any, x: Any) -> Any:
    """The error function, if a kernel can look numbers up in vectors."""
    if context.avals_out[0].size < MANY:
        return NotImplemented
    return by_kernel(context, "erf", [x])


@TABLE.rule("erf_inv_fast")
def erf_inv_fast(context: Any, x: Any) -> Any:
    """The inverse of the error function, of many numbers, if there is a kernel.

    What is divided over devices each of them is to make for itself.
    """
    if context.avals_out[0].size < MANY or context.divides:
        return NotImplemented
    # What was computed for it is written over: fresh memory takes longer.
    return by_kernel(
        context, "erf_inv_fast", [x], aliases={0: 0} if hasattr(x.owner, "name") else {}
    )


@TABLE.rule("erf_inv")
def erf_inv(context: Any, x: Any) -> Any:
    """The same of float32, where nothing is fused with it: no loop is compiled."""
    (out,) = context.avals_out
    if out.size < MANY or out.dtype != FLOAT32 or not context.stands_alone():
        return NotImplemented
    return by_kernel(context, "erf_inv_fast", [x])


@TABLE.rule("erfc")
def erfc(context: Any, x: Any, *, accuracy: Any = None) -> Any:
    """One minus the error function, of many numbers."""
    (out,) = context.avals_out
    default = accuracy is None or getattr(accuracy, "name", "") == "DEFAULT"
    if out.size < MANY or dtype_name(out.dtype) not in NAMES or not default:
        return NotImplemented
    number, factor = constant_product(x) if out.dtype == FLOAT32 else (x, 1.0)
    called = by_kernel(context, "erfc", [number], scale=np.float32(factor))
    if called is not NotImplemented:
        return called
    return _erfc(Expression(context, x, out).convert(FLOAT32)).convert(out.dtype).value


def _erfc(x: Expression) -> Expression:
    """exp(-a**2) times a smooth function of a = abs(x), reflected; near zero, 1 - erf(x).

    The rounding error of a**2 would be multiplied by a**2. So `a` is split into a number h with
    half of its digits, whose square is exact, and a small rest: a**2 = h**2 - (h - a) (h + a).
    """
    size = abs(x)
    a = size.constant(LIMIT).where(size > LIMIT, size)
    # XLA takes (a + 2) - 2 for a; it does not look through this choice, which changes nothing.
    total = a + CENTER
    total = total.where(total > CENTER, total.constant(CENTER))
    # A division with several uses would get its own loop; 1 - u is the quotient again.
    u = 1.0 - 2 * CENTER / total
    quotient = 1.0 - u
    # What rounding took from the numerator; the result changes 1.1 to 2.1 times as much.
    lost = (2 * CENTER - quotient * total) - quotient * (a - (total - CENTER))
    series = u.polynomial(SERIES_FAR) * quotient
    h = ((a.bits(INT32) + 0x800) & -0x1000).bits(FLOAT32)
    square = h * h
    count = (square * (-1 / math.log(2))).nearest()
    rest = ((h - a) * (h + a) - count * LOG2_LOW) - (count * LOG2_HIGH + square)
    change = (rest + lost * (0.75 / CENTER)) + rest * rest * rest.polynomial(EXPONENTIAL)
    # Last comes the power of two, so that no step is subnormal.
    scale = ((count.convert(INT32) + 127) << 23).bits(FLOAT32)
    far = (series + series * change) * scale
    far = (2.0 - far).where(x < 0.0, far)
    # erf(x) / x is little above 1: what is rounded is small.
    near = 0.5 + ((0.5 - x) - x * (x * x).polynomial((SERIES_NEAR[0] - 1, *SERIES_NEAR[1:])))
    return near.where(size < NEAR, far)
