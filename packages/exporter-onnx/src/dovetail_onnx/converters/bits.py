"""The bits of integers: shifts and counts."""

from __future__ import annotations

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import where
from dovetail_onnx.graph import Graph, Value

table = LoweringTable()


def unsigned(graph: Graph, x: Value) -> Value:
    """The same bits, as a number without a sign."""
    return graph.cast(x, np.dtype(f"uint{8 * x.dtype.itemsize}"))


def shifted(graph: Graph, x: Value, by: Value, direction: str) -> Value:
    """Bits without a sign, moved; zero if they are moved by as many as there are, or more."""
    bits = 8 * x.dtype.itemsize
    if by.known is not None and (by.known < bits).all():
        return graph.op("BitShift", x, by, direction=direction)
    inside = graph.op("Less", by, bits)
    moved = graph.op("BitShift", x, graph.op("Min", by, bits - 1), direction=direction)
    return where(graph, inside, moved, 0, x)


@table.rule("shift_left")
def shift_left(c: Context, x: Value, by: Value) -> Value:
    """Bits moved to the left."""
    g = c.graph
    return g.cast(shifted(g, unsigned(g, x), _amount(g, by), "LEFT"), x.dtype)


@table.rule("shift_right_logical")
def shift_right_logical(c: Context, x: Value, by: Value) -> Value:
    """Bits moved to the right, with zeros before them."""
    g = c.graph
    return g.cast(shifted(g, unsigned(g, x), _amount(g, by), "RIGHT"), x.dtype)


@table.rule("shift_right_arithmetic")
def shift_right_arithmetic(c: Context, x: Value, by: Value) -> Value:
    """Bits moved to the right, with copies of the first one before them."""
    g = c.graph
    if x.dtype.kind == "u":
        raw = g.cast(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    else:
        raw = x
    negative = c.op("Less", raw, 0)
    flip = where(c, negative, -1, 0, raw)
    flipped = unsigned(g, c.op("BitwiseXor", raw, flip))
    moved = g.cast(shifted(g, flipped, _amount(g, by), "RIGHT"), raw.dtype)
    return g.cast(c.op("BitwiseXor", moved, flip), x.dtype)


def _amount(graph: Graph, by: Value) -> Value:
    """By how many bits to move; a negative number counts as a large one."""
    if by.known is not None:
        return graph.constant(by.known.astype(f"uint{8 * by.dtype.itemsize}"))
    return unsigned(graph, by)


@table.rule("population_count")
def population_count(c: Context, x: Value) -> Value:
    """How many bits are set."""
    g = c.graph
    return g.cast(_count(g, unsigned(g, x)), x.dtype)


def _count(g: Graph, x: Value) -> Value:
    """How many bits are set, by adding up neighbours."""
    bits = 8 * x.dtype.itemsize
    width = 1
    while width < bits:
        pattern = sum(((1 << width) - 1) << at for at in range(0, bits, 2 * width))
        mask = g.constant(np.array(pattern, x.dtype))
        upper = g.op("BitShift", x, g.constant(np.array(width, x.dtype)), direction="RIGHT")
        x = g.op("Add", g.op("BitwiseAnd", x, mask), g.op("BitwiseAnd", upper, mask))
        width *= 2
    return x


@table.rule("clz")
def clz(c: Context, x: Value) -> Value:
    """How many zeros stand before the first bit that is set."""
    g = c.graph
    filled = unsigned(g, x)
    bits = 8 * x.dtype.itemsize
    width = 1
    while width < bits:
        by = g.constant(np.array(width, filled.dtype))
        filled = g.op("BitwiseOr", filled, g.op("BitShift", filled, by, direction="RIGHT"))
        width *= 2
    return g.cast(_count(g, g.op("BitwiseNot", filled)), x.dtype)
