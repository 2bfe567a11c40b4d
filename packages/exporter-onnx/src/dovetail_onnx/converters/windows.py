"""Reductions over windows: pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, lowest
from dovetail_onnx.converters.slicing import padded
from dovetail_onnx.graph import Value

table = LoweringTable()


def _window(operator: str, neutral: Callable[[np.dtype[Any]], Any]) -> Callable[..., Value]:
    """A reduction over windows, one dimension after the other.

    Along a dimension, windows of one, two, four ... elements are combined to what is needed: as
    many operators as the size of the window has bits. Unlike `MaxPool` this has all element types,
    and NaN.
    """

    @in_wide
    def convert(
        c: Context,
        x: Value,
        *,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        base_dilation: Sequence[int],
        window_dilation: Sequence[int],
    ) -> Value:
        g = c.graph
        fill = g.constant(np.asarray(neutral(x.dtype)).astype(x.dtype))
        config = [(a, b, n - 1) for (a, b), n in zip(padding, base_dilation, strict=True)]
        x = padded(g, x, fill, config)
        if not all(c.shape):
            return g.expand(fill, c.shape)
        for d, (size, step) in enumerate(zip(window_dimensions, window_dilation, strict=True)):
            x = _along(c, x, d, size, step, operator)
        limits = [(n - 1) * s + 1 for n, s in zip(c.shape, window_strides, strict=True)]
        return g.slice(x, [0] * x.rank, limits, window_strides)

    return convert


def _along(c: Context, x: Value, dim: int, size: int, step: int, operator: str) -> Value:
    """Windows along one dimension, at every position at which one fits."""
    count = x.shape[dim] - (size - 1) * step

    def part(x: Value, start: int, length: int) -> Value:
        starts, limits = [0] * x.rank, list(x.shape)
        starts[dim], limits[dim] = start, start + length
        return c.graph.slice(x, starts, limits)

    result, done, width = None, 0, 1
    while True:
        if size & width:
            piece = part(x, done * step, count)
            result = piece if result is None else c.op(operator, result, piece)
            done += width
        if done == size:
            assert result is not None
            return result
        length = x.shape[dim] - width * step
        x = c.op(operator, part(x, 0, length), part(x, width * step, length))
        width *= 2


table.rule("reduce_window_sum")(_window("Add", lambda dtype: 0))
table.rule("reduce_window_max")(_window("Max", lowest))
table.rule("reduce_window_min")(_window("Min", lambda dtype: lowest(dtype, True)))
