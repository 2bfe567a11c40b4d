"""What several families of converters are written with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Graph, Operand, Value
from dovetail_onnx.types import BOOL, F32, is_narrow

__all__ = [
    "in_wide",
    "is_negative",
    "lowest",
    "named",
    "nan",
    "where",
]

Converter: TypeAlias = Callable[..., Value]


def where(c: Context | Graph, condition: Value, x: Operand, y: Operand, like: Value) -> Value:
    """`x` where a condition holds, `y` elsewhere; numbers have the element type of `like`."""
    graph = c.graph if isinstance(c, Context) else c
    return graph.op("Where", condition, graph.value(x, like), graph.value(y, like))


def named(operator: str) -> Converter:
    """A converter that applies one operator."""

    def convert(c: Context, *operands: Value, **params: Any) -> Value:
        return c.op(operator, *operands)

    return convert


def in_wide(formula: Converter) -> Converter:
    """A converter that computes a formula in 32 bits where the operands have fewer."""

    @functools.wraps(formula)
    def convert(c: Context, *operands: Value, **params: Any) -> Value:
        if not is_narrow(operands[0].dtype):
            return formula(c, *operands, **params)
        wide = [c.graph.cast(x, F32) if is_narrow(x.dtype) else x for x in operands]
        return c.graph.cast(formula(c, *wide, **params), operands[0].dtype)

    return convert


def is_negative(c: Context, x: Value) -> Value:
    """Whether the sign of a number is set, that of a zero too."""
    below = c.op("Less", x, 0)
    zero = c.op("Equal", x, 0)
    return c.op("Or", below, c.op("And", zero, c.op("Less", c.op("Div", 1, x), 0)))


def nan(x: Value) -> np.ndarray[Any, Any]:
    """Not a number, in the element type of a value."""
    return np.array(np.nan).astype(x.dtype)


def lowest(dtype: np.dtype[Any], highest: bool = False) -> np.ndarray[Any, Any]:
    """The lowest value of a dtype, minus infinity if it has one; or the highest one."""
    if dtype == BOOL:
        return np.array(highest)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(info.max if highest else info.min, dtype)
    return np.array(np.inf if highest else -np.inf).astype(dtype)
