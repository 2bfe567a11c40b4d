"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, is_negative, named, nan, where
from dovetail_onnx.graph import Value

table = LoweringTable()

for _name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh"):
    table.rule(_name)(named(_name.capitalize()))
table.rule("atanh")(named("Atanh"))


@table.rule("atan2")
@in_wide
def atan2(c: Context, y: Value, x: Value, **params: Any) -> Value:
    """The angle of the point ``(x, y)``, with signed zeros and infinities."""
    height, width = c.op("Abs", y), c.op("Abs", x)
    steep = c.op("Greater", height, width)
    ratio = c.op("Div", c.op("Min", height, width), c.op("Max", height, width))
    ratio = where(c, c.op("Equal", height, width), 1, ratio, x)
    ratio = where(c, c.op("Equal", height, 0), 0, ratio, x)
    angle = c.op("Atan", ratio)
    angle = where(c, steep, c.op("Sub", np.array(np.pi / 2, x.dtype), angle), angle, x)
    left = c.op("Sub", np.array(np.pi, x.dtype), angle)
    angle = where(c, is_negative(c, x), left, angle, x)
    angle = where(c, is_negative(c, y), c.op("Neg", angle), angle, x)
    unknown = c.op("Or", c.op("IsNaN", x), c.op("IsNaN", y))
    return where(c, unknown, nan(x), angle, x)
