"""Updates at many positions: `scatter` and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import where
from dovetail_onnx.converters.gathering import components, in_bounds
from dovetail_onnx.converters.slicing import clamped
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Value
from dovetail_onnx.types import BOOL, I64

table = LoweringTable()


def _scatter(reduction: str | None, negated: bool = False) -> Callable[..., Value]:
    """The converter of one of the primitives.

    Args:
        reduction: how an update and what is there are combined; None replaces it.
        negated: whether the updates change their sign first.
    """

    def convert(
        c: Context,
        x: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: Any,
        mode: Any,
        update_jaxpr: Any,
        **params: Any,
    ) -> Value:
        if update_jaxpr is not None and reduction is None:
            raise Refusal("ONNX has no scatter that applies a function")
        if negated:
            updates = c.op("Sub", 0, updates)
        if x.dtype == BOOL and reduction:
            updates = c.graph.cast(updates, np.dtype(np.int32))
            wide = c.graph.cast(x, np.dtype(np.int32))
            result = _updated(c, wide, indices, updates, dimension_numbers, mode, reduction)
            return c.op("Not", c.op("Equal", result, 0))
        return _updated(c, x, indices, updates, dimension_numbers, mode, reduction)

    return convert


table.rule("scatter")(_scatter(None))
table.rule("scatter-add")(_scatter("add"))
table.rule("scatter-sub")(_scatter("add", negated=True))
table.rule("scatter-mul")(_scatter("mul"))
table.rule("scatter-max")(_scatter("max"))
table.rule("scatter-min")(_scatter("min"))


def _updated(
    c: Context,
    x: Value,
    indices: Value,
    updates: Value,
    numbers: Any,
    mode: Any,
    reduction: str | None,
) -> Value:
    """Rows of an array updated.

    A row is what lies together along the last dimensions, which no index concerns. Rows are
    numbered; there is one more, which takes the updates that are dropped.
    """
    g = c.graph
    batch = indices.shape[:-1]
    rank = len(batch)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    windowed = [d for d in range(x.rank) if d not in gone]
    sizes = [1] * x.rank
    for d, at in zip(windowed, numbers.update_window_dims, strict=True):
        sizes[d] = updates.shape[at]
    starts = components(g, indices, numbers.scatter_dims_to_operand_dims)
    inside = None if mode.name == "CLIP" else in_bounds(g, starts, x.shape, sizes)
    positions = {d: clamped(g, start, x.shape[d] - sizes[d]) for d, start in starts.items()}
    for own, theirs in zip(
        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
    ):
        positions[own] = g.iota(batch, theirs)
    lead = x.rank
    while (
        lead
        and (lead - 1) in windowed
        and lead - 1 not in positions
        and sizes[lead - 1] == x.shape[lead - 1]
    ):
        lead -= 1
    # Updates: the dimensions of the batch, then those of windows.
    outer = [d for d in range(updates.rank) if d not in numbers.update_window_dims]
    updates = g.transpose(updates, [*outer, *numbers.update_window_dims])
    inner = [d for d in windowed if d < lead]
    full = [*batch, *(sizes[d] for d in inner)]
    row, count = prod(x.shape[lead:]), prod(x.shape[:lead])
    number = g.expand(0, full, I64)
    for d in range(lead):
        stride = g.constant(np.int64(prod(x.shape[d + 1 : lead])))
        if d in positions:
            part = g.unsqueeze(positions[d], range(rank, len(full)))
            number = g.op("Add", number, g.op("Mul", part, stride))
        if d in inner and sizes[d] > 1:
            steps = g.arange(sizes[d])
            along = [sizes[d] if other == d else 1 for other in inner]
            steps = g.reshape(steps, [*([1] * rank), *along])
            number = g.op("Add", number, g.op("Mul", steps, stride))
    if inside is not None:
        spare = g.constant(np.int64(count))
        number = where(c, g.unsqueeze(inside, range(rank, len(full))), number, spare, number)
    rows = g.reshape(x, [count, row])
    rows = g.pad(rows, [0, 0], [1, 0], 0)
    places = g.reshape(number, [prod(full), 1])
    given = g.reshape(updates, [prod(full), row])
    if not prod(full) or not row:
        return x
    result = g.op("ScatterND", rows, places, given, shape=[count + 1, row], reduction=reduction)
    return g.reshape(g.slice(result, [0, 0], [count, row]), x.shape)
