"""Slices, at positions that are known or not, and borders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import I64

table = LoweringTable()


@table.rule("slice")
def slice_(
    c: Context,
    x: Value,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Value:
    """A part of an array."""
    return c.graph.slice(x, start_indices, limit_indices, strides)


@table.rule("pad")
def pad(
    c: Context, x: Value, fill: Value, *, padding_config: Sequence[tuple[int, int, int]]
) -> Value:
    """An array with a border, with or without space between its elements."""
    return padded(c.graph, x, fill, padding_config)


def padded(g: Graph, x: Value, fill: Value, config: Sequence[tuple[int, int, int]]) -> Value:
    """An array with low, high and interior padding for each dimension; the first two may be < 0."""
    for d, (_, _, interior) in enumerate(config):
        if interior and x.shape[d] > 1:
            spread = g.unsqueeze(x, [d + 1])
            border = [interior if at == d + 1 else 0 for at in range(spread.rank)]
            spread = g.pad(spread, [0] * spread.rank, border, fill)
            shape = list(x.shape)
            shape[d] *= interior + 1
            x = g.reshape(spread, shape)
            shape[d] -= interior
            x = g.slice(x, [0] * x.rank, shape)
    low, high = ([max(row[side], 0) for row in config] for side in (0, 1))
    x = g.pad(x, low, high, fill)
    starts = [max(-row[0], 0) for row in config]
    limits = [n - max(-row[1], 0) for n, row in zip(x.shape, config, strict=True)]
    return g.slice(x, starts, limits)


def clamped(g: Graph, start: Value, last: int) -> Value:
    """A position, moved to between 0 and the last one, as a 64-bit number."""
    if start.known is not None:  # in Python's integers, which hold those of any type
        return g.constant(np.asarray(np.clip(start.known.astype(object), 0, last), I64))
    position = g.cast(start, I64)
    if start.dtype.kind == "u" and start.dtype.itemsize == 8:
        position = g.cast(g.op("Min", start, 2**63 - 1), I64)
    return g.op("Min", g.op("Max", position, 0), g.constant(I64.type(last)))


@table.rule("dynamic_slice")
def dynamic_slice(c: Context, x: Value, *starts: Value, slice_sizes: Sequence[int]) -> Value:
    """A part of an array, moved to where it fits."""
    for d, (start, size) in enumerate(zip(starts, slice_sizes, strict=True)):
        if size != x.shape[d]:
            x = _part(c.graph, x, d, clamped(c.graph, start, x.shape[d] - size), size)
    return x


def _part(g: Graph, x: Value, dim: int, start: Value, size: int) -> Value:
    """A part of an array along one dimension."""
    first = g.reshape(start, [1])
    limit = g.op("Add", first, g.sizes([size]))
    shape = [size if d == dim else n for d, n in enumerate(x.shape)]
    return g.op("Slice", x, first, limit, g.sizes([dim]), shape=shape)


@table.rule("dynamic_update_slice")
def dynamic_update_slice(c: Context, x: Value, update: Value, *starts: Value) -> Value:
    """An array with a part replaced, which is moved to where it fits."""
    return _updated(c.graph, x, update, starts, 0)


def _updated(g: Graph, x: Value, update: Value, starts: Sequence[Value], dim: int) -> Value:
    """`x` with `update` in it, along this dimension and those after it."""
    while dim < x.rank and x.shape[dim] == update.shape[dim]:
        dim += 1
    if dim == x.rank:
        return update
    size, whole = update.shape[dim], x.shape[dim]
    start = g.reshape(clamped(g, starts[dim], whole - size), [1])
    limit = g.op("Add", start, g.sizes([size]))
    axis, zero, end = g.sizes([dim]), g.sizes([0]), g.sizes([whole])
    rest = [whole - size if d == dim else n for d, n in enumerate(x.shape)]
    before = g.op("Slice", x, zero, start, axis, shape=rest)
    after = g.op("Slice", x, limit, end, axis, shape=rest)
    middle = _updated(g, _part(g, x, dim, start, size), update, starts, dim + 1)
    return g.op("Concat", before, middle, after, shape=x.shape, axis=dim)
