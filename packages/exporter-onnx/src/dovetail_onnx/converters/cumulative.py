"""Cumulative sums and their relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, lowest, where
from dovetail_onnx.graph import Value

table = LoweringTable()


@table.rule("cumsum")
def cumsum(c: Context, x: Value, *, axis: int, reverse: bool) -> Value:
    """Sums of all elements up to each."""
    if not x.shape[axis]:
        return x
    return c.op("CumSum", x, c.graph.constant(np.int64(axis)), shape=x.shape, reverse=int(reverse))


def _scanned(
    c: Context,
    values: list[Value],
    neutral: list[Any],
    axis: int,
    reverse: bool,
    combine: Callable[[list[Value], list[Value]], list[Value]],
) -> list[Value]:
    """All elements up to each combined, in as many steps as the size has bits."""
    g = c.graph
    size, distance = values[0].shape[axis], 1

    def moved(x: Value, fill: Any) -> Value:
        starts, limits = [0] * x.rank, list(x.shape)
        low, high = [0] * x.rank, [0] * x.rank
        if reverse:
            starts[axis], high[axis] = distance, distance
        else:
            limits[axis], low[axis] = size - distance, distance
        return g.pad(g.slice(x, starts, limits), low, high, fill)

    while distance < size:
        before = [moved(x, fill) for x, fill in zip(values, neutral, strict=True)]
        values = combine(before, values)
        distance *= 2
    return values


def _cumulative(operator: str, neutral: Callable[[np.dtype[Any]], Any]) -> Callable[..., Value]:
    @in_wide
    def convert(c: Context, x: Value, *, axis: int, reverse: bool) -> Value:
        def combine(before: list[Value], now: list[Value]) -> list[Value]:
            return [c.op(operator, before[0], now[0])]

        return _scanned(c, [x], [neutral(x.dtype)], axis, reverse, combine)[0]

    return convert


table.rule("cumprod")(_cumulative("Mul", lambda dtype: 1))
table.rule("cummax")(_cumulative("Max", lowest))
table.rule("cummin")(_cumulative("Min", lambda dtype: lowest(dtype, True)))


@table.rule("cumlogsumexp")
@in_wide
def cumlogsumexp(c: Context, x: Value, *, axis: int, reverse: bool) -> Value:
    """Logarithms of sums of exponentials of all elements up to each."""

    def combine(before: list[Value], now: list[Value]) -> list[Value]:
        (x,), (y,) = before, now
        high, low = c.op("Max", x, y), c.op("Min", x, y)
        same = c.op("Equal", x, y)
        less = c.op("Exp", where(c, same, 0, c.op("Sub", low, high), x))
        return [c.op("Add", high, c.op("Log", c.op("Add", less, 1)))]

    return _scanned(c, [x], [lowest(x.dtype)], axis, reverse, combine)[0]


@table.rule("linear_recurrence")
@in_wide
def linear_recurrence(c: Context, a: Value, b: Value, *, axis: int, reverse: bool) -> Value:
    """The sequence of which each element is a multiple of the one before it, plus a number."""

    def combine(before: list[Value], now: list[Value]) -> list[Value]:
        (a, b), (p, q) = before, now
        return [c.op("Mul", a, p), c.op("Add", c.op("Mul", p, b), q)]

    return _scanned(c, [a, b], [1, 0], axis, reverse, combine)[1]
