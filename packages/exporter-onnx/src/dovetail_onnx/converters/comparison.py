"""Comparisons, logic, and choices between values."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import is_negative, named
from dovetail_onnx.graph import Value
from dovetail_onnx.types import BOOL, I64, is_float

table = LoweringTable()

for _primitive, _operator in {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}.items():
    table.rule(_primitive)(named(_operator))


@table.rule("ne")
def ne(c: Context, x: Value, y: Value) -> Value:
    """Whether numbers differ."""
    return c.op("Not", c.op("Equal", x, y))


def _less(c: Context, x: Value, y: Value) -> Value:
    """Whether a number comes first where -0.0 is below 0.0, and NaN above everything else."""
    if not is_float(x.dtype):
        return c.op("Less", x, y)
    zeros = c.op("And", c.op("Equal", x, 0), c.op("Equal", y, 0))
    below = c.op("And", is_negative(c, x), c.op("Not", is_negative(c, y)))
    less = c.op("Or", c.op("Less", x, y), c.op("And", zeros, below))
    return c.op("Or", less, c.op("And", c.op("Not", c.op("IsNaN", x)), c.op("IsNaN", y)))


table.rule("lt_to")(_less)


@table.rule("le_to")
def le_to(c: Context, x: Value, y: Value) -> Value:
    """Whether a number does not come after another one; the order is that of ``lt_to``."""
    return c.op("Not", _less(c, y, x))


@table.rule("eq_to")
def eq_to(c: Context, x: Value, y: Value) -> Value:
    """Whether neither of two numbers comes first; the order is that of ``lt_to``."""
    return c.op("Not", c.op("Or", _less(c, x, y), _less(c, y, x)))


def _logic(truth: str, bits: str) -> Callable[..., Value]:
    def convert(c: Context, *operands: Value) -> Value:
        return c.op(truth if operands[0].dtype == BOOL else bits, *operands)

    return convert


table.rule("and")(_logic("And", "BitwiseAnd"))
table.rule("or")(_logic("Or", "BitwiseOr"))
table.rule("xor")(_logic("Xor", "BitwiseXor"))
table.rule("not")(_logic("Not", "BitwiseNot"))


@table.rule("select_n")
def select_n(c: Context, which: Value, *cases: Value) -> Value:
    """One of several values, by a truth value or a number."""
    if which.dtype == BOOL:
        return c.op("Where", which, cases[-1], cases[0])
    which = c.graph.cast(which, I64)
    result = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        result = c.op("Where", c.op("LessOrEqual", which, number), cases[number], result)
    return result
