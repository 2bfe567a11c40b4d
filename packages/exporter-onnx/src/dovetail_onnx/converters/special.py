"""The error function and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, named, where
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Operand, Value
from dovetail_onnx.types import F64

table = LoweringTable()

table.rule("erf")(named("Erf"))

_CENTRE: Final = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_TAIL: Final = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)
_COMPLEMENT: Final = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807),
    *(-0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223),
)


def _polynomial(c: Context, x: Value, coefficients: Sequence[Operand]) -> Value:
    """A polynomial, by its coefficients from the highest power on."""
    result = c.op("Add", c.op("Mul", x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        result = c.op("Add", c.op("Mul", result, x), coefficient)
    return result


@table.rule("erfc")
@in_wide
def erfc(c: Context, x: Value, **params: Any) -> Value:
    """One minus the error function, whose relative error is 2e-7 however small it is.

    Source: a Chebyshev fit, in W. Press et al., Numerical Recipes, 2nd edition, 6.2.
    """
    if x.dtype == F64:
        raise Refusal("ONNX has no complementary error function: compute it in 32 bits")
    size = c.op("Abs", x)
    t = c.op("Div", 1, c.op("Add", c.op("Mul", size, 0.5), 1))
    exponent = c.op("Sub", _polynomial(c, t, _COMPLEMENT), c.op("Mul", x, x))
    right = c.op("Mul", t, c.op("Exp", exponent))
    return where(c, c.op("Less", x, 0), c.op("Sub", 2, right), right, x)


@table.rule("erf_inv")
@in_wide
def erf_inv(c: Context, x: Value, **params: Any) -> Value:
    """The inverse of the error function, to 32 bits.

    Source: M. Giles, Approximating the erfinv function, GPU Computing Gems, Jade edition, 2011.
    """
    if x.dtype == F64:
        raise Refusal("ONNX has no inverse of the error function: compute it in 32 bits")
    logarithm = c.op("Neg", c.op("Log", c.op("Mul", c.op("Sub", 1, x), c.op("Add", 1, x))))
    centre = _polynomial(c, c.op("Sub", logarithm, 2.5), _CENTRE)
    tail = _polynomial(c, c.op("Sub", c.op("Sqrt", logarithm), 3), _TAIL)
    factor = where(c, c.op("Less", logarithm, 5), centre, tail, x)
    end = c.op("Equal", c.op("Abs", x), 1)
    return c.op("Mul", where(c, end, np.array(np.inf, x.dtype), factor, x), x)


table.rule("erf_inv_fast")(erf_inv)


@table.rule("polynomial")
@in_wide
def polynomial(c: Context, x: Value, *coefficients: Value, **params: Any) -> Value:
    """A polynomial, by its coefficients from the lowest power on."""
    if len(coefficients) == 1:
        shape = np.broadcast_shapes(x.shape, coefficients[0].shape)
        return c.graph.expand(coefficients[0], shape)
    return _polynomial(c, x, coefficients[::-1])
