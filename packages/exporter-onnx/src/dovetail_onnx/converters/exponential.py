"""Exponential functions, logarithms, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, named, where
from dovetail_onnx.graph import Value

table = LoweringTable()

for _primitive, _operator in {"exp": "Exp", "log": "Log", "logistic": "Sigmoid"}.items():
    table.rule(_primitive)(named(_operator))


@table.rule("exp2")
@in_wide
def exp2(c: Context, x: Value, **params: Any) -> Value:
    """Two to a power."""
    return c.op("Pow", 2, x)


@table.rule("log2")
@in_wide
def log2(c: Context, x: Value, **params: Any) -> Value:
    """The logarithm to the base 2."""
    return c.op("Div", c.op("Log", x), float(np.log(2)))


@table.rule("expm1")
@in_wide
def expm1(c: Context, x: Value, **params: Any) -> Value:
    """``exp(x) - 1``, accurate near zero.

    Source: W. Kahan's method, in N. Higham, Accuracy and Stability of Numerical Algorithms, 1.14.
    """
    y = c.op("Exp", x)
    less = c.op("Sub", y, 1)
    mended = c.op("Div", c.op("Mul", less, x), c.op("Log", y))
    plain = c.op("Or", c.op("Equal", less, -1), c.op("IsInf", y))
    far = where(c, plain, less, mended, x)
    return where(c, c.op("Equal", y, 1), x, far, x)


@table.rule("log1p")
@in_wide
def log1p(c: Context, x: Value, **params: Any) -> Value:
    """``log(1 + x)``, accurate near zero.

    Source: as of `expm1`.
    """
    y = c.op("Add", x, 1)
    more = c.op("Sub", y, 1)
    logarithm = c.op("Log", y)
    mended = c.op("Div", c.op("Mul", logarithm, x), more)
    far = where(c, c.op("IsInf", y), logarithm, mended, x)
    return where(c, c.op("Equal", y, 1), x, far, x)


table.rule("tanh")(named("Tanh"))
