"""Arrays joined to one, and one divided into several."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Value

table = LoweringTable()


@table.rule("concatenate")
def concatenate(c: Context, *parts: Value, dimension: int) -> Value:
    """Arrays one after the other."""
    return c.graph.concat(parts, dimension)


@table.rule("stack")
def stack(c: Context, *parts: Value, axis: int) -> Value:
    """Arrays along a new dimension."""
    return c.graph.concat([c.graph.unsqueeze(part, [axis]) for part in parts], axis)


@table.rule("split")
def split(c: Context, x: Value, *, sizes: Sequence[int], axis: int) -> list[Value]:
    """An array divided along a dimension."""
    parts, start = [], 0
    for size in sizes:
        parts.append(c.graph.part(x, axis, start, start + size))
        start += size
    return parts


@table.rule("unstack")
def unstack(c: Context, x: Value, *, axis: int) -> list[Value]:
    """The arrays along a dimension."""
    parts = split(c, x, sizes=[1] * x.shape[axis], axis=axis)
    return [c.graph.squeeze(part, [axis]) for part in parts]


@table.rule("tile")
def tile(c: Context, x: Value, *, reps: Sequence[int]) -> Value:
    """An array repeated along its dimensions."""
    x = c.graph.unsqueeze(x, range(len(reps) - x.rank))
    shape = [n * r for n, r in zip(x.shape, reps, strict=True)]
    return c.op("Tile", x, c.graph.sizes(reps), shape=shape)
