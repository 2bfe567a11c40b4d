"""Reductions over windows: pooling, and its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from dovetail.extend import ClosedJaxpr, LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, lowest, where
from dovetail_onnx.converters.slicing import padded
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import BOOL, I64, is_float

table = LoweringTable()

Combine: TypeAlias = Callable[[list[Value], list[Value]], list[Value]]

_MOST_POSITIONS: Final = 256
"""Positions in a window beyond which a selection is not written out."""


def windows(
    c: Context,
    values: list[Value],
    fills: list[Value],
    combine: Combine,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> list[Value]:
    """Reductions over windows, one dimension after the other.

    Along a dimension, windows of one, two, four ... elements are combined to what is needed: as
    many operators as the size of the window has bits. Unlike `MaxPool` this has all element types,
    and NaN.

    Args:
        c: the context.
        values: arrays of one shape.
        fills: what the borders are filled with.
        combine: combines two lists of arrays.
        window_dimensions: sizes of windows.
        window_strides: steps from window to window.
        padding: sizes of the border.
        base_dilation: steps between elements of the arrays.
        window_dilation: steps between elements of windows.
    """
    g = c.graph
    config = [(a, b, n - 1) for (a, b), n in zip(padding, base_dilation, strict=True)]
    values = [padded(g, x, fill, config) for x, fill in zip(values, fills, strict=True)]
    if not all(c.shape):
        return [g.expand(fill, c.shape) for fill in fills]
    # The last dimension first, so that elements stay in their order.
    for d in reversed(range(len(window_dimensions))):
        size, step = window_dimensions[d], window_dilation[d]
        values = _along(g, values, d, size, step, combine)
        stride, count = window_strides[d], c.shape[d]
        values = [g.part(x, d, 0, (count - 1) * stride + 1, stride) for x in values]
    return values


def _along(
    g: Graph, values: list[Value], dim: int, size: int, step: int, combine: Combine
) -> list[Value]:
    """Windows along one dimension, at every position at which one fits."""
    count = values[0].shape[dim] - (size - 1) * step
    result: list[Value] | None = None
    done, width = 0, 1
    while True:
        if size & width:
            pieces = [g.part(x, dim, done * step, done * step + count) for x in values]
            result = pieces if result is None else combine(result, pieces)
            done += width
        if done == size:
            assert result is not None
            return result
        length = values[0].shape[dim] - width * step
        values = combine(
            [g.part(x, dim, 0, length) for x in values],
            [g.part(x, dim, width * step, width * step + length) for x in values],
        )
        width *= 2


def _window(operator: str, neutral: Callable[[np.dtype[Any]], Any]) -> Callable[..., Value]:
    @in_wide
    def convert(c: Context, x: Value, **params: Any) -> Value:
        fill = c.graph.constant(np.asarray(neutral(x.dtype)).astype(x.dtype))

        def combine(left: list[Value], right: list[Value]) -> list[Value]:
            return [c.op(operator, left[0], right[0])]

        return windows(c, [x], [fill], combine, **params)[0]

    return convert


table.rule("reduce_window_sum")(_window("Add", lambda dtype: 0))
table.rule("reduce_window_max")(_window("Max", lowest))
table.rule("reduce_window_min")(_window("Min", lambda dtype: lowest(dtype, True)))


@table.rule("reduce_window")
def reduce_window(
    c: Context, *operands: Value, jaxpr: Any, consts: Sequence[Any], **params: Any
) -> list[Value]:
    """A reduction over windows by any function; borders are left out, as nothing may be neutral."""
    g = c.graph
    count = len(operands) // 2
    values, initial = list(operands[:count]), list(operands[count:])
    combine = by_function(c, jaxpr, consts)

    def combine_present(left: list[Value], right: list[Value]) -> list[Value]:
        *xs, x_there = left
        *ys, y_there = right
        found = []
        for x, y, both in zip(xs, ys, combine(xs, ys), strict=True):
            either = g.op("Where", x_there, x, y)
            found.append(g.op("Where", g.op("And", x_there, y_there), both, either))
        return [*found, g.op("Or", x_there, y_there)]

    there, nothing = g.expand(True, values[0].shape, BOOL), g.constant(np.array(False))
    *found, some = windows(c, [*values, there], [*initial, nothing], combine_present, **params)
    whole = combine(initial, found)
    return [g.op("Where", some, x, start) for x, start in zip(whole, initial, strict=True)]


def by_function(c: Context, jaxpr: Any, consts: Sequence[Any] = ()) -> Combine:
    """What combines arrays by a function of numbers."""
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, consts)
    return lambda left, right: c.each(closed, [*left, *right])


@table.rule("reduce")
def reduce(
    c: Context, *operands: Value, jaxpr: Any, dimensions: Sequence[int], **params: Any
) -> list[Value]:
    """A reduction by any function, of neighbours, so that elements stay in their order."""
    g = c.graph
    count = len(operands) // 2
    values, initial = list(operands[:count]), list(operands[count:])
    combine = by_function(c, jaxpr)
    if not all(values[0].shape[d] for d in dimensions):
        return [g.expand(x, c.shape) for x in initial]
    for d in sorted(dimensions, reverse=True):
        while (size := values[0].shape[d]) > 1:
            even = size // 2 * 2
            pairs = combine(
                [g.part(x, d, 0, even, 2) for x in values],
                [g.part(x, d, 1, even, 2) for x in values],
            )
            rest = [g.part(x, d, even, size) for x in values]
            joined = [g.concat([p, r], d) for p, r in zip(pairs, rest, strict=True)]
            values = joined if size % 2 else pairs
    return combine(initial, [g.squeeze(x, dimensions) for x in values])


@table.rule("select_and_scatter_add")
def select_and_scatter_add(
    c: Context,
    source: Value,
    x: Value,
    *,
    select_prim: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Value:
    """Numbers added where the extrema of windows are: the derivative of a pooling."""
    g = c.graph
    if prod(window_dimensions) > _MOST_POSITIONS:
        raise Refusal(f"a window of {prod(window_dimensions)} elements has no such derivative")
    if not all(source.shape):
        return g.expand(0, c.shape, c.dtype)
    highest = select_prim.name == "ge"
    compare = "GreaterOrEqual" if highest else "LessOrEqual"
    borders = [(a, b, 0) for a, b in padding]
    wide = padded(g, x, g.constant(lowest(x.dtype, not highest)), borders)
    outside = g.constant(np.array(False))
    there = padded(g, g.expand(True, x.shape, BOOL), outside, borders)
    sizes = source.shape
    places = list(product(*map(range, window_dimensions)))
    best = g.expand(g.constant(lowest(x.dtype, not highest)), sizes)
    chosen = g.expand(-1, sizes, I64)
    for number, place in enumerate(places):
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(place, sizes, window_strides, strict=True)]
        here = g.slice(wide, place, limits, window_strides)
        stays = g.op(compare, best, here)
        if is_float(x.dtype):
            stays = g.op("Or", stays, g.op("IsNaN", best))
        first = g.op("Equal", chosen, -1)
        taken = g.op(
            "And",
            g.slice(there, place, limits, window_strides),
            g.op("Or", first, g.op("Not", stays)),
        )
        chosen = where(c, taken, number, chosen, chosen)
        best = g.op("Where", taken, here, best)
    total: Value | None = None
    zero = g.constant(np.zeros((), source.dtype))
    for number, place in enumerate(places):
        added = where(c, g.op("Equal", chosen, number), source, zero, source)
        config = []
        for d, at in enumerate(place):
            covered = (sizes[d] - 1) * window_strides[d] + 1
            config.append((at, wide.shape[d] - at - covered, window_strides[d] - 1))
        spread = padded(g, added, zero, config)
        total = spread if total is None else g.op("Add", total, spread)
    assert total is not None
    return padded(g, total, zero, [(-a, -b, 0) for a, b in padding])
