"""Slices at many positions: `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import lowest, nan, where
from dovetail_onnx.converters.slicing import clamped
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import BOOL, I64, is_float

table = LoweringTable()


@table.rule("gather")
def gather(
    c: Context,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    mode: Any,
    fill_value: Any,
    **params: Any,
) -> Value:
    """Slices that begin where vectors of indices say."""
    g, numbers = c.graph, dimension_numbers
    batch = indices.shape[:-1]
    result_rank = len(c.shape)
    starts = components(g, indices, numbers.start_index_map)
    fill = mode.name == "FILL_OR_DROP"
    inside = in_bounds(g, starts, x.shape, slice_sizes) if fill else None
    positions = {
        d: clamped(g, start, x.shape[d] - slice_sizes[d])
        for d, start in starts.items()
        if slice_sizes[d] != x.shape[d] or slice_sizes[d] == 1
    }
    for own, theirs in zip(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
    ):
        positions[own] = g.iota(batch, theirs)
    for d, size in enumerate(slice_sizes):
        if size != x.shape[d] and d not in positions:
            positions[d] = g.expand(0, batch, I64)
    taken, dims = taken_slices(g, x, positions, batch, slice_sizes)
    # Dimensions of what was taken: the batch, then those of the operand in the order `dims`.
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [d for d in range(x.rank) if d not in gone]
    rank = len(batch)
    taken = g.squeeze(taken, [rank + at for at, d in enumerate(dims) if d in gone])
    left = [d for d in dims if d not in gone]
    offset = iter(rank + left.index(d) for d in kept)
    around = iter(range(rank))
    order = [next(offset) if d in numbers.offset_dims else next(around) for d in range(result_rank)]
    result = g.transpose(taken, order)
    if inside is None:
        return result
    return where(
        c, g.unsqueeze(inside, numbers.offset_dims), result, _fill(result, fill_value), result
    )


def _fill(x: Value, fill_value: Any) -> np.ndarray[Any, Any]:
    """What is read where there is nothing."""
    if fill_value is None:
        if is_float(x.dtype):
            return nan(x)
        return np.array(True) if x.dtype == BOOL else lowest(x.dtype, x.dtype.kind == "u")
    with np.errstate(all="ignore"):
        return np.asarray(np.float64(fill_value) if is_float(x.dtype) else fill_value).astype(
            x.dtype
        )


def components(g: Graph, indices: Value, dims: Sequence[int]) -> dict[int, Value]:
    """The components of vectors of indices, by the dimension that each is for."""
    found = {}
    for at, d in enumerate(dims):
        last = indices.rank - 1
        found[d] = g.squeeze(g.part(indices, last, at, at + 1), [last])
    return found


def in_bounds(
    g: Graph, starts: dict[int, Value], shape: Sequence[int], sizes: Sequence[int]
) -> Value | None:
    """Whether slices are inside of an array; None where all are."""
    inside = None
    for d, start in starts.items():
        position = g.cast(start, I64)
        if start.dtype.kind == "u" and start.dtype.itemsize == 8:
            position = g.cast(g.op("Min", start, 2**63 - 1), I64)
        last = g.constant(np.int64(shape[d] - sizes[d]))
        fits = g.op("And", g.op("GreaterOrEqual", position, 0), g.op("LessOrEqual", position, last))
        inside = fits if inside is None else g.op("And", inside, fits)
    return inside


def taken_slices(
    g: Graph, x: Value, positions: dict[int, Value], batch: Sequence[int], sizes: Sequence[int]
) -> tuple[Value, list[int]]:
    """Slices of an array.

    Args:
        g: the graph.
        x: the array.
        positions: where slices begin, by dimension, each in the shape of the batch; along other
            dimensions they are as long as the array.
        batch: the shape of the batch.
        sizes: the sizes of slices.

    Returns:
        The slices, whose dimensions are those of the batch and all of the array's, and the order
        of the latter.
    """
    indexed = sorted(positions)
    rest = [d for d in range(x.rank) if d not in positions]
    rank = len(batch)
    if not indexed:
        return g.expand(g.unsqueeze(x, range(rank)), [*batch, *x.shape]), rest
    if len(indexed) == 1 and sizes[indexed[0]] == 1:
        (d,) = indexed
        moved = g.transpose(x, [d, *rest])
        shape = [*batch, *(x.shape[r] for r in rest)]
        rows = g.op("Gather", moved, positions[d], shape=shape, axis=0)
        return g.unsqueeze(rows, [rank]), [d, *rest]
    window = [sizes[d] for d in indexed]
    full = [*batch, *window]
    parts = []
    for at, d in enumerate(indexed):
        begin = g.unsqueeze(positions[d], range(rank, rank + len(indexed)))
        if sizes[d] > 1:
            along = [sizes[d] if other == at else 1 for other in range(len(indexed))]
            steps = g.reshape(g.arange(sizes[d]), [*([1] * rank), *along])
            begin = g.op("Add", begin, steps)
        parts.append(g.unsqueeze(g.expand(begin, full), [len(full)]))
    grid = g.concat(parts, len(full))
    moved = g.transpose(x, [*indexed, *rest])
    shape = [*full, *(x.shape[r] for r in rest)]
    return g.op("GatherND", moved, grid, shape=shape), [*indexed, *rest]
